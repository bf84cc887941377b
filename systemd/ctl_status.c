/* SPDX-License-Identifier: MIT */
#include "auto.h"
#include "ctl.h"
#include "status.h"
#include "text.h"

#include <errno.h>
#include <string.h>

/* The units the generator knows, and the services with a process that has the library mapped. */
static int find_units(struct names *names)
{
	auto_free pid_t *pids = NULL;
	size_t n;
	int r;

	r = service_enabled(arg.user, &names->list, &names->n);
	if (r >= 0)
		r = process_list(&pids, &n);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		auto_free char *unit = NULL;
		size_t len;

		if (!process_has_library(pids[i]) ||
			service_of_process(pids[i], arg.user, &unit) < 0)
			continue;
		len = strlen(unit);
		/* What a user's manager runs is that user's to ask for. */
		if (len > 8 && !strcmp(unit + len - 8, ".service") && strncmp(unit, "user@", 5))
			r = add_name(names, unit);
	}
	return r < 0 ? r : 0;
}

/* Reports about a unit since this boot, and since its main process was started. */
struct tally {
	const char *unit;
	uint64_t started;
	unsigned crashes, since_start;
};

static int count_crash(struct crash *crash, void *context)
{
	struct tally *tally = context;

	if (!(crash->unit && !strcmp(crash->unit, tally->unit)) &&
		!(crash->user_unit && !strcmp(crash->user_unit, tally->unit)))
		return 0;
	tally->crashes++;
	if (tally->started && crash->time >= tally->started)
		tally->since_start++;
	return 0;
}

enum status_column {
	STATUS_UNIT,
	STATUS_ACTIVE,
	STATUS_ENABLED,
	STATUS_PROTECTED_TEXT,
	STATUS_PROTECTED,
	STATUS_REASON,
	STATUS_MODE,
	STATUS_PROCESSES_TEXT,
	STATUS_PROCESSES,
	STATUS_PROCESSES_PROTECTED,
	STATUS_LIVES,
	STATUS_LIVES_USED,
	STATUS_SPACE_TEXT,
	STATUS_SPACE_USED,
	STATUS_SPACE_SIZE,
	STATUS_LIVE_TEXT,
	STATUS_LIVE_BYTES,
	STATUS_DEAD_TEXT,
	STATUS_DEAD_RESIDENT,
	STATUS_BYTES_RETIRED,
	STATUS_BYTES_RECYCLED,
	STATUS_CRASHES,
	STATUS_CRASHES_SINCE_START,
	STATUS_VERSION,
	STATUS_NOTE,
	STATUS_COLUMNS,
};

static const struct table_column status_columns[STATUS_COLUMNS] = {
	[STATUS_UNIT] = {"UNIT", "unit", 0},
	[STATUS_ACTIVE] = {NULL, "active", TABLE_JSON_ONLY},
	[STATUS_ENABLED] = {NULL, "enabled", TABLE_JSON_ONLY | TABLE_BOOLEAN},
	[STATUS_PROTECTED_TEXT] = {"PROTECTED", NULL, TABLE_TEXT_ONLY},
	[STATUS_PROTECTED] = {NULL, "protected", TABLE_JSON_ONLY | TABLE_BOOLEAN},
	[STATUS_REASON] = {NULL, "reason", TABLE_JSON_ONLY},
	[STATUS_MODE] = {"MODE", "mode", 0},
	[STATUS_PROCESSES_TEXT] = {"PROCESSES", NULL, TABLE_TEXT_ONLY | TABLE_RIGHT},
	[STATUS_PROCESSES] = {NULL, "processes", TABLE_JSON_ONLY | TABLE_NUMBER},
	[STATUS_PROCESSES_PROTECTED] = {NULL, "processes_protected",
		TABLE_JSON_ONLY | TABLE_NUMBER},
	[STATUS_LIVES] = {"LIVES", "lives", TABLE_NUMBER | TABLE_RIGHT},
	[STATUS_LIVES_USED] = {NULL, "lives_used", TABLE_JSON_ONLY | TABLE_NUMBER},
	[STATUS_SPACE_TEXT] = {"SPACE", NULL, TABLE_TEXT_ONLY | TABLE_RIGHT},
	[STATUS_SPACE_USED] = {NULL, "space_used", TABLE_JSON_ONLY | TABLE_NUMBER},
	[STATUS_SPACE_SIZE] = {NULL, "space_size", TABLE_JSON_ONLY | TABLE_NUMBER},
	[STATUS_LIVE_TEXT] = {"LIVE", NULL, TABLE_TEXT_ONLY | TABLE_RIGHT},
	[STATUS_LIVE_BYTES] = {NULL, "live_bytes", TABLE_JSON_ONLY | TABLE_NUMBER},
	[STATUS_DEAD_TEXT] = {"DEAD", NULL, TABLE_TEXT_ONLY | TABLE_RIGHT},
	[STATUS_DEAD_RESIDENT] = {NULL, "dead_resident", TABLE_JSON_ONLY | TABLE_NUMBER},
	[STATUS_BYTES_RETIRED] = {NULL, "bytes_retired", TABLE_JSON_ONLY | TABLE_NUMBER},
	[STATUS_BYTES_RECYCLED] = {NULL, "bytes_recycled", TABLE_JSON_ONLY | TABLE_NUMBER},
	[STATUS_CRASHES] = {"CRASHES", "crashes", TABLE_NUMBER | TABLE_RIGHT},
	[STATUS_CRASHES_SINCE_START] = {NULL, "crashes_since_start",
		TABLE_JSON_ONLY | TABLE_NUMBER},
	[STATUS_VERSION] = {NULL, "version", TABLE_JSON_ONLY},
	[STATUS_NOTE] = {"NOTE", "note", 0},
};

static int set_bytes(struct table *table, size_t text_column, size_t column, uint64_t n)
{
	char buf[16];
	int r = table_set(table, text_column, text_bytes(n, buf, sizeof(buf)));

	return r < 0 ? r : set_number(table, column, n);
}

/* The cells that only a unit with processes has. */
static int add_processes(struct table *table, const struct status *status)
{
	const struct vatalloc_stats *stats = &status->main->stats;
	bool unknown = status_is_unknown(status);
	auto_free char *note = NULL, *note_clean = NULL;
	char used[16];
	int r;

	r = status->denied ? table_setf(table, STATUS_PROCESSES_TEXT, "?/%zu", status->n_processes)
			   : table_setf(table, STATUS_PROCESSES_TEXT, "%zu/%zu",
				     status->n_protected, status->n_processes);
	if (r >= 0 && !status->denied)
		r = set_number(table, STATUS_PROCESSES_PROTECTED, status->n_protected);
	if (r >= 0 && !unknown)
		r = table_set(table, STATUS_PROTECTED,
			yes_no(status->verdict == VERDICT_PROTECTED));
	if (r < 0 || (r = set_number(table, STATUS_PROCESSES, status->n_processes)) < 0 ||
		(r = table_set(table, STATUS_PROTECTED_TEXT,
			 status->verdict == VERDICT_PROTECTED ? "yes"
			 : unknown			      ? "unknown"
			 : status->n_protected		      ? "partly"
							      : "no")) < 0 ||
		(r = table_set(table, STATUS_REASON, process_reason(status->worst->reason))) < 0)
		return r;
	if (status->worst->reason != REASON_PROTECTED) {
		r = status_describe(status, status->worst, &note);
		if (r >= 0)
			r = text_clean(note, strlen(note), false, &note_clean);
		if (r >= 0)
			r = table_set(table, STATUS_NOTE, note_clean);
		if (r < 0)
			return r;
	}
	if (!status->main->mapped || !stats->version)
		return 0;

	if ((r = table_set(table, STATUS_MODE, process_mode(stats->mode))) < 0 ||
		(r = set_number(table, STATUS_LIVES, stats->lives)) < 0 ||
		(r = set_number(table, STATUS_LIVES_USED, status->lives_used)) < 0 ||
		(r = set_number(table, STATUS_SPACE_USED, status->space_used)) < 0 ||
		(r = set_number(table, STATUS_SPACE_SIZE, status->space_size)) < 0 ||
		(r = set_bytes(table, STATUS_LIVE_TEXT, STATUS_LIVE_BYTES, status->live_bytes)) <
			0 ||
		(r = set_bytes(table, STATUS_DEAD_TEXT, STATUS_DEAD_RESIDENT,
			 status->dead_resident)) < 0 ||
		(r = set_number(table, STATUS_BYTES_RETIRED, status->bytes_retired)) < 0 ||
		(r = set_number(table, STATUS_BYTES_RECYCLED, status->bytes_recycled)) < 0 ||
		(r = table_set(table, STATUS_VERSION, stats->library)) < 0)
		return r;
	if (!status->space_size)
		return 0;
	return table_setf(table, STATUS_SPACE_TEXT, "%s %.1f%%",
		text_bytes(status->space_used, used, sizeof(used)),
		100.0 * status->space_used / status->space_size);
}

static int add_status(struct table *table, const struct status *status)
{
	const struct service *service = &status->service;
	struct tally tally = {.unit = service->id, .started = service->started};
	struct journal_filter filter = {.this_boot = true};
	int r;

	/* A journal that this user may not read has no reports, as far as can be told. */
	journal_for_each(&filter, count_crash, &tally);

	if ((r = table_row(table)) < 0 || (r = table_set(table, STATUS_UNIT, service->id)) < 0 ||
		(r = table_set(table, STATUS_ACTIVE, service->active_state)) < 0 ||
		(r = table_set(table, STATUS_ENABLED, yes_no(service->enabled))) < 0 ||
		(r = set_number(table, STATUS_CRASHES, tally.crashes)) < 0 ||
		(r = set_number(table, STATUS_CRASHES_SINCE_START, tally.since_start)) < 0)
		return r;
	if (status->n_processes)
		return add_processes(table, status);
	if ((r = table_set(table, STATUS_PROTECTED_TEXT, service->active_state)) < 0 ||
		(r = table_set(table, STATUS_PROTECTED, yes_no(false))) < 0)
		return r;
	return table_set(table, STATUS_NOTE,
		service->enabled ? "will be protected when it is started"
				 : "vatalloc is not enabled for the unit");
}

int verb_status(int argc, char **argv)
{
	auto_table struct table *table = NULL;
	auto_bus sd_bus *bus = NULL;
	auto_names struct names names = {0};
	int r, code = EXIT_OK, printed;

	r = connect_bus(&bus);
	if (r)
		return r;
	r = table_new("units", status_columns, STATUS_COLUMNS, arg.format, &table);
	for (int i = 0; i < argc && r >= 0; i++) {
		auto_free char *unit = unit_name(argv[i]);

		r = unit ? add_name(&names, unit) : -ENOMEM;
	}
	if (r >= 0 && !argc)
		r = find_units(&names);
	if (r < 0)
		return fail(r, "cannot find out which units there are");

	for (size_t i = 0; i < names.n; i++) {
		struct status status;

		r = status_read(bus, arg.user, names.list[i], &status);
		if (r < 0) {
			/* A unit that was found, but has gone since, is no error. */
			if (argc || r != -ENOENT)
				code = fail_unit(r, names.list[i]);
			continue;
		}
		r = add_status(table, &status);
		status_free(&status);
		if (r < 0)
			return fail(r, "cannot print");
	}
	if (!names.n && !arg.no_legend && arg.format == TABLE_TEXT)
		complain("vatalloc is enabled for no unit: see systemctl enable vatalloc@NAME");
	printed = print(table);
	return printed ? printed : code;
}
