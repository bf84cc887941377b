/* SPDX-License-Identifier: MIT */
/*
 * tcache: chunks that a thread has ready, so that the common malloc and free take no lock.
 *
 * A bin a size class holds ready chunks: their addresses with the tag of their next life, and where
 * their life byte is. malloc takes the last one; free, where the chunk has lives left, puts it
 * back. An empty bin is filled, and half of a full one given back, through the engine's slow path:
 * by batches from jemalloc, or with one life a chunk from a slab that the bin has for itself and
 * walks from end to end.
 *
 * The last thing a thread does is give up its tcache; it is still in use in all but the last round
 * of the destructors of pthread keys. A thread that has no tcache yet, or none any more, has
 * `tcache_none`, whose bins are empty and have no room: the fast paths need no check for it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "slot.h"

enum {
	TCACHE_BINS = 36,      /* classes that are cached at most, from the smallest */
	TCACHE_MAX = 16 << 10, /* bytes: chunks up to here may be */
};

struct ready {
	uintptr_t pointer; /* with its tag */
	uint8_t *life;
};

struct tcache_bin {
	struct ready *ready; /* a stack */
	uint16_t n;          /* in it */
	uint16_t room;       /* it can hold */
	uint16_t fill;       /* how many the next fill brings; doubles */
	uint32_t next;       /* of `slab`: the first chunk not handed out */
	struct lease *slab;  /* one life: where the bin's chunks come from, or NULL */
	uint64_t ended;      /* lives that ended here and left the chunk more, not yet published */
};

struct tcache {
	struct arena *arena;
	/* Since the last tcache_publish(). */
	uint64_t dead_chunks; /* exhausted */
	uint64_t dead_bytes;
	uint64_t begun; /* lives of chunks that did not come from a bin's own frees */
	int64_t live_bytes;
	struct tcache_bin bin[TCACHE_BINS + 1]; /* the last is for sizes in none: ever empty */
};

extern struct tcache tcache_none;
extern __thread struct tcache *tcache_self __attribute__((tls_model("initial-exec")));

/* For each size in granules, rounded up: its class. */
extern uint8_t tcache_class[TCACHE_MAX / MTE_GRANULE + 1];
extern size_t tcache_max; /* bytes: the largest size that is cached */
extern unsigned tcache_bins;

/*
 * Once, after slot_init(). @begin and @end are called in each thread that gets a tcache and loses
 * it.
 */
void tcache_init(void (*begin)(void), void (*end)(void));

/* The calling thread ends; for slot_configure(). */
void tcache_end(void);

/*
 * The calling thread's tcache, made if need be; `tcache_none` when the thread is ending or memory
 * is out.
 */
struct tcache *tcache_get(void);

/* Fills the empty bin of a class. False when memory is out. */
bool tcache_fill(struct tcache *t, unsigned class);

/* Gives half of a full bin back to jemalloc. */
void tcache_spill(struct tcache *t, unsigned class);

/*
 * A chunk for a thread that has no tcache: from one that all such threads share, which holds what
 * threads that ended had ready. NULL when that is empty and cannot be filled.
 */
void *tcache_last_resort(unsigned class);

/* Gives everything back that a tcache has ready. */
void tcache_flush(struct tcache *t);

/* Puts a chunk of a lease into its current life and returns the pointer to it. */
uintptr_t tcache_make_ready(struct lease *l, size_t index);

/* Adds what the thread has counted to the counters of the process. */
void tcache_publish(struct tcache *t);

static inline unsigned tcache_class_of(size_t size)
{
	return tcache_class[(size + MTE_GRANULE - 1) / MTE_GRANULE];
}

/* A ready chunk begins its life. */
static inline void *tcache_pop(struct tcache_bin *bin)
{
	struct ready *r = &bin->ready[--bin->n];

	*r->life |= LIFE_LIVE;
	return (void *)r->pointer;
}

void tcache_fork_prepare(void);
void tcache_fork_parent(void);
void tcache_fork_child(void);
