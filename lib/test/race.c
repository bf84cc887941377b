/* SPDX-License-Identifier: MIT */
/* race: several threads use freed memory at the same moment. */
#include "check.h"

#include <pthread.h>

enum { N = 8 };

static pthread_barrier_t start;

static void *use_after_free(void *arg)
{
	char *p = (char *)hide(malloc(8 * MIB));

	memset(p, 1, 8 * MIB);
	free(p);
	pthread_barrier_wait(&start);
	(void)*(volatile char *)hide(p + 4 * MIB);
	return arg;
}

int main(void)
{
	pthread_t threads[N];

	CHECK(pthread_barrier_init(&start, NULL, N) == 0);
	for (unsigned i = 0; i < N; i++)
		CHECK(pthread_create(&threads[i], NULL, use_after_free, NULL) == 0);
	for (unsigned i = 0; i < N; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	return 42;
}
