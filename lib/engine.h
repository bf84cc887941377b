/* SPDX-License-Identifier: MIT */
/*
 * engine: what the exported malloc family calls. Engine jemalloc (engine_jemalloc.c) is the one
 * there is.
 *
 * The functions follow malloc(3) with two differences: errno is set to ENOMEM by them, and sizes of
 * 0 are served like 1. They start the heap at the first call, whoever makes it. @caller is what
 * site_caller() says in the exported function.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts the heap if it has not been; called by the library's constructor, too. */
void engine_start(void);

void *engine_malloc(size_t size, uintptr_t caller);
void *engine_calloc(size_t size, uintptr_t caller);
/* @align is a power of two. */
void *engine_memalign(size_t align, size_t size, uintptr_t caller);
/* @p is not NULL and @size not 0. */
void *engine_realloc(void *p, size_t size, uintptr_t caller);
/* Keeps errno. */
void engine_free(void *p);
/* Bytes that may be used at @p; 0 for NULL. */
size_t engine_usable_size(const void *p);
/* Bytes that an allocation would have; 0 when it is too large. */
size_t engine_good_size(size_t size, size_t align);
/* Gives what memory it can back to the kernel; true if there was any. */
bool engine_trim(void);
