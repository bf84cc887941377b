/* SPDX-License-Identifier: MIT */
/*
 * history: the dead leases that are still remembered, so that a late pointer into one can be named.
 *
 * A dead lease stays in the page table of its block until the block dies. Where long-lived objects
 * keep blocks alive that could be most of what vatalloc keeps in memory, so there is a budget: past
 * it the lease that died first is forgotten. Its pages then have `lease_forgotten`, which has no
 * chunks, and is dead.
 */
#pragma once

#include "lease.h"

/* In the place of every lease that has been forgotten. */
extern struct lease lease_forgotten;

/* Remembers a lease that just died; forgets others for it. */
void history_add(struct lease *l);

/* Frees all leases of a block, which is dead but still in the space table. */
void history_drop_block(struct block *b);

/* Between these nothing is forgotten, so that a sweep can read the leases of a block. */
void history_hold(void);
void history_let_go(void);

void history_fork_prepare(void);
void history_fork_parent(void);
void history_fork_child(void);
