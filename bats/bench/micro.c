/* SPDX-License-Identifier: MIT */
/*
 * micro: small loops over the heap, one a kind of use.
 *
 *	micro pair THREADS N SIZE      malloc and free again, N times a thread
 *	micro random THREADS N LIVE    replace one of LIVE objects of 16 to 527 bytes
 *	micro larson THREADS N         the same, and each thread ends often and leaves its objects
 *	                               to the next, like the connections of a server
 *	micro queue THREADS N          N messages from THREADS producers to as many consumers
 *	micro large THREADS N          buffers of 64 KiB to 8 MiB, every page written
 *	micro realloc THREADS N        N buffers that grow from 16 bytes to 1 MiB
 *	micro fragment THREADS N       N times: many objects, all but few of them freed again
 *	micro spawn N PROGRAM...       start a program and wait for it
 *	micro fork N                   children of a process with 64 MiB of objects use its heap
 */
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long n, parameter;
static unsigned threads = 1;

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* xorshift64*: the same numbers in every run, and none of libc's locks. */
static inline uint64_t draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1d;
}

static uint64_t seed(uintptr_t thread)
{
	return 0x9e3779b97f4a7c15 * (thread + 1);
}

static void *make(size_t size)
{
	char *p = malloc(size);

	if (!p)
		fail("malloc");
	p[0] = p[size - 1] = 1;
	return p;
}

static void *pair(void *thread)
{
	(void)thread;
	for (unsigned long i = 0; i < n; i++)
		free(make(parameter));
	return NULL;
}

/* @n times: free one of @live objects, put a new one of 16 to 527 bytes in its place. */
static void replace(void **objects, size_t live, unsigned long times, uint64_t *state)
{
	for (unsigned long i = 0; i < times; i++) {
		uint64_t r = draw(state);
		void **at = &objects[(r >> 32) % live];

		free(*at);
		*at = make(16 + r % 512);
	}
}

static void free_all(void **objects, size_t live)
{
	for (size_t i = 0; i < live; i++)
		free(objects[i]);
}

static void *random_sizes(void *thread)
{
	void **objects = calloc(parameter, sizeof(*objects));
	uint64_t state = seed((uintptr_t)thread);

	replace(objects, parameter, n, &state);
	free_all(objects, parameter);
	free(objects);
	return NULL;
}

enum {
	LARSON_LIVE = 1000,
	LARSON_TURN = 20000, /* replacements in the life of a thread */
};

struct connection {
	void *objects[LARSON_LIVE];
	uint64_t state;
};

static void *larson_turn(void *connection)
{
	struct connection *c = connection;

	replace(c->objects, LARSON_LIVE, LARSON_TURN, &c->state);
	return NULL;
}

static void *larson(void *thread)
{
	struct connection *c = calloc(1, sizeof(*c));
	pthread_t turn;

	c->state = seed((uintptr_t)thread);
	for (unsigned long i = 0; i < n; i += LARSON_TURN) {
		if (pthread_create(&turn, NULL, larson_turn, c))
			fail("pthread_create");
		pthread_join(turn, NULL);
	}
	free_all(c->objects, LARSON_LIVE);
	free(c);
	return NULL;
}

enum { QUEUE_SIZE = 1024 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	void *message[QUEUE_SIZE];
	unsigned long in, out;
} queue = {
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0};

static void put(void **messages, unsigned count)
{
	pthread_mutex_lock(&queue.lock);
	while (queue.in + count - queue.out > QUEUE_SIZE)
		pthread_cond_wait(&queue.not_full, &queue.lock);
	for (unsigned i = 0; i < count; i++)
		queue.message[queue.in++ % QUEUE_SIZE] = messages[i];
	pthread_cond_signal(&queue.not_empty);
	pthread_mutex_unlock(&queue.lock);
}

static void get(void **messages, unsigned count)
{
	pthread_mutex_lock(&queue.lock);
	while (queue.in - queue.out < count)
		pthread_cond_wait(&queue.not_empty, &queue.lock);
	for (unsigned i = 0; i < count; i++)
		messages[i] = queue.message[queue.out++ % QUEUE_SIZE];
	pthread_cond_signal(&queue.not_full);
	if (queue.in - queue.out >= count)
		pthread_cond_signal(&queue.not_empty);
	pthread_mutex_unlock(&queue.lock);
}

enum { QUEUE_BATCH = 32 };

static void *produce(void *thread)
{
	uint64_t state = seed((uintptr_t)thread);
	void *messages[QUEUE_BATCH];

	for (unsigned long i = 0; i < n; i += QUEUE_BATCH) {
		for (unsigned k = 0; k < QUEUE_BATCH; k++) {
			uint64_t r = draw(&state);
			/* Headers mostly, a body now and then. */
			size_t size = r % 16 ? 32 + (r >> 8) % 480 : 1024 + (r >> 8) % 15360;

			messages[k] = make(size);
		}
		put(messages, QUEUE_BATCH);
	}
	return NULL;
}

static void *consume(void *thread)
{
	void *messages[QUEUE_BATCH];

	(void)thread;
	for (unsigned long i = 0; i < n; i += QUEUE_BATCH) {
		get(messages, QUEUE_BATCH);
		free_all(messages, QUEUE_BATCH);
	}
	return NULL;
}

static void *produce_and_consume(void *thread)
{
	pthread_t consumer;

	if (pthread_create(&consumer, NULL, consume, thread))
		fail("pthread_create");
	produce(thread);
	pthread_join(consumer, NULL);
	return NULL;
}

static void *large(void *thread)
{
	uint64_t state = seed((uintptr_t)thread);
	char *live[8] = {NULL};

	for (unsigned long i = 0; i < n; i++) {
		uint64_t r = draw(&state);
		size_t size = (size_t)64 << 10 << r % 7;
		char **at = &live[(r >> 8) % 8];

		size += (r >> 16) % size;
		free(*at);
		*at = make(size);
		for (size_t byte = 0; byte < size; byte += 4096)
			(*at)[byte] = 1;
	}
	free_all((void **)live, 8);
	return NULL;
}

static void *grow(void *thread)
{
	(void)thread;
	for (unsigned long i = 0; i < n; i++) {
		char *p = NULL;

		for (size_t size = 16; size <= 1 << 20; size += size / 8 + 16) {
			p = realloc(p, size);
			if (!p)
				fail("realloc");
			p[0] = p[size - 1] = 1;
		}
		free(p);
	}
	return NULL;
}

/* Of each ten thousand objects some stay for long: those keep whatever lies around them. */
static void *fragment(void *thread)
{
	enum { OBJECTS = 10000, KEPT = 100, LONG = 64 * KEPT };
	uint64_t state = seed((uintptr_t)thread);
	void **objects = calloc(OBJECTS, sizeof(*objects));
	void **kept = calloc(LONG, sizeof(*kept));

	for (unsigned long i = 0; i < n; i++) {
		for (unsigned k = 0; k < OBJECTS; k++)
			objects[k] = make(16 + draw(&state) % 1024);
		for (unsigned k = 0; k < OBJECTS; k++) {
			void **at = &kept[(i * KEPT + k / (OBJECTS / KEPT)) % LONG];

			if (k % (OBJECTS / KEPT)) {
				free(objects[k]);
			} else {
				free(*at);
				*at = objects[k];
			}
		}
	}
	free_all(kept, LONG);
	free(kept);
	free(objects);
	return NULL;
}

static void spawn(char **argv)
{
	pid_t pid;
	int status;

	for (unsigned long i = 0; i < n; i++) {
		if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ))
			fail(argv[0]);
		if (waitpid(pid, &status, 0) < 0 || status)
			fail("child");
	}
}

static void fork_storm(void)
{
	enum { LIVE = (64 << 20) / 272 };
	void **objects = calloc(LIVE, sizeof(*objects));
	uint64_t state = seed(0);
	int status;
	pid_t pid;

	for (size_t i = 0; i < LIVE; i++)
		objects[i] = make(16 + draw(&state) % 512);
	for (unsigned long i = 0; i < n; i++) {
		pid = fork();
		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			replace(objects, LIVE, 500, &state);
			_exit(0);
		}
		if (waitpid(pid, &status, 0) < 0 || status)
			fail("child");
	}
	free_all(objects, LIVE);
	free(objects);
}

static const struct {
	const char *name;
	void *(*run)(void *thread);
} kinds[] = {
	{"pair", pair},
	{"random", random_sizes},
	{"larson", larson},
	{"queue", produce_and_consume},
	{"large", large},
	{"realloc", grow},
	{"fragment", fragment},
};

static void run_threads(void *(*run)(void *thread))
{
	pthread_t thread[64];

	if (threads < 1 || threads > sizeof(thread) / sizeof(*thread))
		exit(2);
	if (threads == 1) {
		run(NULL);
		return;
	}
	for (uintptr_t i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, run, (void *)i))
			fail("pthread_create");
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
	if (argc >= 4 && !strcmp(argv[1], "spawn")) {
		n = strtoul(argv[2], NULL, 10);
		spawn(argv + 3);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "fork")) {
		n = strtoul(argv[2], NULL, 10);
		fork_storm();
		return 0;
	}
	for (size_t i = 0; argc >= 4 && i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(argv[1], kinds[i].name))
			continue;
		threads = (unsigned)strtoul(argv[2], NULL, 10);
		n = strtoul(argv[3], NULL, 10);
		parameter = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
		run_threads(kinds[i].run);
		return 0;
	}
	fputs("micro: see the head of micro.c\n", stderr);
	return 2;
}
