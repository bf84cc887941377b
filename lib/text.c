/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

void text_char(struct text *t, char c)
{
	if (t->len + 1 >= t->size)
		return;
	t->buf[t->len++] = c;
	t->buf[t->len] = '\0';
}

void text_bytes(struct text *t, const void *bytes, size_t len)
{
	const char *s = bytes;

	while (len--)
		text_char(t, *s++);
}

void text_str(struct text *t, const char *s)
{
	while (*s)
		text_char(t, *s++);
}

void text_dec(struct text *t, uint64_t n)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	text_bytes(t, digits + i, sizeof(digits) - i);
}

void text_hex(struct text *t, uint64_t n)
{
	char digits[16];
	size_t i = sizeof(digits);

	do {
		digits[--i] = "0123456789abcdef"[n & 15];
		n >>= 4;
	} while (n);
	text_str(t, "0x");
	text_bytes(t, digits + i, sizeof(digits) - i);
}

void text_hex_bytes(struct text *t, const void *bytes, size_t len)
{
	const unsigned char *b = bytes;

	while (len--) {
		text_char(t, "0123456789abcdef"[*b >> 4]);
		text_char(t, "0123456789abcdef"[*b++ & 15]);
	}
}

void text_write(const struct text *t, int fd)
{
	int saved = errno;
	size_t done = 0;
	ssize_t n;

	while (done < t->len) {
		n = write(fd, t->buf + done, t->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	errno = saved;
}

void say(const char *message, ...)
{
	char buf[512];
	struct text t = text_in(buf, sizeof(buf));
	const char *part;
	va_list parts;

	text_str(&t, "vatalloc: ");
	text_str(&t, message);
	va_start(parts, message);
	while ((part = va_arg(parts, const char *)))
		text_str(&t, part);
	va_end(parts);
	text_char(&t, '\n');
	text_write(&t, STDERR_FILENO);
}
