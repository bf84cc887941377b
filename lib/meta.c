/* SPDX-License-Identifier: MIT */
#include "meta.h"

#include <errno.h>
#include <string.h>

#include "os.h"
#include "util.h"

enum {
	LINEAR_STEP = 64,
	LINEAR_MAX = 1024,
	N_LINEAR = LINEAR_MAX / LINEAR_STEP,
	LINEAR_LOG2 = 10,
	N_CLASSES = N_LINEAR + 4 * 10, /* four a doubling, to META_MAX */
	CHUNK = 1 << 20,               /* bytes mapped at a time */
	TABLE_STEP = 1 << 16,
};

static_assert(
	1 << LINEAR_LOG2 == LINEAR_MAX && LINEAR_MAX << 10 == META_MAX, "classes reach META_MAX");

struct free_cell {
	struct free_cell *next;
};

static struct {
	struct lock lock;
	struct free_cell *free[N_CLASSES];
	char *next, *end; /* what is left of the newest mapping */
} meta = {.lock = LOCK_INIT};

static unsigned class_of(size_t size, size_t *ret_cell)
{
	unsigned class, log2;

	if (size <= LINEAR_MAX) {
		class = size ? (unsigned)((size - 1) / LINEAR_STEP) : 0;
		*ret_cell = (class + 1) * (size_t)LINEAR_STEP;
		return class;
	}
	log2 = 63 - (unsigned)__builtin_clzl(size - 1);
	*ret_cell = round_up(size, (size_t)1 << (log2 - 2));
	/* The upper three bits of a cell's size are 5 to 8 times its step. */
	return N_LINEAR + 4 * (log2 - LINEAR_LOG2) + (unsigned)(*ret_cell >> (log2 - 2)) - 5;
}

void *meta_alloc(size_t size)
{
	struct free_cell *cell;
	size_t bytes;
	unsigned class = class_of(size, &bytes);

	if (size > META_MAX)
		return NULL;
	lock_take(&meta.lock);
	cell = meta.free[class];
	if (cell) {
		meta.free[class] = cell->next;
		lock_drop(&meta.lock);
		return memset(cell, 0, bytes);
	}
	if ((size_t)(meta.end - meta.next) < bytes) {
		void *map;

		/* The rest of the old mapping is lost: untouched, it costs nothing but addresses.
		 */
		if (os_map(CHUNK, OS_META, &map) < 0) {
			lock_drop(&meta.lock);
			return NULL;
		}
		meta.next = map;
		meta.end = meta.next + CHUNK;
	}
	cell = (struct free_cell *)meta.next;
	meta.next += bytes;
	lock_drop(&meta.lock);
	return cell;
}

void meta_free(void *p, size_t size)
{
	struct free_cell *cell = p;
	size_t bytes;
	unsigned class = class_of(size, &bytes);

	lock_take(&meta.lock);
	cell->next = meta.free[class];
	meta.free[class] = cell;
	lock_drop(&meta.lock);
}

void meta_fork_prepare(void)
{
	lock_take(&meta.lock);
}

void meta_fork_parent(void)
{
	lock_drop(&meta.lock);
}

void meta_fork_child(void)
{
	lock_reset(&meta.lock);
}

int meta_table_init(struct meta_table *t, size_t size)
{
	void *base;
	int r;

	size = round_up(size, TABLE_STEP);
	r = os_reserve(size, os.page, OS_META, &base);
	if (r < 0)
		return r;
	*t = (struct meta_table){.base = base, .reserved = size};
	return 0;
}

int meta_table_grow(struct meta_table *t, size_t size)
{
	int r;

	if (size <= t->open)
		return 0;
	size = round_up(size, TABLE_STEP);
	if (size > t->reserved)
		return -ENOMEM;
	r = os_open(t->base + t->open, size - t->open, OS_META);
	if (r == 0)
		t->open = size;
	return r;
}
