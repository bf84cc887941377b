/* SPDX-License-Identifier: MIT */
#include "dump.h"
#include "auto.h"
#include "explain.h"
#include "map.h"
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* systemd's: a process of a unit has ended. */
#define EXIT_MESSAGE_ID "98e322203f7a4ed290d09fe03c09fe15"

static const uint64_t usec = 1000000; /* in a second */

enum {
	BEFORE_CRASH = 60, /* seconds before the dump in which other entries are looked for */
	AFTER_CRASH = 10,  /* and after: clocks are rounded */
	LINES_MAX = 500,   /* entries of the process that are looked through for what it said */
	FIELD_MAX = 64 << 20,
	CONFIRM_TIME = 2, /* seconds after a dump in which the manager must have spoken */
	CONFIRM_LOOKS = 10,
	CONFIRM_PAUSE = 200, /* ms between two looks for that */
};

static void auto_journal_cleanup(sd_journal **journal)
{
	sd_journal_close(*journal);
}
#define auto_journal __attribute__((cleanup(auto_journal_cleanup)))

void dump_free(struct dump *dump)
{
	free(dump->unit);
	free(dump->user_unit);
	free(dump->program);
	free(dump->maps);
	free(dump->environment);
	free(dump->file);
	free(dump->message);
	free(dump->boot);
	*dump = (struct dump){0};
}

/* A copy of a field; *ret stays as it is where there is none. */
static int get_field(sd_journal *journal, const char *name, char **ret)
{
	const void *data;
	size_t len, skip = strlen(name) + 1;
	char *copy;
	int r = sd_journal_get_data(journal, name, &data, &len);

	if (r == -ENOENT || (r >= 0 && len < skip))
		return 0;
	if (r < 0)
		return r;
	len -= skip;
	if (len > FIELD_MAX)
		len = FIELD_MAX;
	copy = strndup((const char *)data + skip, len);
	if (!copy)
		return -ENOMEM;
	free(*ret);
	*ret = copy;
	return 0;
}

static int get_number(sd_journal *journal, const char *name, long *ret)
{
	auto_free char *text = NULL;
	char *end;
	long n;
	int r = get_field(journal, name, &text);

	if (r < 0)
		return r;
	if (!text)
		return -EBADMSG;
	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || *end || !isdigit((unsigned char)*text))
		return -EBADMSG;
	*ret = n;
	return 0;
}

static bool has_field(sd_journal *journal, const char *name)
{
	const void *data;
	size_t len;

	return sd_journal_get_data(journal, name, &data, &len) >= 0;
}

static bool field_starts(sd_journal *journal, const char *name, const char *value)
{
	const void *data;
	size_t n, skip = strlen(name) + 1, len = strlen(value);

	return sd_journal_get_data(journal, name, &data, &n) >= 0 && n >= skip + len &&
	       !memcmp((const char *)data + skip, value, len);
}

static bool field_is(sd_journal *journal, const char *name, const char *value)
{
	const void *data;
	size_t n;

	return field_starts(journal, name, value) &&
	       sd_journal_get_data(journal, name, &data, &n) >= 0 &&
	       n == strlen(name) + 1 + strlen(value);
}

int dump_read(sd_journal *journal, struct dump *ret)
{
	struct dump dump = {0};
	long pid, signal;
	int r;

	if ((r = get_number(journal, "_UID", &dump.uid)) < 0 ||
		(r = get_number(journal, "COREDUMP_PID", &pid)) < 0 ||
		(r = get_number(journal, "COREDUMP_SIGNAL", &signal)) < 0 ||
		(r = get_field(journal, "COREDUMP_UNIT", &dump.unit)) < 0 ||
		(r = get_field(journal, "COREDUMP_USER_UNIT", &dump.user_unit)) < 0 ||
		(r = get_field(journal, "COREDUMP_EXE", &dump.program)) < 0 ||
		(r = get_field(journal, "COREDUMP_PROC_MAPS", &dump.maps)) < 0 ||
		(r = get_field(journal, "COREDUMP_ENVIRON", &dump.environment)) < 0 ||
		(r = get_field(journal, "COREDUMP_FILENAME", &dump.file)) < 0 ||
		(r = get_field(journal, "MESSAGE", &dump.message)) < 0 ||
		(r = get_field(journal, "_BOOT_ID", &dump.boot)) < 0 ||
		(r = sd_journal_get_realtime_usec(journal, &dump.time)) < 0) {
		dump_free(&dump);
		return r;
	}
	dump.pid = (pid_t)pid;
	dump.signal = (int)signal;
	*ret = dump;
	return 0;
}

bool dump_find_library(const struct dump *dump, uint64_t *ret_start, uint64_t *ret_end)
{
	const char *maps = dump->maps ? dump->maps : "";
	uint64_t start = 0, end = 0;
	bool found = false;
	struct map map;

	while (map_next(&maps, &map)) {
		if (map_is_library(&map)) {
			found = true;
			if (!map.writable)
				continue;
			start = start ? start : map.start;
			end = map.end;
		} else if (start && map.start == end && map.writable && !map.path[0]) {
			end = map.end;
		}
	}
	*ret_start = start;
	*ret_end = end;
	return found;
}

/*
 * The address lies in memory that the library manages. The kernel tells by name, if it is
 * configured to have names; otherwise the largest thing there is in a process is it: a row of
 * anonymous mappings without a gap, at least as large as the library says.
 */
bool dump_in_heap(const struct dump *dump, uint64_t address, uint64_t space_size)
{
	static const char name[] = "[anon:vatalloc:";
	const char *maps = dump->maps ? dump->maps : "";
	uint64_t start = 0, end = 0;
	bool inside = false;
	struct map map;

	while (map_next(&maps, &map)) {
		bool named = !strncmp(map.path, name, strlen(name));
		bool ours = !map.path[0] || named;

		if (named && address >= map.start && address < map.end)
			return true;
		if (!ours || map.start != end) {
			if (inside && end - start >= space_size)
				return space_size > 0;
			inside = false;
			start = map.start;
		}
		end = map.end;
		inside = inside || (ours && address >= map.start && address < map.end);
	}
	return inside && space_size && end - start >= space_size;
}

/*
 * Which file an instruction is from, and its address in there. A program that is linked for a fixed
 * address, all below 4 GiB, is where its file says.
 */
bool dump_find_module(const struct dump *dump, uint64_t pc, char **ret_path, uint64_t *ret_offset)
{
	char first[sizeof((struct map){0}.path)] = "";
	const char *maps = dump->maps ? dump->maps : "";
	uint64_t start = 0;
	struct map map;

	while (map_next(&maps, &map)) {
		char *path;

		if (!map.offset || strcmp(map.path, first)) {
			start = map.start;
			memcpy(first, map.path, sizeof(first));
		}
		if (pc < map.start || pc >= map.end)
			continue;
		if (map.path[0] != '/' || text_clean(map.path, strlen(map.path), false, &path) < 0)
			return false;
		*ret_path = path;
		*ret_offset = start >> 32 ? pc - start : pc;
		return true;
	}
	return false;
}

bool dump_is_silenced(const struct dump *dump)
{
	const char *options =
		dump->environment ? strstr(dump->environment, "VATALLOC_OPTIONS=") : NULL;
	size_t len = options ? strcspn(options, "\n") : 0;
	const char *found = options ? strstr(options, "on_fault=silent") : NULL;

	return found && found < options + len;
}

/* The journal at entries that match, positioned behind the last one of interest. */
static int open_journal(const char *first, const char *second, const char *third,
	const struct dump *dump, sd_journal **ret)
{
	auto_journal sd_journal *journal = NULL;
	char boot[64];
	int r;

	snprintf(boot, sizeof(boot), "_BOOT_ID=%s", dump->boot ? dump->boot : "");
	r = sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);
	if (r >= 0)
		r = sd_journal_add_match(journal, boot, 0);
	if (r >= 0)
		r = sd_journal_add_match(journal, first, 0);
	if (r >= 0)
		r = sd_journal_add_match(journal, second, 0);
	if (r >= 0 && third)
		r = sd_journal_add_match(journal, third, 0);
	if (r >= 0)
		r = sd_journal_seek_realtime_usec(journal, dump->time + AFTER_CRASH * usec);
	if (r < 0)
		return r;
	*ret = take(journal);
	return 0;
}

/* Entries of the process that crashed. */
static int open_entries(const struct dump *dump, const char *match, sd_journal **ret)
{
	char pid[32];

	snprintf(pid, sizeof(pid), "_PID=%d", (int)dump->pid);
	return open_journal(pid, match, NULL, dump, ret);
}

/* The entry is too old to be about this crash: the PID was somebody else's then. */
static bool is_older(sd_journal *journal, const struct dump *dump)
{
	uint64_t time;

	return sd_journal_get_realtime_usec(journal, &time) < 0 ||
	       time + BEFORE_CRASH * usec < dump->time;
}

int dump_reported_itself(const struct dump *dump)
{
	auto_journal sd_journal *journal = NULL;
	int r;

	r = open_entries(dump, "MESSAGE_ID=" CRASH_MESSAGE_ID, &journal);
	if (r >= 0)
		r = sd_journal_previous(journal);
	if (r <= 0)
		return r;
	return !is_older(journal, dump);
}

/* The manager has said that a process of the unit was ended by a signal, about that time. */
static bool unit_has_died(const struct dump *dump)
{
	auto_journal sd_journal *journal = NULL;
	auto_free char *unit = NULL;

	if (!dump->unit || asprintf(&unit, "UNIT=%s", dump->unit) < 0 ||
		open_journal("_PID=1", unit, "MESSAGE_ID=" EXIT_MESSAGE_ID, dump, &journal) < 0)
		return false;
	return sd_journal_previous(journal) > 0 && !is_older(journal, dump) &&
	       (field_is(journal, "EXIT_CODE", "dumped") ||
		       field_is(journal, "EXIT_CODE", "killed"));
}

/*
 * The kernel vouches for the sender's user and, by the control group, for its unit: nobody but root
 * can put a process into that slice. But journald looks the unit up after the fact, and
 * systemd-coredump ends as soon as it has sent the entry, so often there is none. Root and the user
 * that it runs as for the system's users are believed then. For others, whose user it takes on, the
 * manager must have seen the unit crash at that time: so whoever sends such an entry cannot invent
 * a crash.
 */
bool dump_is_genuine(sd_journal *journal, const struct dump *dump, long coredump_uid)
{
	if (has_field(journal, "_SYSTEMD_UNIT"))
		return field_starts(journal, "_SYSTEMD_UNIT", "systemd-coredump@") &&
		       field_is(journal, "_SYSTEMD_SLICE", "system-systemd\\x2dcoredump.slice");
	if (dump->uid == 0 || dump->uid == coredump_uid)
		return true;
	/* The manager may be a little later than the dump, but never much. */
	for (int i = 0; i < CONFIRM_LOOKS; i++) {
		struct timespec now;

		if (unit_has_died(dump))
			return true;
		clock_gettime(CLOCK_REALTIME, &now);
		if ((uint64_t)now.tv_sec * usec > dump->time + CONFIRM_TIME * usec)
			break;
		usleep(CONFIRM_PAUSE * 1000);
	}
	return false;
}

/* Puts @line in front of @text, which is replaced. */
static int prepend(char **text, const char *line, size_t len)
{
	char *joined;

	if (asprintf(&joined, "%.*s\n%s", (int)len, line, *text ? *text : "") < 0)
		return -ENOMEM;
	free(*text);
	*text = joined;
	return 0;
}

int dump_read_stderr(const struct dump *dump, struct crash *ret)
{
	static const char start[] = "MESSAGE=vatalloc: ";
	auto_journal sd_journal *journal = NULL;
	auto_free char *text = NULL, *explanation = NULL;
	struct crash crash;
	int r;

	r = open_entries(dump, "_TRANSPORT=stdout", &journal);
	for (int i = 0; r >= 0 && i < LINES_MAX && (r = sd_journal_previous(journal)) > 0; i++) {
		const void *data;
		size_t len;

		if (is_older(journal, dump))
			break;
		if (sd_journal_get_data(journal, "MESSAGE", &data, &len) < 0 ||
			len < strlen(start) || memcmp(data, start, strlen(start)))
			continue;
		r = prepend(
			&text, (const char *)data + strlen("MESSAGE="), len - strlen("MESSAGE="));
	}
	if (r < 0)
		return r;
	r = text ? crash_parse(text, &crash) : -ENOENT;
	if (r < 0)
		return r == -EBADMSG ? -ENOENT : r;
	/* Other things that the library says are no kinds of error. */
	if (explain_kind(crash.field[CRASH_KIND], &explanation) < 0) {
		crash_free(&crash);
		return -ENOENT;
	}
	*ret = crash;
	return 0;
}
