/* SPDX-License-Identifier: MIT */
/*
 * fragment: what the files of a unit say, found and read as systemd does it.
 *
 * A unit is its main file (systemd calls it the fragment), the most important of that name in
 * the unit path or of its template's name, and its drop-ins: *.conf of NAME.d for all its names,
 * their templates, their prefixes (foo-.service.d) and service.d, merged by file name and read in
 * the order of those. A symlink in the unit path to a unit of another name in it makes an alias.
 *
 * Units made by generators are not seen: those run at the same time as ours.
 */
#pragma once

#include <stdbool.h>

#include "unit.h"

struct fragments;

/* Looks over the unit path once. `root`, "" for the system's own, must outlive the result. */
int fragments_open(enum unit_scope scope, const char *root, struct fragments **ret);
void fragments_close(struct fragments *fragments);

enum unit_state { UNIT_MISSING, UNIT_MASKED, UNIT_THERE };

/* Follows aliases: the name that systemd knows the unit by goes to `ret_id`, of
 * UNIT_NAME_MAX + 1 bytes. A missing or masked unit is no error. */
int fragment_find(const struct fragments *fragments, const char *name, char *ret_id,
	enum unit_state *ret_state);

/* One assignment of a unit; `file` is the last part of the name of the file it stands in, and
 * "" in the main file. Negative errno ends the reading. */
typedef int (*fragment_each_t)(
	const char *section, const char *key, char *value, const char *file, void *userdata);

/* Every assignment of a unit, in the order in which they count. Files that cannot be read are
 * passed over as systemd does it. */
int fragment_read(
	const struct fragments *fragments, const char *id, fragment_each_t each, void *userdata);

/* Every symlink of the *.wants, *.requires and *.upholds directories of the unit path that is not
 * masked; `dir` is the directory's path below the root. */
typedef int (*fragment_link_t)(const char *dir, const char *name, void *userdata);
int fragment_links(const struct fragments *fragments, fragment_link_t each, void *userdata);

/* The next word of a value, and moves on. With `unquote`, quotes and C escapes are resolved, in
 * place. NULL at the end; -EINVAL in `ret_error` if the value is not well-formed. */
char *fragment_word(char **value, bool unquote, int *ret_error);
