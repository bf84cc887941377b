// SPDX-License-Identifier: MIT
#include "sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "auto.h"
#include "fragment.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* In a root of its own a unit has a fresh tmpfs on /run: the one place where a mount point can
 * always be made, and where nothing is left behind in the directory or image of the admin. */
#define LIBRARY_IN_ROOT "/run/vatalloc/libvatalloc.so"

/* The system calls that the library makes and that systemd's @default, always allowed, lacks. What
 * the dynamic loader needs for any library (openat, read, fstat, close) is not listed. */
enum call {
	/* the heap */
	MADVISE,
	MREMAP,
	OPEN,
	/* the MTE mode; the fault handler and what it passes on */
	PRCTL,
	RT_SIGACTION,
	RT_SIGPROCMASK,
	RT_TGSIGQUEUEINFO,
	SIGALTSTACK,
	TGKILL,
	/* the program's name: for a report, and for the dynamic loader that expands $LIB */
	READLINK,
	READLINKAT,
	/* where a report goes */
	FCNTL,
	SOCKET,
	CONNECT,
	SENDTO,
	/* a look at memory that may not be there; a process can look at others with it */
	PROCESS_VM_READV,
	CALLS
};

static const char *const calls[CALLS] = {
	[MADVISE] = "madvise",
	[MREMAP] = "mremap",
	[OPEN] = "open",
	[PRCTL] = "prctl",
	[RT_SIGACTION] = "rt_sigaction",
	[RT_SIGPROCMASK] = "rt_sigprocmask",
	[RT_TGSIGQUEUEINFO] = "rt_tgsigqueueinfo",
	[SIGALTSTACK] = "sigaltstack",
	[TGKILL] = "tgkill",
	[READLINK] = "readlink",
	[READLINKAT] = "readlinkat",
	[FCNTL] = "fcntl",
	[SOCKET] = "socket",
	[CONNECT] = "connect",
	[SENDTO] = "sendto",
	[PROCESS_VM_READV] = "process_vm_readv",
};

#define BIT(call) (1U << (call))
#define ALL	  (BIT(CALLS) - 1)
#define TO_REPORT (BIT(SOCKET) | BIT(CONNECT) | BIT(SENDTO))
#define CAN_FAIL  BIT(PROCESS_VM_READV)
#define TO_RUN	  (ALL & ~TO_REPORT & ~CAN_FAIL)

/* systemd's sets that hold some of them. */
static const struct {
	const char *name;
	unsigned calls;
} sets[] = {
	{"@known", ALL},
	{"@system-service", ALL},
	{"@file-system", BIT(OPEN) | BIT(READLINK) | BIT(READLINKAT) | BIT(FCNTL)},
	{"@ipc", BIT(PROCESS_VM_READV)},
	{"@network-io", TO_REPORT},
	{"@signal", BIT(RT_SIGACTION) | BIT(RT_SIGPROCMASK) | BIT(SIGALTSTACK)},
	{"@process", BIT(PRCTL) | BIT(RT_TGSIGQUEUEINFO) | BIT(TGKILL)},
};

/* "@signal", "madvise", "madvise:EPERM" */
static unsigned calls_of(const char *word)
{
	size_t length = strcspn(word, ":");

	for (size_t i = 0; i < lengthof(sets); i++)
		if (strlen(sets[i].name) == length && strncmp(word, sets[i].name, length) == 0)
			return sets[i].calls;
	for (unsigned i = 0; i < CALLS; i++)
		if (strlen(calls[i]) == length && strncmp(word, calls[i], length) == 0)
			return BIT(i);
	return 0;
}

/* The first assignment says whether the list allows or forbids; later ones add and take away. */
static void assign_filter(struct sandbox *sandbox, char *value)
{
	bool forbid = *value == '~';
	char *word;
	int error = 0;

	if (!*value) {
		sandbox->filtered = false;
		return;
	}
	if (!sandbox->filtered)
		sandbox->allowed = forbid ? ALL : 0;
	sandbox->filtered = true;
	value += forbid;
	while ((word = fragment_word(&value, false, &error))) {
		if (forbid)
			sandbox->allowed &= ~calls_of(word);
		else
			sandbox->allowed |= calls_of(word);
	}
}

static void assign_families(struct sandbox *sandbox, char *value)
{
	bool forbid = *value == '~';
	char *word;
	int error = 0;

	if (!*value) {
		sandbox->restricted = false;
		return;
	}
	if (strcmp(value, "none") == 0) {
		sandbox->restricted = sandbox->allow_list = true;
		sandbox->unix_listed = false;
		return;
	}
	if (!sandbox->restricted) {
		sandbox->allow_list = !forbid;
		sandbox->unix_listed = false;
	}
	sandbox->restricted = true;
	value += forbid;
	while ((word = fragment_word(&value, false, &error)))
		if (strcmp(word, "AF_UNIX") == 0 || strcmp(word, "AF_LOCAL") == 0)
			sandbox->unix_listed = sandbox->allow_list != forbid;
}

/* Whether the directory `dir`, as long as `length`, is `path` or holds it. */
static bool covers(const char *dir, size_t length, const char *path)
{
	while (length && dir[length - 1] == '/')
		length--;
	return strncmp(dir, path, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* TemporaryFileSystem=/var:ro /run */
static void assign_tmpfs(struct sandbox *sandbox, char *value, const char *library)
{
	char *word;
	int error = 0;

	if (!*value)
		sandbox->hides_library = sandbox->hides_journal = false;
	while ((word = fragment_word(&value, true, &error))) {
		size_t length = strcspn(word, ":");

		sandbox->hides_library |= covers(word, length, library);
		sandbox->hides_journal |= covers(word, length, JOURNAL_SOCKET);
	}
}

/* InaccessiblePaths= and NoExecPaths=: -/path +/path */
static void assign_paths(bool *flag, char *value, const char *library)
{
	char *word;
	int error = 0;

	if (!*value)
		*flag = false;
	while ((word = fragment_word(&value, true, &error))) {
		word += strspn(word, "-+");
		*flag |= covers(word, strlen(word), library);
	}
}

static bool is_false(const char *value)
{
	static const char *const words[] = {"0", "no", "n", "false", "f", "off"};

	for (size_t i = 0; i < lengthof(words); i++)
		if (strcasecmp(value, words[i]) == 0)
			return true;
	return false;
}

void sandbox_assign(
	struct sandbox *sandbox, const char *key, const char *value, const char *library)
{
	auto_free char *copy = strdup(value);

	if (!copy)
		return;
	if (strcmp(key, "SystemCallFilter") == 0)
		assign_filter(sandbox, copy);
	else if (strcmp(key, "SystemCallErrorNumber") == 0)
		sandbox->not_deadly = *value && strcmp(value, "kill") != 0;
	else if (strcmp(key, "RestrictAddressFamilies") == 0)
		assign_families(sandbox, copy);
	else if (strcmp(key, "RootDirectory") == 0)
		sandbox->root_dir = *value && strcmp(value, "/") != 0 && strcmp(value, "-/") != 0;
	else if (strcmp(key, "RootImage") == 0)
		sandbox->root_image = *value;
	else if (strcmp(key, "MountAPIVFS") == 0)
		sandbox->no_api_mounts = is_false(value);
	else if (strcmp(key, "TemporaryFileSystem") == 0)
		assign_tmpfs(sandbox, copy, library);
	else if (strcmp(key, "InaccessiblePaths") == 0)
		assign_paths(&sandbox->unreachable, copy, library);
	else if (strcmp(key, "NoExecPaths") == 0)
		assign_paths(&sandbox->no_exec, copy, library);
}

static bool has_root(const struct sandbox *sandbox)
{
	return sandbox->root_dir || sandbox->root_image;
}

const char *sandbox_library(const struct sandbox *sandbox)
{
	return has_root(sandbox) && !sandbox->no_api_mounts ? LIBRARY_IN_ROOT : NULL;
}

/* `sign` "" allows the calls. "~" makes them fail with EPERM: it takes an allowed call back, but
 * here it is used on calls that are deadly, and a call that fails does no harm. */
static void write_calls(const char *sign, unsigned missing, FILE *stream)
{
	fprintf(stream, "SystemCallFilter=%s", sign);
	for (unsigned i = 0, n = 0; i < CALLS; i++)
		if (missing & BIT(i))
			fprintf(stream, "%s%s%s", n++ ? " " : "", calls[i], *sign ? ":EPERM" : "");
	fputc('\n', stream);
}

static void write_mounts(
	const struct sandbox *sandbox, bool for_reports, const char *library, FILE *stream)
{
	bool rooted = sandbox_library(sandbox) != NULL;

	if (rooted)
		fprintf(stream,
			"# The unit has a root of its own: the library is brought to its /run.\n"
			"BindReadOnlyPaths=%s:" LIBRARY_IN_ROOT "\n",
			library);
	else if (sandbox->hides_library && !has_root(sandbox))
		fprintf(stream,
			"# TemporaryFileSystem= of the unit hides the library.\n"
			"BindReadOnlyPaths=%s\n",
			library);
	if (for_reports && (rooted || (sandbox->hides_journal && !has_root(sandbox))))
		fputs("# Reports go to this socket, which the unit would not see.\n"
		      "BindReadOnlyPaths=-" JOURNAL_SOCKET "\n",
			stream);
	if (sandbox->no_exec && (rooted || !has_root(sandbox)))
		fprintf(stream,
			"# NoExecPaths= of the unit would keep the library from being mapped.\n"
			"ExecPaths=%s\n",
			rooted ? "+" LIBRARY_IN_ROOT : library);
}

void sandbox_write(
	const struct sandbox *sandbox, bool for_reports, const char *library, FILE *stream)
{
	unsigned missing = sandbox->filtered ? ALL & ~sandbox->allowed : 0;
	bool no_unix = sandbox->restricted && sandbox->allow_list != sandbox->unix_listed;
	bool no_socket = missing & BIT(SOCKET);

	write_mounts(sandbox, for_reports, library, stream);
	if (missing & TO_RUN) {
		fputs("# The library makes these system calls, which the unit's filter lacks.\n",
			stream);
		write_calls("", missing & TO_RUN, stream);
	}
	if (missing & TO_REPORT && for_reports) {
		fputs("# A report is sent to the journal with these.\n", stream);
		write_calls("", missing & TO_REPORT, stream);
		missing &= ~TO_REPORT;
	}
	/* With the same error twice, systemd of bookworm does not start the unit. */
	if (missing & (TO_REPORT | CAN_FAIL) && !sandbox->not_deadly) {
		fputs("# The library can do without these, but would be killed for them.\n",
			stream);
		write_calls("~", missing & (TO_REPORT | CAN_FAIL), stream);
	}
	if (!for_reports)
		return;
	if (no_socket && !sandbox->restricted)
		fputs("# The unit's filter allows no sockets. This family is enough for a report,\n"
		      "# and the network stays out of reach.\n"
		      "RestrictAddressFamilies=AF_UNIX\n",
			stream);
	else if (no_unix)
		fputs("# A report is sent to the journal over a socket of this family.\n"
		      "RestrictAddressFamilies=AF_UNIX\n",
			stream);
}
