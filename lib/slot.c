/* SPDX-License-Identifier: MIT */
#include "slot.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "meta.h"
#include "os.h"
#include "run.h"
#include "util.h"

/* More of jemalloc's public API under its new names; jemalloc.h would declare the old ones. */
extern int slot_mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
extern int slot_mallctlnametomib(const char *name, size_t *mib, size_t *mib_len);
extern int slot_mallctlbymib(
	const size_t *mib, size_t mib_len, void *old, size_t *old_size, void *new, size_t new_size);
extern void *slot_mallocx(size_t size, int flags);
extern size_t slot_nallocx(size_t size, int flags);
extern void slot_sdallocx(void *p, size_t size, int flags);
extern const char *slot_malloc_conf_2_conf_harder;

/* What jemalloc calls instead of mmap(2) and the like: the build renames those, too. */
void *slot_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
char *slot_getenv(const char *name);
ssize_t slot_readlink(const char *path, char *buf, size_t size);
int slot_key_create(pthread_key_t *key, void (*destructor)(void *));
int slot_key_set(pthread_key_t key, const void *value);
double slot_exp(double x);
double slot_log(double x);
double slot_round(double x);

enum {
	FLAG_TCACHE_NONE = 1 << 8, /* MALLOCX_TCACHE_NONE */
};

/* Packets of the "experimental.*" calls, jemalloc 5.3. */
struct batch_packet {
	void **slots;
	size_t n;
	size_t size;
	int flags;
};

struct arena_packet {
	extent_hooks *hooks;
	bool metadata_use_hooks;
};

struct slot_classes slot_classes;

static void thread_ends(void *arg);

/* jemalloc's part of a thread. */
static __thread struct {
	void *value;     /* of its key */
	bool armed;      /* ours is set */
	bool ended;      /* the destructor has been called */
	unsigned rounds; /* of destructors */
} thread;

static struct {
	bool untouched;
	size_t batch_mib[4], batch_mib_len;
	pthread_key_t key;
	void (*destructor)(void *); /* of jemalloc's key */
	void (*at_thread_end)(void);
} own;

void slot_configure_untouched(void)
{
	/* Unless it has started, under the settings of the heap that could not. */
	own.untouched = !own.destructor;
}

int slot_configure(bool tcache, void (*at_thread_end)(void))
{
	own.at_thread_end = at_thread_end;
	if (pthread_key_create(&own.key, thread_ends))
		return -EAGAIN;
		/* Runs that are empty go back to the hooks at once. */
#define SETTINGS                                                                                   \
	"narenas:1,percpu_arena:disabled,retain:false,dirty_decay_ms:0,muzzy_decay_ms:0,"          \
	"background_thread:false,thp:never,metadata_thp:disabled,lg_extent_max_active_fit:0,"
	slot_malloc_conf_2_conf_harder =
		tcache ? SETTINGS "tcache:true,tcache_max:1048576" : SETTINGS "tcache:false";
#undef SETTINGS
	return 0;
}

/* jemalloc's metadata is vatalloc's metadata, and named so. */
void *slot_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *map = mmap(addr, len, prot, flags, fd, offset);

	if (map != MAP_FAILED && !own.untouched)
		os_name(map, len, OS_META);
	return map;
}

/* MALLOC_CONF and /etc/malloc.conf are meant for the jemalloc of the program, not for this one. */
char *slot_getenv(const char *name)
{
	(void)name;
	return NULL;
}

ssize_t slot_readlink(const char *path, char *buf, size_t size)
{
	(void)path;
	(void)buf;
	(void)size;
	errno = ENOENT;
	return -1;
}

/*
 * Only jemalloc's heap profiler does such arithmetic, and nobody can switch it on: see
 * slot_getenv(). So the library need not need libm.
 */
double slot_exp(double x)
{
	(void)x;
	abort();
}

double slot_log(double x)
{
	(void)x;
	abort();
}

double slot_round(double x)
{
	(void)x;
	abort();
}

/*
 * jemalloc has a pthread key whose destructor takes down what it has of a thread. After that the
 * thread gets slots from arena 0 only, which is none of ours; but programs still allocate in the
 * destructors of their own keys. So the key is ours, and its destructor waits for the last round.
 */
int slot_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	if (own.untouched)
		return pthread_key_create(key, destructor);
	own.destructor = destructor;
	return 0;
}

int slot_key_set(pthread_key_t key, const void *value)
{
	if (own.untouched)
		return pthread_setspecific(key, value);
	thread.value = (void *)value;
	if (thread.armed)
		return 0;
	thread.armed = true;
	return pthread_setspecific(own.key, &own);
}

static void thread_ends(void *arg)
{
	if (++thread.rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(own.key, arg);
		return;
	}
	own.at_thread_end();
	thread.ended = true;
	own.destructor(thread.value);
}

static int read_number(const char *name, unsigned index, size_t *ret_value, size_t bytes)
{
	size_t mib[5], mib_len = 5, value = 0;

	if (slot_mallctlnametomib(name, mib, &mib_len))
		return -ENOSYS;
	if (mib_len > 3)
		mib[2] = index;
	if (slot_mallctlbymib(mib, mib_len, &value, &bytes, NULL, 0))
		return -ENOSYS;
	*ret_value = value;
	return 0;
}

/* Rounded up; exact for every multiple of the size below 4 GiB / size. */
static uint32_t inverse_of(size_t size)
{
	return (uint32_t)((((uint64_t)1 << 32) + size - 1) / size);
}

/* Reads one small class; those below a granule are left out. */
static int read_class(unsigned bin)
{
	struct size_class *sc = &slot_classes.class[slot_classes.n];
	size_t size, n, slab;

	if (read_number("arenas.bin.0.size", bin, &size, sizeof(size_t)) < 0 ||
		read_number("arenas.bin.0.nregs", bin, &n, sizeof(uint32_t)) < 0 ||
		read_number("arenas.bin.0.slab_size", bin, &slab, sizeof(size_t)) < 0)
		return -ENOSYS;
	if (size < MTE_GRANULE)
		return 0;
	if (size % MTE_GRANULE || slab % LEASE_PAGE || slab > LEASE_SHARED_MAX || size * n > slab ||
		slot_classes.n == SLOT_CLASSES)
		return -ENOSYS;
	sc->size = (uint32_t)size;
	sc->n_chunks = (uint32_t)n;
	sc->slab = (uint32_t)slab;
	sc->inverse = inverse_of(size);
	slot_classes.n++;
	slot_classes.small_max = size;
	slot_classes.slab_max = max_size(slot_classes.slab_max, slab);
	return 0;
}

/* Adds a class that jemalloc has no slabs for. False when there is no room for more. */
static bool add_class(size_t size)
{
	if (slot_classes.n == SLOT_CLASSES)
		return false;
	slot_classes.class[slot_classes.n++] =
		(struct size_class){.size = (uint32_t)size, .inverse = inverse_of(size)};
	return true;
}

int slot_init(size_t slab_chunk_max)
{
	size_t n, page;

	if (read_number("arenas.nbins", 0, &n, sizeof(unsigned)) < 0 ||
		read_number("arenas.page", 0, &page, sizeof(size_t)) < 0)
		return -ENOSYS;
	slot_classes.page = page;
	slot_classes.page_shift = (unsigned)__builtin_ctzl(page);
	for (unsigned bin = 0; bin < n; bin++)
		if (read_class(bin) < 0)
			return -ENOSYS;
	for (size_t size = slot_size(slot_classes.small_max + 1, 1);
		size <= slab_chunk_max && add_class(size); size = slot_size(size + 1, 1))
		;
	own.batch_mib_len = 4;
	if (slot_mallctlnametomib("experimental.batch_alloc", own.batch_mib, &own.batch_mib_len))
		return -ENOSYS;
	return 0;
}

int slot_arena_new(unsigned *ret_arena)
{
	struct arena_packet packet = {.hooks = &run_hooks, .metadata_use_hooks = false};
	size_t len = sizeof(*ret_arena);
	unsigned arena;

	if (slot_mallctl("experimental.arenas_create_ext", &arena, &len, &packet, sizeof(packet)))
		return -ENOMEM;
	*ret_arena = arena;
	return 0;
}

int slot_arena_bind(unsigned arena)
{
	return slot_mallctl("thread.arena", NULL, NULL, &arena, sizeof(arena)) ? -ENOMEM : 0;
}

/* MALLOCX_ALIGN(). */
static int align_flag(size_t align)
{
	return align > 1 ? __builtin_ctzl(align) : 0;
}

/* MALLOCX_ARENA(), and no cache: that holds slots of the arena that the thread is bound to. */
static int arena_flag(unsigned arena)
{
	return arena == SLOT_BOUND ? 0 : (int)((arena + 1) << 20) | FLAG_TCACHE_NONE;
}

size_t slot_size(size_t size, size_t align)
{
	return slot_nallocx(max_size(size, MTE_GRANULE), align_flag(align));
}

uint8_t slot_class(size_t size)
{
	uint8_t class = 0;

	while (slot_classes.class[class].size < size)
		class ++;
	return class;
}

void *slot_take(size_t size, size_t align, unsigned arena)
{
	if (unlikely(thread.ended))
		return NULL;
	return slot_mallocx(max_size(size, MTE_GRANULE), align_flag(align) | arena_flag(arena));
}

size_t slot_take_batch(void **slots, size_t n, size_t size, unsigned arena)
{
	struct batch_packet packet = {
		.slots = slots, .n = n, .size = size, .flags = arena_flag(arena)};
	size_t filled = 0, len = sizeof(filled);

	if (unlikely(thread.ended) || slot_mallctlbymib(own.batch_mib, own.batch_mib_len, &filled,
					      &len, &packet, sizeof(packet)))
		return 0;
	return filled;
}

/* The class whose slabs are used for @class. */
static const struct size_class *with_slabs(const struct size_class *class)
{
	return class->n_chunks ? class : &slot_classes.class[slot_class(slot_classes.page)];
}

void *slot_take_slab(const struct size_class *class, unsigned arena)
{
	const struct size_class *sc = with_slabs(class);
	size_t bytes = sc->n_chunks * sizeof(void *);
	void **slots = meta_alloc(bytes);
	void *first = NULL;
	size_t n;

	if (!slots)
		return NULL;
	/* Asked for as many slots as a slab has, jemalloc fills a new slab and hands it over. */
	n = slot_take_batch(slots, sc->n_chunks, sc->size, arena);
	if (n == sc->n_chunks &&
		(char *)slots[n - 1] == (char *)slots[0] + (n - 1) * (size_t)sc->size) {
		first = slots[0];
	} else {
		for (size_t i = 0; i < n; i++)
			slot_give(slots[i], sc->size, false);
	}
	meta_free(slots, bytes);
	return first;
}

void slot_give(void *slot, size_t size, bool cached)
{
	slot_sdallocx(slot, size, cached ? 0 : FLAG_TCACHE_NONE);
}

void slot_give_slab(void *first, const struct size_class *class)
{
	const struct size_class *sc = with_slabs(class);

	for (size_t i = 0; i < sc->n_chunks; i++)
		slot_give((char *)first + i * sc->size, sc->size, false);
}

void slot_flush(void)
{
	slot_mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
}
