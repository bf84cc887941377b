/* SPDX-License-Identifier: MIT */
/* calloc: zeroed whatever lay there before, and an overflow is noticed. */
#include "check.h"

static void zeroed(void)
{
	static const size_t sizes[] = {
		1, 15, 16, 17, 100, 1000, 4096, 10000, 65536, 1 << 20, 9 << 20};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *p = hide(calloc(1, sizes[i]));

		CHECK(p, "calloc(1, %zu)", sizes[i]);
		CHECK(first_nonzero(p, sizes[i]) == sizes[i], "size %zu", sizes[i]);
		free(p);
	}
}

/* Dirty many objects of each size, free them, and calloc the same sizes. */
static void zeroed_after_reuse(void)
{
	enum { N = 64 };

	for (size_t size = 8; size <= often(4096, 512) * KIB; size += size / 3 + 1) {
		void *p[N];
		unsigned n = size > 16 * KIB ? often(size > 256 * KIB ? 4 : N, 2) : N;

		for (unsigned round = 0; round < 3; round++) {
			for (unsigned i = 0; i < n; i++) {
				p[i] = hide(calloc(size, 1));
				CHECK(p[i], "calloc(%zu, 1)", size);
				CHECK(first_nonzero(p[i], size) == size,
					"round %u, size %zu, byte %zu", round, size,
					first_nonzero(p[i], size));
			}
			for (unsigned i = 0; i < n; i++) {
				memset(p[i], 0xa5, size);
				hide(p[i]);
				free(p[i]);
			}
		}
	}
}

/* Objects that realloc cut short leave dirty bytes too. */
static void zeroed_after_realloc(void)
{
	for (unsigned i = 0; i < often(200, 30); i++) {
		size_t size = (size_t)1 << (8 + i % 14);
		void *p = hide(malloc(size));

		CHECK(p);
		memset(p, 0x5a, size);
		p = hide(realloc(hide(p), size / 2 + 1));
		CHECK(p);
		free(p);
		p = hide(calloc(2, size / 2));
		CHECK(p && first_nonzero(p, size) == size, "size %zu", size);
		memset(p, 0xff, size);
		free(hide(p));
	}
}

static void overflow(void)
{
	static const size_t pairs[][2] = {{SIZE_MAX, 2}, {2, SIZE_MAX},
		{(size_t)1 << 32, (size_t)1 << 32}, {SIZE_MAX / 2 + 1, 2},
		{((size_t)1 << 63) + 8, 2}, {SIZE_MAX, SIZE_MAX}, {SIZE_MAX, 1}, {1, SIZE_MAX},
		{PTRDIFF_MAX, 2}, {((size_t)1 << 62) + 1, 4}};

	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		void *p;

		errno = 0;
		p = hide(calloc(hide_size(pairs[i][0]), hide_size(pairs[i][1])));
		CHECK(!p, "calloc(%zu, %zu) gave %p", pairs[i][0], pairs[i][1], p);
		CHECK(errno == ENOMEM, "calloc(%zu, %zu)", pairs[i][0], pairs[i][1]);
	}
}

static void zero(void)
{
	void *first = hide(calloc(0, 8)), *second = hide(calloc(8, 0)), *third = hide(calloc(0, 0));

	CHECK(first && second && third, "calloc of nothing failed");
	CHECK(first != second && second != third && first != third);
	free(first);
	free(second);
	free(third);
}

/* Gigabytes of zeroes cost no memory as long as nobody writes there. */
static void huge_costs_nothing(void)
{
	size_t before = rss_bytes(), size = 8 * GIB;
	char *p = (char *)hide(calloc(size / 16, 16));

	CHECK(p, "calloc of 8 GiB");
	CHECK(!p[0] && !p[size / 2] && !p[size - 1]);
	CHECK(rss_bytes() < before + 64 * MIB, "%zu MiB resident", rss_bytes() / MIB);
	free(p);
}

static const struct check_case cases[] = {
	{"zeroed", zeroed},
	{"zeroed-after-reuse", zeroed_after_reuse},
	{"zeroed-after-realloc", zeroed_after_realloc},
	{"overflow", overflow},
	{"zero", zero},
	{"huge-costs-nothing", huge_costs_nothing},
};

CHECK_MAIN(cases)
