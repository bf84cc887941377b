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
	DEPOT_ROOMS = 8, /* a depot holds as much as so many bins */
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

/* The depot of a class: ready chunks between two threads. Many lives only. */
static struct depot {
	struct lock lock;
	struct ready *ready; /* made when first needed */
	size_t n;
} depots[TCACHE_BINS];

static uint32_t room_of(unsigned class)
{
	size_t room = BIN_BYTES / slot_classes.class[class].size;

	return (uint32_t)min_size(max_size(room, ROOM_LEAST), ROOM_MOST);
}

/* Up to @n chunks into the depot; returns how many it took. */
static size_t depot_put(unsigned class, const struct ready *ready, size_t n)
{
	struct depot *d = &depots[class];
	size_t room = (size_t)room_of(class) * DEPOT_ROOMS;

	lock_take(&d->lock);
	if (!d->ready)
		d->ready = meta_alloc(room * sizeof(*d->ready));
	n = d->ready ? min_size(n, room - d->n) : 0;
	for (size_t i = 0; i < n; i++)
		d->ready[d->n++] = ready[i];
	lock_drop(&d->lock);
	return n;
}

/* Up to @n chunks out of the depot, those that came last; returns how many. */
static size_t depot_get(unsigned class, struct ready *ready, size_t n)
{
	struct depot *d = &depots[class];

	/* A look without the lock may be wrong, which does no harm. */
	if (!__atomic_load_n(&d->n, __ATOMIC_RELAXED))
		return 0;
	lock_take(&d->lock);
	n = min_size(n, d->n);
	d->n -= n;
	for (size_t i = 0; i < n; i++)
		ready[i] = d->ready[d->n + i];
	lock_drop(&d->lock);
	return n;
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
	/* With one life the bin's slab goes to the arena. */
	for (unsigned i = 0; heir && lease_lives > 1 && i < tcache_bins; i++) {
		struct tcache_bin *from = t->bin[i], *to = heir->bin[i];

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
	if (t != &tcache_none)
		arena_leave(t->arena);
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
	for (unsigned i = 0; i < tcache_bins; i++) {
		entries += lease_lives > 1 ? room_of(i) : 0;
		lock_reset(&depots[i].lock);
	}
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
		t->bin[i][0].size = t->bin[i][1].size = slot_classes.class[i].size;
		if (lease_lives == 1)
			continue;
		t->bin[i][0].ready = stack;
		t->bin[i][0].room = room_of(i);
		t->bin[i][0].fill = FILL_FIRST;
		stack += t->bin[i][0].room;
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
	arena_join(t->arena);
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

/* One life: the bin gets a slab, for chunks that last or others. */
static size_t fill_from_slab(
	struct arena *arena, struct tcache_bin *bin, unsigned class, bool lasting)
{
	uint32_t first;
	struct lease *l = arena_take_slab(arena, (uint8_t) class, lasting, &first);

	if (!l)
		return 0;
	bin->next = lease_chunk(l, first);
	bin->end = lease_chunk(l, l->n_chunks);
	bin->life = &l->life[first];
	bin->n_chunks = l->n_chunks;
	return l->n_chunks - first;
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

/* The next chunks of the bin's slab, the lowest address on top. */
static size_t walk_slab(struct tcache_bin *bin)
{
	struct lease *l = bin->slab;
	size_t n = min_size(bin->fill, l->n_chunks - bin->walked);

	for (size_t i = 0; i < n; i++) {
		size_t index = bin->walked + n - 1 - i;

		bin->ready[i].pointer = tcache_make_ready(l, index);
		bin->ready[i].life = &l->life[index];
	}
	bin->walked += (uint16_t)n;
	/* Once the last chunk is handed out the lease can die at any time. */
	if (bin->walked == l->n_chunks)
		bin->slab = NULL;
	return n;
}

/* Whatever slots jemalloc prefers. */
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

		/* Another thread may have parked what was there, and its struct be anything now. */
		if (!l || l->class != class || l->run != run)
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

/* Many lives: what other threads left, a slab that died as a whole, or what jemalloc gives. */
static size_t fill_ready(struct arena *arena, struct tcache_bin *bin, unsigned class, bool bound)
{
	size_t n = depot_get(class, bin->ready, (bin->room + 1) / 2);

	if (!n && !bin->slab) {
		bin->slab = arena_take_spare(arena, (uint8_t) class);
		bin->walked = 0;
	}
	if (!n)
		n = bin->slab ? walk_slab(bin) : fill_from_slots(arena, bin, class, bound);
	bin->n = (uint32_t)n;
	bin->fill = (uint16_t)min_size((size_t)bin->fill * 2, bin->room);
	return n;
}

/* Fills the empty bin that serves a site. False when memory is out. */
static bool tcache_fill(struct tcache *t, unsigned class, uint8_t site)
{
	bool brief = site_brief[class][site];
	struct tcache_bin *bin = &t->bin[class][brief];
	size_t n;

	n = lease_lives == 1 ? fill_from_slab(t->arena, bin, class, !brief)
	                     : fill_ready(t->arena, bin, class, t == tcache_self);
	t->begun += n;
	t->taken_bytes += (int64_t)(n * bin->size);
	tcache_publish(t);
	if (unlikely(__atomic_load_n(&reclaim.due, __ATOMIC_RELAXED)))
		reclaim_sweep();
	return n > 0;
}

void *tcache_take(struct tcache *t, unsigned class, uintptr_t caller)
{
	void *p = tcache_pop(t, class, caller);

	/* What is learnt meanwhile may be that the site is served by another bin, as empty. */
	while (!p && tcache_fill(t, class, site_of(caller)))
		p = tcache_pop(t, class, caller);
	return p;
}

/* Gives chunks back to jemalloc. */
static void give_back(const struct ready *ready, size_t n, size_t size, bool cached)
{
	for (size_t i = 0; i < n; i++) {
		uintptr_t address = mte_untag(ready[i].pointer);
		struct lease *l = space_lease_at(address);

		slot_give((char *)l->run->slots + (address - l->base), size, cached);
	}
}

/* Makes a bin forget its @n oldest chunks. */
static void drop_oldest(struct tcache *t, struct tcache_bin *bin, size_t n)
{
	bin->n -= (uint32_t)n;
	for (size_t i = 0; i < bin->n; i++)
		bin->ready[i] = bin->ready[i + n];
	t->taken_bytes -= (int64_t)(n * bin->size);
	t->begun -= n; /* counted again by who gets them */
}

void tcache_spill(struct tcache *t, unsigned class)
{
	struct tcache_bin *bin = t->bin[class];
	size_t n = bin->n / 2;
	size_t kept = depot_put(class, bin->ready, n);

	give_back(bin->ready + kept, n - kept, bin->size, t == tcache_self);
	drop_oldest(t, bin, n);
	tcache_publish(t);
}

void *tcache_last_resort(unsigned class, uintptr_t caller)
{
	struct tcache *t;
	void *p = NULL;

	lock_take(&last_resort.lock);
	t = last_resort.tcache;
	if (t)
		p = tcache_take(t, class, caller);
	lock_drop(&last_resort.lock);
	return p;
}

/* The slots of a bin's slab that were not walked go back to jemalloc. */
static void leave_slab(struct tcache_bin *bin, bool cached)
{
	struct lease *l = bin->slab;
	uintptr_t slot, end;

	if (!l)
		return;
	bin->slab = NULL;
	slot = l->run->slots + (size_t)bin->walked * bin->size;
	end = l->run->slots + (size_t)l->n_chunks * bin->size;
	/* The last one may be the end of the run, and the lease be another's. */
	for (; slot < end; slot += bin->size)
		slot_give((void *)slot, bin->size, cached);
}

/* What a bin has ready goes back to where it can be used: its slab, or jemalloc. */
static void flush_bin(struct tcache *t, struct tcache_bin *bin)
{
	size_t left = (bin->end - bin->next) / bin->size;

	give_back(bin->ready, bin->n, bin->size, t == tcache_self);
	drop_oldest(t, bin, bin->n);
	if (lease_lives > 1)
		leave_slab(bin, t == tcache_self);
	if (!left)
		return;
	t->taken_bytes -= (int64_t)(bin->end - bin->next);
	t->begun -= left;
	arena_give_partial(t->arena, space_lease_at(bin->next));
	bin->next = bin->end;
}

void tcache_flush(struct tcache *t)
{
	for (unsigned i = 0; i < tcache_bins; i++) {
		flush_bin(t, &t->bin[i][0]);
		flush_bin(t, &t->bin[i][1]);
	}
	tcache_publish(t);
}

void tcache_trim(void)
{
	struct ready ready[ROOM_MOST];
	size_t n;

	for (unsigned i = 0; i < tcache_bins; i++)
		while ((n = depot_get(i, ready, ROOM_MOST)) > 0)
			give_back(ready, n, slot_classes.class[i].size, true);
}

void tcache_publish(struct tcache *t)
{
	uint64_t begun = t->begun;

	for (unsigned i = 0; lease_lives > 1 && i < tcache_bins; i++) {
		begun += t->bin[i][0].ended;
		t->bin[i][0].ended = 0;
	}
	add_u64(&vatalloc_stats.lives_used, begun);
	add_u64(&vatalloc_stats.chunks_exhausted, t->dead_chunks);
	add_u64(&vatalloc_stats.bytes_exhausted, t->dead_bytes);
	reclaim_add_live(t->taken_bytes - (int64_t)t->dead_bytes);
	reclaim_add_dead((int64_t)t->dead_bytes);
	t->begun = t->dead_chunks = t->dead_bytes = 0;
	t->taken_bytes = 0;
}

void tcache_fork_prepare(void)
{
	lock_take(&last_resort.lock);
	for (unsigned i = 0; i < tcache_bins; i++)
		lock_take(&depots[i].lock);
}

void tcache_fork_parent(void)
{
	for (unsigned i = 0; i < tcache_bins; i++)
		lock_drop(&depots[i].lock);
	lock_drop(&last_resort.lock);
}

void tcache_fork_child(void)
{
	for (unsigned i = 0; i < tcache_bins; i++)
		lock_reset(&depots[i].lock);
	lock_reset(&last_resort.lock);
}
