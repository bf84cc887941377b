/* SPDX-License-Identifier: MIT */
/*
 * preload_jemalloc: jemalloc's own allocation functions, for programs linked with it (redis,
 * mariadb, varnish): their pointers must come from the same heap as those of malloc. mallctl(3) is
 * left to their jemalloc. Flags name an arena or a cache of that jemalloc; only alignment and
 * zeroing mean something here. jemalloc(3), "Non-standard API".
 */
#include <errno.h>
#include <string.h>

#include "engine.h"
#include "site.h"
#include "util.h"

#define EXPORT __attribute__((visibility("default")))

enum {
	FLAG_LG_ALIGN = 0x3f,
	FLAG_ZERO = 0x40,
};

void *mallocx(size_t size, int flags);
void *rallocx(void *p, size_t size, int flags);
size_t xallocx(void *p, size_t size, size_t extra, int flags);
size_t sallocx(const void *p, int flags);
void dallocx(void *p, int flags);
void sdallocx(void *p, size_t size, int flags);
size_t nallocx(size_t size, int flags);

static size_t align_of(int flags)
{
	return (size_t)1 << (flags & FLAG_LG_ALIGN);
}

EXPORT void *mallocx(size_t size, int flags)
{
	void *p;

	if (align_of(flags) == 1)
		return flags & FLAG_ZERO ? engine_calloc(size, site_caller())
		                         : engine_malloc(size, site_caller());
	p = engine_memalign(align_of(flags), size, site_caller());
	if (p && flags & FLAG_ZERO)
		memset(p, 0, size);
	return p;
}

EXPORT void *rallocx(void *p, size_t size, int flags)
{
	size_t old = engine_usable_size(p);
	char *q;

	/* An object that is aligned by chance may move to where it is not. */
	if (align_of(flags) == 1) {
		q = engine_realloc(p, max_size(size, 1), site_caller());
	} else {
		q = engine_memalign(align_of(flags), size, site_caller());
		if (q) {
			memcpy(q, p, min_size(old, size));
			engine_free(p);
		}
	}
	if (q && flags & FLAG_ZERO && engine_usable_size(q) > old)
		memset(q + old, 0, engine_usable_size(q) - old);
	return q;
}

/* No object grows or shrinks where it is: its size is constant for its life. */
EXPORT size_t xallocx(void *p, size_t size, size_t extra, int flags)
{
	(void)size;
	(void)extra;
	(void)flags;
	return engine_usable_size(p);
}

EXPORT size_t sallocx(const void *p, int flags)
{
	(void)flags;
	return engine_usable_size(p);
}

EXPORT void dallocx(void *p, int flags)
{
	(void)flags;
	engine_free(p);
}

EXPORT void sdallocx(void *p, size_t size, int flags)
{
	(void)size;
	(void)flags;
	engine_free(p);
}

EXPORT size_t nallocx(size_t size, int flags)
{
	return engine_good_size(size, align_of(flags));
}
