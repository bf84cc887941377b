/* SPDX-License-Identifier: MIT */
#include "auto.h"
#include "ctl.h"
#include "process.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds @command as execvp does; the caller frees it. NULL where it is not there. */
static char *find_program(const char *command)
{
	const char *path = getenv("PATH");

	if (strchr(command, '/'))
		return strdup(command);
	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	while (*path) {
		size_t n = strcspn(path, ":");
		char *program;

		if (asprintf(&program, "%.*s/%s", (int)n, n ? path : ".", command) < 0)
			return NULL;
		if (access(program, X_OK) == 0)
			return program;
		free(program);
		path += n + (path[n] == ':');
	}
	return NULL;
}

/* LD_PRELOAD and VATALLOC_OPTIONS for a child. */
static int set_environment(const char *library)
{
	const char *preload = getenv("LD_PRELOAD"), *options = getenv("VATALLOC_OPTIONS");
	auto_free char *joined = NULL, *joined_options = NULL;
	char configured[1024] = "";
	auto_conf struct conf *conf = NULL;
	struct conf_settings settings;
	int r;

	r = conf_load(arg.root, NULL, report_problem, NULL, &conf);
	if (r < 0)
		return r;
	conf_for_unit(conf, NULL, &settings);
	conf_format_options(&settings, configured, sizeof(configured));

	if (asprintf(&joined, "%s%s%s", library, preload && *preload ? ":" : "",
		    preload ? preload : "") < 0)
		return -ENOMEM;
	/* The last one of an option counts: the command line's, then the environment's. */
	if (asprintf(&joined_options, "%s%s%s%s%s", configured, options && *options ? ":" : "",
		    options ? options : "", arg.options ? ":" : "",
		    arg.options ? arg.options : "") < 0)
		return -ENOMEM;
	if (setenv("LD_PRELOAD", joined, 1) < 0 ||
		setenv("VATALLOC_OPTIONS", joined_options, 1) < 0)
		return -errno;
	return 0;
}

int verb_run(int argc, char **argv)
{
	auto_free char *program = NULL, *library = NULL, *why = NULL;
	struct process process = {0};
	int r;

	(void)argc;
	library = realpath(arg.library, NULL);
	if (!library || access(library, R_OK) < 0) {
		complain("%s: %s", arg.library, strerror(errno));
		return EXIT_RUN;
	}
	if (strpbrk(library, ": ")) {
		complain("%s: the dynamic linker takes no path with a colon or a space", library);
		return EXIT_RUN;
	}
	program = find_program(argv[0]);
	if (!program) {
		complain("%s: command not found", argv[0]);
		return EXIT_NOT_FOUND;
	}
	process.reason = process_check_program(program);
	if (process.reason != REASON_PROTECTED) {
		if (process_describe(&process, &why) >= 0)
			complain("%s: %s", program, why);
		return EXIT_RUN;
	}
	r = set_environment(library);
	if (r < 0) {
		fail(r, "cannot set the environment up");
		return EXIT_RUN;
	}
	execv(program, argv);
	r = errno;
	complain("%s: %s", program, strerror(r));
	return r == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
