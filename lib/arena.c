/* SPDX-License-Identifier: MIT */
#include "arena.h"

#include <sched.h>

#include "meta.h"
#include "os.h"
#include "reclaim.h"
#include "run.h"
#include "site.h"
#include "stats.h"

enum {
	SPARE_MAX = 64, /* runs of a class that keep their slots */
};

static struct arena *arenas[ARENA_MAX];
static unsigned n_turns;

/* Twice as many arenas as CPUs: fewer threads wait, and a block an arena is not too much memory. */
static unsigned arenas_wanted(void)
{
	static unsigned wanted;
	cpu_set_t cpus;

	if (!wanted) {
		wanted = 4;
		if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
			wanted = (unsigned)CPU_COUNT(&cpus) * 2;
		wanted = wanted > ARENA_MAX ? ARENA_MAX : wanted;
	}
	return wanted;
}

struct arena *arena_next(void)
{
	unsigned turn = __atomic_fetch_add(&n_turns, 1, __ATOMIC_RELAXED);
	/* The first thread needs no other, and a program without threads no count of its CPUs. */
	unsigned number = turn ? turn % arenas_wanted() : 0;
	struct arena *arena = __atomic_load_n(&arenas[number], __ATOMIC_ACQUIRE), *none = NULL;

	if (arena)
		return arena;
	arena = meta_alloc(sizeof(*arena));
	if (!arena)
		return NULL;
	lock_reset(&arena->lock);
	if (slot_arena_new(&arena->slot_arena) < 0) {
		meta_free(arena, sizeof(*arena));
		return NULL;
	}
	/* No lock: jemalloc was called. Of two threads the later one uses the other's. */
	if (__atomic_compare_exchange_n(
		    &arenas[number], &none, arena, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return arena;
	meta_free(arena, sizeof(*arena));
	return none;
}

void arena_join(struct arena *arena)
{
	__atomic_fetch_add(&arena->n_threads, 1, __ATOMIC_RELAXED);
}

void arena_leave(struct arena *arena)
{
	__atomic_fetch_sub(&arena->n_threads, 1, __ATOMIC_RELAXED);
}

struct arena *arena_of_slots(unsigned slot_arena)
{
	for (unsigned i = 0; i < ARENA_MAX; i++)
		if (arenas[i] && arenas[i]->slot_arena == slot_arena)
			return arenas[i];
	return arenas[0];
}

static struct young *young_place(struct arena *arena, uint32_t number)
{
	return &arena->young[number % ARENA_YOUNG];
}

/* Learns from the lease that is young longest. The caller holds the lock. */
static void learn_oldest(struct arena *arena)
{
	struct young *young = young_place(arena, arena->first_young++);

	if (young->lease)
		site_learn(young->lease);
	young->lease = NULL;
}

/*
 * Up to how many leased bytes a lease is young. A thread that does not run keeps what it has, so each
 * of the arena's must have had its turn.
 */
static uint64_t young_bytes(const struct arena *arena)
{
	unsigned n = __atomic_load_n(&arena->n_threads, __ATOMIC_RELAXED);

	return (uint64_t)SITE_AGE * (n ?: 1);
}

/* Enters a new lease among the young ones, and learns from those that no longer are. */
static void enter_young(struct arena *arena, struct lease *l)
{
	uint64_t most = young_bytes(arena);

	if (arena->next_young - arena->first_young == ARENA_YOUNG)
		learn_oldest(arena);
	l->young = (uint16_t)arena->next_young;
	*young_place(arena, arena->next_young++) =
		(struct young){.lease = l, .leased_at = arena->leased};
	while (young_place(arena, arena->first_young)->leased_at + most < arena->leased)
		learn_oldest(arena);
}

void arena_lose(struct arena *arena, struct lease *l)
{
	struct young *young;

	lock_take(&arena->lock);
	young = young_place(arena, l->young);
	if (young->lease == l) {
		site_learn(l);
		young->lease = NULL;
	}
	lock_drop(&arena->lock);
}

static unsigned large_class(size_t size)
{
	unsigned log2 = 63 - (unsigned)__builtin_clzl(size);

	return (log2 - LEASE_PAGE_SHIFT) * 4 + (unsigned)(size >> (log2 - 2) & 3);
}

static struct lease **parked_list(struct arena *arena, uint8_t class, size_t size)
{
	unsigned large;

	if (class != CLASS_LARGE)
		return &arena->parked[class];
	large = large_class(size);
	return large < ARENA_LARGE_CLASSES ? &arena->parked_large[large] : NULL;
}

/* Whole pages of a lease go back to the kernel; every chunk is tagged anew at its next malloc. */
static void purge(struct lease *l)
{
	uintptr_t from = round_up(l->start, os.page);
	uintptr_t to = round_down(l->start + l->bytes, os.page);
	struct block *b = space_block_at(l->start);

	if (b && !__atomic_exchange_n(&b->in_pieces, true, __ATOMIC_RELAXED))
		space_want_small(b->number);
	if (from < to)
		os_purge((void *)from, to - from);
	for (size_t i = 0; i < l->n_chunks; i++)
		l->life[i] &= (uint8_t)~LIFE_TAGGED;
	l->purged = true;
}

/* The caller holds the lock. */
static void park(struct arena *arena, struct lease *l)
{
	struct lease **list = parked_list(arena, l->class, l->chunk_size);

	l->run = NULL;
	if (reclaim_park(l->bytes))
		l->purged = false;
	else
		purge(l);
	l->next = *list;
	*list = l;
	add_u64(&vatalloc_stats.leases_parked, 1);
}

void arena_park(struct arena *arena, struct lease *l)
{
	lock_take(&arena->lock);
	park(arena, l);
	lock_drop(&arena->lock);
}

/* The caller holds the lock. */
static struct lease *unpark(struct arena *arena, uint8_t class, size_t size, size_t align)
{
	struct lease **at = parked_list(arena, class, size);
	struct lease *l = at ? *at : NULL;

	if (!l || l->chunk_size != size || l->base % align)
		return NULL;
	*at = l->next;
	l->next = NULL;
	add_u64(&vatalloc_stats.leases_parked, (uint64_t)-1);
	if (!l->purged)
		reclaim_unpark(l->bytes);
	return l;
}

struct lease *arena_bind(struct run *run, uint8_t class)
{
	const struct size_class *sc = &slot_classes.class[class];
	struct arena *arena = run->arena;
	struct lease *l;

	lock_take(&arena->lock);
	l = run->lease; /* another thread may have been faster */
	if (l && l->class != class) {
		park(arena, l);
		l = NULL;
	}
	if (!l) {
		l = unpark(arena, class, sc->size, 1) ?: lease_new(arena, sc, class, BLOCK_FAST);
		if (l) {
			l->run = run;
			__atomic_store_n(&run->lease, l, __ATOMIC_RELEASE);
		}
	}
	lock_drop(&arena->lock);
	return l;
}

/* A new lease for a large chunk. The caller holds the lock. */
static struct lease *new_large(
	struct arena *arena, size_t size, size_t align, size_t offset, bool fresh, uint8_t site)
{
	bool lasting = lease_lives == 1 && !site_brief[CLASS_LARGE][site];
	struct lease *l = lease_new_large(
		arena, size, align, offset, fresh, lasting ? BLOCK_LASTING : BLOCK_LARGE);

	/* One that has blocks to itself is nobody's neighbour. */
	if (l && lease_lives == 1 && l->bytes <= LEASE_SHARED_MAX) {
		*site_bytes(l) = site;
		enter_young(arena, l);
	}
	return l;
}

struct lease *arena_bind_large(
	struct run *run, size_t size, size_t align, size_t offset, bool fresh, uint8_t site)
{
	struct arena *arena = run->arena;
	struct lease *l = NULL;

	lock_take(&arena->lock);
	if (!fresh)
		l = unpark(arena, CLASS_LARGE, size, align);
	if (!l)
		l = new_large(arena, size, align, offset, fresh, site);
	if (l) {
		l->run = run;
		run->lease = l;
	}
	lock_drop(&arena->lock);
	return l;
}

/* With one life, chunks are handed out in order, and the life byte of each changes then. */
static uint32_t first_unused(const struct lease *l)
{
	uint32_t n = l->n_chunks;

	while (n && !l->life[n - 1])
		n--;
	return n;
}

/* The shortest lease that wastes no more than an eighth, bytes. */
static size_t lease_least(size_t chunk)
{
	size_t bytes = round_up(chunk, LEASE_PAGE);

	while (bytes % chunk > bytes / 8)
		bytes += LEASE_PAGE;
	return bytes;
}

/* The longest one, bytes. */
static size_t lease_most(size_t chunk)
{
	return chunk > ARENA_LEASE_MAX / 4 ? 2 * ARENA_LEASE_MAX : ARENA_LEASE_MAX;
}

/* Whether the heap is so large that another open block is no matter. */
static bool is_worth_a_block(void)
{
	return read_u64(&vatalloc_stats.live_bytes) >= ARENA_SMALL_HEAP;
}

/* A new lease of one life, as long as the pace of its class asks for. The caller holds the lock. */
static struct lease *lease_paced(struct arena *arena, uint8_t class, bool lasting)
{
	struct size_class sc = slot_classes.class[class];
	struct pace *pace = &arena->pace[class][lasting];
	size_t bytes = lease_least(sc.size), wanted, since;
	enum block_sort sort = BLOCK_SLOW;
	struct lease *l;

	if (pace->bytes) {
		since = arena->leased - pace->leased_at;
		wanted = (size_t)pace->bytes * ARENA_PACE / since;
		wanted = min_size(min_size(wanted, 2 * (size_t)pace->bytes), lease_most(sc.size));
		wanted -= wanted % sc.size;
		bytes = max_size(bytes, round_up(wanted, LEASE_PAGE));
		sort = since <= ARENA_FAST ? BLOCK_FAST : BLOCK_SLOW;
	}
	sc.slab = (uint32_t)bytes;
	sc.n_chunks = (uint32_t)(bytes / sc.size);
	/* Few of the larger ones live on, and the many small ones that do should not keep them. */
	if (sort == BLOCK_FAST && sc.size > ARENA_LARGE && is_worth_a_block())
		sort = BLOCK_LARGE;
	l = lease_new(arena, &sc, class, lasting ? BLOCK_LASTING : sort);
	if (!l)
		return NULL;
	*pace = (struct pace){.bytes = sc.slab, .leased_at = arena->leased - sc.slab};
	l->lasting = lasting;
	enter_young(arena, l);
	return l;
}

/* The caller holds the lock. */
static struct run *take_spare_run(struct arena *arena, uint8_t class)
{
	struct run *run = arena->spare[class];

	if (run) {
		arena->spare[class] = run->next;
		arena->n_spare[class]--;
	}
	return run;
}

struct lease *arena_take_spare(struct arena *arena, uint8_t class)
{
	struct lease *l = NULL;
	struct run *run;

	/* A look without the lock may be wrong, which does no harm. */
	if (!__atomic_load_n(&arena->spare[class], __ATOMIC_RELAXED))
		return NULL;
	lock_take(&arena->lock);
	run = take_spare_run(arena, class);
	lock_drop(&arena->lock);
	if (run)
		l = arena_bind(run, class);
	if (run && !l)
		arena_spare_run(run, class);
	return l;
}

struct lease *arena_take_slab(struct arena *arena, uint8_t class, bool lasting, uint32_t *ret_next)
{
	struct lease *l;
	struct run *run;
	void *first;

	lock_take(&arena->lock);
	l = arena->partial[class][lasting];
	if (l) {
		arena->partial[class][lasting] = l->next;
		lock_drop(&arena->lock);
		*ret_next = first_unused(l);
		return l;
	}
	run = take_spare_run(arena, class);
	lock_drop(&arena->lock);
	if (!run) {
		first = slot_take_slab(&slot_classes.class[class], arena->slot_arena);
		if (!first)
			return NULL;
		run = run_of(first);
	}
	lock_take(&arena->lock);
	l = lease_paced(arena, class, lasting);
	if (l) {
		l->run = run;
		run->lease = l;
	}
	lock_drop(&arena->lock);
	if (!l)
		arena_spare_run(run, class);
	*ret_next = 0;
	return l;
}

void arena_give_partial(struct arena *arena, struct lease *l)
{
	if (first_unused(l) == l->n_chunks)
		return;
	lock_take(&arena->lock);
	l->next = arena->partial[l->class][l->lasting];
	arena->partial[l->class][l->lasting] = l;
	lock_drop(&arena->lock);
}

void arena_spare_run(struct run *run, uint8_t class)
{
	struct arena *arena = run->arena;
	bool kept;

	lock_take(&arena->lock);
	kept = arena->n_spare[class] < SPARE_MAX;
	if (kept) {
		run->next = arena->spare[class];
		arena->spare[class] = run;
		arena->n_spare[class]++;
	}
	lock_drop(&arena->lock);
	if (!kept)
		slot_give_slab((void *)run->slots, &slot_classes.class[class]);
}

static void trim_list(struct lease *l)
{
	for (; l; l = l->next)
		if (!l->purged) {
			reclaim_unpark(l->bytes);
			purge(l);
		}
}

void arena_trim(void)
{
	for (unsigned i = 0; i < ARENA_MAX; i++) {
		struct arena *arena = __atomic_load_n(&arenas[i], __ATOMIC_ACQUIRE);

		if (!arena)
			continue;
		lock_take(&arena->lock);
		for (unsigned c = 0; c < SLOT_CLASSES; c++)
			trim_list(arena->parked[c]);
		for (unsigned c = 0; c < ARENA_LARGE_CLASSES; c++)
			trim_list(arena->parked_large[c]);
		lock_drop(&arena->lock);
	}
}

/* Those locked for a fork: others may be made meanwhile. */
static struct arena *locked[ARENA_MAX];

void arena_fork_prepare(void)
{
	for (unsigned i = 0; i < ARENA_MAX; i++) {
		locked[i] = __atomic_load_n(&arenas[i], __ATOMIC_ACQUIRE);
		if (locked[i])
			lock_take(&locked[i]->lock);
	}
}

void arena_fork_parent(void)
{
	for (unsigned i = 0; i < ARENA_MAX; i++)
		if (locked[i])
			lock_drop(&locked[i]->lock);
}

void arena_fork_child(void)
{
	for (unsigned i = 0; i < ARENA_MAX; i++)
		if (arenas[i])
			lock_reset(&arenas[i]->lock);
}
