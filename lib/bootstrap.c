/* SPDX-License-Identifier: MIT */
#include "bootstrap.h"

#include <errno.h>

#include "util.h"

enum {
	BUFFER = 64 << 10, /* bytes */
};

static _Alignas(16) char buffer[BUFFER];
static size_t used;

void *bootstrap_alloc(size_t size, size_t align)
{
	size_t *header;
	size_t start = round_up(used + sizeof(*header), max_size(align, 16));

	if (size > BUFFER || start > BUFFER - size || align > BUFFER) {
		errno = ENOMEM;
		return NULL;
	}
	used = start + size;
	header = (size_t *)(void *)(buffer + start) - 1;
	*header = size;
	return buffer + start;
}

bool bootstrap_has(const void *p)
{
	return (const char *)p >= buffer && (const char *)p < buffer + BUFFER;
}

size_t bootstrap_usable_size(const void *p)
{
	return ((const size_t *)p)[-1];
}
