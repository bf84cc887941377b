/* SPDX-License-Identifier: MIT */
/*
 * report_late HOW: a service that gets itself into a state in which a report is hard to send, and
 * then uses freed memory.
 *
 *	chroot DIRECTORY    where there is no journal's socket
 *	close               it has closed all descriptors that it does not know
 *	reuse FILE          and has FILE under all their numbers: nothing may be written there
 *	name                its thread's name has a line break and a field of the journal's
 *	fork                it is a child
 *	nothing
 */
#include "check.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LAST_FD 1024

static void use_after_free(void)
{
	char *p = (char *)hide(malloc(8 * MIB));

	memset(p, 1, 8 * MIB);
	free(p);
	(void)*(volatile char *)hide(p + 4 * MIB);
	_exit(42);
}

/* All but stdin, stdout and stderr. */
static void close_all(void)
{
	for (int fd = 3; fd < LAST_FD; fd++)
		close(fd);
}

int main(int argc, char **argv)
{
	CHECK(argc >= 2, "usage: report_late HOW [PATH]");
	if (strcmp(argv[1], "chroot") == 0) {
		CHECK(argc == 3 && chdir(argv[2]) == 0 && chroot(".") == 0);
	} else if (strcmp(argv[1], "close") == 0) {
		close_all();
	} else if (strcmp(argv[1], "reuse") == 0) {
		int fd;

		close_all();
		CHECK(argc == 3);
		fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
		CHECK(fd == 3, "the first descriptor is %d", fd);
		for (fd = 4; fd < LAST_FD; fd++)
			CHECK(dup2(3, fd) == fd);
	} else if (strcmp(argv[1], "name") == 0) {
		CHECK(prctl(PR_SET_NAME, "a\nPRIORITY=7") == 0);
	} else if (strcmp(argv[1], "fork") == 0) {
		int status;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			use_after_free();
		CHECK(waitpid(pid, &status, 0) == pid);
		_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	}
	use_after_free();
}
