// SPDX-License-Identifier: MIT
#include "fragment.h"
#include "auto.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static const char space[] = " \t\n\r";

/* systemd gives up on longer chains too. */
#define ALIASES_DEEP 8

/* A unit file larger than this is no unit file. */
#define FILE_MAX (4 * 1024 * 1024)

struct alias {
	char name[UNIT_NAME_MAX + 1]; /* may be a template */
	char id[UNIT_NAME_MAX + 1];
};

struct fragments {
	const char *root;
	char **path;
	struct alias *aliases;
	size_t n_aliases;
};

/* Where a symlink leads, as a path on this machine: an absolute one stays below the root. */
static int read_link(const char *root, const char *path, char **ret)
{
	char target[PATH_MAX];
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	int r;

	if (length < 0)
		return -errno;
	target[length] = '\0';
	if (strcmp(target, "/dev/null") == 0)
		r = asprintf(ret, "%s", target);
	else if (*target == '/')
		r = asprintf(ret, "%s%s", root, target);
	else
		r = asprintf(ret, "%.*s%s", (int)(last_part(path) - path), path, target);
	return r < 0 ? -ENOMEM : 0;
}

/* An empty file, or a symlink to one or to /dev/null. */
static bool is_masked(const char *root, const char *path)
{
	auto_free char *target = NULL;
	struct stat st;

	if (lstat(path, &st) < 0)
		return false;
	if (S_ISLNK(st.st_mode) && (read_link(root, path, &target) < 0 || stat(target, &st) < 0))
		return false;
	return is_null_device(&st) || (S_ISREG(st.st_mode) && st.st_size == 0);
}

/* Whether `target`, without its last part, is one of the directories of the unit path. */
static bool in_unit_path(const struct fragments *fragments, const char *target)
{
	size_t length = (size_t)(last_part(target) - target);

	for (char **dir = fragments->path; *dir; dir++)
		if (strlen(*dir) + 1 == length && strncmp(*dir, target, length - 1) == 0)
			return true;
	/* Symlinks from before /usr was merged say /lib. */
	target += strlen(fragments->root);
	return strncmp(target, "/lib/systemd/", strlen("/lib/systemd/")) == 0 ||
	       strncmp(target, "/usr/lib/systemd/", strlen("/usr/lib/systemd/")) == 0;
}

/* The most important file called `name`: -ENOENT if there is none. */
static int look_up(const struct fragments *fragments, const char *name, char **ret)
{
	for (char **dir = fragments->path; *dir; dir++) {
		struct stat st;
		char *file;

		if (asprintf(&file, "%s/%s", *dir, name) < 0)
			return -ENOMEM;
		if (lstat(file, &st) == 0 && !S_ISDIR(st.st_mode)) {
			*ret = file;
			return 0;
		}
		free(file);
	}
	return -ENOENT;
}

/* One step: the file of `name` or its template, and if that is an alias, the name it stands for
 * in `name`, -EAGAIN. */
static int step(const struct fragments *fragments, char *name, char **ret_file)
{
	char template[UNIT_NAME_MAX + 1], other[UNIT_NAME_MAX + 1];
	auto_free char *file = NULL, *target = NULL;
	int r = look_up(fragments, name, &file);

	if (r == -ENOENT && unit_template(name, template) == 0)
		r = look_up(fragments, template, &file);
	if (r < 0)
		return r;
	r = read_link(fragments->root, file, &target);
	if (r == -ENOMEM)
		return r;
	if (r == 0 && strcmp(target, "/dev/null") != 0) {
		const char *to = last_part(target);

		if (strcmp(to, last_part(file)) != 0 && in_unit_path(fragments, target) &&
			unit_service_form(to) != UNIT_INVALID) {
			if (unit_with_instance(to, name, other) == 0)
				to = other;
			memmove(name, to, strlen(to) + 1);
			return -EAGAIN;
		}
		free(take(file));
		file = take(target);
	}
	*ret_file = take(file);
	return 0;
}

/* fragment_find(), and the file, which is NULL if there is none. */
static int find_file(const struct fragments *fragments, const char *name, char *id, char **ret_file)
{
	int r = -EAGAIN;

	*ret_file = NULL;
	memmove(id, name, strlen(name) + 1);
	for (int i = 0; i < ALIASES_DEEP && r == -EAGAIN; i++)
		r = step(fragments, id, ret_file);
	/* A ring of aliases is no unit. */
	return r == -EAGAIN || r == -ENOENT ? 0 : r;
}

int fragment_find(const struct fragments *fragments, const char *name, char *ret_id,
	enum unit_state *ret_state)
{
	auto_free char *file = NULL;
	int r = find_file(fragments, name, ret_id, &file);

	if (r < 0)
		return r;
	*ret_state = !file				? UNIT_MISSING
		     : is_masked(fragments->root, file) ? UNIT_MASKED
							: UNIT_THERE;
	return 0;
}

/* Notes the services in `dir` that are symlinks: each may be an alias. */
static int note_aliases(struct fragments *fragments, const char *dir)
{
	auto_files struct files units = {0};
	int r = files_add_from(&units, dir, ".service");

	for (size_t i = 0; r == 0 && i < units.n; i++) {
		const char *name = last_part(units.path[i]);
		struct alias *more, *alias;
		auto_free char *file = NULL;
		struct stat st;

		if (unit_service_form(name) == UNIT_INVALID || lstat(units.path[i], &st) < 0 ||
			!S_ISLNK(st.st_mode))
			continue;
		more = reallocarray(fragments->aliases, fragments->n_aliases + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		fragments->aliases = more;
		alias = &more[fragments->n_aliases];
		strcpy(alias->name, name);
		r = find_file(fragments, alias->name, alias->id, &file);
		if (r == 0 && strcmp(alias->name, alias->id) != 0)
			fragments->n_aliases++;
	}
	return r;
}

int fragments_open(enum unit_scope scope, const char *root, struct fragments **ret)
{
	struct fragments *fragments = calloc(1, sizeof(*fragments));
	int r;

	if (!fragments)
		return -ENOMEM;
	fragments->root = root;
	r = unit_path(scope, root, &fragments->path);
	for (char **dir = fragments->path; r == 0 && *dir; dir++)
		r = note_aliases(fragments, *dir);
	if (r < 0) {
		fragments_close(fragments);
		return r;
	}
	*ret = fragments;
	return 0;
}

void fragments_close(struct fragments *fragments)
{
	if (!fragments)
		return;
	unit_path_free(fragments->path);
	free(fragments->aliases);
	free(fragments);
}

/* The drop-ins for one name of the unit in one directory of the path. */
static int list_dropins(struct files *files, const char *dir, const char *name)
{
	char next[UNIT_NAME_MAX + 1];
	auto_free char *path = NULL;
	int r;

	if (asprintf(&path, "%s/%s.d", dir, name) < 0)
		return -ENOMEM;
	r = files_add_from(files, path, ".conf");
	if (r == 0 && unit_template(name, next) == 0)
		r = list_dropins(files, dir, next);
	if (r == 0 && unit_shorten(name, next) == 0)
		r = list_dropins(files, dir, next);
	return r;
}

/* All names of a unit, its own first. */
static int list_names(const struct fragments *fragments, const char *id, struct files *names)
{
	char template[UNIT_NAME_MAX + 1] = "", other[UNIT_NAME_MAX + 1];
	int r = files_add(names, strdup(id));

	unit_template(id, template);
	for (size_t i = 0; r == 0 && i < fragments->n_aliases; i++) {
		const struct alias *alias = &fragments->aliases[i];

		if (strcmp(alias->id, id) == 0)
			r = files_add(names, strdup(alias->name));
		else if (*template && strcmp(alias->id, template) == 0 &&
			 unit_with_instance(alias->name, id, other) == 0)
			r = files_add(names, strdup(other));
	}
	return r;
}

struct reader {
	fragment_each_t each;
	void *userdata;
	const char *file;
	char *section;
};

static char *strip(char *text)
{
	size_t length;

	text += strspn(text, space);
	length = strlen(text);
	while (length && strchr(space, text[length - 1]))
		length--;
	text[length] = '\0';
	return text;
}

static int read_line(struct reader *reader, char *line)
{
	size_t length;
	char *equals;

	line = strip(line);
	length = strlen(line);
	if (*line == '[') {
		free(take(reader->section));
		if (length < 2 || line[length - 1] != ']')
			return 0; /* systemd gives up on such a file */
		line[length - 1] = '\0';
		reader->section = strdup(line + 1);
		return reader->section ? 0 : -ENOMEM;
	}
	equals = strchr(line, '=');
	if (!equals || !reader->section)
		return 0;
	*equals = '\0';
	return reader->each(
		reader->section, strip(line), strip(equals + 1), reader->file, reader->userdata);
}

static bool ends_in_backslash(const char *line)
{
	bool escaped = false;

	for (; *line; line++)
		escaped = *line == '\\' && !escaped;
	return escaped;
}

/* Lines are joined as systemd's conf-parser does it: a backslash at the end becomes a space,
 * comments in between are dropped, and leading space as well. */
static int read_lines(struct reader *reader, FILE *stream)
{
	auto_free char *line = NULL, *joined = NULL;
	size_t room = 0, length = 0, more, total = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = getline(&line, &room, stream)) >= 0) {
		char *start = line, *grown;

		total += (size_t)n;
		if (total > FILE_MAX)
			return 0;
		if (total == (size_t)n && strncmp(line, "\xef\xbb\xbf", 3) == 0)
			start += 3;
		start[strcspn(start, "\n\r")] = '\0';
		start += strspn(start, space);
		if (*start == '#' || *start == ';')
			continue;
		more = strlen(start);
		grown = realloc(joined, length + more + 1);
		if (!grown)
			return -ENOMEM;
		joined = grown;
		memcpy(joined + length, start, more + 1);
		length += more;
		if (ends_in_backslash(start)) {
			joined[length - 1] = ' ';
			continue;
		}
		r = read_line(reader, joined);
		length = 0;
	}
	return r == 0 && length ? read_line(reader, joined) : r;
}

static int read_file(
	const char *root, const char *path, const char *file, fragment_each_t each, void *userdata)
{
	struct reader reader = {each, userdata, file, NULL};
	auto_free char *target = NULL;
	auto_file FILE *stream = NULL;
	struct stat st;
	int fd, r;

	r = read_link(root, path, &target);
	if (r == -ENOMEM)
		return r;
	fd = open(target ? target : path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return 0;
	}
	stream = fdopen(fd, "r");
	if (!stream) {
		close(fd);
		return -ENOMEM;
	}
	r = read_lines(&reader, stream);
	free(reader.section);
	return r;
}

int fragment_read(
	const struct fragments *fragments, const char *id, fragment_each_t each, void *userdata)
{
	auto_files struct files names = {0}, files = {0};
	auto_free char *file = NULL;
	char own[UNIT_NAME_MAX + 1];
	int r = find_file(fragments, id, own, &file);

	if (r == 0 && file)
		r = read_file(fragments->root, file, "", each, userdata);
	if (r == 0)
		r = list_names(fragments, own, &names);
	for (size_t i = 0; r == 0 && i < names.n; i++)
		for (char **dir = fragments->path; r == 0 && *dir; dir++)
			r = list_dropins(&files, *dir, names.path[i]);
	for (char **dir = fragments->path; r == 0 && *dir; dir++)
		r = list_dropins(&files, *dir, "service");
	files_sort(&files);
	for (size_t i = 0; r == 0 && i < files.n; i++)
		r = read_file(
			fragments->root, files.path[i], last_part(files.path[i]), each, userdata);
	return r;
}

int fragment_links(const struct fragments *fragments, fragment_link_t each, void *userdata)
{
	static const char *const kinds[] = {".wants", ".requires", ".upholds"};
	auto_files struct files dirs = {0};
	int r = 0;

	for (char **dir = fragments->path; r == 0 && *dir; dir++)
		for (size_t i = 0; r == 0 && i < lengthof(kinds); i++) {
			/* Those of one name must all be listed: each directory on its own. */
			auto_files struct files found = {0};

			r = files_add_from(&found, *dir, kinds[i]);
			for (size_t k = 0; r == 0 && k < found.n; k++)
				r = files_add(&dirs, take(found.path[k]));
		}
	/* Directories of one name are merged, the most important first. */
	for (size_t i = 0; r == 0 && i < dirs.n; i++) {
		auto_files struct files files = {0};
		bool seen = false;

		for (size_t k = 0; !seen && k < i; k++)
			seen = strcmp(last_part(dirs.path[k]), last_part(dirs.path[i])) == 0;
		for (size_t k = i; r == 0 && !seen && k < dirs.n; k++)
			if (strcmp(last_part(dirs.path[k]), last_part(dirs.path[i])) == 0)
				r = files_add_from(&files, dirs.path[k], ".service");
		for (size_t k = 0; r == 0 && k < files.n; k++) {
			char *name = (char *)last_part(files.path[k]);
			struct stat st;

			if (lstat(files.path[k], &st) < 0 || !S_ISLNK(st.st_mode) ||
				is_masked(fragments->root, files.path[k]))
				continue;
			name[-1] = '\0';
			r = each(files.path[k] + strlen(fragments->root), name, userdata);
			name[-1] = '/';
		}
	}
	return r;
}

/* One C escape behind a backslash. The number of bytes it takes, 0 if it is none. */
static size_t unescape(const char *from, char *to)
{
	static const char names[] = "abfnrtvs\\\"'", values[] = "\a\b\f\n\r\t\v \\\"'";
	const char *name = *from ? strchr(names, *from) : NULL;
	unsigned value = 0;
	size_t n = 0, digits = 3;
	const char *allowed = "01234567";
	unsigned base = 8;

	if (name) {
		*to = values[name - names];
		return 1;
	}
	if (*from == 'x') {
		n = 1;
		allowed = "0123456789abcdef";
		base = 16;
	}
	for (; n < digits; n++) {
		const char *digit;
		char c = from[n];

		if (c >= 'A' && c <= 'F')
			c = (char)(c - 'A' + 'a');
		digit = c ? strchr(allowed, c) : NULL;
		if (!digit)
			return 0;
		value = value * base + (unsigned)(digit - allowed);
	}
	if (value == 0 || value > 255)
		return 0;
	*to = (char)value;
	return n;
}

char *fragment_word(char **value, bool unquote, int *ret_error)
{
	char *from = *value + strspn(*value, space), *word = from, *to = from, quote = '\0';

	if (!*from)
		return NULL;
	for (; *from && (quote || !strchr(space, *from)); from++) {
		if (unquote && *from == '\\') {
			size_t n = unescape(from + 1, to);

			if (n == 0)
				goto invalid;
			to++;
			from += n;
		} else if (unquote && quote && *from == quote) {
			quote = '\0';
		} else if (unquote && !quote && (*from == '"' || *from == '\'')) {
			quote = *from;
		} else {
			*to++ = *from;
		}
	}
	if (quote)
		goto invalid;
	*value = *from ? from + 1 : from;
	*to = '\0';
	return word;
invalid:
	*ret_error = -EINVAL;
	return NULL;
}
