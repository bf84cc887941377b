/* SPDX-License-Identifier: MIT */
/*
 * measure: run one program and say what it took.
 *
 *	measure -o FILE [-l LIBRARY [-s OFFSET]] [-c CPU,CPU] [-u UID:GID] [-t] [-E NAME=VALUE]...
 *		[--] PROGRAM [ARGUMENT...]
 *
 * Writes "name value" lines to FILE when PROGRAM has ended; the status is PROGRAM's. The program
 * is not slowed down: it is traced, but stops once only, when it is about to exit and its memory is
 * still there to be looked at, and the time that takes is not counted.
 *
 *	-l LIBRARY   count, as `loaded`, the processes that had this file mapped when they ended
 *	-s OFFSET    where LIBRARY has its `vatalloc_stats`: sum them up
 *	-t           look at every process it forks as well, not only at itself
 *	-c, -u       run it on these CPUs, as this user
 *	-E           add to its environment (and not to ours)
 *
 * A terminating signal is passed on, so a server under measure is stopped through it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stats.h"

/* What the processes that ended had. Sizes of memory in KiB. */
static struct {
	unsigned processes, loaded;
	unsigned long hwm_sum, hwm_max, peak_max, tables_max, vmas_max;
	uint64_t space_used, lives_used, dead_resident;
} seen;

static const char *library;
static unsigned long stats_offset;
static pid_t child;
static double looking; /* seconds spent with the program stopped */

static _Noreturn void die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("measure: ", stderr);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	_exit(125);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static unsigned long max(unsigned long a, unsigned long b)
{
	return a > b ? a : b;
}

static FILE *open_proc(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

static void add_stats(pid_t pid, uintptr_t base)
{
	FILE *f = open_proc(pid, "mem");
	struct vatalloc_stats stats;

	if (!f)
		return;
	if (fseeko(f, (off_t)(base + stats_offset), SEEK_SET) == 0 &&
		fread(&stats, sizeof(stats), 1, f) == 1 &&
		!memcmp(stats.magic, VATALLOC_STATS_MAGIC, sizeof(stats.magic))) {
		seen.space_used += stats.space_used;
		seen.lives_used += stats.lives_used;
		seen.dead_resident += stats.dead_resident;
	}
	fclose(f);
}

/* A process at its exit, its address space not yet gone. */
static void look_at(pid_t pid)
{
	char line[4096 + 256];
	unsigned long n, vmas = 0;
	uintptr_t base = 0;
	FILE *f;

	seen.processes++;
	f = open_proc(pid, "status");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmHWM: %lu", &n) == 1) {
			seen.hwm_sum += n;
			seen.hwm_max = max(seen.hwm_max, n);
		} else if (sscanf(line, "VmPeak: %lu", &n) == 1) {
			seen.peak_max = max(seen.peak_max, n);
		} else if (sscanf(line, "VmPTE: %lu", &n) == 1) {
			seen.tables_max = max(seen.tables_max, n);
		}
	}
	if (f)
		fclose(f);
	f = open_proc(pid, "maps");
	while (f && fgets(line, sizeof(line), f)) {
		char *path = strchr(line, '/');

		vmas++;
		line[strcspn(line, "\n")] = '\0';
		if (library && !base && path && !strcmp(path, library))
			base = strtoul(line, NULL, 16);
	}
	if (f)
		fclose(f);
	seen.vmas_max = max(seen.vmas_max, vmas);
	if (base) {
		seen.loaded++;
		if (stats_offset)
			add_stats(pid, base);
	}
}

static void pass_on(int signal)
{
	kill(child, signal);
}

static void run_on(const char *cpus)
{
	cpu_set_t set;
	char *end;

	CPU_ZERO(&set);
	do {
		CPU_SET(strtoul(cpus, &end, 10), &set);
		cpus = end + 1;
	} while (*end == ',');
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("cannot run there: %m");
}

static void run_as(const char *user)
{
	char *end;
	uid_t uid = (uid_t)strtoul(user, &end, 10);
	gid_t gid = (gid_t)strtoul(end + (*end == ':'), NULL, 10);

	if (setgroups(0, NULL) < 0 || setgid(gid) < 0 || setuid(uid) < 0)
		die("cannot become user %s: %m", user);
}

/* Waits for a byte to be traced first, and to be told that time runs. */
static void start(int fd, char **argv, char **environment, const char *cpus, const char *user)
{
	char go;

	if (cpus)
		run_on(cpus);
	if (user)
		run_as(user);
	for (; *environment; environment++)
		putenv(*environment);
	if (read(fd, &go, 1) != 1)
		_exit(125);
	execvp(argv[0], argv);
	die("%s: %m", argv[0]);
}

/* Returns the wait status of the child. */
static int watch(struct rusage *ret_usage)
{
	struct rusage usage;
	int status;

	for (;;) {
		pid_t pid = wait4(-1, &status, __WALL, &usage);
		int signal, event;
		double since;

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			die("wait4: %m");
		if (!WIFSTOPPED(status)) {
			if (pid != child)
				continue;
			*ret_usage = usage;
			return status;
		}
		signal = WSTOPSIG(status);
		event = status >> 16;
		if (event == PTRACE_EVENT_EXIT) {
			since = now();
			look_at(pid);
			looking += now() - since;
		}
		if (event == PTRACE_EVENT_STOP && signal != SIGTRAP)
			ptrace(PTRACE_LISTEN, pid, 0, 0);
		else
			ptrace(PTRACE_CONT, pid, 0, event ? 0 : signal);
	}
}

int main(int argc, char **argv)
{
	const char *output = NULL, *cpus = NULL, *user = NULL;
	char *environment[64] = {NULL};
	unsigned n_environment = 0;
	unsigned long options = PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL;
	struct rusage usage;
	double wall;
	int opt, status, gate[2];
	FILE *f;

	while ((opt = getopt(argc, argv, "+o:l:s:c:u:tE:")) >= 0) {
		switch (opt) {
		case 'o':
			output = optarg;
			break;
		case 'l':
			library = optarg;
			break;
		case 's':
			stats_offset = strtoul(optarg, NULL, 0);
			break;
		case 'c':
			cpus = optarg;
			break;
		case 'u':
			user = optarg;
			break;
		case 't':
			options |= PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
			break;
		case 'E':
			if (n_environment == sizeof(environment) / sizeof(*environment) - 1)
				die("too much environment");
			environment[n_environment++] = optarg;
			break;
		default:
			return 125;
		}
	}
	if (!output || optind == argc)
		die("usage: measure -o FILE [OPTION...] PROGRAM [ARGUMENT...]");
	if (pipe(gate) < 0)
		die("pipe: %m");
	child = fork();
	if (child < 0)
		die("fork: %m");
	if (child == 0) {
		fcntl(gate[0], F_SETFD, FD_CLOEXEC);
		close(gate[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		start(gate[0], argv + optind, environment, cpus, user);
	}
	for (const int *s = (const int[]){SIGTERM, SIGINT, SIGQUIT, 0}; *s; s++)
		signal(*s, pass_on);
	close(gate[0]);
	if (ptrace(PTRACE_SEIZE, child, 0, options) < 0)
		die("cannot trace: %m");
	wall = now();
	if (write(gate[1], "", 1) != 1)
		die("write: %m");
	status = watch(&usage);
	wall = now() - wall - looking;

	f = fopen(output, "we");
	if (!f)
		die("%s: %m", output);
	fprintf(f, "wall %.6f\n", wall);
	fprintf(f, "user %ld.%06ld\n", (long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec);
	fprintf(f, "sys %ld.%06ld\n", (long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec);
	fprintf(f, "maxrss %ld\n", usage.ru_maxrss);
	fprintf(f, "faults %ld\n", usage.ru_minflt + usage.ru_majflt);
	fprintf(f, "switches %ld\n", usage.ru_nvcsw + usage.ru_nivcsw);
	fprintf(f, "processes %u\nloaded %u\n", seen.processes, seen.loaded);
	fprintf(f, "hwm_sum %lu\nhwm_max %lu\n", seen.hwm_sum, seen.hwm_max);
	fprintf(f, "peak_max %lu\ntables_max %lu\n", seen.peak_max, seen.tables_max);
	fprintf(f, "vmas_max %lu\n", seen.vmas_max);
	fprintf(f, "space_used %llu\n", (unsigned long long)seen.space_used);
	fprintf(f, "lives_used %llu\n", (unsigned long long)seen.lives_used);
	fprintf(f, "dead_resident %llu\n", (unsigned long long)seen.dead_resident);
	if (fclose(f))
		die("%s: %m", output);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
