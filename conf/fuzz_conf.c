// SPDX-License-Identifier: MIT
/*
 * fuzz_conf: any bytes as a configuration file, for libFuzzer.
 *
 * Besides not crashing, the reader must keep what it promises: a problem names a line of the file,
 * what it accepted can be written down and read again without a problem, and gives the same
 * settings.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"

static void check_problem(const struct conf_problem *problem, void *userdata)
{
	size_t lines = *(size_t *)userdata;
	char text[2048];

	assert(problem->file && problem->what);
	assert(problem->line >= 1 && problem->line <= lines);
	assert(problem->value || !problem->key);
	assert(conf_format_problem(problem, text, sizeof(text)) < (int)sizeof(text));
	assert(text[strspn(text, " ")] && !strpbrk(text, "\n\r\x1b"));
}

static void no_problem(const struct conf_problem *problem, void *userdata)
{
	(void)problem;
	(void)userdata;
	abort();
}

struct copy {
	const struct conf *conf;
	FILE *stream;
};

static void write_section(const char *name, void *userdata)
{
	struct copy *copy = userdata;
	struct conf_settings settings;
	char value[64], options[512];

	conf_for_unit(copy->conf, name, &settings);
	assert(conf_format_options(&settings, options, sizeof(options)) < (int)sizeof(options));
	fprintf(copy->stream, "[%s]\n", name);
	for (unsigned i = 0; i < CONF_KEYS; i++) {
		if (!settings.origin[i].file)
			continue;
		conf_format_value(&settings, i, value, sizeof(value));
		fprintf(copy->stream, "%s=%s\n", conf_key_name(i), value);
	}
}

struct compare {
	const struct conf *a, *b;
};

static void compare_section(const char *name, void *userdata)
{
	struct compare *compare = userdata;
	struct conf_settings a, b;

	conf_for_unit(compare->a, name, &a);
	conf_for_unit(compare->b, name, &b);
	assert(memcmp(a.value, b.value, sizeof(a.value)) == 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = malloc(size + 1), *written = NULL;
	struct conf *conf, *again;
	size_t lines = 1, length = 0;
	struct copy copy;
	struct compare compare;

	assert(text && conf_new(check_problem, &lines, &conf) == 0);
	if (size)
		memcpy(text, data, size);
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	assert(conf_parse(conf, "fuzz.conf", text, size) == 0);
	free(text);

	copy = (struct copy){conf, open_memstream(&written, &length)};
	assert(copy.stream);
	write_section("Defaults", &copy);
	conf_each_section(conf, write_section, &copy);
	fclose(copy.stream);

	assert(conf_new(no_problem, NULL, &again) == 0);
	assert(conf_parse(again, "again.conf", written, length) == 0);
	free(written);
	compare = (struct compare){conf, again};
	conf_each_section(conf, compare_section, &compare);
	conf_each_section(again, compare_section, &compare);
	conf_free(conf);
	conf_free(again);
	return 0;
}
