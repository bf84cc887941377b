/* SPDX-License-Identifier: MIT */
/*
 * swap THREADS OBJECTS SMALLEST LARGEST: each thread allocates OBJECTS objects of SMALLEST to
 * LARGEST bytes, puts them into a table that all share and frees what was there, so that most are
 * freed by another thread than their own. What the table holds is all that is live, so little may
 * be resident, with the table full and with it emptied.
 */
#include "check.h"

#include <pthread.h>

#define PLACES 64
#define MOST   16

struct object {
	struct object *self;
	size_t size;
};

static struct object *table[PLACES];
static size_t smallest, largest;
static unsigned each;

static void release(struct object *o)
{
	if (!o)
		return;
	CHECK(o->self == o, "object %p was written over", (void *)o);
	CHECK(((struct object **)o)[o->size / sizeof(o) - 1] == o, "the end of object %p was",
		(void *)o);
	free(o);
}

static void *swap(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	for (unsigned i = 0; i < each; i++) {
		size_t size = smallest + next_random(&seed) % (largest - smallest);
		struct object *o = (struct object *)hide(malloc(size));

		CHECK(o, "no memory for %zu bytes", size);
		o->self = o;
		o->size = size;
		((struct object **)o)[size / sizeof(o) - 1] = o;
		release(__atomic_exchange_n(
			&table[next_random(&seed) % PLACES], o, __ATOMIC_ACQ_REL));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[MOST];
	unsigned n;

	CHECK(argc == 5, "usage: swap THREADS OBJECTS SMALLEST LARGEST");
	n = (unsigned)strtoul(argv[1], NULL, 10);
	each = (unsigned)strtoul(argv[2], NULL, 10);
	smallest = strtoul(argv[3], NULL, 10);
	largest = strtoul(argv[4], NULL, 10);
	CHECK(n <= MOST && smallest >= 3 * sizeof(void *) && smallest < largest);
	for (unsigned i = 0; i < n; i++)
		CHECK(pthread_create(&threads[i], NULL, swap, (void *)(uintptr_t)(i + 1)) == 0);
	for (unsigned i = 0; i < n; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(rss_bytes() < 96 * MIB, "%zu MiB resident", rss_bytes() / MIB);
	for (unsigned i = 0; i < PLACES; i++)
		release(table[i]);
	CHECK(rss_bytes() < 96 * MIB, "%zu MiB resident of nothing", rss_bytes() / MIB);
	CHECK(vma_count() < 2000, "%zu mappings", vma_count());
	printf("%zu MiB resident\n", rss_bytes() / MIB);
	return 0;
}
