/* SPDX-License-Identifier: MIT */
/*
 * new_sites: 4 MiB of objects that are freed soon, then one that stays, from a place that has never
 * asked for any, and so on. Nothing is known of such a place, so what it gets must not lie among those
 * that go: each would keep a block. For one life an address only, and without sweeps (granularity=2M).
 */
#include "check.h"

#include <alloca.h>

enum {
	SIZE = 48,
	PLACES = 100,
	QUEUE = 1000, /* objects after which one is freed */
	SOON = 4 << 20,
	MOST = 48, /* MiB; 200 of blocks that are kept by one object each */
};

static void *kept[PLACES];

static __attribute__((noinline)) void *wrapper(size_t size)
{
	void *p = hide(malloc(size));

	CHECK(p);
	memset(p, 1, size);
	return p;
}

/* A place is where a function was called from and how deep the stack was. */
static __attribute__((noinline)) void *from_place(size_t place)
{
	char *room = (char *)hide(alloca(16 * (place + 1)));

	room[0] = 0;
	return (char *)wrapper(SIZE) + room[0];
}

static __attribute__((noinline)) void *for_now(void)
{
	return hide(wrapper(SIZE));
}

int main(void)
{
	void *queue[QUEUE] = {0};
	size_t before = rss_bytes(), more, at = 0;

	for (size_t i = 0; i < PLACES; i++) {
		for (size_t bytes = 0; bytes < SOON; bytes += SIZE, at = (at + 1) % QUEUE) {
			free(queue[at]);
			queue[at] = for_now();
		}
		kept[i] = from_place(i);
	}
	more = rss_bytes() - before;
	printf("%d objects of new places live, %zu MiB resident\n", PLACES, more / MIB);
	CHECK(more < MOST * MIB, "%zu MiB", more / MIB);
	for (size_t i = 0; i < PLACES; i++)
		CHECK(((char *)kept[i])[SIZE - 1] == 1);
	return 0;
}
