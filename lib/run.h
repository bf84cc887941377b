/* SPDX-License-Identifier: MIT */
/*
 * run: one extent of jemalloc's, in slot space.
 *
 * A run comes and goes with jemalloc's extent hooks. Slot space is a reservation that is never
 * touched; its ranges are reused freely, because no slot is ever an address of anybody's. The page
 * map gives the run of a slot. A run that jemalloc gives back parks its lease.
 *
 * The lease of a run may be bound by any thread that got a slot of it, under the lock of the arena;
 * it stays while a single slot of the run is out. When threads free at the same time jemalloc may
 * use an empty run for another class without going through the hooks: whoever finds the lease of
 * another class on a run parks it (arena_bind).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util.h"

struct arena;
struct lease;

struct run {
	uintptr_t slots; /* the first slot of a slab; where jemalloc put a large one is `large` */
	size_t bytes;
	void *large;         /* jemalloc begins a large allocation anywhere in its first page */
	struct lease *lease; /* or NULL */
	struct arena *arena;
	struct run *next; /* in the arena's list of spare runs */
};

/* jemalloc's extent_hooks_t, jemalloc(3). */
typedef struct extent_hooks extent_hooks;
struct extent_hooks {
	void *(*alloc)(extent_hooks *hooks, void *addr, size_t size, size_t align, bool *zero,
		bool *commit, unsigned arena);
	bool (*dalloc)(
		extent_hooks *hooks, void *addr, size_t size, bool committed, unsigned arena);
	void (*destroy)(
		extent_hooks *hooks, void *addr, size_t size, bool committed, unsigned arena);
	bool (*commit)(extent_hooks *hooks, void *addr, size_t size, size_t offset, size_t len,
		unsigned arena);
	bool (*decommit)(extent_hooks *hooks, void *addr, size_t size, size_t offset, size_t len,
		unsigned arena);
	bool (*purge_lazy)(extent_hooks *hooks, void *addr, size_t size, size_t offset, size_t len,
		unsigned arena);
	bool (*purge_forced)(extent_hooks *hooks, void *addr, size_t size, size_t offset,
		size_t len, unsigned arena);
	bool (*split)(extent_hooks *hooks, void *addr, size_t size, size_t size_a, size_t size_b,
		bool committed, unsigned arena);
	bool (*merge)(extent_hooks *hooks, void *addr_a, size_t size_a, void *addr_b, size_t size_b,
		bool committed, unsigned arena);
};

extern extent_hooks run_hooks;

/* Reserves slot space of up to @most bytes; before jemalloc starts. -ENOMEM. */
int run_reserve(size_t most);

/* Reserves the page map; after slot_init(). -ENOMEM. */
int run_init(void);

/* The page map: the run of a slot. */
extern struct run **run_map;
extern uintptr_t run_space;
extern unsigned run_page_shift;

static inline struct run *run_of(const void *slot)
{
	return run_map[((uintptr_t)slot - run_space) >> run_page_shift];
}

void run_fork_prepare(void);
void run_fork_parent(void);
void run_fork_child(void);
