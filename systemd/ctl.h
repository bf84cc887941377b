/* SPDX-License-Identifier: MIT */
/*
 * ctl: what the verbs of vatallocctl have in common.
 *
 * A verb is a function in a ctl_NAME.c, and a row of the table in vatallocctl.c. It is called with
 * its own arguments, prints results on standard output and everything else on standard error, and
 * returns an exit status.
 */
#pragma once

#include "../conf/conf.h"
#include "journal.h"
#include "service.h"
#include "table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exit_status {
	EXIT_OK = 0,
	EXIT_ERROR = 1,		/* it could not be done, or check-config found errors */
	EXIT_NOT_PROTECTED = 3, /* verify */
	EXIT_NOTHING = 4,	/* no such unit, process or report; or the unit does not run */
	EXIT_RUN = 125,		/* run did not try the command; and as env(1) has it: */
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/* What the command line says. Written by vatallocctl.c while it is parsed, only read afterwards. */
struct arguments {
	bool user;
	bool no_pager, no_legend;
	enum table_format format;
	bool symbols, debuginfod;
	struct journal_filter filter;
	bool reverse;
	unsigned lines; /* 0: all */
	bool wait;
	unsigned timeout; /* seconds */
	const char *root;
	const char *library;
	char *unit;    /* of the filter */
	char *options; /* in the form of VATALLOC_OPTIONS; NULL for none */
};

extern struct arguments arg;

int verb_run(int argc, char **argv);
int verb_status(int argc, char **argv);
int verb_verify(int argc, char **argv);
int verb_crashes(int argc, char **argv);
int verb_check_config(int argc, char **argv);
int verb_explain(int argc, char **argv);

/* Says something on standard error. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Complains about @what because of @r, a negative errno; returns EXIT_ERROR. */
int fail(int r, const char *what);

/* Prints the table, in a pager where that is wanted; returns an exit status. */
int print(struct table *table);

/* The cell of a boolean column. */
const char *yes_no(bool yes);

int set_number(struct table *table, size_t column, uint64_t n);

/* Text from elsewhere, cleaned; nothing for NULL. */
int set_clean(struct table *table, size_t column, const char *text);

uint64_t now_usec(void);

/* "nginx" is nginx.service, and "php8.2-fpm" php8.2-fpm.service; the caller frees it. NULL for want
 * of memory. */
char *unit_name(const char *name);

/* Connects to the manager that --user chooses; returns an exit status. */
int connect_bus(sd_bus **ret);

/* Complains about a unit that cannot be read; returns an exit status. */
int fail_unit(int r, const char *unit);

/* Prints an error in the configuration, for conf_load. */
void report_problem(const struct conf_problem *problem, void *userdata);

/* A set of names in the order in which they were added. */
struct names {
	char **list;
	size_t n;
};

int add_name(struct names *names, const char *name);

void auto_names_cleanup(struct names *names);
void auto_table_cleanup(struct table **table);
void auto_bus_cleanup(sd_bus **bus);
void auto_conf_cleanup(struct conf **conf);

#define auto_names __attribute__((cleanup(auto_names_cleanup)))
#define auto_table __attribute__((cleanup(auto_table_cleanup)))
#define auto_bus   __attribute__((cleanup(auto_bus_cleanup)))
#define auto_conf  __attribute__((cleanup(auto_conf_cleanup)))
