/* SPDX-License-Identifier: MIT */
#include "auto.h"
#include "ctl.h"
#include "explain.h"
#include "map.h"
#include "pager.h"
#include "symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void auto_symbols_cleanup(struct symbols **symbols)
{
	symbols_free(*symbols);
}
#define auto_symbols __attribute__((cleanup(auto_symbols_cleanup)))

struct crashes {
	struct crash *list;
	size_t n;
	const char *id; /* only crashes with this ID; NULL for all */
};

static void auto_crashes_cleanup(struct crashes *crashes)
{
	for (size_t i = 0; i < crashes->n; i++)
		crash_free(&crashes->list[i]);
	free(crashes->list);
}
#define auto_crashes __attribute__((cleanup(auto_crashes_cleanup)))

static int keep_crash(struct crash *crash, void *context)
{
	struct crashes *crashes = context;
	struct crash *more;
	char id[13];

	crash_id(crash, id);
	if (crashes->id && strcmp(id, crashes->id))
		return 0;
	/* Powers of two, without keeping the size. */
	if (!(crashes->n & (crashes->n - 1))) {
		more = realloc(crashes->list, (crashes->n ? crashes->n * 2 : 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		crashes->list = more;
	}
	crashes->list[crashes->n++] = *crash;
	*crash = (struct crash){0};
	return 0;
}

/* The frames of one backtrace, in words. */
struct backtrace {
	struct symbols *symbols; /* NULL: as they are */
	char *text;		 /* all of them, a line each */
	char *where;		 /* the first that is not the library's or the C library's own */
	int n;
};

static int describe_frame(const struct crash_frame *frame, void *context)
{
	struct backtrace *trace = context;
	const char *slash = strrchr(frame->module, '/');
	const char *name = slash ? slash + 1 : frame->module;
	bool ours = !strcmp(name, LIBRARY_NAME) || !strncmp(name, "libc.so", 7);
	auto_free char *symbol = NULL, *place = NULL, *text = NULL;

	if (trace->symbols)
		symbols_find(trace->symbols, frame, &symbol);
	if (asprintf(&place, "%s+%#jx", *name ? name : "?", (uintmax_t)frame->offset) < 0)
		return -ENOMEM;
	if (asprintf(&text, "%s#%d %#jx %s%s%s%s%s", trace->text ? trace->text : "", trace->n,
		    (uintmax_t)frame->pc, symbol ? symbol : "", symbol ? " in " : "",
		    symbol ? frame->module : "", symbol ? "" : place, "\n") < 0)
		return -ENOMEM;
	free(trace->text);
	trace->text = take(text);
	if (!ours && !trace->where)
		trace->where = symbol ? take(symbol) : take(place);
	trace->n++;
	return 0;
}

static int describe_backtrace(
	const struct crash *crash, struct symbols *symbols, char **ret_text, char **ret_where)
{
	const char *module = crash->field[CRASH_MODULE],
		   *offset = crash->field[CRASH_MODULE_OFFSET];
	struct backtrace trace = {.symbols = symbols};
	int r = crash_for_each_frame(crash, describe_frame, &trace);

	if (r >= 0 && !trace.where && module && offset) {
		const char *slash = strrchr(module, '/');

		if (asprintf(&trace.where, "%s+%s", slash ? slash + 1 : module, offset) < 0) {
			trace.where = NULL;
			r = -ENOMEM;
		}
	}
	if (r < 0) {
		free(trace.text);
		free(trace.where);
		return r;
	}
	*ret_text = trace.text;
	*ret_where = trace.where;
	return 0;
}

enum crashes_column {
	CRASHES_TIME_TEXT,
	CRASHES_TIME,
	CRASHES_ID,
	CRASHES_HOST,
	CRASHES_BOOT,
	CRASHES_UNIT,
	CRASHES_USER_UNIT,
	CRASHES_PID,
	CRASHES_KIND_TEXT,
	CRASHES_ACCESS_TEXT,
	CRASHES_MODE_TEXT,
	CRASHES_WHERE,
	CRASHES_MESSAGE,
	CRASHES_BACKTRACE,
	CRASHES_FIELDS, /* here begin all fields but the backtrace, under their own names */
};

static const struct table_column crashes_columns[CRASHES_FIELDS] = {
	[CRASHES_TIME_TEXT] = {"TIME", NULL, TABLE_TEXT_ONLY},
	[CRASHES_TIME] = {NULL, "time", TABLE_JSON_ONLY | TABLE_NUMBER},
	[CRASHES_ID] = {"ID", "id", 0},
	[CRASHES_HOST] = {"HOST", "host", 0},
	[CRASHES_BOOT] = {NULL, "boot", TABLE_JSON_ONLY},
	[CRASHES_UNIT] = {"UNIT", "unit", 0},
	[CRASHES_USER_UNIT] = {NULL, "user_unit", TABLE_JSON_ONLY},
	[CRASHES_PID] = {"PID", "pid", TABLE_NUMBER | TABLE_RIGHT},
	[CRASHES_KIND_TEXT] = {"KIND", NULL, TABLE_TEXT_ONLY},
	[CRASHES_ACCESS_TEXT] = {"ACCESS", NULL, TABLE_TEXT_ONLY},
	[CRASHES_MODE_TEXT] = {"MODE", NULL, TABLE_TEXT_ONLY},
	[CRASHES_WHERE] = {"WHERE", "where", 0},
	[CRASHES_MESSAGE] = {NULL, "message", TABLE_JSON_ONLY},
	[CRASHES_BACKTRACE] = {NULL, "backtrace", TABLE_JSON_ONLY},
};

static const char *format_time(uint64_t usec, char *buf, size_t size)
{
	time_t seconds = usec / 1000000;
	struct tm tm;

	if (!localtime_r(&seconds, &tm) || !strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(buf, size, "?");
	return buf;
}

/* Which fields are numbers in JSON. */
static bool is_number(enum crash_field field)
{
	switch (field) {
	case CRASH_POINTER_TAG:
	case CRASH_MEMORY_TAG:
	case CRASH_SIZE:
	case CRASH_OFFSET:
	case CRASH_LIFE:
	case CRASH_CURRENT_LIFE:
	case CRASH_LIVES:
	case CRASH_SI_CODE:
	case CRASH_TID:
		return true;
	default:
		return false;
	}
}

/* The fields of an entry are what a process says; in JSON a number must be one. */
static int set_field(
	struct table *table, int column, const struct crash *crash, enum crash_field field)
{
	const char *value = crash->field[field], *digits = value;

	if (value && is_number(field)) {
		digits += *digits == '-';
		if (!*digits || digits[strspn(digits, "0123456789")] || strlen(digits) > 18 ||
			(digits[0] == '0' && digits[1]))
			value = NULL;
	}
	return table_set(table, column, value);
}

static int add_crash(struct table *table, const struct crash *crash, struct symbols *symbols)
{
	auto_free char *text = NULL, *where = NULL;
	char time[32], id[13];
	int r;

	crash_id(crash, id);
	r = describe_backtrace(crash, symbols, &text, &where);
	if (r < 0 || (r = table_row(table)) < 0 ||
		(r = table_set(table, CRASHES_TIME_TEXT,
			 format_time(crash->time, time, sizeof(time)))) < 0 ||
		(r = set_number(table, CRASHES_TIME, crash->time)) < 0 ||
		(r = table_set(table, CRASHES_ID, id)) < 0 ||
		(r = table_set(table, CRASHES_HOST, crash->host)) < 0 ||
		(r = table_set(table, CRASHES_BOOT, crash->boot)) < 0 ||
		/* Of a user's service the user's name for it says more. */
		(r = table_set(table, CRASHES_UNIT,
			 arg.format == TABLE_TEXT && crash->user_unit ? crash->user_unit
								      : crash->unit)) < 0 ||
		(r = table_set(table, CRASHES_USER_UNIT, crash->user_unit)) < 0 ||
		(r = set_number(table, CRASHES_PID, crash->pid)) < 0 ||
		(r = table_set(table, CRASHES_KIND_TEXT, crash->field[CRASH_KIND])) < 0 ||
		(r = table_set(table, CRASHES_ACCESS_TEXT, crash->field[CRASH_ACCESS])) < 0 ||
		(r = table_set(table, CRASHES_MODE_TEXT, crash->field[CRASH_MODE])) < 0 ||
		(r = table_set(table, CRASHES_WHERE, where)) < 0 ||
		(r = table_set(table, CRASHES_MESSAGE, crash->message)) < 0 ||
		(r = table_set(table, CRASHES_BACKTRACE, text)) < 0)
		return r;
	for (int i = 0, column = CRASHES_FIELDS; i < CRASH_FIELDS && r >= 0; i++)
		if (i != CRASH_BACKTRACE)
			r = set_field(table, column++, crash, i);
	return r;
}

/* Where reports come from more than one machine, the order of the journal is not quite that of
 * time. */
static int compare_crashes(const void *a, const void *b)
{
	const struct crash *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

static int read_crashes(struct crashes *crashes)
{
	int r = journal_for_each(&arg.filter, keep_crash, crashes);

	if (r < 0)
		return fail(
			r, arg.filter.directory ? arg.filter.directory : "cannot read the journal");
	if (crashes->n)
		qsort(crashes->list, crashes->n, sizeof(*crashes->list), compare_crashes);
	if (!crashes->n && geteuid() != 0 && !arg.no_legend)
		complain("root and the members of group systemd-journal see all units' reports");
	return EXIT_OK;
}

static int open_symbols(struct symbols **ret)
{
	int r = arg.symbols ? symbols_new(arg.debuginfod, ret) : 0;

	return r < 0 ? fail(r, "cannot look symbols up") : EXIT_OK;
}

int verb_crashes(int argc, char **argv)
{
	struct table_column columns[CRASHES_FIELDS + CRASH_FIELDS - 1];
	auto_crashes struct crashes crashes = {0};
	auto_symbols struct symbols *symbols = NULL;
	auto_table struct table *table = NULL;
	size_t n = CRASHES_FIELDS, first = 0;
	int r;

	(void)argc;
	(void)argv;
	memcpy(columns, crashes_columns, sizeof(crashes_columns));
	if (!arg.filter.directory && !arg.filter.merge)
		columns[CRASHES_HOST].flags |= TABLE_JSON_ONLY;
	for (int i = 0; i < CRASH_FIELDS; i++)
		if (i != CRASH_BACKTRACE)
			columns[n++] = (struct table_column){NULL, crash_field_key(i),
				TABLE_JSON_ONLY | (is_number(i) ? TABLE_NUMBER : 0)};

	r = read_crashes(&crashes);
	if (!r)
		r = open_symbols(&symbols);
	if (r)
		return r;
	r = table_new("crashes", columns, n, arg.format, &table);
	if (arg.lines && crashes.n > arg.lines)
		first = crashes.n - arg.lines;
	for (size_t i = first; i < crashes.n && r >= 0; i++) {
		size_t at = arg.reverse ? crashes.n - 1 - (i - first) : i;

		r = add_crash(table, &crashes.list[at], symbols);
	}
	return r < 0 ? fail(r, "cannot print") : print(table);
}

static void indent(const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		printf(n ? "    %.*s\n" : "%.*s\n", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

static int list_kinds(void)
{
	char *name;

	for (size_t i = 0; (name = explain_name(i)); i++) {
		printf("%s\n", name);
		free(name);
	}
	return EXIT_OK;
}

/* One bug: what it is, how often it was met, and all about the last time. */
static int explain_crash(const char *id)
{
	auto_crashes struct crashes crashes = {.id = id};
	auto_symbols struct symbols *symbols = NULL;
	auto_free char *trace = NULL, *where = NULL, *text = NULL;
	const struct crash *last;
	char time[32];
	int r;

	r = read_crashes(&crashes);
	if (!r)
		r = open_symbols(&symbols);
	if (r)
		return r;
	if (!crashes.n) {
		complain("%s: neither a kind of error nor the ID of a report in the journal", id);
		return EXIT_NOTHING;
	}
	last = &crashes.list[crashes.n - 1];
	r = describe_backtrace(last, symbols, &trace, &where);
	if (r < 0)
		return fail(r, id);

	if (!arg.no_pager)
		pager_open();
	printf("%s\n\n", last->message ? last->message : last->field[CRASH_KIND]);
	printf("%s %zu time%s, last on %s", "Reported", crashes.n, crashes.n == 1 ? "" : "s",
		format_time(last->time, time, sizeof(time)));
	if (last->host)
		printf(" on %s", last->host);
	printf(" by process %d", (int)last->pid);
	if (last->unit)
		printf(" of %s", last->user_unit ? last->user_unit : last->unit);
	printf("\n\n");
	for (int i = 0; i < CRASH_FIELDS; i++)
		if (i != CRASH_BACKTRACE && last->field[i])
			printf("    %s=%s\n", crash_field_name(i), last->field[i]);
	if (trace) {
		printf("\nWhere it happened:\n\n");
		indent(trace);
	}
	if (explain_kind(last->field[CRASH_KIND], &text) >= 0) {
		printf("\nWhat it means:\n\n");
		indent(text);
	}
	pager_close();
	return EXIT_OK;
}

int verb_explain(int argc, char **argv)
{
	auto_free char *text = NULL;

	if (!argc)
		return list_kinds();
	if (explain_kind(argv[0], &text) < 0 && explain_message(argv[0], &text) < 0)
		return explain_crash(argv[0]);
	if (!arg.no_pager)
		pager_open();
	fputs(text, stdout);
	pager_close();
	return EXIT_OK;
}
