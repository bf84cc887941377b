/* SPDX-License-Identifier: MIT */
/*
 * auto: variables that clean up after themselves when they go out of scope.
 *
 * A function that hands one on takes it out of the variable with take().
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void auto_free_cleanup(void *p)
{
	free(*(void **)p);
}

static inline void auto_close_cleanup(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void auto_file_cleanup(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define auto_free  __attribute__((cleanup(auto_free_cleanup)))
#define auto_close __attribute__((cleanup(auto_close_cleanup)))
#define auto_file  __attribute__((cleanup(auto_file_cleanup)))

/* The value of a pointer variable, which is NULL afterwards. */
#define take(p)                                                                                    \
	({                                                                                         \
		typeof(p) *_variable = &(p);                                                       \
		typeof(p) _value = *_variable;                                                     \
		*_variable = NULL;                                                                 \
		_value;                                                                            \
	})

#define lengthof(array) (sizeof(array) / sizeof((array)[0]))
