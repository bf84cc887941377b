/* SPDX-License-Identifier: MIT */
/*
 * report: one fault, told once.
 *
 * A report goes to the journal as one structured entry, in the native protocol, straight to
 * journald's socket: the entry then carries the service's own trusted _SYSTEMD_UNIT. Where that
 * cannot be had the same text goes to stderr. The socket is opened at start because the service may
 * chroot later; what is behind its number is checked before use, because services close descriptors
 * they do not know. https://systemd.io/JOURNAL_NATIVE_PROTOCOL/
 *
 * Everything here is async-signal-safe and uses no heap. A system call that is forbidden loses the
 * report, never the crash.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	REPORT_FRAMES = 32,
};

/* What is known of a fault. Optional parts have a flag. */
struct report {
	const char *kind;   /* "use-after-free" ... */
	const char *access; /* "read", "write", "free", "realloc", "unknown" */
	const char *detail; /* more words for the message, or NULL */
	bool has_address, has_chunk, has_lives, has_tags;
	uintptr_t address; /* untagged */
	unsigned pointer_tag, memory_tag;
	uintptr_t chunk; /* where the chunk begins, untagged */
	size_t size;     /* its bytes */
	ptrdiff_t offset;
	unsigned life;         /* of the pointer, from 1 */
	unsigned current_life; /* the chunk's newest */
	unsigned lives;
	bool freed; /* `life` is over */
	int si_code;
	uintptr_t pc; /* 0: the caller of the library */
	unsigned n_frames;
	uintptr_t frames[REPORT_FRAMES];
};

/* Opens the journal's socket if this process is a service, or if options say so. */
void report_init(void);

/* Tells of a fault. */
void report_fault(const struct report *r);

/* Tells that lease space has been used up: from now on addresses come again, or the end. */
void report_space_exhausted(size_t space, bool fatal);

void report_frames(struct report *r);
