/* SPDX-License-Identifier: MIT */
/*
 * core: what a core dump says about the fault that made it.
 *
 * A core dump is what a process made of itself, possibly one that an attacker runs, and it may be
 * cut off anywhere. It is read once, from front to back, since it comes out of a decompressor: so
 * what is looked for must come in the order in which the kernel writes it, and other orders are
 * refused. No number in it decides how much memory is taken: every one is checked against a limit
 * of ours.
 */
#pragma once

#include "../lib/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes of a core dump that are looked at: a cost, not a size that matters. */
#define CORE_BYTES_MAX (16ull << 30)

/* Where the bytes come from. Both return a negative errno on failure. */
struct core_source {
	/* Reads up to @len bytes; 0 at the end. */
	ssize_t (*read)(void *context, void *buf, size_t len);
	/* Leaves out up to @len bytes, and returns how many; NULL: they are read instead. */
	int64_t (*skip)(void *context, uint64_t len);
	void *context;
};

struct core {
	bool has_signal;
	int signal, code;
	uint64_t address; /* with its tag, if the processor has tags */

	bool has_pc;
	uint64_t pc; /* of the thread that crashed */

	bool has_tag_control;
	uint64_t tag_control; /* as prctl(PR_GET_TAGGED_ADDR_CTRL) had it */

	bool has_memory_tag;
	unsigned memory_tag; /* of the granule at the address */

	bool has_stats;
	struct vatalloc_stats stats; /* the library's counters when it ended */
};

/*
 * Reads what there is. @data_start to @data_end is where the library's data was mapped, in which
 * its counters are looked for; none if equal. -EBADMSG for what is no core dump of a 64-bit
 * process; a dump that ends too early just says less.
 */
int core_read(
	const struct core_source *source, uint64_t data_start, uint64_t data_end, struct core *ret);

/* The address without its tag. */
uint64_t core_untag(uint64_t address);

/* A source of bytes in memory; @memory must live as long as the source. */
struct core_memory {
	const unsigned char *data;
	size_t len;
};
struct core_source core_from_memory(struct core_memory *memory);

/*
 * A source from a file as systemd-coredump stores it, plain or compressed by zstd; -EPROTONOSUPPORT
 * for other ways. Freed by core_file_close.
 */
struct core_file;
int core_file_open(const char *path, struct core_file **ret, struct core_source *ret_source);
void core_file_close(struct core_file *file);
