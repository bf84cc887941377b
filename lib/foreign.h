/* SPDX-License-Identifier: MIT */
/*
 * foreign: pointers that reach our free but come from libc's own malloc, as modules opened with
 * RTLD_DEEPBIND hand them around. They are passed on to libc; what cannot be libc's either is an
 * invalid free. The test reads the chunk header that glibc's malloc keeps before each pointer
 * (malloc/malloc.c, "Malloc chunk layout") and is lenient: libc has checks of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Frees @p with libc. False, and nothing done, when it is not libc's. */
bool foreign_free(void *p);

/* Bytes usable at @p. False when it is not libc's. */
bool foreign_usable_size(const void *p, size_t *ret_size);
