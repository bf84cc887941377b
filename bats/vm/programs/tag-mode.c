/* SPDX-License-Identifier: MIT */
/*
 * tag-mode PID: how the kernel checks tags for each thread of a process (none, sync, async, both),
 * one a line, with its name. It stops each for a moment to ask.
 */
#include <dirent.h>
#include <elf.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#ifndef NT_ARM_TAGGED_ADDR_CTRL
#define NT_ARM_TAGGED_ADDR_CTRL 0x409
#endif

static unsigned long control_of(pid_t tid)
{
	unsigned long control = 0;
	struct iovec part = {&control, sizeof(control)};

	if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0) ||
		waitpid(tid, NULL, __WALL) != tid ||
		ptrace(PTRACE_GETREGSET, tid, NT_ARM_TAGGED_ADDR_CTRL, &part) ||
		ptrace(PTRACE_DETACH, tid, 0, 0))
		err(1, "%d", (int)tid);
	return control;
}

int main(int argc, char **argv)
{
	static const char *const modes[] = {"none", "sync", "async", "both"};
	char path[64], name[32] = "";
	struct dirent *entry;
	DIR *tasks;

	if (argc != 2)
		errx(2, "usage: tag-mode PID");
	snprintf(path, sizeof(path), "/proc/%s/task", argv[1]);
	tasks = opendir(path);
	if (!tasks)
		err(1, "%s", path);
	while ((entry = readdir(tasks))) {
		pid_t tid = atoi(entry->d_name);
		FILE *comm;

		if (!tid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)tid);
		comm = fopen(path, "r");
		if (comm) {
			(void)!fgets(name, sizeof(name), comm);
			fclose(comm);
		}
		printf("%s %s", modes[control_of(tid) >> 1 & 3], name);
	}
	return 0;
}
