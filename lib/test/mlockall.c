/* SPDX-License-Identifier: MIT */
/*
 * mlockall [onfault]: a daemon that locks its memory, present and future. What is only reserved
 * must not be locked in, and what is freed must still be given back, where madvise fails for locked
 * pages.
 */
#include "check.h"

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

#define LIVE (32 * MIB)

/* Fill LIVE bytes with objects of different sizes, TIMES over. */
static void churn(unsigned times)
{
	enum { N = 4096 };
	static void *objects[N];
	static size_t sizes[N];
	uint64_t seed = 3;

	for (unsigned i = 0; i < N * times; i++) {
		unsigned at = i % N;

		if (objects[at])
			CHECK(first_changed(objects[at], sizes[at], at) == sizes[at], "object %u",
				at);
		free(objects[at]);
		sizes[at] = 1 + next_random(&seed) % (2 * LIVE / N);
		objects[at] = hide(malloc(sizes[at]));
		CHECK(objects[at]);
		fill(objects[at], sizes[at], at);
	}
	for (unsigned i = 0; i < N; i++) {
		free(objects[i]);
		objects[i] = NULL;
	}
}

int main(int argc, char **argv)
{
	int flags = MCL_CURRENT | MCL_FUTURE;

	if (argc == 2 && strcmp(argv[1], "onfault") == 0)
		flags |= MCL_ONFAULT;
	churn(2);
	if (mlockall(flags))
		SKIP("mlockall is not permitted");
	CHECK(rss_bytes() < 256 * MIB, "%zu MiB resident after mlockall", rss_bytes() / MIB);
	churn(100);
	for (unsigned i = 0; i < 20; i++) {
		void *p = hide(malloc(16 * MIB));

		CHECK(p);
		memset(p, 1, 16 * MIB);
		p = hide(realloc(p, 24 * MIB));
		CHECK(p && ((char *)p)[16 * MIB - 1] == 1);
		free(p);
	}
	CHECK(rss_bytes() < 256 * MIB, "%zu MiB resident at the end", rss_bytes() / MIB);
	CHECK(vma_count() < 2000, "%zu mappings", vma_count());
	return 0;
}
