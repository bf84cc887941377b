/* SPDX-License-Identifier: MIT */
/*
 * service: a unit as the service manager sees it, and the processes in its control group.
 *
 * The manager is asked over its private socket where this user may (root, and each user's own
 * manager), so that no D-Bus daemon is needed, and over the bus otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

struct service {
	char *id;	     /* the full unit name */
	char *load_state;    /* "loaded", "not-found", ... */
	char *active_state;  /* "active", "inactive", ... */
	char *control_group; /* "" without one */
	char *root;	     /* RootDirectory= or RootImage=, "" without */
	bool enabled;	     /* our drop-in is in force */
	bool reload_needed;  /* its files changed since the manager read them */
	bool files;	     /* it has an EnvironmentFile= */
	char *preload;	     /* LD_PRELOAD as its Environment= says, NULL without */
	pid_t main_pid;	     /* 0 without */
	uint64_t started; /* when the main process was started, in µs since 1970; 0 if it was not */
	bool user;	  /* of this user's manager */
};

/*
 * A connection to the manager of the system or, with @user, of this user. Negative errno; -ENOTCONN
 * or -ECONNRESET if the bus turned this user away.
 */
int service_connect(bool user, sd_bus **ret);

/* -ENOENT for a unit that does not exist. */
int service_read(sd_bus *bus, bool user, const char *unit, struct service *ret);

void service_free(struct service *service);

/*
 * Whether the main process was started before vatalloc was enabled for the service: before the
 * first of the links that enable it was made.
 */
bool service_is_older(const struct service *service);

/* The unit that @pid belongs to; the caller frees it. -ENODATA if none. */
int service_of_process(pid_t pid, bool user, char **ret);

/* The processes of the unit and of all groups below it, in ascending order; the caller frees them.
 */
int service_processes(const struct service *service, pid_t **ret, size_t *ret_n);

/*
 * The names of the units our generator has written a drop-in for, sorted and each once; the caller
 * frees the array and each name.
 */
int service_enabled(bool user, char ***ret, size_t *ret_n);
