/* SPDX-License-Identifier: MIT */
/* lives: how often one address is handed out, at most, in so many lives that many must run out. */
#include "check.h"

enum { PAIRS = 20000, SIZE = 64 };

static int by_value(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

int main(void)
{
	static uintptr_t seen[PAIRS];
	unsigned row = 0, most = 0;

	for (unsigned i = 0; i < PAIRS; i++) {
		void *p = hide(malloc(SIZE));

		CHECK(p);
		seen[i] = (uintptr_t)p;
		free(p);
	}
	qsort(seen, PAIRS, sizeof(*seen), by_value);
	for (unsigned i = 0; i < PAIRS; i++) {
		row = i && seen[i] == seen[i - 1] ? row + 1 : 1;
		most = row > most ? row : most;
	}
	printf("%u\n", most);
	return 0;
}
