/* SPDX-License-Identifier: MIT */
/*
 * meta: memory for vatalloc's own tables, apart from the heap it protects.
 *
 * Cells come from mappings of their own, in size classes: multiples of 64 bytes up to 1 KiB, four
 * sizes a doubling above. A freed cell waits in the list of its class and is never given back to
 * the kernel, so a reader that is late finds old bytes but never a fault.
 *
 * A table is one array as long as the address space it describes, of which only the front is in
 * use: reserved whole, opened in steps.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	META_MAX = 1 << 20, /* bytes of the largest cell */
};

/* A zeroed cell of @size bytes, at most META_MAX, aligned to 64; NULL when memory is out. */
void *meta_alloc(size_t size);

/* Gives back a cell; @size as it was asked for. */
void meta_free(void *cell, size_t size);

/* Locks, unlocks, and resets in a child, around fork(2). */
void meta_fork_prepare(void);
void meta_fork_parent(void);
void meta_fork_child(void);

struct meta_table {
	char *base;
	size_t open;     /* bytes usable */
	size_t reserved; /* bytes */
};

/* Reserves a table of @size bytes. -ENOMEM. */
int meta_table_init(struct meta_table *t, size_t size);

/* Makes the first @size bytes usable. The caller serialises. -ENOMEM, also beyond the table. */
int meta_table_grow(struct meta_table *t, size_t size);
