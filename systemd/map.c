/* SPDX-License-Identifier: MIT */
#include "map.h"

#include <stdlib.h>
#include <string.h>

static const char deleted[] = " (deleted)";

/* The number at *@text in base 16, which @stop follows. */
static bool parse_hex(const char **text, char stop, uint64_t *ret)
{
	uint64_t n = 0;
	const char *p = *text;

	for (; *p && *p != stop; p++) {
		unsigned digit;

		if (*p >= '0' && *p <= '9')
			digit = *p - '0';
		else if (*p >= 'a' && *p <= 'f')
			digit = *p - 'a' + 10;
		else
			return false;
		if (n >> 60)
			return false;
		n = n << 4 | digit;
	}
	if (*p != stop || p == *text)
		return false;
	*text = p + 1;
	*ret = n;
	return true;
}

/* The kernel writes a newline in a name as \012, and nothing else so. */
static void copy_path(char *to, size_t size, const char *from, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < size; i++) {
		if (len - i >= 4 && !memcmp(from + i, "\\012", 4)) {
			to[n++] = '\n';
			i += 3;
		} else {
			to[n++] = from[i];
		}
	}
	to[n] = '\0';
}

static bool parse_line(const char *p, const char *end, struct map *ret)
{
	size_t len;

	if (!parse_hex(&p, '-', &ret->start) || !parse_hex(&p, ' ', &ret->end))
		return false;
	if (ret->start >= ret->end || end - p < 5)
		return false;
	ret->readable = p[0] == 'r';
	ret->writable = p[1] == 'w';
	ret->executable = p[2] == 'x';
	p += 5;
	if (!parse_hex(&p, ' ', &ret->offset))
		return false;

	/* The device and the inode. */
	for (int field = 0; field < 2; field++) {
		while (p < end && *p != ' ')
			p++;
		while (p < end && *p == ' ')
			p++;
	}
	len = end - p;
	ret->deleted =
		len > strlen(deleted) && !memcmp(end - strlen(deleted), deleted, strlen(deleted));
	if (ret->deleted)
		len -= strlen(deleted);
	copy_path(ret->path, sizeof(ret->path), p, len);
	return true;
}

bool map_next(const char **text, struct map *ret)
{
	while (**text) {
		const char *line = *text, *end = strchr(line, '\n');

		if (!end)
			end = line + strlen(line);
		*text = *end ? end + 1 : end;
		if (parse_line(line, end, ret))
			return true;
	}
	return false;
}

const char *map_name(const struct map *map)
{
	const char *slash = strrchr(map->path, '/');

	return slash ? slash + 1 : map->path;
}

bool map_is_library(const struct map *map)
{
	return map->path[0] == '/' && !strcmp(map_name(map), LIBRARY_NAME);
}
