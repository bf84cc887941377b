/* SPDX-License-Identifier: MIT */
#include "pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Standard output is the process's one, and so are its pager and where it went before. */
static pid_t pager;
static int terminal;

void pager_open(void)
{
	const char *command = getenv("VATALLOC_PAGER"), *term = getenv("TERM");
	int fds[2];

	if (!isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb"))
		return;
	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = "less";
	if (!*command || !strcmp(command, "cat") || pipe2(fds, O_CLOEXEC) < 0)
		return;
	terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	fflush(stdout);
	pager = fork();
	if (pager < 0) {
		pager = 0;
		close(fds[0]);
		close(fds[1]);
		return;
	}
	if (!pager) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(fds[0], STDIN_FILENO);
		setenv("LESS", "FRSXMK", 0);
		/* What is paged is partly what others wrote: nothing may be started from there. */
		setenv("LESSSECURE", "1", 1);
		execl("/bin/sh", "sh", "-c", command, NULL);
		execlp("cat", "cat", NULL);
		_exit(127);
	}
	dup2(fds[1], STDOUT_FILENO);
	close(fds[0]);
	close(fds[1]);
	signal(SIGPIPE, SIG_IGN);
}

void pager_close(void)
{
	if (!pager)
		return;
	fflush(stdout);
	/* Closes the pipe, which tells the reader that this was all. */
	if (dup2(terminal, STDOUT_FILENO) < 0)
		close(STDOUT_FILENO);
	close(terminal);
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
	pager = 0;
}
