/* SPDX-License-Identifier: MIT */
/*
 * text: lines built in a fixed buffer, without malloc or stdio, so that they can be written from a
 * signal handler and from inside malloc. What does not fit is cut; a text is always NUL-terminated.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct text {
	char *buf;
	size_t size; /* bytes of buf */
	size_t len;  /* bytes used, without the NUL */
};

/* An empty text in @buf of @size bytes, at least 1. */
static inline struct text text_in(char *buf, size_t size)
{
	buf[0] = '\0';
	return (struct text){.buf = buf, .size = size};
}

void text_char(struct text *t, char c);
void text_str(struct text *t, const char *s);
void text_bytes(struct text *t, const void *bytes, size_t len);
void text_dec(struct text *t, uint64_t n);
void text_hex(struct text *t, uint64_t n); /* with 0x */
void text_hex_bytes(struct text *t, const void *bytes, size_t len);

/* Writes "vatalloc: " @message and the parts up to a NULL, and a newline, to stderr at once. */
void say(const char *message, ...) __attribute__((sentinel));

/* Writes a text to a file descriptor, whole, errors ignored. Keeps errno. */
void text_write(const struct text *t, int fd);
