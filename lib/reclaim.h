/* SPDX-License-Identifier: MIT */
/*
 * reclaim: gives the memory of exhausted chunks back before their whole block is dead.
 *
 * With a granularity set, every block counts the exhausted bytes of each unit of that size (the
 * paper's exhausted_size_per_page[], section 3.3), and a unit is released when it is full.
 *
 * With granularity auto nothing is counted by unit, and blocks die as a whole, which is nearly
 * free. Instead the bytes that are dead but still resident are summed up, and when they pass a
 * share of the live heap a sweep reads the life bytes of blocks and releases what it finds dead: in
 * long pieces where whole leases died, and page by page, a few blocks at a time, when that was not
 * enough.
 *
 * A young block may well die as a whole soon, and a block of which a piece was released cannot pass
 * its pages on: new ones cost more than the sweep gains. So young blocks are not swept, and each
 * swept block that dies soon after all makes reclaim more patient.
 *
 * Exhausted chunks are never handed out again, so releasing them races with nobody.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lease.h"
#include "space.h"
#include "util.h"

struct reclaim {
	size_t units;        /* units of a block, 0 with granularity auto */
	unsigned unit_shift; /* log2 of the bytes of a unit */
	bool sweeps;         /* granularity is auto */
	bool due;            /* a sweep is wanted */
};

extern struct reclaim reclaim;

/* @granularity in bytes, a power of two; 0 for auto. Units are never smaller than a page. */
void reclaim_init(size_t granularity);

/* Counts @bytes of a block, from @offset, as exhausted by unit; releases units that are full. */
void reclaim_exhaust_units(struct block *b, size_t offset, size_t bytes);

static inline void reclaim_exhaust(struct block *b, size_t offset, size_t bytes)
{
	if (unlikely(reclaim.units))
		reclaim_exhaust_units(b, offset, bytes);
}

/* The same for a chunk, which may begin in blocks that its lease has whole. */
void reclaim_exhaust_chunk(struct lease *l, size_t index);

/* Bytes that died, or (negative) dead bytes that were given back. */
void reclaim_add_dead(int64_t bytes);

/* Bytes that became live, or (negative) ceased to be. */
void reclaim_add_live(int64_t bytes);

/* Takes note of the death of a block of which pieces had been released. */
void reclaim_regret(const struct block *b);

/* Sets `due` if so many dead bytes are resident that a sweep pays; called when a block is opened.
 */
void reclaim_consider(void);

/* The sweep. The caller holds none of the locks from that of the blocks on (util.h). */
void reclaim_sweep(void);

/* A sweep to the last page, whatever the sums say, and no pages kept ready; for malloc_trim(3). */
void reclaim_everything(void);

/* Takes note of @bytes of parked memory; false when so much may not stay resident: purge it. */
bool reclaim_park(size_t bytes);

/* Takes them back into use. */
void reclaim_unpark(size_t bytes);
