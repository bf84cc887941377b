/* SPDX-License-Identifier: MIT */
#include "status.h"
#include "auto.h"
#include "map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void status_free(struct status *status)
{
	for (size_t i = 0; i < status->n_processes; i++)
		process_free(&status->processes[i]);
	free(status->processes);
	service_free(&status->service);
	*status = (struct status){0};
}

static void add_up(struct status *status)
{
	for (size_t i = 0; i < status->n_processes; i++) {
		const struct process *process = &status->processes[i];
		const struct vatalloc_stats *stats = &process->stats;
		enum verdict verdict = process_verdict(process->reason);

		if (verdict == VERDICT_PROTECTED)
			status->n_protected++;
		if (process->reason == REASON_DENIED)
			status->denied = true;
		if (!status->worst || verdict > process_verdict(status->worst->reason))
			status->worst = process;
		if (!status->main || process->pid == status->service.main_pid)
			status->main = process;
		/* Compared as shares of their sizes: a process with a limit has less. */
		if (!status->space_size || (double)stats->space_used * status->space_size >
						   (double)status->space_used * stats->space_size) {
			status->space_used = stats->space_used;
			status->space_size = stats->space_size;
		}
		status->live_bytes += stats->live_bytes;
		status->dead_resident += stats->dead_resident;
		status->lives_used += stats->lives_used;
		status->bytes_retired += stats->bytes_retired;
		status->bytes_recycled += stats->bytes_recycled;
	}
	status->verdict =
		status->worst ? process_verdict(status->worst->reason) : VERDICT_UNDECIDED;
}

int status_read(sd_bus *bus, bool user, const char *unit, struct status *ret)
{
	struct status status = {0};
	auto_free pid_t *pids = NULL;
	size_t n;
	int r;

	r = service_read(bus, user, unit, &status.service);
	if (r >= 0)
		r = service_processes(&status.service, &pids, &n);
	if (r >= 0 && n) {
		status.processes = calloc(n, sizeof(*status.processes));
		r = status.processes ? 0 : -ENOMEM;
	}
	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct process *process = &status.processes[status.n_processes];

		r = process_read(pids[i], process);
		if (r < 0)
			break;
		if (process->reason == REASON_GONE)
			process_free(process);
		else
			status.n_processes++;
	}
	if (r < 0) {
		status_free(&status);
		return r;
	}
	add_up(&status);
	*ret = status;
	return 0;
}

bool status_is_unknown(const struct status *status)
{
	return status->denied && status->verdict == VERDICT_UNDECIDED;
}

/* The reasons that a process has which was started before its service got the library. */
static bool may_be_older(enum reason reason)
{
	/* Where the environment is not known, a profile is only the likeliest reason. */
	return reason == REASON_ENVIRONMENT || reason == REASON_CONFINED ||
	       reason == REASON_UNKNOWN;
}

int status_describe(const struct status *status, const struct process *process, char **ret)
{
	const struct service *service = &status->service;
	bool asked = service->preload && strstr(service->preload, LIBRARY_NAME);
	auto_free char *sentence = NULL;
	const char *more = NULL;
	int r;

	if (service->enabled && may_be_older(process->reason) && service_is_older(service))
		return asprintf(ret,
			       "running since before vatalloc was enabled: systemctl %srestart %s",
			       service->user ? "--user " : "", service->id) < 0
			       ? -ENOMEM
			       : 0;
	r = process_describe(process, &sentence);
	if (r < 0)
		return r;
	if (process->reason == REASON_ENVIRONMENT) {
		bool other = process->detail && !strncmp(process->detail, "is '", 4);

		if (!service->enabled && !asked)
			more = "vatalloc is not enabled for the unit";
		else if (other && service->files)
			more = "a file of the unit's EnvironmentFile= sets it, which overrides "
			       "Environment=";
		else if (other)
			more = "another setting or the program's own start script overrides the "
			       "unit's";
		else
			more = "restart the unit, unless a start script of its own clears it";
	} else if (process->reason == REASON_UNKNOWN) {
		/* Not even its environment is known: programs like nginx write their title over it.
		 */
		if (!service->enabled && !asked)
			more = "vatalloc is not enabled for the unit";
	} else if (process->reason == REASON_NOT_VISIBLE && service->root[0]) {
		more = "make the library visible there with BindReadOnlyPaths=";
	}
	if (!more) {
		*ret = take(sentence);
		return 0;
	}
	return asprintf(ret, "%s: %s", sentence, more) < 0 ? -ENOMEM : 0;
}
