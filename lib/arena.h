/* SPDX-License-Identifier: MIT */
/*
 * arena: what the threads bound to one of jemalloc's arenas share, under one lock: the block that
 * their leases come from, and the leases and runs that wait for their next use.
 *
 *   partial  leases of one life whose thread ended before it had handed out every chunk
 *   spare    runs whose lease is dead and whose slots were not given back to jemalloc: with one
 * life a chunk, the next slab of the class is wanted soon parked   leases with lives left that lost
 * their run
 */
#pragma once

#include "lease.h"
#include "slot.h"
#include "util.h"

enum {
	ARENA_MAX = 64,
	ARENA_LARGE_CLASSES =
		56, /* sizes of large chunks that can be parked: four a doubling to 32 MiB */
};

struct arena {
	struct lock lock;
	unsigned slot_arena; /* jemalloc's number */
	struct block *open;  /* the block that the next small lease comes from */
	size_t blocks;       /* blocks opened so far */
	struct lease *partial[SLOT_CLASSES];
	struct run *spare[SLOT_CLASSES];
	uint32_t n_spare[SLOT_CLASSES];
	struct lease *parked[SLOT_CLASSES];
	struct lease *parked_large[ARENA_LARGE_CLASSES];
};

/* The arena for the next thread; they take turns. NULL when memory is out. */
struct arena *arena_next(void);

/* The arena that has jemalloc's arena @slot_arena, which arena_next() made. */
struct arena *arena_of_slots(unsigned slot_arena);

/*
 * The lease of a run that is a slab of @class: the one it has, a parked one, or a new one. NULL as
 * lease_new().
 */
struct lease *arena_bind(struct run *run, uint8_t class);

/* The same for a large run. @align and @offset as for lease_new_large(). */
struct lease *arena_bind_large(
	struct run *run, size_t size, size_t align, size_t offset, bool fresh);

/* Takes in a lease whose run is gone and whose chunks are all unused. */
void arena_park(struct arena *arena, struct lease *l);

/* For one life: a lease with chunks never handed out and the index of the first, or NULL. */
struct lease *arena_take_slab(struct arena *arena, uint8_t class, uint32_t *ret_next);

/* Takes back what arena_take_slab() gave, if there are chunks that were never handed out. */
void arena_give_partial(struct arena *arena, struct lease *l);

/* Takes in a run all of whose slots are held and whose lease is dead. */
void arena_spare_run(struct run *run, uint8_t class);

/* Purges every parked lease; for malloc_trim(3). */
void arena_trim(void);

void arena_fork_prepare(void);
void arena_fork_parent(void);
void arena_fork_child(void);
