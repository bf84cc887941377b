/* SPDX-License-Identifier: MIT */
/*
 * The heap is used before any constructor ran: from the preinit functions, which come before those
 * of all libraries, and from there by dlsym and dlerror, which allocate their messages.
 */
#include "check.h"

#include <dlfcn.h>
#include <malloc.h>

static void *kept[5];

static void use_heap(void)
{
	void *(*found)(size_t);

	kept[0] = hide(malloc(100));
	kept[1] = hide(calloc(10, 100));
	kept[2] = hide(realloc(malloc(10), 5000));
	kept[3] = hide(aligned_alloc(64, 100));
	kept[4] = hide(malloc(3 * MIB));
	for (unsigned i = 0; i < 5; i++)
		CHECK(kept[i], "object %u", i);
	CHECK(first_nonzero(kept[1], 1000) == 1000);
	for (unsigned i = 0; i < 5; i++)
		fill(kept[i], 100, i);
	free(hide(malloc(1000)));

	CHECK(!dlsym(RTLD_DEFAULT, "there_is_no_such_symbol"));
	CHECK(strstr(dlerror(), "there_is_no_such_symbol"), "dlerror");
	found = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
	CHECK(found && !dlerror(), "dlsym of malloc");
	free(hide(found(10)));
}

static void before_constructors(int argc, char **argv, char **envp)
{
	(void)argc, (void)argv, (void)envp;
	use_heap();
}

__attribute__((section(".preinit_array"), used)) static void (*preinit)(
	int, char **, char **) = before_constructors;

/* What was allocated then is as good as any other object now. */
int main(void)
{
	for (unsigned i = 0; i < 5; i++) {
		CHECK(first_changed(kept[i], 100, i) == 100, "object %u", i);
		CHECK(malloc_usable_size(kept[i]) >= 100);
		kept[i] = hide(realloc(kept[i], 10000));
		CHECK(first_changed(kept[i], 100, i) == 100, "object %u after realloc", i);
		free(kept[i]);
	}
	use_heap();
	return 0;
}
