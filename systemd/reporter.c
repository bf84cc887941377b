/* SPDX-License-Identifier: MIT */
/*
 * vatalloc-reporter: reports the crashes that the process could not report itself; see
 * vatalloc-reporter(8).
 *
 * It follows the journal for what systemd-coredump logs. A crash is reported if the process had the
 * library mapped, did not report it itself, and there is evidence that it was a heap error: the
 * report it wrote to stderr, or the fault as its core dump tells it. Everything the crashed process
 * had a say in, the core dump above all, is hostile until checked.
 */
#include "auto.h"
#include "core.h"
#include "crash.h"
#include "explain.h"
#include "map.h"
#include "text.h"
#include "throttle.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>
#include <time.h>
#include <unistd.h>

#define COREDUMP_MESSAGE_ID "fc2e22bc6ee647b6b90729ab34a250b1"
#define OWN_UNIT	    "vatalloc-reporter.service"

#ifndef PR_MTE_TCF_SYNC
#define PR_MTE_TCF_SYNC	 (1ul << 1)
#define PR_MTE_TCF_ASYNC (1ul << 2)
#endif
#ifndef SEGV_MTEAERR
#define SEGV_MTEAERR 8
#define SEGV_MTESERR 9
#endif

static const uint64_t second = 1000000;

enum {
	BEFORE_CRASH =
		60, /* seconds before the dump in which the process's own report is looked for */
	AFTER_CRASH = 10, /* and after: its clock is rounded */
	LINES_MAX = 500,  /* entries of the process that are looked through for what it said */
	FIELD_MAX = 64 << 20,
};

struct reporter {
	sd_journal *journal;
	struct throttle *throttle;
	char *state;	   /* the file with the cursor, NULL where nothing is kept */
	char *program;	   /* our own executable */
	long coredump_uid; /* of systemd-coredump, or 0 where there is no such user */
	bool debug;
};

/* A core dump as the journal has it. */
struct dump {
	char *unit, *user_unit, *program, *maps, *environment, *file, *message, *boot;
	pid_t pid;
	int signal;
	uint64_t time; /* of the entry */
};

static void say(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(int priority, const char *format, ...)
{
	va_list args;

	/* The manager takes the number off and gives it to the journal. */
	fprintf(stderr, "<%d>", priority);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static uint64_t now_usec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * second + now.tv_nsec / 1000;
}

static void auto_journal_cleanup(sd_journal **journal)
{
	sd_journal_close(*journal);
}
#define auto_journal __attribute__((cleanup(auto_journal_cleanup)))

/* The core dump in the journal ------------------------------------------------------------------
 */

static void dump_free(struct dump *dump)
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

static bool field_is(sd_journal *journal, const char *name, const char *value, size_t len)
{
	const void *data;
	size_t n, skip = strlen(name) + 1;

	return sd_journal_get_data(journal, name, &data, &n) >= 0 && n >= skip + len &&
	       !memcmp((const char *)data + skip, value, len);
}

static bool has_field(sd_journal *journal, const char *name)
{
	const void *data;
	size_t len;

	return sd_journal_get_data(journal, name, &data, &len) >= 0;
}

/*
 * Anybody may send an entry that looks like a core dump's. The kernel vouches for the sender's
 * user, which is root or the one systemd-coredump becomes for its work, and for the unit by the
 * control group: nobody but root can put a process into that slice. But journald looks the unit up,
 * and the sender may have ended by then: what has no unit at all is judged by the user alone.
 */
static bool is_genuine(const struct reporter *reporter, sd_journal *journal)
{
	static const char unit[] = "systemd-coredump@",
			  slice[] = "system-systemd\\x2dcoredump.slice";
	long uid;

	if (get_number(journal, "_UID", &uid) < 0 || (uid != 0 && uid != reporter->coredump_uid))
		return false;
	if (!has_field(journal, "_SYSTEMD_UNIT"))
		return true;
	return field_is(journal, "_SYSTEMD_UNIT", unit, strlen(unit)) &&
	       field_is(journal, "_SYSTEMD_SLICE", slice, strlen(slice));
}

static int read_dump(sd_journal *journal, struct dump *ret)
{
	struct dump dump = {0};
	long pid, signal;
	int r;

	if ((r = get_number(journal, "COREDUMP_PID", &pid)) < 0 ||
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

/* Where the library's writable data was mapped, with the memory without a file that follows it. */
static bool find_library(const char *maps, uint64_t *ret_start, uint64_t *ret_end)
{
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
static bool in_lease_space(const char *maps, uint64_t address, uint64_t space_size)
{
	static const char name[] = "[anon:vatalloc:";
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

/* What the process said -------------------------------------------------------------------------
 */

/* The journal at entries of the crashed process, positioned behind the last one of interest. */
static int open_entries(const struct dump *dump, const char *match, sd_journal **ret)
{
	auto_journal sd_journal *journal = NULL;
	char pid[32], boot[64];
	int r;

	snprintf(pid, sizeof(pid), "_PID=%d", (int)dump->pid);
	snprintf(boot, sizeof(boot), "_BOOT_ID=%s", dump->boot ? dump->boot : "");
	r = sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);
	if (r >= 0)
		r = sd_journal_add_match(journal, pid, 0);
	if (r >= 0)
		r = sd_journal_add_match(journal, boot, 0);
	if (r >= 0)
		r = sd_journal_add_match(journal, match, 0);
	if (r >= 0)
		r = sd_journal_seek_realtime_usec(journal, dump->time + AFTER_CRASH * second);
	if (r < 0)
		return r;
	*ret = take(journal);
	return 0;
}

/* The entry is too old to be about this crash: the PID was somebody else's then. */
static bool is_older(sd_journal *journal, const struct dump *dump)
{
	uint64_t time;

	return sd_journal_get_realtime_usec(journal, &time) < 0 ||
	       time + BEFORE_CRASH * second < dump->time;
}

/* 1 if the process reported the crash itself, 0 if not. */
static int reported_itself(const struct dump *dump)
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

/* The report that the process wrote to its standard error. -ENOENT if there is none. */
static int read_stderr(const struct dump *dump, struct crash *ret)
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

/* What the core dump tells ----------------------------------------------------------------------
 */

static int read_core(sd_journal *journal, const struct dump *dump, struct core *ret)
{
	uint64_t start, end;
	struct core_source source;
	int r;

	find_library(dump->maps, &start, &end);
	if (dump->file) {
		struct core_file *file;

		r = core_file_open(dump->file, &file, &source);
		if (r < 0)
			return r;
		r = core_read(&source, start, end, ret);
		core_file_close(file);
		return r;
	}
	/* With Storage=journal it is in the entry itself. */
	{
		struct core_memory memory;
		const void *data;
		size_t len, skip = strlen("COREDUMP=");

		r = sd_journal_get_data(journal, "COREDUMP", &data, &len);
		if (r < 0)
			return r;
		memory = (struct core_memory){(const unsigned char *)data + skip, len - skip};
		source = core_from_memory(&memory);
		return core_read(&source, start, end, ret);
	}
}

static const char *mode_of(const struct core *core)
{
	static const char *const names[] = {
		[VATALLOC_MODE_OFF] = "off",
		[VATALLOC_MODE_COUNT] = "count",
		[VATALLOC_MODE_ADDRESS] = "address",
		[VATALLOC_MODE_SYNC] = "sync",
		[VATALLOC_MODE_ASYNC] = "async",
		[VATALLOC_MODE_MTE] = "mte",
	};

	if (core->has_stats && core->stats.mode < lengthof(names) && names[core->stats.mode])
		return names[core->stats.mode];
	switch (core->has_tag_control ? core->tag_control & (PR_MTE_TCF_SYNC | PR_MTE_TCF_ASYNC)
				      : 0) {
	case PR_MTE_TCF_SYNC:
		return "sync";
	case PR_MTE_TCF_ASYNC:
		return "async";
	case PR_MTE_TCF_SYNC | PR_MTE_TCF_ASYNC:
		return "mte";
	default:
		return NULL;
	}
}

/* The kind of error that the core dump shows, NULL if it shows none. */
static const char *kind_of(const struct core *core, const struct dump *dump)
{
	unsigned pointer_tag = core->address >> 56 & 15;

	if (core->has_signal && core->signal == SIGSEGV) {
		if (core->code == SEGV_MTEAERR)
			return "asynchronous-fault";
		if (core->code == SEGV_MTESERR)
			return pointer_tag ? "tag-mismatch" : "untagged-pointer";
		if (core->code > 0 && in_lease_space(dump->maps, core_untag(core->address),
					      core->has_stats ? core->stats.space_size : 0))
			return "retired-lease";
		return NULL;
	}
	/* The library ends the process by abort() for an error that it finds itself. */
	if (dump->signal == SIGABRT && core->has_stats && core->stats.faults)
		return "unknown";
	return NULL;
}

/*
 * Which file an instruction is from, and its address in there. A program that is linked for a fixed
 * address, all below 4 GiB, is where its file says.
 */
static bool find_module(const char *maps, uint64_t pc, char **ret_path, uint64_t *ret_offset)
{
	char first[sizeof((struct map){0}.path)] = "";
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

/* The stack that systemd-coredump found, in our form; only the thread that crashed, its first one.
 */
static int read_backtrace(const struct dump *dump, struct crash *crash)
{
	static const char start[] = "Stack trace of thread";
	const char *line = dump->message ? strstr(dump->message, start) : NULL;
	int r = 0;

	line = line ? strchr(line, '\n') : NULL;
	for (int i = 0; line && r >= 0 && i < 64; i++) {
		const char *trace = crash->field[CRASH_BACKTRACE];
		auto_free char *module = NULL;
		uint64_t pc, offset = 0;

		if (sscanf(line, " #%*d 0x%" SCNx64, &pc) != 1)
			break;
		/* All but the innermost are return addresses, one past the call. */
		pc -= i > 0 && pc;
		if (find_module(dump->maps, pc, &module, &offset))
			r = crash_set(crash, CRASH_BACKTRACE, "%s%s#%d %#" PRIx64 " %s+%#" PRIx64,
				trace ? trace : "", trace ? "\n" : "", i, pc, module, offset);
		else
			r = crash_set(crash, CRASH_BACKTRACE, "%s%s#%d %#" PRIx64,
				trace ? trace : "", trace ? "\n" : "", i, pc);
		line = strchr(line + 1, '\n');
	}
	return r;
}

/* Fills in what the core dump tells, over nothing that is known already. */
static int add_core(struct crash *crash, const struct core *core, const struct dump *dump)
{
	const char *mode = mode_of(core);
	auto_free char *module = NULL;
	uint64_t offset;
	int r = 0;

	if (core->has_signal && core->signal == SIGSEGV) {
		bool has_address = core->code != SEGV_MTEAERR;

		r = crash_set(crash, CRASH_SI_CODE, "%d", core->code);
		if (r >= 0 && has_address && !crash->field[CRASH_ADDRESS])
			r = crash_set(crash, CRASH_ADDRESS, "%#" PRIx64, core_untag(core->address));
		if (r >= 0 && core->code == SEGV_MTESERR && !crash->field[CRASH_POINTER_TAG])
			r = crash_set(
				crash, CRASH_POINTER_TAG, "%d", (int)(core->address >> 56 & 15));
		if (r >= 0 && core->code == SEGV_MTESERR && core->has_memory_tag &&
			!crash->field[CRASH_MEMORY_TAG])
			r = crash_set(crash, CRASH_MEMORY_TAG, "%u", core->memory_tag);
	}
	if (r >= 0 && mode && !crash->field[CRASH_MODE])
		r = crash_set(crash, CRASH_MODE, "%s", mode);
	if (r >= 0 && core->has_stats) {
		auto_free char *version = NULL;

		r = text_clean(core->stats.library, strlen(core->stats.library), false, &version);
		if (r >= 0)
			r = crash_set(crash, CRASH_VERSION, "%s", version);
	}
	if (r >= 0 && core->has_pc && !crash->field[CRASH_PC]) {
		r = crash_set(crash, CRASH_PC, "%#" PRIx64, core->pc);
		if (r >= 0 && find_module(dump->maps, core->pc, &module, &offset)) {
			r = crash_set(crash, CRASH_MODULE, "%s", module);
			if (r >= 0)
				r = crash_set(crash, CRASH_MODULE_OFFSET, "%#" PRIx64, offset);
		}
	}
	return r;
}

static int write_message(struct crash *crash)
{
	const char *address = crash->field[CRASH_ADDRESS],
		   *pointer = crash->field[CRASH_POINTER_TAG],
		   *memory = crash->field[CRASH_MEMORY_TAG];

	if (crash->message)
		return 0;
	if (asprintf(&crash->message, "%s: access at %s%s%s%s%s, told by the core dump",
		    crash->field[CRASH_KIND], address ? address : "an unknown address",
		    pointer ? ", pointer tag " : "", pointer ? pointer : "",
		    memory ? ", memory tag " : "", memory ? memory : "") < 0) {
		crash->message = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* One crash -------------------------------------------------------------------------------------
 */

/* Collects the evidence; -ENOENT if there is none that it was a heap error. */
static int make_report(sd_journal *journal, const struct dump *dump, struct crash *ret)
{
	struct crash crash = {0};
	struct core core = {0};
	auto_free char *program = NULL;
	const char *kind;
	int r, has_core;

	r = read_stderr(dump, &crash);
	if (r < 0 && r != -ENOENT)
		return r;
	has_core = read_core(journal, dump, &core);
	r = 0;
	if (!crash.field[CRASH_KIND]) {
		kind = has_core >= 0 ? kind_of(&core, dump) : NULL;
		if (!kind)
			return -ENOENT;
		if ((r = crash_set(&crash, CRASH_KIND, "%s", kind)) >= 0)
			r = crash_set(&crash, CRASH_ACCESS, "unknown");
	}
	if (r >= 0 && has_core >= 0)
		r = add_core(&crash, &core, dump);
	if (r >= 0 && !crash.field[CRASH_BACKTRACE])
		r = read_backtrace(dump, &crash);
	if (r >= 0)
		r = crash_set(&crash, CRASH_SOURCE, "reporter");
	if (r >= 0)
		r = crash_set(&crash, CRASH_PROCESS_PID, "%d", (int)dump->pid);
	if (r >= 0 && dump->program)
		r = text_clean(dump->program, strlen(dump->program), false, &program);
	if (r >= 0 && program)
		r = crash_set(&crash, CRASH_PROGRAM, "%s", program);
	if (r >= 0)
		r = write_message(&crash);
	if (r >= 0 && dump->unit && !(crash.unit = strdup(dump->unit)))
		r = -ENOMEM;
	if (r >= 0 && dump->user_unit && !(crash.user_unit = strdup(dump->user_unit)))
		r = -ENOMEM;
	if (r < 0) {
		crash_free(&crash);
		return r;
	}
	*ret = crash;
	return 0;
}

/* Tells how many crashes of one unit or program were only counted. */
static void tell_count(const struct throttle_count *count, void *context)
{
	(void)context;
	sd_journal_send("MESSAGE=%s: %u more crash%s within %" PRIu64 " s, not reported one by one",
		count->unit ? count->unit : count->program, count->n, count->n == 1 ? "" : "es",
		count->seconds, "MESSAGE_ID=" THROTTLED_MESSAGE_ID, "PRIORITY=3",
		"SYSLOG_IDENTIFIER=vatalloc", "VATALLOC_SOURCE=reporter", "VATALLOC_COUNT=%u",
		count->n, "VATALLOC_PROGRAM=%s", count->program, "%s%s",
		count->unit ? "OBJECT_SYSTEMD_UNIT=" : "VATALLOC_UNIT=",
		count->unit ? count->unit : "none", NULL);
}

static bool is_silenced(const struct dump *dump)
{
	const char *options =
		dump->environment ? strstr(dump->environment, "VATALLOC_OPTIONS=") : NULL;
	size_t len = options ? strcspn(options, "\n") : 0;
	const char *found = options ? strstr(options, "on_fault=silent") : NULL;

	return found && found < options + len;
}

static int handle_dump(struct reporter *reporter, const struct dump *dump)
{
	uint64_t start, end;
	struct crash crash;
	int r;

	if (dump->signal != SIGSEGV && dump->signal != SIGABRT)
		return 0;
	if (!dump->maps || !find_library(dump->maps, &start, &end) || is_silenced(dump))
		return 0;
	/* Otherwise each report about us would be a reason to crash again. */
	if ((dump->unit && !strcmp(dump->unit, OWN_UNIT)) ||
		(dump->program && reporter->program && !strcmp(dump->program, reporter->program))) {
		say(4, "ignoring a crash of our own, PID %d", (int)dump->pid);
		return 0;
	}
	r = reported_itself(dump);
	if (r) {
		if (r > 0 && reporter->debug)
			say(7, "PID %d reported its crash itself", (int)dump->pid);
		return r < 0 ? r : 0;
	}
	if (!throttle_pass(reporter->throttle, dump->unit, dump->program, now_usec()))
		return 0;
	r = make_report(reporter->journal, dump, &crash);
	if (r == -ENOENT) {
		if (reporter->debug)
			say(7, "PID %d: no sign of a heap error", (int)dump->pid);
		return 0;
	}
	if (r < 0)
		return r;
	throttle_confirm(reporter->throttle, dump->unit, dump->program);
	r = crash_send(&crash);
	crash_free(&crash);
	return r;
}

/* The loop --------------------------------------------------------------------------------------
 */

/* Keeps the place up to which everything has been seen to; written anew, then put in place. */
static int save_cursor(const struct reporter *reporter)
{
	auto_free char *cursor = NULL, *new = NULL;
	auto_file FILE *f = NULL;
	int r;

	if (!reporter->state)
		return 0;
	r = sd_journal_get_cursor(reporter->journal, &cursor);
	if (r < 0)
		return r;
	if (asprintf(&new, "%s.new", reporter->state) < 0)
		return -ENOMEM;
	f = fopen(new, "we");
	if (!f)
		return -errno;
	if (fprintf(f, "%s\n", cursor) < 0 || fflush(f) < 0)
		return -EIO;
	if (rename(new, reporter->state) < 0)
		return -errno;
	return 0;
}

/*
 * Goes to the first entry that has not been seen to; 1 if that is the current one, 0 if it is the
 * next. Without a place that was kept, which is how it begins, that is one from now on: what lies
 * behind is not told as if it were news.
 */
static int find_place(struct reporter *reporter)
{
	auto_file FILE *f = reporter->state ? fopen(reporter->state, "re") : NULL;
	char cursor[1024];
	int r;

	if (!f || !fgets(cursor, sizeof(cursor), f))
		return sd_journal_seek_realtime_usec(reporter->journal, now_usec());
	cursor[strcspn(cursor, "\n")] = '\0';
	r = sd_journal_seek_cursor(reporter->journal, cursor);
	if (r == -EINVAL) {
		say(4, "%s is damaged, going on from now", reporter->state);
		return sd_journal_seek_realtime_usec(reporter->journal, now_usec());
	}
	if (r >= 0)
		r = sd_journal_next(reporter->journal);
	if (r <= 0)
		return r;
	r = sd_journal_test_cursor(reporter->journal, cursor);
	return r < 0 ? r : !r;
}

static int handle_entry(struct reporter *reporter)
{
	struct dump dump;
	int r;

	if (!is_genuine(reporter, reporter->journal)) {
		say(4, "ignoring a core dump's entry that did not come from systemd-coredump");
		return 0;
	}
	r = read_dump(reporter->journal, &dump);
	if (r < 0)
		return r;
	r = handle_dump(reporter, &dump);
	dump_free(&dump);
	return r;
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static int follow(struct reporter *reporter)
{
	int r = find_place(reporter);

	if (r < 0)
		return r;
	sd_notify(0, "READY=1");
	for (;;) {
		while (!ended && (r > 0 || (r = sd_journal_next(reporter->journal)) > 0)) {
			r = handle_entry(reporter);
			/* One that cannot be read must not hold up the others, now or after a
			 * restart. */
			if (r < 0)
				say(3, "cannot handle a core dump, ignoring: %s", strerror(-r));
			r = save_cursor(reporter);
			if (r < 0)
				say(4, "cannot keep the place in the journal, ignoring: %s",
					strerror(-r));
			r = 0;
		}
		if (ended)
			break;
		if (r < 0)
			return r;
		throttle_tell(reporter->throttle, now_usec(), false, tell_count, NULL);
		r = sd_journal_wait(
			reporter->journal, throttle_wait(reporter->throttle, now_usec()));
		if (r < 0 && r != -EINTR)
			return r;
		r = 0;
	}
	sd_notify(0, "STOPPING=1");
	throttle_tell(reporter->throttle, now_usec(), true, tell_count, NULL);
	return 0;
}

static int open_journal(sd_journal **ret)
{
	auto_journal sd_journal *journal = NULL;
	int r;

	r = sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_SYSTEM);
	if (r >= 0)
		r = sd_journal_set_data_threshold(journal, 0);
	if (r >= 0)
		r = sd_journal_add_match(journal, "MESSAGE_ID=" COREDUMP_MESSAGE_ID, 0);
	if (r < 0)
		return r;
	*ret = take(journal);
	return 0;
}

static int run(struct reporter *reporter, unsigned burst, unsigned interval)
{
	const char *directory = getenv("STATE_DIRECTORY");
	const struct passwd *user = getpwnam("systemd-coredump");
	char program[4096];
	ssize_t n;
	int r;

	if (directory && asprintf(&reporter->state, "%s/cursor", directory) < 0) {
		reporter->state = NULL;
		return -ENOMEM;
	}
	reporter->coredump_uid = user ? (long)user->pw_uid : 0;
	n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (n > 0 && !(reporter->program = strndup(program, n)))
		return -ENOMEM;
	r = throttle_new(burst, interval * second, &reporter->throttle);
	if (r >= 0)
		r = open_journal(&reporter->journal);
	return r < 0 ? r : follow(reporter);
}

static int parse_number(const char *option, const char *text, unsigned *ret)
{
	unsigned long n;
	char *stop;

	errno = 0;
	n = strtoul(text, &stop, 10);
	if (errno || !isdigit((unsigned char)*text) || *stop || !n || n > 1000000) {
		fprintf(stderr, "vatalloc-reporter: --%s=%s: not a number that makes sense\n",
			option, text);
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

int main(int argc, char **argv)
{
	enum { OPTION_BURST = 256, OPTION_INTERVAL, OPTION_DEBUG, OPTION_VERSION };
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, OPTION_VERSION},
		{"burst", required_argument, NULL, OPTION_BURST},
		{"interval", required_argument, NULL, OPTION_INTERVAL},
		{"debug", no_argument, NULL, OPTION_DEBUG},
		{0},
	};
	/* No SA_RESTART: the wait for the journal is to end. */
	struct sigaction action = {.sa_handler = end};
	struct reporter reporter = {0};
	unsigned burst = 5, interval = 600;
	int option, r = 0;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (option) {
		case 'h':
			printf("vatalloc-reporter [--burst=N] [--interval=SECONDS] [--debug]\n\n"
			       "Report heap errors of protected processes that could not do it "
			       "themselves.\nSee vatalloc-reporter(8).\n");
			return EXIT_SUCCESS;
		case OPTION_VERSION:
			printf("vatalloc-reporter %s\n", VATALLOC_VERSION);
			return EXIT_SUCCESS;
		case OPTION_BURST:
			r = parse_number("burst", optarg, &burst);
			break;
		case OPTION_INTERVAL:
			r = parse_number("interval", optarg, &interval);
			break;
		case OPTION_DEBUG:
			reporter.debug = true;
			break;
		default:
			r = -EINVAL;
		}
		if (r < 0)
			return EXIT_FAILURE;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);

	r = run(&reporter, burst, interval);
	if (r < 0)
		say(3, "cannot follow the journal: %s", strerror(-r));
	sd_journal_close(reporter.journal);
	throttle_free(reporter.throttle);
	free(reporter.state);
	free(reporter.program);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
