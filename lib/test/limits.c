/* SPDX-License-Identifier: MIT */
/*
 * limits MIB [ROUNDS]: use a heap of MIB mebibytes ROUNDS times (5), then ask for more until there
 * is no more.
 * The caller sets the limit (RLIMIT_AS, overcommit). Want of memory is NULL and ENOMEM, never a
 * crash, and what was allocated before stays whole.
 */
#include "check.h"

#include <sys/resource.h>

#define N 65536

static void *objects[N];
static size_t sizes[N];

/* Of each object the first page is enough to look at. */
static size_t looked_at(size_t size)
{
	return size < 4096 ? size : 4096;
}

/* Up to WANTED bytes in up to N objects; returns how many objects there were room for. */
static unsigned allocate(size_t wanted, uint64_t *seed)
{
	size_t total = 0;
	unsigned n;

	for (n = 0; n < N && total < wanted; n++) {
		sizes[n] = random_size(seed, 256 * KIB) + 16;
		errno = 0;
		objects[n] = hide(malloc(sizes[n]));
		if (!objects[n]) {
			CHECK(errno == ENOMEM);
			break;
		}
		fill(objects[n], looked_at(sizes[n]), n);
		total += sizes[n];
	}
	return n;
}

static void release(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		CHECK(first_changed(objects[i], looked_at(sizes[i]), i) == looked_at(sizes[i]),
			"object %u", i);
		free(objects[i]);
	}
}

/* Large objects until there is no room; the heap must work all the time and afterwards. */
static unsigned exhaust(void)
{
	static void *large[4096];
	unsigned n;

	for (n = 0; n < 4096; n++) {
		large[n] = hide(malloc(4 * MIB));
		if (!large[n]) {
			CHECK(errno == ENOMEM);
			break;
		}
		memset(large[n], 1, 4096);
	}
	if (n > 0) {
		CHECK(!hide(realloc(large[0], (size_t)64 * GIB)) && errno == ENOMEM);
		CHECK(*(char *)large[0] == 1);
	}
	for (unsigned i = 0; i < n; i++)
		free(hide(large[i]));
	return n;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;
	size_t wanted;
	uint64_t seed = 5;
	struct rlimit limit;

	CHECK(argc >= 2, "usage: limits MIB [ROUNDS]");
	wanted = strtoul(argv[1], NULL, 10) * MIB;
	for (unsigned round = 0; round < rounds; round++) {
		unsigned n = allocate(wanted, &seed);
		size_t total = 0;

		for (unsigned i = 0; i < n; i++)
			total += sizes[i];
		CHECK(total >= wanted, "round %u: room for %zu of %zu MiB", round, total / MIB,
			wanted / MIB);
		release(n);
	}
	CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
	if (limit.rlim_cur == RLIM_INFINITY)
		return 0;
	for (unsigned round = 0; round < 3; round++) {
		unsigned n;

		exhaust();
		/* Small objects to the last, too. */
		n = allocate(SIZE_MAX, &seed);
		release(n);
	}
	release(allocate(wanted, &seed));
	return 0;
}
