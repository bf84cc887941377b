/* SPDX-License-Identifier: MIT */
#include "reclaim.h"

#include <errno.h>
#include <sys/uio.h>

#include "block.h"
#include "history.h"
#include "os.h"
#include "stats.h"

enum {
	DEAD_FLOOR = 6 << 20,   /* bytes: below this no sweep pays, */
	PAGES_LATER = 2,        /* and below so many times that none page by page */
	PARKED_FLOOR = 8 << 20, /* bytes of parked memory that may always stay */
	LONG_PIECE = 64 << 10,  /* bytes released at a time while memory is not short */
	YOUNG_BLOCKS = 4,       /* age up to which a block is never swept */
	PATIENCE_MAX = 16,      /* blocks more, */
	PATIENCE_SWEEPS = 64,   /* one less again after so many sweeps without regret */
	SPLIT_LEAST = 1 << 20,  /* dead bytes for which a huge page is split */
	QUEUE_LOOKS = 64,       /* blocks of the queue looked at in one sweep */
	TURN_BLOCKS = 16,       /* blocks swept page by page for each block opened, */
	TURN_LOOKS = 1024,      /* and looked at for whether they should be */
	BATCH_MAX = 64,         /* ranges released together */
};

struct reclaim reclaim;

static struct {
	int64_t dead;   /* dead and resident, bytes */
	int64_t live;   /* bytes of chunks that are live or ready in a tcache */
	int64_t parked; /* bytes */
} sums;

/* No lock: a lost update does no harm. */
static struct {
	size_t blocks; /* that a block must be older than YOUNG_BLOCKS and a share of the live heap */
	size_t sweeps; /* since it was last changed */
} patience;

void reclaim_init(size_t granularity)
{
	reclaim.sweeps = granularity == 0;
	if (!granularity || granularity >= BLOCK_SIZE)
		return;
	granularity = max_size(granularity, os.page);
	reclaim.unit_shift = (unsigned)__builtin_ctzl(granularity);
	reclaim.units = BLOCK_SIZE >> reclaim.unit_shift;
}

static int64_t add(int64_t *sum, int64_t n)
{
	return (int64_t)add_u64((uint64_t *)sum, (uint64_t)n);
}

void reclaim_add_dead(int64_t bytes)
{
	int64_t dead = add(&sums.dead, bytes);

	vatalloc_stats.dead_resident = dead > 0 ? (uint64_t)dead : 0;
}

void reclaim_add_live(int64_t bytes)
{
	int64_t live = add(&sums.live, bytes);

	vatalloc_stats.live_bytes = live > 0 ? (uint64_t)live : 0;
}

static bool is_released(const struct block *b, size_t page)
{
	return __atomic_load_n(&b->released[page / 64], __ATOMIC_RELAXED) >> page % 64 & 1;
}

/* Whether the page was not noted as released before. */
static bool note_released(struct block *b, size_t page)
{
	uint64_t bit = (uint64_t)1 << page % 64;

	return !(__atomic_fetch_or(&b->released[page / 64], bit, __ATOMIC_RELAXED) & bit);
}

/* Dead pages of a block, to be released together: os_release_all(). */
struct batch {
	struct block *block;
	size_t n;
	struct iovec range[BATCH_MAX];
};

static void batch_release(struct batch *batch)
{
	struct block *b = batch->block;
	size_t n = batch->n, released = 0;

	batch->n = 0;
	if (!n)
		return;
	if (!__atomic_exchange_n(&b->in_pieces, true, __ATOMIC_RELAXED))
		space_want_small(b->number);
	if (os_release_all(batch->range, n) < 0)
		return;
	/* Another thread may be releasing them too: each page counts once. */
	for (size_t i = 0; i < n; i++) {
		size_t offset =
			(uintptr_t)batch->range[i].iov_base - space_block_address(b->number);
		size_t end = (offset + batch->range[i].iov_len) >> LEASE_PAGE_SHIFT;

		for (size_t page = offset >> LEASE_PAGE_SHIFT; page < end; page++)
			released += note_released(b, page);
	}
	reclaim_add_dead(-(int64_t)(released << LEASE_PAGE_SHIFT));
}

/* Adds the whole pages of a range, unless they have been released. */
static void batch_add(struct batch *batch, size_t page, size_t end)
{
	uintptr_t base = space_block_address(batch->block->number);
	size_t pages_per_os_page = os.page >> LEASE_PAGE_SHIFT;

	page = round_up(page, pages_per_os_page);
	end = round_down(end, pages_per_os_page);
	while (page < end && is_released(batch->block, page))
		page++;
	if (page >= end)
		return;
	if (batch->n == BATCH_MAX)
		batch_release(batch);
	batch->range[batch->n++] =
		(struct iovec){.iov_base = (void *)(base + (page << LEASE_PAGE_SHIFT)),
			.iov_len = (end - page) << LEASE_PAGE_SHIFT};
}

static void release(struct block *b, size_t page, size_t end)
{
	struct batch batch;

	batch.block = b;
	batch.n = 0;
	batch_add(&batch, page, end);
	batch_release(&batch);
}

void reclaim_exhaust_units(struct block *b, size_t offset, size_t bytes)
{
	const size_t unit_bytes = (size_t)1 << reclaim.unit_shift;
	size_t end = offset + bytes;

	while (offset < end) {
		size_t unit = offset >> reclaim.unit_shift;
		size_t next = min_size((unit + 1) << reclaim.unit_shift, end);

		if (add_u32(&b->unit_exhausted[unit], (uint32_t)(next - offset)) == unit_bytes)
			release(b, unit * (unit_bytes >> LEASE_PAGE_SHIFT),
				(unit + 1) * (unit_bytes >> LEASE_PAGE_SHIFT));
		offset = next;
	}
}

void reclaim_exhaust_chunk(struct lease *l, size_t index)
{
	uintptr_t from = lease_chunk(l, index);
	uintptr_t end = from + l->chunk_size;
	struct block *b = space_block_at(end - 1);

	/* NULL: it ends in a block that its lease has whole, and is released as a whole. */
	if (!b)
		return;
	from = max_size(from, space_block_address(b->number));
	reclaim_exhaust_units(b, from - space_block_address(b->number), end - from);
}

/* Whether every chunk that touches the page at @address is exhausted. */
static bool page_is_dead(const struct lease *l, uintptr_t address)
{
	size_t first, last;

	if (l->exhausted == l->n_chunks)
		return true;
	if (l->exhausted == 0)
		return false;
	first = lease_index_around(l, address);
	last = lease_index_around(l, address + LEASE_PAGE - 1);
	for (size_t i = first; i <= last; i++)
		if (!life_is_over(l, __atomic_load_n(&l->life[i], __ATOMIC_RELAXED)))
			return false;
	return true;
}

/*
 * Whether a page without a lease never gets one: it is in a gap in front of an aligned lease, which
 * ends before @gaps_end, or in the tail of a closed block.
 */
static bool page_is_waste(const struct block *b, size_t page, size_t gaps_end)
{
	return page < gaps_end ||
	       (page < BLOCK_PAGES && __atomic_load_n(&b->closed, __ATOMIC_ACQUIRE) &&
		       page << LEASE_PAGE_SHIFT >= b->used);
}

/* Releases what is dead in pieces of at least @least bytes; gaps only page by page. */
static int sweep_block(struct block *b, size_t least)
{
	uintptr_t base = space_block_address(b->number);
	size_t begin = 0, gaps_end = least == LEASE_PAGE ? BLOCK_PAGES : 0;
	struct batch batch;

	batch.block = b;
	batch.n = 0;
	history_hold();
	/* A lease still to come is behind all others. */
	while (gaps_end && !__atomic_load_n(&b->lease_at[gaps_end - 1], __ATOMIC_ACQUIRE))
		gaps_end--;
	for (size_t i = 0; i <= BLOCK_PAGES; i++) {
		struct lease *l =
			i < BLOCK_PAGES ? __atomic_load_n(&b->lease_at[i], __ATOMIC_ACQUIRE) : NULL;

		if (l ? page_is_dead(l, base + (i << LEASE_PAGE_SHIFT))
		      : page_is_waste(b, i, gaps_end))
			continue;
		if ((i - begin) << LEASE_PAGE_SHIFT >= least)
			batch_add(&batch, begin, i);
		begin = i + 1;
	}
	batch_release(&batch);
	history_let_go();
	return 0;
}

static int64_t share_of_live(void)
{
	return sums.live > 0 ? sums.live / 8 : 0;
}

static int64_t threshold(void)
{
	return share_of_live() > DEAD_FLOOR ? share_of_live() : DEAD_FLOOR;
}

static size_t settling_age(void)
{
	return YOUNG_BLOCKS + (size_t)share_of_live() / BLOCK_SIZE + patience.blocks;
}

static bool is_settled(const struct block *b)
{
	return space_age(b->number) > settling_age();
}

void reclaim_regret(const struct block *b)
{
	if (space_age(b->number) > 2 * settling_age() || patience.blocks >= PATIENCE_MAX)
		return;
	patience.blocks++;
	patience.sweeps = 0;
}

/*
 * Whether the block is in small pages already, or enough of it is dead, or memory is short: what stays
 * of a huge page has to be mapped again page by page, which on a virtual machine with shadow page
 * tables costs more than a new huge page.
 */
static bool is_worth_a_split(const struct block *b)
{
	return b->small || b->in_pieces ||
	       __atomic_load_n(&b->dead, __ATOMIC_RELAXED) >= SPLIT_LEAST ||
	       sums.dead > PAGES_LATER * threshold();
}

static int sweep_settled(struct block *b, size_t least)
{
	if (!is_settled(b) || !is_worth_a_split(b))
		return -EAGAIN;
	if (patience.blocks && ++patience.sweeps == PATIENCE_SWEEPS) {
		patience.blocks--;
		patience.sweeps = 0;
	}
	return sweep_block(b, least);
}

/* Page by page, if it is settled and a lease died since the last time; returns 1 if so. */
static int sweep_pages(struct block *b, size_t least)
{
	uint32_t dead = __atomic_load_n(&b->dead, __ATOMIC_RELAXED);

	if (dead == b->swept_dead || !is_settled(b))
		return 0;
	b->swept_dead = dead;
	sweep_block(b, least);
	return 1;
}

void reclaim_consider(void)
{
	if (reclaim.sweeps && sums.dead > threshold())
		__atomic_store_n(&reclaim.due, true, __ATOMIC_RELAXED);
}

void reclaim_sweep(void)
{
	if (!__atomic_exchange_n(&reclaim.due, false, __ATOMIC_RELAXED))
		return;
	for (int looked = 0; looked < QUEUE_LOOKS && sums.dead > threshold(); looked++)
		if (block_visit_worthy(sweep_settled, LONG_PIECE) == -ENOENT)
			break;
	/* Then a few blocks in turn for their single pages, where small leases die in part. */
	for (int looked = 0, swept = 0, r;
		looked < TURN_LOOKS && swept < TURN_BLOCKS && sums.dead > PAGES_LATER * threshold();
		looked++, swept += r) {
		r = block_visit_next(sweep_pages, LEASE_PAGE);
		if (r < 0)
			break;
	}
}

void reclaim_everything(void)
{
	block_visit_all(sweep_block, LEASE_PAGE);
	space_trim();
}

bool reclaim_park(size_t bytes)
{
	int64_t limit = sums.live / 8 > PARKED_FLOOR ? sums.live / 8 : PARKED_FLOOR;

	if (sums.parked + (int64_t)bytes > limit)
		return false;
	add(&sums.parked, (int64_t)bytes);
	return true;
}

void reclaim_unpark(size_t bytes)
{
	add(&sums.parked, -(int64_t)bytes);
}
