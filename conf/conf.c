// SPDX-License-Identifier: MIT
#include "conf.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../systemd/unit.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define TIB (UINT64_C(1) << 40)

enum { IN_DEFAULTS = 1, IN_UNIT = 2, ANYWHERE = IN_DEFAULTS | IN_UNIT };

struct key {
	unsigned sections; /* where the key is allowed */
	const char *name;
	/* Returns NULL, or what is wrong with `value`. */
	const char *(*parse)(const struct key *key, const char *value, uint64_t *ret);
	const char *option; /* in VATALLOC_OPTIONS; NULL: not for the library */
	const char *wrong;  /* what to say about a bad value */
	const char *const *words;
	const char *const *option_words; /* where the option's words differ */
	uint64_t min, max, fallback;
};

static const char *parse_word(const struct key *key, const char *value, uint64_t *ret)
{
	for (unsigned i = 0; key->words[i]; i++)
		if (strcmp(value, key->words[i]) == 0) {
			*ret = i;
			return NULL;
		}
	return key->wrong;
}

/* Digits and at most one of K, M, G, T. Zero is no size: it stands for auto. */
static const char *parse_size(const struct key *key, const char *value, uint64_t *ret)
{
	static const char suffixes[] = "KMGT";
	uint64_t size = 0;
	const char *p = value;

	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(size, 10, &size) ||
			__builtin_add_overflow(size, (uint64_t)(*p - '0'), &size))
			return key->wrong;
	if (p == value)
		return key->wrong;
	if (*p) {
		const char *suffix = strchr(suffixes, *p);
		uint64_t unit;

		if (!suffix || p[1])
			return key->wrong;
		unit = KIB << (10 * (suffix - suffixes));
		if (__builtin_mul_overflow(size, unit, &size))
			return key->wrong;
	}
	if (size < key->min || size > key->max)
		return key->wrong;
	*ret = size;
	return NULL;
}

static const char *parse_auto_size(const struct key *key, const char *value, uint64_t *ret)
{
	if (strcmp(value, "auto") != 0)
		return parse_size(key, value, ret);
	*ret = 0;
	return NULL;
}

static const char *parse_granularity(const struct key *key, const char *value, uint64_t *ret)
{
	uint64_t size = 0;
	const char *wrong = parse_auto_size(key, value, &size);

	if (wrong)
		return wrong;
	if (size & (size - 1))
		return key->wrong;
	*ret = size;
	return NULL;
}

static const char *parse_engine(const struct key *key, const char *value, uint64_t *ret)
{
	if (strcmp(value, "dlmalloc") == 0)
		return "the engine dlmalloc is not available in this version";
	return parse_word(key, value, ret);
}

/* Belongs to an engine that does not exist yet. To take it in silence would be a lie. */
static const char *parse_merge_threshold(const struct key *key, const char *value, uint64_t *ret)
{
	uint64_t size = 0;
	const char *wrong = parse_size(key, value, &size);

	(void)ret;
	return wrong ? wrong
		     : "belongs to the engine dlmalloc, which is not available in this version";
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct key keys[CONF_KEYS] = {
	[CONF_MODE] = {ANYWHERE, "Mode", parse_word, "mode",
		"not one of auto, sync, async, address, count, off",
		.words = WORDS("auto", "sync", "async", "address", "count", "off")},
	[CONF_GRANULARITY] = {ANYWHERE, "Granularity", parse_granularity, "granularity",
		"not auto or a power of two from 4K to 2M", .min = 4 * KIB, .max = 2 * MIB},
	[CONF_ENGINE] = {ANYWHERE, "Engine", parse_engine, NULL, "not jemalloc",
		.words = WORDS("jemalloc")},
	[CONF_MERGE_THRESHOLD] = {ANYWHERE, "MergeThreshold", parse_merge_threshold, NULL,
		"not a size from 1K to 2M", .min = KIB, .max = 2 * MIB},
	[CONF_ON_EXHAUSTION] = {ANYWHERE, "OnExhaustion", parse_word, "on_exhaustion",
		"not one of recycle, abort", .words = WORDS("recycle", "abort")},
	[CONF_ON_FAULT] = {ANYWHERE, "OnFault", parse_word, "on_fault", "not one of report, silent",
		.words = WORDS("report", "silent")},
	[CONF_FALLBACK] = {ANYWHERE, "Fallback", parse_word, "fallback", "not one of address, fail",
		.words = WORDS("address", "fail"), .option_words = WORDS("address", "abort")},
	[CONF_STATS] = {ANYWHERE, "Stats", parse_word, "stats", "not one of no, exit",
		.words = WORDS("no", "exit")},
	[CONF_SPACE] = {ANYWHERE, "Space", parse_auto_size, "space",
		"not auto or a size from 64M to 128T", .min = 64 * MIB, .max = 128 * TIB},
	[CONF_JOURNAL] = {ANYWHERE, "Journal", parse_word, "journal", "not one of auto, yes, no",
		.words = WORDS("auto", "yes", "no")},
	[CONF_OPEN_SANDBOX] = {ANYWHERE, "OpenSandbox", parse_word, NULL, "not one of yes, no",
		.words = WORDS("no", "yes"), .fallback = CONF_YES},
};

struct section {
	char *name; /* "Defaults", or a service's name */
	struct conf_settings settings;
	bool set[CONF_KEYS];
};

struct conf {
	conf_report_t report;
	void *userdata;
	void *sections; /* a tsearch() tree of struct section */
	char **files;	/* the names that origins point to */
	size_t n_files;
};

/* Where the reader is. */
struct place {
	struct conf *conf;
	struct conf_problem problem;
	struct section *section; /* NULL: none, or one that is dropped */
	bool dropped;
	bool crlf; /* said once per file */
};

static void report(struct place *at, const char *key, const char *value, const char *what)
{
	at->problem.key = key;
	at->problem.value = value;
	at->problem.what = what;
	if (at->conf->report)
		at->conf->report(&at->problem, at->conf->userdata);
}

static int compare_sections(const void *a, const void *b)
{
	return strcmp(((const struct section *)a)->name, ((const struct section *)b)->name);
}

static const struct section *find_section(const struct conf *conf, const char *name)
{
	struct section key = {.name = (char *)name};
	void *node = tfind(&key, &conf->sections, compare_sections);

	return node ? *(struct section **)node : NULL;
}

static int add_section(struct conf *conf, const char *name, struct section **ret)
{
	struct section *section = calloc(1, sizeof(*section));

	if (!section || !(section->name = strdup(name)) ||
		!tsearch(section, &conf->sections, compare_sections)) {
		if (section)
			free(section->name);
		free(section);
		return -ENOMEM;
	}
	*ret = section;
	return 0;
}

static void free_section(void *p)
{
	struct section *section = p;

	free(section->name);
	free(section);
}

/* NULL, or why this cannot be the name of a section. */
static const char *check_section_name(const char *name)
{
	if (strcmp(name, "Defaults") == 0 || unit_service_form(name) != UNIT_INVALID)
		return NULL;
	if (strlen(name) > UNIT_NAME_MAX)
		return "longer than any unit's name (255 bytes), ignoring the section";
	if (!strrchr(name, '.') || !strstr(name, ".service"))
		return "not Defaults and no service (a unit's name ends in .service), "
		       "ignoring the section";
	return "not a valid unit name, ignoring the section";
}

static int parse_section_line(struct place *at, char *line, size_t length)
{
	const char *wrong;
	char *name = line + 1;

	at->section = NULL;
	at->dropped = true;
	at->problem.section = NULL;
	if (length < 2 || line[length - 1] != ']') {
		report(at, NULL, line, "a section line ends in ], ignoring the section");
		return 0;
	}
	line[length - 1] = '\0';
	at->problem.section = name;
	wrong = check_section_name(name);
	if (wrong) {
		report(at, NULL, NULL, wrong);
		return 0;
	}
	at->dropped = false;
	at->section = (struct section *)find_section(at->conf, name);
	return at->section ? 0 : add_section(at->conf, name, &at->section);
}

static void parse_assignment(struct place *at, const char *name, const char *value)
{
	unsigned where = strcmp(at->section->name, "Defaults") == 0 ? IN_DEFAULTS : IN_UNIT;
	const char *wrong;
	uint64_t parsed;

	for (unsigned i = 0; i < CONF_KEYS; i++) {
		if (strcmp(name, keys[i].name) != 0)
			continue;
		if (!(keys[i].sections & where)) {
			report(at, name, value, "not a key of this section, ignoring the line");
			return;
		}
		if (!*value) {
			at->section->set[i] = false;
			return;
		}
		wrong = keys[i].parse(&keys[i], value, &parsed);
		if (wrong) {
			report(at, name, value, wrong);
			return;
		}
		at->section->settings.value[i] = parsed;
		at->section->settings.origin[i] =
			(struct conf_origin){at->problem.file, at->problem.line};
		at->section->set[i] = true;
		return;
	}
	report(at, name, value, "unknown key, ignoring the line");
}

/* Cuts space off both ends of the string [*start, end), and terminates it. */
static char *strip(char *start, char *end)
{
	while (start < end && (*start == ' ' || *start == '\t'))
		start++;
	while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = '\0';
	return start;
}

/* `end` is the newline or the end of the text; the byte there may be overwritten. */
static int parse_line(struct place *at, char *line, char *end)
{
	char *equals, *value;
	size_t length;

	if (memchr(line, '\0', (size_t)(end - line))) {
		/* If this was a section line, what follows does not belong to the last one. */
		if (memchr(line, '[', (size_t)(end - line))) {
			at->section = NULL;
			at->dropped = true;
			at->problem.section = NULL;
			report(at, NULL, NULL, "the line holds a NUL byte, ignoring the section");
		} else if (!at->dropped) {
			report(at, NULL, NULL, "the line holds a NUL byte, ignoring the line");
		}
		return 0;
	}
	if (end > line && end[-1] == '\r') {
		end--;
		if (!at->crlf)
			report(at, NULL, NULL, "the line ends in CR LF, reading on as if in LF");
		at->crlf = true;
	}
	line = strip(line, end);
	length = strlen(line);
	if (length == 0 || *line == '#' || *line == ';')
		return 0;
	if (*line == '[')
		return parse_section_line(at, line, length);
	if (at->dropped)
		return 0;
	equals = strchr(line, '=');
	if (!equals) {
		report(at, NULL, line, "neither [section] nor key=value, ignoring the line");
		return 0;
	}
	value = strip(equals + 1, line + length);
	line = strip(line, equals);
	if (!at->section)
		report(at, line, value, "before the first section, ignoring the line");
	else
		parse_assignment(at, line, value);
	return 0;
}

/* Origins outlive the text they were read from. */
static int keep_file_name(struct conf *conf, const char *file, const char **ret)
{
	char **files = reallocarray(conf->files, conf->n_files + 1, sizeof(*files));

	if (!files)
		return -ENOMEM;
	conf->files = files;
	files[conf->n_files] = strdup(file);
	if (!files[conf->n_files])
		return -ENOMEM;
	*ret = files[conf->n_files++];
	return 0;
}

int conf_parse(struct conf *conf, const char *file, char *text, size_t size)
{
	struct place at = {.conf = conf};
	char *end = text + size;
	int r = keep_file_name(conf, file, &at.problem.file);

	if (r < 0)
		return r;
	at.problem.line = 1;
	if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		report(&at, NULL, NULL,
			"the file starts with a byte order mark, reading on behind it");
		text += 3;
	}
	while (text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));

		if (!newline)
			newline = end;
		r = parse_line(&at, text, newline);
		if (r < 0)
			return r;
		text = newline + 1;
		at.problem.line++;
	}
	return 0;
}

int conf_new(conf_report_t report_problem, void *userdata, struct conf **ret)
{
	struct conf *conf = calloc(1, sizeof(*conf));

	if (!conf)
		return -ENOMEM;
	conf->report = report_problem;
	conf->userdata = userdata;
	*ret = conf;
	return 0;
}

void conf_free(struct conf *conf)
{
	if (!conf)
		return;
	tdestroy(conf->sections, free_section);
	for (size_t i = 0; i < conf->n_files; i++)
		free(conf->files[i]);
	free(conf->files);
	free(conf);
}

static void lay_over(const struct conf *conf, const char *name, struct conf_settings *settings)
{
	const struct section *section = find_section(conf, name);

	for (unsigned i = 0; section && i < CONF_KEYS; i++)
		if (section->set[i]) {
			settings->value[i] = section->settings.value[i];
			settings->origin[i] = section->settings.origin[i];
		}
}

void conf_add_alias(const struct conf *conf, const char *alias, struct conf_settings *settings)
{
	char template[UNIT_NAME_MAX + 1];

	if (unit_template(alias, template) == 0)
		lay_over(conf, template, settings);
	lay_over(conf, alias, settings);
}

void conf_for_unit(const struct conf *conf, const char *unit, struct conf_settings *settings)
{
	for (unsigned i = 0; i < CONF_KEYS; i++) {
		settings->value[i] = keys[i].fallback;
		settings->origin[i] = (struct conf_origin){0};
	}
	lay_over(conf, "Defaults", settings);
	if (unit)
		conf_add_alias(conf, unit, settings);
}

struct walk {
	void (*each)(const char *name, void *userdata);
	void *userdata;
};

static void visit_section(const void *node, VISIT visit, void *userdata)
{
	const struct section *section = *(struct section *const *)node;
	struct walk *walk = userdata;

	if ((visit == postorder || visit == leaf) && strcmp(section->name, "Defaults") != 0)
		walk->each(section->name, walk->userdata);
}

void conf_each_section(
	const struct conf *conf, void (*each)(const char *name, void *userdata), void *userdata)
{
	struct walk walk = {each, userdata};

	twalk_r(conf->sections, visit_section, &walk);
}

const char *conf_key_name(enum conf_key key)
{
	return keys[key].name;
}

static int format_value(
	const struct key *key, const char *const *words, uint64_t value, char *buf, size_t size)
{
	unsigned suffix = 0;

	if (words)
		return snprintf(buf, size, "%s", words[value]);
	if (value == 0)
		return snprintf(buf, size, "%s", key->parse == parse_merge_threshold ? "" : "auto");
	for (; suffix < 4 && value % 1024 == 0; suffix++)
		value /= 1024;
	return snprintf(buf, size, "%llu%.1s", (unsigned long long)value, &"\0KMGT"[suffix]);
}

int conf_format_value(
	const struct conf_settings *settings, enum conf_key key, char *buf, size_t size)
{
	return format_value(&keys[key], keys[key].words, settings->value[key], buf, size);
}

int conf_format_options(const struct conf_settings *settings, char *buf, size_t size)
{
	char value[32];
	int length = 0;

	if (size)
		*buf = '\0';
	for (unsigned i = 0; i < CONF_KEYS; i++) {
		const struct key *key = &keys[i];

		if (!key->option || (i != CONF_MODE && settings->value[i] == key->fallback))
			continue;
		format_value(key, key->option_words ? key->option_words : key->words,
			settings->value[i], value, sizeof(value));
		length += snprintf(buf + ((size_t)length < size ? (size_t)length : size),
			(size_t)length < size ? size - (size_t)length : 0, "%s%s=%s",
			length ? ":" : "", key->option, value);
	}
	return length;
}

/* Appends what a file said: other bytes than printable ASCII as \xNN, and no more than `limit`. */
static void print_quoted(FILE *stream, const char *text, size_t limit)
{
	for (size_t i = 0; text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		if (i == limit) {
			fputs("...", stream);
			return;
		}
		if (c < ' ' || c > '~' || c == '\\')
			fprintf(stream, "\\x%02x", c);
		else
			fputc(c, stream);
	}
}

int conf_format_problem(const struct conf_problem *problem, char *buf, size_t size)
{
	char *line = NULL;
	size_t length;
	FILE *stream = open_memstream(&line, &length);
	int r;

	if (!stream)
		return snprintf(buf, size, "%s: %s", problem->file, problem->what);
	fputs(problem->file, stream);
	if (problem->line)
		fprintf(stream, ":%u", problem->line);
	fputs(": ", stream);
	if (problem->section) {
		fputc('[', stream);
		print_quoted(stream, problem->section, 255);
		fputs(problem->key || problem->value ? "] " : "]: ", stream);
	}
	if (problem->key) {
		print_quoted(stream, problem->key, 64);
		fputc('=', stream);
	}
	if (problem->value)
		print_quoted(stream, problem->value, 128);
	if (problem->key || problem->value)
		fputs(": ", stream);
	fputs(problem->what, stream);
	if (fclose(stream) != 0 || !line) {
		free(line);
		return snprintf(buf, size, "%s: %s", problem->file, problem->what);
	}
	r = snprintf(buf, size, "%s", line);
	free(line);
	return r;
}
