/* SPDX-License-Identifier: MIT */
/*
 * check: what the test programs share.
 *
 * Rules: include it first (it asks for the GNU interfaces). A program is either one plain main(),
 * or a table of cases ended by CHECK_MAIN: then an argument names the case to run, and no argument
 * runs all. A failed CHECK says where and why on stderr and exits 1; SKIP exits 77. Nothing here
 * uses the heap, so it can be called in the middle of one. The compiler knows malloc's contract and
 * would optimise its tests away: pass every pointer that the heap returned through hide().
 */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define CHECK(cond, ...)                                                                           \
	do {                                                                                       \
		if (!(cond))                                                                       \
			check_failed(__FILE__, __LINE__, #cond, " " __VA_ARGS__);                  \
	} while (0)

#define SKIP(reason)                                                                               \
	do {                                                                                       \
		fprintf(stderr, "skipped: %s\n", reason);                                          \
		_exit(77);                                                                         \
	} while (0)

__attribute__((noreturn, format(printf, 4, 5), unused)) static void check_failed(
	const char *file, int line, const char *cond, const char *format, ...)
{
	const char *name = strrchr(file, '/');
	int error = errno;
	va_list args;

	fprintf(stderr, "%s:%d: check failed: %s:", name ? name + 1 : file, line, cond);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (errno %d)\n", error);
	_exit(1);
}

/* Keep the compiler from knowing where P came from, or that nobody looks at its memory. */
static inline void *hide(const void *p)
{
	void *hidden = (void *)(uintptr_t)p;

	__asm__ volatile("" : "+r"(hidden) : : "memory");
	return hidden;
}

/* The same for a number, to keep constant sizes from the compiler's warnings. */
static inline size_t hide_size(size_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n;
}

/* A pointer's address without its tag, and the tag: with MTE a heap pointer has one of 1 to 15. */
static inline uintptr_t address_of(const void *p)
{
	return (uintptr_t)p & (((uintptr_t)1 << 56) - 1);
}

static inline unsigned tag_of(const void *p)
{
	return ((uintptr_t)p >> 56) & 15;
}

static inline int is_aligned(const void *p, size_t alignment)
{
	return (address_of(p) & (alignment - 1)) == 0;
}

/* How often or how finely to test: LESS where a processor is only emulated and CHECK_QUICK is set.
 */
static inline unsigned often(unsigned usually, unsigned less)
{
	return getenv("CHECK_QUICK") ? less : usually;
}

/* A small fast generator (xorshift64*): the same seed gives the same run. */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

/* A size below MAX, every power of two as likely as the next. */
static inline size_t random_size(uint64_t *state, size_t max)
{
	unsigned bits = next_random(state) % (64 - (unsigned)__builtin_clzll(max - 1));

	return next_random(state) % ((size_t)2 << bits) % max;
}

/* Fill N bytes with what SEED says, so that a later look knows whose bytes they are. */
static inline void fill(void *p, size_t n, unsigned seed)
{
	unsigned char *bytes = (unsigned char *)p;

	for (size_t i = 0; i < n; i++)
		bytes[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

/* The offset of the first of N bytes that fill() did not write there, or N. */
static inline size_t first_changed(const void *p, size_t n, unsigned seed)
{
	const unsigned char *bytes = (const unsigned char *)p;

	for (size_t i = 0; i < n; i++)
		if (bytes[i] != (unsigned char)(seed + i * 7 + (i >> 8)))
			return i;
	return n;
}

/* The offset of the first of N bytes that is not zero, or N. */
static inline size_t first_nonzero(const void *p, size_t n)
{
	const unsigned char *bytes = (const unsigned char *)p;

	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return i;
	return n;
}

/* fill() for objects too large to touch wholly: one word every STEP bytes and the last one. */
static inline void fill_sparse(void *p, size_t n, size_t step, uint64_t seed)
{
	char *bytes = (char *)p;

	for (size_t i = 0; i + sizeof(seed) <= n; i += step)
		*(uint64_t *)(bytes + i) = seed + i;
	memcpy(bytes + n - sizeof(seed), &seed, sizeof(seed));
}

/* The first offset below N where the words that fill_sparse() wrote every STEP bytes are not, or N.
 */
static inline size_t first_changed_sparse(const void *p, size_t n, size_t step, uint64_t seed)
{
	const char *bytes = (const char *)p;

	for (size_t i = 0; i + sizeof(seed) <= n; i += step)
		if (*(const uint64_t *)(bytes + i) != seed + i)
			return i;
	return n;
}

static inline double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Read a /proc file through a buffer of our own; calls EACH for every piece. */
static inline void read_proc(
	const char *path, void (*each)(const char *piece, size_t n, void *arg), void *arg)
{
	char buffer[4096];
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0, "%s", path);
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		each(buffer, (size_t)n, arg);
	close(fd);
}

static inline void count_lines(const char *piece, size_t n, void *arg)
{
	for (size_t i = 0; i < n; i++)
		*(size_t *)arg += piece[i] == '\n';
}

/* The number of mappings this process has. */
static inline size_t vma_count(void)
{
	size_t lines = 0;

	read_proc("/proc/self/maps", count_lines, &lines);
	return lines;
}

/* The physical memory this process has, in bytes. */
static inline size_t rss_bytes(void)
{
	char text[256] = "";
	size_t total, resident;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0, "statm");
	close(fd);
	CHECK(sscanf(text, "%zu %zu", &total, &resident) == 2, "statm");
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

struct check_case {
	const char *name;
	void (*run)(void);
};

static inline int run_cases(int argc, char **argv, const struct check_case *cases, size_t n_cases)
{
	int found = 0;

	for (size_t i = 0; i < n_cases; i++)
		if (argc < 2 || strcmp(argv[1], cases[i].name) == 0) {
			found = 1;
			cases[i].run();
		}
	if (!found)
		fprintf(stderr, "%s: no case '%s'\n", argv[0], argv[1]);
	return found ? 0 : 2;
}

#define CHECK_MAIN(cases)                                                                          \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return run_cases(argc, argv, cases, sizeof(cases) / sizeof((cases)[0]));           \
	}
