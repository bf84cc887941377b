/* SPDX-License-Identifier: MIT */
/*
 * dump: a core dump as systemd-coredump tells the journal of it, and what else the journal has
 * about that process at that time.
 *
 * The process had a say in nearly all of it: what its memory was mapped to, its environment, what
 * it wrote. dump_is_genuine tells whether it was systemd-coredump that told it.
 */
#pragma once

#include "crash.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-journal.h>

#define DUMP_MESSAGE_ID "fc2e22bc6ee647b6b90729ab34a250b1" /* systemd-coredump's */

struct dump {
	char *unit, *user_unit; /* NULL outside of units */
	char *program;		/* a path, NULL if unknown */
	char *maps;		/* /proc/PID/maps, NULL if unknown */
	char *environment;	/* a variable a line, NULL if unknown */
	char *file;		/* with the core dump, NULL if there is none */
	char *message;		/* with the stack, if it was looked at */
	char *boot;
	pid_t pid;
	int signal;
	long uid;      /* of the entry's sender */
	uint64_t time; /* of the entry, µs since 1970 */
};

/* Reads the journal's current entry. -EBADMSG for one without a PID or a signal. */
int dump_read(sd_journal *journal, struct dump *ret);

void dump_free(struct dump *dump);

/*
 * Whether systemd-coredump sent the current entry, which @dump was read from. @coredump_uid is the
 * user that it runs as. May take two seconds to find out.
 */
bool dump_is_genuine(sd_journal *journal, const struct dump *dump, long coredump_uid);

/*
 * The library was mapped. Its writable data, with the memory without a file that follows it, was
 * from *@ret_start to *@ret_end.
 */
bool dump_find_library(const struct dump *dump, uint64_t *ret_start, uint64_t *ret_end);

/*
 * The address lies in memory that the library manages; @space_size is how much it reserved, 0 if
 * unknown.
 */
bool dump_in_heap(const struct dump *dump, uint64_t address, uint64_t space_size);

/* Which file an instruction is from, and its address in there; the caller frees the path. */
bool dump_find_module(const struct dump *dump, uint64_t pc, char **ret_path, uint64_t *ret_offset);

/* The process was told not to report errors. */
bool dump_is_silenced(const struct dump *dump);

/* 1 if the process reported the crash itself, 0 if not. */
int dump_reported_itself(const struct dump *dump);

/* The report that the process wrote to its standard error. -ENOENT if there is none. */
int dump_read_stderr(const struct dump *dump, struct crash *ret);
