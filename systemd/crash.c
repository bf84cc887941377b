/* SPDX-License-Identifier: MIT */
#include "crash.h"
#include "auto.h"
#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

static const struct {
	const char *name, *key;
} fields[] = {
	[CRASH_KIND] = {"VATALLOC_KIND", "kind"},
	[CRASH_ACCESS] = {"VATALLOC_ACCESS", "access"},
	[CRASH_ADDRESS] = {"VATALLOC_ADDRESS", "address"},
	[CRASH_POINTER_TAG] = {"VATALLOC_POINTER_TAG", "pointer_tag"},
	[CRASH_MEMORY_TAG] = {"VATALLOC_MEMORY_TAG", "memory_tag"},
	[CRASH_CHUNK] = {"VATALLOC_CHUNK", "chunk"},
	[CRASH_SIZE] = {"VATALLOC_SIZE", "size"},
	[CRASH_OFFSET] = {"VATALLOC_OFFSET", "offset"},
	[CRASH_LIFE] = {"VATALLOC_LIFE", "life"},
	[CRASH_CURRENT_LIFE] = {"VATALLOC_CURRENT_LIFE", "current_life"},
	[CRASH_LIVES] = {"VATALLOC_LIVES", "lives"},
	[CRASH_MODE] = {"VATALLOC_MODE", "mode"},
	[CRASH_SI_CODE] = {"VATALLOC_SI_CODE", "si_code"},
	[CRASH_PROCESS_PID] = {"VATALLOC_PROCESS_PID", "process_pid"},
	[CRASH_TID] = {"VATALLOC_TID", "tid"},
	[CRASH_THREAD] = {"VATALLOC_THREAD", "thread"},
	[CRASH_PROGRAM] = {"VATALLOC_PROGRAM", "program"},
	[CRASH_PC] = {"VATALLOC_PC", "pc"},
	[CRASH_MODULE] = {"VATALLOC_MODULE", "module"},
	[CRASH_MODULE_OFFSET] = {"VATALLOC_MODULE_OFFSET", "module_offset"},
	[CRASH_BUILD_ID] = {"VATALLOC_BUILD_ID", "build_id"},
	[CRASH_BACKTRACE] = {"VATALLOC_BACKTRACE", "backtrace"},
	[CRASH_VERSION] = {"VATALLOC_VERSION", "version"},
	[CRASH_SOURCE] = {"VATALLOC_SOURCE", "source"},
};

enum {
	FIELD_MAX = 1 << 16, /* bytes of a field that are read */
	FRAMES_MAX = 256,
	FRAMES_IN_ID = 8,
};

const char *crash_field_name(enum crash_field field)
{
	return fields[field].name;
}

const char *crash_field_key(enum crash_field field)
{
	return fields[field].key;
}

void crash_free(struct crash *crash)
{
	for (int i = 0; i < CRASH_FIELDS; i++)
		free(crash->field[i]);
	free(crash->message);
	free(crash->unit);
	free(crash->user_unit);
	free(crash->host);
	free(crash->boot);
	*crash = (struct crash){0};
}

int crash_set(struct crash *crash, enum crash_field field, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int r;

	va_start(args, format);
	r = vasprintf(&text, format, args);
	va_end(args);
	if (r < 0)
		return -ENOMEM;
	free(crash->field[field]);
	crash->field[field] = text;
	return 0;
}

/* Leaves *ret alone where the entry has no such field. */
static int read_field(sd_journal *journal, const char *name, bool lines, char **ret)
{
	const void *data;
	size_t len, skip = strlen(name) + 1;
	char *text;
	int r;

	r = sd_journal_get_data(journal, name, &data, &len);
	/* Damaged or compressed in a way unknown here: the other fields are as good. */
	if (r == -ENOENT || r == -EBADMSG || r == -EPROTONOSUPPORT || r == -E2BIG)
		return 0;
	if (r < 0)
		return r;
	if (len <= skip)
		return 0;
	len -= skip;
	r = text_clean((const char *)data + skip, len < FIELD_MAX ? len : FIELD_MAX, lines, &text);
	if (r < 0)
		return r;
	free(*ret);
	*ret = text;
	return 0;
}

/* Fills in whom the entry is about. */
static int read_subject(sd_journal *journal, struct crash *crash)
{
	auto_free char *pid = NULL, *uid = NULL, *object = NULL, *object_user = NULL;
	const char *source = crash->field[CRASH_SOURCE];
	int r;

	if ((r = read_field(journal, "_PID", false, &pid)) < 0 ||
		(r = read_field(journal, "_UID", false, &uid)) < 0 ||
		(r = read_field(journal, "OBJECT_SYSTEMD_UNIT", false, &object)) < 0 ||
		(r = read_field(journal, "OBJECT_SYSTEMD_USER_UNIT", false, &object_user)) < 0)
		return r;

	if (source && !strcmp(source, "reporter")) {
		const char *claimed = crash->field[CRASH_PROCESS_PID];

		if (!uid || strcmp(uid, "0"))
			return -EPERM;
		crash->pid = claimed ? atoi(claimed) : 0;
		crash->unit = take(object);
		crash->user_unit = take(object_user);
		return 0;
	}
	crash->pid = pid ? atoi(pid) : 0;
	r = read_field(journal, "_SYSTEMD_UNIT", false, &crash->unit);
	if (r >= 0)
		r = read_field(journal, "_SYSTEMD_USER_UNIT", false, &crash->user_unit);
	return r;
}

int crash_read(sd_journal *journal, struct crash *ret)
{
	struct crash crash = {0};
	int r = 0;

	for (int i = 0; i < CRASH_FIELDS && r >= 0; i++)
		r = read_field(journal, fields[i].name, i == CRASH_BACKTRACE, &crash.field[i]);
	if (r >= 0)
		r = read_field(journal, "MESSAGE", false, &crash.message);
	if (r >= 0)
		r = read_field(journal, "_HOSTNAME", false, &crash.host);
	if (r >= 0)
		r = read_field(journal, "_BOOT_ID", false, &crash.boot);
	if (r >= 0)
		r = sd_journal_get_realtime_usec(journal, &crash.time);
	if (r >= 0)
		r = read_subject(journal, &crash);
	if (r >= 0 && !crash.field[CRASH_KIND])
		r = -EBADMSG;
	if (r < 0) {
		crash_free(&crash);
		return r;
	}
	*ret = crash;
	return 0;
}

/* FNV-1a: nothing depends on nobody finding a second crash with the same ID. */
static uint64_t hash(uint64_t h, const char *text)
{
	for (; text && *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3;
	return (h ^ '\n') * 0x100000001b3;
}

struct id {
	uint64_t hash;
	int frames;
};

static int hash_frame(const struct crash_frame *frame, void *context)
{
	struct id *id = context;
	char offset[24];

	snprintf(offset, sizeof(offset), "%#jx", (uintmax_t)frame->offset);
	/* One build of a module lies under different paths on different machines. */
	id->hash = hash(id->hash, frame->build_id[0] ? frame->build_id : frame->module);
	id->hash = hash(id->hash, offset);
	return ++id->frames == FRAMES_IN_ID;
}

void crash_id(const struct crash *crash, char ret[static 13])
{
	struct id id = {.hash = 0xcbf29ce484222325};
	const char *program = crash->field[CRASH_PROGRAM];
	const char *slash = program ? strrchr(program, '/') : NULL;

	id.hash = hash(id.hash, crash->field[CRASH_KIND]);
	id.hash = hash(id.hash, slash ? slash + 1 : program);
	crash_for_each_frame(crash, hash_frame, &id);
	if (!id.frames) {
		id.hash = hash(id.hash, crash->field[CRASH_MODULE]);
		id.hash = hash(id.hash, crash->field[CRASH_MODULE_OFFSET]);
	}
	snprintf(ret, 13, "%012jx", (uintmax_t)(id.hash ^ id.hash >> 48) & 0xffffffffffff);
}

/* "#0 0xPC MODULE+0xOFF (build-id HEX)", of which MODULE and what follows may be missing. */
static bool parse_frame(const char *line, const char *end, struct crash_frame *ret)
{
	const char *p = line, *module, *plus, *id;
	char *stop;

	p += strspn(p, " ");
	if (p >= end || *p != '#')
		return false;
	strtoul(p + 1, &stop, 10);
	p = stop + strspn(stop, " ");
	if (p >= end || strncmp(p, "0x", 2))
		return false;
	errno = 0;
	ret->pc = strtoull(p, &stop, 16);
	if (errno || stop > end)
		return false;

	module = stop + strspn(stop, " ");
	id = NULL;
	for (const char *q = module; q + strlen(" (build-id ") < end; q++)
		if (!strncmp(q, " (build-id ", strlen(" (build-id ")))
			id = q;
	plus = NULL;
	for (const char *q = module; q + 3 < (id ? id : end); q++)
		if (!strncmp(q, "+0x", 3))
			plus = q;
	if (plus) {
		ret->offset = strtoull(plus + 1, NULL, 16);
		ret->module = strndup(module, plus - module);
	} else {
		ret->offset = ret->pc;
		ret->module = strdup("");
	}
	if (id && plus) {
		id += strlen(" (build-id ");
		ret->build_id = strndup(id, strspn(id, "0123456789abcdef"));
	} else {
		ret->build_id = strdup("");
	}
	return true;
}

int crash_for_each_frame(const struct crash *crash,
	int (*found)(const struct crash_frame *frame, void *context), void *context)
{
	const char *line = crash->field[CRASH_BACKTRACE];

	for (int i = 0; line && *line && i < FRAMES_MAX; i++) {
		const char *end = line + strcspn(line, "\n");
		struct crash_frame frame = {0};
		auto_free char *text = strndup(line, end - line);
		int r;

		if (!text)
			return -ENOMEM;
		if (!parse_frame(text, text + (end - line), &frame))
			break;
		r = frame.module && frame.build_id ? found(&frame, context) : -ENOMEM;
		free(frame.module);
		free(frame.build_id);
		if (r)
			return r;
		line = *end ? end + 1 : end;
	}
	return 0;
}

static const char line_start[] = "vatalloc: ";

/* "KIND: " at the start of @text, and nothing that is not a kind's name. */
static size_t kind_length(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz-");

	return n >= 4 && n < 40 && !strncmp(text + n, ": ", 2) ? n : 0;
}

/* Sets a field to the word that follows @before in @text, if there is one. */
static int set_after(
	struct crash *crash, enum crash_field field, const char *text, const char *before)
{
	const char *word = strstr(text, before);
	size_t n;

	if (!word)
		return 0;
	word += strlen(before);
	n = strspn(word, "0123456789abcdefghijklmnopqrstuvwxyz-");
	return n && n < 32 ? crash_set(crash, field, "%.*s", (int)n, word) : 0;
}

/* "use-after-free: read at 0x..., 0 bytes into a 64-byte object, life 3 of 15, freed; ..." */
static int parse_message(const char *line, struct crash *crash)
{
	size_t kind = kind_length(line);
	const char *rest = line + kind + 2;
	int r;

	r = text_clean(line, strlen(line), false, &crash->message);
	if (r >= 0)
		r = crash_set(crash, CRASH_KIND, "%.*s", (int)kind, line);
	if (r >= 0)
		r = set_after(crash, CRASH_ACCESS, line, ": ");
	/* The message says "access" where a field says that it is unknown. */
	if (r >= 0 && crash->field[CRASH_ACCESS] && !strcmp(crash->field[CRASH_ACCESS], "access"))
		r = crash_set(crash, CRASH_ACCESS, "unknown");
	if (r >= 0)
		r = set_after(crash, CRASH_ADDRESS, rest, strstr(rest, " of 0x") ? " of " : " at ");
	if (r >= 0 && crash->field[CRASH_ADDRESS] &&
		strncmp(crash->field[CRASH_ADDRESS], "0x", 2)) {
		free(crash->field[CRASH_ADDRESS]);
		crash->field[CRASH_ADDRESS] = NULL;
	}
	if (r >= 0 && strstr(rest, ", life ")) {
		r = set_after(crash, CRASH_LIFE, rest, ", life ");
		if (r >= 0)
			r = set_after(crash, CRASH_LIVES, strstr(rest, ", life "), " of ");
	}
	if (r >= 0)
		r = set_after(crash, CRASH_CURRENT_LIFE, rest, "current life ");
	return r;
}

/* " chunk 0x... size 64 pointer-tag 5 memory-tag 9 mode sync" and the lines after it. */
static int parse_details(const char *line, struct crash *crash)
{
	static const struct {
		enum crash_field field;
		const char *before;
	} words[] = {
		{CRASH_CHUNK, " chunk "},
		{CRASH_SIZE, " size "},
		{CRASH_OFFSET, " offset "},
		{CRASH_POINTER_TAG, " pointer-tag "},
		{CRASH_MEMORY_TAG, " memory-tag "},
		{CRASH_MODE, " mode "},
	};
	const char *trace = crash->field[CRASH_BACKTRACE], *thread, *id;
	auto_free char *clean = NULL;
	int r = text_clean(line, strlen(line), false, &clean);

	if (r < 0)
		return r;
	if (!strncmp(clean, "  #", 3))
		return crash_set(crash, CRASH_BACKTRACE, "%s%s%s", trace ? trace : "",
			trace ? "\n" : "", clean + 2);
	thread = strstr(clean, ", thread ");
	if (!strncmp(clean, "  in ", 5) && thread) {
		thread += strlen(", thread ");
		id = strrchr(thread, '[');
		if (!id)
			return 0;
		r = crash_set(crash, CRASH_THREAD, "%.*s", (int)(id - thread), thread);
		return r < 0 ? r : set_after(crash, CRASH_TID, id, "[");
	}
	for (size_t i = 0; i < lengthof(words) && r >= 0; i++)
		r = set_after(crash, words[i].field, clean, words[i].before);
	return r;
}

int crash_parse(const char *text, struct crash *ret)
{
	struct crash crash = {0};
	int r = 0;

	for (const char *line = text; *line && r >= 0;) {
		size_t len = strcspn(line, "\n");
		auto_free char *copy = strndup(line, len);

		if (!copy) {
			r = -ENOMEM;
			break;
		}
		line += len + (line[len] == '\n');
		if (strncmp(copy, line_start, strlen(line_start)))
			continue;
		if (kind_length(copy + strlen(line_start))) {
			crash_free(&crash);
			r = parse_message(copy + strlen(line_start), &crash);
		} else if (crash.message) {
			r = parse_details(copy + strlen(line_start), &crash);
		}
	}
	if (r >= 0 && !crash.message)
		r = -EBADMSG;
	if (r < 0) {
		crash_free(&crash);
		return r;
	}
	*ret = crash;
	return 0;
}

static int add_iovec(struct iovec *iov, int *n, const char *name, const char *value)
{
	char *text;

	if (!value)
		return 0;
	if (asprintf(&text, "%s=%s", name, value) < 0)
		return -ENOMEM;
	iov[(*n)++] = (struct iovec){text, strlen(text)};
	return 0;
}

int crash_send(const struct crash *crash)
{
	struct iovec iov[CRASH_FIELDS + 8];
	int n = 0, r;

	/*
	 * The process is dead. OBJECT_PID= would have journald look for the PID, which may be
	 * somebody else's by now; the unit's name says enough, and `journalctl -u` finds it.
	 */
	r = add_iovec(iov, &n, "MESSAGE", crash->message);
	if (r >= 0)
		r = add_iovec(iov, &n, "MESSAGE_ID", CRASH_MESSAGE_ID);
	if (r >= 0)
		r = add_iovec(iov, &n, "PRIORITY", "2");
	if (r >= 0)
		r = add_iovec(iov, &n, "SYSLOG_IDENTIFIER", "vatalloc");
	if (r >= 0)
		r = add_iovec(iov, &n, "OBJECT_SYSTEMD_UNIT", crash->unit);
	if (r >= 0)
		r = add_iovec(iov, &n, "OBJECT_SYSTEMD_USER_UNIT", crash->user_unit);
	for (int i = 0; i < CRASH_FIELDS && r >= 0; i++)
		r = add_iovec(iov, &n, fields[i].name, crash->field[i]);
	if (r >= 0)
		r = sd_journal_sendv(iov, n);
	for (int i = 0; i < n; i++)
		free(iov[i].iov_base);
	return r < 0 ? r : 0;
}
