/* SPDX-License-Identifier: MIT */
#include "space.h"

#include <errno.h>
#include <stdlib.h>

#include "meta.h"
#include "options.h"
#include "report.h"
#include "stats.h"

enum {
	READY_MAX = 64,  /* blocks that wait in `ready` at most, within these: */
	READY_LEAST = 2, /* blocks, and */
	READY_SHARE = 8, /* the part of the live heap that they may be as large as */
	HUGE_SHARE = 4,  /* a large lease is huge pages if no more than this part of it */
	FEW_VMAS = 1500, /* that any process may have */
};

static const size_t SPACE_MOST = (size_t)1 << 46; /* half of x86-64's user space */
static const size_t SPACE_LEAST = (size_t)32 << 20;

/* What a block is to the kernel; neighbours of the same kind share a VMA, except moved ones. */
enum block_kind {
	KIND_RESERVED, /* never opened, or retired: PROT_NONE */
	KIND_OPEN,
	KIND_HUGE,     /* open, MADV_HUGEPAGE */
	KIND_MOVED,    /* open, with pages from elsewhere: always a VMA of its own */
	KIND_REMAPPED, /* open, moved together with its neighbours by a realloc */
	KIND_SMALL,    /* open, MADV_NOHUGEPAGE: pieces of it are released */
	KIND_RELEASED, /* retired without a mapping of its own, the VMAs being short */
};

struct space space;

static struct {
	struct lock lock;
	struct meta_table entries; /* space_entry a block */
	struct meta_table kinds;   /* enum block_kind, a byte a block */
	size_t first;              /* where the first one was taken */
	size_t next;               /* the first block never taken */
	size_t scan;               /* where recycling looks next */
	bool recycling;
	size_t live;    /* blocks taken and not retired */
	size_t borders; /* between neighbours that do not share a VMA */
	size_t n_ready, n_empty;
	uint32_t ready[READY_MAX]; /* taken blocks with pages, waiting to be used */
	uint32_t empty[READY_MAX]; /* taken blocks, open, whose pages went elsewhere */
} own = {.lock = LOCK_INIT};

/* Where a block's entry points between its last use and its retirement: there is no lease. */
static struct block nothing;

static uint8_t kind_of(size_t number)
{
	return number < own.kinds.open ? (uint8_t)own.kinds.base[number] : KIND_RESERVED;
}

static bool is_border(size_t number)
{
	uint8_t a = kind_of(number), b = kind_of(number + 1);

	return a != b || a == KIND_MOVED;
}

static void set_kind(size_t number, size_t n, enum block_kind kind)
{
	for (size_t i = number; i < number + n; i++) {
		size_t before = is_border(i) + (i ? is_border(i - 1) : 0);

		own.kinds.base[i] = (char)kind;
		own.borders += is_border(i) + (i ? is_border(i - 1) : 0) - before;
	}
}

/*
 * VMAs this process may use up: some, then one for each 2 MiB of live heap, but never near the
 * kernel's limit. Past that new pages are the better buy.
 */
static bool has_vmas(void)
{
	size_t share = read_u64(&vatalloc_stats.live_bytes) >> BLOCK_SHIFT;

	return own.borders < FEW_VMAS || (own.borders < share && own.borders < os_max_vmas() / 4);
}

static bool may_move(void)
{
	/* Tags would move along, and lie under addresses that never had them. */
	return os.has_moves && !os.mte && has_vmas();
}

int space_init(size_t most)
{
	size_t limit = os_address_limit();
	void *base;
	int r = -ENOMEM;

	if (!most || most > SPACE_MOST)
		most = SPACE_MOST;
	/* Under RLIMIT_AS everything else in the process needs its part as well. */
	if (limit != SIZE_MAX)
		most = min_size(most, limit / 8 * 5);
	for (most = round_down(most, BLOCK_SIZE); most >= SPACE_LEAST;
		most = round_down(most / 2, BLOCK_SIZE)) {
		r = os_reserve(most, BLOCK_SIZE, OS_LEASE, &base);
		if (r == 0)
			break;
	}
	if (r < 0)
		return r;
	r = meta_table_init(&own.entries, (most >> BLOCK_SHIFT) * sizeof(space_entry));
	if (r == 0)
		r = meta_table_init(&own.kinds, (most >> BLOCK_SHIFT) + 1);
	if (r < 0)
		return r;
	/*
	 * The kernel's own randomisation has put the range somewhere; begin a random number of
	 * blocks into it as well, up to a sixteenth, so that one leaked mapping does not give the
	 * heap away.
	 */
	os_random(&own.next, sizeof(own.next));
	own.next %= max_size(min_size((most >> BLOCK_SHIFT) / 16, 1024), 1);
	own.first = own.next;
	own.scan = 0;
	space.base = (uintptr_t)base;
	space.size = most;
	space.entry = (space_entry *)(void *)own.entries.base;
	vatalloc_stats.space_size = vatalloc_stats.space_left = most;
	return 0;
}

void space_set(size_t number, size_t n, space_entry entry)
{
	for (size_t i = 0; i < n; i++)
		__atomic_store_n(&space.entry[number + i], entry, __ATOMIC_RELEASE);
}

/* The first block from @number on whose address is a multiple of @align blocks. */
static size_t align_block(size_t number, size_t align)
{
	size_t base = space.base >> BLOCK_SHIFT;

	return round_up(base + number, align) - base;
}

/* Blocks never taken before. -ENOSPC when there are no more, -ENOMEM when memory for tables is out.
 */
static int take_next(size_t n, size_t align, size_t *ret_number)
{
	size_t first = align_block(own.next, align);
	size_t blocks = space.size >> BLOCK_SHIFT;

	if (first > blocks || n > blocks - first)
		return -ENOSPC;
	if (meta_table_grow(&own.entries, (first + n) * sizeof(space_entry)) < 0 ||
		meta_table_grow(&own.kinds, first + n + 1) < 0)
		return -ENOMEM;
	own.next = first + n;
	__atomic_store_n(&space.used, own.next << BLOCK_SHIFT, __ATOMIC_RELEASE);
	vatalloc_stats.space_used = (own.next - own.first) << BLOCK_SHIFT;
	vatalloc_stats.space_left = space.size - (own.next << BLOCK_SHIFT);
	*ret_number = first;
	return 0;
}

/* The oldest retired blocks once more: @n in a row from where the last search ended. */
static int take_retired(size_t n, size_t align, size_t *ret_number)
{
	size_t blocks = space.used >> BLOCK_SHIFT;
	size_t row = 0;

	if (n > blocks)
		return -ENOMEM;
	for (size_t looked = 0; looked < blocks + n; looked++) {
		size_t number = own.scan;

		own.scan = number + 1 < blocks ? number + 1 : 0;
		if (number == 0)
			row = 0;
		/* A row begins at a multiple of @align and holds nothing but retired blocks. */
		row = space.entry[number] == 0 && (row || align_block(number, align) == number)
		              ? row + 1
		              : 0;
		if (row < n)
			continue;
		if (options.abort_exhausted)
			report_space_exhausted(space.size, true);
		if (!own.recycling)
			report_space_exhausted(space.size, false);
		own.recycling = true;
		number -= n - 1;
		for (size_t i = number; i < number + n; i++)
			if (kind_of(i) == KIND_RELEASED &&
				os_retire((void *)space_block_address(i), BLOCK_SIZE, OS_LEASE) < 0)
				return -ENOMEM;
		set_kind(number, n, KIND_RESERVED);
		vatalloc_stats.bytes_recycled += n << BLOCK_SHIFT;
		*ret_number = number;
		return 0;
	}
	return -ENOMEM;
}

static int take_reserved(size_t n, size_t align, size_t *ret_number)
{
	int r = take_next(n, align, ret_number);

	if (r == -ENOSPC)
		r = take_retired(n, align, ret_number);
	if (r < 0)
		return r;
	space_set(*ret_number, n, (space_entry)&nothing);
	own.live += n;
	vatalloc_stats.blocks_live = own.live;
	return 0;
}

/* Undoes take_reserved() for blocks that could not be opened. */
static void untake(size_t number, size_t n)
{
	space_set(number, n, 0);
	own.live -= n;
	vatalloc_stats.blocks_live = own.live;
}

/* Puts pages from `ready` under the first of @n reserved blocks; returns how many blocks got some.
 */
static size_t move_ready(size_t number, size_t n)
{
	size_t moved = 0;

	while (moved < n && own.n_ready && own.n_empty < READY_MAX && may_move()) {
		uint32_t from = own.ready[own.n_ready - 1];

		if (os_move((void *)space_block_address(from),
			    (void *)space_block_address(number + moved), BLOCK_SIZE) < 0)
			break;
		own.n_ready--;
		own.empty[own.n_empty++] = from;
		set_kind(number + moved, 1, KIND_MOVED);
		moved++;
	}
	return moved;
}

/* A program may leave most of a large chunk untouched, which must not cost much of its memory. */
static bool should_be_huge(size_t n, enum space_want want)
{
	size_t share = read_u64(&vatalloc_stats.live_bytes) / HUGE_SHARE >> BLOCK_SHIFT;

	return want == SPACE_HUGE || (want == SPACE_LARGE && n <= share);
}

static int open_blocks(size_t number, size_t n, enum space_want want)
{
	void *address = (void *)space_block_address(number);
	bool huge = should_be_huge(n, want);
	int r;

	if (!n)
		return 0;
	r = os_open(address, n << BLOCK_SHIFT, want == SPACE_UNTAGGED ? OS_UNTAGGED : OS_LEASE);
	if (r < 0)
		return r;
	if (huge)
		os_want_huge(address, n << BLOCK_SHIFT);
	set_kind(number, n, huge ? KIND_HUGE : KIND_OPEN);
	return 0;
}

static int take_locked(
	size_t n, size_t align, enum space_want want, size_t *ret_number, bool *ret_dirty)
{
	size_t number, moved = 0;
	int r;

	if (want == SPACE_HUGE && (own.n_ready || own.n_empty)) {
		*ret_dirty = own.n_ready > 0;
		*ret_number = own.n_ready ? own.ready[--own.n_ready] : own.empty[--own.n_empty];
		return 0;
	}
	r = take_reserved(n, align, &number);
	if (r < 0)
		return r;
	if (want == SPACE_SMALL) {
		set_kind(number, n, KIND_OPEN);
	} else {
		if (want == SPACE_LARGE)
			moved = move_ready(number, n);
		r = open_blocks(number + moved, n - moved, want);
		if (r < 0) {
			/* Rare enough to waste: blocks that got pages are lost with the others. */
			if (moved)
				os_retire((void *)space_block_address(number), moved << BLOCK_SHIFT,
					OS_LEASE);
			set_kind(number, n, KIND_RESERVED);
			untake(number, n);
			return r;
		}
	}
	*ret_dirty = moved > 0;
	*ret_number = number;
	return 0;
}

int space_take(size_t n, size_t align, enum space_want want, size_t *ret_number, bool *ret_dirty)
{
	int r;

	lock_take(&own.lock);
	r = take_locked(n, align, want, ret_number, ret_dirty);
	lock_drop(&own.lock);
	return r;
}

size_t space_move(size_t from, size_t to, size_t n, bool untagged)
{
	size_t moved = 0;

	/* One by one: before Linux 6.17 no call moves pages of two VMAs. */
	lock_take(&own.lock);
	while (moved < n && os_move((void *)space_block_address(from + moved),
				    (void *)space_block_address(to + moved), BLOCK_SIZE) == 0)
		moved++;
	if (moved < n)
		open_blocks(to + moved, 1, untagged ? SPACE_UNTAGGED : SPACE_FRESH);
	set_kind(to, moved, KIND_REMAPPED);
	lock_drop(&own.lock);
	return moved;
}

size_t space_age(size_t number)
{
	size_t next = __atomic_load_n(&own.next, __ATOMIC_RELAXED);

	/* Once blocks are recycled their numbers say nothing. */
	return own.recycling ? SIZE_MAX : next - number;
}

/* Whether there are blocks never taken; the others are not worth it for pages that only wait. */
static bool has_fresh(void)
{
	return own.next < space.size >> BLOCK_SHIFT;
}

/* Moves the pages of dead blocks to new ones, as many as `ready` should hold. */
static void keep_pages(size_t number, size_t n)
{
	size_t share = read_u64(&vatalloc_stats.live_bytes) / READY_SHARE >> BLOCK_SHIFT;
	size_t wanted = min_size(READY_LEAST + share, READY_MAX);
	size_t to;

	for (size_t i = number; i < number + n && own.n_ready < wanted && may_move(); i++) {
		/* Blocks already open and empty come first: they are fresh addresses too. */
		if (own.n_empty)
			to = own.empty[--own.n_empty];
		else if (!has_fresh() || take_reserved(1, 1, &to) < 0)
			return;
		if (os_move((void *)space_block_address(i), (void *)space_block_address(to),
			    BLOCK_SIZE) < 0) {
			untake(to, 1);
			os_retire((void *)space_block_address(to), BLOCK_SIZE, OS_LEASE);
			set_kind(to, 1, KIND_RESERVED);
			return;
		}
		set_kind(to, 1, KIND_MOVED);
		own.ready[own.n_ready++] = (uint32_t)to;
	}
}

void space_retire(size_t number, size_t n, bool movable)
{
	void *address = (void *)space_block_address(number);
	bool mapped;

	space_set(number, n, (space_entry)&nothing);
	lock_take(&own.lock);
	if (movable)
		keep_pages(number, n);
	mapped = has_vmas() && os_retire(address, n << BLOCK_SHIFT, OS_LEASE) == 0;
	if (!mapped)
		os_release(address, n << BLOCK_SHIFT);
	set_kind(number, n, mapped ? KIND_RESERVED : KIND_RELEASED);
	space_set(number, n, 0);
	own.live -= n;
	vatalloc_stats.blocks_live = own.live;
	vatalloc_stats.bytes_retired += n << BLOCK_SHIFT;
	lock_drop(&own.lock);
}

void space_want_small(size_t number)
{
	lock_take(&own.lock);
	/* A moved one has a VMA of its own already. Half of them are for retiring, which traps. */
	if (kind_of(number) == KIND_MOVED || own.borders < FEW_VMAS / 2) {
		os_want_small((void *)space_block_address(number), BLOCK_SIZE);
		if (kind_of(number) != KIND_MOVED)
			set_kind(number, 1, KIND_SMALL);
	}
	lock_drop(&own.lock);
}

void space_trim(void)
{
	lock_take(&own.lock);
	while (own.n_ready && own.n_empty < READY_MAX) {
		uint32_t number = own.ready[--own.n_ready];

		/* Purged, not retired: its addresses have not been used yet. */
		os_purge((void *)space_block_address(number), BLOCK_SIZE);
		own.empty[own.n_empty++] = number;
	}
	lock_drop(&own.lock);
}

void space_fork_prepare(void)
{
	lock_take(&own.lock);
}

void space_fork_parent(void)
{
	lock_drop(&own.lock);
}

void space_fork_child(void)
{
	lock_reset(&own.lock);
}
