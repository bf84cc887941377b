/* SPDX-License-Identifier: MIT */
/*
 * forget: threads keep so many blocks alive, by one object each, that the dead leases around those are
 * just about what is remembered. So blocks die, when their survivor goes, while other threads forget
 * the leases in them.
 */
#include "check.h"

#include <pthread.h>

enum { THREADS = 8, STEPS = 400, DEAD_A_STEP = 90, SIZE = 20000, SURVIVORS = 24 };

static void *churn(void *arg)
{
	unsigned id = (unsigned)(uintptr_t)arg;
	char *survivors[SURVIVORS + THREADS] = {NULL};

	for (unsigned i = 0; i < STEPS; i++) {
		char **at = &survivors[i % (SURVIVORS + id)];

		for (unsigned k = 0; k < DEAD_A_STEP; k++)
			free(hide(malloc(SIZE)));
		if (*at)
			CHECK(first_changed(*at, SIZE, id) == SIZE, "a survivor changed");
		free(*at);
		*at = hide(malloc(SIZE));
		CHECK(*at);
		fill(*at, SIZE, id);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	return 0;
}
