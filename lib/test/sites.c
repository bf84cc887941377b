/* SPDX-License-Identifier: MIT */
/*
 * sites [THREADS]: of 16 objects of one size, all from one wrapper of malloc, 15 are freed soon and
 * one is kept. On its own page for each 85 of them, they would keep every page there ever was; among
 * their own kind they take what they take. For one life an address only.
 */
#include "check.h"

#include <pthread.h>

enum {
	SIZE = 48,
	KEPT = 1 << 17, /* objects, of all threads: 6 MiB */
	SOON = 15,      /* others for each of them: 90 MiB */
	QUEUE = 1000,   /* objects after which such a one is freed */
};

static void *kept[KEPT];

static __attribute__((noinline)) void *wrapper(size_t size)
{
	void *p = hide(malloc(size));

	CHECK(p);
	memset(p, 1, size);
	return p;
}

/* The stack is as deep for the one as for the other but for this. */
static __attribute__((noinline)) void *for_long(void)
{
	volatile char room[256];

	room[0] = 0;
	return (char *)wrapper(SIZE) + room[0];
}

static __attribute__((noinline)) void *for_now(void)
{
	return hide(wrapper(SIZE));
}

struct part {
	unsigned from, to;
};

static void *work(void *arg)
{
	const struct part *part = (const struct part *)arg;
	void *queue[QUEUE] = {0};
	unsigned at = 0;

	for (unsigned i = part->from; i < part->to; i++) {
		kept[i] = for_long();
		for (unsigned k = 0; k < SOON; k++, at = (at + 1) % QUEUE) {
			free(queue[at]);
			queue[at] = for_now();
		}
	}
	for (unsigned i = 0; i < QUEUE; i++)
		free(queue[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	size_t all = (size_t)KEPT * (SOON + 1) * SIZE, live = (size_t)KEPT * SIZE;
	pthread_t thread[16];
	struct part part[16];
	size_t before = rss_bytes(), more;

	CHECK(n >= 1 && n <= 16);
	for (unsigned i = 0; i < n; i++) {
		part[i] = (struct part){.from = KEPT / n * i, .to = KEPT / n * (i + 1)};
		CHECK(pthread_create(&thread[i], NULL, work, &part[i]) == 0);
	}
	for (unsigned i = 0; i < n; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	more = rss_bytes() - before;
	printf("%zu MiB in all, %zu MiB live: %zu MiB resident\n", all / MIB, live / MIB,
		more / MIB);
	CHECK(more < 6 * live, "%zu MiB resident for %zu MiB live", more / MIB, live / MIB);
	for (unsigned i = 0; i < KEPT / n * n; i++)
		CHECK(((char *)kept[i])[SIZE - 1] == 1);
	return 0;
}
