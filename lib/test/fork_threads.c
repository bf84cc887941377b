/* SPDX-License-Identifier: MIT */
/*
 * fork_threads FORKS: fork again and again while other threads are in the middle of malloc and
 * free. Each child has one thread and a heap that must work: it looks at what it inherited,
 * allocates and ends, in turns by _exit, by exit, and after a fork and a thread of its own.
 */
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>

#define N_THREADS 4
#define N_OBJECTS 512

static volatile int stop;
static void *inherited[N_OBJECTS];

static void use_heap(uint64_t *seed, unsigned times)
{
	void *objects[N_OBJECTS] = {0};

	for (unsigned i = 0; i < times; i++) {
		unsigned at = next_random(seed) % N_OBJECTS;
		size_t size = random_size(seed, i % 64 ? 4 * KIB : 512 * KIB) + 1;

		free(objects[at]);
		objects[at] = hide(i % 3 ? malloc(size) : calloc(size, 1));
		CHECK(objects[at], "no memory for %zu bytes", size);
		*(char *)objects[at] = 1;
		if (i % 8 == 0)
			CHECK((objects[at] = hide(realloc(objects[at], size * 2))));
	}
	for (unsigned i = 0; i < N_OBJECTS; i++)
		free(objects[i]);
}

static void *work(void *arg)
{
	uint64_t seed = 1 + (uintptr_t)arg;

	while (!stop)
		use_heap(&seed, 2000);
	return NULL;
}

static void *work_a_little(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	use_heap(&seed, 500);
	return NULL;
}

static void child(unsigned i)
{
	uint64_t seed = i + 100;
	pthread_t thread;
	int status;
	pid_t pid;

	/* A deadlock ends by this signal. */
	alarm(30);
	for (unsigned k = 0; k < N_OBJECTS; k++) {
		CHECK(first_changed(inherited[k], 50, k) == 50, "object %u", k);
		if (k % 2)
			free(inherited[k]);
		else
			CHECK((inherited[k] = hide(realloc(inherited[k], 100 + k))));
	}
	use_heap(&seed, 1000);
	if (i % 3 == 0)
		_exit(0);
	if (i % 3 == 1)
		exit(0);
	CHECK(pthread_create(&thread, NULL, work_a_little, (void *)(uintptr_t)i) == 0);
	use_heap(&seed, 500);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(30);
		use_heap(&seed, 500);
		_exit(0);
	}
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "grandchild: %#x", (unsigned)status);
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned forks = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000;
	pthread_t threads[N_THREADS];

	for (unsigned i = 0; i < N_OBJECTS; i++) {
		inherited[i] = hide(malloc(50));
		fill(inherited[i], 50, i);
	}
	for (unsigned i = 0; i < N_THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i * 1000)) == 0);
	for (unsigned i = 0; i < forks; i++) {
		int status;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			child(i);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(status == 0, "child %u: status %#x", i, (unsigned)status);
	}
	stop = 1;
	for (unsigned i = 0; i < N_THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (unsigned i = 0; i < N_OBJECTS; i++)
		CHECK(first_changed(inherited[i], 50, i) == 50, "object %u of the parent", i);
	return 0;
}
