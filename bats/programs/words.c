/* SPDX-License-Identifier: MIT
 * Compiled and run by the test of gcc: a hash table of strings that grows, and trees of nodes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	struct entry *next;
	uint32_t hash;
	unsigned count;
	char word[];
};

struct table {
	size_t size, used;
	struct entry **heads;
};

static uint32_t hash_of(const char *word)
{
	uint32_t hash = 2166136261u;

	while (*word)
		hash = (hash ^ (unsigned char)*word++) * 16777619u;
	return hash;
}

static void grow(struct table *table)
{
	size_t size = table->size ? table->size * 2 : 8;
	struct entry **heads = calloc(size, sizeof(*heads));

	for (size_t i = 0; i < table->size; i++) {
		struct entry *next;

		for (struct entry *e = table->heads[i]; e; e = next) {
			next = e->next;
			e->next = heads[e->hash % size];
			heads[e->hash % size] = e;
		}
	}
	free(table->heads);
	table->heads = heads;
	table->size = size;
}

static void count(struct table *table, const char *word)
{
	uint32_t hash = hash_of(word);
	struct entry *e;

	if (table->used >= table->size)
		grow(table);
	for (e = table->heads[hash % table->size]; e; e = e->next)
		if (e->hash == hash && !strcmp(e->word, word)) {
			e->count++;
			return;
		}
	e = malloc(sizeof(*e) + strlen(word) + 1);
	e->hash = hash;
	e->count = 1;
	strcpy(e->word, word);
	e->next = table->heads[hash % table->size];
	table->heads[hash % table->size] = e;
	table->used++;
}

struct node {
	struct node *left, *right;
};

static struct node *tree(unsigned depth)
{
	struct node *node = malloc(sizeof(*node));

	node->left = depth ? tree(depth - 1) : NULL;
	node->right = depth ? tree(depth - 1) : NULL;
	return node;
}

static unsigned long fell(struct node *node)
{
	unsigned long nodes;

	if (!node)
		return 0;
	nodes = 1 + fell(node->left) + fell(node->right);
	free(node);
	return nodes;
}

int main(void)
{
	struct table table = {0};
	unsigned long nodes = 0, sum = 0;
	char word[64];

	for (unsigned i = 0; i < 200000; i++) {
		snprintf(word, sizeof(word), "%.*s%u", (int)(i % 7),
			"abcdefg", i * 7919u % 5021u);
		count(&table, word);
	}
	for (unsigned i = 0; i < 20; i++)
		nodes += fell(tree(13));
	for (size_t i = 0; i < table.size; i++) {
		struct entry *next;

		for (struct entry *e = table.heads[i]; e; e = next) {
			next = e->next;
			sum += (unsigned long)e->count * (hash_of(e->word) % 1000);
			free(e);
		}
	}
	free(table.heads);
	printf("%zu words, sum %lu, %lu nodes\n", table.used, sum, nodes);
	return 0;
}
