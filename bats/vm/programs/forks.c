/* SPDX-License-Identifier: MIT */
/*
 * forks N: fork N times while two threads allocate and free; each child uses what it inherited, and
 * a heap of its own, and ends.
 */
#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OBJECTS = 200 };

static volatile int stop;

static void *work(void *seed)
{
	char *objects[OBJECTS] = {0};

	for (unsigned i = (unsigned)(size_t)seed; !stop; i++) {
		free(objects[i % OBJECTS]);
		objects[i % OBJECTS] = malloc(16 + i * 7919 % 2000);
		*objects[i % OBJECTS] = 1;
		if (i % 100 == 0)
			usleep(1000);
	}
	return NULL;
}

static int child(char **inherited)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		char *p = malloc(16 + i * 10);

		memset(p, (int)i, 16 + i * 10);
		if (inherited[i][i] != (char)i)
			return 1;
		free(i % 2 ? inherited[i] : p);
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000, k;
	char *inherited[OBJECTS];
	pthread_t threads[2];
	int status;

	for (unsigned i = 0; i < OBJECTS; i++)
		inherited[i] = memset(malloc(i + 100), (int)i, i + 100);
	for (size_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, (void *)(i * 1000));
	for (k = 0; k < n; k++) {
		pid_t pid = fork();

		if (pid == 0) {
			alarm(60); /* a deadlock ends by this */
			_exit(child(inherited));
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			errx(1, "fork %u: status %#x", k, (unsigned)status);
	}
	stop = 1;
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%u forks\n", k);
	return child(inherited);
}
