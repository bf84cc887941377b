/*
 * stats: the counters of one process, readable from outside.
 *
 * The library exports one object, `vatalloc_stats`. A reader (vatallocctl) finds the symbol in the
 * ELF file that /proc/PID/maps names, checks `magic`, `version` and `size`, and copies the struct
 * out of /proc/PID/mem. Fields are only ever appended, and `version` changes when a field's meaning
 * does. Every counter is monotonic unless it says "now".
 *
 * Threads add up what they do in their own tcache and publish it when a tcache is refilled, so
 * a counter can lag by what one thread does between two refills.
 */
#pragma once

#include <stdint.h>

#define VATALLOC_STATS_MAGIC   "vatalloc"
#define VATALLOC_STATS_VERSION 1

/* How the process's heap is protected; the values are part of the exported struct. */
enum vatalloc_mode {
	VATALLOC_MODE_UNSET = 0,   /* the library is mapped, but its heap was never used */
	VATALLOC_MODE_OFF = 1,     /* jemalloc, untouched */
	VATALLOC_MODE_COUNT = 2,   /* 15 lives without tags: measures, does not protect */
	VATALLOC_MODE_ADDRESS = 3, /* one life per address */
	VATALLOC_MODE_SYNC = 4,    /* MTE, every bad access traps at once */
	VATALLOC_MODE_ASYNC = 5,   /* MTE, a bad access is noticed at the next kernel entry */
	VATALLOC_MODE_MTE = 6,     /* MTE, each CPU's preferred mode (both bits set) */
};

/* Why the process runs in another mode than the one it was asked for. */
enum vatalloc_fallback {
	VATALLOC_FALLBACK_NONE = 0,
	VATALLOC_FALLBACK_NO_MTE = 1,     /* the CPU or the kernel has no MTE */
	VATALLOC_FALLBACK_TAGGED_ABI = 2, /* sysctl abi.tagged_addr_disabled=1, or seccomp */
	VATALLOC_FALLBACK_NO_SPACE = 3,   /* no lease space could be reserved: the heap is off */
};

struct vatalloc_stats {
	char magic[8];           /* VATALLOC_STATS_MAGIC, no terminating NUL */
	uint32_t version;        /* VATALLOC_STATS_VERSION */
	uint32_t size;           /* bytes of this struct */
	char library[16];        /* the library's version, NUL-terminated */
	uint32_t mode;           /* enum vatalloc_mode, in force */
	uint32_t mode_requested; /* enum vatalloc_mode; VATALLOC_MODE_UNSET for auto */
	uint32_t fallback;       /* enum vatalloc_fallback */
	uint32_t lives;          /* lives of a chunk: 1 or 15 */
	uint64_t granularity;    /* bytes; 0 for auto */

	uint64_t lives_used;       /* chunks handed out by malloc */
	uint64_t chunks_exhausted; /* chunks withheld for good */
	uint64_t bytes_exhausted;  /* bytes of those chunks */
	uint64_t bytes_retired;    /* address space retired for good */
	uint64_t bytes_recycled;   /* retired address space leased a second time */
	uint64_t space_size;       /* bytes of lease space reserved */
	uint64_t space_used;       /* bytes of it leased so far */
	uint64_t space_left;       /* now: bytes never leased yet */
	uint64_t live_bytes;       /* now: bytes of live chunks */
	uint64_t dead_resident;    /* now: bytes exhausted but not yet given back */
	uint64_t leases_bound;     /* leases made */
	uint64_t leases_retired;   /* leases retired */
	uint64_t leases_parked;    /* now: leases with lives left and no run */
	uint64_t blocks_live;      /* now: 2 MiB blocks of lease space in use */
	uint64_t faults;           /* reports made (a process seldom survives one) */
	uint64_t foreign_frees;    /* pointers of libc's heap passed on to libc */
};

/* The one instance; `extern` for the library itself, found by name from outside. */
extern struct vatalloc_stats vatalloc_stats;
