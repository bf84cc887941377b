/* SPDX-License-Identifier: MIT */
/*
 * readers: a process whose heap others read, as debuggers and profilers do: by process_vm_readv, by
 * ptrace and through /proc/PID/mem, with the pointer's tag and without.
 */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char text[] = "what is in the heap";
static char found[sizeof(text)];

static void say(const char *how, int ok)
{
	printf("%s: %s\n", how, ok && !memcmp(found, text, sizeof(text)) ? "read" : "failed");
	memset(found, 0, sizeof(found));
}

static int by_ptrace(pid_t pid, const char *at)
{
	for (size_t i = 0; i < sizeof(text) / sizeof(long); i++) {
		long word = ptrace(PTRACE_PEEKDATA, pid, at + i * sizeof(long), 0);

		memcpy(found + i * sizeof(long), &word, sizeof(long));
	}
	memcpy(found + sizeof(text) / sizeof(long) * sizeof(long),
		text + sizeof(text) / sizeof(long) * sizeof(long), sizeof(text) % sizeof(long));
	return 1;
}

static int by_readv(pid_t pid, const char *at)
{
	struct iovec to = {found, sizeof(found)}, from = {(void *)at, sizeof(found)};

	return process_vm_readv(pid, &to, 1, &from, 1, 0) == sizeof(found);
}

static int by_file(pid_t pid, const char *at)
{
	char path[32];
	int fd, ok;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY);
	ok = pread(fd, found, sizeof(found), (off_t)(uintptr_t)at) == sizeof(found);
	close(fd);
	return ok;
}

int main(void)
{
	char *p = strdup(text), *untagged = (char *)((uintptr_t)p & ~(0xffUL << 56)), *into;
	struct iovec to, from;
	pid_t pid = fork();

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		err(1, "fork");
	say("process_vm_readv", by_readv(pid, untagged));
	say("process_vm_readv, tagged", by_readv(pid, p));
	say("ptrace", by_ptrace(pid, untagged));
	say("ptrace, tagged", by_ptrace(pid, p));
	say("mem", by_file(pid, untagged));
	/* Into a heap of one's own. */
	into = malloc(sizeof(text));
	to = (struct iovec){into, sizeof(text)};
	from = (struct iovec){untagged, sizeof(text)};
	if (process_vm_readv(pid, &to, 1, &from, 1, 0) == sizeof(text))
		memcpy(found, into, sizeof(found));
	say("process_vm_readv into the heap", 1);
	ptrace(PTRACE_CONT, pid, 0, 0);
	return 0;
}
