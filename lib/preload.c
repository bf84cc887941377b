/* SPDX-License-Identifier: MIT */
/*
 * preload: the exported malloc family, malloc(3) to malloc_info(3), with glibc's semantics where
 * the standards leave a choice. Compiled with -fno-builtin, or GCC makes a call of calloc out of
 * our calloc.
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counters.h"
#include "engine.h"
#include "options.h"
#include "os.h"
#include "site.h"
#include "text.h"
#include "util.h"

#define EXPORT __attribute__((visibility("default")))

/* C23, and newer than bookworm's headers. */
void free_sized(void *p, size_t size);
void free_aligned_sized(void *p, size_t align, size_t size);

static void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

static bool is_power_of_two(size_t n)
{
	return n && !(n & (n - 1));
}

EXPORT void *malloc(size_t size)
{
	return engine_malloc(size, site_caller());
}

EXPORT void *calloc(size_t n, size_t size)
{
	size_t bytes;

	if (unlikely(__builtin_mul_overflow(n, size, &bytes)))
		return no_memory();
	return engine_calloc(bytes, site_caller());
}

EXPORT void free(void *p)
{
	engine_free(p);
}

/* The size is a hint that programs get wrong; the page map knows it better. */
EXPORT void free_sized(void *p, size_t size)
{
	(void)size;
	engine_free(p);
}

EXPORT void free_aligned_sized(void *p, size_t align, size_t size)
{
	(void)align;
	(void)size;
	engine_free(p);
}

/* glibc: a size of 0 frees. */
static ALWAYS_INLINE void *resize(void *p, size_t size)
{
	if (!p)
		return engine_malloc(size, site_caller());
	if (size)
		return engine_realloc(p, size, site_caller());
	engine_free(p);
	return NULL;
}

EXPORT void *realloc(void *p, size_t size)
{
	return resize(p, size);
}

EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (unlikely(__builtin_mul_overflow(n, size, &bytes)))
		return no_memory();
	return resize(p, bytes);
}

EXPORT int posix_memalign(void **ret, size_t align, size_t size)
{
	int saved = errno;
	void *p;

	if (!is_power_of_two(align) || align % sizeof(void *))
		return EINVAL;
	p = engine_memalign(align, size, site_caller());
	errno = saved;
	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

/* glibc's takes any alignment and makes it a power of two. */
EXPORT void *memalign(size_t align, size_t size)
{
	if (align > SIZE_MAX / 2 + 1) {
		errno = EINVAL;
		return NULL;
	}
	if (!is_power_of_two(align))
		align = align ? (size_t)1 << (64 - __builtin_clzl(align)) : 1;
	return engine_memalign(align, size, site_caller());
}

/* glibc since 2.38, and C17, refuse what is no power of two; before, it was memalign(3). */
EXPORT void *aligned_alloc(size_t align, size_t size)
{
	if (!is_power_of_two(align)) {
		errno = EINVAL;
		return NULL;
	}
	return engine_memalign(align, size, site_caller());
}

EXPORT void *valloc(size_t size)
{
	return engine_memalign(os.page, size, site_caller());
}

EXPORT void *pvalloc(size_t size)
{
	if (size > SIZE_MAX - os.page)
		return no_memory();
	return engine_memalign(os.page, round_up(max_size(size, 1), os.page), site_caller());
}

EXPORT size_t malloc_usable_size(void *p)
{
	return engine_usable_size(p);
}

EXPORT int malloc_trim(size_t pad)
{
	(void)pad;
	return engine_trim();
}

/* Every parameter of glibc's is accepted, and none has anything to change here. */
EXPORT int mallopt(int parameter, int value)
{
	(void)parameter;
	(void)value;
	return 1;
}

EXPORT struct mallinfo2 mallinfo2(void)
{
	struct mallinfo2 info = {0};

	info.arena = read_u64(&vatalloc_stats.live_bytes) + read_u64(&vatalloc_stats.dead_resident);
	info.uordblks = read_u64(&vatalloc_stats.live_bytes);
	info.fordblks = read_u64(&vatalloc_stats.dead_resident);
	return info;
}

static int clamp(size_t n)
{
	return n > INT_MAX ? INT_MAX : (int)n;
}

EXPORT struct mallinfo mallinfo(void)
{
	struct mallinfo2 wide = mallinfo2();
	struct mallinfo info = {0};

	info.arena = clamp(wide.arena);
	info.uordblks = clamp(wide.uordblks);
	info.fordblks = clamp(wide.fordblks);
	return info;
}

static void write_stats(void)
{
	char buf[2048];
	struct text t = text_in(buf, sizeof(buf));

	counters_write(&t);
	text_write(&t, STDERR_FILENO);
}

EXPORT void malloc_stats(void)
{
	engine_start();
	write_stats();
}

EXPORT int malloc_info(int flags, FILE *stream)
{
	if (flags) {
		errno = EINVAL;
		return -1;
	}
	engine_start();
	fprintf(stream, "<malloc version=\"vatalloc-%s\">\n<mode>%s</mode>\n<lives>%u</lives>\n",
		VATALLOC_VERSION, mode_name(vatalloc_stats.mode), vatalloc_stats.lives);
	for (const struct counter *c = counters; c->name; c++)
		fprintf(stream, "<counter name=\"%s\" value=\"%llu\"/>\n", c->name,
			(unsigned long long)counter_value(c));
	fputs("</malloc>\n", stream);
	return 0;
}

__attribute__((destructor)) static void at_exit(void)
{
	if (options.stats_at_exit)
		write_stats();
}
