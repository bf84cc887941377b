/* SPDX-License-Identifier: MIT */
/*
 * thread_churn THREADS: threads that live for a moment, eight at a time. Each frees some of its
 * objects, and leaves others to the main thread. After the first tenth of them memory and mappings
 * must not grow any more.
 */
#include "check.h"

#include <pthread.h>

#define AT_ONCE 8
#define LEFT	20

struct shift {
	unsigned number;
	void *left[LEFT];
};

static void *work(void *arg)
{
	struct shift *shift = (struct shift *)arg;
	uint64_t seed = shift->number + 1;
	void *objects[100];

	for (unsigned i = 0; i < 100; i++) {
		size_t size = random_size(&seed, i ? 8 * KIB : 256 * KIB) + 1;

		objects[i] = hide(malloc(size));
		CHECK(objects[i]);
		fill(objects[i], size, i);
	}
	for (unsigned i = 0; i < 100; i++)
		if (i < LEFT)
			shift->left[i] = objects[i];
		else
			free(objects[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10000;
	static struct shift shifts[AT_ONCE];
	pthread_t threads[AT_ONCE];
	size_t rss = 0, vmas = 0;

	for (unsigned done = 0; done < n; done += AT_ONCE) {
		for (unsigned i = 0; i < AT_ONCE; i++) {
			shifts[i].number = done + i;
			CHECK(pthread_create(&threads[i], NULL, work, &shifts[i]) == 0);
		}
		for (unsigned i = 0; i < AT_ONCE; i++) {
			CHECK(pthread_join(threads[i], NULL) == 0);
			for (unsigned k = 0; k < LEFT; k++) {
				CHECK(first_changed(shifts[i].left[k], 1, k) == 1);
				free(shifts[i].left[k]);
			}
		}
		if (done < n / 10) {
			rss = rss_bytes();
			vmas = vma_count();
		}
	}
	CHECK(rss_bytes() < rss + 48 * MIB, "%zu MiB resident after a tenth, %zu at the end",
		rss / MIB, rss_bytes() / MIB);
	CHECK(vma_count() < vmas + 200, "%zu mappings after a tenth, %zu at the end", vmas,
		vma_count());
	return 0;
}
