/* SPDX-License-Identifier: MIT */
/*
 * trees DEPTH: build and drop binary trees: one that stays, many small ones that do not, and a
 * search tree whose keys come and go.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
	struct node *left, *right;
};

static void *make(size_t size)
{
	void *p = malloc(size);

	if (!p)
		abort();
	return p;
}

static struct node *build(unsigned depth)
{
	struct node *n = make(sizeof(*n));

	n->left = depth ? build(depth - 1) : NULL;
	n->right = depth ? build(depth - 1) : NULL;
	return n;
}

static unsigned long drop(struct node *n)
{
	unsigned long count = 1;

	if (n->left)
		count += drop(n->left) + drop(n->right);
	free(n);
	return count;
}

struct entry {
	struct entry *child[2];
	uint64_t key;
	char text[]; /* of a length that the key says */
};

/* Keys are hashes, so the tree needs no balancing. */
static uint64_t hash(uint64_t n)
{
	n = (n ^ n >> 31) * 0x7fb5d329728ea185;
	n = (n ^ n >> 27) * 0x81dadef4bc2dd44d;
	return n ^ n >> 33;
}

static void insert(struct entry **at, uint64_t key)
{
	struct entry *e = make(sizeof(*e) + key % 97 + 1);

	while (*at)
		at = &(*at)->child[key > (*at)->key];
	e->child[0] = e->child[1] = NULL;
	e->key = key;
	e->text[key % 97] = '\0';
	*at = e;
}

static void take_out(struct entry **at, uint64_t key)
{
	struct entry *e, **next;

	while ((*at)->key != key)
		at = &(*at)->child[key > (*at)->key];
	e = *at;
	if (e->child[0] && e->child[1]) {
		for (next = &e->child[1]; (*next)->child[0];)
			next = &(*next)->child[0];
		*at = *next;
		*next = (*next)->child[1];
		(*at)->child[0] = e->child[0];
		(*at)->child[1] = e->child[1];
	} else {
		*at = e->child[0] ? e->child[0] : e->child[1];
	}
	free(e);
}

int main(int argc, char **argv)
{
	unsigned depth = argc > 1 ? (unsigned)atoi(argv[1]) : 16;
	unsigned long nodes = 0, keys = 8UL << depth, live = 1UL << depth;
	struct node *stays = build(depth);
	struct entry *root = NULL;

	for (unsigned d = 4; d <= depth; d += 4)
		for (unsigned long i = 0; i < 4UL << (depth - d); i++)
			nodes += drop(build(d));
	for (unsigned long i = 0; i < keys; i++) {
		insert(&root, hash(i));
		if (i >= live)
			take_out(&root, hash(i - live));
	}
	nodes += drop(stays);
	printf("%lu nodes, %lu keys\n", nodes, keys);
	return 0;
}
