/* SPDX-License-Identifier: MIT */
/*
 * tcache: chunks that a thread has ready, so that the common malloc and free take no lock.
 *
 * With many lives a bin a size class holds ready chunks: their addresses with the tag of their next
 * life, and where their life byte is. malloc takes the last one; free puts it back. Half of a full
 * bin goes to the depot of its class, which all threads share, and an empty bin is filled from
 * there, or from a slab that died as a whole and has a new lease; only what the depot has no room
 * for, or does not have, is jemalloc's business.
 *
 * With one life a bin has a slab for itself, which it walks from end to end; a class has one bin for
 * chunks that last, or may, and one for brief ones.
 *
 * The last thing a thread does is give up its tcache; it is still in use in all but the last round
 * of the destructors of pthread keys. A thread that has no tcache yet, or none any more, has
 * `tcache_none`, whose bins are empty and have no room: the fast paths need no check for it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "site.h"
#include "slot.h"

enum {
	TCACHE_BINS = 48,      /* classes that are cached at most, from the smallest */
	TCACHE_MAX = 64 << 10, /* bytes: chunks up to here may be */
};

struct ready {
	uintptr_t pointer; /* with its tag */
	uint8_t *life;
};

struct tcache_bin {
	/* One life: what the slab has left; nothing when `next` is `end`. */
	uintptr_t next; /* the next chunk */
	uintptr_t end;
	uint8_t *life; /* of the next chunk */
	/* Many lives: */
	struct ready *ready; /* a stack, */
	uint32_t n;          /* what is in it, */
	uint32_t room;       /* and what it can hold */
	uint64_t ended;      /* lives that ended here and left the chunk more, not yet published */
	union {
		size_t n_chunks;    /* one life: of the slab; so far behind `life` is the site */
		struct lease *slab; /* many: where it is filled from first, or NULL; */
	};
	uint16_t walked; /* so many of its chunks have been */
	uint16_t fill;   /* how many chunks the next fill brings; doubles */
	uint32_t size;   /* bytes of a chunk */
};

static_assert(sizeof(struct tcache_bin) == 64, "a bin is found with a shift");

struct tcache {
	struct arena *arena;
	/* Since the last tcache_publish(). */
	uint64_t dead_chunks; /* exhausted */
	uint64_t dead_bytes;
	uint64_t begun;      /* lives of chunks that did not come from a bin's own frees */
	int64_t taken_bytes; /* made ready, less those given back */
	/* Of each class; with one life the second is for brief chunks (site.h). Others have no room. */
	struct tcache_bin bin[CLASS_LARGE + 1][2];
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

/* A chunk of a class; a bin that is empty is filled. NULL when memory is out. */
void *tcache_take(struct tcache *t, unsigned class, uintptr_t caller);

/* Gives half of a full bin away. */
void tcache_spill(struct tcache *t, unsigned class);

/*
 * A chunk for a thread that has no tcache: from one that all such threads share, which holds what
 * threads that ended had ready. NULL when that is empty and cannot be filled.
 */
void *tcache_last_resort(unsigned class, uintptr_t caller);

/* Gives everything back that a tcache has ready. */
void tcache_flush(struct tcache *t);

/* Gives back what the depots hold; for malloc_trim(3). */
void tcache_trim(void);

/* Puts a chunk of a lease into its current life and returns the pointer to it. */
uintptr_t tcache_make_ready(struct lease *l, size_t index);

/* Adds what the thread has counted to the counters of the process. */
void tcache_publish(struct tcache *t);

static inline unsigned tcache_class_of(size_t size)
{
	return tcache_class[(size + MTE_GRANULE - 1) / MTE_GRANULE];
}

/* Bytes of the chunk for a size of up to tcache_max. */
static inline size_t tcache_size_of(size_t size)
{
	return slot_classes.class[tcache_class_of(size)].size;
}

/*
 * A ready chunk begins its life, asked for by @caller (site.h); NULL when the bin is empty. No chunk is at address 0: told so, the
 * compiler leaves out the caller's test where there is one.
 */
static inline void *tcache_pop(struct tcache *t, unsigned class, uintptr_t caller)
{
	struct tcache_bin *bin = t->bin[class];
	uint8_t site = site_of(caller);
	uint8_t *life, *life_site;
	uintptr_t next, after;

	if (bin->n) {
		struct ready *r = &bin->ready[--bin->n];

		*r->life |= LIFE_LIVE;
		if (!r->pointer)
			__builtin_unreachable();
		return (void *)r->pointer;
	}
	bin += site_brief[class][site];
	next = bin->next;
	if (unlikely(next == bin->end))
		return NULL;
	/* All is read before a byte is written, which might be anything to the compiler. */
	after = next + bin->size;
	life = bin->life;
	life_site = life + bin->n_chunks;
	bin->next = after;
	bin->life = life + 1;
	*life_site = site;
	*life = LIFE_LIVE;
	/* Memory that comes round only once is in no cache. */
	__builtin_prefetch((void *)after, 1);
	if (!next)
		__builtin_unreachable();
	return (void *)next;
}

void tcache_fork_prepare(void);
void tcache_fork_parent(void);
void tcache_fork_child(void);
