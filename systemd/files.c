// SPDX-License-Identifier: MIT
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

int files_add(struct files *files, char *path)
{
	char **more = path ? reallocarray(files->path, files->n + 1, sizeof(*more)) : NULL;

	if (!more) {
		free(path);
		return -ENOMEM;
	}
	files->path = more;
	more[files->n++] = path;
	return 0;
}

int files_add_from(struct files *files, const char *dir, const char *end)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	int r = 0;

	while (stream && r == 0 && (entry = readdir(stream))) {
		size_t length = strlen(entry->d_name);
		bool hidden = *entry->d_name == '.' || length <= strlen(end) ||
			      strcmp(entry->d_name + length - strlen(end), end) != 0;
		char *path;

		for (size_t i = 0; !hidden && i < files->n; i++)
			hidden = strcmp(last_part(files->path[i]), entry->d_name) == 0;
		if (hidden)
			continue;
		if (asprintf(&path, "%s/%s", dir, entry->d_name) < 0)
			path = NULL;
		r = files_add(files, path);
	}
	if (stream)
		closedir(stream);
	return r;
}

static int compare(const void *a, const void *b)
{
	return strcmp(last_part(*(char *const *)a), last_part(*(char *const *)b));
}

void files_sort(struct files *files)
{
	if (files->n)
		qsort(files->path, files->n, sizeof(*files->path), compare);
}

void files_free(struct files *files)
{
	for (size_t i = 0; i < files->n; i++)
		free(files->path[i]);
	free(files->path);
	*files = (struct files){0};
}
