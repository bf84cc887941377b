/* SPDX-License-Identifier: MIT */
/*
 * output: one file of the generator's, composed in memory and written whole or not at all.
 *
 * Nothing that is there already is overwritten, and nobody ever sees a part of a file.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

struct output {
	FILE *stream;
	char *text;
	size_t length;
};

/* What is printed to `stream` from now on makes up the file. -ENOMEM. */
int output_open(struct output *output);

/* Writes it as the file `name` beside the drop-ins of `unit` in the directory `destination`,
 * readable by all. Frees the output, also when it fails: -EEXIST if there is such a file. */
int output_write(
	struct output *output, const char *destination, const char *unit, const char *name);

/* Frees it unwritten. */
void output_drop(struct output *output);

/* A value between double quotes, escaped as systemd's unit files and environment files both
 * understand it. */
void write_quoted(FILE *stream, const char *text);
