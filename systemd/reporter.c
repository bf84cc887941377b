/* SPDX-License-Identifier: MIT */
/*
 * vatalloc-reporter: reports the crashes that the process could not report itself; see
 * vatalloc-reporter(8).
 *
 * It follows the journal for what systemd-coredump logs. A crash is reported if the process had the
 * library mapped, did not report it itself, and there is evidence that it was a heap error.
 */
#include "auto.h"
#include "dump.h"
#include "evidence.h"
#include "throttle.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#define OWN_UNIT "vatalloc-reporter.service"

static const uint64_t second = 1000000;

struct reporter {
	sd_journal *journal;
	struct throttle *throttle;
	char *state;	   /* the file with the cursor, NULL where nothing is kept */
	char *program;	   /* our own executable */
	long coredump_uid; /* of systemd-coredump, or 0 where there is no such user */
	bool debug;
};

static void say(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(int priority, const char *format, ...)
{
	va_list args;

	/* The manager takes the number off and gives it to the journal. */
	fprintf(stderr, "<%d>", priority);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static uint64_t now_usec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * second + now.tv_nsec / 1000;
}

static void auto_journal_cleanup(sd_journal **journal)
{
	sd_journal_close(*journal);
}
#define auto_journal __attribute__((cleanup(auto_journal_cleanup)))

/* Tells how many crashes of one unit or program were only counted. */
static void tell_count(const struct throttle_count *count, void *context)
{
	(void)context;
	sd_journal_send("MESSAGE=%s: %u more crash%s within %" PRIu64 " s, not reported one by one",
		count->unit ? count->unit : count->program, count->n, count->n == 1 ? "" : "es",
		count->seconds, "MESSAGE_ID=" THROTTLED_MESSAGE_ID, "PRIORITY=3",
		"SYSLOG_IDENTIFIER=vatalloc", "VATALLOC_SOURCE=reporter", "VATALLOC_COUNT=%u",
		count->n, "VATALLOC_PROGRAM=%s", count->program, "%s%s",
		count->unit ? "OBJECT_SYSTEMD_UNIT=" : "VATALLOC_UNIT=",
		count->unit ? count->unit : "none", NULL);
}

/* The process had the library, and ended in a way in which a heap error ends one. */
static bool is_of_interest(const struct reporter *reporter, const struct dump *dump)
{
	uint64_t start, end;

	if (dump->signal != SIGSEGV && dump->signal != SIGABRT)
		return false;
	if (!dump_find_library(dump, &start, &end) || dump_is_silenced(dump))
		return false;
	/* Otherwise each report about us would be a reason to crash again. */
	if ((dump->unit && !strcmp(dump->unit, OWN_UNIT)) ||
		(dump->program && reporter->program && !strcmp(dump->program, reporter->program))) {
		say(4, "ignoring a crash of our own, PID %d", (int)dump->pid);
		return false;
	}
	return true;
}

static int handle_dump(struct reporter *reporter, const struct dump *dump)
{
	struct crash crash;
	int r;

	r = dump_reported_itself(dump);
	if (r) {
		if (r > 0 && reporter->debug)
			say(7, "PID %d reported its crash itself", (int)dump->pid);
		return r < 0 ? r : 0;
	}
	if (!throttle_pass(reporter->throttle, dump->unit, dump->program, now_usec()))
		return 0;
	r = evidence_read(reporter->journal, dump, &crash);
	if (r == -ENOENT) {
		if (reporter->debug)
			say(7, "PID %d: no sign of a heap error", (int)dump->pid);
		return 0;
	}
	if (r < 0)
		return r;
	throttle_confirm(reporter->throttle, dump->unit, dump->program);
	r = crash_send(&crash);
	crash_free(&crash);
	return r;
}

/* Keeps the place up to which everything has been seen to; written anew, then put in place. */
static int save_cursor(const struct reporter *reporter)
{
	auto_free char *cursor = NULL, *new = NULL;
	auto_file FILE *f = NULL;
	int r;

	if (!reporter->state)
		return 0;
	r = sd_journal_get_cursor(reporter->journal, &cursor);
	if (r < 0)
		return r;
	if (asprintf(&new, "%s.new", reporter->state) < 0)
		return -ENOMEM;
	f = fopen(new, "we");
	if (!f)
		return -errno;
	if (fprintf(f, "%s\n", cursor) < 0 || fflush(f) < 0)
		return -EIO;
	if (rename(new, reporter->state) < 0)
		return -errno;
	return 0;
}

/*
 * Goes to the first entry that has not been seen to; 1 if that is the current one, 0 if it is the
 * next. Without a place that was kept, which is how it begins, that is one from now on: what lies
 * behind is not told as if it were news.
 */
static int find_place(struct reporter *reporter)
{
	auto_file FILE *f = reporter->state ? fopen(reporter->state, "re") : NULL;
	char cursor[1024];
	int r;

	if (!f || !fgets(cursor, sizeof(cursor), f))
		return sd_journal_seek_realtime_usec(reporter->journal, now_usec());
	cursor[strcspn(cursor, "\n")] = '\0';
	r = sd_journal_seek_cursor(reporter->journal, cursor);
	if (r == -EINVAL) {
		say(4, "%s is damaged, going on from now", reporter->state);
		return sd_journal_seek_realtime_usec(reporter->journal, now_usec());
	}
	if (r >= 0)
		r = sd_journal_next(reporter->journal);
	if (r <= 0)
		return r;
	r = sd_journal_test_cursor(reporter->journal, cursor);
	return r < 0 ? r : !r;
}

static int handle_entry(struct reporter *reporter)
{
	struct dump dump;
	int r;

	r = dump_read(reporter->journal, &dump);
	if (r < 0)
		return r;
	if (is_of_interest(reporter, &dump)) {
		if (dump_is_genuine(reporter->journal, &dump, reporter->coredump_uid))
			r = handle_dump(reporter, &dump);
		else
			say(4, "ignoring a core dump's entry that did not come from "
			       "systemd-coredump");
	}
	dump_free(&dump);
	return r;
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static int follow(struct reporter *reporter)
{
	int r = find_place(reporter);

	if (r < 0)
		return r;
	sd_notify(0, "READY=1");
	for (;;) {
		while (!ended && (r > 0 || (r = sd_journal_next(reporter->journal)) > 0)) {
			r = handle_entry(reporter);
			/* One that cannot be read must not hold up the others, now or after a
			 * restart. */
			if (r < 0)
				say(3, "cannot handle a core dump, ignoring: %s", strerror(-r));
			r = save_cursor(reporter);
			if (r < 0)
				say(4, "cannot keep the place in the journal, ignoring: %s",
					strerror(-r));
			r = 0;
		}
		if (ended)
			break;
		if (r < 0)
			return r;
		throttle_tell(reporter->throttle, now_usec(), false, tell_count, NULL);
		r = sd_journal_wait(
			reporter->journal, throttle_wait(reporter->throttle, now_usec()));
		if (r < 0 && r != -EINTR)
			return r;
		r = 0;
	}
	sd_notify(0, "STOPPING=1");
	throttle_tell(reporter->throttle, now_usec(), true, tell_count, NULL);
	return 0;
}

static int open_coredumps(sd_journal **ret)
{
	auto_journal sd_journal *journal = NULL;
	int r;

	/* All of them: of a user's process the entry is in that user's journal. */
	r = sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);
	if (r >= 0)
		r = sd_journal_set_data_threshold(journal, 0);
	if (r >= 0)
		r = sd_journal_add_match(journal, "MESSAGE_ID=" DUMP_MESSAGE_ID, 0);
	if (r < 0)
		return r;
	*ret = take(journal);
	return 0;
}

static int run(struct reporter *reporter, unsigned burst, unsigned interval)
{
	const char *directory = getenv("STATE_DIRECTORY");
	const struct passwd *user = getpwnam("systemd-coredump");
	char program[4096];
	ssize_t n;
	int r;

	if (directory && asprintf(&reporter->state, "%s/cursor", directory) < 0) {
		reporter->state = NULL;
		return -ENOMEM;
	}
	reporter->coredump_uid = user ? (long)user->pw_uid : 0;
	n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (n > 0 && !(reporter->program = strndup(program, n)))
		return -ENOMEM;
	r = throttle_new(burst, interval * second, &reporter->throttle);
	if (r >= 0)
		r = open_coredumps(&reporter->journal);
	return r < 0 ? r : follow(reporter);
}

static int parse_number(const char *option, const char *text, unsigned *ret)
{
	unsigned long n;
	char *stop;

	errno = 0;
	n = strtoul(text, &stop, 10);
	if (errno || !isdigit((unsigned char)*text) || *stop || !n || n > 1000000) {
		fprintf(stderr, "vatalloc-reporter: --%s=%s: not a number that makes sense\n",
			option, text);
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

int main(int argc, char **argv)
{
	enum { OPTION_BURST = 256, OPTION_INTERVAL, OPTION_DEBUG, OPTION_VERSION };
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, OPTION_VERSION},
		{"burst", required_argument, NULL, OPTION_BURST},
		{"interval", required_argument, NULL, OPTION_INTERVAL},
		{"debug", no_argument, NULL, OPTION_DEBUG},
		{0},
	};
	/* No SA_RESTART: the wait for the journal is to end. */
	struct sigaction action = {.sa_handler = end};
	struct reporter reporter = {0};
	unsigned burst = 5, interval = 600;
	int option, r = 0;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (option) {
		case 'h':
			printf("vatalloc-reporter [--burst=N] [--interval=SECONDS] [--debug]\n\n"
			       "Report heap errors of protected processes that could not do it "
			       "themselves.\nSee vatalloc-reporter(8).\n");
			return EXIT_SUCCESS;
		case OPTION_VERSION:
			printf("vatalloc-reporter %s\n", VATALLOC_VERSION);
			return EXIT_SUCCESS;
		case OPTION_BURST:
			r = parse_number("burst", optarg, &burst);
			break;
		case OPTION_INTERVAL:
			r = parse_number("interval", optarg, &interval);
			break;
		case OPTION_DEBUG:
			reporter.debug = true;
			break;
		default:
			r = -EINVAL;
		}
		if (r < 0)
			return EXIT_FAILURE;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);

	r = run(&reporter, burst, interval);
	if (r < 0)
		say(3, "cannot follow the journal: %s", strerror(-r));
	sd_journal_close(reporter.journal);
	throttle_free(reporter.throttle);
	free(reporter.state);
	free(reporter.program);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
