/* SPDX-License-Identifier: MIT */
#include "site.h"

enum {
	SAMPLE = 128,     /* chunks of a lease looked at, about */
	SEEN_LEAST = 4,   /* before that nothing is said of a site, */
	SEEN_MOST = 4096, /* and past it what was seen counts half */
};

uint8_t site_lasts[CLASS_LARGE + 1][SITES];

/* No locks: a lost update does no harm. */
static struct {
	uint16_t seen;
	uint16_t alive; /* of those, when they were looked at */
} counts[CLASS_LARGE + 1][SITES];

static void count(uint8_t class, uint8_t site, bool alive)
{
	unsigned n_seen = counts[class][site].seen + 1u;
	unsigned n_alive = counts[class][site].alive + alive;
	uint8_t lasts = n_seen >= SEEN_LEAST && n_alive * SITE_RARE > n_seen;

	if (n_seen >= SEEN_MOST) {
		n_seen /= 2;
		n_alive /= 2;
	}
	counts[class][site].seen = (uint16_t)n_seen;
	counts[class][site].alive = (uint16_t)n_alive;
	/* It is read by every malloc: not written without need. */
	if (site_lasts[class][site] != lasts)
		site_lasts[class][site] = lasts;
}

void site_learn(struct lease *l)
{
	/* Odd, because programs ask for things by twos and fours. */
	size_t step = l->n_chunks / SAMPLE | 1;
	size_t first = (l->start >> LEASE_PAGE_SHIFT) % step;

	for (size_t i = first; i < l->n_chunks; i += step) {
		uint8_t life = __atomic_load_n(&l->life[i], __ATOMIC_RELAXED);

		/* In order: behind the first that was never handed out, none was. */
		if (!life)
			break;
		count(l->class, site_bytes(l)[i], life & LIFE_LIVE);
	}
}
