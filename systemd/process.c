/* SPDX-License-Identifier: MIT */
#include "process.h"
#include "auto.h"
#include "image.h"
#include "map.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
	FILE_MAX = 64 << 20, /* of the files in /proc: a process may have a great many mappings */
};

static const struct {
	const char *name;
	enum verdict verdict;
	const char *sentence; /* %s is the detail */
} reasons[] = {
	[REASON_PROTECTED] = {"protected", VERDICT_PROTECTED, "protected"},
	[REASON_OUTDATED] = {"outdated", VERDICT_PROTECTED,
		"protected by version %s, whose file was replaced: restart to use the new one"},
	[REASON_FALLBACK] = {"fallback", VERDICT_PROTECTED,
		"protected, but not in the mode asked for: %s"},
	[REASON_COUNT] = {"count", VERDICT_ASKED_FOR,
		"mode 'count' measures only, it protects nothing"},
	[REASON_OFF] = {"off", VERDICT_ASKED_FOR, "mode 'off' protects nothing"},
	[REASON_STARTING] = {"starting", VERDICT_UNDECIDED,
		"still starting: its heap has not been used yet"},
	[REASON_GONE] = {"gone", VERDICT_UNDECIDED, "the process has ended"},
	[REASON_DENIED] = {"denied", VERDICT_UNDECIDED, "only root may look into this process"},
	[REASON_NO_SPACE] = {"no-space", VERDICT_NOT_PROTECTED,
		"no address space could be reserved, so the heap runs unprotected: "
		"is there a LimitAS= or vm.overcommit_memory=2"},
	[REASON_OTHER_ALLOCATOR] = {"other-allocator", VERDICT_NOT_PROTECTED,
		"the library is loaded, but %s comes before it with a malloc of its own"},
	[REASON_VERSION] = {"version", VERDICT_NOT_PROTECTED,
		"the library is loaded, but its counters cannot be read: is it of another version"},
	[REASON_32_BIT] = {"32-bit", VERDICT_NOT_PROTECTED,
		"a 32-bit program, and the library is for 64-bit ones"},
	[REASON_STATIC] = {"static", VERDICT_NOT_PROTECTED,
		"a statically linked program, into which nothing can be preloaded"},
	[REASON_SECURE] = {"secure", VERDICT_NOT_PROTECTED,
		"the kernel started the program in secure mode (setuid, setgid, file capabilities "
		"or a "
		"security module), in which a preloaded library is ignored"},
	[REASON_LIBC] = {"libc", VERDICT_NOT_PROTECTED,
		"the program uses another C library than glibc (%s)"},
	[REASON_ENVIRONMENT] = {"environment", VERDICT_NOT_PROTECTED,
		"LD_PRELOAD in its environment %s"},
	[REASON_NOT_VISIBLE] = {"not-visible", VERDICT_NOT_PROTECTED,
		"the library is not in the process's file system (RootDirectory=, RootImage=, "
		"chroot): "
		"there is no %s in there"},
	[REASON_UNREADABLE] = {"unreadable", VERDICT_NOT_PROTECTED,
		"the process's user may not read %s"},
	[REASON_NOEXEC] = {"noexec", VERDICT_NOT_PROTECTED,
		"%s lies on a file system mounted noexec"},
	[REASON_CONFINED] = {"confined", VERDICT_NOT_PROTECTED,
		"the library was not loaded, probably because of the profile '%s': look for DENIED "
		"in "
		"the kernel's log"},
	[REASON_UNKNOWN] = {"unknown", VERDICT_NOT_PROTECTED,
		"the library was not loaded, for a reason that cannot be seen from outside: look "
		"for "
		"'ld.so' in the unit's log"},
};

enum verdict process_verdict(enum reason reason)
{
	return reasons[reason].verdict;
}

const char *process_reason(enum reason reason)
{
	return reasons[reason].name;
}

int process_describe(const struct process *process, char **ret)
{
	char *sentence = NULL;

	/* No name of a file or a profile is a format: it is the argument. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (asprintf(&sentence, reasons[process->reason].sentence,
		    process->detail ? process->detail : "?") < 0)
		return -ENOMEM;
#pragma GCC diagnostic pop
	*ret = sentence;
	return 0;
}

const char *process_mode(uint32_t mode)
{
	static const char *const names[] = {
		[VATALLOC_MODE_UNSET] = "unset",
		[VATALLOC_MODE_OFF] = "off",
		[VATALLOC_MODE_COUNT] = "count",
		[VATALLOC_MODE_ADDRESS] = "address",
		[VATALLOC_MODE_SYNC] = "sync",
		[VATALLOC_MODE_ASYNC] = "async",
		[VATALLOC_MODE_MTE] = "mte",
	};

	return mode < lengthof(names) ? names[mode] : "unknown";
}

void process_free(struct process *process)
{
	free(process->name);
	free(process->program);
	free(process->detail);
	free(process->library);
	*process = (struct process){0};
}

/* The whole file, NUL-terminated, at most FILE_MAX bytes of it. */
static int read_file(int dir, const char *name, char **ret, size_t *ret_len)
{
	auto_close int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	auto_free char *buf = NULL;
	size_t len = 0, size = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n;

		if (size - len < 2) {
			char *bigger = realloc(buf, size = size ? size * 2 : 4096);

			if (!bigger)
				return -ENOMEM;
			buf = bigger;
		}
		n = read(fd, buf + len, size - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		len += n;
		if (!n || len >= FILE_MAX)
			break;
	}
	buf[len] = '\0';
	*ret = take(buf);
	*ret_len = len;
	return 0;
}

static int read_link(int dir, const char *name, char **ret)
{
	char buf[PATH_MAX];
	ssize_t n = readlinkat(dir, name, buf, sizeof(buf) - 1);
	char *copy;

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	copy = strdup(buf);
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

static enum reason check_program(int fd, char **detail)
{
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	char interpreter[256];

	if (pread(fd, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr) ||
		memcmp(ehdr.e_ident, ELFMAG, SELFMAG))
		return REASON_PROTECTED;
	if (ehdr.e_ident[EI_CLASS] == ELFCLASS32)
		return REASON_32_BIT;
	for (int i = 0; i < ehdr.e_phnum; i++) {
		size_t len;

		if (pread(fd, &phdr, sizeof(phdr), ehdr.e_phoff + i * sizeof(phdr)) != sizeof(phdr))
			return REASON_PROTECTED;
		if (phdr.p_type != PT_INTERP)
			continue;
		len = phdr.p_filesz < sizeof(interpreter) ? phdr.p_filesz : sizeof(interpreter);
		if (!len || pread(fd, interpreter, len, phdr.p_offset) != (ssize_t)len)
			return REASON_PROTECTED;
		interpreter[len - 1] = '\0';
		if (strstr(interpreter, "/ld-musl")) {
			*detail = strdup(interpreter);
			return REASON_LIBC;
		}
		return REASON_PROTECTED;
	}
	return REASON_STATIC;
}

enum reason process_check_program(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	auto_free char *detail = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return REASON_PROTECTED;
	/* Of no consequence to who has the rights already, but that is said elsewhere. */
	if (st.st_mode & S_ISUID && st.st_uid != geteuid())
		return REASON_SECURE;
	if (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getegid())
		return REASON_SECURE;
	return check_program(fd, &detail);
}

static bool find_auxv(const char *auxv, size_t len, uint64_t type, uint64_t *ret)
{
	for (size_t i = 0; i + sizeof(Elf64_auxv_t) <= len; i += sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t entry;

		memcpy(&entry, auxv + i, sizeof(entry));
		if (entry.a_type == type) {
			*ret = entry.a_un.a_val;
			return true;
		}
	}
	return false;
}

/*
 * Looks a variable up. -ENODATA when this is no environment any more: programs like nginx write
 * their title over it.
 */
static int find_variable(const char *environment, size_t len, const char *name, const char **ret)
{
	const char *found = NULL;
	bool sane = false;

	for (const char *p = environment; p < environment + len; p += strlen(p) + 1) {
		size_t n = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789_");

		if (!n || p[n] != '=')
			continue;
		sane = true;
		if (n == strlen(name) && !memcmp(p, name, n) && !found)
			found = p + n + 1;
	}
	if (!sane && len)
		return -ENODATA;
	if (!found)
		return -ENOENT;
	*ret = found;
	return 0;
}

/*
 * The library's path in a value of LD_PRELOAD, with the directory that $LIB stands for in programs
 * of this machine's architecture put in; the caller frees it. NULL if it is not in there.
 */
static char *find_library(const char *preload)
{
	static const char lib[] = "$LIB";

	while (*preload) {
		size_t n = strcspn(preload, ": ");
		auto_free char *path = strndup(preload, n);
		const char *slash = path ? strrchr(path, '/') : NULL;

		if (slash && !strcmp(slash + 1, LIBRARY_NAME)) {
			const char *variable = strstr(path, lib);
			char *whole;

			if (!variable)
				return take(path);
			if (asprintf(&whole, "%.*slib/%s%s", (int)(variable - path), path,
				    VATALLOC_TRIPLET, variable + strlen(lib)) < 0)
				return NULL;
			return whole;
		}
		preload += n + strspn(preload + n, ": ");
	}
	return NULL;
}

/* Whether the process's user could open and execute what @path is in the process's file system. */
static enum reason check_library_file(int dir, const char *path)
{
	auto_free char *inside = NULL;
	struct statvfs vfs;
	struct stat st;

	if (asprintf(&inside, "root%s", path) < 0)
		return REASON_PROTECTED;
	if (fstatat(dir, inside, &st, 0) < 0)
		return errno == ENOENT || errno == ENOTDIR ? REASON_NOT_VISIBLE : REASON_PROTECTED;
	if (!(st.st_mode & S_IROTH))
		return REASON_UNREADABLE;
	{
		auto_close int fd = openat(dir, inside, O_PATH | O_CLOEXEC);

		if (fd >= 0 && !fstatvfs(fd, &vfs) && vfs.f_flag & ST_NOEXEC)
			return REASON_NOEXEC;
	}
	return REASON_PROTECTED;
}

/* The name of a profile that is enforced on the process; the caller frees it. */
static char *read_profile(int dir)
{
	auto_free char *text = NULL;
	size_t len;
	char *mode;

	if (read_file(dir, "attr/apparmor/current", &text, &len) < 0 &&
		read_file(dir, "attr/current", &text, &len) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	/* AppArmor: "name (mode)" or "unconfined"; SELinux: a label, known by its colons. */
	mode = strstr(text, " (enforce)");
	if (mode)
		*mode = '\0';
	else if (!strchr(text, ':') || strstr(text, "unconfined"))
		return NULL;
	return take(text);
}

/* Fills in the reason and the detail of a process that has not got the library mapped. */
static int find_reason(int dir, const char *auxv, size_t auxv_len, struct process *process)
{
	auto_close int program = openat(dir, "exe", O_RDONLY | O_CLOEXEC);
	auto_free char *environment = NULL;
	const char *preload = NULL;
	size_t len;
	uint64_t secure;
	int r;

	if (program >= 0) {
		process->reason = check_program(program, &process->detail);
		if (process->reason != REASON_PROTECTED)
			return 0;
	}
	if (find_auxv(auxv, auxv_len, AT_SECURE, &secure) && secure) {
		process->reason = REASON_SECURE;
		return 0;
	}

	r = read_file(dir, "environ", &environment, &len);
	if (r >= 0)
		r = find_variable(environment, len, "LD_PRELOAD", &preload);
	if (r == -ENOENT) {
		process->reason = REASON_ENVIRONMENT;
		process->detail = strdup("is not set");
		return process->detail ? 0 : -ENOMEM;
	}
	if (preload) {
		auto_free char *path = find_library(preload);

		if (!path) {
			process->reason = REASON_ENVIRONMENT;
			return asprintf(&process->detail, "is '%s', without the library", preload) <
					       0
				       ? -ENOMEM
				       : 0;
		}
		process->reason = check_library_file(dir, path);
		if (process->reason != REASON_PROTECTED) {
			process->detail = take(path);
			return 0;
		}
	}
	process->detail = read_profile(dir);
	process->reason = process->detail ? REASON_CONFINED : REASON_UNKNOWN;
	return 0;
}

/* Stops at the first that has a malloc, and tells in @context whether that is ours. */
struct front {
	bool ours;
	char path[PATH_MAX];
};

static int find_front(const struct image *image, const char *path, void *context)
{
	struct front *front = context;
	const char *slash = strrchr(path, '/');
	uint64_t addr;
	int r = image_find(image, "malloc", &addr);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	front->ours = slash && !strcmp(slash + 1, LIBRARY_NAME);
	snprintf(front->path, sizeof(front->path), "%s", *path ? path : "the program itself");
	return 1;
}

static int read_stats(int memory, uint64_t start, struct vatalloc_stats *ret)
{
	struct vatalloc_stats stats = {0};
	struct image image;
	uint64_t addr;
	int r = image_open(memory, start, &image);

	if (r >= 0)
		r = image_find(&image, "vatalloc_stats", &addr);
	if (r >= 0)
		r = image_read_memory(
			memory, addr, &stats, offsetof(struct vatalloc_stats, library));
	if (r < 0)
		return r;
	if (memcmp(stats.magic, VATALLOC_STATS_MAGIC, sizeof(stats.magic)) ||
		stats.version != VATALLOC_STATS_VERSION ||
		stats.size < offsetof(struct vatalloc_stats, lives_used))
		return -EBADMSG;
	r = image_read_memory(
		memory, addr, &stats, stats.size < sizeof(stats) ? stats.size : sizeof(stats));
	if (r < 0)
		return r;
	stats.library[sizeof(stats.library) - 1] = '\0';
	for (char *p = stats.library; *p; p++)
		if (!isgraph((unsigned char)*p))
			*p = '?';
	*ret = stats;
	return 0;
}

static const char *fallback_sentence(uint32_t fallback)
{
	switch (fallback) {
	case VATALLOC_FALLBACK_NO_MTE:
		return "the CPU or the kernel has no MTE";
	case VATALLOC_FALLBACK_TAGGED_ABI:
		return "the kernel refuses tagged addresses (sysctl abi.tagged_addr_disabled, or a "
		       "system call filter)";
	default:
		return "for a reason unknown to this version";
	}
}

/* Fills in the reason and the detail of a process that has the library mapped at @start. */
static int judge_stats(int dir, const char *auxv, size_t auxv_len, uint64_t start, bool deleted,
	struct process *process)
{
	auto_close int memory = openat(dir, "mem", O_RDONLY | O_CLOEXEC);
	struct vatalloc_stats *stats = &process->stats;
	const char *detail = NULL;
	struct image program;
	uint64_t headers, n;
	struct front front;
	int r;

	if (memory < 0) {
		process->reason = errno == EACCES || errno == EPERM ? REASON_DENIED : REASON_GONE;
		return 0;
	}
	r = read_stats(memory, start, stats);
	if (r == -ESRCH || r == -EIO) {
		process->reason = REASON_GONE;
		return 0;
	}
	if (r < 0) {
		process->reason = REASON_VERSION;
		return 0;
	}
	if (find_auxv(auxv, auxv_len, AT_PHDR, &headers) &&
		find_auxv(auxv, auxv_len, AT_PHNUM, &n) &&
		image_open_program(memory, headers, n, &program) >= 0 &&
		image_for_each(&program, find_front, &front) == 1 && !front.ours) {
		process->reason = REASON_OTHER_ALLOCATOR;
		process->detail = strdup(front.path);
		return process->detail ? 0 : -ENOMEM;
	}

	if (stats->fallback == VATALLOC_FALLBACK_NO_SPACE) {
		process->reason = REASON_NO_SPACE;
	} else if (stats->mode == VATALLOC_MODE_UNSET) {
		process->reason = REASON_STARTING;
	} else if (stats->mode == VATALLOC_MODE_OFF) {
		process->reason = REASON_OFF;
	} else if (stats->mode == VATALLOC_MODE_COUNT) {
		process->reason = REASON_COUNT;
	} else if (stats->fallback != VATALLOC_FALLBACK_NONE &&
		   stats->mode_requested != VATALLOC_MODE_UNSET) {
		process->reason = REASON_FALLBACK;
		detail = fallback_sentence(stats->fallback);
	} else if (deleted) {
		process->reason = REASON_OUTDATED;
		detail = stats->library;
	} else {
		process->reason = REASON_PROTECTED;
	}
	if (detail && !(process->detail = strdup(detail)))
		return -ENOMEM;
	return 0;
}

/* systemd's child between fork and exec; it carries the program's name in parentheses. */
static bool not_executed_yet(const struct process *process)
{
	const char *slash = process->program ? strrchr(process->program, '/') : NULL;

	/* One of a user's manager stays as it is for its whole life. */
	return slash && process->name[0] == '(' && strcmp(process->name, "(sd-pam)") &&
	       (!strcmp(slash + 1, "systemd") || !strcmp(slash + 1, "systemd-executor"));
}

static int read_process(int dir, struct process *process)
{
	auto_free char *maps = NULL, *auxv = NULL;
	size_t len, auxv_len;
	uint64_t start = 0;
	bool deleted = false;
	struct map map;
	int r;

	r = read_file(dir, "comm", &process->name, &len);
	if (r < 0)
		return r;
	process->name[strcspn(process->name, "\n")] = '\0';
	r = read_link(dir, "exe", &process->program);
	if (r < 0)
		return r;
	if (not_executed_yet(process)) {
		process->reason = REASON_STARTING;
		return 0;
	}
	r = read_file(dir, "maps", &maps, &len);
	if (r < 0)
		return r;
	r = read_file(dir, "auxv", &auxv, &auxv_len);
	if (r < 0)
		return r;
	/* A zombie has no memory left. */
	if (!len)
		return -ESRCH;

	for (const char *p = maps; !process->mapped && map_next(&p, &map);) {
		if (!map_is_library(&map) || map.offset)
			continue;
		process->mapped = true;
		process->library = strdup(map.path);
		if (!process->library)
			return -ENOMEM;
		start = map.start;
		deleted = map.deleted;
	}
	if (process->mapped)
		return judge_stats(dir, auxv, auxv_len, start, deleted, process);
	return find_reason(dir, auxv, auxv_len, process);
}

int process_read(pid_t pid, struct process *ret)
{
	struct process process = {.pid = pid};
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	{
		auto_close int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

		r = dir < 0 ? -errno : read_process(dir, &process);
		/* A /proc mounted with hidepid= does not even show what others run. */
		if (r == -ENOENT && kill(pid, 0) < 0 && errno == EPERM)
			r = -EPERM;
	}
	if (r == -ENOMEM) {
		process_free(&process);
		return r;
	}
	if (r < 0)
		process.reason = r == -EACCES || r == -EPERM ? REASON_DENIED : REASON_GONE;
	*ret = process;
	return 0;
}

int process_list(pid_t **ret, size_t *ret_n)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t *pids = NULL;
	size_t n = 0, size = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		int pid = atoi(entry->d_name);

		if (pid <= 0)
			continue;
		if (n == size) {
			pid_t *bigger =
				realloc(pids, (size = size ? size * 2 : 256) * sizeof(*pids));

			if (!bigger) {
				free(pids);
				closedir(dir);
				return -ENOMEM;
			}
			pids = bigger;
		}
		pids[n++] = pid;
	}
	closedir(dir);
	*ret = pids;
	*ret_n = n;
	return 0;
}

bool process_has_library(pid_t pid)
{
	auto_free char *maps = NULL;
	char path[32];
	size_t len;
	struct map map;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (read_file(AT_FDCWD, path, &maps, &len) < 0)
		return false;
	for (const char *p = maps; map_next(&p, &map);)
		if (map_is_library(&map))
			return true;
	return false;
}
