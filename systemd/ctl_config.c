/* SPDX-License-Identifier: MIT */
#include "auto.h"
#include "ctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum config_column {
	CONFIG_UNIT,
	CONFIG_KEY,
	CONFIG_VALUE,
	CONFIG_ORIGIN_TEXT,
	CONFIG_FILE,
	CONFIG_LINE,
	CONFIG_COLUMNS,
};

static const struct table_column config_columns[CONFIG_COLUMNS] = {
	[CONFIG_UNIT] = {"UNIT", "unit", 0},
	[CONFIG_KEY] = {"KEY", "key", 0},
	[CONFIG_VALUE] = {"VALUE", "value", 0},
	[CONFIG_ORIGIN_TEXT] = {"FROM", NULL, TABLE_TEXT_ONLY},
	[CONFIG_FILE] = {NULL, "file", TABLE_JSON_ONLY},
	[CONFIG_LINE] = {NULL, "line", TABLE_JSON_ONLY | TABLE_NUMBER},
};

static void count_problem(const struct conf_problem *problem, void *userdata)
{
	unsigned *problems = userdata;

	report_problem(problem, NULL);
	++*problems;
}

/* Every key of the unit, NULL for the defaults; with @own, only what differs in its own right. */
static int add_settings(struct table *table, const struct conf *conf, const char *unit)
{
	struct conf_settings settings, defaults;

	conf_for_unit(conf, NULL, &defaults);
	conf_for_unit(conf, unit, &settings);
	for (int key = 0; key < CONF_KEYS; key++) {
		const struct conf_origin *origin = &settings.origin[key];
		char value[64] = "";
		int r;

		conf_format_value(&settings, key, value, sizeof(value));
		if ((r = table_row(table)) < 0 ||
			(r = table_set(table, CONFIG_UNIT, unit ? unit : "Defaults")) < 0 ||
			(r = table_set(table, CONFIG_KEY, conf_key_name(key))) < 0 ||
			(r = table_set(table, CONFIG_VALUE, value)) < 0)
			return r;
		if (!origin->file) {
			r = table_set(table, CONFIG_ORIGIN_TEXT, "built in");
		} else if ((r = table_setf(table, CONFIG_ORIGIN_TEXT, "%s:%u", origin->file,
				    origin->line)) >= 0 &&
			   (r = table_set(table, CONFIG_FILE, origin->file)) >= 0) {
			r = set_number(table, CONFIG_LINE, origin->line);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static void keep_section(const char *name, void *userdata)
{
	/* Out of memory: the section is missing from the list, and nothing else will work either.
	 */
	add_name(userdata, name);
}

int verb_check_config(int argc, char **argv)
{
	auto_table struct table *table = NULL;
	auto_names struct names names = {0};
	auto_conf struct conf *conf = NULL;
	auto_free char *user_dir = NULL;
	unsigned problems = 0;
	int r;

	if (arg.user) {
		const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

		if (asprintf(&user_dir, "%s%s", config ? config : (home ? home : ""),
			    config ? "" : "/.config") < 0)
			return fail(-ENOMEM, "cannot read the configuration");
	}
	r = conf_load(arg.root, user_dir, count_problem, &problems, &conf);
	if (r < 0)
		return fail(r, "cannot read the configuration");
	r = table_new("settings", config_columns, CONFIG_COLUMNS, arg.format, &table);
	for (int i = 0; i < argc && r >= 0; i++) {
		auto_free char *unit = unit_name(argv[i]);

		r = unit ? add_name(&names, unit) : -ENOMEM;
	}
	if (r >= 0 && !argc) {
		conf_each_section(conf, keep_section, &names);
		r = add_settings(table, conf, NULL);
	}
	for (size_t i = 0; i < names.n && r >= 0; i++)
		r = add_settings(table, conf, names.list[i]);
	if (r < 0)
		return fail(r, "cannot print");
	r = print(table);
	return r ? r : problems ? EXIT_ERROR : EXIT_OK;
}
