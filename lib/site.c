/* SPDX-License-Identifier: MIT */
#include "site.h"

enum {
	SAMPLE = 128,     /* chunks of a lease looked at, about */
	SEEN_LEAST = 4,   /* before that nothing is known of a site, */
	SEEN_MOST = 4096, /* and past it what was seen counts half */
	SEEN_MUCH = 2048, /* of a class: from there on few are looked at: */
	STEP_LEAST = 8,   /* one in so many, or fewer */
};

uint8_t site_brief[CLASS_LARGE + 1][SITES];

/* No locks: a lost update does no harm. */
struct count {
	uint16_t seen;
	uint16_t alive; /* of those, when they were looked at */
};

static struct count of_site[CLASS_LARGE + 1][SITES], of_class[CLASS_LARGE + 1];

/* Counts chunks of which some are alive. */
static void count(struct count *of, unsigned seen, unsigned alive)
{
	seen += of->seen;
	alive += of->alive;
	if (unlikely(seen >= SEEN_MOST)) {
		seen /= 2;
		alive /= 2;
	}
	*of = (struct count){.seen = (uint16_t)seen, .alive = (uint16_t)alive};
}

static bool is_brief(struct count site, struct count class)
{
	if (site.seen < SEEN_LEAST)
		return false;
	return (unsigned)site.alive * SITE_RARE <= site.seen ||
	       2u * site.alive * class.seen < (unsigned)site.seen * class.alive;
}

/* Learns from one chunk. */
static inline void learn(uint8_t class, uint8_t site, bool alive)
{
	struct count *of = &of_site[class][site];
	uint8_t now;

	count(of, 1, alive);
	now = is_brief(*of, of_class[class]);
	/* It is read by every malloc: not written without need. */
	if (unlikely(site_brief[class][site] != now))
		site_brief[class][site] = now;
}

void site_learn(struct lease *l)
{
	bool known = of_class[l->class].seen >= SEEN_MUCH;
	/* Odd, because programs ask for things by twos and fours. */
	size_t step = max_size(l->n_chunks / SAMPLE, known ? STEP_LEAST : 0) | 1;
	size_t first = (l->start >> LEASE_PAGE_SHIFT) % step;
	const uint8_t *site = site_bytes(l);
	unsigned seen = 0, alive = 0;

	for (size_t i = first; i < l->n_chunks; i += step) {
		uint8_t life = __atomic_load_n(&l->life[i], __ATOMIC_RELAXED);
		bool is_alive = life & LIFE_LIVE;

		/* In order: behind the first that was never handed out, none was. */
		if (!life)
			break;
		learn(l->class, site[i], is_alive);
		seen++;
		alive += is_alive;
	}
	count(&of_class[l->class], seen, alive);
}
