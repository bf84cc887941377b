/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "text.h"
#include "util.h"

struct options options;

/* A word and what it stands for; a list ends with a NULL word. */
struct word {
	const char *word;
	unsigned value;
};

static const struct word modes[] = {
	{"auto", VATALLOC_MODE_UNSET},
	{"sync", VATALLOC_MODE_SYNC},
	{"async", VATALLOC_MODE_ASYNC},
	{"address", VATALLOC_MODE_ADDRESS},
	{"count", VATALLOC_MODE_COUNT},
	{"off", VATALLOC_MODE_OFF},
	{NULL, 0},
};

static const struct word exhaustions[] = {{"recycle", false}, {"abort", true}, {NULL, 0}};
static const struct word faults[] = {{"report", false}, {"silent", true}, {NULL, 0}};
static const struct word fallbacks[] = {{"address", false}, {"abort", true}, {NULL, 0}};
static const struct word exits[] = {{"no", false}, {"exit", true}, {NULL, 0}};
static const struct word lives[] = {
	{"auto", 0}, {"1", 1}, {"2", 2}, {"4", 4}, {"8", 8}, {"15", 15}, {NULL, 0}};
static const struct word autos[] = {
	{"auto", CHOICE_AUTO}, {"no", CHOICE_NO}, {"yes", CHOICE_YES}, {NULL, 0}};

enum kind {
	KIND_UNSIGNED, /* a word of the list, in an unsigned */
	KIND_BOOL,     /* a word of the list, in a bool */
	KIND_SIZE,     /* bytes with K, M, G or T, or "auto" for 0, in a size_t */
};

/* Every option there is. The first word of a list is its default; that of a size is auto. */
static const struct option {
	const char *key;
	enum kind kind;
	size_t offset; /* in struct options */
	const struct word *words;
	size_t least, most; /* of a size, which is a power of two where both are set */
} table[] = {
	{"mode", KIND_UNSIGNED, offsetof(struct options, mode), modes, 0, 0},
	{"lives", KIND_UNSIGNED, offsetof(struct options, lives), lives, 0, 0},
	{"granularity", KIND_SIZE, offsetof(struct options, granularity), NULL, 4 << 10, 2 << 20},
	{"on_exhaustion", KIND_BOOL, offsetof(struct options, abort_exhausted), exhaustions, 0, 0},
	{"on_fault", KIND_BOOL, offsetof(struct options, silent), faults, 0, 0},
	{"fallback", KIND_BOOL, offsetof(struct options, abort_fallback), fallbacks, 0, 0},
	{"stats", KIND_BOOL, offsetof(struct options, stats_at_exit), exits, 0, 0},
	{"journal", KIND_UNSIGNED, offsetof(struct options, journal), autos, 0, 0},
	{"space", KIND_SIZE, offsetof(struct options, space), NULL, 0, 0},
};

enum {
	TEXT_MAX = 64, /* bytes of a key or value that can be right */
	SPACE_LEAST = 64 << 20,
};

const char *mode_name(unsigned mode)
{
	if (mode == VATALLOC_MODE_MTE)
		return "mte";
	for (const struct word *w = modes; w->word; w++)
		if (w->value == mode)
			return w->word;
	return "unknown";
}

static int parse_size(const char *text, size_t *ret_size)
{
	static const char units[] = "KMGT";
	const char *unit;
	size_t n = 0;

	if (!strcmp(text, "auto")) {
		*ret_size = 0;
		return 0;
	}
	if (*text < '0' || *text > '9')
		return -EINVAL;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(n, 10, &n) ||
			__builtin_add_overflow(n, (size_t)(*text - '0'), &n))
			return -ERANGE;
	if (*text) {
		unit = strchr(units, *text);
		if (!unit || text[1])
			return -EINVAL;
		if (__builtin_mul_overflow(n, (size_t)1024 << 10 * (unit - units), &n))
			return -ERANGE;
	}
	*ret_size = n;
	return 0;
}

static bool size_fits(const struct option *o, size_t size)
{
	if (size == 0)
		return true;
	if (o->most)
		return size >= o->least && size <= o->most && (size & (size - 1)) == 0;
	return size >= SPACE_LEAST;
}

/* Stores @value, or returns -EINVAL and leaves the default. */
static int set(const struct option *o, const char *value)
{
	char *field = (char *)&options + o->offset;
	size_t size;

	if (o->kind == KIND_SIZE) {
		if (parse_size(value, &size) < 0 || !size_fits(o, size))
			return -EINVAL;
		*(size_t *)(void *)field = size;
		return 0;
	}
	for (const struct word *w = o->words; w->word; w++) {
		if (strcmp(w->word, value))
			continue;
		if (o->kind == KIND_BOOL)
			*(bool *)field = w->value;
		else
			*(unsigned *)(void *)field = w->value;
		return 0;
	}
	return -EINVAL;
}

static void apply(const char *key, const char *value)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		if (strcmp(table[i].key, key))
			continue;
		if (set(&table[i], value) < 0)
			say("bad value '", value, "' for option '", key, "', using '",
				table[i].words ? table[i].words->word : "auto", "'", NULL);
		return;
	}
	say("unknown option '", key, "', ignoring", NULL);
}

/*
 * The environment as the kernel made it, for a heap that is used before libc's own start has set
 * `environ`, by the preinit functions of a program.
 */
static const char *early_options(void)
{
	static const char name[] = "VATALLOC_OPTIONS=";
	static char buf[32 << 10];
	size_t used = 0;
	ssize_t n;
	int fd;

	if (getauxval(AT_SECURE))
		return NULL;
	fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	while (used < sizeof(buf) - 1 && (n = read(fd, buf + used, sizeof(buf) - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	for (const char *at = buf; at < buf + used; at += strlen(at) + 1)
		if (!strncmp(at, name, sizeof(name) - 1))
			return at + sizeof(name) - 1;
	return NULL;
}

void options_init(void)
{
	const char *next = environ ? secure_getenv("VATALLOC_OPTIONS") : early_options();
	char item[2 * TEXT_MAX];

	while (next && *next) {
		size_t len = strcspn(next, ":");
		size_t copied = min_size(len, sizeof(item) - 1);
		char *equals;

		memcpy(item, next, copied);
		item[copied] = '\0';
		equals = strchr(item, '=');
		if (equals) {
			*equals = '\0';
			apply(item, equals + 1);
		} else if (len) {
			say("option '", item, "' has no value, ignoring", NULL);
		}
		next += len + (next[len] == ':');
	}
}
