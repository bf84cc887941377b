/* SPDX-License-Identifier: MIT */
/*
 * regrown ROUNDS: in each round a few objects grow by realloc, in turns, until their pages move with
 * them, and are freed. No byte is handed out twice with the same tag, and all keep their contents.
 */
#include <err.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { OBJECTS = 3, PAGE = 4096, MOST = 1 << 14 };

static struct {
	uintptr_t from, to;
	unsigned tag;
} given[MOST];

static size_t n_given;

/* Bytes FROM to TO of P are handed out. */
static void give(const char *p, size_t from, size_t to)
{
	uintptr_t address = (uintptr_t)p & ~(0xffUL << 56);
	unsigned tag = (uintptr_t)p >> 56 & 15;

	for (size_t i = 0; i < n_given; i++)
		if (given[i].tag == tag && given[i].from < address + to &&
			address + from < given[i].to)
			errx(1, "bytes %zu to %zu of %p are given again", from, to, (const void *)p);
	if (n_given == MOST)
		errx(2, "too many rounds");
	given[n_given].from = address + from;
	given[n_given].to = address + to;
	given[n_given++].tag = tag;
}

/* Every page says which it is, of which object. */
static void fill(char *p, size_t from, size_t to, unsigned k)
{
	for (size_t i = (from + PAGE - 1) / PAGE * PAGE; i < to; i += PAGE)
		p[i] = (char)(i / PAGE % 83 * OBJECTS + k);
}

static void look(const char *p, size_t to, unsigned k)
{
	for (size_t i = 0; i < to; i += PAGE)
		if (p[i] != (char)(i / PAGE % 83 * OBJECTS + k))
			errx(1, "byte %zu of %p is another", i, (const void *)p);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
	/* The last becomes so large that it has no tags any more. */
	static const size_t most[OBJECTS] = {5 << 20, 20 << 20, 40 << 20};
	char *volatile p[OBJECTS];
	size_t size[OBJECTS], moves = 0, growing;

	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned k = 0; k < OBJECTS; k++) {
			p[k] = malloc(100000 << k);
			size[k] = malloc_usable_size(p[k]);
			give(p[k], 0, size[k]);
			fill(p[k], 0, size[k], k);
		}
		do {
			growing = 0;
			for (unsigned k = 0; k < OBJECTS; k++) {
				char *old = p[k];
				size_t before = size[k];

				if (before >= most[k])
					continue;
				growing++;
				p[k] = realloc(old, before + before / 2);
				size[k] = malloc_usable_size(p[k]);
				moves += p[k] != old;
				give(p[k], p[k] == old ? before : 0, size[k]);
				look(p[k], before, k);
				fill(p[k], before, size[k], k);
			}
		} while (growing);
		for (unsigned k = 0; k < OBJECTS; k++) {
			look(p[k], size[k], k);
			free(p[k]);
		}
	}
	printf("%zu objects, %zu moves\n", n_given - moves, moves);
	return moves == 0;
}
