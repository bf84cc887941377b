/* SPDX-License-Identifier: MIT */
/*
 * pairs same|random|none N: N times a malloc and a free; of 64 bytes, or of 16 to 527 bytes with 4096
 * objects alive; or N times two instructions, to see whether they are counted right.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	static char *alive[4096];
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	uint64_t seed = 1;

	if (argc > 2 && !strcmp(argv[1], "none")) {
		__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(n) : : "cc");
		return 0;
	}
	if (argc > 2 && !strcmp(argv[1], "same")) {
		while (n--) {
			char *volatile p = malloc(64);

			*p = 1;
			free(p);
		}
		return 0;
	}
	while (n--) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		free(alive[seed >> 52]);
		alive[seed >> 52] = malloc(16 + (seed >> 32) % 512);
		*alive[seed >> 52] = 1;
	}
	return 0;
}
