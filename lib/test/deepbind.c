/* SPDX-License-Identifier: MIT */
/*
 * deepbind MODULE: load so_alloc.so with RTLD_DEEPBIND, which binds a module to its own libraries
 * first. It must end up with our heap all the same, or the two free each other's objects.
 */
#include "check.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
	void *module, *(*module_malloc)(size_t), (*module_free)(void *);
	void *(*module_realloc)(void *, size_t), *(*module_malloc_address)(void);

	CHECK(argc == 2, "usage: deepbind MODULE");
	module = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
	CHECK(module, "%s", dlerror());
	module_malloc = (void *(*)(size_t))dlsym(module, "module_malloc");
	module_free = (void (*)(void *))dlsym(module, "module_free");
	module_realloc = (void *(*)(void *, size_t))dlsym(module, "module_realloc");
	module_malloc_address = (void *(*)(void))dlsym(module, "module_malloc_address");
	CHECK(module_malloc && module_free && module_realloc && module_malloc_address);

	for (size_t size = 1; size < 10 * MIB; size = size * 3 + 1) {
		void *p = hide(module_malloc(size)), *q = hide(malloc(size));

		fill(p, size, 1);
		fill(q, size, 2);
		p = hide(realloc(p, size + 100));
		q = hide(module_realloc(q, size + 100));
		CHECK(first_changed(p, size, 1) == size && first_changed(q, size, 2) == size);
		free(p);
		module_free(q);
	}
	CHECK(module_malloc_address() == (void *)malloc, "the module has a malloc of its own");
	CHECK(dlclose(module) == 0);
	return 0;
}
