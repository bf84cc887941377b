/* SPDX-License-Identifier: MIT */
/*
 * options: what VATALLOC_OPTIONS says, "key=value:key=value". Read once at start, and ignored under
 * AT_SECURE. An unknown key or a bad value is named on stderr and its default used: nothing written
 * there keeps a program from starting. The table in options.c lists every key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "stats.h"

enum choice_auto {
	CHOICE_AUTO,
	CHOICE_NO,
	CHOICE_YES,
};

struct options {
	unsigned mode;        /* enum vatalloc_mode, VATALLOC_MODE_UNSET for auto */
	unsigned lives;       /* of a chunk in mode count, 0 for auto */
	size_t granularity;   /* bytes, 0 for auto */
	bool abort_exhausted; /* on_exhaustion=abort: do not recycle retired leases */
	bool silent;          /* on_fault=silent: no report */
	bool abort_fallback;  /* fallback=abort: no MTE, no process */
	bool stats_at_exit;
	unsigned journal; /* enum choice_auto */
	size_t space;     /* bytes of lease space at most, 0 for auto */
};

extern struct options options;

/* Fills `options` from the environment. Says what it does not understand. */
void options_init(void);

/* The name a mode has in VATALLOC_OPTIONS. */
const char *mode_name(unsigned mode);
