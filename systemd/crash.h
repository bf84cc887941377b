/* SPDX-License-Identifier: MIT */
/*
 * crash: one crash report, a set of fields of a journal entry.
 *
 * Written by the crashing process itself, or by the reporter in its place; read by vatallocctl.
 * What the fields mean is told in vatallocctl(1).
 *
 * Anybody may send the journal anything. Which process and unit an entry of a process is about is
 * taken from the fields that journald adds, which no sender can set; an entry that claims to be
 * about somebody else (the reporter's) counts only if root sent it. All text of a crash that was
 * read has been through text_clean.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-journal.h>

#define CRASH_MESSAGE_ID     "ed3f568b47eb4501ae44d15dc645b4f3"
#define EXHAUSTED_MESSAGE_ID "54b553d653484e94b696af1778565e9d"
#define THROTTLED_MESSAGE_ID "3e1dbaca9eb04c27b4ea12d1fc0dade2"

enum crash_field {
	CRASH_KIND,
	CRASH_ACCESS,
	CRASH_ADDRESS,
	CRASH_POINTER_TAG,
	CRASH_MEMORY_TAG,
	CRASH_CHUNK,
	CRASH_SIZE,
	CRASH_OFFSET,
	CRASH_LIFE,
	CRASH_CURRENT_LIFE,
	CRASH_LIVES,
	CRASH_MODE,
	CRASH_SI_CODE,
	CRASH_PROCESS_PID,
	CRASH_TID,
	CRASH_THREAD,
	CRASH_PROGRAM,
	CRASH_PC,
	CRASH_MODULE,
	CRASH_MODULE_OFFSET,
	CRASH_BUILD_ID,
	CRASH_BACKTRACE,
	CRASH_VERSION,
	CRASH_SOURCE,
	CRASH_FIELDS,
};

struct crash {
	char *field[CRASH_FIELDS]; /* NULL where a field does not apply */
	char *message;		   /* one line */
	char *unit;		   /* NULL outside of units */
	char *user_unit;	   /* of a user's manager, NULL for a system unit */
	char *host;		   /* only of a crash that was read */
	char *boot;		   /* likewise, its boot ID */
	uint64_t time;		   /* µs since 1970 */
	pid_t pid;
};

/* Frees what is in it and empties it. */
void crash_free(struct crash *crash);

/* "VATALLOC_KIND" for CRASH_KIND. */
const char *crash_field_name(enum crash_field field);

/* "kind" for CRASH_KIND, as it is called in JSON. */
const char *crash_field_key(enum crash_field field);

/* Sets a field to formatted text, replacing what it had. -ENOMEM. */
int crash_set(struct crash *crash, enum crash_field field, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads the journal's current entry. -EPERM for one that is forged, -EBADMSG if it is no report. */
int crash_read(sd_journal *journal, struct crash *ret);

/*
 * What crashes with the same cause have in common, across processes, boots and machines: 12 hex
 * digits that depend on the kind, the program and where in the code it happened.
 */
void crash_id(const struct crash *crash, char ret[static 13]);

/*
 * Reads the form in which a process writes its report to stderr where it cannot reach the journal,
 * "vatalloc: KIND: ..." and further lines that start so. Of several the last one counts. Fills in
 * what the text tells; -EBADMSG if there is no report in it.
 */
int crash_parse(const char *text, struct crash *ret);

/* Sends a report about another process to the journal, which needs root. */
int crash_send(const struct crash *crash);

/* Calls @found with each frame of the backtrace, which is cut off at the first line that is none.
 */
struct crash_frame {
	uint64_t pc;
	uint64_t offset; /* the address in the module's file, as addr2line(1) takes it */
	char *module;	 /* a path, "" if unknown */
	char *build_id;	 /* hex digits, "" if unknown */
};
int crash_for_each_frame(const struct crash *crash,
	int (*found)(const struct crash_frame *frame, void *context), void *context);
