/* SPDX-License-Identifier: MIT */
/* util: arithmetic, atomics and the lock, the few words every file here shares. */
#pragma once

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/single_threaded.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* For the slow half of a function whose fast half should save no registers for it. */
#define NOINLINE      __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))

static_assert(sizeof(void *) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	"vatalloc is for 64-bit little-endian Linux");

/* @align is a power of two. */
static inline uint64_t round_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) & ~(align - 1);
}

static inline uint64_t round_down(uint64_t n, uint64_t align)
{
	return n & ~(align - 1);
}

static inline size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline size_t max_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* A bijection in which every input bit moves every output bit. */
static inline uint64_t mix64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

/*
 * Counters that several threads share. While there is one thread a plain addition does, at a
 * fifth of the price; glibc keeps the flag.
 */
static inline uint32_t add_u32(uint32_t *counter, uint32_t n)
{
	if (__libc_single_threaded)
		return *counter += n;
	return __atomic_add_fetch(counter, n, __ATOMIC_ACQ_REL);
}

static inline uint64_t add_u64(uint64_t *counter, uint64_t n)
{
	if (__libc_single_threaded)
		return *counter += n;
	return __atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
}

static inline uint64_t read_u64(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/*
 * A lock. Locks are taken in this order: last resort (tcache) -> depots -> jemalloc's own -> run ->
 * arena -> blocks -> history -> space -> meta. jemalloc calls back through its extent hooks, so
 * only the first may be held while it is called.
 */
struct lock {
	pthread_mutex_t mutex;
};

#define LOCK_INIT                                                                                  \
	{                                                                                          \
		PTHREAD_MUTEX_INITIALIZER                                                          \
	}

static inline void lock_take(struct lock *l)
{
	pthread_mutex_lock(&l->mutex);
}

static inline void lock_drop(struct lock *l)
{
	pthread_mutex_unlock(&l->mutex);
}

/* In a fork's child: whoever held the lock is not there any more. */
static inline void lock_reset(struct lock *l)
{
	l->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
