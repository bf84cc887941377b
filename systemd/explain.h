/* SPDX-License-Identifier: MIT */
/*
 * explain: what our messages and the kinds of heap error mean, in the words of vatalloc.catalog.
 */
#pragma once

#include <stddef.h>

/* The text about one kind of error; the caller frees it. -ENOENT for a kind that is not known. */
int explain_kind(const char *kind, char **ret);

/* The text about all messages with an ID, 32 hex digits; the caller frees it. -ENOENT. */
int explain_message(const char *message_id, char **ret);

/* The name of kind number @n, NULL behind the last one; the caller frees it. */
char *explain_name(size_t n);
