/* SPDX-License-Identifier: MIT */
/*
 * core: a program that dies after it has used much address space and little memory. A core dump
 * must have the live objects (the caller looks for the words below), not the address space.
 */
#include "check.h"

static volatile char *live;

int main(void)
{
	enum { N = 10000 };
	static void *objects[N];
	uint64_t seed = 1;

	live = (volatile char *)hide(malloc(100));
	strcpy((char *)live, "alive in ");
	strcat((char *)live, "the heap");
	for (unsigned i = 0; i < 400000; i++) {
		void **place = &objects[next_random(&seed) % N];

		free(*place);
		*place = hide(malloc(random_size(&seed, 8 * KIB) + 1));
		*(char *)*place = 1;
	}
	for (unsigned i = 0; i < 20; i++) {
		char *p = (char *)hide(malloc(4 * GIB));

		CHECK(p);
		p[0] = p[2 * GIB] = 1;
		free(hide(p));
	}
	abort();
}
