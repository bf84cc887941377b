/* LIBS: -ljemalloc */
/* SPDX-License-Identifier: MIT */
/*
 * jemalloc's own interface, as redis, mariadb and varnish use it: *allocx come from the preloaded
 * library, mallctl from the libjemalloc that the program is linked with.
 */
#include "check.h"

#include <jemalloc/jemalloc.h>
#include <malloc.h>

static const size_t sizes[] = {
	1, 8, 16, 17, 100, 1000, 4096, 5000, 20000, 100000, 1 << 20, 9 << 20};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* The largest take the longest. */
static unsigned n_sizes(void)
{
	return often(N_SIZES, N_SIZES - 3);
}

static void plain(void)
{
	for (unsigned i = 0; i < n_sizes(); i++) {
		void *p = hide(mallocx(sizes[i], 0));

		CHECK(p && is_aligned(p, 8), "mallocx(%zu, 0) gave %p", sizes[i], p);
		fill(p, sizes[i], i);
		CHECK(first_changed(p, sizes[i], i) == sizes[i]);
		dallocx(p, 0);
	}
}

static void alignment(void)
{
	for (int log = 0; log <= 22; log++)
		for (unsigned i = 0; i < n_sizes(); i++) {
			void *p = hide(mallocx(sizes[i], MALLOCX_LG_ALIGN(log)));
			void *q = hide(mallocx(sizes[i], MALLOCX_ALIGN((size_t)1 << log)));

			CHECK(p && is_aligned(p, (size_t)1 << log), "%p: 2^%d, %zu", p, log,
				sizes[i]);
			CHECK(q && is_aligned(q, (size_t)1 << log), "%p: 2^%d, %zu", q, log,
				sizes[i]);
			memset(p, 1, sizes[i]);
			sdallocx(hide(p), sizes[i], MALLOCX_LG_ALIGN(log));
			dallocx(q, MALLOCX_ALIGN((size_t)1 << log));
		}
}

static void zero(void)
{
	for (unsigned round = 0; round < often(50, 10); round++)
		for (unsigned i = 0; i < n_sizes() - 1; i++) {
			void *p = hide(mallocx(sizes[i], MALLOCX_ZERO));

			CHECK(p && first_nonzero(p, sizes[i]) == sizes[i], "size %zu, byte %zu",
				sizes[i], first_nonzero(p, sizes[i]));
			memset(p, 0xff, sizes[i]);
			dallocx(hide(p), 0);
		}
}

/* A grown object is zero from its old usable size on. */
static void zero_realloc(void)
{
	for (unsigned round = 0; round < often(20, 5); round++)
		for (unsigned i = 0; i + 1 < n_sizes(); i++) {
			void *p = hide(mallocx(sizes[i], MALLOCX_ZERO));
			size_t old = sallocx(p, 0), larger = sizes[i + 1] + old;

			memset(p, 0xee, old);
			p = hide(rallocx(p, larger, MALLOCX_ZERO));
			CHECK(p && first_nonzero((char *)p + old, larger - old) == larger - old,
				"from %zu to %zu bytes", old, larger);
			CHECK(((unsigned char *)p)[old - 1] == 0xee);
			memset(p, 0xdd, larger);
			dallocx(hide(p), 0);
		}
}

static void resize(void)
{
	for (unsigned from = 0; from < n_sizes(); from++)
		for (unsigned to = 0; to < n_sizes(); to++) {
			size_t common = sizes[from] < sizes[to] ? sizes[from] : sizes[to];
			void *p = hide(mallocx(sizes[from], 0));

			fill(p, sizes[from], 1);
			p = hide(rallocx(p, sizes[to], MALLOCX_LG_ALIGN(7)));
			CHECK(p && is_aligned(p, 128), "rallocx to %zu gave %p", sizes[to], p);
			CHECK(first_changed(p, common, 1) == common, "%zu to %zu", sizes[from],
				sizes[to]);
			CHECK(sallocx(p, 0) >= sizes[to]);
			sdallocx(p, sizes[to], MALLOCX_LG_ALIGN(7));
		}
}

/* xallocx never moves: it says how large the object is afterwards, and that is true. */
static void in_place(void)
{
	for (unsigned i = 0; i < n_sizes(); i++)
		for (unsigned k = 0; k < n_sizes(); k++) {
			void *p = hide(mallocx(sizes[i], 0));
			size_t old = sallocx(p, 0), real;
			/* jemalloc 5.3 grows by less than it may with extra bytes, and says it did
			 * not. */
			size_t extra = sizes[k] > old ? 0 : sizes[k] / 2;

			fill(p, old, 2);
			real = xallocx(p, sizes[k], extra, 0);
			CHECK(real == sallocx(p, 0), "xallocx says %zu, sallocx %zu", real,
				sallocx(p, 0));
			/* At least the smaller of the two, at most what the extra bytes allow. */
			CHECK(real >= (sizes[k] < old ? sizes[k] : old), "%zu became %zu", old,
				real);
			CHECK(real <= old || real <= nallocx(sizes[k] + extra, 0), "%zu became %zu",
				old, real);
			CHECK(first_changed(p, real < old ? real : old, 2) >=
				(real < old ? real : old));
			memset(p, 3, real);
			dallocx(hide(p), 0);
		}
}

/* nallocx foretells sallocx; what no object can have gives 0. */
static void sizes_foretold(void)
{
	for (size_t size = 1; size < 10 * MIB; size += size / 7 + 1)
		for (int log = 0; log <= 13; log += 13) {
			size_t foretold = nallocx(size, MALLOCX_LG_ALIGN(log));
			void *p = hide(mallocx(size, MALLOCX_LG_ALIGN(log)));

			CHECK(foretold >= size, "nallocx(%zu) gave %zu", size, foretold);
			CHECK(foretold == sallocx(p, 0), "size %zu: nallocx %zu, sallocx %zu", size,
				foretold, sallocx(p, 0));
			CHECK(sallocx(p, 0) == malloc_usable_size(p));
			sdallocx(p, foretold, MALLOCX_LG_ALIGN(log));
		}
	CHECK(nallocx(hide_size(SIZE_MAX), 0) == 0);
	CHECK(nallocx(hide_size((size_t)PTRDIFF_MAX + 1), 0) == 0);
}

static void too_large(void)
{
	void *p = hide(mallocx(100, 0));

	CHECK(!hide(mallocx(hide_size(SIZE_MAX), 0)));
	CHECK(!hide(mallocx(hide_size((size_t)PTRDIFF_MAX + 1), MALLOCX_ZERO)));
	CHECK(!hide(mallocx(hide_size(SIZE_MAX - 5000), MALLOCX_ALIGN(4096))));
	fill(p, 100, 3);
	CHECK(!hide(rallocx(hide(p), hide_size(SIZE_MAX), 0)));
	CHECK(first_changed(p, 100, 3) == 100);
	CHECK(xallocx(p, hide_size((size_t)PTRDIFF_MAX), 0, 0) == sallocx(p, 0));
	dallocx(p, 0);
}

/* An arena and a tcache made through the program's own libjemalloc are accepted. */
static void arena_and_tcache(void)
{
	unsigned arena, tcache;
	size_t n = sizeof(arena);
	void *p[1000];

	CHECK(mallctl("arenas.create", &arena, &n, NULL, 0) == 0);
	n = sizeof(tcache);
	CHECK(mallctl("tcache.create", &tcache, &n, NULL, 0) == 0);
	for (unsigned i = 0; i < 1000; i++) {
		int flags = i % 3 == 0 ? MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE
			    : i % 3 == 1
				    ? MALLOCX_ARENA(arena) | MALLOCX_TCACHE(tcache) | MALLOCX_ZERO
				    : MALLOCX_TCACHE(tcache) | MALLOCX_ALIGN(64);

		p[i] = hide(mallocx(1 + i * 13, flags));
		CHECK(p[i], "flags %#x", (unsigned)flags);
		memset(p[i], 1, 1 + i * 13);
		p[i] = hide(rallocx(hide(p[i]), 1 + i * 17, flags));
		CHECK(p[i], "flags %#x", (unsigned)flags);
	}
	for (unsigned i = 0; i < 1000; i++)
		if (i % 2)
			dallocx(p[i], i % 3 ? MALLOCX_TCACHE(tcache) : MALLOCX_TCACHE_NONE);
		else
			free(p[i]);
	CHECK(mallctl("tcache.destroy", NULL, NULL, &tcache, sizeof(tcache)) == 0);
}

/* One heap: what malloc gave, dallocx takes, and the other way round. */
static void mixed(void)
{
	for (unsigned i = 0; i < n_sizes(); i++) {
		void *p = hide(malloc(sizes[i])), *q = hide(mallocx(sizes[i], 0));

		CHECK(sallocx(p, 0) == malloc_usable_size(p));
		dallocx(p, 0);
		q = hide(realloc(q, sizes[i] * 2));
		CHECK(q);
		free(q);
		sdallocx(hide(calloc(1, sizes[i])), sizes[i], 0);
		free(hide(rallocx(malloc(10), sizes[i], 0)));
	}
}

/* mallctl is the linked libjemalloc's business, and must go on working. */
static void control(void)
{
	const char *version;
	size_t n = sizeof(version);
	uint64_t epoch = 1;

	CHECK(mallctl("version", &version, &n, NULL, 0) == 0);
	CHECK(version[0] == '5', "version %s", version);
	n = sizeof(epoch);
	CHECK(mallctl("epoch", &epoch, &n, &epoch, n) == 0);
}

static const struct check_case cases[] = {
	{"plain", plain},
	{"alignment", alignment},
	{"zero", zero},
	{"zero-realloc", zero_realloc},
	{"resize", resize},
	{"in-place", in_place},
	{"sizes-foretold", sizes_foretold},
	{"too-large", too_large},
	{"arena-and-tcache", arena_and_tcache},
	{"mixed", mixed},
	{"control", control},
};

CHECK_MAIN(cases)
