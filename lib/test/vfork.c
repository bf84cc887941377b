/* SPDX-License-Identifier: MIT */
/* vfork and posix_spawn, whose child runs in the parent's memory until it has its own program. */
#include "check.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

int main(void)
{
	char *const argv[] = {"true", NULL};
	void *objects[100];

	for (unsigned i = 0; i < 100; i++) {
		int status;
		pid_t pid;

		objects[i] = hide(malloc(100 + i));
		fill(objects[i], 100, i);
		pid = vfork();
		CHECK(pid >= 0);
		if (pid == 0) {
			free(hide(malloc(1000)));
			execve("/bin/true", argv, environ);
			_exit(9);
		}
		CHECK(waitpid(pid, &status, 0) == pid && status == 0, "status %#x",
			(unsigned)status);
		CHECK(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0);
		CHECK(waitpid(pid, &status, 0) == pid && status == 0, "status %#x",
			(unsigned)status);
	}
	for (unsigned i = 0; i < 100; i++) {
		CHECK(first_changed(objects[i], 100, i) == 100, "object %u", i);
		free(objects[i]);
	}
	return 0;
}
