/* SPDX-License-Identifier: MIT */
/*
 * exchange MIB: two threads allocate MIB mebibytes of messages, small and large, and two others
 * look at them and free them. What the queue holds is all that is live, so little may be resident.
 * Says how many there were.
 */
#include "check.h"

#include <pthread.h>

#define QUEUE 1024

struct message {
	size_t size;
	unsigned seed;
	char bytes[];
};

static struct message *queue[QUEUE];
static unsigned put, taken, producers = 2;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static size_t bytes_each;

static void *produce(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	for (size_t sent = 0; sent < bytes_each;) {
		size_t size = random_size(&seed, next_random(&seed) % 500 ? 4 * KIB : 4 * MIB);
		struct message *m = (struct message *)hide(malloc(sizeof(*m) + size));

		CHECK(m);
		m->size = size;
		m->seed = (unsigned)size;
		fill(m->bytes, size < 256 ? size : 256, m->seed);
		sent += size;
		pthread_mutex_lock(&lock);
		while (put - taken == QUEUE)
			pthread_cond_wait(&changed, &lock);
		queue[put++ % QUEUE] = m;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	producers--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *consume(void *arg)
{
	for (;;) {
		struct message *m;
		size_t n;

		pthread_mutex_lock(&lock);
		while (put == taken && producers)
			pthread_cond_wait(&changed, &lock);
		if (put == taken) {
			pthread_mutex_unlock(&lock);
			return arg;
		}
		m = queue[taken++ % QUEUE];
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		n = m->size < 256 ? m->size : 256;
		CHECK(first_changed(m->bytes, n, m->seed) == n, "a message was written over");
		free(m);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[4];

	bytes_each = (argc > 1 ? strtoul(argv[1], NULL, 10) : 1024) * MIB / 2;
	for (unsigned i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, i % 2 ? produce : consume,
			      (void *)(uintptr_t)(i + 1)) == 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(rss_bytes() < 128 * MIB, "%zu MiB resident", rss_bytes() / MIB);
	CHECK(vma_count() < 2000, "%zu mappings", vma_count());
	printf("%u messages\n", put);
	return 0;
}
