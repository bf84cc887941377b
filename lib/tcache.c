/* SPDX-License-Identifier: MIT */
#include "tcache.h"

#include "meta.h"
#include "reclaim.h"
#include "run.h"
#include "stats.h"

enum {
	BIN_BYTES = 32 << 10, /* of chunks a bin has room for, within these: */
	ROOM_LEAST = 4,
	ROOM_MOST = 128,
	FILL_FIRST = 4,
	BATCH_LEAST = 16, /* chunks of a slab from which on a batch call pays */
};

struct tcache tcache_none;
__thread struct tcache *tcache_self = &tcache_none;
static __thread bool ending;

uint8_t tcache_class[TCACHE_MAX / MTE_GRANULE + 1];
size_t tcache_max;
unsigned tcache_bins;

static void (*thread_began)(void), (*thread_ended)(void);
static size_t struct_bytes; /* of a tcache with its stacks */

static struct {
	struct lock lock;
	struct tcache *tcache;
} last_resort = {.lock = LOCK_INIT};

static uint16_t room_of(unsigned class)
{
	size_t room = BIN_BYTES / slot_classes.class[class].size;

	return (uint16_t)min_size(max_size(room, ROOM_LEAST), ROOM_MOST);
}

/*
 * Hands what a tcache has ready to the threads that have none, as far as there is room. The first
 * one that is given up stays as a whole. Returns whether it did.
 */
static bool leave_behind(struct tcache *t)
{
	struct tcache *heir;

	lock_take(&last_resort.lock);
	heir = last_resort.tcache;
	if (!heir)
		last_resort.tcache = t;
	/* With one life the bin's slab goes to the arena, and what is ready of it with it. */
	for (unsigned i = 0; heir && lease_lives > 1 && i < tcache_bins; i++) {
		struct tcache_bin *from = &t->bin[i], *to = &heir->bin[i];

		while (from->n && to->n < to->room)
			to->ready[to->n++] = from->ready[--from->n];
	}
	lock_drop(&last_resort.lock);
	return !heir;
}

void tcache_end(void)
{
	struct tcache *t = tcache_self;

	/* Destructors that come after this one, and libc itself, still call malloc and free. */
	ending = true;
	tcache_self = &tcache_none;
	if (t != &tcache_none && !leave_behind(t)) {
		tcache_flush(t);
		meta_free(t, struct_bytes);
	}
	thread_ended();
}

void tcache_init(void (*begin)(void), void (*end)(void))
{
	unsigned class = 0;
	size_t entries = 0;

	tcache_bins = slot_classes.n < TCACHE_BINS ? slot_classes.n : TCACHE_BINS;
	while (slot_classes.class[tcache_bins - 1].size > TCACHE_MAX)
		tcache_bins--;
	tcache_max = slot_classes.class[tcache_bins - 1].size;
	for (size_t granules = 0; granules <= TCACHE_MAX / MTE_GRANULE; granules++) {
		if (class < tcache_bins && granules * MTE_GRANULE > slot_classes.class[class].size)
			class ++;
		tcache_class[granules] = (uint8_t) class;
	}
	for (unsigned i = 0; i < tcache_bins; i++)
		entries += room_of(i);
	thread_began = begin;
	thread_ended = end;
	struct_bytes = sizeof(struct tcache) + entries * sizeof(struct ready);
}

static struct tcache *tcache_new(void)
{
	struct tcache *t = meta_alloc(struct_bytes);
	struct ready *stack;

	if (!t)
		return NULL;
	t->arena = arena_next();
	if (!t->arena) {
		meta_free(t, struct_bytes);
		return NULL;
	}
	stack = (struct ready *)(t + 1);
	for (unsigned i = 0; i < tcache_bins; i++) {
		t->bin[i].ready = stack;
		t->bin[i].room = room_of(i);
		t->bin[i].fill = FILL_FIRST;
		stack += t->bin[i].room;
	}
	return t;
}

struct tcache *tcache_get(void)
{
	struct tcache *t = tcache_self;

	if (t != &tcache_none || ending)
		return t;
	t = tcache_new();
	if (!t)
		return &tcache_none;
	if (slot_arena_bind(t->arena->slot_arena) < 0) {
		meta_free(t, struct_bytes);
		return &tcache_none;
	}
	tcache_self = t;
	thread_began();
	return t;
}

uintptr_t tcache_make_ready(struct lease *l, size_t index)
{
	uint8_t life = l->life[index];
	unsigned tag = lease_tag(l, index, life);

	if (tag && !(life & LIFE_TAGGED) && !l->untagged) {
		tag_memory(lease_chunk(l, index), l->chunk_size, tag);
		l->life[index] = life | LIFE_TAGGED;
	}
	return mte_with_tag(lease_chunk(l, index), tag);
}

/* One life a chunk: the next chunks of the bin's own slab, the lowest address on top. */
static size_t fill_from_slab(struct arena *arena, struct tcache_bin *bin, unsigned class)
{
	struct lease *l = bin->slab;
	size_t n;

	if (!l) {
		l = arena_take_slab(arena, (uint8_t) class, &bin->next);
		if (!l)
			return 0;
	}
	n = min_size(bin->fill, l->n_chunks - bin->next);
	for (size_t i = 0; i < n; i++) {
		size_t index = bin->next + n - 1 - i;

		bin->ready[i] = (struct ready){lease_chunk(l, index), &l->life[index]};
	}
	bin->next += (uint32_t)n;
	/* Once the last chunk is handed out the lease can die at any time. */
	bin->slab = bin->next < l->n_chunks ? l : NULL;
	return n;
}

/*
 * Up to @n slots of a class. Asked for as many as a slab has, jemalloc would take a fresh slab,
 * even if there are slots free in others: what arena_take_slab() wants, and nobody else.
 */
static size_t take_slots(void **slots, size_t n, const struct size_class *sc, unsigned slot_arena)
{
	size_t taken = 0, got;

	while (taken < n) {
		if (sc->n_chunks < BATCH_LEAST) {
			slots[taken] = slot_take(sc->size, 1, slot_arena);
			got = slots[taken] ? 1 : 0;
		} else {
			got = slot_take_batch(slots + taken, min_size(n - taken, sc->n_chunks - 1),
				sc->size, slot_arena);
		}
		if (!got)
			break;
		taken += got;
	}
	return taken;
}

/* Many lives: whatever slots jemalloc prefers. */
static size_t fill_from_slots(
	struct arena *arena, struct tcache_bin *bin, unsigned class, bool bound)
{
	const struct size_class *sc = &slot_classes.class[class];
	void *slots[ROOM_MOST];
	size_t n = take_slots(slots, bin->fill, sc, bound ? SLOT_BOUND : arena->slot_arena);
	size_t ready = 0;

	while (n--) {
		struct run *run = run_of(slots[n]);
		struct lease *l = __atomic_load_n(&run->lease, __ATOMIC_ACQUIRE);
		size_t index;

		if (!l || l->class != class)
			l = arena_bind(run, (uint8_t) class);
		if (!l) {
			slot_give(slots[n], sc->size, false);
			continue;
		}
		index = ((uintptr_t)slots[n] - run->slots) * sc->inverse >> 32;
		bin->ready[ready].pointer = tcache_make_ready(l, index);
		bin->ready[ready++].life = &l->life[index];
	}
	return ready;
}

bool tcache_fill(struct tcache *t, unsigned class)
{
	struct tcache_bin *bin = &t->bin[class];
	size_t n;

	n = lease_lives == 1 ? fill_from_slab(t->arena, bin, class)
	                     : fill_from_slots(t->arena, bin, class, t == tcache_self);
	bin->n = (uint16_t)n;
	bin->fill = (uint16_t)min_size(bin->fill * 2, bin->room);
	t->begun += n;
	t->live_bytes += (int64_t)(n * slot_classes.class[class].size);
	tcache_publish(t);
	if (unlikely(__atomic_load_n(&reclaim.due, __ATOMIC_RELAXED)))
		reclaim_sweep();
	return n > 0;
}

/* Gives the @n oldest chunks of a bin back to jemalloc. */
static void give_back(struct tcache *t, unsigned class, size_t n)
{
	struct tcache_bin *bin = &t->bin[class];
	size_t size = slot_classes.class[class].size;

	for (size_t i = 0; i < n; i++) {
		uintptr_t address = mte_untag(bin->ready[i].pointer);
		struct lease *l = space_lease_at(address);

		slot_give((char *)l->run->slots + (address - l->base), size, t == tcache_self);
	}
	bin->n -= (uint16_t)n;
	for (size_t i = 0; i < bin->n; i++)
		bin->ready[i] = bin->ready[i + n];
	t->live_bytes -= (int64_t)(n * size);
}

void tcache_spill(struct tcache *t, unsigned class)
{
	give_back(t, class, t->bin[class].n / 2);
	tcache_publish(t);
}

void *tcache_last_resort(unsigned class)
{
	struct tcache *t;
	void *p = NULL;

	lock_take(&last_resort.lock);
	t = last_resort.tcache;
	if (t && (t->bin[class].n || tcache_fill(t, class)))
		p = tcache_pop(&t->bin[class]);
	lock_drop(&last_resort.lock);
	return p;
}

/* What a bin has ready goes back to where it can be used: its slab, or jemalloc. */
static void flush_bin(struct tcache *t, unsigned class)
{
	struct tcache_bin *bin = &t->bin[class];
	struct lease *l = bin->slab;

	if (lease_lives > 1) {
		give_back(t, class, bin->n);
		return;
	}
	if (!l && bin->n)
		l = space_lease_at(bin->ready[0].pointer);
	t->live_bytes -= (int64_t)(bin->n * (size_t)slot_classes.class[class].size);
	t->begun -= bin->n;
	bin->n = 0;
	bin->slab = NULL;
	if (l)
		arena_give_partial(t->arena, l);
}

void tcache_flush(struct tcache *t)
{
	for (unsigned i = 0; i < tcache_bins; i++)
		flush_bin(t, i);
	tcache_publish(t);
}

void tcache_publish(struct tcache *t)
{
	uint64_t begun = t->begun;

	for (unsigned i = 0; lease_lives > 1 && i < tcache_bins; i++) {
		begun += t->bin[i].ended;
		t->bin[i].ended = 0;
	}
	add_u64(&vatalloc_stats.lives_used, begun);
	add_u64(&vatalloc_stats.chunks_exhausted, t->dead_chunks);
	add_u64(&vatalloc_stats.bytes_exhausted, t->dead_bytes);
	reclaim_add_live(t->live_bytes);
	reclaim_add_dead((int64_t)t->dead_bytes);
	t->begun = t->dead_chunks = t->dead_bytes = 0;
	t->live_bytes = 0;
}

void tcache_fork_prepare(void)
{
	lock_take(&last_resort.lock);
}

void tcache_fork_parent(void)
{
	lock_drop(&last_resort.lock);
}

void tcache_fork_child(void)
{
	lock_reset(&last_resort.lock);
}
