/* SPDX-License-Identifier: MIT */
/*
 * lease: the addresses that a run has now.
 *
 * A run is a slab of equal chunks or one large allocation, somewhere in slot space, which is never
 * mapped; its lease says at which real addresses those chunks are. A lease is bound to a run, then
 * parked (its run is gone but its chunks have lives left: the next run of its class gets it), and
 * at last dead, when every chunk is exhausted. It never changes class, so the borders of its chunks
 * never move, and one byte a chunk holds all there is to know:
 *
 *   LIFE_COUNT   lives that have ended, 0 to 15
 *   LIFE_LIVE    the program has it
 *   LIFE_TAGGED  its memory carries the tag of its current life
 *   LIFE_GROWN   this life began with a realloc that grew
 *
 * The byte belongs to whoever owns the chunk (the program, or the tcache that has it ready), so it
 * needs no lock; ending a life is a compare-and-exchange, so that of two frees only one succeeds.
 *
 * Small leases share blocks, one after the other; a lease of LEASE_SHARED_MAX bytes or more has
 * whole blocks, and shares only its last one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "space.h"
#include "tag.h"
#include "util.h"

enum {
	LIFE_COUNT = 0x0f,
	LIFE_LIVE = 0x10,
	LIFE_TAGGED = 0x20,
	LIFE_GROWN = 0x40,
	LIVES_MTE = TAG_STEPS,
	LEASE_SHARED_MAX = 512 << 10, /* bytes */
	CLASS_LARGE = 80, /* the class of a lease with one large chunk, the last of all */
};

static_assert(LEASE_SHARED_MAX / MTE_GRANULE <= UINT16_MAX, "n_chunks can count a slab's chunks");
static_assert(LIVES_MTE <= LIFE_COUNT, "a life byte can count to the last life");

struct run;
struct arena;

struct lease {
	uintptr_t base;     /* address of the first chunk, untagged */
	size_t chunk_size;  /* bytes, all usable */
	uint32_t inverse;   /* index = offset * inverse >> 32; 0 when there is one chunk */
	uint32_t exhausted; /* chunks with no life left */
	uint16_t n_chunks;
	uint16_t young;    /* its number among the arena's young leases */
	uint8_t class;     /* index of the size class, or CLASS_LARGE */
	uint8_t lives;     /* lives of each chunk */
	bool untagged : 1; /* memory without PROT_MTE */
	bool zeroed : 1;   /* large: untouched, reads as zeroes in life 0 */
	bool emptied : 1;  /* large: a realloc moved its pages away */
	bool purged : 1;   /* parked: its pages went back to the kernel */
	bool lasting : 1;  /* of one life: for chunks that last, see site.h */
	union {
		struct run *run;        /* the run it is bound to, or NULL */
		struct lease *previous; /* dead: in the history */
	};
	uintptr_t start; /* the range: chunks and the slack around them */
	size_t bytes;
	struct lease *next; /* in the list that it is in: parked, partial or history */
	uint8_t life[];     /* a byte a chunk; with one life, then a byte a chunk for its site */
};

static_assert(offsetof(struct lease, life) == 64, "the header of a lease is one cache line");

/*
 * A class of chunks, as jemalloc has it: `size` bytes, in slabs of `slab` bytes; `n_chunks` is 0 where
 * jemalloc has no slabs (slot_init()).
 */
struct size_class {
	uint32_t size;
	uint32_t slab;
	uint32_t n_chunks;
	uint32_t inverse; /* see struct lease */
};

/* Lives of a chunk in this process: 1 or LIVES_MTE. */
extern uint8_t lease_lives;

/*
 * A new lease for a slab, in a block of @sort (block.h). The caller holds the lock of @arena. NULL
 * when memory or lease space is out.
 */
struct lease *lease_new(
	struct arena *arena, const struct size_class *sc, uint8_t class, enum block_sort sort);

/*
 * A new lease for one large chunk of @size bytes (a multiple of the page) at a multiple of @align.
 * An @align of no more than a cache line leaves the place in the page to chance, or to @offset
 * (bytes into the page) unless that is LEASE_ANY_OFFSET; @fresh asks for untouched pages. The
 * caller holds the lock of @arena. @sort: where it goes, unless it is so large that it has blocks of
 * its own. NULL as above.
 */
struct lease *lease_new_large(struct arena *arena, size_t size, size_t align, size_t offset,
	bool fresh, enum block_sort sort);
#define LEASE_ANY_OFFSET SIZE_MAX

/* Ends a lease all of whose chunks are exhausted and which has no run any more. */
void lease_retire(struct lease *l);

/* Bytes that a struct lease of @n_chunks takes. */
static inline size_t lease_struct_bytes(size_t n_chunks)
{
	return sizeof(struct lease) + n_chunks * (lease_lives == 1 ? 2 : 1);
}

/* The chunk that begins exactly at @address: true and its index, or false. */
static inline bool lease_index(const struct lease *l, uintptr_t address, size_t *ret_index)
{
	size_t offset = address - l->base;
	size_t index = offset * l->inverse >> 32;

	if (unlikely(index * l->chunk_size != offset || index >= l->n_chunks))
		return false;
	*ret_index = index;
	return true;
}

/* The index of the chunk in or after whose first byte @address lies; for reports. */
static inline size_t lease_index_around(const struct lease *l, uintptr_t address)
{
	size_t index = address < l->base ? 0 : (address - l->base) / l->chunk_size;

	return index < l->n_chunks ? index : l->n_chunks - 1u;
}

static inline uintptr_t lease_chunk(const struct lease *l, size_t index)
{
	return l->base + index * l->chunk_size;
}

static inline bool life_is_over(const struct lease *l, uint8_t life)
{
	return (life & LIFE_COUNT) >= l->lives;
}

/* The tag of a chunk in the life that @life counts. */
static inline unsigned lease_tag(const struct lease *l, size_t index, uint8_t life)
{
	return tag_of(lease_chunk(l, index), index, life & LIFE_COUNT);
}

/* Changes a life byte from @old; false when somebody else was faster. */
static inline bool life_change(uint8_t *life, uint8_t old, uint8_t new)
{
	if (__libc_single_threaded) {
		*life = new;
		return true;
	}
	return __atomic_compare_exchange_n(
		life, &old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
