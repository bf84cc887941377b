// SPDX-License-Identifier: MIT
/*
 * Tests of the reader of vatalloc.conf: each case is a file's text, the problems that are to be
 * reported, one a line, and the settings that are to be in force for a unit.
 *
 * Names of the cases that fail go to stderr with what was found, and the exit status is 1.
 */
#include "../conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../systemd/unit.h"

static unsigned failed, passed;

static void expect(const char *test, const char *what, const char *found, const char *wanted)
{
	if (strcmp(found, wanted) == 0) {
		passed++;
		return;
	}
	failed++;
	fprintf(stderr, "%s: %s is\n%s\ninstead of\n%s\n", test, what, found, wanted);
}

static void expect_number(const char *test, const char *what, long found, long wanted)
{
	char a[32], b[32];

	snprintf(a, sizeof(a), "%ld", found);
	snprintf(b, sizeof(b), "%ld", wanted);
	expect(test, what, a, b);
}

static void collect(const struct conf_problem *problem, void *userdata)
{
	char *problems = userdata, line[1024];
	size_t length = strlen(problems);

	conf_format_problem(problem, line, sizeof(line));
	snprintf(problems + length, 8192 - length, "%s\n", line);
}

static const struct {
	const char *name;
	const char *text;
	size_t size; /* 0: up to the NUL */
	const char *unit;
	const char *options;
	const char *problems;
} cases[] = {
	{"empty", "", 0, "a.service", "mode=auto", ""},
	{"defaults", "[Defaults]\nMode=sync\n", 0, "a.service", "mode=sync", ""},
	{"no newline at the end", "[Defaults]\nMode=sync", 0, "a.service", "mode=sync", ""},
	{"own section wins", "[a.service]\nMode=async\n[Defaults]\nMode=sync\nStats=exit\n", 0,
		"a.service", "mode=async:stats=exit", ""},
	{"another unit's section", "[ab.service]\nMode=async\n", 0, "a.service", "mode=auto", ""},
	{"template", "[p@.service]\nMode=async\nStats=exit\n[p@1.service]\nMode=sync\n", 0,
		"p@1.service", "mode=sync:stats=exit", ""},
	{"template, another instance", "[p@.service]\nMode=async\n[p@1.service]\nMode=sync\n", 0,
		"p@2.service", "mode=async", ""},
	{"instances with more @", "[p@.service]\nMode=async\n[p@1@2.service]\nStats=exit\n", 0,
		"p@1@2.service", "mode=async:stats=exit", ""},
	{"a section goes on", "[a.service]\nMode=sync\n[b.service]\nMode=off\n[a.service]\nStats=exit\n",
		0, "a.service", "mode=sync:stats=exit", ""},
	{"the last line wins", "[Defaults]\nMode=sync\nMode=address\n", 0, NULL, "mode=address", ""},
	{"empty takes back", "[a.service]\nMode=sync\nMode=\n[Defaults]\nMode=async\n", 0, "a.service",
		"mode=async", ""},
	{"space", " \t[Defaults]  \n  Mode \t=  sync\t \n", 0, NULL, "mode=sync", ""},
	{"comments", "# [Defaults]\n; x\n  #y\n[Defaults]\n#Mode=sync\nMode=async\n", 0, NULL,
		"mode=async", ""},
	{"every option",
		"[Defaults]\nMode=count\nGranularity=64K\nOnExhaustion=abort\nOnFault=silent\n"
		"Fallback=fail\nStats=exit\nSpace=2T\nJournal=no\nEngine=jemalloc\nOpenSandbox=no\n",
		0, NULL,
		"mode=count:granularity=64K:on_exhaustion=abort:on_fault=silent:fallback=abort:"
		"stats=exit:space=2T:journal=no",
		""},
	{"sizes in other units", "[Defaults]\nGranularity=2048K\nSpace=1048577K\n", 0, NULL,
		"mode=auto:granularity=2M:space=1048577K", ""},
	{"bytes", "[Defaults]\nGranularity=8192\n", 0, NULL, "mode=auto:granularity=8K", ""},
	{"auto", "[Defaults]\nGranularity=4K\nGranularity=auto\n", 0, NULL, "mode=auto", ""},

	{"bad values harm their lines only",
		"[Defaults]\nMode=fast\nStats=exit\nGranularity=6K\nGranularity=4M\nGranularity=2K\n"
		"Granularity=64k\nGranularity=64KB\nGranularity=-4K\nGranularity= 4 K\nGranularity=0\n"
		"Space=99999999999999999999\nSpace=16777217T\nSpace=63M\n",
		0, NULL, "mode=auto:stats=exit",
		"t:2: [Defaults] Mode=fast: not one of auto, sync, async, address, count, off\n"
		"t:4: [Defaults] Granularity=6K: not auto or a power of two from 4K to 2M\n"
		"t:5: [Defaults] Granularity=4M: not auto or a power of two from 4K to 2M\n"
		"t:6: [Defaults] Granularity=2K: not auto or a power of two from 4K to 2M\n"
		"t:7: [Defaults] Granularity=64k: not auto or a power of two from 4K to 2M\n"
		"t:8: [Defaults] Granularity=64KB: not auto or a power of two from 4K to 2M\n"
		"t:9: [Defaults] Granularity=-4K: not auto or a power of two from 4K to 2M\n"
		"t:10: [Defaults] Granularity=4 K: not auto or a power of two from 4K to 2M\n"
		"t:11: [Defaults] Granularity=0: not auto or a power of two from 4K to 2M\n"
		"t:12: [Defaults] Space=99999999999999999999: not auto or a size from 64M to 128T\n"
		"t:13: [Defaults] Space=16777217T: not auto or a size from 64M to 128T\n"
		"t:14: [Defaults] Space=63M: not auto or a size from 64M to 128T\n"},
	{"a bad value leaves the one before", "[Defaults]\nMode=sync\nMode=Sync\n", 0, NULL,
		"mode=sync",
		"t:3: [Defaults] Mode=Sync: not one of auto, sync, async, address, count, off\n"},
	{"no comment behind a value", "[Defaults]\nMode=sync # x\n", 0, NULL, "mode=auto",
		"t:2: [Defaults] Mode=sync # x: not one of auto, sync, async, address, count, off\n"},
	{"no line continues", "[Defaults]\nMode=\\\nsync\n# x \\\nStats=exit\n", 0, NULL,
		"mode=auto:stats=exit",
		"t:2: [Defaults] Mode=\\x5c: not one of auto, sync, async, address, count, off\n"
		"t:3: [Defaults] sync: neither [section] nor key=value, ignoring the line\n"},
	{"unknown key", "[Defaults]\nmode=sync\nColour=red\n=x\n", 0, NULL, "mode=auto",
		"t:2: [Defaults] mode=sync: unknown key, ignoring the line\n"
		"t:3: [Defaults] Colour=red: unknown key, ignoring the line\n"
		"t:4: [Defaults] =x: unknown key, ignoring the line\n"},
	{"the reserved engine",
		"[Defaults]\nEngine=dlmalloc\nEngine=glibc\nMergeThreshold=64K\nMergeThreshold=1\n", 0,
		NULL, "mode=auto",
		"t:2: [Defaults] Engine=dlmalloc: the engine dlmalloc is not available in this version\n"
		"t:3: [Defaults] Engine=glibc: not jemalloc\n"
		"t:4: [Defaults] MergeThreshold=64K: belongs to the engine dlmalloc, which is not "
		"available in this version\n"
		"t:5: [Defaults] MergeThreshold=1: not a size from 1K to 2M\n"},
	{"before any section", "Mode=sync\n[Defaults]\nStats=exit\n", 0, NULL, "mode=auto:stats=exit",
		"t:1: Mode=sync: before the first section, ignoring the line\n"},
	{"a bad section is dropped whole",
		"[Defaults]\nMode=sync\n[nginx]\nMode=off\nfoo\n[a.service]\nStats=exit\n", 0, "a.service",
		"mode=sync:stats=exit",
		"t:3: [nginx]: not Defaults and no service (a unit's name ends in .service), "
		"ignoring the section\n"},
	{"sections that are none",
		"[defaults]\n[]\n[\n[Defaults\n[x.socket]\n[a b.service]\n[@x.service]\n[ a.service]\n"
		"[.service]\n",
		0, NULL, "mode=auto",
		"t:1: [defaults]: not Defaults and no service (a unit's name ends in .service), "
		"ignoring the section\n"
		"t:2: []: not Defaults and no service (a unit's name ends in .service), "
		"ignoring the section\n"
		"t:3: [: a section line ends in ], ignoring the section\n"
		"t:4: [Defaults: a section line ends in ], ignoring the section\n"
		"t:5: [x.socket]: not Defaults and no service (a unit's name ends in .service), "
		"ignoring the section\n"
		"t:6: [a b.service]: not a valid unit name, ignoring the section\n"
		"t:7: [@x.service]: not a valid unit name, ignoring the section\n"
		"t:8: [ a.service]: not a valid unit name, ignoring the section\n"
		"t:9: [.service]: not a valid unit name, ignoring the section\n"},
	{"CR LF", "[Defaults]\r\nMode=sync\r\n[a.service]\r\nStats=exit\r\n", 0, "a.service",
		"mode=sync:stats=exit", "t:1: the line ends in CR LF, reading on as if in LF\n"},
	{"byte order mark", "\xef\xbb\xbf[Defaults]\nMode=sync\n", 0, NULL, "mode=sync",
		"t:1: the file starts with a byte order mark, reading on behind it\n"},
	{"NUL", "[Defaults]\nMo\0de=off\nMode=sync\n", 31, NULL, "mode=sync",
		"t:2: [Defaults]: the line holds a NUL byte, ignoring the line\n"},
	{"NUL in a section line",
		"[Defaults]\nMode=sync\n[b.\0service]\nMode=off\n[a.service]\nJournal=no\n", 66,
		"a.service", "mode=sync:journal=no",
		"t:3: the line holds a NUL byte, ignoring the section\n"},
	{"bytes that a terminal would obey", "[Defaults]\nMode=\x1b[31m\xff\n", 0, NULL, "mode=auto",
		"t:2: [Defaults] Mode=\\x1b[31m\\xff: not one of auto, sync, async, address, count, off\n"},
};

static void test_cases(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t size = cases[i].size ? cases[i].size : strlen(cases[i].text);
		/* Exactly as large as promised, so that a byte too far is seen. */
		char *text = malloc(size + 1), options[512], problems[8192] = "";
		struct conf_settings settings;
		struct conf *conf;

		memcpy(text, cases[i].text, size);
		if (conf_new(collect, problems, &conf) < 0 || conf_parse(conf, "t", text, size) < 0)
			abort();
		free(text);
		conf_for_unit(conf, cases[i].unit, &settings);
		conf_format_options(&settings, options, sizeof(options));
		expect(cases[i].name, "options", options, cases[i].options);
		expect(cases[i].name, "list of problems", problems, cases[i].problems);
		conf_free(conf);
	}
}

static void parse(struct conf *conf, const char *text)
{
	char *copy = strdup(text);

	if (conf_parse(conf, "t", copy, strlen(copy)) < 0)
		abort();
	free(copy);
}

static void test_long_names(void)
{
	char text[1024], a[256], b[256], c[300], problems[8192] = "", options[512];
	struct conf_settings settings;
	struct conf *conf;

	memset(a, 'x', 247);
	strcpy(a + 247, ".service");
	memcpy(b, a, sizeof(a));
	b[246] = 'y';
	memset(c, 'x', 256);
	strcpy(c + 248, ".service");
	snprintf(text, sizeof(text), "[%s]\nMode=sync\n[%s]\nMode=async\n[%s]\nMode=off\n", a, b, c);
	if (conf_new(collect, problems, &conf) < 0)
		abort();
	parse(conf, text);
	conf_for_unit(conf, a, &settings);
	conf_format_options(&settings, options, sizeof(options));
	expect("long names", "options of the first", options, "mode=sync");
	conf_for_unit(conf, b, &settings);
	conf_format_options(&settings, options, sizeof(options));
	expect("long names", "options of the second", options, "mode=async");
	snprintf(text, sizeof(text),
		"t:5: [%.255s...]: longer than any unit's name (255 bytes), ignoring the section\n", c);
	expect("long names", "list of problems", problems, text);
	conf_free(conf);
}

static void test_origin_and_alias(void)
{
	struct conf_settings settings;
	struct conf *conf;
	char value[32];

	if (conf_new(NULL, NULL, &conf) < 0)
		abort();
	parse(conf, "[Defaults]\n\nMode=sync\n[a.service]\nSpace=96M\n[b.service]\nMode=async\n");
	conf_for_unit(conf, "a.service", &settings);
	expect("origin", "file", settings.origin[CONF_MODE].file, "t");
	expect_number("origin", "line", settings.origin[CONF_MODE].line, 3);
	expect_number("origin", "line of another", settings.origin[CONF_SPACE].line, 5);
	expect_number("origin", "built-in file", settings.origin[CONF_STATS].file != NULL, 0);
	conf_format_value(&settings, CONF_SPACE, value, sizeof(value));
	expect("origin", "value", value, "96M");
	conf_add_alias(conf, "b.service", &settings);
	conf_format_value(&settings, CONF_MODE, value, sizeof(value));
	expect("alias", "value", value, "async");
	expect_number("buffer", "length", conf_format_options(&settings, value, 5), 20);
	expect("buffer", "what fits", value, "mode");
	conf_free(conf);
}

static void list(const char *name, void *userdata)
{
	strcat(strcat(userdata, name), " ");
}

static void test_each_section(void)
{
	char names[256] = "";
	struct conf *conf;

	if (conf_new(NULL, NULL, &conf) < 0)
		abort();
	parse(conf, "[c.service]\n[Defaults]\n[a.service]\n[b@.service]\n[a.service]\n");
	conf_each_section(conf, list, names);
	expect("each section", "list", names, "a.service b@.service c.service ");
	conf_free(conf);
}

static void write_file(const char *root, const char *path, const char *text)
{
	char full[512], *slash;
	FILE *stream;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (slash = full + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0777);
		*slash = '/';
	}
	stream = fopen(full, "w");
	if (!stream)
		abort();
	fputs(text, stream);
	fclose(stream);
}

/* Which files count, in what order. */
static void test_load(void)
{
	char root[] = "/tmp/conf-test-XXXXXX", problems[8192] = "", options[512], path[512];
	struct conf_settings settings;
	struct conf *conf;
	FILE *stream;

	if (!mkdtemp(root))
		abort();
	write_file(root, "usr/lib/vatalloc.conf", "[Defaults]\nMode=off\n");
	write_file(root, "etc/vatalloc.conf", "[Defaults]\nJournal=no\nStats=exit\nfoo\n");
	write_file(root, "usr/lib/vatalloc.conf.d/10-a.conf", "[Defaults]\nSpace=64M\nMode=sync\n");
	write_file(root, "usr/lib/vatalloc.conf.d/20-b.conf", "[Defaults]\nMode=count\n");
	write_file(root, "run/vatalloc.conf.d/20-b.conf", "[Defaults]\nStats=\nGranularity=8K\n");
	write_file(root, "usr/lib/vatalloc.conf.d/30-c.conf", "[Defaults]\nMode=off\n");
	write_file(root, "etc/vatalloc.conf.d/40-d.conf", "[Defaults]\nOnFault=silent\nbar\n");
	write_file(root, "etc/vatalloc.conf.d/50-e.conf~", "[Defaults]\nMode=off\n");
	write_file(root, "etc/vatalloc.conf.d/.60-f.conf", "[Defaults]\nMode=off\n");
	write_file(root, "usr/lib/vatalloc.conf.d/70-g.conf", "[Defaults]\nMode=off\n");
	write_file(root, "etc/vatalloc.conf.d/70-g.conf", "");
	write_file(root, "home/vatalloc.conf.d/45-u.conf", "[Defaults]\nOnExhaustion=abort\n");
	snprintf(path, sizeof(path), "%s/etc/vatalloc.conf.d/30-c.conf", root);
	if (symlink("/dev/null", path) < 0)
		abort();
	snprintf(path, sizeof(path), "%s/etc/vatalloc.conf.d/80-fifo.conf", root);
	if (mkfifo(path, 0666) < 0)
		abort();
	snprintf(path, sizeof(path), "%s/etc/vatalloc.conf.d/90-huge.conf", root);
	stream = fopen(path, "w");
	if (!stream || ftruncate(fileno(stream), CONF_FILE_MAX + 1) < 0)
		abort();
	fclose(stream);
	snprintf(path, sizeof(path), "%s/etc/vatalloc.conf.d/95-loop.conf", root);
	if (symlink("95-loop.conf", path) < 0)
		abort();

	if (conf_load(root, NULL, collect, problems, &conf) < 0)
		abort();
	conf_for_unit(conf, NULL, &settings);
	conf_format_options(&settings, options, sizeof(options));
	expect("load", "options", options,
		"mode=sync:granularity=8K:on_fault=silent:space=64M:journal=no");
	expect("load", "list of problems", problems,
		"/etc/vatalloc.conf:4: [Defaults] foo: neither [section] nor key=value, "
		"ignoring the line\n"
		"/etc/vatalloc.conf.d/40-d.conf:3: [Defaults] bar: neither [section] nor key=value, "
		"ignoring the line\n"
		"/etc/vatalloc.conf.d/80-fifo.conf: not a regular file, ignoring it\n"
		"/etc/vatalloc.conf.d/90-huge.conf: larger than 1 MiB, ignoring the file\n"
		"/etc/vatalloc.conf.d/95-loop.conf: cannot be read, ignoring the file\n");
	expect("load", "origin", settings.origin[CONF_SPACE].file,
		"/usr/lib/vatalloc.conf.d/10-a.conf");
	conf_free(conf);

	problems[0] = '\0';
	if (conf_load(root, "/home", NULL, NULL, &conf) < 0)
		abort();
	conf_for_unit(conf, NULL, &settings);
	conf_format_options(&settings, options, sizeof(options));
	expect("load", "a user's options", options,
		"mode=sync:granularity=8K:on_exhaustion=abort:on_fault=silent:space=64M:journal=no");
	conf_free(conf);

	snprintf(path, sizeof(path), "rm -r %s", root);
	if (system(path) != 0)
		abort();
	if (conf_load(root, NULL, collect, problems, &conf) < 0)
		abort();
	conf_for_unit(conf, NULL, &settings);
	conf_format_options(&settings, options, sizeof(options));
	expect("load", "options without a file", options, "mode=auto");
	expect("load", "problems without a file", problems, "");
	conf_free(conf);
}

static const char *or_none(int r, const char *name)
{
	return r == 0 ? name : r == -EINVAL ? "invalid" : r == -ENOENT ? "end" : "?";
}

static void test_unit_names(void)
{
	static const struct {
		const char *name;
		enum unit_form form;
	} forms[] = {
		{"a.service", UNIT_PLAIN},
		{"php8.2-fpm.service", UNIT_PLAIN},
		{"dev-disk-by\\x2dlabel.service", UNIT_PLAIN},
		{"a@.service", UNIT_TEMPLATE},
		{"a@b.service", UNIT_INSTANCE},
		{"vatalloc@postgresql@17-main.service", UNIT_INSTANCE},
		{"a@b@.service", UNIT_INSTANCE},
		{"", UNIT_INVALID},
		{".service", UNIT_INVALID},
		{"@.service", UNIT_INVALID},
		{"@a.service", UNIT_INVALID},
		{"a.socket", UNIT_INVALID},
		{"a.service.d", UNIT_INVALID},
		{"a/b.service", UNIT_INVALID},
		{"a%i.service", UNIT_INVALID},
		{"\xc3\xa4.service", UNIT_INVALID},
	};
	static const struct {
		const char *name, *template, *instance, *protects, *shorter;
	} names[] = {
		{"vatalloc@nginx.service", "vatalloc@.service", "nginx", "nginx.service", "end"},
		{"vatalloc@nginx.service.service", "vatalloc@.service", "nginx.service", "nginx.service",
			"end"},
		{"vatalloc@postgresql@17-main.service", "vatalloc@.service", "postgresql@17-main",
			"postgresql@17-main.service", "end"},
		{"vatalloc@php8.2-fpm.service", "vatalloc@.service", "php8.2-fpm", "php8.2-fpm.service",
			"end"},
		{"vatalloc@a\\x2db.service", "vatalloc@.service", "a\\x2db", "a\\x2db.service", "end"},
		{"vatalloc@p@.service", "vatalloc@.service", "p@", "invalid", "end"},
		{"vatalloc@.service", "invalid", "invalid", "", "end"},
		{"vatallocx@a.service", "vatallocx@.service", "invalid", "", "end"},
		{"a-b-c.service", "invalid", "invalid", "", "a-b-.service"},
		{"a-b-.service", "invalid", "invalid", "", "a-.service"},
		{"a-.service", "invalid", "invalid", "", "end"},
		{"a-b@c-d.service", "a-b@.service", "invalid", "", "a-@c-d.service"},
		{"-a.service", "invalid", "invalid", "", "end"},
		{"a--b.service", "invalid", "invalid", "", "a--.service"},
	};
	char ret[UNIT_NAME_MAX + 1], wanted[UNIT_NAME_MAX + 1];
	int r;

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		expect_number(forms[i].name, "form", unit_service_form(forms[i].name), forms[i].form);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *name = names[i].name;

		r = unit_template(name, ret);
		expect(name, "template", or_none(r, ret), names[i].template);
		r = unit_shorten(name, ret);
		expect(name, "shorter name", or_none(r, ret), names[i].shorter);
		r = unit_instance_of("vatalloc", name, ret);
		expect(name, "instance", or_none(r, ret), names[i].instance);
		if (r == 0) {
			r = unit_protected_by(ret, wanted);
			expect(name, "protected unit", or_none(r, wanted), names[i].protects);
		}
	}
	memset(ret, 'x', 250);
	ret[250] = '\0';
	expect_number("a long instance", "result", unit_protected_by(ret, wanted), -EINVAL);
	r = unit_with_instance("getty@.service", "autovt@tty1.service", ret);
	expect("with instance", "name", or_none(r, ret), "getty@tty1.service");
	r = unit_with_instance("getty.service", "autovt@tty1.service", ret);
	expect("with instance", "name", or_none(r, ret), "invalid");
}

int main(void)
{
	test_cases();
	test_long_names();
	test_origin_and_alias();
	test_each_section();
	test_load();
	test_unit_names();
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
