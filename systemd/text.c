/* SPDX-License-Identifier: MIT */
#include "text.h"
#include "auto.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint64_t second = 1000000;

/* The length of the UTF-8 sequence at @p, 0 if there is no valid one. */
static size_t sequence(const unsigned char *p, size_t len, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t c;
	size_t n;

	if (p[0] < 0x80) {
		*ret = p[0];
		return 1;
	}
	n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || n > len)
		return 0;
	c = p[0] & (0xff >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*ret = c;
	return n;
}

/* Controls of both kinds, and the marks that turn the direction of writing around. */
static bool is_hostile(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

int text_clean(const void *data, size_t len, bool lines, char **ret)
{
	const unsigned char *p = data;
	char *clean = malloc(len + 1);
	size_t to = 0;

	if (!clean)
		return -ENOMEM;
	for (size_t from = 0; from < len;) {
		uint32_t c;
		size_t n = sequence(p + from, len - from, &c);

		if (n && (!is_hostile(c) || (c == '\n' && lines))) {
			memcpy(clean + to, p + from, n);
			to += n;
		} else {
			clean[to++] = c == '\t' && n ? ' ' : '?';
			n = n ? n : 1;
		}
		from += n;
	}
	clean[to] = '\0';
	*ret = clean;
	return 0;
}

const char *text_bytes(uint64_t bytes, char *buf, size_t size)
{
	static const char units[] = "BKMGTPE";
	double n = bytes;
	int unit = 0;

	while (n >= 1024 && units[unit + 1]) {
		n /= 1024;
		unit++;
	}
	snprintf(buf, size, n < 10 && unit ? "%.1f%c" : "%.0f%c", n, units[unit]);
	return buf;
}

/* "2h", "90 minutes": the number and the unit take the whole text. */
static int parse_span(const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t seconds;
	} units[] = {
		{"s", 1},
		{"sec", 1},
		{"second", 1},
		{"m", 60},
		{"min", 60},
		{"minute", 60},
		{"h", 3600},
		{"hour", 3600},
		{"d", 86400},
		{"day", 86400},
		{"w", 7 * 86400},
		{"week", 7 * 86400},
	};
	unsigned long long n;
	char *unit;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &unit, 10);
	if (errno || n > 1000000)
		return -EINVAL;
	unit += strspn(unit, " ");
	for (size_t i = 0; i < lengthof(units); i++) {
		size_t len = strlen(units[i].name);

		if (strncmp(unit, units[i].name, len))
			continue;
		if (!unit[len] || (len > 2 && !strcmp(unit + len, "s"))) {
			*ret = n * units[i].seconds * second;
			return 0;
		}
	}
	return -EINVAL;
}

/* The time @tm tells of in this time zone. */
static int from_calendar(struct tm *tm, uint64_t *ret)
{
	time_t t;

	tm->tm_isdst = -1;
	t = mktime(tm);
	if (t < 0)
		return -EINVAL;
	*ret = (uint64_t)t * second;
	return 0;
}

int text_time(const char *text, uint64_t now, uint64_t *ret)
{
	static const char *const formats[] = {
		"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M"};
	time_t now_seconds = now / second;
	size_t len = strlen(text);
	struct tm today;
	uint64_t span;
	int r;

	if (!localtime_r(&now_seconds, &today))
		return -EINVAL;
	today.tm_hour = today.tm_min = today.tm_sec = 0;

	if (!strcmp(text, "now")) {
		*ret = now;
		return 0;
	}
	if (!strcmp(text, "today"))
		return from_calendar(&today, ret);
	if (!strcmp(text, "yesterday")) {
		today.tm_mday--;
		return from_calendar(&today, ret);
	}
	if (text[0] == '@') {
		unsigned long long n;
		char *end;

		errno = 0;
		n = strtoull(text + 1, &end, 10);
		if (errno || !isdigit((unsigned char)text[1]) || *end || n > UINT64_MAX / second)
			return -EINVAL;
		*ret = n * second;
		return 0;
	}
	if (text[0] == '-' || (len > 4 && !strcmp(text + len - 4, " ago"))) {
		auto_free char *copy = strdup(text[0] == '-' ? text + 1 : text);

		if (!copy)
			return -ENOMEM;
		if (text[0] != '-')
			copy[len - 4] = '\0';
		r = parse_span(copy, &span);
		if (r < 0)
			return r;
		if (span > now)
			return -EINVAL;
		*ret = now - span;
		return 0;
	}
	for (size_t i = 0; i < lengthof(formats); i++) {
		struct tm tm = today;
		const char *end = strptime(text, formats[i], &tm);

		if (end && !*end)
			return from_calendar(&tm, ret);
	}
	return -EINVAL;
}
