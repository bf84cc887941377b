/* SPDX-License-Identifier: MIT */
/*
 * text: strings of doubtful origin made fit to show, and numbers made fit to read.
 *
 * A crashing process chooses what its report says, so no byte of it reaches a terminal before
 * text_clean has seen it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A copy of @len bytes in which everything that is not valid UTF-8 or that controls a terminal is a
 * question mark; newlines stay where @lines allows them. -ENOMEM.
 */
int text_clean(const void *data, size_t len, bool lines, char **ret);

/* "1.5M"; @buf has room for 16 bytes. */
const char *text_bytes(uint64_t bytes, char *buf, size_t size);

/*
 * A time as people write it: "2026-11-30", "2026-11-30 12:00[:00]", "12:00", "now", "today",
 * "yesterday", "@SECONDS", and "-2h", "2h ago" or "2 hours ago" with s, min, h, d, w.
 * In µs since 1970. -EINVAL.
 */
int text_time(const char *text, uint64_t now, uint64_t *ret);
