/* SPDX-License-Identifier: MIT */
/*
 * dlopen_cxx MODULE: a C program loads so_cxx.so, whose operator new is ours though libstdc++ is
 * not among the program's own libraries: bad_alloc must be thrown as libstdc++'s.
 */
#include "check.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
	static const int flags[] = {
		RTLD_NOW | RTLD_LOCAL, RTLD_LAZY | RTLD_GLOBAL, RTLD_NOW | RTLD_DEEPBIND};

	CHECK(argc == 2, "usage: dlopen_cxx MODULE");
	for (unsigned i = 0; i < 3; i++) {
		void *module = dlopen(argv[1], flags[i]);
		int (*run)(size_t), error;

		CHECK(module, "%s", dlerror());
		run = (int (*)(size_t))dlsym(module, "module_run");
		CHECK(run);
		error = run(PTRDIFF_MAX - 100);
		CHECK(error == 0, "flags %#x: the module says %d", (unsigned)flags[i], error);
		CHECK(dlclose(module) == 0);
	}
	return 0;
}
