/* SPDX-License-Identifier: MIT */
#include "history.h"

#include "block.h"
#include "meta.h"
#include "space.h"
#include "stats.h"

enum {
	BUDGET_LEAST = 1 << 20, /* bytes of leases that are always remembered */
	BUDGET_SHARE = 64,      /* or this part of the live heap */
};

struct lease lease_forgotten;

static struct {
	struct lock lock;
	struct lease *oldest, *newest;
	size_t bytes; /* of the leases in the list */
} history = {.lock = LOCK_INIT};

/* The caller holds the lock. */
static void unlink(struct lease *l)
{
	if (l->previous)
		l->previous->next = l->next;
	else
		history.oldest = l->next;
	if (l->next)
		l->next->previous = l->previous;
	else
		history.newest = l->previous;
	history.bytes -= lease_struct_bytes(l->n_chunks);
}

/* The caller holds the lock; the block is in the space table until history_drop_block() has had it. */
static void forget(struct lease *l)
{
	uintptr_t end = l->start + l->bytes;
	uintptr_t from = max_size(l->start, round_down(end - 1, BLOCK_SIZE));

	unlink(l);
	block_enter(from, end - from, &lease_forgotten);
	meta_free(l, lease_struct_bytes(l->n_chunks));
}

void history_add(struct lease *l)
{
	size_t budget = max_size(BUDGET_LEAST, read_u64(&vatalloc_stats.live_bytes) / BUDGET_SHARE);

	lock_take(&history.lock);
	l->next = NULL;
	l->previous = history.newest;
	if (history.newest)
		history.newest->next = l;
	else
		history.oldest = l;
	history.newest = l;
	history.bytes += lease_struct_bytes(l->n_chunks);
	while (history.bytes > budget && history.oldest != l)
		forget(history.oldest);
	lock_drop(&history.lock);
}

void history_drop_block(struct block *b)
{
	struct lease *l, *last = NULL;

	lock_take(&history.lock);
	for (size_t i = 0; i < BLOCK_PAGES; i++) {
		l = b->lease_at[i];
		if (!l)
			continue;
		__atomic_store_n(&b->lease_at[i], &lease_forgotten, __ATOMIC_RELEASE);
		if (l == last || l == &lease_forgotten)
			continue;
		if (last)
			meta_free(last, lease_struct_bytes(last->n_chunks));
		unlink(l);
		last = l;
	}
	if (last)
		meta_free(last, lease_struct_bytes(last->n_chunks));
	lock_drop(&history.lock);
}

void history_hold(void)
{
	lock_take(&history.lock);
}

void history_let_go(void)
{
	lock_drop(&history.lock);
}

void history_fork_prepare(void)
{
	lock_take(&history.lock);
}

void history_fork_parent(void)
{
	lock_drop(&history.lock);
}

void history_fork_child(void)
{
	lock_reset(&history.lock);
}
