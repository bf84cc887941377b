/* SPDX-License-Identifier: MIT */
/*
 * table: rows of text, shown as a table or as JSON, from the same cells.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum table_format {
	TABLE_TEXT,
	TABLE_JSON,	  /* indented */
	TABLE_JSON_SHORT, /* on one line */
};

/* How a column is shown; a cell without a value is "-" and null. */
enum {
	TABLE_RIGHT = 1 << 0,	  /* aligned to the right */
	TABLE_NUMBER = 1 << 1,	  /* a number in JSON */
	TABLE_BOOLEAN = 1 << 2,	  /* "yes" and "no"; "true" and "false" in JSON */
	TABLE_JSON_ONLY = 1 << 3, /* not in the text */
	TABLE_TEXT_ONLY = 1 << 4, /* not in JSON: a form for people of what another column has */
};

struct table_column {
	const char *heading; /* of the text */
	const char *key;     /* in JSON */
	int flags;
};

struct table;

/* A table called @name in JSON. @columns must stay as they are for the table's life. */
int table_new(const char *name, const struct table_column *columns, size_t n_columns,
	enum table_format format, struct table **ret);

void table_free(struct table *table);

/* Starts a row, to which the cells set next belong. */
int table_row(struct table *table);

/* Sets a cell of the current row. NULL is no value; @column may be one that is not shown. */
int table_set(struct table *table, size_t column, const char *value);
int table_setf(struct table *table, size_t column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Prints it to standard output; the text with a line of headings if @legend. */
int table_print(struct table *table, bool legend);
