/* SPDX-License-Identifier: MIT */
/* Heap calls in the destructors of pthread keys, the last of them after the library's own. */
#include "check.h"

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

int main(void)
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
	return 0;
}
