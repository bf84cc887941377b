/* SPDX-License-Identifier: MIT */
/* malloc_trim, mallopt, mallinfo, mallinfo2, malloc_stats and malloc_info. */
#include "check.h"

#include <malloc.h>

static void trim(void)
{
	enum { N = 4096 };
	static void *p[N];

	for (unsigned i = 0; i < N; i++) {
		p[i] = hide(malloc(4000));
		memset(p[i], 1, 4000);
	}
	for (unsigned i = 0; i < N; i += 2)
		free(hide(p[i]));
	for (unsigned round = 0; round < 3; round++) {
		int trimmed = malloc_trim(round * 1000);

		CHECK(trimmed == 0 || trimmed == 1, "malloc_trim gave %d", trimmed);
	}
	for (unsigned i = 1; i < N; i += 2) {
		CHECK(((char *)p[i])[3999] == 1, "object %u", i);
		free(p[i]);
	}
}

/* Nothing but the pages of live objects stays, here one object in a hundred. */
static void trim_gives_back(void)
{
	enum { N = 100000, SIZE = 1000 };
	static void *p[N];
	size_t before = rss_bytes(), full, trimmed;

	for (unsigned i = 0; i < N; i++) {
		p[i] = hide(malloc(SIZE));
		memset(p[i], 1, SIZE);
	}
	full = rss_bytes() - before;
	for (unsigned i = 0; i < N; i++)
		if (i % 100)
			free(hide(p[i]));
	malloc_trim(0);
	trimmed = rss_bytes() - before;
	CHECK(trimmed < full / 4, "%zu KiB resident, after malloc_trim %zu KiB", full / KIB,
		trimmed / KIB);
	for (unsigned i = 0; i < N; i += 100) {
		CHECK(((char *)p[i])[SIZE - 1] == 1, "object %u", i);
		free(p[i]);
	}
}

/* Programs tune glibc and stop when it refuses: what is valid there succeeds here. */
static void opt(void)
{
	void *p;

	CHECK(mallopt(M_MMAP_THRESHOLD, 128 * 1024) == 1);
	CHECK(mallopt(M_TRIM_THRESHOLD, 128 * 1024) == 1);
	CHECK(mallopt(M_TOP_PAD, 64 * 1024) == 1);
	CHECK(mallopt(M_MMAP_MAX, 65536) == 1);
	CHECK(mallopt(M_ARENA_MAX, 2) == 1);
	CHECK(mallopt(M_CHECK_ACTION, 3) == 1);
	CHECK(mallopt(M_PERTURB, 0) == 1);
	p = hide(malloc(MIB));
	CHECK(p);
	free(p);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void info(void)
{
	struct mallinfo info = mallinfo();

	CHECK(info.uordblks >= 0 && info.fordblks >= 0 && info.arena >= 0 && info.hblkhd >= 0);
}
#pragma GCC diagnostic pop

/* What is in use grows with what is allocated, and falls when it is freed. */
static void info2(void)
{
	enum { N = 16 };
	void *p[N];
	struct mallinfo2 before = mallinfo2(), during, after;

	for (unsigned i = 0; i < N; i++) {
		p[i] = hide(malloc(4 * MIB));
		memset(p[i], 1, 4 * MIB);
	}
	during = mallinfo2();
	for (unsigned i = 0; i < N; i++)
		free(hide(p[i]));
	after = mallinfo2();
	CHECK(during.uordblks + during.hblkhd >= before.uordblks + before.hblkhd + 60 * MIB,
		"%zu bytes in use before, %zu with 64 MiB", before.uordblks + before.hblkhd,
		during.uordblks + during.hblkhd);
	CHECK(after.uordblks + after.hblkhd <= during.uordblks + during.hblkhd - 60 * MIB,
		"%zu bytes in use with 64 MiB, %zu without", during.uordblks + during.hblkhd,
		after.uordblks + after.hblkhd);
}

/* On stderr; the caller looks that something came. */
static void stats(void)
{
	void *p = hide(malloc(1000));

	malloc_stats();
	free(p);
}

/* XML on stdout; the caller parses it. */
static void xml(void)
{
	void *p = hide(malloc(1000));

	CHECK(malloc_info(0, stdout) == 0);
	CHECK(fflush(stdout) == 0);
	free(p);
}

static void xml_invalid(void)
{
	CHECK(malloc_info(1, stderr) != 0, "options other than 0 are invalid");
}

static const struct check_case cases[] = {
	{"trim", trim},
	{"trim-gives-back", trim_gives_back},
	{"opt", opt},
	{"info", info},
	{"info2", info2},
	{"stats", stats},
	{"xml", xml},
	{"xml-invalid", xml_invalid},
};

CHECK_MAIN(cases)
