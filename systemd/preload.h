/* SPDX-License-Identifier: MIT */
/*
 * preload: what a unit says of LD_PRELOAD itself, in which ours goes in front.
 *
 * systemd reads it from Environment=, of which the last one counts, then from each
 * EnvironmentFile=, over which no Environment= wins; and UnsetEnvironment= takes it away in the
 * end.
 */
#pragma once

#include <stdbool.h>

#include "files.h"

/* The state after the assignments seen so far; starts as all zero. Free with preload_free(). */
struct preload {
	char *environment;  /* as Environment= says it, specifiers and all; NULL: not set */
	char *from_files;   /* as the environment files say it now; NULL: not set */
	bool unset;	    /* UnsetEnvironment= */
	bool options;	    /* VATALLOC_OPTIONS is set as well, by Environment= */
	struct files files; /* EnvironmentFile=, as the unit says it */
};

#define auto_preload __attribute__((cleanup(preload_free)))

/* Takes one assignment of the [Service] section. Says in `ret_undoes` whether an Environment= or
 * EnvironmentFile= of ours that comes before it would have no effect; it is set in any case. */
int preload_assign(struct preload *preload, const char *key, char *value, bool *ret_undoes);

/* Fills in `from_files` for the unit `id`. Files that cannot be read are passed over. */
int preload_read_files(struct preload *preload, const char *id, const char *root);

void preload_free(struct preload *preload);
