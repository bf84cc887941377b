/* SPDX-License-Identifier: MIT */
/*
 * journal: the crash reports in the journals of this machine, or of others.
 */
#pragma once

#include "crash.h"

#include <stdbool.h>
#include <stdint.h>

struct journal_filter {
	const char *directory; /* read the journals in there; NULL for this machine's */
	bool merge;	       /* those of other machines as well that are kept with them */
	bool this_boot;
	uint64_t since, until; /* µs since 1970; 0 for no limit */
	const char *unit;      /* a pattern for whole unit names, NULL for every unit */
};

/*
 * Calls @found with each report, the oldest first, until it returns something other than 0, which
 * is passed on. @found may take what is in the crash by emptying it.
 */
int journal_for_each(const struct journal_filter *filter,
	int (*found)(struct crash *crash, void *context), void *context);

/*
 * The last thing the dynamic linker said about a preload that it ignored, in process @pid's name
 * this boot; the caller frees it. -ENOENT if it said nothing.
 */
int journal_loader_error(pid_t pid, char **ret);
