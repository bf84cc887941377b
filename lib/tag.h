/* SPDX-License-Identifier: MIT */
/*
 * tag: which of the 15 tags a chunk carries in which of its lives.
 *
 * Tag 0 means dead: memory never used, exhausted or purged, and everything that is not a heap
 * chunk. The lives of a chunk walk a secret permutation of 1..15, one step a life, from a start
 * that a keyed hash of its address gives, so nobody who has seen some tags can tell the next. Even
 * and odd chunks of a run start in different halves of the permutation: neighbours begin on
 * different tags. Since the sequence is a function of address and life, a fault can be read
 * backwards: which life of which chunk did this tag belong to? (tag_life)
 *
 * Without MTE every tag is 0 and nothing here touches memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mte.h"
#include "util.h"

enum {
	TAG_DEAD = 0,
	TAG_STEPS = 15, /* length of the sequence: lives of a chunk with MTE */
};

struct tag_secret {
	bool on;                   /* tags are in use */
	uint8_t sequence[32];      /* a permutation of 1..15, twice; the last two are unused */
	uint8_t step_of[MTE_TAGS]; /* its inverse; [0] is unused */
	uint64_t key;
	size_t dc_gva_bytes;
};

extern struct tag_secret tag_secret;

static_assert(sizeof(tag_secret.sequence) >= 13 + 15 + 1, "a start and a life are in the sequence");

static inline bool tags_on(void)
{
	return MTE_ARCH && tag_secret.on;
}

/* Draws the secret. @on: whether this process uses tags. */
void tag_init(bool on);

/*
 * Where in the sequence the chunk at @address, the @index th of its run, begins. The product takes
 * the hash to 0..6 without a division.
 */
static inline unsigned tag_start(uintptr_t address, size_t index)
{
	unsigned hash = (unsigned)((mix64(address ^ tag_secret.key) >> 32) * 7 >> 32);

	return hash + (unsigned)(index & 1) * 7;
}

/* The tag in life @life (0..15) of a chunk that begins at @start. */
static inline unsigned tag_at(unsigned start, unsigned life)
{
	return tag_secret.sequence[start + life];
}

/* The tag in life @life (0..15) of the chunk at @address; 0 without MTE. */
static inline unsigned tag_of(uintptr_t address, size_t index, unsigned life)
{
	if (!tags_on())
		return TAG_DEAD;
	return tag_at(tag_start(address, index), life);
}

/* The life (0..14) in which the chunk at @address carries @tag, which is not 0. */
static inline unsigned tag_life(uintptr_t address, size_t index, unsigned tag)
{
	return (tag_secret.step_of[tag] + TAG_STEPS - tag_start(address, index)) % TAG_STEPS;
}

/* Tags the memory of a chunk; @size bytes, a multiple of the granule. */
static inline void tag_memory(uintptr_t address, size_t size, unsigned tag)
{
	if (tags_on())
		mte_set_tags(mte_with_tag(address, tag), size, tag_secret.dc_gva_bytes);
}
