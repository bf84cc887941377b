/* SPDX-License-Identifier: MIT */
/*
 * engine jemalloc (Vatalloc-j): jemalloc decides which slot, vatalloc decides which address.
 *
 * malloc: slot -> run -> lease, bound if there is none -> address, with the tag of the current
 * life.
 *
 * free: address -> lease -> chunk; its life ends. With lives left the chunk is tagged for the next
 * one and made ready again; exhausted it is withheld, and when every chunk of the lease is, the
 * lease is retired and its run's slots are free for another.
 */
#include "engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "block.h"
#include "bootstrap.h"
#include "fault.h"
#include "foreign.h"
#include "history.h"
#include "meta.h"
#include "mode.h"
#include "options.h"
#include "os.h"
#include "reclaim.h"
#include "report.h"
#include "run.h"
#include "site.h"
#include "slot.h"
#include "space.h"
#include "stats.h"
#include "tcache.h"
#include "text.h"

enum {
	SHRINK_LEAST = 2,            /* a realloc to less than 1/SHRINK_LEAST of a chunk moves it */
	GROW_MORE_MAX = 1 << 20,     /* bytes up to which a chunk that grows again gets more room */
	MOVE_LEAST = 2 * BLOCK_SIZE, /* bytes from which a realloc moves pages */
	SLOTS_SHARE = 16,            /* slot space is this part of a large lease space, */
	SLOTS_TIMES = 16,            /* and so many times a small one */
};

static const size_t SLOTS_ENOUGH = (size_t)1 << 40;

static enum {
	STATE_NEW,
	STATE_STARTING, /* our own start allocates */
	STATE_READY,
	STATE_OFF, /* jemalloc has the heap to itself */
} state;

static void fork_prepare_outer(void)
{
	tcache_fork_prepare();
}

static void fork_parent_outer(void)
{
	tcache_fork_parent();
}

static void fork_child_outer(void)
{
	tcache_fork_child();
}

/* In the order of the locks, see util.h. */
static void fork_prepare(void)
{
	run_fork_prepare();
	arena_fork_prepare();
	block_fork_prepare();
	history_fork_prepare();
	space_fork_prepare();
	meta_fork_prepare();
}

static void fork_parent(void)
{
	meta_fork_parent();
	space_fork_parent();
	history_fork_parent();
	block_fork_parent();
	arena_fork_parent();
	run_fork_parent();
}

static void fork_child(void)
{
	meta_fork_child();
	space_fork_child();
	history_fork_child();
	block_fork_child();
	arena_fork_child();
	run_fork_child();
}

/*
 * Slots have to hold the live heap, which is not as large as what passes through lease space. But a
 * short lease has the slots of a whole slab, which with pages of 64 KiB is up to half a MiB.
 */
static size_t slots_wanted(void)
{
	return max_size(space.size / SLOTS_SHARE, min_size(space.size * SLOTS_TIMES, SLOTS_ENOUGH));
}

/* False: something that the heap needs is not to be had, and jemalloc must do without us. */
static bool start_leases(void)
{
	lease_lives = mode_lives();
	tag_init(mode_has_tags());
	os.mte = mode_has_tags();
	reclaim_init(options.granularity);
	if (space_init(options.space) < 0 || run_reserve(slots_wanted()) < 0)
		return false;
	/*
	 * fork(2) must find jemalloc's locks taken before ours, because its hooks take ours, and
	 * handlers run last come first: ours are registered before jemalloc starts and registers
	 * its own. The one lock under which we call jemalloc is registered after.
	 */
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	if (slot_configure(lease_lives > 1, tcache_end) < 0 ||
		slot_init(lease_lives == 1 ? TCACHE_MAX : 0) < 0 || run_init() < 0)
		return false;
	tcache_init(fault_thread_begin, fault_thread_end);
	pthread_atfork(fork_prepare_outer, fork_parent_outer, fork_child_outer);
	return true;
}

static void start(void)
{
	state = STATE_STARTING;
	os_init();
	options_init();
	mode_init();
	if (vatalloc_stats.mode != VATALLOC_MODE_OFF && !start_leases()) {
		say("no address space for the heap, running in mode 'off'", NULL);
		mode_give_up();
	}
	if (vatalloc_stats.mode == VATALLOC_MODE_OFF) {
		slot_configure_untouched();
		state = STATE_OFF;
		return;
	}
	state = STATE_READY;
}

void engine_start(void)
{
	if (state == STATE_NEW)
		start();
}

/* While starting; starts, if need be. */
static bool too_early(void)
{
	engine_start();
	return unlikely(state < STATE_READY);
}

static void *out_of_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

/* --- allocation --- */

static void *begin_life(struct lease *l, size_t index)
{
	uintptr_t p = tcache_make_ready(l, index);

	l->life[index] |= LIFE_LIVE;
	return (void *)p;
}

/* How a chunk that does not come through a bin is wanted. */
struct wish {
	size_t size;
	size_t align;  /* bytes, a power of two */
	size_t offset; /* bytes into a page where it begins, or LEASE_ANY_OFFSET */
	bool fresh;    /* large: on new addresses, with untouched pages */
	uint8_t site;
};

/* The lease of a large slot, by the wish. */
static struct lease *bind_large(struct run *run, const struct wish *wish, size_t bytes)
{
	struct lease *l = run->lease;

	/* The run's last use may have been another, or its chunk not as wished. */
	if (l && (l->class != CLASS_LARGE || l->chunk_size != bytes || wish->fresh ||
			 l->base & (wish->align - 1))) {
		run->lease = NULL;
		arena_park(run->arena, l);
		l = NULL;
	}
	return l
	               ?: arena_bind_large(
				  run, bytes, wish->align, wish->offset, wish->fresh, wish->site);
}

/* A chunk that is large, or of a small class that is not cached; its life has not begun. */
static bool take_chunk(const struct wish *wish, struct lease **ret_lease, size_t *ret_index)
{
	size_t bytes = slot_size(wish->size, wish->align);
	struct tcache *t = tcache_get();
	unsigned slot_arena = SLOT_BOUND;
	struct lease *l;
	struct run *run;
	size_t index = 0;
	void *slot;

	if (!bytes || bytes > PTRDIFF_MAX)
		return false;
	if (t == &tcache_none) {
		struct arena *arena = arena_next();

		if (!arena)
			return false;
		slot_arena = arena->slot_arena;
	}
	slot = slot_take(wish->size, wish->align, slot_arena);
	if (!slot)
		return false;
	run = run_of(slot);
	if (bytes > slot_classes.small_max) {
		run->large = slot;
		l = bind_large(run, wish, bytes);
	} else {
		uint8_t class = slot_class(bytes);

		index = ((uintptr_t)slot - run->slots) * slot_classes.class[class].inverse >> 32;
		l = __atomic_load_n(&run->lease, __ATOMIC_ACQUIRE);
		if (!l || l->class != class || l->run != run)
			l = arena_bind(run, class);
	}
	if (!l) {
		slot_give(slot, bytes, false);
		return false;
	}
	add_u64(&vatalloc_stats.lives_used, 1);
	reclaim_add_live((int64_t)bytes);
	if (unlikely(__atomic_load_n(&reclaim.due, __ATOMIC_RELAXED)))
		reclaim_sweep();
	*ret_lease = l;
	*ret_index = index;
	return true;
}

/* @ret_zeroed may be NULL: whether the memory is known to be zeroes. */
static void *malloc_uncached(size_t size, size_t align, uintptr_t caller, bool *ret_zeroed)
{
	const struct wish wish = {
		.size = size, .align = align, .offset = LEASE_ANY_OFFSET, .site = site_of(caller)};
	struct lease *l;
	size_t index;

	if (!take_chunk(&wish, &l, &index))
		return out_of_memory();
	if (ret_zeroed)
		*ret_zeroed = l->zeroed && !(l->life[index] & LIFE_COUNT);
	return begin_life(l, index);
}

static NOINLINE void *malloc_slow(size_t size, uintptr_t caller)
{
	struct tcache *t;
	unsigned class;
	void *p;

	if (unlikely(too_early()))
		return bootstrap_alloc(size, MTE_GRANULE);
	if (unlikely(state == STATE_OFF))
		return slot_malloc(size) ?: out_of_memory();
	if (size > tcache_max)
		return malloc_uncached(size, 1, caller, NULL);
	t = tcache_get();
	class = tcache_class_of(size);
	if (t == &tcache_none)
		p = tcache_last_resort(class, caller) ?: bootstrap_alloc(size, MTE_GRANULE);
	else
		p = tcache_take(t, class, caller);
	return p ?: out_of_memory();
}

void *engine_malloc(size_t size, uintptr_t caller)
{
	if (likely(size <= TCACHE_MAX)) {
		void *p = tcache_pop(tcache_self, tcache_class_of(size), caller);

		if (likely(p))
			return p;
	}
	return malloc_slow(size, caller);
}

void *engine_calloc(size_t size, uintptr_t caller)
{
	bool zeroed = false;
	void *p;

	if (too_early())
		return bootstrap_alloc(size, MTE_GRANULE);
	if (state == STATE_OFF)
		return slot_calloc(1, size) ?: out_of_memory();
	if (size <= tcache_max)
		p = engine_malloc(size, caller);
	else
		p = malloc_uncached(size, 1, caller, &zeroed);
	return p && !zeroed ? memset(p, 0, size) : p;
}

void *engine_memalign(size_t align, size_t size, uintptr_t caller)
{
	size_t bytes;

	if (too_early())
		return bootstrap_alloc(size, align);
	if (state == STATE_OFF)
		return slot_memalign(align, size) ?: out_of_memory();
	if (align <= MTE_GRANULE)
		return engine_malloc(size, caller);
	/* The small class that jemalloc takes has chunks that are all aligned. */
	bytes = slot_size(size, align);
	if (bytes && bytes <= min_size(tcache_max, slot_classes.small_max))
		return engine_malloc(bytes, caller);
	return malloc_uncached(size, align, caller, NULL);
}

/* --- the end of a life --- */

/*
 * What follows is written so that the common free calls nothing: each rare case is the last call of
 * a function, and returns true for it.
 */

/* The last chunk of a lease is exhausted: its addresses are history, its run's slots are free. */
static NOINLINE bool end_lease(struct lease *l)
{
	struct run *run = l->run;
	uint8_t class = l->class;
	size_t size = l->chunk_size;

	if (tcache_get() != &tcache_none)
		tcache_publish(tcache_self);
	__atomic_store_n(&run->lease, NULL, __ATOMIC_RELEASE);
	if (lease_lives == 1)
		arena_lose(run->arena, l);
	lease_retire(l);
	if (class == CLASS_LARGE)
		slot_give(run->large, size, tcache_self != &tcache_none);
	else if (class < tcache_bins)
		arena_spare_run(run, class);
	else
		slot_give_slab((void *)run->slots, &slot_classes.class[class]);
	return true;
}

/* Tag 0 for a chunk that nobody will have again, as far as it still has pages. */
static NOINLINE void tag_dead(const struct lease *l, size_t index)
{
	uintptr_t chunk = lease_chunk(l, index), from = chunk;

	if (l->untagged)
		return;
	if (l->emptied)
		from = max_size(from, l->start + round_down(l->bytes, BLOCK_SIZE)); /* at least */
	if (from < chunk + l->chunk_size)
		tag_memory(from, chunk + l->chunk_size - from, TAG_DEAD);
}

/* Whether the exhausted chunk was the last; then the lease is the caller's to end. */
static inline bool was_last(struct lease *l)
{
	uint32_t n_chunks = l->n_chunks;

	/* Once it is counted the lease is another thread's to end, if that counts the last. */
	return unlikely(add_u32(&l->exhausted, 1) == n_chunks);
}

/* exhaust() where there is more to do, or no tcache to count in. */
static NOINLINE bool exhaust_fully(struct lease *l, size_t index, size_t size)
{
	struct tcache *t = tcache_get();

	if (tags_on())
		tag_dead(l, index);
	if (t != &tcache_none) {
		t->dead_chunks++;
		t->dead_bytes += size;
	} else {
		add_u64(&vatalloc_stats.chunks_exhausted, 1);
		add_u64(&vatalloc_stats.bytes_exhausted, size);
		reclaim_add_dead((int64_t)size);
		reclaim_add_live(-(int64_t)size);
	}
	if (reclaim.units)
		reclaim_exhaust_chunk(l, index);
	return was_last(l) ? end_lease(l) : true;
}

/* A chunk has used its last life. */
static inline bool exhaust(struct lease *l, size_t index, size_t size)
{
	struct tcache *t = tcache_self;

	if (unlikely(t == &tcache_none || tags_on() || reclaim.units))
		return exhaust_fully(l, index, size);
	t->dead_chunks++;
	t->dead_bytes += size;
	return was_last(l) ? end_lease(l) : true;
}

static inline bool push(struct tcache_bin *bin, uintptr_t pointer, uint8_t *life)
{
	bin->ready[bin->n].pointer = pointer;
	bin->ready[bin->n++].life = life;
	bin->ended++;
	return true;
}

/* reuse() where the bin is full, or there is none: half of it, or the chunk, goes away. */
static NOINLINE bool reuse_beyond(struct lease *l, size_t index, uintptr_t pointer)
{
	struct tcache *t = tcache_get();
	struct run *run = l->run;
	char *slot = l->class == CLASS_LARGE ? run->large : (char *)run->slots;

	if (l->class < tcache_bins && t != &tcache_none) {
		if (t->bin[l->class][0].n == t->bin[l->class][0].room)
			tcache_spill(t, l->class);
		return push(&t->bin[l->class][0], pointer, &l->life[index]);
	}
	reclaim_add_live(-(int64_t)l->chunk_size);
	slot_give(slot + index * l->chunk_size, l->chunk_size, t != &tcache_none);
	return true;
}

/* A chunk has lives left: it is ready for the next, as @pointer. */
static inline bool reuse(struct lease *l, size_t index, uintptr_t pointer)
{
	struct tcache_bin *bin = &tcache_self->bin[l->class][0];

	if (unlikely(bin->n == bin->room))
		return reuse_beyond(l, index, pointer);
	return push(bin, pointer, &l->life[index]);
}

/*
 * Ends the life of the chunk that the program has at @p. False, and nothing done: there is no such
 * chunk, it is not live, or @p does not carry its tag.
 */
static ALWAYS_INLINE bool end_life(void *p)
{
	uintptr_t address = mte_untag((uintptr_t)p), next = address;
	struct lease *l = space_lease_at(address);
	size_t index, size;
	uint8_t old, ended;

	if (unlikely(!l || !lease_index(l, address, &index)))
		return false;
	size = l->chunk_size;
	old = l->life[index];
	if (unlikely(!(old & LIFE_LIVE)))
		return false;
	ended = (uint8_t)((old & ~(LIFE_LIVE | LIFE_GROWN)) + 1);
	if (tags_on()) {
		unsigned start = tag_start(address, index);

		if (unlikely(mte_pointer_tag((uintptr_t)p) != tag_at(start, old & LIFE_COUNT)))
			return false;
		next = mte_with_tag(address, tag_at(start, ended & LIFE_COUNT));
	}
	if (unlikely(!life_change(&l->life[index], old, ended)))
		return false;
	if (life_is_over(l, ended))
		return exhaust(l, index, size);
	if (tags_on())
		tag_memory(address, size, mte_pointer_tag(next));
	return reuse(l, index, next);
}

/* end_life() for all but the common free. */
static NOINLINE bool end_life_of(void *p)
{
	return end_life(p);
}

static NOINLINE void free_elsewhere(void *p)
{
	if (!p || bootstrap_has(p))
		return;
	if (state == STATE_OFF)
		slot_free(p);
	else if (!foreign_free(p))
		fault_bad_free(p, "free");
}

static NOINLINE void free_nothing(void *p)
{
	fault_bad_free(p, "free");
}

void engine_free(void *p)
{
	if (unlikely(!space_covers(mte_untag((uintptr_t)p))))
		free_elsewhere(p);
	else if (unlikely(!end_life(p)))
		free_nothing(p);
}

/* --- changing size --- */

/* The live chunk at @p, as end_life() would take it; NULL when there is none. */
static struct lease *live_chunk(const void *p, size_t *ret_index)
{
	uintptr_t address = mte_untag((uintptr_t)p);
	struct lease *l;
	size_t index;

	if (!space_covers(address))
		return NULL;
	l = space_lease_at(address);
	if (!l || !lease_index(l, address, &index) || !(l->life[index] & LIFE_LIVE))
		return NULL;
	if (tags_on() && mte_pointer_tag((uintptr_t)p) != lease_tag(l, index, l->life[index]))
		return NULL;
	*ret_index = index;
	return l;
}

/*
 * Moves a large chunk to new addresses with its pages. The old ones are spent, whatever lives they
 * had: their memory is gone. NULL when it cannot be done this way.
 */
static void *move_pages(char *p, struct lease *l, size_t size, uintptr_t caller)
{
	const size_t offset = l->base - l->start;
	const struct wish wish = {.size = size,
		.align = 1,
		.offset = offset & (LEASE_PAGE - 1),
		.fresh = true,
		.site = site_of(caller)};
	size_t index, blocks, moved, kept;
	struct lease *to;
	char *q;

	if (!take_chunk(&wish, &to, &index))
		return NULL;
	blocks = min_size(l->bytes, to->bytes) >> BLOCK_SHIFT;
	if ((os.mte && l->untagged != to->untagged) || to->base - to->start != offset)
		blocks = 0;
	blocks = space_move((l->start - space.base) >> BLOCK_SHIFT,
		(to->start - space.base) >> BLOCK_SHIFT, blocks, to->untagged);
	q = begin_life(to, index);
	moved = blocks ? (blocks << BLOCK_SHIFT) - offset : 0;
	kept = min_size(l->chunk_size, to->chunk_size);
	if (moved < kept)
		memcpy(q + moved, p + moved, kept - moved);
	to->zeroed = false;
	if (blocks) {
		l->emptied = true;
		l->life[0] = (uint8_t)((l->life[0] & ~LIFE_COUNT) | (l->lives - 1));
		l->life[0] &= (uint8_t)~LIFE_LIVE;
		l->life[0]++;
		exhaust(l, 0, l->chunk_size);
	} else {
		end_life_of(p);
	}
	return q;
}

/*
 * The size for a chunk that grows to @size. What grew before will grow again, and every move costs
 * a copy to memory that is in no cache: the next one has half as much room again.
 */
static size_t grown_size(size_t size, size_t chunk_size, uint8_t life)
{
	if (!(life & LIFE_GROWN) || size > GROW_MORE_MAX)
		return size;
	return max_size(size, chunk_size + chunk_size / 2);
}

/* realloc() of a chunk of ours, at @p. */
static void *resize(void *p, struct lease *l, size_t index, size_t size, uintptr_t caller)
{
	size_t bytes = size <= tcache_max ? tcache_size_of(size) : slot_size(size, 1);
	size_t chunk_size = l->chunk_size, to;
	bool grows = bytes > chunk_size;
	struct lease *grown;
	void *q;

	if (!bytes)
		return out_of_memory();
	if (!grows && bytes >= chunk_size / SHRINK_LEAST)
		return p;
	if (min_size(bytes, chunk_size) >= MOVE_LEAST) {
		q = move_pages(p, l, size, caller);
		if (q)
			return q;
	}
	q = grows ? engine_malloc(grown_size(size, chunk_size, l->life[index]), caller) : NULL;
	q = q ?: engine_malloc(size, caller);
	if (!q)
		return grows ? NULL : p;
	grown = grows ? live_chunk(q, &to) : NULL;
	if (grown)
		grown->life[to] |= LIFE_GROWN;
	memcpy(q, p, min_size(chunk_size, size));
	if (!end_life_of(p))
		fault_bad_free(p, "realloc");
	return q;
}

void *engine_realloc(void *p, size_t size, uintptr_t caller)
{
	size_t index, old;
	struct lease *l;
	void *q;

	if (bootstrap_has(p)) {
		q = engine_malloc(size, caller);
		return q ? memcpy(q, p, min_size(bootstrap_usable_size(p), size)) : NULL;
	}
	if (state == STATE_OFF)
		return slot_realloc(p, size) ?: out_of_memory();
	if (!space_covers(mte_untag((uintptr_t)p))) {
		if (!foreign_usable_size(p, &old))
			fault_bad_free(p, "realloc");
		q = engine_malloc(size, caller);
		if (q) {
			memcpy(q, p, min_size(old, size));
			foreign_free(p);
		}
		return q;
	}
	l = live_chunk(p, &index);
	if (!l)
		fault_bad_free(p, "realloc");
	return resize(p, l, index, size, caller);
}

/* --- the rest --- */

size_t engine_usable_size(const void *p)
{
	struct lease *l;
	size_t index, size;

	if (!p)
		return 0;
	if (bootstrap_has(p))
		return bootstrap_usable_size(p);
	if (state == STATE_OFF)
		return slot_malloc_usable_size((void *)p);
	l = live_chunk(p, &index);
	if (l)
		return l->chunk_size;
	return !space_covers(mte_untag((uintptr_t)p)) && foreign_usable_size(p, &size) ? size : 0;
}

size_t engine_good_size(size_t size, size_t align)
{
	return too_early() ? size : slot_size(size, align);
}

bool engine_trim(void)
{
	uint64_t before = read_u64(&vatalloc_stats.dead_resident);

	if (too_early() || state == STATE_OFF)
		return false;
	if (tcache_self != &tcache_none) {
		tcache_flush(tcache_self);
		tcache_trim();
		slot_flush();
	}
	arena_trim();
	reclaim_everything();
	return read_u64(&vatalloc_stats.dead_resident) < before;
}
