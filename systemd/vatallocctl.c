/* SPDX-License-Identifier: MIT */
/*
 * vatallocctl: what an administrator asks of vatalloc; see vatallocctl(1). This file reads the
 * command line and calls a verb.
 */
#include "auto.h"
#include "ctl.h"
#include "pager.h"
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	WAIT_DEFAULT = 30, /* seconds */
};

struct arguments arg = {
	.timeout = WAIT_DEFAULT,
	.library = LIBRARY_PATH,
};

void complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("vatallocctl: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

int fail(int r, const char *what)
{
	complain("%s: %s", what, strerror(-r));
	return EXIT_ERROR;
}

uint64_t now_usec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void auto_table_cleanup(struct table **table)
{
	table_free(*table);
}

void auto_bus_cleanup(sd_bus **bus)
{
	sd_bus_flush_close_unref(*bus);
}

void auto_conf_cleanup(struct conf **conf)
{
	conf_free(*conf);
}

void auto_names_cleanup(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
}

int add_name(struct names *names, const char *name)
{
	char **more;

	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->list[i], name))
			return 0;
	more = realloc(names->list, (names->n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	names->list = more;
	more[names->n] = strdup(name);
	if (!more[names->n])
		return -ENOMEM;
	names->n++;
	return 0;
}

int print(struct table *table)
{
	int r;

	if (!arg.no_pager && arg.format == TABLE_TEXT)
		pager_open();
	r = table_print(table, !arg.no_legend);
	pager_close();
	return r < 0 ? fail(r, "cannot print") : EXIT_OK;
}

const char *yes_no(bool yes)
{
	if (arg.format == TABLE_TEXT)
		return yes ? "yes" : "no";
	return yes ? "true" : "false";
}

int set_number(struct table *table, size_t column, uint64_t n)
{
	return table_setf(table, column, "%ju", (uintmax_t)n);
}

int set_clean(struct table *table, size_t column, const char *text)
{
	auto_free char *clean = NULL;
	int r;

	if (!text)
		return 0;
	r = text_clean(text, strlen(text), false, &clean);
	return r < 0 ? r : table_set(table, column, clean);
}

char *unit_name(const char *name)
{
	static const char *const types[] = {".service", ".scope", ".slice"};
	size_t len = strlen(name);
	char *unit = NULL;

	for (size_t i = 0; i < lengthof(types); i++) {
		size_t n = strlen(types[i]);

		if (len > n && !strcmp(name + len - n, types[i]))
			return strdup(name);
	}
	if (asprintf(&unit, "%s.service", name) < 0)
		return NULL;
	return unit;
}

int connect_bus(sd_bus **ret)
{
	int r = service_connect(arg.user, ret);

	/* The D-Bus daemon wants to know the user's groups, and hangs up on one it cannot find. */
	if ((r == -ENOTCONN || r == -ECONNRESET) && !getpwuid(geteuid())) {
		complain("cannot ask the service manager: D-Bus accepts no user that passwd does "
			 "not have, such as UID %ju",
			(uintmax_t)geteuid());
		return EXIT_ERROR;
	}
	return r < 0 ? fail(r, "cannot connect to the service manager") : EXIT_OK;
}

int fail_unit(int r, const char *unit)
{
	if (r == -ENOENT) {
		complain("%s: no such unit", unit);
		return EXIT_NOTHING;
	}
	return fail(r, unit);
}

void report_problem(const struct conf_problem *problem, void *userdata)
{
	char line[1024];

	(void)userdata;
	conf_format_problem(problem, line, sizeof(line));
	fprintf(stderr, "%s\n", line);
}

static const struct verb {
	const char *name;
	const char *arguments;
	int least, most; /* arguments */
	int (*run)(int argc, char **argv);
	const char *description;
} verbs[] = {
	{"run", "[--] COMMAND [ARGUMENT...]", 1, INT_MAX, verb_run,
		"Run a command with a protected heap"},
	{"status", "[UNIT...]", 0, INT_MAX, verb_status,
		"Show units, how well each is protected, and counters"},
	{"verify", "UNIT|PID...", 1, INT_MAX, verb_verify,
		"Check that each process is protected, or say why not"},
	{"crashes", "", 0, 0, verb_crashes, "List the heap errors in the journal"},
	{"check-config", "[UNIT...]", 0, INT_MAX, verb_check_config,
		"Show the settings in force, and errors in the files"},
	{"explain", "[ID|KIND]", 0, 1, verb_explain,
		"Tell about a report, or about a kind of error"},
};

enum {
	OPTION_VERSION = 256,
	OPTION_NO_PAGER,
	OPTION_NO_LEGEND,
	OPTION_JSON,
	OPTION_USER,
	OPTION_SYMBOLS,
	OPTION_DEBUGINFOD,
	OPTION_WAIT,
	OPTION_TIMEOUT,
	OPTION_UNIT,
	OPTION_ROOT,
	OPTION_LIBRARY,
	OPTION_SETTING,
};

static const struct option options[] = {
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
	{"no-legend", no_argument, NULL, OPTION_NO_LEGEND},
	{"json", required_argument, NULL, OPTION_JSON},
	{"user", no_argument, NULL, OPTION_USER},
	{"symbols", no_argument, NULL, OPTION_SYMBOLS},
	{"debuginfod", no_argument, NULL, OPTION_DEBUGINFOD},
	{"wait", no_argument, NULL, OPTION_WAIT},
	{"timeout", required_argument, NULL, OPTION_TIMEOUT},
	{"unit", required_argument, NULL, 'u'},
	{"since", required_argument, NULL, 'S'},
	{"until", required_argument, NULL, 'U'},
	{"boot", no_argument, NULL, 'b'},
	{"lines", required_argument, NULL, 'n'},
	{"reverse", no_argument, NULL, 'r'},
	{"directory", required_argument, NULL, 'D'},
	{"merge", no_argument, NULL, 'm'},
	{"root", required_argument, NULL, OPTION_ROOT},
	{"library", required_argument, NULL, OPTION_LIBRARY},
	/* The value of an option from here on goes to the library under the option's name. */
	{"mode", required_argument, NULL, OPTION_SETTING},
	{"granularity", required_argument, NULL, OPTION_SETTING},
	{"on-exhaustion", required_argument, NULL, OPTION_SETTING},
	{"on-fault", required_argument, NULL, OPTION_SETTING},
	{"fallback", required_argument, NULL, OPTION_SETTING},
	{"stats", required_argument, NULL, OPTION_SETTING},
	{"space", required_argument, NULL, OPTION_SETTING},
	{"journal", required_argument, NULL, OPTION_SETTING},
	{0},
};

static int help(void)
{
	printf("vatallocctl [OPTION...] VERB [ARGUMENT…]\n\n"
	       "Look after services whose heap vatalloc protects.\n\nVerbs:\n");
	for (size_t i = 0; i < lengthof(verbs); i++)
		printf("  %-13s%-26s %s\n", verbs[i].name, verbs[i].arguments,
			verbs[i].description);
	printf("\n"
	       "Options:\n"
	       "  -h --help                 Show this help\n"
	       "     --version              Show the version\n"
	       "     --no-pager             Do not pipe output into a pager\n"
	       "     --no-legend            Show no headings and hints\n"
	       "     --json=pretty|short|off\n"
	       "                            Print JSON\n"
	       "     --user                 Talk to the manager of this user's services\n"
	       "run:\n"
	       "     --mode=MODE            auto, sync, async, address, count or off\n"
	       "     --granularity=, --on-exhaustion=, --on-fault=, --fallback=, --stats=,\n"
	       "     --space=, --journal=   As in VATALLOC_OPTIONS\n"
	       "     --library=PATH         Use another build of the library\n"
	       "verify:\n"
	       "     --wait                 Wait until the unit has started\n"
	       "     --timeout=SECONDS      How long (%d)\n"
	       "crashes, explain:\n"
	       "  -u --unit=PATTERN         Only of such units\n"
	       "  -S --since=TIME           Not older, like 2026-11-30, 12:00, yesterday, -2h\n"
	       "  -U --until=TIME           Not newer\n"
	       "  -b --boot                 Only of this boot\n"
	       "  -n --lines=N              The last N\n"
	       "  -r --reverse              The newest first\n"
	       "  -D --directory=PATH       Read the journals in a directory\n"
	       "  -m --merge                Read the journals of other machines as well\n"
	       "     --symbols              Look up the names of functions\n"
	       "     --debuginfod           Ask debuginfod servers as well\n"
	       "check-config, run:\n"
	       "     --root=PATH            Read the configuration below PATH\n\n"
	       "See vatallocctl(1) for the exit status.\n",
		WAIT_DEFAULT);
	return EXIT_OK;
}

static int parse_number(const char *option, const char *text, unsigned *ret)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || !isdigit((unsigned char)*text) || *end || n > UINT_MAX / 1000) {
		complain("--%s=%s: not a number that makes sense", option, text);
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

static int parse_time(const char *option, const char *text, uint64_t *ret)
{
	int r = text_time(text, now_usec(), ret);

	if (r < 0)
		complain("--%s=%s: not a time", option, text);
	return r;
}

static int parse_json(const char *text)
{
	if (!strcmp(text, "pretty"))
		arg.format = TABLE_JSON;
	else if (!strcmp(text, "short"))
		arg.format = TABLE_JSON_SHORT;
	else if (!strcmp(text, "off"))
		arg.format = TABLE_TEXT;
	else {
		complain("--json=%s: not one of pretty, short, off", text);
		return -EINVAL;
	}
	return 0;
}

/* Appends KEY=VALUE to the library's options. */
static int add_setting(const char *option, const char *value)
{
	char *joined = NULL;

	if (strchr(value, ':') || !*value) {
		complain("--%s=%s: not a value", option, value);
		return -EINVAL;
	}
	if (asprintf(&joined, "%s%s%s=%s", arg.options ? arg.options : "", arg.options ? ":" : "",
		    option, value) < 0)
		return -ENOMEM;
	for (char *p = joined + strlen(joined) - strlen(value) - strlen(option) - 1; *p != '='; p++)
		if (*p == '-')
			*p = '_';
	free(arg.options);
	arg.options = joined;
	return 0;
}

static int parse_option(int option, const char *name)
{
	switch (option) {
	case OPTION_NO_PAGER:
		arg.no_pager = true;
		return 0;
	case OPTION_NO_LEGEND:
		arg.no_legend = true;
		return 0;
	case OPTION_JSON:
		return parse_json(optarg);
	case OPTION_USER:
		arg.user = true;
		return 0;
	case OPTION_SYMBOLS:
		arg.symbols = true;
		return 0;
	case OPTION_DEBUGINFOD:
		arg.symbols = arg.debuginfod = true;
		return 0;
	case OPTION_WAIT:
		arg.wait = true;
		return 0;
	case OPTION_TIMEOUT:
		return parse_number("timeout", optarg, &arg.timeout);
	case 'u':
		free(arg.unit);
		arg.filter.unit = arg.unit = unit_name(optarg);
		return arg.unit ? 0 : -ENOMEM;
	case 'S':
		return parse_time("since", optarg, &arg.filter.since);
	case 'U':
		return parse_time("until", optarg, &arg.filter.until);
	case 'b':
		arg.filter.this_boot = true;
		return 0;
	case 'n':
		return parse_number("lines", optarg, &arg.lines);
	case 'r':
		arg.reverse = true;
		return 0;
	case 'D':
		arg.filter.directory = optarg;
		return 0;
	case 'm':
		arg.filter.merge = true;
		return 0;
	case OPTION_ROOT:
		arg.root = optarg;
		return 0;
	case OPTION_LIBRARY:
		arg.library = optarg;
		return 0;
	case OPTION_SETTING:
		return add_setting(name, optarg);
	default:
		return -EINVAL;
	}
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < lengthof(verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

/*
 * Options may come before and after the verb and between its arguments, only those behind the
 * command of `run` are the command's own. The arguments end up at the front of @argv.
 */
static int parse_command_line(int argc, char **argv, const struct verb **ret_verb, int *ret_argc)
{
	const struct verb *verb = NULL;
	int n = 0;

	for (;;) {
		int index = -1, before = optind;
		int option = getopt_long(argc, argv, "+hu:S:U:bn:rD:m", options, &index);

		if (option == 'h') {
			help();
			return 0;
		}
		if (option == OPTION_VERSION) {
			printf("vatallocctl %s\n", VATALLOC_VERSION);
			return 0;
		}
		if (option != -1) {
			if (parse_option(option, index < 0 ? "" : options[index].name) < 0)
				return -EINVAL;
			continue;
		}
		if (optind >= argc)
			break;
		if (!verb) {
			verb = find_verb(argv[optind]);
			if (!verb) {
				complain("%s: no such verb, see --help", argv[optind]);
				return -EINVAL;
			}
			optind++;
			continue;
		}
		if (optind > before || verb->run == verb_run) {
			while (optind < argc)
				argv[n++] = argv[optind++];
			break;
		}
		argv[n++] = argv[optind++];
	}
	argv[n] = NULL;
	if (!verb) {
		help();
		return 0;
	}
	if (n < verb->least || n > verb->most) {
		complain(
			"%s takes other arguments: %s %s", verb->name, verb->name, verb->arguments);
		return -EINVAL;
	}
	*ret_verb = verb;
	*ret_argc = n;
	return 1;
}

int main(int argc, char **argv)
{
	const char *root = secure_getenv("VATALLOC_ROOT");
	const struct verb *verb;
	int r, code;

	arg.root = root ? root : "";
	r = parse_command_line(argc, argv, &verb, &argc);
	if (r < 0)
		code = EXIT_ERROR;
	else
		code = r ? verb->run(argc, argv) : EXIT_OK;
	free(arg.options);
	free(arg.unit);
	/* A full disk must not pass for a result. */
	if (fflush(stdout) < 0 && !code) {
		complain("cannot write: %s", strerror(errno));
		code = EXIT_ERROR;
	}
	return code;
}
