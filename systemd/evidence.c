/* SPDX-License-Identifier: MIT */
#include "evidence.h"
#include "auto.h"
#include "core.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* Newer than bookworm's headers, or arm64's alone. */
#ifndef PR_MTE_TCF_SYNC
#define PR_MTE_TCF_SYNC	 (1ul << 1)
#define PR_MTE_TCF_ASYNC (1ul << 2)
#endif
#ifndef SEGV_MTEAERR
#define SEGV_MTEAERR 8
#define SEGV_MTESERR 9
#endif

static int read_core(sd_journal *journal, const struct dump *dump, struct core *ret)
{
	uint64_t start, end;
	struct core_source source;
	int r;

	dump_find_library(dump, &start, &end);
	if (dump->file) {
		struct core_file *file;

		r = core_file_open(dump->file, &file, &source);
		if (r < 0)
			return r;
		r = core_read(&source, start, end, ret);
		core_file_close(file);
		return r;
	}
	/* With Storage=journal it is in the entry itself. */
	{
		struct core_memory memory;
		const void *data;
		size_t len, skip = strlen("COREDUMP=");

		r = sd_journal_get_data(journal, "COREDUMP", &data, &len);
		if (r < 0)
			return r;
		memory = (struct core_memory){(const unsigned char *)data + skip, len - skip};
		source = core_from_memory(&memory);
		return core_read(&source, start, end, ret);
	}
}

static const char *mode_of(const struct core *core)
{
	static const char *const names[] = {
		[VATALLOC_MODE_OFF] = "off",
		[VATALLOC_MODE_COUNT] = "count",
		[VATALLOC_MODE_ADDRESS] = "address",
		[VATALLOC_MODE_SYNC] = "sync",
		[VATALLOC_MODE_ASYNC] = "async",
		[VATALLOC_MODE_MTE] = "mte",
	};

	if (core->has_stats && core->stats.mode < lengthof(names) && names[core->stats.mode])
		return names[core->stats.mode];
	switch (core->has_tag_control ? core->tag_control & (PR_MTE_TCF_SYNC | PR_MTE_TCF_ASYNC)
				      : 0) {
	case PR_MTE_TCF_SYNC:
		return "sync";
	case PR_MTE_TCF_ASYNC:
		return "async";
	case PR_MTE_TCF_SYNC | PR_MTE_TCF_ASYNC:
		return "mte";
	default:
		return NULL;
	}
}

/* The kind of error that the core dump shows, NULL if it shows none. */
static const char *kind_of(const struct core *core, const struct dump *dump)
{
	unsigned pointer_tag = core->address >> 56 & 15;

	if (core->has_signal && core->signal == SIGSEGV) {
		if (core->code == SEGV_MTEAERR)
			return "asynchronous-fault";
		if (core->code == SEGV_MTESERR)
			return pointer_tag ? "tag-mismatch" : "untagged-pointer";
		if (core->code > 0 && dump_in_heap(dump, core_untag(core->address),
					      core->has_stats ? core->stats.space_size : 0))
			return "retired-lease";
		return NULL;
	}
	/* The library ends the process by abort() for an error that it finds itself. */
	if (dump->signal == SIGABRT && core->has_stats && core->stats.faults)
		return "unknown";
	return NULL;
}

/* The stack that systemd-coredump found, in our form; only the thread that crashed, its first one.
 */
static int read_backtrace(const struct dump *dump, struct crash *crash)
{
	static const char start[] = "Stack trace of thread";
	const char *line = dump->message ? strstr(dump->message, start) : NULL;
	int r = 0;

	line = line ? strchr(line, '\n') : NULL;
	for (int i = 0; line && r >= 0 && i < 64; i++) {
		const char *trace = crash->field[CRASH_BACKTRACE];
		auto_free char *module = NULL;
		uint64_t pc, offset = 0;

		if (sscanf(line, " #%*d 0x%" SCNx64, &pc) != 1)
			break;
		/* All but the innermost are return addresses, one past the call. */
		pc -= i > 0 && pc;
		if (dump_find_module(dump, pc, &module, &offset))
			r = crash_set(crash, CRASH_BACKTRACE, "%s%s#%d %#" PRIx64 " %s+%#" PRIx64,
				trace ? trace : "", trace ? "\n" : "", i, pc, module, offset);
		else
			r = crash_set(crash, CRASH_BACKTRACE, "%s%s#%d %#" PRIx64,
				trace ? trace : "", trace ? "\n" : "", i, pc);
		line = strchr(line + 1, '\n');
	}
	return r;
}

/* Fills in what the core dump tells, over nothing that is known already. */
static int add_core(struct crash *crash, const struct core *core, const struct dump *dump)
{
	const char *mode = mode_of(core);
	auto_free char *module = NULL;
	uint64_t offset;
	int r = 0;

	if (core->has_signal && core->signal == SIGSEGV) {
		bool has_address = core->code != SEGV_MTEAERR;

		r = crash_set(crash, CRASH_SI_CODE, "%d", core->code);
		if (r >= 0 && has_address && !crash->field[CRASH_ADDRESS])
			r = crash_set(crash, CRASH_ADDRESS, "%#" PRIx64, core_untag(core->address));
		if (r >= 0 && core->code == SEGV_MTESERR && !crash->field[CRASH_POINTER_TAG])
			r = crash_set(
				crash, CRASH_POINTER_TAG, "%d", (int)(core->address >> 56 & 15));
		if (r >= 0 && core->code == SEGV_MTESERR && core->has_memory_tag &&
			!crash->field[CRASH_MEMORY_TAG])
			r = crash_set(crash, CRASH_MEMORY_TAG, "%u", core->memory_tag);
	}
	if (r >= 0 && mode && !crash->field[CRASH_MODE])
		r = crash_set(crash, CRASH_MODE, "%s", mode);
	if (r >= 0 && core->has_stats) {
		auto_free char *version = NULL;

		r = text_clean(core->stats.library, strlen(core->stats.library), false, &version);
		if (r >= 0)
			r = crash_set(crash, CRASH_VERSION, "%s", version);
	}
	if (r >= 0 && core->has_pc && !crash->field[CRASH_PC]) {
		r = crash_set(crash, CRASH_PC, "%#" PRIx64, core->pc);
		if (r >= 0 && dump_find_module(dump, core->pc, &module, &offset)) {
			r = crash_set(crash, CRASH_MODULE, "%s", module);
			if (r >= 0)
				r = crash_set(crash, CRASH_MODULE_OFFSET, "%#" PRIx64, offset);
		}
	}
	return r;
}

static int write_message(struct crash *crash)
{
	const char *address = crash->field[CRASH_ADDRESS],
		   *pointer = crash->field[CRASH_POINTER_TAG],
		   *memory = crash->field[CRASH_MEMORY_TAG];

	if (crash->message)
		return 0;
	if (asprintf(&crash->message, "%s: access at %s%s%s%s%s, told by the core dump",
		    crash->field[CRASH_KIND], address ? address : "an unknown address",
		    pointer ? ", pointer tag " : "", pointer ? pointer : "",
		    memory ? ", memory tag " : "", memory ? memory : "") < 0) {
		crash->message = NULL;
		return -ENOMEM;
	}
	return 0;
}

int evidence_read(sd_journal *journal, const struct dump *dump, struct crash *ret)
{
	struct crash crash = {0};
	struct core core = {0};
	auto_free char *program = NULL;
	const char *kind;
	int r, has_core;

	r = dump_read_stderr(dump, &crash);
	if (r < 0 && r != -ENOENT)
		return r;
	has_core = read_core(journal, dump, &core);
	r = 0;
	if (!crash.field[CRASH_KIND]) {
		kind = has_core >= 0 ? kind_of(&core, dump) : NULL;
		if (!kind)
			return -ENOENT;
		if ((r = crash_set(&crash, CRASH_KIND, "%s", kind)) >= 0)
			r = crash_set(&crash, CRASH_ACCESS, "unknown");
	}
	if (r >= 0 && has_core >= 0)
		r = add_core(&crash, &core, dump);
	if (r >= 0 && !crash.field[CRASH_BACKTRACE])
		r = read_backtrace(dump, &crash);
	if (r >= 0)
		r = crash_set(&crash, CRASH_SOURCE, "reporter");
	if (r >= 0)
		r = crash_set(&crash, CRASH_PROCESS_PID, "%d", (int)dump->pid);
	if (r >= 0 && dump->program)
		r = text_clean(dump->program, strlen(dump->program), false, &program);
	if (r >= 0 && program)
		r = crash_set(&crash, CRASH_PROGRAM, "%s", program);
	if (r >= 0)
		r = write_message(&crash);
	if (r >= 0 && dump->unit && !(crash.unit = strdup(dump->unit)))
		r = -ENOMEM;
	if (r >= 0 && dump->user_unit && !(crash.user_unit = strdup(dump->user_unit)))
		r = -ENOMEM;
	if (r < 0) {
		crash_free(&crash);
		return r;
	}
	*ret = crash;
	return 0;
}
