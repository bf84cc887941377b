/* SPDX-License-Identifier: MIT */
/*
 * pager: long output on a terminal, one screen at a time.
 */
#pragma once

/*
 * Starts $VATALLOC_PAGER, $PAGER or less, and makes it standard output, if that is a terminal.
 * Where it cannot, output goes where it went.
 */
void pager_open(void);

/* Waits until the reader has seen enough. */
void pager_close(void);
