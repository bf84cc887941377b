/* SPDX-License-Identifier: MIT */
/* realloc and reallocarray: contents survive, failures leave the object alone. */
#include "check.h"

#include <malloc.h>

static void null_is_malloc(void)
{
	void *p = hide(realloc(NULL, 100));

	CHECK(p, "realloc(NULL, 100)");
	fill(p, 100, 1);
	free(p);
	p = hide(realloc(NULL, 0));
	CHECK(p, "realloc(NULL, 0) is malloc(0)");
	free(p);
}

/* glibc's choice: realloc(p, 0) frees p and returns NULL, without an error. */
static void zero_frees(void)
{
	for (unsigned i = 0; i < 1000; i++) {
		void *p = hide(malloc(i % 10 ? 100 : MIB));

		CHECK(p);
		errno = 0;
		CHECK(!hide(realloc(p, hide_size(0))), "realloc(p, 0) is not NULL");
		CHECK(errno == 0, "realloc(p, 0) set errno");
	}
}

/* Between any two sizes the common bytes survive. */
static void contents(void)
{
	static const size_t sizes[] = {1, 16, 24, 100, 128, 500, 1024, 2000, 4096, 5000, 16384,
		16385, 40000, 65536, 70000, 300000, 1 << 20, 3 << 20};
	enum { N = sizeof(sizes) / sizeof(sizes[0]) };

	unsigned n = often(N, N - 3);

	for (unsigned from = 0; from < n; from++)
		for (unsigned to = 0; to < n; to++) {
			size_t common = sizes[from] < sizes[to] ? sizes[from] : sizes[to];
			void *p = hide(malloc(sizes[from]));

			CHECK(p);
			fill(p, sizes[from], from);
			p = hide(realloc(p, sizes[to]));
			CHECK(p, "realloc to %zu", sizes[to]);
			CHECK(is_aligned(p, 16));
			CHECK(first_changed(p, common, from) == common,
				"%zu to %zu bytes: byte %zu was lost", sizes[from], sizes[to],
				first_changed(p, common, from));
			fill(p, sizes[to], to);
			free(p);
		}
}

/* A buffer that grows byte by byte, then shrinks, as a string builder does. */
static void steps(void)
{
	unsigned char *p = NULL;
	size_t size;

	for (size = 1; size < 100000; size += 1 + size / 64) {
		p = (unsigned char *)hide(realloc(p, size));
		CHECK(p, "realloc to %zu", size);
		p[size - 1] = (unsigned char)size;
	}
	for (size_t at = 1; at < 100000; at += 1 + at / 64)
		CHECK(p[at - 1] == (unsigned char)at, "byte %zu", at - 1);
	while (size > 2) {
		size -= 1 + size / 64;
		p = (unsigned char *)hide(realloc(p, size));
		CHECK(p, "realloc to %zu", size);
		CHECK(p[0] == 1, "size %zu", size);
	}
	free(p);
}

/* Huge objects move by their pages: every page must arrive, the new ones must be usable. */
static void huge(void)
{
	/* Where pages cannot move, every byte up to the largest size is touched and copied. */
	size_t size = 64 * MIB, step = 256 * KIB, largest = often(5120, 320) * MIB;
	char *p = (char *)hide(malloc(size));

	CHECK(p);
	fill_sparse(p, size, 4096, 7);
	for (size_t larger = size + size / 2; larger <= largest; larger += larger / 2) {
		p = (char *)hide(realloc(p, larger));
		CHECK(p, "growth to %zu MiB", larger / MIB);
		CHECK(first_changed_sparse(p, size - 8, 4096, 7) >= size - 8,
			"growth to %zu MiB: byte %zu", larger / MIB,
			first_changed_sparse(p, size - 8, 4096, 7));
		/* The words of the last size's end, then of the part that is new. */
		fill_sparse(p, size, step, 7);
		fill_sparse(p + size, larger - size, step, 9);
		CHECK(first_changed_sparse(p + size, larger - size - 8, step, 9) >=
			larger - size - 8);
	}
	for (size_t smaller = largest / 5 * 4; smaller >= 4 * KIB; smaller /= 3) {
		size_t common = smaller < size ? smaller : size;

		p = (char *)hide(realloc(p, smaller));
		CHECK(p, "shrink to %zu KiB", smaller / KIB);
		CHECK(first_changed_sparse(p, common - 8, 4096, 7) >= common - 8,
			"shrink to %zu KiB: byte %zu", smaller / KIB,
			first_changed_sparse(p, common - 8, 4096, 7));
	}
	free(p);
}

/* Many live large objects grow in turn, so that moved pages pass each other. */
static void huge_interleaved(void)
{
	enum { N = 12 };
	char *p[N];
	size_t size[N];

	for (unsigned i = 0; i < N; i++) {
		size[i] = MIB + i * 300 * KIB;
		p[i] = (char *)hide(malloc(size[i]));
		CHECK(p[i]);
		fill_sparse(p[i], size[i], 4096, i);
	}
	for (unsigned round = 0; round < 8; round++)
		for (unsigned i = 0; i < N; i++) {
			size_t next = (round + i) % 4 == 3 ? size[i] / 3 : size[i] + size[i] / 2;
			size_t common = next < size[i] ? next : size[i];

			p[i] = (char *)hide(realloc(p[i], next));
			CHECK(p[i]);
			CHECK(first_changed_sparse(p[i], common - 8, 4096, i) >= common - 8,
				"object %u, round %u", i, round);
			size[i] = next;
			fill_sparse(p[i], size[i], 4096, i);
		}
	for (unsigned i = 0; i < N; i++)
		free(p[i]);
}

static void failure_keeps(void)
{
	static const size_t too_large[] = {SIZE_MAX, SIZE_MAX - 4096, (size_t)PTRDIFF_MAX + 1};
	static const size_t sizes[] = {100, 100000, 10 << 20};

	for (unsigned i = 0; i < 3; i++) {
		void *p = hide(malloc(sizes[i]));

		CHECK(p);
		fill(p, sizes[i], i);
		for (unsigned k = 0; k < 3; k++) {
			errno = 0;
			CHECK(!hide(realloc(hide(p), hide_size(too_large[k]))), "realloc to %zu",
				too_large[k]);
			CHECK(errno == ENOMEM, "realloc to %zu", too_large[k]);
			CHECK(first_changed(p, sizes[i], i) == sizes[i]);
		}
		free(p);
	}
}

/* An aligned object may lose its alignment, never its bytes. */
static void aligned(void)
{
	for (size_t alignment = 32; alignment <= 4 * MIB; alignment *= 2) {
		void *p = hide(aligned_alloc(alignment, 1000));

		CHECK(p && is_aligned(p, alignment), "alignment %zu", alignment);
		fill(p, 1000, 3);
		p = hide(realloc(p, 50000));
		CHECK(p && first_changed(p, 1000, 3) == 1000, "alignment %zu", alignment);
		p = hide(realloc(p, 500));
		CHECK(p && first_changed(p, 500, 3) == 500, "alignment %zu", alignment);
		free(p);
	}
}

/* The old pointer is gone: whatever was moved can be freed at its new place, once. */
static void same_size(void)
{
	for (size_t size = 1; size < 4 * MIB; size = size * 2 + 1) {
		void *p = hide(malloc(size)), *q;

		CHECK(p);
		fill(p, size, 5);
		q = hide(realloc(p, malloc_usable_size(p)));
		CHECK(q && first_changed(q, size, 5) == size, "size %zu", size);
		q = hide(realloc(q, size));
		CHECK(q && first_changed(q, size, 5) == size, "size %zu", size);
		free(q);
	}
}

static void array(void)
{
	void *p = hide(reallocarray(NULL, 10, 10));

	CHECK(p, "reallocarray(NULL, 10, 10)");
	fill(p, 100, 1);
	p = hide(reallocarray(p, 50, 40));
	CHECK(p && first_changed(p, 100, 1) == 100);
	CHECK(malloc_usable_size(p) >= 2000);
	CHECK(!hide(reallocarray(p, hide_size(0), 10)), "reallocarray(p, 0, 10) is realloc(p, 0)");
}

static void array_overflow(void)
{
	static const size_t pairs[][2] = {{SIZE_MAX, 2}, {(size_t)1 << 32, (size_t)1 << 32},
		{SIZE_MAX / 2 + 1, 2}, {SIZE_MAX, 1}, {((size_t)1 << 62) + 1, 4}};
	void *p = hide(malloc(100));

	CHECK(p);
	fill(p, 100, 9);
	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		errno = 0;
		CHECK(!hide(reallocarray(hide(p), hide_size(pairs[i][0]), hide_size(pairs[i][1]))),
			"reallocarray(p, %zu, %zu)", pairs[i][0], pairs[i][1]);
		CHECK(errno == ENOMEM, "reallocarray(p, %zu, %zu)", pairs[i][0], pairs[i][1]);
		CHECK(first_changed(p, 100, 9) == 100);
	}
	free(p);
}

/*
 * A buffer that grows by eighths passes some 30 size classes to 1 MiB; with half as much again at each
 * move but the first it is in 20 places at most. The first growth gets no more than was asked for.
 */
static void growth(void)
{
	size_t size = 16, moves = 0;
	char *p = hide(malloc(size)), *q;

	CHECK(p);
	q = hide(realloc(p, 1000));
	CHECK(malloc_usable_size(q) < 1500, "room for %zu of 1000 bytes", malloc_usable_size(q));
	fill(q, 1000, 1);
	for (size = 1000; size < MIB; size += size / 8) {
		p = hide(realloc(q, size));
		CHECK(p);
		CHECK(first_changed(p, 1000, 1) == 1000);
		moves += p != q;
		q = p;
	}
	CHECK(moves <= 20, "%zu moves", moves);
	free(q);
}

static const struct check_case cases[] = {
	{"null-is-malloc", null_is_malloc},
	{"zero-frees", zero_frees},
	{"contents", contents},
	{"steps", steps},
	{"growth", growth},
	{"huge", huge},
	{"huge-interleaved", huge_interleaved},
	{"failure-keeps", failure_keeps},
	{"aligned", aligned},
	{"same-size", same_size},
	{"array", array},
	{"array-overflow", array_overflow},
};

CHECK_MAIN(cases)
