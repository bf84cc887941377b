/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>

#include "arena.h"
#include "meta.h"
#include "os.h"
#include "slot.h"

enum {
	EXACT_MAX = 128,       /* pages: shorter free ranges have a list of their own length */
	LIST_COUNT = 512,      /* one list a page up to EXACT_MAX, then four a doubling */
	SEARCH_MOST = 1 << 22, /* pages of slot space that may be searched */
};

static const uintptr_t LOW_SLOTS = (uintptr_t)4 << 30;
static const size_t LOW_SLOTS_SIZE = (size_t)64 << 30;
static const size_t SLOTS_LEAST = (size_t)16 << 20;
static const size_t SLOTS_ALIGN = (size_t)64 << 10; /* the largest page jemalloc is built with */

struct run **run_map;
uintptr_t run_space;
unsigned run_page_shift;

/* A range of slot space that waits for a run of the same length. */
struct free_range {
	struct free_range *next;
	uintptr_t start;
	size_t bytes;
};

static struct {
	struct lock lock;
	struct meta_table map;
	size_t size; /* bytes of slot space */
	size_t next; /* bytes from its start that were never used */
	struct free_range *free[LIST_COUNT];
} own = {.lock = LOCK_INIT};

int run_reserve(size_t most)
{
	void *base;
	int r = -ENOMEM;

	/*
	 * Under RLIMIT_AS a reservation would be taken from the heap's own share, and slots are
	 * only numbers: take some that nothing else jemalloc deals with has. It maps its own
	 * metadata where the kernel likes, which is never down there.
	 */
	if (os_address_limit() != SIZE_MAX) {
		run_space = LOW_SLOTS;
		own.size = LOW_SLOTS_SIZE;
		return 0;
	}
	for (; most >= SLOTS_LEAST; most /= 2) {
		r = os_reserve(most, SLOTS_ALIGN, OS_SLOTS, &base);
		if (r == 0)
			break;
	}
	if (r < 0)
		return r;
	run_space = (uintptr_t)base;
	own.size = round_down(most, SLOTS_ALIGN);
	return 0;
}

int run_init(void)
{
	int r;

	if (slot_classes.page > SLOTS_ALIGN)
		return -ENOSYS;
	run_page_shift = slot_classes.page_shift;
	/* A table of half a GiB is too much for an address limit: the heap stays below it anyway.
	 */
	if (os_address_limit() != SIZE_MAX)
		own.size = round_up(min_size(own.size, os_address_limit() * 4), SLOTS_ALIGN);
	r = meta_table_init(&own.map, (own.size >> run_page_shift) * sizeof(struct run *));
	if (r == 0)
		run_map = (struct run **)(void *)own.map.base;
	return r;
}

/* jemalloc's extents come in four sizes a doubling, so a list rarely holds more than one length. */
static unsigned list_of(size_t pages)
{
	unsigned log2;

	if (pages <= EXACT_MAX)
		return (unsigned)pages;
	log2 = 63 - (unsigned)__builtin_clzl(pages);
	return EXACT_MAX + (log2 - 7) * 4 + (unsigned)(pages >> (log2 - 2) & 3);
}

static struct free_range *find_exact(size_t bytes, size_t align)
{
	struct free_range **at = &own.free[list_of(bytes >> run_page_shift)];

	for (unsigned looked = 0; *at && looked < 8; at = &(*at)->next, looked++) {
		struct free_range *range = *at;

		if (range->bytes == bytes && range->start % align == 0) {
			*at = range->next;
			return range;
		}
	}
	return NULL;
}

/*
 * The page map knows which pages are free, so when a small space (RLIMIT_AS) is used up, a look at
 * the map finds what the lists have lost track of: they are dropped.
 */
static bool find_anywhere(size_t bytes, size_t align, uintptr_t *ret_start)
{
	size_t pages = bytes >> run_page_shift, total = own.size >> run_page_shift;
	size_t page_bytes = (size_t)1 << run_page_shift;
	size_t row = 0;

	for (unsigned i = 0; i < LIST_COUNT; i++)
		while (own.free[i]) {
			struct free_range *range = own.free[i];

			own.free[i] = range->next;
			meta_free(range, sizeof(*range));
		}
	if (meta_table_grow(&own.map, total * sizeof(struct run *)) < 0)
		return false;
	own.next = own.size;
	for (size_t i = 0; i < total; i++) {
		if (run_map[i]) {
			i += (run_map[i]->bytes >> run_page_shift) - 1;
			row = 0;
			continue;
		}
		row = row || (run_space + i * page_bytes) % align == 0 ? row + 1 : 0;
		if (row == pages) {
			*ret_start = run_space + (i + 1 - pages) * page_bytes;
			return true;
		}
	}
	return false;
}

static bool take_range(size_t bytes, size_t align, uintptr_t *ret_start)
{
	struct free_range *range = find_exact(bytes, align);
	uintptr_t start;
	size_t end;

	if (range) {
		*ret_start = range->start;
		meta_free(range, sizeof(*range));
		return true;
	}
	if (bytes > own.size || align > own.size)
		return false;
	start = round_up(run_space + own.next, align);
	end = start - run_space + bytes;
	if (end > own.size)
		return own.size >> run_page_shift <= SEARCH_MOST &&
		       find_anywhere(bytes, align, ret_start);
	if (meta_table_grow(&own.map, (end >> run_page_shift) * sizeof(struct run *)) < 0)
		return false;
	own.next = end;
	*ret_start = start;
	return true;
}

/* Ranges are written off when there is no memory to remember them by. */
static void give_range(uintptr_t start, size_t bytes)
{
	struct free_range *range;
	unsigned list = list_of(bytes >> run_page_shift);

	if (own.next == own.size)
		return; /* the map alone keeps the books now */
	range = meta_alloc(sizeof(*range));
	if (!range)
		return;
	*range = (struct free_range){.next = own.free[list], .start = start, .bytes = bytes};
	own.free[list] = range;
}

/* Every page of a slab, but only the first of a large run: its one slot is there. */
static void enter(struct run *run, struct run *value)
{
	size_t first = (run->slots - run_space) >> run_page_shift;
	size_t pages = run->bytes <= slot_classes.slab_max ? run->bytes >> run_page_shift : 1;

	for (size_t i = 0; i < pages; i++)
		run_map[first + i] = value;
}

static void *hook_alloc(extent_hooks *hooks, void *addr, size_t size, size_t align, bool *zero,
	bool *commit, unsigned slot_arena)
{
	struct run *run;
	bool found;

	(void)hooks;
	if (addr)
		return NULL;
	run = meta_alloc(sizeof(*run));
	if (!run)
		return NULL;
	run->bytes = size;
	run->arena = arena_of_slots(slot_arena);
	lock_take(&own.lock);
	found = take_range(size, align, &run->slots);
	if (found)
		enter(run, run);
	lock_drop(&own.lock);
	if (!found) {
		meta_free(run, sizeof(*run));
		return NULL;
	}
	*zero = false;
	*commit = true;
	return (void *)run->slots;
}

/* false is success, as jemalloc has it. */
static bool hook_dalloc(
	extent_hooks *hooks, void *addr, size_t size, bool committed, unsigned slot_arena)
{
	struct run *run = run_of(addr);

	(void)hooks;
	(void)committed;
	(void)slot_arena;
	if (run->lease)
		arena_park(run->arena, run->lease);
	lock_take(&own.lock);
	enter(run, NULL);
	give_range(run->slots, size);
	lock_drop(&own.lock);
	meta_free(run, sizeof(*run));
	return false;
}

static void hook_destroy(
	extent_hooks *hooks, void *addr, size_t size, bool committed, unsigned slot_arena)
{
	hook_dalloc(hooks, addr, size, committed, slot_arena);
}

/* There is nothing to commit or purge; true is refusal. */
static bool hook_refuse(extent_hooks *hooks, void *addr, size_t size, size_t offset, size_t len,
	unsigned slot_arena)
{
	(void)hooks;
	(void)addr;
	(void)size;
	(void)offset;
	(void)len;
	(void)slot_arena;
	return true;
}

/*
 * jemalloc gives up an extent that it took out of its cache for a smaller one and cannot split: it
 * purges it by force and forgets it. With our settings that is the only call of this hook.
 */
static bool hook_abandon(extent_hooks *hooks, void *addr, size_t size, size_t offset, size_t len,
	unsigned slot_arena)
{
	(void)offset;
	(void)len;
	return hook_dalloc(hooks, addr, size, true, slot_arena);
}

extent_hooks run_hooks = {
	.alloc = hook_alloc,
	.dalloc = hook_dalloc,
	.destroy = hook_destroy,
	.commit = hook_refuse,
	.decommit = hook_refuse,
	.purge_lazy = hook_refuse,
	.purge_forced = hook_abandon,
};

void run_fork_prepare(void)
{
	lock_take(&own.lock);
}

void run_fork_parent(void)
{
	lock_drop(&own.lock);
}

void run_fork_child(void)
{
	lock_reset(&own.lock);
}
