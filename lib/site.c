/* SPDX-License-Identifier: MIT */
#include "site.h"

enum {
	SAMPLE = 128,     /* chunks of a lease looked at, about */
	SEEN_LEAST = 4,   /* before that nothing is known of a site, */
	SEEN_MOST = 4096, /* and past it what was seen counts half */
};

uint8_t site_brief[CLASS_LARGE + 1][SITES];

/* No locks: a lost update does no harm. */
struct count {
	uint16_t seen;
	uint16_t alive; /* of those, when they were looked at */
};

static struct count of_site[CLASS_LARGE + 1][SITES], of_class[CLASS_LARGE + 1];

static struct count count(struct count *of, bool alive)
{
	unsigned n_seen = of->seen + 1u, n_alive = of->alive + alive;

	if (n_seen >= SEEN_MOST) {
		n_seen /= 2;
		n_alive /= 2;
	}
	return *of = (struct count){.seen = (uint16_t)n_seen, .alive = (uint16_t)n_alive};
}

static bool is_brief(struct count site, struct count class)
{
	if (site.seen < SEEN_LEAST)
		return false;
	return (unsigned)site.alive * SITE_RARE <= site.seen ||
	       2u * site.alive * class.seen < (unsigned)site.seen * class.alive;
}

static void learn(uint8_t class, uint8_t site, bool alive)
{
	uint8_t now = is_brief(count(&of_site[class][site], alive), count(&of_class[class], alive));

	/* It is read by every malloc: not written without need. */
	if (site_brief[class][site] != now)
		site_brief[class][site] = now;
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
		learn(l->class, site_bytes(l)[i], life & LIFE_LIVE);
	}
}
