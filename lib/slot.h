/* SPDX-License-Identifier: MIT */
/*
 * slot: jemalloc, which decides which slot an allocation gets.
 *
 * This is the distribution's jemalloc, linked statically with its public names renamed (slot_malloc
 * for malloc). It keeps its metadata out of band and never touches the memory it manages, so it
 * runs on slot space: addresses reserved and never mapped. Its settings make every call of the
 * extent hooks exactly one run: extents are neither kept, split nor merged (run.h holds the hooks).
 *
 * Only the public API of jemalloc 5.3 is used. See jemalloc(3).
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lease.h"

enum {
	/* Small size classes at most; jemalloc with 64 KiB pages has 52. */
	SLOT_CLASSES = CLASS_LARGE,
};

struct slot_classes {
	unsigned n;          /* classes of 16 bytes and more */
	size_t page;         /* jemalloc's page, bytes */
	unsigned page_shift; /* its log2 */
	size_t small_max;    /* bytes of the largest small class */
	size_t slab_max;     /* bytes of the largest slab */
	struct size_class class[SLOT_CLASSES];
};

extern struct slot_classes slot_classes;

/*
 * Settles jemalloc's options before its first use. @tcache lets it keep slots per thread.
 * @at_thread_end is called in each thread that used jemalloc when it ends, in the last round of the
 * destructors of pthread keys; after that the thread can give slots back, but not take any. -EAGAIN
 * without a pthread key.
 */
int slot_configure(bool tcache, void (*at_thread_end)(void));

/* The same, to leave jemalloc all its own (mode=off). */
void slot_configure_untouched(void);

/*
 * Starts jemalloc and reads its size classes, and of its large sizes those of up to @slab_chunk_max
 * bytes (0: none), for whom looks at no slot: a slab of any class may stand for one of theirs then.
 * -ENOSYS if it is not a jemalloc that this library can use.
 */
int slot_init(size_t slab_chunk_max);

/* Makes a jemalloc arena whose extents come from slot space. */
int slot_arena_new(unsigned *ret_arena);

/* Binds the calling thread to a jemalloc arena. */
int slot_arena_bind(unsigned arena);

/* The bytes that an allocation of @size at a multiple of @align will have; 0 when too large. */
size_t slot_size(size_t size, size_t align);

/* The index of the small class that has just @size bytes. */
uint8_t slot_class(size_t size);

/*
 * A slot from @arena, or NULL. SLOT_BOUND: from the arena that the thread is bound to, perhaps out
 * of jemalloc's own cache.
 */
void *slot_take(size_t size, size_t align, unsigned arena);
#define SLOT_BOUND UINT_MAX

/* Up to @n slots of a small class; returns how many. */
size_t slot_take_batch(void **slots, size_t n, size_t size, unsigned arena);

/*
 * All the slots of one slab that is fresh from the hooks, of the class or, for one that jemalloc has
 * no slabs for, of another; returns the first, or NULL.
 */
void *slot_take_slab(const struct size_class *class, unsigned arena);

/* Gives back a slot; @size as in slot_size(). @cached: jemalloc may keep it for this thread. */
void slot_give(void *slot, size_t size, bool cached);

/* Gives back the slots that jemalloc keeps for the calling thread. */
void slot_flush(void);

/* Gives back all the slots of a slab. */
void slot_give_slab(void *first, const struct size_class *class);

/* jemalloc's own, under their new names, for mode=off. */
void *slot_malloc(size_t size);
void *slot_calloc(size_t n, size_t size);
void *slot_realloc(void *p, size_t size);
void *slot_memalign(size_t align, size_t size);
size_t slot_malloc_usable_size(void *p);
void slot_free(void *p);
