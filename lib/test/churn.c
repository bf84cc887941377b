/* SPDX-License-Identifier: MIT */
/*
 * churn PATTERN MIB LIVE_MIB [THREADS [SLACK_MIB]]: allocate and free MIB mebibytes with
 * LIVE_MIB of them live at any time, and look ten times on the way what that costs: less than 1.5
 * times the live heap plus 64 MiB (or SLACK_MIB) of physical memory, and fewer than 2,000 mappings.
 *
 *	fifo       the oldest goes first, but one object in a thousand stays for long
 *	random     any goes
 *	grow       the oldest goes, after it was grown twice by realloc
 *	large      the oldest goes, objects of 64 KiB to 8 MiB
 *	waves      all are freed when the heap is full, so that it empties and fills
 *	pins       the oldest goes, objects of 4 KiB; between any two one of 600 KiB comes and goes
 *	aligned    the oldest goes, objects of 20 KiB at multiples of 128 KiB
 */
#include "check.h"

#include <malloc.h>
#include <pthread.h>

#define RING      (1u << 20) /* objects a thread can have */
#define SURVIVORS 8192 /* of which a thread can have at most so many, and a tenth of its heap */
#define MOST      16

enum pattern { FIFO, RANDOM, GROW, LARGE, WAVES, PINS, ALIGNED, N_PATTERNS };

struct heap {
	enum pattern pattern;
	uint64_t seed;
	size_t total, live_most, live;
	void **ring; /* from `oldest` to `next`, modulo RING */
	unsigned oldest, next;
	void *survivors[SURVIVORS];
	size_t survivors_bytes;
};

static struct heap heaps[MOST];
static size_t live_most, slack = 64 * MIB, baseline, peak;

static size_t next_size(struct heap *h)
{
	if (h->pattern == LARGE)
		return 64 * KIB + random_size(&h->seed, 8 * MIB);
	if (h->pattern == PINS)
		return 4 * KIB;
	if (h->pattern == ALIGNED)
		return 20 * KIB;
	return 16 + random_size(&h->seed, next_random(&h->seed) % 16 ? KIB : 64 * KIB);
}

/* The object's address in its first word, so that its memory is in use and can be looked at. */
static void *allocate(struct heap *h, size_t size)
{
	size_t usable;
	char *p = (char *)hide(h->pattern == ALIGNED ? memalign(128 * KIB, size) : malloc(size));

	CHECK(p, "no memory for %zu bytes", size);
	usable = malloc_usable_size(p);
	for (size_t at = 0; at < usable; at += 4096)
		p[at] = 1;
	*(void **)(void *)p = p;
	h->live += usable;
	h->total -= size < h->total ? size : h->total;
	return p;
}

static void release(struct heap *h, void *p)
{
	CHECK(*(void **)p == p, "object %p was written over", p);
	h->live -= malloc_usable_size(p);
	free(p);
}

static void *grown(struct heap *h, void *p)
{
	size_t before = malloc_usable_size(p);
	void *old = hide(p), *new = hide(realloc(p, before * 3));

	CHECK(new &&*(void **)new == old, "realloc lost the contents");
	*(void **)new = new;
	h->live += malloc_usable_size(new) - before;
	return new;
}

static void drop_survivor(struct heap *h, unsigned at)
{
	if (!h->survivors[at])
		return;
	h->survivors_bytes -= malloc_usable_size(h->survivors[at]);
	release(h, h->survivors[at]);
	h->survivors[at] = NULL;
}

/* The oldest goes; or stays, in the place of others that stayed before. */
static void let_go(struct heap *h)
{
	void *p = h->ring[h->oldest++ % RING];
	unsigned at;

	if (h->pattern != FIFO || next_random(&h->seed) % 1000) {
		release(h, p);
		return;
	}
	h->survivors_bytes += malloc_usable_size(p);
	do {
		at = (unsigned)(next_random(&h->seed) % SURVIVORS);
		drop_survivor(h, at);
	} while (h->survivors_bytes > h->live_most / 10 &&
		 h->survivors_bytes > malloc_usable_size(p));
	h->survivors[at] = p;
}

static void step(struct heap *h)
{
	void *passing = h->pattern == PINS ? allocate(h, 600 * KIB) : NULL;
	void *p = allocate(h, next_size(h));

	if (passing)
		release(h, passing);
	if (h->pattern == GROW)
		p = grown(h, grown(h, p));
	h->ring[h->next++ % RING] = p;
	if (h->pattern == RANDOM && h->next - h->oldest > 1) {
		/* The oldest changes places with any other. */
		unsigned any =
			h->oldest + (unsigned)(next_random(&h->seed) % (h->next - h->oldest));

		p = h->ring[h->oldest % RING];
		h->ring[h->oldest % RING] = h->ring[any % RING];
		h->ring[any % RING] = p;
	}
	if (h->pattern == WAVES && h->live < h->live_most && h->next - h->oldest < RING)
		return;
	while (h->next != h->oldest &&
		(h->pattern == WAVES || h->live > h->live_most || h->next - h->oldest == RING))
		let_go(h);
}

static void *run(void *arg)
{
	struct heap *h = (struct heap *)arg;

	while (h->total)
		step(h);
	return NULL;
}

/* What the process has more than at the start, against what its heap may cost. */
static void look(const char *when)
{
	size_t rss = rss_bytes() - baseline, vmas = vma_count(), most = live_most * 3 / 2 + slack;

	if (rss > peak)
		peak = rss;
	CHECK(rss < most, "%s: %zu MiB resident, %zu MiB may be", when, rss / MIB, most / MIB);
	CHECK(vmas < 2000, "%s: %zu mappings", when, vmas);
}

int main(int argc, char **argv)
{
	static const char *const patterns[N_PATTERNS] = {
		"fifo", "random", "grow", "large", "waves", "pins", "aligned"};
	unsigned n = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 1, pattern;
	size_t total;
	double start = seconds();

	CHECK(argc >= 4 && n > 0 && n <= MOST,
		"usage: churn PATTERN MIB LIVE_MIB [THREADS [SLACK_MIB]]");
	for (pattern = 0; pattern < N_PATTERNS && strcmp(argv[1], patterns[pattern]) != 0;
		pattern++)
		;
	CHECK(pattern < N_PATTERNS, "no pattern %s", argv[1]);
	total = strtoul(argv[2], NULL, 10) * MIB;
	live_most = strtoul(argv[3], NULL, 10) * MIB;
	if (argc > 5)
		slack = strtoul(argv[5], NULL, 10) * MIB;
	for (unsigned i = 0; i < n; i++) {
		struct heap *h = &heaps[i];

		h->ring = (void **)mmap(NULL, RING * sizeof(void *), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		CHECK(h->ring != MAP_FAILED);
		h->pattern = (enum pattern)pattern;
		h->seed = i + 1;
		h->live_most = live_most / n;
	}
	baseline = rss_bytes();
	for (unsigned part = 0; part < 10; part++) {
		pthread_t threads[MOST];

		for (unsigned i = 0; i < n; i++)
			heaps[i].total = total / n / 10;
		for (unsigned i = 0; i < n && n > 1; i++)
			CHECK(pthread_create(&threads[i], NULL, run, &heaps[i]) == 0);
		/* One thread is the main thread, in a process that has no other. */
		if (n == 1)
			run(&heaps[0]);
		for (unsigned i = 0; i < n && n > 1; i++)
			CHECK(pthread_join(threads[i], NULL) == 0);
		look("on the way");
	}
	look("at the end");
	printf("%zu MiB churned, at most %zu MiB resident for %zu MiB live, %zu mappings, %.1f s\n",
		total / MIB, peak / MIB, live_most / MIB, vma_count(), seconds() - start);
	return 0;
}
