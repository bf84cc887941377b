/* SPDX-License-Identifier: MIT */
/*
 * grown: an object that realloc makes larger and larger, its pages moving with it: all of it can be
 * read by the pointer that realloc returns, and by no older one.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int traps(const char *p)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(const volatile char *)p != 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		err(1, "fork");
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

int main(void)
{
	size_t size = 1000, moves = 0;
	char *p = malloc(size);

	for (size_t i = 0; i < size; i += 100)
		p[i] = (char)(i / 100 % 100);
	while (size < 32 << 20) {
		char *volatile old = p, *new = realloc(p, size * 2);

		for (size_t i = 0; i < size; i += 100)
			if (new[i] != (char)(i / 100 % 100))
				errx(1, "%zu bytes: byte %zu is another", size, i);
		if (new != old) {
			moves++;
			if (!traps(old))
				errx(1, "%zu bytes: the old pointer does not trap", size);
		}
		p = new;
		for (size_t i = (size + 99) / 100 * 100; i < size * 2; i += 100)
			p[i] = (char)(i / 100 % 100);
		size *= 2;
	}
	printf("%zu bytes, moved %zu times\n", size, moves);
	free(p);
	return moves < 5;
}
