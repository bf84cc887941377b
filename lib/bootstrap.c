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
	size_t before = __atomic_load_n(&used, __ATOMIC_RELAXED), start;
	size_t *header;

	do {
		start = round_up(before + sizeof(*header), max_size(align, 16));
		if (size > BUFFER || align > BUFFER || start > BUFFER - size) {
			errno = ENOMEM;
			return NULL;
		}
	} while (!__atomic_compare_exchange_n(
		&used, &before, start + size, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
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
