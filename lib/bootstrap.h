/* SPDX-License-Identifier: MIT */
/*
 * bootstrap: memory for the few allocations made before the heap can start, by the dynamic linker
 * and by the start itself. A small fixed buffer, filled once and never reused.
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
