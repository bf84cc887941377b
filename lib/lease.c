/* SPDX-License-Identifier: MIT */
#include "lease.h"

#include "arena.h"
#include "block.h"
#include "history.h"
#include "meta.h"
#include "os.h"
#include "reclaim.h"
#include "stats.h"

enum {
	CACHE_LINE = 64,
	HUGE_CHUNK = 32 << 20, /* bytes from which on a chunk has one life and no tags */
};

uint8_t lease_lives;

/*
 * A chunk that is huge would have to be touched from end to end to be tagged, even if the program
 * uses a page of it. Addresses last for one life each of such sizes, so it gets just that.
 */
static bool is_huge(size_t size)
{
	return size >= HUGE_CHUNK;
}

static struct lease *lease_alloc(size_t n_chunks, size_t chunk_size, uint8_t class)
{
	struct lease *l = meta_alloc(lease_struct_bytes(n_chunks));

	if (!l)
		return NULL;
	l->n_chunks = (uint16_t)n_chunks;
	l->chunk_size = chunk_size;
	l->class = class;
	l->lives = lease_lives;
	add_u64(&vatalloc_stats.leases_bound, 1);
	return l;
}

static void lease_free(struct lease *l)
{
	meta_free(l, lease_struct_bytes(l->n_chunks));
}

struct lease *lease_new(
	struct arena *arena, const struct size_class *sc, uint8_t class, enum block_sort sort)
{
	struct lease *l = lease_alloc(sc->n_chunks, sc->size, class);
	size_t align = max_size(LEASE_PAGE, sc->size & -(size_t)sc->size);
	bool dirty;

	if (!l)
		return NULL;
	l->inverse = sc->inverse;
	l->bytes = sc->slab;
	if (block_take(arena, sort, l->bytes, align, &l->start, &dirty) < 0) {
		lease_free(l);
		return NULL;
	}
	l->base = l->start;
	block_enter(l->start, l->bytes, l);
	return l;
}

/* A lease that has whole blocks, all but perhaps the last. */
static int take_blocks(struct arena *arena, struct lease *l, size_t align, bool fresh)
{
	size_t n = round_up(l->bytes, BLOCK_SIZE) >> BLOCK_SHIFT;
	size_t whole = l->bytes >> BLOCK_SHIFT;
	size_t align_blocks = max_size(align, BLOCK_SIZE) >> BLOCK_SHIFT;
	enum space_want want = l->untagged ? SPACE_UNTAGGED : fresh ? SPACE_FRESH : SPACE_LARGE;
	size_t number;
	bool dirty;
	int r;

	r = space_take(n, align_blocks, want, &number, &dirty);
	if (r < 0)
		return r;
	l->start = space_block_address(number);
	l->zeroed = !dirty;
	space_set(number, whole, (space_entry)l | 1);
	if (whole == n)
		return 0;
	r = block_adopt(arena, number + whole, l->bytes & (BLOCK_SIZE - 1), dirty, l);
	if (r < 0)
		space_retire(number, n, false);
	return r;
}

struct lease *lease_new_large(struct arena *arena, size_t size, size_t align, size_t offset,
	bool fresh, enum block_sort sort)
{
	struct lease *l = lease_alloc(1, size, CLASS_LARGE);
	bool dirty;
	int r;

	if (!l)
		return NULL;
	if (align > CACHE_LINE)
		offset = 0;
	else if (offset == LEASE_ANY_OFFSET)
		/* Which cache set a chunk begins in should not be the same for all large ones. */
		offset = mix64((uintptr_t)l ^ space.used) % (LEASE_PAGE / CACHE_LINE) * CACHE_LINE;
	l->bytes = round_up(size + offset, max_size(os.page, LEASE_PAGE));
	l->untagged = is_huge(size);
	if (l->untagged) {
		l->lives = 1;
		/* A tail block shared with tagged memory would have to be both. */
		l->bytes = round_up(l->bytes, BLOCK_SIZE);
	}
	if (l->bytes > LEASE_SHARED_MAX || align > LEASE_SHARED_MAX || fresh) {
		r = take_blocks(arena, l, align, fresh);
	} else {
		r = block_take(
			arena, sort, l->bytes, max_size(align, LEASE_PAGE), &l->start, &dirty);
		if (r == 0) {
			l->zeroed = !dirty;
			block_enter(l->start, l->bytes, l);
		}
	}
	if (r < 0) {
		lease_free(l);
		return NULL;
	}
	l->base = l->start + offset;
	return l;
}

void lease_retire(struct lease *l)
{
	size_t slack = l->bytes - l->chunk_size * l->n_chunks;
	uintptr_t end = l->start + l->bytes;
	size_t whole = 0, bytes = l->bytes;
	struct block *last;

	add_u64(&vatalloc_stats.leases_retired, 1);
	reclaim_add_dead((int64_t)slack);
	last = space_block_at(end - 1);
	if (l->bytes > LEASE_SHARED_MAX)
		whole = (last ? l->bytes : round_up(l->bytes, BLOCK_SIZE)) >> BLOCK_SHIFT;
	if (whole) {
		reclaim_add_dead(-(int64_t)(whole << BLOCK_SHIFT));
		space_retire((l->start - space.base) >> BLOCK_SHIFT, whole, !l->emptied);
	}
	if (!last) {
		lease_free(l);
		return;
	}
	if (reclaim.units) {
		/* The chunk has been counted; now what lies before and after it. */
		size_t block_start = space_block_address(last->number);
		size_t from = max_size(l->start, block_start);
		size_t base = max_size(l->base, block_start);
		size_t chunks_end = l->base + l->chunk_size * l->n_chunks;

		reclaim_exhaust(last, from - block_start, base - from);
		reclaim_exhaust(last, chunks_end - block_start, end - chunks_end);
	}
	/* Its block frees the lease; until then a late pointer is still recognised. */
	history_add(l);
	block_add_dead(last, bytes - (whole << BLOCK_SHIFT));
}
