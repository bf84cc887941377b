/* SPDX-License-Identifier: MIT */
/*
 * os: everything the kernel is asked for, one function per need.
 *
 * A range is an address and a length in bytes, both multiples of the page size. Functions return 0
 * or a negative errno and never log. Nothing here is called on the common malloc or free: a system
 * call costs a microsecond, and one that touches page tables far more.
 *
 * The life of a range: reserved (PROT_NONE, costs nothing) -> open (readable and writable) ->
 * retired (PROT_NONE again, so that a touch traps). It never becomes a hole, or the kernel could
 * put a thread's stack under a dangling pointer.
 *
 * Neighbouring ranges of one state and one name share a VMA. Retiring maps anew instead of changing
 * the protection, because only a range that never held a page merges with its neighbours whatever
 * its history, and because it gives the page tables back as well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	OS_HUGE_SHIFT = 21,
	OS_HUGE = 1 << OS_HUGE_SHIFT, /* bytes of a huge page, and of a block */
};

/* What a mapping is for; its name in /proc/PID/maps is "[anon:vatalloc:...]". */
enum os_use {
	OS_LEASE,
	OS_UNTAGGED, /* lease space without PROT_MTE, for huge chunks */
	OS_SLOTS,
	OS_META,
};

struct os {
	size_t page;    /* bytes of a page, the kernel's own */
	bool mte;       /* ranges of OS_LEASE are opened with PROT_MTE */
	bool has_moves; /* MREMAP_DONTUNMAP works (Linux 5.7) */
};

struct iovec;

extern struct os os;

/* Reads the page size and the entropy of the process; the first call of all. */
void os_init(void);

/* The program is about to put itself behind a seccomp filter. */
void os_expect_filter(void);

/* Fills @buf with @len unpredictable bytes. Needs no system call to work, but uses getrandom(2). */
void os_random(void *buf, size_t len);

/*
 * Reserves @size bytes at a multiple of @align (a power of two), kept out of core dumps.
 * -ENOMEM where the address space or RLIMIT_AS does not hold it.
 */
int os_reserve(size_t size, size_t align, enum os_use use, void **ret_addr);

/* Makes a reserved or retired range readable, writable and part of core dumps. */
int os_open(void *addr, size_t len, enum os_use use);

/* Readable and writable memory, zeroed, at once; for metadata. */
int os_map(size_t size, enum os_use use, void **ret_addr);

/* Gives a range the name of its use, in /proc/PID/maps. */
void os_name(void *addr, size_t len, enum os_use use);

/* Asks for huge pages in a range (MADV_HUGEPAGE); a wish, so there is no error. */
void os_want_huge(void *addr, size_t len);

/* Asks for none: what is released of them would come back with one. */
void os_want_small(void *addr, size_t len);

/* Faults a range in at once, which costs a tenth of page by page; a wish, too. */
void os_populate(void *addr, size_t len);

/* Retires a range for good: gives its pages and page tables back, and every touch traps. */
int os_retire(void *addr, size_t len, enum os_use use);

/*
 * Gives the pages of a range back and makes it trap without another VMA: by guard markers, or with
 * MTE by tag 0, which is what fresh pages carry. Without either the range reads as zeroes.
 */
int os_release(void *addr, size_t len);

/*
 * os_release() for @n ranges, 64 at most. What each costs by itself is to tell all CPUs that its pages
 * are gone, so where the kernel knows how (Linux 6.14, 6.16 to do it well) and no seccomp filter may
 * object, that is done once for all.
 */
int os_release_all(const struct iovec *ranges, size_t n);

/* Gives the pages of a range back; it stays usable and reads as zeroes (with tag 0). */
int os_purge(void *addr, size_t len);

/*
 * Moves the pages of @from to the reserved range @to with mremap(2), without a copy or a fault.
 * @from stays mapped and empty; the caller retires it. After an error @to is as reserved.
 */
int os_move(void *from, void *to, size_t len);

/* The number of VMAs this process may have (vm.max_map_count), read once when first asked. */
unsigned long os_max_vmas(void);

/* The bytes of address space that RLIMIT_AS leaves, SIZE_MAX without a limit. */
size_t os_address_limit(void);
