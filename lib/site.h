/* SPDX-License-Identifier: MIT */
/*
 * site: where in the program a chunk is asked for, and so how long it will probably live.
 *
 * An address that is used once is of no use to anyone when its chunk is dead, and its memory is not
 * either while a live chunk shares the page, or the block. So chunks that will live are better not
 * among those that will not. A program does not say which they are, but what is asked for in one
 * place mostly dies at one age. The place is the caller's return address together with the depth of
 * the stack, for the callers of a wrapper (xmalloc, operator new) differ in that; of both, a site
 * is a hash of eight bits.
 *
 * Each chunk of one life has its site in a byte behind the life bytes of its lease. Once the arena
 * has leased another SITE_AGE bytes for each of its threads, or when the lease dies, a sample of its
 * chunks is looked at. If of a site and class no more than one in SITE_RARE are alive, or less than half
 * as many as of the class as a whole (threads that do not run keep what they have), its chunks are
 * brief. All others last, or may: nothing is known of a new site, and most allocations are from few
 * sites. Those come from leases, and the leases from blocks, that are only for such. A wrong guess
 * costs memory or time, never safety.
 *
 * See Barrett and Zorn, "Using Lifetime Predictors to Improve Memory Allocation Performance" (PLDI
 * 1993), and Mytkowicz et al., "Inferred Call Path Profiling" (OOPSLA 2009).
 */
#pragma once

#include <stdint.h>

#include "lease.h"
#include "util.h"

enum {
	SITES = 256,
	SITE_AGE = 2 << 20, /* bytes */
	SITE_RARE = 2048,   /* chunks: one survivor keeps the block of so many, or more */
};

/* By class and site: 1 if its chunks are brief, else 0. */
extern uint8_t site_brief[CLASS_LARGE + 1][SITES] __attribute__((visibility("hidden")));

/*
 * Where the function that this is inlined into was called from: the return address and, in the bits
 * that no address has, the low ones of the stack pointer (threads differ in the others).
 */
static ALWAYS_INLINE uintptr_t site_caller(void)
{
	return (uintptr_t)__builtin_return_address(0) +
	       ((uintptr_t)__builtin_frame_address(0) << 52);
}

/* The site of what site_caller() returned. */
static inline uint8_t site_of(uintptr_t caller)
{
	return (uint8_t)(caller * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

/* The bytes that say the sites of the chunks of a lease of one life. */
static inline uint8_t *site_bytes(struct lease *l)
{
	return l->life + l->n_chunks;
}

/* Learns from a lease of one life; nobody frees it meanwhile. */
void site_learn(struct lease *l);
