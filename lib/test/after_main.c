/* SPDX-License-Identifier: MIT */
/* The heap works after main: in atexit functions, in destructors, in threads that go on meanwhile.
 */
#include "check.h"

#include <pthread.h>

static void *kept[100];

static void *work(void *arg)
{
	for (;;)
		free(hide(malloc(1000)));
	return arg;
}

static void churn(void)
{
	for (unsigned i = 0; i < 10000; i++) {
		void *p = hide(malloc(i));

		CHECK(p);
		free(p);
	}
}

static void at_exit(void)
{
	for (unsigned i = 0; i < 50; i++) {
		CHECK(first_changed(kept[i], 500, i) == 500);
		free(kept[i]);
	}
	churn();
}

__attribute__((destructor)) static void destructor(void)
{
	for (unsigned i = 50; i < 100; i++) {
		CHECK(first_changed(kept[i], 500, i) == 500);
		free(kept[i]);
	}
	churn();
	/* A word for the caller, who sees that this point was reached. */
	CHECK(write(STDOUT_FILENO, "end\n", 4) == 4);
}

int main(void)
{
	pthread_t thread;

	for (unsigned i = 0; i < 100; i++) {
		kept[i] = hide(malloc(500));
		fill(kept[i], 500, i);
	}
	CHECK(atexit(at_exit) == 0);
	for (unsigned i = 0; i < 3; i++)
		CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
	return 0;
}
