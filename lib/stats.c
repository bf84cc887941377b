/* SPDX-License-Identifier: MIT */
#include "stats.h"

#include <stddef.h>

#include "counters.h"
#include "options.h"

_Alignas(64) __attribute__((visibility("default"))) struct vatalloc_stats vatalloc_stats = {
	.magic = {'v', 'a', 't', 'a', 'l', 'l', 'o', 'c'},
	.version = VATALLOC_STATS_VERSION,
	.size = sizeof(struct vatalloc_stats),
	.library = VATALLOC_VERSION,
};

static_assert(sizeof(VATALLOC_VERSION) <= sizeof(vatalloc_stats.library), "the version fits");

const struct counter counters[] = {
#define COUNTER(field)                                                                             \
	{                                                                                          \
#field, offsetof(struct vatalloc_stats, field)                                     \
	}
	COUNTER(lives_used),
	COUNTER(chunks_exhausted),
	COUNTER(bytes_exhausted),
	COUNTER(bytes_retired),
	COUNTER(bytes_recycled),
	COUNTER(space_size),
	COUNTER(space_used),
	COUNTER(space_left),
	COUNTER(live_bytes),
	COUNTER(dead_resident),
	COUNTER(leases_bound),
	COUNTER(leases_retired),
	COUNTER(leases_parked),
	COUNTER(blocks_live),
	COUNTER(faults),
	COUNTER(foreign_frees),
#undef COUNTER
	{NULL, 0},
};

void counters_write(struct text *t)
{
	text_str(t, "vatalloc: mode ");
	text_str(t, mode_name(vatalloc_stats.mode));
	text_str(t, ", lives ");
	text_dec(t, vatalloc_stats.lives);
	text_char(t, '\n');
	for (const struct counter *c = counters; c->name; c++) {
		text_str(t, "vatalloc: ");
		text_str(t, c->name);
		text_str(t, " ");
		text_dec(t, counter_value(c));
		text_char(t, '\n');
	}
}
