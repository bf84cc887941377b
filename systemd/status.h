/* SPDX-License-Identifier: MIT */
/*
 * status: how well one unit is protected, which is as well as the worst of its processes is.
 *
 * The counters of several processes are added up, but address space is not: each has its own, and
 * the fullest one counts.
 */
#pragma once

#include "process.h"
#include "service.h"

struct status {
	struct service service;
	struct process *processes; /* those that have gone since are not among them */
	size_t n_processes, n_protected;
	bool denied;		     /* this user may not look into one of them */
	enum verdict verdict;	     /* of the worst one; VERDICT_UNDECIDED without processes */
	const struct process *worst; /* NULL without processes */
	const struct process *main;  /* the main process, or the first; NULL without processes */
	uint64_t space_used, space_size;
	uint64_t live_bytes, dead_resident, lives_used, bytes_retired, bytes_recycled;
};

/* -ENOENT for a unit that does not exist. */
int status_read(sd_bus *bus, bool user, const char *unit, struct status *ret);

void status_free(struct status *status);

/* Whether it takes root to tell: this user may not look into all, and sees none unprotected. */
bool status_is_unknown(const struct status *status);

/*
 * Why one process of the unit is protected or not, with what is known of the unit; a sentence
 * without a full stop, which the caller frees.
 */
int status_describe(const struct status *status, const struct process *process, char **ret);
