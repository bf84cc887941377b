/* SPDX-License-Identifier: MIT */
#include "auto.h"
#include "ctl.h"
#include "status.h"
#include "text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A process must be found unprotected several times: it may be about to execute another program. */
enum {
	POLL_PAUSE = 100, /* ms between two looks at a unit */
	CONFIRM_LOOKS = 3,
	START_LOOKS = 50, /* after which one that is still starting is not waited for */
};

enum verify_column {
	VERIFY_PID,
	VERIFY_NAME,
	VERIFY_PROTECTED_TEXT,
	VERIFY_PROTECTED,
	VERIFY_MODE,
	VERIFY_REASON,
	VERIFY_PROGRAM,
	VERIFY_LIBRARY,
	VERIFY_VERSION,
	VERIFY_NOTE,
	VERIFY_COLUMNS,
};

static const struct table_column verify_columns[VERIFY_COLUMNS] = {
	[VERIFY_PID] = {"PID", "pid", TABLE_NUMBER | TABLE_RIGHT},
	[VERIFY_NAME] = {"NAME", "name", 0},
	[VERIFY_PROTECTED_TEXT] = {"PROTECTED", NULL, TABLE_TEXT_ONLY},
	[VERIFY_PROTECTED] = {NULL, "protected", TABLE_JSON_ONLY | TABLE_BOOLEAN},
	[VERIFY_MODE] = {"MODE", "mode", 0},
	[VERIFY_REASON] = {NULL, "reason", TABLE_JSON_ONLY},
	[VERIFY_PROGRAM] = {NULL, "program", TABLE_JSON_ONLY},
	[VERIFY_LIBRARY] = {NULL, "library", TABLE_JSON_ONLY},
	[VERIFY_VERSION] = {NULL, "version", TABLE_JSON_ONLY},
	[VERIFY_NOTE] = {"NOTE", "note", 0},
};

/*
 * What to say about a process: with @status, as one of a unit. Where the library was not loaded,
 * the dynamic linker's own words are added, which tell more than can be seen.
 */
static int describe(const struct status *status, const struct process *process, char **ret)
{
	auto_free char *sentence = NULL, *loader = NULL;
	int r;

	r = status ? status_describe(status, process, &sentence)
		   : process_describe(process, &sentence);
	if (r < 0)
		return r;
	if ((process->reason == REASON_UNKNOWN || process->reason == REASON_CONFINED ||
		    process->reason == REASON_NOT_VISIBLE || process->reason == REASON_UNREADABLE ||
		    process->reason == REASON_NOEXEC) &&
		journal_loader_error(process->pid, &loader) >= 0)
		return asprintf(ret, "%s (%s)", sentence, loader) < 0 ? -ENOMEM : 0;
	*ret = take(sentence);
	return 0;
}

static int add_process(
	struct table *table, const struct status *status, const struct process *process)
{
	const char *protected = yes_no(process_verdict(process->reason) == VERDICT_PROTECTED);
	bool unknown = process->reason == REASON_DENIED;
	auto_free char *note = NULL;
	int r;

	if ((r = table_row(table)) < 0 || (r = set_number(table, VERIFY_PID, process->pid)) < 0 ||
		(r = set_clean(table, VERIFY_NAME, process->name)) < 0 ||
		(r = set_clean(table, VERIFY_PROGRAM, process->program)) < 0 ||
		(r = set_clean(table, VERIFY_LIBRARY, process->library)) < 0 ||
		(r = table_set(table, VERIFY_PROTECTED_TEXT, unknown ? "unknown" : protected)) <
			0 ||
		(r = table_set(table, VERIFY_PROTECTED, unknown ? NULL : protected)) < 0 ||
		(r = table_set(table, VERIFY_REASON, process_reason(process->reason))) < 0)
		return r;
	if (process->stats.version) {
		r = table_set(table, VERIFY_MODE, process_mode(process->stats.mode));
		if (r >= 0)
			r = table_set(table, VERIFY_VERSION, process->stats.library);
		if (r < 0)
			return r;
	}
	if (process->reason == REASON_PROTECTED)
		return 0;
	r = describe(status, process, &note);
	return r < 0 ? r : set_clean(table, VERIFY_NOTE, note);
}

/* A process that is not protected, in words on standard error, for the unit's log. */
static void complain_process(const struct status *status, const struct process *process)
{
	auto_free char *note = NULL, *clean = NULL, *name = NULL;

	if (describe(status, process, &note) < 0 ||
		text_clean(note, strlen(note), false, &clean) < 0 ||
		text_clean(process->name ? process->name : "?",
			process->name ? strlen(process->name) : 1, false, &name) < 0)
		return;
	complain("%s%s%s[%d]: %s", status ? status->service.id : "", status ? ": " : "", name,
		(int)process->pid, clean);
}

static int verdict_code(enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_PROTECTED:
	case VERDICT_ASKED_FOR:
		return EXIT_OK;
	default:
		return EXIT_NOT_PROTECTED;
	}
}

static int verify_process(struct table *table, const char *text)
{
	struct process process;
	unsigned long pid;
	int r, code;
	char *end;

	errno = 0;
	pid = strtoul(text, &end, 10);
	if (errno || *end || !pid || pid > INT_MAX) {
		complain("%s: not a PID", text);
		return EXIT_ERROR;
	}
	r = process_read((pid_t)pid, &process);
	if (r < 0)
		return fail(r, text);
	if (process.reason == REASON_GONE) {
		complain("%s: no such process", text);
		code = EXIT_NOTHING;
	} else if (process.reason == REASON_DENIED) {
		complain_process(NULL, &process);
		code = EXIT_ERROR;
	} else {
		r = add_process(table, NULL, &process);
		code = r < 0 ? fail(r, text) : verdict_code(process_verdict(process.reason));
	}
	process_free(&process);
	return code;
}

/* Whether nothing that a further look at the unit could show would change what is said about it. */
static bool is_settled(const struct status *status, unsigned looks, bool last)
{
	const char *active = status->service.active_state;
	bool changing = !strcmp(active, "activating") || !strcmp(active, "deactivating") ||
			!strcmp(active, "reloading");

	if (last)
		return true;
	if (arg.wait && changing)
		return false;
	/* One that executes a program just now cannot be read for a moment. */
	if (!status->n_processes)
		return (!changing && strcmp(active, "active")) || looks >= START_LOOKS;
	switch (status->verdict) {
	case VERDICT_PROTECTED:
	case VERDICT_ASKED_FOR:
		return true;
	case VERDICT_NOT_PROTECTED:
		return looks >= CONFIRM_LOOKS;
	default:
		if (status->worst->reason == REASON_DENIED)
			return true;
		return !arg.wait && looks >= START_LOOKS;
	}
}

static int judge_unit(struct table *table, const struct status *status)
{
	const struct service *service = &status->service;

	if (!status->n_processes) {
		/* For vatalloc@.service: the unit's next start will be protected, all is well. */
		if (arg.wait && service->enabled) {
			fprintf(stderr,
				"%s: not running; it will be protected when it is started\n",
				service->id);
			return EXIT_OK;
		}
		complain("%s: the unit is %s and has no process", service->id,
			service->active_state);
		return EXIT_NOTHING;
	}
	for (size_t i = 0; i < status->n_processes; i++) {
		const struct process *process = &status->processes[i];
		int r = add_process(table, status, process);

		if (r < 0)
			return fail(r, service->id);
		if (arg.wait && process->reason != REASON_PROTECTED)
			complain_process(status, process);
	}
	if (arg.wait && status->verdict == VERDICT_PROTECTED)
		fprintf(stderr, "%s: %zu process%s protected, mode %s\n", service->id,
			status->n_processes, status->n_processes == 1 ? "" : "es",
			process_mode(status->main->stats.mode));
	if (status_is_unknown(status)) {
		complain("%s: cannot tell, only root may look into its processes", service->id);
		return EXIT_ERROR;
	}
	return verdict_code(status->verdict);
}

static int verify_unit(struct table *table, sd_bus *bus, const char *unit)
{
	uint64_t deadline = now_usec() + (uint64_t)arg.timeout * 1000000;

	for (unsigned looks = 1;; looks++) {
		struct status status;
		int r = status_read(bus, arg.user, unit, &status);

		if (r < 0)
			return fail_unit(r, unit);
		if (is_settled(&status, looks, now_usec() >= deadline)) {
			int code = judge_unit(table, &status);

			status_free(&status);
			return code;
		}
		status_free(&status);
		usleep(POLL_PAUSE * 1000);
	}
}

int verb_verify(int argc, char **argv)
{
	auto_table struct table *table = NULL;
	auto_bus sd_bus *bus = NULL;
	int r, worst = EXIT_OK;

	r = table_new("processes", verify_columns, VERIFY_COLUMNS, arg.format, &table);
	if (r < 0)
		return fail(r, "cannot print");
	for (int i = 0; i < argc; i++) {
		auto_free char *unit = NULL;
		int code;

		if (argv[i][strspn(argv[i], "0123456789")] == '\0') {
			code = verify_process(table, argv[i]);
		} else {
			r = bus ? 0 : connect_bus(&bus);
			if (r)
				return r;
			unit = unit_name(argv[i]);
			code = unit ? verify_unit(table, bus, unit) : fail(-ENOMEM, argv[i]);
		}
		/* An error says more than an unprotected unit, which says more than a missing one.
		 */
		if (code == EXIT_ERROR || worst == EXIT_ERROR)
			worst = EXIT_ERROR;
		else if (code == EXIT_NOT_PROTECTED || worst == EXIT_NOT_PROTECTED)
			worst = EXIT_NOT_PROTECTED;
		else if (code)
			worst = code;
	}
	/* With --wait all has been said, in sentences that read well in a unit's log. */
	r = arg.wait && arg.format == TABLE_TEXT ? EXIT_OK : print(table);
	return r ? r : worst;
}
