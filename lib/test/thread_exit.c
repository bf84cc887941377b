/* SPDX-License-Identifier: MIT */
/* Heap calls in the destructors of pthread keys, some of them after the library's own. */
#include "check.h"

#include <limits.h>
#include <pthread.h>

#define N_KEYS 20

static pthread_key_t keys[N_KEYS];
static unsigned destroyed;

/* Free the value and, three times in all, set a new one: the destructors run again. */
static void destroy(void *value)
{
	unsigned key = ((unsigned char *)value)[0], round = ((unsigned char *)value)[1];
	unsigned char *next = (unsigned char *)hide(malloc(200 + key * 100));

	CHECK(first_changed((char *)value + 2, 100, key) == 100);
	free(value);
	__atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
	if (round == 3) {
		free(next);
		return;
	}
	next[0] = (unsigned char)key;
	next[1] = (unsigned char)(round + 1);
	fill(next + 2, 100, key);
	CHECK(pthread_setspecific(keys[key], next) == 0);
}

static void *work(void *arg)
{
	for (unsigned i = 0; i < N_KEYS; i++) {
		unsigned char *value = (unsigned char *)hide(malloc(102));

		value[0] = (unsigned char)i;
		value[1] = 1;
		fill(value + 2, 100, i);
		CHECK(pthread_setspecific(keys[i], value) == 0);
	}
	/* Leave objects in whatever cache the thread has. */
	for (unsigned i = 0; i < 500; i++)
		free(hide(malloc(i * 10)));
	return arg;
}

static void three_rounds(void)
{
	enum { ROUNDS = 200 };
	pthread_t threads[4];

	for (unsigned i = 0; i < N_KEYS; i++)
		CHECK(pthread_key_create(&keys[i], destroy) == 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < 4; i++)
			CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
		for (unsigned i = 0; i < 4; i++)
			CHECK(pthread_join(threads[i], NULL) == 0);
	}
	CHECK(destroyed == ROUNDS * 4 * N_KEYS * 3, "%u destructor calls", destroyed);
}

/* Small objects of one size, all of them live: the threads run one at a time. */
static pthread_key_t last_key;
static void *live[4096];
static unsigned n_live, rounds;

static void allocate(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		CHECK(n_live < sizeof(live) / sizeof(live[0]));
		live[n_live] = hide(malloc(100));
		CHECK(live[n_live]);
		fill(live[n_live], 100, n_live);
		n_live++;
	}
}

/* Wait for the last round that there is; only then does one thread in twenty allocate. */
static void destroy_last(void *value)
{
	if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
		CHECK(pthread_setspecific(last_key, value) == 0);
	else if ((uintptr_t)value % 20 == 0)
		allocate(10);
}

/* How many objects a thread leaves in its cache depends on how many it took. */
static void *allocate_some(void *number)
{
	rounds = 0;
	CHECK(pthread_setspecific(last_key, number) == 0);
	allocate((uintptr_t)number % 13 + 1);
	return NULL;
}

/* What is allocated when the thread's cache was already given up is nobody else's, too. */
static void last_round(void)
{
	pthread_t thread;

	CHECK(pthread_key_create(&last_key, destroy_last) == 0);
	for (uintptr_t number = 1; number <= 200; number++) {
		CHECK(pthread_create(&thread, NULL, allocate_some, (void *)number) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(rounds == PTHREAD_DESTRUCTOR_ITERATIONS, "%u rounds", rounds);
	}
	for (unsigned i = 0; i < n_live; i++)
		CHECK(first_changed(live[i], 100, i) == 100, "object %u of %u is given twice", i,
			n_live);
	for (unsigned i = 0; i < n_live; i++)
		free(live[i]);
}

static const struct check_case cases[] = {
	{"three-rounds", three_rounds},
	{"last-round", last_round},
};

CHECK_MAIN(cases)
