// SPDX-License-Identifier: MIT
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#include "auto.h"
#include "fragment.h"

/* A larger environment file is not looked into. */
#define FILE_MAX (1024 * 1024)

static int replace(char **text, const char *with)
{
	char *copy = with ? strdup(with) : NULL;

	if (with && !copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

/* The value, if `assignment` is one of the variable `name`. */
static char *value_of(char *assignment, const char *name)
{
	size_t length = strlen(name);

	return strncmp(assignment, name, length) == 0 && assignment[length] == '='
		       ? assignment + length + 1
		       : NULL;
}

static int assign_environment(struct preload *preload, char *value, bool *ret_undoes)
{
	int error = 0, r = 0;
	char *word;

	if (!*value) {
		*ret_undoes = true;
		preload->options = false;
		return replace(&preload->environment, NULL);
	}
	while (r == 0 && (word = fragment_word(&value, true, &error)))
		if (value_of(word, "LD_PRELOAD")) {
			*ret_undoes = true;
			r = replace(&preload->environment, value_of(word, "LD_PRELOAD"));
		} else if (value_of(word, "VATALLOC_OPTIONS")) {
			preload->options = true;
		}
	return r;
}

static void assign_unset(struct preload *preload, char *value)
{
	int error = 0;
	char *word;

	if (!*value)
		preload->unset = false;
	while ((word = fragment_word(&value, true, &error)))
		if (strcmp(word, "LD_PRELOAD") == 0)
			preload->unset = true;
}

int preload_assign(struct preload *preload, const char *key, char *value, bool *ret_undoes)
{
	*ret_undoes = false;
	if (strcmp(key, "Environment") == 0)
		return assign_environment(preload, value, ret_undoes);
	if (strcmp(key, "UnsetEnvironment") == 0)
		assign_unset(preload, value);
	if (strcmp(key, "EnvironmentFile") != 0)
		return 0;
	*ret_undoes = true;
	if (*value)
		return files_add(&preload->files, strdup(value));
	files_free(&preload->files);
	return 0;
}

/* The specifiers that make sense in the name of a file. -EINVAL for others. */
static int expand(const char *text, const char *id, const char *root, char **ret)
{
	const char *at = strchr(id, '@'), *dot = strrchr(id, '.');
	auto_free char *expanded = NULL;
	size_t size;
	FILE *stream = open_memstream(&expanded, &size);

	if (!stream)
		return -ENOMEM;
	fputs(root, stream);
	for (; *text; text++) {
		if (*text != '%') {
			fputc(*text, stream);
			continue;
		}
		text++;
		if (*text == 'n')
			fputs(id, stream);
		else if (*text == 'N')
			fprintf(stream, "%.*s", (int)(dot - id), id);
		else if (*text == 'p')
			fprintf(stream, "%.*s", (int)((at ? at : dot) - id), id);
		else if (*text == 'i' && at)
			fprintf(stream, "%.*s", (int)(dot - at - 1), at + 1);
		else if (*text == '%')
			fputc('%', stream);
		else {
			fclose(stream);
			return -EINVAL;
		}
	}
	if (fclose(stream) != 0)
		return -ENOMEM;
	*ret = take(expanded);
	return 0;
}

/* LD_PRELOAD from one environment file. Only the plain forms: NAME=value, quoted or not. */
static int read_environment_file(const char *path, char **preload)
{
	auto_file FILE *stream = NULL;
	auto_free char *line = NULL;
	struct stat st;
	size_t room = 0;
	int r = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
		close(fd);
		return 0;
	}
	stream = fdopen(fd, "r");
	if (!stream) {
		close(fd);
		return -ENOMEM;
	}
	while (r == 0 && getline(&line, &room, stream) >= 0) {
		char *value = value_of(line + strspn(line, " \t"), "LD_PRELOAD");
		int error = 0;

		if (!value)
			continue;
		/* A value with space in it is quoted, or ends at the line's end. */
		if (*value == '"' || *value == '\'') {
			value = fragment_word(&value, true, &error);
		} else {
			size_t length = strcspn(value, "\r\n");

			while (length && (value[length - 1] == ' ' || value[length - 1] == '\t'))
				length--;
			value[length] = '\0';
		}
		if (value)
			r = replace(preload, value);
	}
	return r;
}

int preload_read_files(struct preload *preload, const char *id, const char *root)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < preload->files.n; i++) {
		const char *pattern = preload->files.path[i];
		auto_free char *expanded = NULL;
		glob_t found = {0};

		r = expand(pattern + (*pattern == '-'), id, root, &expanded);
		if (r == 0 && glob(expanded, 0, NULL, &found) == 0)
			for (size_t k = 0; r == 0 && k < found.gl_pathc; k++)
				r = read_environment_file(found.gl_pathv[k], &preload->from_files);
		globfree(&found);
		if (r == -EINVAL)
			r = 0;
	}
	return r;
}

void preload_free(struct preload *preload)
{
	free(preload->environment);
	free(preload->from_files);
	files_free(&preload->files);
}
