/* SPDX-License-Identifier: MIT */
/*
 * Pointers of glibc's own heap, which reach a program by RTLD_DEEPBIND and the like, are passed on
 * to glibc by free, realloc and malloc_usable_size.
 */
#include "check.h"

#include <dlfcn.h>
#include <malloc.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);
extern void *__libc_calloc(size_t n, size_t size);

static const size_t sizes[] = {1, 24, 100, 1000, 5000, 100000, 200000, 1 << 20, 40 << 20};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void freed(void)
{
	for (unsigned round = 0; round < 100; round++)
		for (unsigned i = 0; i < N_SIZES; i++) {
			void *p = hide(__libc_malloc(sizes[i])),
			     *q = hide(__libc_memalign(256, sizes[i]));

			CHECK(p && q);
			memset(p, 1, sizes[i] < 5000 ? sizes[i] : 5000);
			errno = 99;
			free(hide(p));
			free(q);
			CHECK(errno == 99);
		}
}

static void resized(void)
{
	for (unsigned from = 0; from < N_SIZES - 1; from++)
		for (unsigned to = 0; to < N_SIZES - 1; to++) {
			size_t common = sizes[from] < sizes[to] ? sizes[from] : sizes[to];
			void *p = hide(__libc_malloc(sizes[from]));

			fill(p, sizes[from], 1);
			p = hide(realloc(p, sizes[to]));
			CHECK(p && first_changed(p, common, 1) == common, "%zu to %zu", sizes[from],
				sizes[to]);
			free(p);
		}
	CHECK(!hide(realloc(hide(__libc_malloc(100)), hide_size(0))));
}

static void measured(void)
{
	for (unsigned i = 0; i < N_SIZES; i++) {
		void *p = hide(__libc_calloc(1, sizes[i]));

		CHECK(malloc_usable_size(p) >= sizes[i]);
		memset(p, 1, malloc_usable_size(p));
		free(hide(p));
	}
}

/* A second libc in a namespace of its own has a heap that ours cannot know; it must stay whole. */
static void other_namespace(void)
{
	void *libc = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
	void *(*other_malloc)(size_t), (*other_free)(void *);

	if (!libc)
		SKIP(dlerror());
	other_malloc = (void *(*)(size_t))dlsym(libc, "malloc");
	other_free = (void (*)(void *))dlsym(libc, "free");
	CHECK(other_malloc && other_free);
	for (unsigned i = 0; i < 100; i++) {
		void *p = hide(other_malloc(100 * i)), *q = hide(malloc(100 * i));

		CHECK(p && q);
		memset(p, 1, 100 * i);
		memset(q, 2, 100 * i);
		other_free(hide(p));
		free(hide(q));
	}
}

static const struct check_case cases[] = {
	{"freed", freed},
	{"resized", resized},
	{"measured", measured},
	{"other-namespace", other_namespace},
};

CHECK_MAIN(cases)
