/* SPDX-License-Identifier: MIT */
#include "explain.h"
#include "auto.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The catalog as it is installed, so that both say the same. */
__asm__(".pushsection .rodata\n"
	"catalog:\n"
	".incbin \"systemd/vatalloc.catalog\"\n"
	".byte 0\n"
	".popsection\n");
extern const char catalog[] __attribute__((visibility("hidden")));

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return *line ? line + 1 : line;
}

/* The line is a word and nothing else. */
static bool is_name(const char *line)
{
	size_t n = strspn(line, "abcdefghijklmnopqrstuvwxyz-");

	return n && isalpha((unsigned char)line[0]) && line[n] == '\n' && line[n + 1] == '\t';
}

static const char *find_name(size_t n)
{
	for (const char *line = catalog; *line; line = next_line(line))
		if (is_name(line) && !n--)
			return line;
	return NULL;
}

char *explain_name(size_t n)
{
	const char *line = find_name(n);

	return line ? strndup(line, strcspn(line, "\n")) : NULL;
}

/* The lines from @from to @to, without the tab that each may start with. */
static int copy_lines(const char *from, const char *to, char **ret)
{
	char *text = malloc(to - from + 1), *p = text;

	if (!text)
		return -ENOMEM;
	for (const char *line = from; line < to; line = next_line(line)) {
		const char *start = line + (*line == '\t');
		size_t n = next_line(line) - start;

		memcpy(p, start, n);
		p += n;
	}
	*p = '\0';
	*ret = text;
	return 0;
}

int explain_kind(const char *kind, char **ret)
{
	const char *line;

	for (size_t i = 0; (line = find_name(i)); i++) {
		const char *start, *end;

		if (strlen(kind) != strcspn(line, "\n") || strncmp(line, kind, strlen(kind)))
			continue;
		start = end = next_line(line);
		while (*end == '\t')
			end = next_line(end);
		return copy_lines(start, end, ret);
	}
	return -ENOENT;
}

int explain_message(const char *message_id, char **ret)
{
	const char *line;

	for (line = catalog; *line; line = next_line(line)) {
		const char *start, *end;
		char *text, *p;

		if (strncmp(line, "-- ", 3) || strlen(message_id) != 32 ||
			strncmp(line + 3, message_id, 32))
			continue;
		start = next_line(line);
		/* The headers end with an empty line. */
		while (*start && *start != '\n')
			start = next_line(start);
		start = end = next_line(start);
		while (*end && strncmp(end, "-- ", 3))
			end = next_line(end);
		while (end > start + 1 && end[-1] == '\n' && end[-2] == '\n')
			end--;
		text = strndup(start, end - start);
		if (!text)
			return -ENOMEM;
		/* Without an entry there is nothing to put in for a @FIELD@ but its name. */
		p = text;
		for (const char *q = text; *q; q++)
			if (*q != '@')
				*p++ = *q;
		*p = '\0';
		*ret = text;
		return 0;
	}
	return -ENOENT;
}
