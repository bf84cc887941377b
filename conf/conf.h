/* SPDX-License-Identifier: MIT */
/*
 * conf: the settings of vatalloc.conf, read strictly.
 *
 * What is read. The main file is the first of /etc/vatalloc.conf, /run/vatalloc.conf and
 * /usr/lib/vatalloc.conf. After it come the *.conf files of /usr/lib, /run and
 * /etc/vatalloc.conf.d, merged by name: of files of the same name only the one in /etc counts,
 * then the one in /run, and an empty file or a symlink to /dev/null so masks the others. They are
 * read in the order of their names, wherever they lie. A later line wins over an earlier one.
 *
 * The format. `[Defaults]`, `[NAME.service]` or `[NAME@.service]` opens a section, `Key=value` sets
 * one key of it. Space around a line, a key and a value does not count. Lines that start with `#`
 * or `;` are comments; there are none behind a value. There is no quoting, and no line continues
 * on the next: a backslash at the end of a line is part of the value. An empty value takes
 * back what earlier lines of that section said. A section may occur again: it goes on.
 *
 * Which section counts. A unit gets the built-in defaults, then [Defaults], then the section
 * of its template, then its own, key by key.
 *
 * Errors. Nothing here logs: every problem goes to the caller's conf_report_t with file and line.
 * A problem harms its own line only. A bad section line drops its whole section, because its keys
 * must not end up in the section before it. Functions return negative errno only when memory
 * runs out.
 *
 * A path in here is always as seen below the root that the caller gave.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file larger than this is refused whole. */
#define CONF_FILE_MAX (1024 * 1024)

enum conf_key {
	CONF_MODE,
	CONF_GRANULARITY,
	CONF_ENGINE,
	CONF_MERGE_THRESHOLD,
	CONF_ON_EXHAUSTION,
	CONF_ON_FAULT,
	CONF_FALLBACK,
	CONF_STATS,
	CONF_SPACE,
	CONF_JOURNAL,
	CONF_OPEN_SANDBOX,
	CONF_KEYS
};

/* Values of CONF_OPEN_SANDBOX, the one key that a reader in this repository acts on. */
enum { CONF_NO, CONF_YES };

/* The value of every key: an index into the key's words, or bytes (0: auto). */
struct conf_settings {
	uint64_t value[CONF_KEYS];
	struct conf_origin {
		const char *file; /* NULL: built in. Lives as long as the struct conf */
		unsigned line;
	} origin[CONF_KEYS];
};

struct conf_problem {
	const char *file;
	unsigned line;	     /* 0: the file as a whole */
	const char *section; /* NULL: before the first section */
	const char *key;     /* NULL: the line has none */
	const char *value;   /* what the line says, NULL: nothing worth showing */
	const char *what;    /* a phrase: what is wrong, and what is done about it */
};

typedef void (*conf_report_t)(const struct conf_problem *problem, void *userdata);

struct conf;

/* Reads everything below `root` ("" for the system's own). `user_dir`, or NULL, is a user's
 * configuration directory, which comes on top of /etc. */
int conf_load(const char *root, const char *user_dir, conf_report_t report, void *userdata,
	struct conf **ret);
void conf_free(struct conf *conf);

/* For tests: an empty conf, and one file's text read into it. `text` has room for one byte more
 * than `size` and is overwritten. */
int conf_new(conf_report_t report, void *userdata, struct conf **ret);
int conf_parse(struct conf *conf, const char *file, char *text, size_t size);

/* The settings in force for a unit, or with NULL those of [Defaults]. */
void conf_for_unit(const struct conf *conf, const char *unit, struct conf_settings *settings);

/* Lays the section of one more name of a unit (an alias) over its settings. */
void conf_add_alias(const struct conf *conf, const char *alias, struct conf_settings *settings);

/* Calls `each` for every section but [Defaults], in the order of their names. */
void conf_each_section(
	const struct conf *conf, void (*each)(const char *name, void *userdata), void *userdata);

const char *conf_key_name(enum conf_key key);

/* "sync", "64K": the value as it is written in the file. Returns a length, as snprintf does. */
int conf_format_value(
	const struct conf_settings *settings, enum conf_key key, char *buf, size_t size);

/* VATALLOC_OPTIONS: the mode, and every other option that is not the library's own default. */
int conf_format_options(const struct conf_settings *settings, char *buf, size_t size);

/* One line for a log: "/etc/vatalloc.conf:7: [nginx.service] Mode=fast: not one of …". */
int conf_format_problem(const struct conf_problem *problem, char *buf, size_t size);
