/* SPDX-License-Identifier: MIT */
/*
 * space: lease space, the one range of address space that all heap addresses come from.
 *
 * It is reserved once, as large as the machine allows, and cut into blocks of 2 MiB. Blocks are
 * taken in the order of their addresses and never twice, so a block number is also an age. A block
 * is reserved, then open (in use), then retired; kinds below. Only when every block has been used
 * are retired ones taken again, the oldest first (`on_exhaustion=recycle`), or the process ends.
 *
 * The space table has an entry a block that says what lies there, for anyone with an address in
 * hand: nothing, a block that small leases share (struct block), or one lease that has it whole.
 *
 * The pages of a block that dies are not given to the kernel and asked for again, which costs a
 * fault and the zeroing: they move by mremap(2) to the next block of lease space, which then waits
 * in `ready`. The dead block itself is retired at once and traps.
 *
 * The kernel limits the number of VMAs; space counts the borders between blocks of different
 * kinds, and stops moving, then stops mapping, before the process comes near vm.max_map_count.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os.h"
#include "util.h"

struct lease;

enum {
	BLOCK_SHIFT = OS_HUGE_SHIFT,
	BLOCK_SIZE = 1 << BLOCK_SHIFT,
	LEASE_PAGE_SHIFT = 12,
	LEASE_PAGE = 1 << LEASE_PAGE_SHIFT, /* leases begin and end on these */
	BLOCK_PAGES = BLOCK_SIZE / LEASE_PAGE,
};

/* Which leases share a block; see block.h. */
enum block_sort { BLOCK_SLOW, BLOCK_FAST, BLOCK_LARGE, BLOCK_LASTING, BLOCK_SORTS };

/* What the space table knows of a block that leases share; see block.h. */
struct block {
	struct lease *lease_at[BLOCK_PAGES]; /* the lease that covers each page, or NULL */
	uint32_t number;                     /* place in lease space */
	uint32_t used;                       /* bytes leased, from the front */
	uint32_t open;                       /* bytes opened, from the front */
	uint32_t populated; /* of a small block: bytes faulted in, from the front */
	uint32_t dead;      /* bytes of dead leases and of what was never leased */
	bool dirty;         /* its pages were in use before: not zeroes */
	bool closed;        /* nothing more is leased from it */
	bool small;         /* its pages are; else they are one huge page */
	uint64_t released[BLOCK_PAGES / 64]; /* pages given back, one bit each */
	uint32_t *unit_exhausted;            /* exhausted bytes of each unit, or NULL: reclaim.h */
	struct block *prev, *next;           /* all shared blocks, oldest first */
	struct block *next_worthy;           /* the queue of blocks worth a sweep, see block.h */
	bool worthy;                         /* in that queue */
	bool in_pieces;                      /* space_want_small() was told */
	uint32_t swept_dead;                 /* `dead` when it was last swept page by page */
};

/* An entry of the space table: 0, a struct block, or a struct lease with bit 0 set. */
typedef uintptr_t space_entry;

struct space {
	uintptr_t base;
	size_t size;        /* bytes reserved */
	size_t used;        /* bytes from the base that the table describes */
	space_entry *entry; /* the table */
};

extern struct space space;

/*
 * Reserves lease space, @most bytes or as many as there are. -ENOMEM when less than 32 MiB could be
 * had.
 */
int space_init(size_t most);

/* How the blocks of space_take() come. */
enum space_want {
	SPACE_SMALL,    /* one block, only reserved: the caller opens it piece by piece */
	SPACE_HUGE,     /* one block, open, dirty if pages waited in `ready` */
	SPACE_LARGE,    /* any number, open, on pages from `ready` as far as there are */
	SPACE_FRESH,    /* any number, open, untouched */
	SPACE_UNTAGGED, /* the same, without PROT_MTE */
};

/*
 * Takes @n blocks in a row at a multiple of @align blocks (a power of two). @ret_dirty: some of
 * their pages are not zeroes. -ENOMEM.
 */
int space_take(size_t n, size_t align, enum space_want want, size_t *ret_number, bool *ret_dirty);

/*
 * Retires @n blocks for good. @movable: their pages may go to new blocks, because all of them is
 * open and none released.
 */
void space_retire(size_t number, size_t n, bool movable);

/*
 * Moves the pages of up to @n blocks in use to blocks just taken as SPACE_FRESH or SPACE_UNTAGGED,
 * for a realloc; what was there is empty then. @untagged: `to` was taken so. Returns how many were
 * moved, from the first on.
 */
size_t space_move(size_t from, size_t to, size_t n, bool untagged);

/*
 * Pieces of a block in use are about to be released: the kernel is not to make the rest a huge page,
 * which would fill them again.
 */
void space_want_small(size_t number);

/* Gives the pages that wait in `ready` back to the kernel. */
void space_trim(void);

/* How many blocks have been taken since block @number was: its age. */
size_t space_age(size_t number);

/* Writes the table's entries for @n blocks. */
void space_set(size_t number, size_t n, space_entry entry);

void space_fork_prepare(void);
void space_fork_parent(void);
void space_fork_child(void);

static inline uintptr_t space_block_address(size_t number)
{
	return space.base + (number << BLOCK_SHIFT);
}

/* Whether an untagged address lies in lease space as far as it has been used. */
static inline bool space_covers(uintptr_t address)
{
	return address - space.base < space.used;
}

/* The lease at an untagged address that space_covers(), or NULL. */
static inline struct lease *space_lease_at(uintptr_t address)
{
	size_t offset = address - space.base;
	space_entry entry = __atomic_load_n(&space.entry[offset >> BLOCK_SHIFT], __ATOMIC_RELAXED);

	if (unlikely(entry & 1))
		return (struct lease *)(entry & ~(space_entry)1);
	if (unlikely(!entry))
		return NULL;
	return ((struct block *)entry)->lease_at[offset >> LEASE_PAGE_SHIFT & (BLOCK_PAGES - 1)];
}

/* The shared block at an untagged address that space_covers(), or NULL. */
static inline struct block *space_block_at(uintptr_t address)
{
	space_entry entry = space.entry[(address - space.base) >> BLOCK_SHIFT];

	return entry & 1 ? NULL : (struct block *)entry;
}
