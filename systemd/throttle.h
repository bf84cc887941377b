/* SPDX-License-Identifier: MIT */
/*
 * throttle: a crash loop is counted, not told crash by crash.
 *
 * Each unit (or program, outside of units) may have so many crashes in an interval that are looked
 * at. Those after them are counted, and when the interval is over the count is told, if any of
 * those looked at was a heap error. The number of units that are remembered is limited; the one
 * that was quiet for longest is forgotten first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct throttle;

struct throttle_count {
	const char *unit; /* NULL outside of units */
	const char *program;
	unsigned n;
	uint64_t seconds; /* since the first of the interval */
};

/* @burst crashes in @interval µs. -ENOMEM. */
int throttle_new(unsigned burst, uint64_t interval, struct throttle **ret);
void throttle_free(struct throttle *throttle);

/* Whether a crash is to be looked at. @unit and @program may be NULL. */
bool throttle_pass(struct throttle *throttle, const char *unit, const char *program, uint64_t now);

/* A crash that was passed was a heap error. */
void throttle_confirm(struct throttle *throttle, const char *unit, const char *program);

/* Calls @tell with the counts of intervals that are over, or of all at the @end. */
void throttle_tell(struct throttle *throttle, uint64_t now, bool end,
	void (*tell)(const struct throttle_count *count, void *context), void *context);

/* µs until throttle_tell may have something to tell, UINT64_MAX for never. */
uint64_t throttle_wait(const struct throttle *throttle, uint64_t now);
