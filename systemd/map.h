/* SPDX-License-Identifier: MIT */
/*
 * map: one line of /proc/PID/maps.
 *
 * Reads live files and the copy that systemd-coredump keeps alike. The process chose the names in
 * there, so they are text to compare and to show, never a path to trust.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LIBRARY_NAME "libvatalloc.so"

struct map {
	uint64_t start, end; /* end is the first byte after it */
	uint64_t offset;     /* in the file */
	bool readable, writable, executable;
	bool deleted;	 /* the file is not there under this name any more */
	char path[4096]; /* or [name]; empty for anonymous memory */
};

/*
 * Reads the line at *@text and moves *@text behind it. Lines that are no mappings are skipped.
 * false at the end of the text.
 */
bool map_next(const char **text, struct map *ret);

/* The mapped file is our library, wherever it lies and also when it was replaced meanwhile. */
bool map_is_library(const struct map *map);

/* The last component of the mapped file's path. */
const char *map_name(const struct map *map);
