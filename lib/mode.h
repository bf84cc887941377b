/* SPDX-License-Identifier: MIT */
/*
 * mode: how this process's heap is protected, settled once at start from what was asked for and
 * what the machine has. The result is in vatalloc_stats.mode.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Settles the mode and, for MTE, switches tag checks on: they are a property of the thread, which
 * later threads inherit, so this comes before there are any. Ends the process where MTE was asked
 * for, is not there, and `fallback=abort`.
 */
void mode_init(void);

/*
 * Whether a thread that asks the kernel for @control (PR_SET_TAGGED_ADDR_CTRL) keeps what the heap
 * needs: tagged pointers, the checks in force and all tags. Says so where it would not.
 */
bool mode_keeps_checks(unsigned long control);

/* There is no lease space: mode off. */
void mode_give_up(void);

/* Lives of a chunk in the mode in force. */
uint8_t mode_lives(void);

bool mode_has_tags(void);
