/* SPDX-License-Identifier: MIT */
/* vfork and posix_spawn, whose child runs in the parent's memory until it has its own program. */
#include "check.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static char *const true_argv[] = {"true", NULL};

static void await(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "status %#x", (unsigned)status);
}

static void start_by_vfork(void)
{
	pid_t pid = vfork();

	CHECK(pid >= 0);
	if (pid == 0) {
		free(hide(malloc(1000)));
		/* Its own to change: the parent's handlers stay. */
		signal(SIGSEGV, SIG_IGN);
		signal(SIGSEGV, SIG_DFL);
		execve("/bin/true", true_argv, environ);
		_exit(9);
	}
	await(pid);
}

static void start_by_spawn(void)
{
	pid_t pid;

	CHECK(posix_spawn(&pid, "/bin/true", NULL, NULL, true_argv, environ) == 0);
	await(pid);
}

static void handler(int signal)
{
	(void)signal;
}

int main(void)
{
	void *objects[100];

	CHECK(signal(SIGSEGV, handler) == SIG_DFL);
	for (unsigned i = 0; i < 100; i++) {
		objects[i] = hide(malloc(100 + i));
		fill(objects[i], 100, i);
		start_by_vfork();
		start_by_spawn();
		CHECK(signal(SIGSEGV, handler) == handler,
			"the child changed the parent's handler");
	}
	for (unsigned i = 0; i < 100; i++) {
		CHECK(first_changed(objects[i], 100, i) == 100, "object %u", i);
		free(objects[i]);
	}
	return 0;
}
