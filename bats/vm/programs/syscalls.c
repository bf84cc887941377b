/* SPDX-License-Identifier: MIT */
/*
 * syscalls: hands the kernel a pointer to an object that is freed, and says what it said of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void say(const char *what, ssize_t n)
{
	if (n < 0)
		printf("%s: %s", what, errno == EFAULT ? "EFAULT" : strerror(errno));
	else
		printf("%s: %zd", what, n);
}

int main(void)
{
	char *volatile live = malloc(64), *volatile dead = malloc(64);
	struct iovec part = {dead, 64};
	int pipes[2];

	memset(live, 1, 64);
	memset(dead, 2, 64);
	free(dead);
	if (pipe(pipes))
		return 1;
	say("write", write(pipes[1], dead, 64));
	if (write(pipes[1], live, 64) != 64)
		return 1;
	say("; read", read(pipes[0], dead, 64));
	if (write(pipes[1], live, 64) != 64)
		return 1;
	say("; readv", readv(pipes[0], &part, 1));
	if (write(pipes[1], live, 64) != 64)
		return 1;
	say("; live", read(pipes[0], live, 64));
	puts("");
	return 0;
}
