/* SPDX-License-Identifier: MIT */
/* free, free_sized and free_aligned_sized: NULL is fine, errno survives. */
#include "check.h"

/* C23's; glibc 2.36 has neither, so find out at run time whether anybody has. */
#include <dlfcn.h>

static void null(void)
{
	free(NULL);
	free(hide(NULL));
}

/* POSIX 2024: free keeps errno, whatever system calls it makes. */
static void keeps_errno(void)
{
	enum { N = 20000 };
	static void *p[N];

	for (unsigned i = 0; i < N; i++) {
		size_t size = i % 1000 == 0 ? 3 * MIB : i % 100 == 0 ? 100 * KIB : 16 + i % 4000;

		p[i] = hide(i % 7 ? malloc(size) : aligned_alloc(256, size));
		CHECK(p[i]);
		memset(p[i], 1, size < 4096 ? size : 4096);
	}
	for (unsigned i = 0; i < N; i++) {
		errno = 1000 + (int)(i % 100);
		free(hide(p[i]));
		CHECK(errno == 1000 + (int)(i % 100), "object %u", i);
	}
}

/* Pages locked in memory make madvise fail: errno must survive that too. */
static void keeps_errno_locked(void)
{
	enum { N = 4096 };
	static void *p[N];

	for (unsigned i = 0; i < N; i++) {
		p[i] = hide(malloc(i % 256 ? 200 : 2 * MIB));
		CHECK(p[i]);
		memset(p[i], 1, 200);
	}
	if (mlockall(MCL_CURRENT))
		SKIP("mlockall is not permitted");
	for (unsigned i = 0; i < N; i++) {
		errno = 4711;
		free(hide(p[i]));
		CHECK(errno == 4711, "object %u", i);
	}
}

static void sized(void)
{
	void (*free_sized)(void *, size_t) =
		(void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");

	if (!free_sized)
		SKIP("no free_sized");
	free_sized(NULL, 0);
	free_sized(NULL, 100);
	for (size_t size = 0; size < 3 * MIB; size = size * 2 + 1) {
		errno = 1234;
		free_sized(hide(malloc(size)), size);
		CHECK(errno == 1234, "size %zu", size);
		free_sized(hide(calloc(1, size)), size);
		free_sized(hide(realloc(malloc(7), size + 1)), size + 1);
	}
}

static void aligned_sized(void)
{
	void (*free_aligned_sized)(void *, size_t, size_t) =
		(void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");

	if (!free_aligned_sized)
		SKIP("no free_aligned_sized");
	free_aligned_sized(NULL, 64, 100);
	for (size_t alignment = 16; alignment <= 4 * MIB; alignment *= 4)
		for (size_t size = 1; size < 3 * MIB; size = size * 5 + 1) {
			errno = 1234;
			free_aligned_sized(hide(aligned_alloc(alignment, size)), alignment, size);
			CHECK(errno == 1234, "alignment %zu, size %zu", alignment, size);
		}
}

static const struct check_case cases[] = {
	{"null", null},
	{"keeps-errno", keeps_errno},
	{"keeps-errno-locked", keeps_errno_locked},
	{"sized", sized},
	{"aligned-sized", aligned_sized},
};

CHECK_MAIN(cases)
