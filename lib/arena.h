/* SPDX-License-Identifier: MIT */
/*
 * arena: what the threads bound to one of jemalloc's arenas share, under one lock: the block that
 * their leases come from, and the leases and runs that wait for their next use.
 *
 *   partial: leases of one life whose thread ended before it had handed out every chunk
 *   spare: runs whose lease is dead and whose slots were not given back to jemalloc, because the
 *     next slab of the class will soon be wanted
 *   parked: leases with lives left that lost their run
 */
#pragma once

#include "block.h"
#include "lease.h"
#include "slot.h"
#include "util.h"

enum {
	ARENA_MAX = 64,
	ARENA_LARGE_CLASSES =
		56, /* sizes of large chunks that can be parked: four a doubling to 32 MiB */
	ARENA_LEASE_MAX =
		64 << 10, /* bytes of a lease of one life for small chunks, twice for others */
	ARENA_PACE = 256 << 10, /* bytes of the arena's in which such a lease should be used up, */
	ARENA_FAST = 4 << 20,   /* and in which it is by a class that is fast */
	ARENA_LARGE =
		2 << 10, /* bytes of a chunk that shares blocks with large ones, if it is larger */
	ARENA_SMALL_HEAP =
		4 << 20,    /* bytes live: while it is smaller, there is no such difference */
	ARENA_YOUNG = 1024, /* leases too young to learn from that are kept count of */
};

struct arena {
	struct lock lock;
	unsigned slot_arena;                    /* jemalloc's number */
	unsigned n_threads;                     /* bound to it now */
	struct block *open[BLOCK_SORTS];        /* the blocks that the next leases come from */
	bool had[BLOCK_SORTS];                  /* whether there has been one */
	struct lease *partial[SLOT_CLASSES][2]; /* for chunks that do not last, and that do */
	struct run *spare[SLOT_CLASSES];
	uint32_t n_spare[SLOT_CLASSES];
	uint64_t leased; /* bytes taken from shared blocks so far */
	struct pace {
		uint32_t bytes;     /* of the last lease of one life of a class */
		uint64_t leased_at; /* what `leased` was then */
	} pace[SLOT_CLASSES][2];
	/* With one life: leases that site_learn() has not had, in a ring, oldest first. */
	struct young {
		struct lease *lease; /* NULL if it is dead */
		uint64_t leased_at;  /* what `leased` was */
	} young[ARENA_YOUNG];
	uint32_t first_young, next_young; /* counting on; see young_place() */
	struct lease *parked[SLOT_CLASSES];
	struct lease *parked_large[ARENA_LARGE_CLASSES];
};

/* The arena for the next thread; they take turns. NULL when memory is out. */
struct arena *arena_next(void);

/* A thread with a tcache is bound to the arena, and ends. */
void arena_join(struct arena *arena);
void arena_leave(struct arena *arena);

/* The arena that has jemalloc's arena @slot_arena, which arena_next() made. */
struct arena *arena_of_slots(unsigned slot_arena);

/*
 * The lease of a run that is a slab of @class: the one it has, a parked one, or a new one. NULL as
 * lease_new().
 */
struct lease *arena_bind(struct run *run, uint8_t class);

/* The same for a large run. @align and @offset as for lease_new_large(); @site is the chunk's. */
struct lease *arena_bind_large(
	struct run *run, size_t size, size_t align, size_t offset, bool fresh, uint8_t site);

/* Takes in a lease whose run is gone and whose chunks are all unused. */
void arena_park(struct arena *arena, struct lease *l);

/*
 * For one life: a lease with chunks never handed out and the index of the first, or NULL. @lasting:
 * for chunks that last (site.h), whose leases are in lasting blocks.
 *
 * The slots of its run are all held and none is looked at, so a lease need not be as long as the
 * slab. What a lease costs should be shared by many chunks, but one that is in use for long keeps
 * the block it is in, where all others may have died. So a class gets long leases if it uses them
 * up fast: each is as long as the class is expected to need while the arena leases ARENA_PACE
 * bytes. Those of classes that take longer than ARENA_FAST for a lease are among themselves, in
 * slow blocks, and those of chunks of more than ARENA_LARGE bytes among large chunks.
 */
struct lease *arena_take_slab(struct arena *arena, uint8_t class, bool lasting, uint32_t *ret_next);

/* For one life: a lease of the arena's is dead, and about to be retired. */
void arena_lose(struct arena *arena, struct lease *l);

/* Takes back what arena_take_slab() gave, if there are chunks that were never handed out. */
void arena_give_partial(struct arena *arena, struct lease *l);

/* For many lives: a lease with a spare run, none of whose chunks is handed out, or NULL. */
struct lease *arena_take_spare(struct arena *arena, uint8_t class);

/* Takes in a run all of whose slots are held and whose lease is dead. */
void arena_spare_run(struct run *run, uint8_t class);

/* Purges every parked lease; for malloc_trim(3). */
void arena_trim(void);

void arena_fork_prepare(void);
void arena_fork_parent(void);
void arena_fork_child(void);
