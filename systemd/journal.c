/* SPDX-License-Identifier: MIT */
#include "journal.h"
#include "auto.h"
#include "text.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void auto_journal_cleanup(sd_journal **journal)
{
	sd_journal_close(*journal);
}
#define auto_journal __attribute__((cleanup(auto_journal_cleanup)))

static int match_boot(sd_journal *journal)
{
	char match[64] = "_BOOT_ID=";
	sd_id128_t boot;
	int r = sd_id128_get_boot(&boot);

	if (r < 0)
		return r;
	sd_id128_to_string(boot, match + strlen(match));
	return sd_journal_add_match(journal, match, 0);
}

static bool passes(const struct journal_filter *filter, const struct crash *crash)
{
	if (filter->since && crash->time < filter->since)
		return false;
	if (!filter->unit)
		return true;
	return (crash->unit && !fnmatch(filter->unit, crash->unit, 0)) ||
	       (crash->user_unit && !fnmatch(filter->unit, crash->user_unit, 0));
}

int journal_for_each(const struct journal_filter *filter,
	int (*found)(struct crash *crash, void *context), void *context)
{
	auto_journal sd_journal *journal = NULL;
	int r;

	if (filter->directory)
		r = sd_journal_open_directory(&journal, filter->directory, 0);
	else
		r = sd_journal_open(&journal, filter->merge ? 0 : SD_JOURNAL_LOCAL_ONLY);
	if (r >= 0)
		r = sd_journal_set_data_threshold(journal, 0);
	if (r >= 0)
		r = sd_journal_add_match(journal, "MESSAGE_ID=" CRASH_MESSAGE_ID, 0);
	if (r >= 0 && filter->this_boot)
		r = match_boot(journal);
	if (r >= 0)
		r = filter->since ? sd_journal_seek_realtime_usec(journal, filter->since)
				  : sd_journal_seek_head(journal);
	while (r >= 0 && (r = sd_journal_next(journal)) > 0) {
		struct crash crash;

		r = crash_read(journal, &crash);
		/* Forged or damaged. */
		if (r == -EPERM || r == -EBADMSG) {
			r = 0;
			continue;
		}
		if (r < 0)
			break;
		/* With journals of several machines the order is only nearly that of time. */
		if (filter->until && crash.time > filter->until)
			r = 0;
		else
			r = passes(filter, &crash) ? found(&crash, context) : 0;
		crash_free(&crash);
		if (r)
			break;
	}
	return r;
}

int journal_loader_error(pid_t pid, char **ret)
{
	auto_journal sd_journal *journal = NULL;
	auto_free char *match = NULL;
	int r;

	r = sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);
	if (r < 0)
		return r;
	if (asprintf(&match, "_PID=%d", (int)pid) < 0)
		return -ENOMEM;
	r = sd_journal_add_match(journal, match, 0);
	if (r >= 0)
		r = match_boot(journal);
	if (r >= 0)
		r = sd_journal_seek_tail(journal);
	for (int i = 0; r >= 0 && i < 1000 && (r = sd_journal_previous(journal)) > 0; i++) {
		static const char start[] = "MESSAGE=ERROR: ld.so: ";
		const void *data;
		size_t len;

		if (sd_journal_get_data(journal, "MESSAGE", &data, &len) < 0 ||
			len < strlen(start) || memcmp(data, start, strlen(start)))
			continue;
		return text_clean((const char *)data + strlen("MESSAGE="), len - strlen("MESSAGE="),
			false, ret);
	}
	return r < 0 ? r : -ENOENT;
}
