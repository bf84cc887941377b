/* LIBS: -Wl,--enable-new-dtags,-rpath,$ORIGIN/modules */
/* SPDX-License-Identifier: MIT */
/*
 * origin: load so_alloc.so from the directory "modules" beside this program, by RUNPATH and by
 * $ORIGIN. glibc takes both from the object that calls dlopen: a wrapper must not become that
 * object.
 */
#include "check.h"

#include <dlfcn.h>

int main(void)
{
	static const char *const names[] = {"so_alloc.so", "$ORIGIN/modules/so_alloc.so"};
	static const int flags[] = {RTLD_NOW, RTLD_LAZY | RTLD_DEEPBIND};

	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < 2; k++) {
			void *module = dlopen(names[i], flags[k]);

			CHECK(module, "flags %#x: %s", (unsigned)flags[k], dlerror());
			CHECK(dlsym(module, "module_malloc"));
			CHECK(dlclose(module) == 0);
		}
	/* Errors and the other uses of dlopen are glibc's too. */
	CHECK(!dlopen("there-is-no-such-file.so", RTLD_NOW) &&
		strstr(dlerror(), "there-is-no-such-file"));
	CHECK(dlopen(NULL, RTLD_NOW) && dlsym(dlopen(NULL, RTLD_NOW), "malloc"));
	CHECK(!dlopen(names[0], RTLD_NOW | RTLD_NOLOAD));
	CHECK(!dlopen(names[0], 0) && strstr(dlerror(), "invalid mode"));
	return 0;
}
