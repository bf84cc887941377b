/* SPDX-License-Identifier: MIT */
#include "block.h"

#include <errno.h>

#include "arena.h"
#include "history.h"
#include "meta.h"
#include "reclaim.h"

enum {
	OPEN_STEP = 256 << 10,     /* bytes of a small block opened at a time, */
	POPULATE_STEP = 64 << 10,  /* and faulted in */
	WORTH_A_SWEEP = 512 << 10, /* bytes */
};

static struct {
	struct lock lock;
	struct block *first, *last;
	struct block *first_worthy, **last_worthy; /* where the next in the queue is entered */
	struct block *hand;                        /* of block_visit_next() */
} blocks = {.lock = LOCK_INIT, .last_worthy = &blocks.first_worthy};

static void list_add(struct block *b)
{
	lock_take(&blocks.lock);
	b->prev = blocks.last;
	if (b->prev)
		b->prev->next = b;
	else
		blocks.first = b;
	blocks.last = b;
	lock_drop(&blocks.lock);
}

/* The caller holds the lock. */
static void queue_remove(struct block *b)
{
	struct block **at = &blocks.first_worthy;

	while (*at != b)
		at = &(*at)->next_worthy;
	*at = b->next_worthy;
	if (!*at)
		blocks.last_worthy = at;
	b->next_worthy = NULL;
	b->worthy = false;
}

static void list_remove(struct block *b)
{
	lock_take(&blocks.lock);
	if (b->worthy)
		queue_remove(b);
	if (blocks.hand == b)
		blocks.hand = b->next;
	if (b->prev)
		b->prev->next = b->next;
	else
		blocks.first = b->next;
	if (b->next)
		b->next->prev = b->prev;
	else
		blocks.last = b->prev;
	lock_drop(&blocks.lock);
}

/* The caller holds the lock. */
static void queue_add(struct block *b)
{
	if (b->worthy)
		return;
	b->worthy = true;
	*blocks.last_worthy = b;
	blocks.last_worthy = &b->next_worthy;
}

int block_visit_worthy(block_visitor *fn, size_t least)
{
	struct block *b;
	int r = -ENOENT;

	lock_take(&blocks.lock);
	b = blocks.first_worthy;
	if (b) {
		queue_remove(b);
		r = fn(b, least);
		if (r == -EAGAIN)
			queue_add(b);
	}
	lock_drop(&blocks.lock);
	return r;
}

int block_visit_next(block_visitor *fn, size_t least)
{
	struct block *b;
	int r = -ENOENT;

	lock_take(&blocks.lock);
	b = blocks.hand ?: blocks.first;
	if (b) {
		blocks.hand = b->next;
		r = fn(b, least);
	}
	lock_drop(&blocks.lock);
	return r;
}

void block_visit_all(block_visitor *fn, size_t least)
{
	lock_take(&blocks.lock);
	for (struct block *b = blocks.first; b; b = b->next)
		fn(b, least);
	lock_drop(&blocks.lock);
}

static struct block *block_new(size_t number, bool small, bool dirty)
{
	struct block *b = meta_alloc(sizeof(*b));

	if (!b)
		return NULL;
	b->number = (uint32_t)number;
	b->small = small;
	b->open = small ? 0 : BLOCK_SIZE;
	b->dirty = dirty;
	if (reclaim.units) {
		b->unit_exhausted = meta_alloc(reclaim.units * sizeof(*b->unit_exhausted));
		if (!b->unit_exhausted) {
			meta_free(b, sizeof(*b));
			return NULL;
		}
	}
	list_add(b);
	space_set(number, 1, (space_entry)b);
	return b;
}

static void block_die(struct block *b)
{
	size_t released = 0;

	list_remove(b);
	/* While the space table still leads to the block: whoever forgets a lease looks it up there. */
	history_drop_block(b);
	for (size_t i = 0; i < BLOCK_PAGES / 64; i++)
		released += (size_t)__builtin_popcountl(b->released[i]) << LEASE_PAGE_SHIFT;
	if (released && reclaim.sweeps)
		reclaim_regret(b);
	space_retire(b->number, 1, released == 0 && !b->small);
	reclaim_add_dead(-(int64_t)(BLOCK_SIZE - released));
	if (b->unit_exhausted)
		meta_free(b->unit_exhausted, reclaim.units * sizeof(*b->unit_exhausted));
	meta_free(b, sizeof(*b));
}

void block_add_dead(struct block *b, size_t bytes)
{
	size_t before = __atomic_load_n(&b->dead, __ATOMIC_RELAXED);

	/* Before the bytes count: after that, others may count the last and the block be gone. */
	if (reclaim.sweeps && before + bytes < BLOCK_SIZE &&
		(before + bytes) / WORTH_A_SWEEP != before / WORTH_A_SWEEP) {
		lock_take(&blocks.lock);
		queue_add(b);
		lock_drop(&blocks.lock);
	}
	if (add_u32(&b->dead, (uint32_t)bytes) == BLOCK_SIZE)
		block_die(b);
}

/* Counts a stretch in which no chunk ever was or will be. */
static void waste(struct block *b, size_t offset, size_t bytes)
{
	if (!bytes)
		return;
	reclaim_add_dead((int64_t)bytes);
	reclaim_exhaust(b, offset, bytes);
	block_add_dead(b, bytes);
}

void block_close(struct block *b)
{
	size_t used = b->used;

	__atomic_store_n(&b->closed, true, __ATOMIC_RELEASE);
	waste(b, used, BLOCK_SIZE - used);
}

/* Those of which perhaps little will be used, or not soon. */
static bool should_be_small(const struct arena *arena, enum block_sort sort)
{
	/* With one life a fast one will soon be full. */
	bool filled = sort == BLOCK_FAST && lease_lives == 1;

	return sort == BLOCK_SLOW || (!arena->had[sort] && !filled);
}

static int open_next(struct arena *arena, enum block_sort sort)
{
	bool small = should_be_small(arena, sort), dirty = false;
	struct block *b;
	size_t number;
	int r;

	r = space_take(1, 1, small ? SPACE_SMALL : SPACE_HUGE, &number, &dirty);
	if (r < 0)
		return r;
	b = block_new(number, small, dirty);
	if (!b) {
		space_retire(number, 1, false);
		return -ENOMEM;
	}
	arena->open[sort] = b;
	arena->had[sort] = true;
	reclaim_consider();
	return 0;
}

/*
 * Makes the next bytes of a small block usable, up to @end. What small leases will soon use is
 * faulted in at once; of a longer one nobody knows.
 */
static int open_up_to(struct block *b, size_t end)
{
	size_t open = min_size(round_up(end, OPEN_STEP), BLOCK_SIZE);
	size_t populate = round_up(end, POPULATE_STEP);
	char *base = (char *)space_block_address(b->number);
	int r;

	if (!b->small)
		return 0;
	if (end > b->open) {
		r = os_open(base + b->open, open - b->open, OS_LEASE);
		if (r < 0)
			return r;
		b->open = (uint32_t)open;
	}
	if (end > b->populated) {
		if (end - b->used <= POPULATE_STEP)
			os_populate(base + b->populated, populate - b->populated);
		b->populated = (uint32_t)populate;
	}
	return 0;
}

static bool fits(const struct block *b, size_t bytes, size_t align)
{
	return b && round_up(b->used, align) + bytes <= BLOCK_SIZE;
}

/* The sort of the open block that serves leases of @sort: the first block all, while it lasts. */
static enum block_sort sort_now(
	const struct arena *arena, enum block_sort sort, size_t bytes, size_t align)
{
	const struct block *first = arena->open[BLOCK_SLOW];
	bool lasts = arena->leased < BLOCK_SIZE && (!first || fits(first, bytes, align));

	return lasts ? BLOCK_SLOW : sort;
}

int block_take(struct arena *arena, enum block_sort sort, size_t bytes, size_t align,
	uintptr_t *ret_address, bool *ret_dirty)
{
	struct block *b;
	size_t offset;
	int r;

	sort = sort_now(arena, sort, bytes, align);
	b = arena->open[sort];
	if (!fits(b, bytes, align)) {
		arena->open[sort] = NULL;
		if (b)
			block_close(b);
		r = open_next(arena, sort);
		if (r < 0)
			return r;
		b = arena->open[sort];
	}
	offset = round_up(b->used, align);
	r = open_up_to(b, offset + bytes);
	if (r < 0)
		return r;
	waste(b, b->used, offset - b->used);
	b->used = (uint32_t)(offset + bytes);
	arena->leased += bytes;
	*ret_address = space_block_address(b->number) + offset;
	*ret_dirty = b->dirty;
	/* A full block can die at any time from now on. */
	if (b->used == BLOCK_SIZE) {
		b->closed = true;
		arena->open[sort] = NULL;
	}
	return 0;
}

int block_adopt(struct arena *arena, size_t number, size_t used, bool dirty, struct lease *lease)
{
	struct block *b = block_new(number, false, dirty);
	struct block *other = arena->open[BLOCK_LARGE];

	if (!b)
		return -ENOMEM;
	reclaim_consider();
	b->used = (uint32_t)used;
	block_enter(space_block_address(number), used, lease);
	if (used == BLOCK_SIZE) {
		b->closed = true;
		return 0;
	}
	if (other && other->used <= used)
		other = b;
	else
		arena->open[BLOCK_LARGE] = b;
	if (other)
		block_close(other);
	return 0;
}

void block_enter(uintptr_t address, size_t bytes, struct lease *lease)
{
	struct block *b = space_block_at(address);
	size_t page = (address & (BLOCK_SIZE - 1)) >> LEASE_PAGE_SHIFT;

	for (size_t end = page + (bytes >> LEASE_PAGE_SHIFT); page < end; page++)
		__atomic_store_n(&b->lease_at[page], lease, __ATOMIC_RELEASE);
}

void block_fork_prepare(void)
{
	lock_take(&blocks.lock);
}

void block_fork_parent(void)
{
	lock_drop(&blocks.lock);
}

void block_fork_child(void)
{
	lock_reset(&blocks.lock);
}
