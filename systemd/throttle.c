/* SPDX-License-Identifier: MIT */
#include "throttle.h"
#include "auto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	ENTRIES = 256,
};

struct entry {
	char *unit, *program; /* both NULL: free */
	uint64_t start, last; /* of its interval, and of its last crash */
	unsigned passed, counted;
	bool confirmed;
};

struct throttle {
	unsigned burst;
	uint64_t interval;
	struct entry entries[ENTRIES];
};

int throttle_new(unsigned burst, uint64_t interval, struct throttle **ret)
{
	struct throttle *throttle = calloc(1, sizeof(*throttle));

	if (!throttle)
		return -ENOMEM;
	throttle->burst = burst;
	throttle->interval = interval;
	*ret = throttle;
	return 0;
}

static void forget(struct entry *entry)
{
	free(entry->unit);
	free(entry->program);
	*entry = (struct entry){0};
}

void throttle_free(struct throttle *throttle)
{
	if (!throttle)
		return;
	for (int i = 0; i < ENTRIES; i++)
		forget(&throttle->entries[i]);
	free(throttle);
}

/* In a unit all programs count together. */
static bool is_about(const struct entry *entry, const char *unit, const char *program)
{
	if (!entry->program)
		return false;
	if (unit || entry->unit)
		return unit && entry->unit && !strcmp(unit, entry->unit);
	return !strcmp(program, entry->program);
}

static struct entry *find(struct throttle *throttle, const char *unit, const char *program)
{
	for (int i = 0; i < ENTRIES; i++)
		if (is_about(&throttle->entries[i], unit, program ? program : "?"))
			return &throttle->entries[i];
	return NULL;
}

/* A free entry, or the one that was quiet for longest. */
static struct entry *take_entry(struct throttle *throttle)
{
	struct entry *oldest = &throttle->entries[0];

	for (int i = 0; i < ENTRIES; i++) {
		struct entry *entry = &throttle->entries[i];

		if (!entry->program)
			return entry;
		if (entry->last < oldest->last)
			oldest = entry;
	}
	forget(oldest);
	return oldest;
}

bool throttle_pass(struct throttle *throttle, const char *unit, const char *program, uint64_t now)
{
	struct entry *entry = find(throttle, unit, program);

	if (!entry) {
		entry = take_entry(throttle);
		entry->program = strdup(program ? program : "?");
		entry->unit = unit ? strdup(unit) : NULL;
		if (!entry->program || (unit && !entry->unit)) {
			forget(entry);
			return true;
		}
		entry->start = now;
	}
	entry->last = now;
	if (entry->passed < throttle->burst) {
		entry->passed++;
		return true;
	}
	entry->counted++;
	return false;
}

void throttle_confirm(struct throttle *throttle, const char *unit, const char *program)
{
	struct entry *entry = find(throttle, unit, program);

	if (entry)
		entry->confirmed = true;
}

/* The interval is over; a clock that was set back ends it as well. */
static bool is_over(const struct throttle *throttle, const struct entry *entry, uint64_t now)
{
	return now < entry->start || now - entry->start >= throttle->interval;
}

void throttle_tell(struct throttle *throttle, uint64_t now, bool end,
	void (*tell)(const struct throttle_count *count, void *context), void *context)
{
	for (int i = 0; i < ENTRIES; i++) {
		struct entry *entry = &throttle->entries[i];

		if (!entry->program || (!end && !is_over(throttle, entry, now)))
			continue;
		if (entry->counted && entry->confirmed) {
			struct throttle_count count = {entry->unit, entry->program, entry->counted,
				now > entry->start ? (now - entry->start) / 1000000 : 0};

			tell(&count, context);
		}
		forget(entry);
	}
}

uint64_t throttle_wait(const struct throttle *throttle, uint64_t now)
{
	uint64_t wait = UINT64_MAX;

	for (int i = 0; i < ENTRIES; i++) {
		const struct entry *entry = &throttle->entries[i];
		uint64_t left;

		if (!entry->program)
			continue;
		left = is_over(throttle, entry, now) ? 0 : entry->start + throttle->interval - now;
		if (left < wait)
			wait = left;
	}
	return wait;
}
