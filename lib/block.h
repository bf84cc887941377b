/* SPDX-License-Identifier: MIT */
/*
 * block: 2 MiB of lease space that leases share, filled from the front (struct block is in space.h,
 * whose table points to it).
 *
 * One long-lived lease keeps a whole block, so an arena has a block open for each sort of lease:
 *
 *   BLOCK_FAST     small chunks of a class that uses its leases up fast, and all with many lives
 *   BLOCK_SLOW     those of a class that does not (arena.h)
 *   BLOCK_LARGE    large chunks, small ones that are not that small, and the tails of larger ones
 *   BLOCK_LASTING  chunks of one life, small or large, that will probably live long (site.h)
 *
 * `dead` counts the bytes that will never be used again: dead leases, gaps and the unused tail of a
 * closed block. At 2 MiB the block is dead: it is retired, and its tables and those of its leases
 * are freed.
 *
 * So that a small daemon stays small, the first block of an arena serves all sorts, and it, the
 * first of the others, and all slow blocks are small: opened in steps, with small pages. The others
 * are huge pages, and with one life so are all fast ones.
 *
 * A block that has gained another WORTH_A_SWEEP dead bytes queues up for reclaim's next sweep, so
 * that a sweep need not look at blocks where nothing died.
 */
#pragma once

#include "lease.h"
#include "space.h"

struct arena;

/*
 * Takes @bytes (a multiple of LEASE_PAGE) at a multiple of @align from the arena's open block of
 * @sort, and opens a new block where they don't fit. The caller holds the arena's lock.
 * @ret_address is theirs; @ret_dirty says whether it may not be zeroes. -ENOMEM.
 */
int block_take(struct arena *arena, enum block_sort sort, size_t bytes, size_t align,
	uintptr_t *ret_address, bool *ret_dirty);

/*
 * Makes a block of the last, partly used block of a large lease, whose first @used bytes are the
 * lease's; the rest serves the arena if it is larger than what its open block has. -ENOMEM.
 */
int block_adopt(struct arena *arena, size_t number, size_t used, bool dirty, struct lease *lease);

/* Enters a lease into the page table of its block. @bytes from @address, within one block. */
void block_enter(uintptr_t address, size_t bytes, struct lease *lease);

/* Counts @bytes as dead for good, and retires the block when that was the last. */
void block_add_dead(struct block *b, size_t bytes);

/* Closes an open block: its tail is dead. */
void block_close(struct block *b);

/*
 * Calls @fn for a block, which cannot die meanwhile, and returns what it returns; -ENOENT when
 * there is none. block_visit_worthy: the one that queued up first, which goes back to the end of
 * the queue on -EAGAIN. block_visit_next: the one after that of the last call, in a circle.
 */
typedef int block_visitor(struct block *b, size_t least);
int block_visit_worthy(block_visitor *fn, size_t least);
int block_visit_next(block_visitor *fn, size_t least);

/* Calls @fn for all. */
void block_visit_all(block_visitor *fn, size_t least);

void block_fork_prepare(void);
void block_fork_parent(void);
void block_fork_child(void);
