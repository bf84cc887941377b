/* SPDX-License-Identifier: MIT */
/* posix_memalign, aligned_alloc, memalign, valloc and pvalloc. */
#include "check.h"

#include <malloc.h>

static void posix(void)
{
	for (size_t alignment = sizeof(void *); alignment <= 64 * MIB; alignment *= 2)
		for (size_t size = 0; size < 300 * KIB; size = size * 3 + 1) {
			void *p = NULL;

			CHECK(posix_memalign(&p, alignment, size) == 0, "%zu, %zu", alignment,
				size);
			p = hide(p);
			CHECK(p && is_aligned(p, alignment), "%p: %zu, %zu", p, alignment, size);
			CHECK(malloc_usable_size(p) >= size, "%zu, %zu", alignment, size);
			fill(p, size, 1);
			CHECK(first_changed(p, size, 1) == size);
			free(p);
		}
}

static void posix_invalid(void)
{
	static const size_t bad[] = {
		0, 1, 2, 4, 7, 12, 24, 100, 4097, SIZE_MAX, ((size_t)1 << 63) + 8};
	void *marker = (void *)0x1234, *p = marker;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(posix_memalign(&p, hide_size(bad[i]), 100) == EINVAL, "alignment %zu",
			bad[i]);
		CHECK(p == marker, "alignment %zu: the result was written", bad[i]);
	}
	CHECK(posix_memalign(&p, 64, hide_size(SIZE_MAX - 64)) == ENOMEM);
	CHECK(posix_memalign(&p, 64, hide_size(PTRDIFF_MAX)) == ENOMEM);
	CHECK(posix_memalign(&p, (size_t)1 << 62, hide_size(1)) == ENOMEM);
	CHECK(p == marker, "a failure wrote the result");
}

/* Up to 1 GiB, two at once, and both wholly theirs. */
static void up_to_1g(void)
{
	for (size_t alignment = 2 * MIB; alignment <= GIB; alignment *= 2) {
		size_t size = alignment + 5000;
		char *p = (char *)hide(memalign(alignment, size));
		char *q = (char *)hide(aligned_alloc(alignment, 100));

		CHECK(p && is_aligned(p, alignment), "%p: alignment %zu", (void *)p, alignment);
		CHECK(q && is_aligned(q, alignment), "%p: alignment %zu", (void *)q, alignment);
		fill_sparse(p, size, MIB, 1);
		fill(q, 100, 2);
		CHECK(first_changed_sparse(p, size - 8, MIB, 1) >= size - 8);
		CHECK(first_changed(q, 100, 2) == 100);
		free(p);
		free(q);
	}
}

/* The size need not be a multiple of the alignment. */
static void odd_sizes(void)
{
	for (size_t size = 1; size < 20000; size += 37)
		for (size_t alignment = 16; alignment <= 8192; alignment *= 2) {
			void *p = hide(aligned_alloc(alignment, size));

			CHECK(p && is_aligned(p, alignment), "%zu, %zu", alignment, size);
			memset(p, 1, size);
			free(hide(p));
		}
}

/*
 * Alignments that are no power of two: memalign rounds up to the next one; aligned_alloc does so in
 * old glibc and fails with EINVAL since 2.38. Either is right, a misaligned object is not.
 */
static void odd_alignments(void)
{
	static const size_t odd[][2] = {{3, 4}, {12, 16}, {24, 32}, {48, 64}, {100, 128},
		{1000, 1024}, {5000, 8192}, {100000, 131072}, {0, 1}, {1, 1}, {2, 2}};

	for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		void *p = hide(memalign(hide_size(odd[i][0]), 100));

		CHECK(p && is_aligned(p, odd[i][1]), "memalign(%zu) gave %p", odd[i][0], p);
		memset(p, 1, 100);
		free(hide(p));
		errno = 0;
		p = hide(aligned_alloc(hide_size(odd[i][0]), 100));
		CHECK(p ? is_aligned(p, odd[i][1]) : errno == EINVAL, "aligned_alloc(%zu) gave %p",
			odd[i][0], p);
		free(p);
	}
	errno = 0;
	CHECK(!hide(memalign(hide_size(((size_t)1 << 63) + 1), 100)) && errno == EINVAL,
		"an alignment that cannot be rounded up");
}

static void too_large(void)
{
	errno = 0;
	CHECK(!hide(aligned_alloc(64, hide_size(SIZE_MAX - 63))) && errno == ENOMEM);
	errno = 0;
	CHECK(!hide(memalign(4096, hide_size((size_t)PTRDIFF_MAX + 1))) && errno == ENOMEM);
	errno = 0;
	CHECK(!hide(memalign(GIB, hide_size(SIZE_MAX - GIB + 1))) && errno == ENOMEM);
	errno = 0;
	CHECK(!hide(valloc(hide_size(SIZE_MAX - 100))) && errno == ENOMEM);
	errno = 0;
	CHECK(!hide(pvalloc(hide_size(SIZE_MAX - 100))) && errno == ENOMEM);
}

static void pages(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t size = 0; size < 5 * page; size += 123) {
		void *p = hide(valloc(size)), *q = hide(pvalloc(size));
		size_t rounded = (size + page - 1) / page * page;

		CHECK(p && is_aligned(p, page), "valloc(%zu) gave %p", size, p);
		CHECK(q && is_aligned(q, page), "pvalloc(%zu) gave %p", size, q);
		CHECK(malloc_usable_size(p) >= size, "valloc(%zu)", size);
		CHECK(malloc_usable_size(q) >= rounded, "pvalloc(%zu)", size);
		memset(q, 1, rounded);
		free(p);
		free(hide(q));
	}
}

static const struct check_case cases[] = {
	{"posix", posix},
	{"posix-invalid", posix_invalid},
	{"up-to-1g", up_to_1g},
	{"odd-sizes", odd_sizes},
	{"odd-alignments", odd_alignments},
	{"too-large", too_large},
	{"pages", pages},
};

CHECK_MAIN(cases)
