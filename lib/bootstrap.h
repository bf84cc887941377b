/* SPDX-License-Identifier: MIT */
/*
 * bootstrap: memory for the few allocations that the heap cannot serve: those of its own start, and
 * those of a thread so far into its end that it has no tcache. A small fixed buffer, filled once
 * and never reused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory at a multiple of @align, or NULL when the buffer is full. */
void *bootstrap_alloc(size_t size, size_t align);

bool bootstrap_has(const void *p);

/* Bytes that were asked for at @p, which bootstrap_has(). */
size_t bootstrap_usable_size(const void *p);
