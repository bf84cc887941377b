/* SPDX-License-Identifier: MIT */
/*
 * invariant once|counted|tagged MIB THREADS: no heap address is ever handed out twice with the same
 * tag. Hand out MIB mebibytes of objects of all kinds and sizes, in threads that come and go and
 * free each other's objects, and remember for every 16 bytes of each what it was given as:
 *
 *	once       (mode address) its address, which must be new
 *	counted    (mode count) its address, which may come 15 times
 *	tagged     (modes sync, async) its address and tag, a new pair; and the tag is not 0
 *
 * The memory of that is a shadow outside the heap, with one leaf for each GiB of address space.
 */
#include "check.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

#define GRANULE	     ((size_t)16)
#define LEAF_SHIFT   30
#define LEAVES	     ((size_t)1 << (48 - LEAF_SHIFT))
#define LEAF_ENTRIES ((size_t)1 << (LEAF_SHIFT - 4))
#define LIVES	     15

static enum { ONCE, COUNTED, TAGGED } rule;

static void *leaves[LEAVES];
static size_t objects_given;

/* --- the shadow --- */

static void *leaf_of(uintptr_t address)
{
	size_t size = rule == ONCE ? LEAF_ENTRIES / 8 : LEAF_ENTRIES * 2;
	void **place = &leaves[address >> LEAF_SHIFT], *none = NULL, *leaf;

	CHECK(address >> 48 == 0, "address %#zx", (size_t)address);
	leaf = __atomic_load_n(place, __ATOMIC_ACQUIRE);
	if (leaf)
		return leaf;
	leaf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	CHECK(leaf != MAP_FAILED, "no memory for the shadow");
	if (__atomic_compare_exchange_n(place, &none, leaf, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return leaf;
	munmap(leaf, size);
	return none;
}

/* One bit a granule; up to 64 at once. */
static void mark_once(uintptr_t address, uintptr_t end)
{
	while (address < end) {
		uint64_t *words = (uint64_t *)leaf_of(address);
		size_t entry = (address & ((UINT64_C(1) << LEAF_SHIFT) - 1)) / GRANULE;
		size_t n = (end - address + GRANULE - 1) / GRANULE;
		uint64_t bits;

		if (n > 64 - entry % 64)
			n = 64 - entry % 64;
		bits = (n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1) << entry % 64;
		bits &= __atomic_fetch_or(&words[entry / 64], bits, __ATOMIC_RELAXED);
		CHECK(!bits, "an address is given again, among the %zu bytes at %#zx", n * GRANULE,
			(size_t)address);
		address += n * GRANULE;
	}
}

/* 16 bits a granule: a counter, or a set of tags. */
static void mark_granule(uintptr_t address, unsigned tag)
{
	uint16_t *entries = (uint16_t *)leaf_of(address);
	uint16_t *entry = &entries[(address & ((UINT64_C(1) << LEAF_SHIFT) - 1)) / GRANULE];

	if (rule == COUNTED) {
		unsigned lives = __atomic_add_fetch(entry, 1, __ATOMIC_RELAXED);

		CHECK(lives <= LIVES, "address %#zx is given the %uth time", (size_t)address,
			lives);
	} else {
		unsigned given = __atomic_fetch_or(entry, (uint16_t)(1 << tag), __ATOMIC_RELAXED);

		CHECK(tag, "address %#zx is given with tag 0", (size_t)address);
		CHECK(!(given >> tag & 1),
			"address %#zx is given again with tag %u; tags so far: %#x",
			(size_t)address, tag, given);
	}
}

/*
 * SIZE bytes of P from byte SKIP on are handed out. Where counting each granule would take too
 * long, in large objects, one at the front of each page stands for the page.
 */
static void mark(const void *p, size_t skip, size_t size)
{
	uintptr_t address = address_of(p), end = address + size;

	CHECK(address % GRANULE == 0, "address %#zx", (size_t)address);
	CHECK(rule == TAGGED || tag_of(p) == 0, "pointer %p", p);
	address += skip;
	if (rule == ONCE) {
		mark_once(address, end);
	} else if (size <= 32 * KIB) {
		for (; address < end; address += GRANULE)
			mark_granule(address, tag_of(p));
	} else {
		if (address % 4096)
			mark_granule(address, tag_of(p));
		for (address = (address + 4095) & ~(uintptr_t)4095; address < end; address += 4096)
			mark_granule(address, tag_of(p));
	}
	if (!skip)
		__atomic_add_fetch(&objects_given, 1, __ATOMIC_RELAXED);
}

/* --- the heap's work --- */

#define N_SMALL 32768
#define N_LARGE 64
#define N_HUGE	8

static void *slots[N_SMALL + N_LARGE + N_HUGE];

struct work {
	uint64_t seed;
	size_t bytes; /* still to be handed out by this thread */
	int forks;    /* fork a child half way through */
};

/* A new object is remembered, and says in its first and last bytes whose it is. */
static void *received(void *p, size_t size)
{
	size_t usable;

	p = hide(p);
	CHECK(p, "no memory for %zu bytes", size);
	usable = malloc_usable_size(p);
	CHECK(usable >= size && usable >= 16, "%p: usable size %zu of %zu", p, usable, size);
	mark(p, 0, usable);
	((void **)p)[0] = p;
	((char *)p)[usable - 1] = 1;
	return p;
}

static void look_at(void *p)
{
	CHECK(((void **)p)[0] == p, "object %p was written over", p);
	CHECK(malloc_usable_size(p) == 16 || ((char *)p)[malloc_usable_size(p) - 1] == 1,
		"the end of object %p was written over", p);
}

/* One in a thousand large, one in fifty thousand huge, so that each kind makes a good part of the
 * bytes. */
static size_t choose(struct work *w, unsigned *ret_slot)
{
	unsigned kind = (unsigned)(next_random(&w->seed) % 50000);

	if (kind == 0) {
		*ret_slot = N_SMALL + N_LARGE + (unsigned)(next_random(&w->seed) % N_HUGE);
		return MIB + next_random(&w->seed) % (64 * MIB);
	}
	if (kind <= 50) {
		*ret_slot = N_SMALL + (unsigned)(next_random(&w->seed) % N_LARGE);
		return 16 * KIB + random_size(&w->seed, 2 * MIB);
	}
	*ret_slot = (unsigned)(next_random(&w->seed) % N_SMALL);
	return random_size(&w->seed, kind <= 5000 ? 32 * KIB : KIB) + sizeof(void *);
}

static void *resized(void *p, size_t size)
{
	size_t before = malloc_usable_size(p);
	void *old = hide(p), *new = hide(realloc(p, size));

	CHECK(new, "no memory for %zu bytes", size);
	if (new != old) {
		CHECK(((void **)new)[0] == old, "realloc lost the contents");
		return received(new, size);
	}
	/* The same object; if it grew, by memory that was never handed out. */
	if (malloc_usable_size(new) > before)
		mark(new, before, malloc_usable_size(new));
	((char *)new)[malloc_usable_size(new) - 1] = 1;
	return new;
}

static void step(struct work *w)
{
	unsigned slot, what = (unsigned)(next_random(&w->seed) % 10);
	size_t size = choose(w, &slot);
	void *p;

	if (what < 2) {
		p = __atomic_exchange_n(&slots[slot], NULL, __ATOMIC_ACQ_REL);
		if (p) {
			look_at(p);
			p = resized(p, size);
		} else {
			p = received(malloc(size), size);
		}
	} else if (what == 2) {
		p = received(calloc(1, size), size);
	} else if (what == 3) {
		size_t alignment = GRANULE << next_random(&w->seed) % (slot < N_SMALL ? 9 : 18);

		p = received(aligned_alloc(alignment, size), size);
		CHECK(is_aligned(p, alignment), "%p, alignment %zu", p, alignment);
	} else {
		p = received(malloc(size), size);
	}
	w->bytes -= size < w->bytes ? size : w->bytes;
	p = __atomic_exchange_n(&slots[slot], p, __ATOMIC_ACQ_REL);
	if (p) {
		look_at(p);
		free(p);
	}
	if (next_random(&w->seed) % 500000 == 0)
		malloc_trim(0);
}

/* The child goes on from the same heap: what either of them is given must be new to itself. */
static void fork_and_go_on(struct work *w)
{
	size_t bytes = w->bytes;
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		/* Free everything once; but what others were just freeing is theirs. */
		w->bytes /= 4;
		while (w->bytes)
			step(w);
		_exit(0);
	}
	while (w->bytes > bytes - bytes / 4)
		step(w);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child's status is %#x",
		(unsigned)status);
}

static void *work(void *arg)
{
	struct work *w = (struct work *)arg;
	size_t half = w->bytes / 2;

	while (w->bytes) {
		step(w);
		if (w->forks && w->bytes < half) {
			w->forks = 0;
			fork_and_go_on(w);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	enum { ROUNDS = 8, MOST = 64 };
	struct work works[MOST];
	pthread_t threads[MOST];
	unsigned n;
	size_t bytes;
	double start = seconds();

	CHECK(argc == 4, "usage: invariant once|counted|tagged MIB THREADS");
	rule = strcmp(argv[1], "once") == 0	 ? ONCE
	       : strcmp(argv[1], "counted") == 0 ? COUNTED
						 : TAGGED;
	bytes = strtoul(argv[2], NULL, 10) * MIB;
	n = (unsigned)strtoul(argv[3], NULL, 10);
	CHECK(n > 0 && n <= MOST);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < n; i++)
			works[i] = (struct work){.seed = 1 + round * MOST + i,
				.bytes = bytes / n / ROUNDS,
				.forks = i == 0 && round % 4 == 1};
		/* One thread is the main thread, before there are any others. */
		for (unsigned i = 0; i < n && n > 1; i++)
			CHECK(pthread_create(&threads[i], NULL, work, &works[i]) == 0);
		if (n == 1)
			work(&works[0]);
		for (unsigned i = 0; i < n && n > 1; i++)
			CHECK(pthread_join(threads[i], NULL) == 0);
	}
	printf("%zu objects, %zu MiB, %.1f s\n", objects_given, bytes / MIB, seconds() - start);
	return 0;
}
