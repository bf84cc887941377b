/* SPDX-License-Identifier: MIT */
/*
 * instructions [PID...] -- COMMAND...: how many instructions the processes retire, in user mode and
 * in the kernel, while COMMAND runs; without a PID, COMMAND itself and what it starts.
 */
#include <err.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64 };

static int counter(pid_t pid, int kernel)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = !kernel,
		.exclude_user = kernel,
		.exclude_hv = 1,
		.inherit = 1,
		.disabled = pid == 0,
		.enable_on_exec = pid == 0,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0);

	if (fd < 0)
		err(1, "perf_event_open");
	return fd;
}

int main(int argc, char **argv)
{
	int fds[2 * MOST], n = 0, status, i = 1;
	uint64_t sums[2] = {0}, count;
	pid_t pid;

	/* Counters for a process itself are inherited by the child that becomes COMMAND. */
	for (; i < argc && strcmp(argv[i], "--") && n < 2 * MOST; i++)
		for (int kernel = 0; kernel < 2; kernel++)
			fds[n++] = counter(atoi(argv[i]), kernel);
	if (i + 1 >= argc)
		errx(2, "usage: instructions [PID...] -- COMMAND...");
	if (!n)
		for (int kernel = 0; kernel < 2; kernel++)
			fds[n++] = counter(0, kernel);
	pid = fork();
	if (pid == 0) {
		execvp(argv[i + 1], argv + i + 1);
		err(127, "%s", argv[i + 1]);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		errx(1, "%s failed", argv[i + 1]);
	for (int k = 0; k < n; k++) {
		if (read(fds[k], &count, sizeof(count)) != sizeof(count))
			err(1, "read");
		sums[k % 2] += count;
	}
	fprintf(stderr, "%llu %llu\n", (unsigned long long)sums[0], (unsigned long long)sums[1]);
	return 0;
}
