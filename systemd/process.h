/* SPDX-License-Identifier: MIT */
/*
 * process: one process seen through /proc, whether its heap is protected, and if not, why.
 *
 * The answer comes from the process's own memory and nothing else: which malloc the dynamic linker
 * found first, and the counters that the library exports. Where the library is not mapped, the
 * likeliest reason is looked for, the certain ones first.
 */
#pragma once

#include "../lib/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Why a process is or is not protected. Names and sentences: process_reason, process_describe. */
enum reason {
	REASON_PROTECTED,
	REASON_OUTDATED, /* protected, by a library that was replaced since */
	REASON_FALLBACK, /* protected, in another mode than the one asked for */

	/* The library does what was asked for, and that does not protect. */
	REASON_COUNT,
	REASON_OFF,

	/* Nothing can be said yet or at all. */
	REASON_STARTING, /* the program has not been executed yet, or has not called malloc yet */
	REASON_GONE,	 /* the process has ended */
	REASON_DENIED,	 /* this user may not look */

	REASON_NO_SPACE,	/* no address space could be reserved: the heap is off */
	REASON_OTHER_ALLOCATOR, /* another malloc is in front of the library's */
	REASON_VERSION,		/* counters of an unknown version */
	REASON_32_BIT,
	REASON_STATIC,
	REASON_SECURE, /* AT_SECURE: setuid, setgid, file capabilities, a security module */
	REASON_LIBC,   /* another C library */
	REASON_ENVIRONMENT,
	REASON_NOT_VISIBLE, /* the library is not in the process's file system */
	REASON_UNREADABLE,
	REASON_NOEXEC,
	REASON_CONFINED, /* probably: a security module's profile */
	REASON_UNKNOWN,
};

enum verdict {
	VERDICT_PROTECTED,
	VERDICT_ASKED_FOR, /* not protected, as the configuration says */
	VERDICT_UNDECIDED,
	VERDICT_NOT_PROTECTED,
};

struct process {
	pid_t pid;
	char *name;    /* the kernel's 15 characters; NULL where the process has gone */
	char *program; /* the path of the executable, NULL if unknown */
	enum reason reason;
	char *detail;		     /* what process_describe needs, or NULL */
	bool mapped;		     /* the library is */
	char *library;		     /* its path, NULL if not mapped */
	struct vatalloc_stats stats; /* all zero if not mapped */
};

/* Always fills @ret, if only with REASON_GONE or REASON_DENIED; -ENOMEM is the one error. */
int process_read(pid_t pid, struct process *ret);

/* All processes there are, in no order; the caller frees the list. Negative errno. */
int process_list(pid_t **ret, size_t *ret_n);

/* A quick look; false where this user may not look. */
bool process_has_library(pid_t pid);

void process_free(struct process *process);

enum verdict process_verdict(enum reason reason);

/* A word for programs, like "static". */
const char *process_reason(enum reason reason);

/* A sentence without a full stop for people; the caller frees it. -ENOMEM. */
int process_describe(const struct process *process, char **ret);

/* A word, like "sync". */
const char *process_mode(uint32_t mode);

/* Whether the program at @path, an ELF file, can be protected; REASON_PROTECTED if nothing is
 * wrong. */
enum reason process_check_program(const char *path);
