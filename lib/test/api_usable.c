/* SPDX-License-Identifier: MIT */
/* malloc_usable_size: at least what was asked for, constant, all of it the program's to write. */
#include "check.h"

#include <malloc.h>

static void null(void)
{
	CHECK(malloc_usable_size(NULL) == 0);
}

/* Write every usable byte of many neighbours (systemd and redis do), then look at all. */
static void writable(void)
{
	enum { N = 64 };
	unsigned char *p[N];
	size_t usable[N];

	for (size_t size = 0; size <= 300 * KIB; size += size / 4 + 1) {
		unsigned n = size > 20 * KIB ? 8 : N;

		for (unsigned i = 0; i < n; i++) {
			p[i] = (unsigned char *)hide(malloc(size));
			CHECK(p[i]);
			usable[i] = malloc_usable_size(p[i]);
			CHECK(usable[i] >= size, "size %zu, usable %zu", size, usable[i]);
			fill(p[i], usable[i], i);
		}
		for (unsigned i = 0; i < n; i++) {
			CHECK(malloc_usable_size(p[i]) == usable[i], "it changed");
			CHECK(first_changed(p[i], usable[i], i) == usable[i],
				"size %zu, byte %zu of %zu", size,
				first_changed(p[i], usable[i], i), usable[i]);
		}
		for (unsigned i = 0; i < n; i++)
			free(p[i]);
	}
}

/* Large objects have their last bytes too, and beyond a page there is no need to round much. */
static void large(void)
{
	for (size_t size = MIB; size <= 2 * GIB; size = size * 2 + 12345) {
		unsigned char *p = (unsigned char *)hide(malloc(size));
		size_t usable = malloc_usable_size(p);

		CHECK(p && usable >= size, "size %zu, usable %zu", size, usable);
		CHECK(usable <= size + size / 2, "size %zu, usable %zu", size, usable);
		p[usable - 1] = 1;
		CHECK(p[usable - 1] == 1);
		free(p);
	}
}

/* realloc keeps all usable bytes, even those beyond the size that was asked for. */
static void kept_by_realloc(void)
{
	for (size_t size = 1; size < 100 * KIB; size = size * 2 + 1) {
		unsigned char *p = (unsigned char *)hide(malloc(size));
		size_t usable = malloc_usable_size(p);

		CHECK(p);
		fill(p, usable, 4);
		p = (unsigned char *)hide(realloc(p, usable * 2));
		CHECK(p && first_changed(p, usable, 4) == usable, "size %zu, usable %zu", size,
			usable);
		free(p);
	}
}

static const struct check_case cases[] = {
	{"null", null},
	{"writable", writable},
	{"large", large},
	{"kept-by-realloc", kept_by_realloc},
};

CHECK_MAIN(cases)
