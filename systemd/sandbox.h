/* SPDX-License-Identifier: MIT */
/*
 * sandbox: what of a unit's sandbox stands in the way of the library and its reports, and the
 * least that opens it.
 *
 * Two kinds of need. To run at all: the library's file must be there and executable, and no system
 * call that it makes may be deadly; none that we allow for this gives the service anything to reach
 * out with. To report: a socket of AF_UNIX to /run/systemd/journal/socket. Only that is left to
 * OpenSandbox=.
 *
 * A filter that forbids socket() forbids the network too. So where we have to allow it, sockets
 * are restricted to AF_UNIX at the same time, unless the unit restricts them already.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* The state after the assignments seen so far; starts as all zero. */
struct sandbox {
	bool filtered;	  /* SystemCallFilter= is in force */
	unsigned allowed; /* what it allows, of the calls in sandbox.c */
	bool not_deadly;  /* SystemCallErrorNumber=: what is not allowed fails */

	bool restricted;  /* RestrictAddressFamilies= is in force */
	bool allow_list;  /* it says what is allowed, not what is forbidden */
	bool unix_listed; /* AF_UNIX is in it */

	bool root_dir, root_image; /* RootDirectory=, RootImage= */
	bool no_api_mounts;	   /* MountAPIVFS=no */
	bool hides_library;	   /* a file system of the unit's own lies over it */
	bool hides_journal;	   /* ... or over the journal's socket */
	bool unreachable;	   /* InaccessiblePaths= */
	bool no_exec;		   /* NoExecPaths= */
};

/* Takes one assignment of the [Service] section; `library` is the library's file. */
void sandbox_assign(
	struct sandbox *sandbox, const char *key, const char *value, const char *library);

/* Where the processes of the unit find the library; NULL: where everybody does. */
const char *sandbox_library(const struct sandbox *sandbox);

/* Writes the lines of the [Service] section that are needed, each with its reason. */
void sandbox_write(
	const struct sandbox *sandbox, bool for_reports, const char *library, FILE *stream);
