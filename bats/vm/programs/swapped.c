/* SPDX-License-Identifier: MIT */
/*
 * swapped MIB: fill a heap of so many mebibytes, free every fourth object, have the kernel swap all
 * of it out, and look: every live object is as it was, and every dead one still traps.
 */
#include <err.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

enum { SIZE = 2000, PAGE = 4096 };

static size_t swapped_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	size_t kib = 0;

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmSwap: %zu", &kib) == 1)
			break;
	if (status)
		fclose(status);
	return kib;
}

/* The status of a child that reads a byte there. */
static int touch(const char *p)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(const volatile char *)p);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		err(1, "fork");
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	size_t n = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) * ((1 << 20) / SIZE), kib, pages = 0;
	char **volatile objects = mmap(NULL, n * sizeof(*objects), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < n; i++) {
		objects[i] = malloc(SIZE);
		memset(objects[i], (int)(i % 100), SIZE);
	}
	for (size_t i = 0; i < n; i += 4)
		free(objects[i]);
	for (size_t i = 0; i < n; i++) {
		uintptr_t page = ((uintptr_t)objects[i] & ~(0xffUL << 56)) / PAGE * PAGE;

		if (!madvise((void *)page, PAGE, MADV_PAGEOUT))
			pages++;
	}
	kib = swapped_kib();
	for (size_t i = 0; i < n; i++)
		if (i % 4)
			for (size_t k = 0; k < SIZE; k++)
				if (objects[i][k] != (char)(i % 100))
					errx(1, "object %zu is not what it was", i);
	for (size_t i = 0; i < n; i += n / 8 / 4 * 4)
		if (touch(objects[i]) != -SIGSEGV)
			errx(1, "dead object %zu does not trap", i);
	printf("%zu KiB swapped out, %zu KiB of heap\n", kib, n * SIZE / 1024);
	return kib < n * SIZE / 1024 / 2;
}
