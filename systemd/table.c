/* SPDX-License-Identifier: MIT */
#include "table.h"
#include "auto.h"

#include <errno.h>
#include <libsmartcols.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct table {
	struct libscols_table *scols;
	const struct table_column *columns;
	size_t n_columns;
	int *places; /* of each column in what is shown, or -1 */
	enum table_format format;
	struct libscols_line *row;
};

void table_free(struct table *table)
{
	if (!table)
		return;
	scols_unref_table(table->scols);
	free(table->places);
	free(table);
}

static void auto_table_cleanup(struct table **table)
{
	table_free(*table);
}

static int add_column(struct table *table, const struct table_column *column)
{
	bool json = table->format != TABLE_TEXT;
	struct libscols_column *c;

	c = scols_table_new_column(table->scols, json ? column->key : column->heading, 0,
		column->flags & TABLE_RIGHT ? SCOLS_FL_RIGHT : 0);
	if (!c)
		return -ENOMEM;
	/* libsmartcols' booleans know no null. Numbers do, and are printed as they are. */
	if (column->flags & (TABLE_NUMBER | TABLE_BOOLEAN))
		return scols_column_set_json_type(c, SCOLS_JSON_NUMBER);
	return 0;
}

int table_new(const char *name, const struct table_column *columns, size_t n_columns,
	enum table_format format, struct table **ret)
{
	__attribute__((cleanup(auto_table_cleanup))) struct table *table = NULL;
	int place = 0;

	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	table->scols = scols_new_table();
	table->columns = columns;
	table->n_columns = n_columns;
	table->format = format;
	table->places = calloc(n_columns, sizeof(*table->places));
	if (!table->scols || !table->places)
		return -ENOMEM;
	scols_table_set_name(table->scols, name);
	scols_table_enable_json(table->scols, format != TABLE_TEXT);

	for (size_t i = 0; i < n_columns; i++) {
		int hidden = format == TABLE_TEXT ? TABLE_JSON_ONLY : TABLE_TEXT_ONLY;
		int r;

		table->places[i] = -1;
		if (columns[i].flags & hidden)
			continue;
		r = add_column(table, &columns[i]);
		if (r < 0)
			return r;
		table->places[i] = place++;
	}
	*ret = take(table);
	return 0;
}

int table_row(struct table *table)
{
	table->row = scols_table_new_line(table->scols, NULL);
	if (!table->row)
		return -ENOMEM;
	for (size_t i = 0; i < table->n_columns; i++) {
		int r = table_set(table, i, NULL);

		if (r < 0)
			return r;
	}
	return 0;
}

int table_set(struct table *table, size_t column, const char *value)
{
	if (table->places[column] < 0)
		return 0;
	if (!value || !*value)
		value = table->format == TABLE_TEXT ? "-" : NULL;
	return scols_line_set_data(table->row, table->places[column], value);
}

int table_setf(struct table *table, size_t column, const char *format, ...)
{
	auto_free char *value = NULL;
	va_list args;
	int r;

	va_start(args, format);
	r = vasprintf(&value, format, args);
	va_end(args);
	return r < 0 ? -ENOMEM : table_set(table, column, value);
}

/* Takes the white space between the tokens out. */
static void compact(char *json)
{
	bool quoted = false;
	char *to = json;

	for (const char *from = json; *from; from++) {
		if (quoted && *from == '\\' && from[1]) {
			*to++ = *from++;
		} else if (*from == '"') {
			quoted = !quoted;
		} else if (!quoted && strchr(" \n\t", *from)) {
			continue;
		}
		*to++ = *from;
	}
	*to = '\0';
}

int table_print(struct table *table, bool legend)
{
	auto_free char *text = NULL;
	int r;

	/* libsmartcols prints nothing at all for a table without rows. */
	if (scols_table_is_empty(table->scols)) {
		if (table->format != TABLE_TEXT)
			printf(table->format == TABLE_JSON ? "{\n   \"%s\": []\n}\n"
							   : "{\"%s\":[]}\n",
				scols_table_get_name(table->scols));
		return 0;
	}
	scols_table_enable_noheadings(table->scols, !legend);
	r = scols_print_table_to_string(table->scols, &text);
	if (r < 0)
		return r;
	if (table->format == TABLE_JSON_SHORT)
		compact(text);
	fputs(text, stdout);
	if (*text && text[strlen(text) - 1] != '\n')
		putchar('\n');
	return 0;
}
