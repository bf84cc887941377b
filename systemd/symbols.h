/* SPDX-License-Identifier: MIT */
/*
 * symbols: names and lines for the frames of a backtrace.
 *
 * Found in the files on this machine, if they are of the same build as those that ran, and in debug
 * information below /usr/lib/debug; asked of debuginfod servers only if the caller says so, because
 * that tells them what runs here.
 */
#pragma once

#include "crash.h"

#include <stdbool.h>

struct symbols;

int symbols_new(bool debuginfod, struct symbols **ret);
void symbols_free(struct symbols *symbols);

/*
 * "function at file.c:12", or less where less is known; the caller frees it. -ENOENT where nothing
 * is known.
 */
int symbols_find(struct symbols *symbols, const struct crash_frame *frame, char **ret);
