/* SPDX-License-Identifier: MIT */
/* counters: the counters of stats.h by name, for everything that prints them. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "stats.h"
#include "text.h"

struct counter {
	const char *name;
	size_t offset; /* in struct vatalloc_stats, of a uint64_t */
};

/* All of them; the last has no name. */
extern const struct counter counters[];

static inline uint64_t counter_value(const struct counter *c)
{
	const char *field = (const char *)&vatalloc_stats + c->offset;

	return __atomic_load_n((const uint64_t *)(const void *)field, __ATOMIC_RELAXED);
}

/* The mode and a line for each counter. */
void counters_write(struct text *t);
