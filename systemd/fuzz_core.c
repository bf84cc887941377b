/* SPDX-License-Identifier: MIT */
/*
 * fuzz_core: any bytes as what a crashed process left behind, for libFuzzer. The first byte chooses
 * what they are: a core dump, memory maps, a report on stderr, or text.
 *
 * Besides not crashing, the readers must keep what they promise: they end at the end of what there
 * is, and what comes out is fit for a terminal.
 */
#include "core.h"
#include "crash.h"
#include "map.h"
#include "text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_clean(const char *text, bool lines)
{
	char *again;

	if (!text)
		return;
	for (const char *p = text; *p; p++)
		assert((unsigned char)*p >= ' ' || (lines && *p == '\n'));
	/* Clean text stays as it is. */
	assert(text_clean(text, strlen(text), lines, &again) == 0);
	assert(!strcmp(text, again));
	free(again);
}

/* Where the library's data is: behind the first byte there are two more addresses. */
static void fuzz_core(const unsigned char *data, size_t size)
{
	struct core_memory memory;
	struct core_source source;
	uint64_t start, len;
	struct core core;

	if (size < 16)
		return;
	memcpy(&start, data, sizeof(start));
	memcpy(&len, data + 8, sizeof(len));
	for (int skips = 0; skips < 2; skips++) {
		memory = (struct core_memory){data + 16, size - 16};
		source = core_from_memory(&memory);
		if (!skips)
			source.skip = NULL;
		if (core_read(&source, start, start + (len & 0xffffff), &core) < 0)
			continue;
		assert(!core.has_memory_tag || core.memory_tag < 16);
		assert(!core.has_stats || memchr(core.stats.library, '\0', 16));
	}
}

static void fuzz_maps(const char *text)
{
	struct map map;

	while (map_next(&text, &map)) {
		assert(map.start < map.end);
		assert(strlen(map.path) < sizeof(map.path));
		map_is_library(&map);
	}
	assert(!*text);
}

static int check_frame(const struct crash_frame *frame, void *context)
{
	(void)context;
	assert(strlen(frame->build_id) == strspn(frame->build_id, "0123456789abcdef"));
	return 0;
}

static void fuzz_report(const char *text)
{
	struct crash crash;
	char id[13];

	if (crash_parse(text, &crash) < 0)
		return;
	assert(crash.message && crash.field[CRASH_KIND]);
	check_clean(crash.message, false);
	for (int i = 0; i < CRASH_FIELDS; i++)
		check_clean(crash.field[i], i == CRASH_BACKTRACE);
	crash_for_each_frame(&crash, check_frame, NULL);
	crash_id(&crash, id);
	assert(strlen(id) == 12);
	crash_free(&crash);
}

static void fuzz_text(const char *text, size_t size)
{
	uint64_t time;
	char *clean;

	for (int lines = 0; lines < 2; lines++) {
		assert(text_clean(text, size, lines, &clean) == 0);
		assert(strlen(clean) <= size);
		check_clean(clean, lines);
		free(clean);
	}
	text_time(text, 1796000000000000, &time);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	if (data[0] == 'C') {
		fuzz_core(data + 1, size - 1);
		return 0;
	}
	text = malloc(size);
	assert(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] == 'M')
		fuzz_maps(text);
	else if (data[0] == 'R')
		fuzz_report(text);
	else
		fuzz_text(text, size - 1);
	free(text);
	return 0;
}
