/* SPDX-License-Identifier: MIT */
/*
 * files: lists of files gathered from several directories, as systemd gathers drop-ins.
 *
 * Directories are added the most important first: a file hides those of the same name (its
 * path's last part) in the directories after it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct files {
	char **path;
	size_t n;
};

#define auto_files __attribute__((cleanup(files_free)))

/* Takes over `path`, also when it fails; NULL (out of memory) makes it fail. */
int files_add(struct files *files, char *path);

/* Adds what is in `dir`, ends in `end`, does not begin with a dot and is not hidden. No order. A
 * directory that cannot be read is empty. -ENOMEM. */
int files_add_from(struct files *files, const char *dir, const char *end);

/* By their names, wherever they lie. */
void files_sort(struct files *files);

void files_free(struct files *files);

/* The part of `path` behind its last slash. */
const char *last_part(const char *path);

/* What a symlink to /dev/null leads to. */
bool is_null_device(const struct stat *st);
