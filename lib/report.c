/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "options.h"
#include "stats.h"
#include "text.h"
#include "util.h"

#define FAULT_MESSAGE_ID     "ed3f568b47eb4501ae44d15dc645b4f3"
#define EXHAUSTED_MESSAGE_ID "54b553d653484e94b696af1778565e9d"
#define JOURNAL_SOCKET       "/run/systemd/journal/socket"

enum {
	ENTRY_MAX = 24 << 10, /* bytes of an entry; a datagram may have 200 KiB */
	PATH_SIZE = 512,
	FD_ABOVE = 100, /* where the socket's number should be out of the program's way */
	THREAD_NAME = 16,
	BUILD_ID_MAX = 64,
	PAUSE = 50000000, /* ns; what the journal is given to catch up */
};

static struct {
	int fd; /* the journal's socket, or -1 */
	dev_t dev;
	ino_t ino;
} journal = {.fd = -1};

/* --- the journal --- */

static int open_socket(void)
{
	static const struct sockaddr_un address = {
		.sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

void report_init(void)
{
	struct stat st;
	int fd, high;

	if (options.silent || options.journal == CHOICE_NO ||
		(options.journal == CHOICE_AUTO && !secure_getenv("INVOCATION_ID")))
		return;
	fd = open_socket();
	if (fd < 0)
		return;
	/* Programs count on getting 3 from their first open. */
	high = fcntl(fd, F_DUPFD_CLOEXEC, FD_ABOVE);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (fstat(fd, &st) < 0) {
		close(fd);
		return;
	}
	journal.fd = fd;
	journal.dev = st.st_dev;
	journal.ino = st.st_ino;
}

/* The socket opened at start, if its number is still its own; else a new one. */
static int journal_fd(bool *ret_new)
{
	struct stat st;

	*ret_new = false;
	if (journal.fd >= 0 && fstat(journal.fd, &st) == 0 && st.st_dev == journal.dev &&
		st.st_ino == journal.ino)
		return journal.fd;
	if (options.journal == CHOICE_NO || (options.journal == CHOICE_AUTO && journal.fd < 0))
		return -ENOTCONN;
	*ret_new = true;
	return open_socket();
}

static int send_entry(const struct text *entry)
{
	bool new;
	int fd = journal_fd(&new), r;
	ssize_t n;

	if (fd < 0)
		return fd;
	/* A journal that is behind gets a second, no more: the crash must come. */
	for (unsigned tries = 0; tries < 20; tries++) {
		n = send(fd, entry->buf, entry->len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			break;
		nanosleep(&(const struct timespec){.tv_nsec = PAUSE}, NULL);
	}
	r = n < 0 ? -errno : 0;
	if (new)
		close(fd);
	return r;
}

/* A line break in the name of a file or a thread would begin another field. */
static void field(struct text *t, const char *name, const char *value)
{
	text_str(t, name);
	text_char(t, '=');
	for (; *value; value++)
		text_char(t, *value == '\n' ? '?' : *value);
	text_char(t, '\n');
}

static void field_dec(struct text *t, const char *name, uint64_t value)
{
	text_str(t, name);
	text_char(t, '=');
	text_dec(t, value);
	text_char(t, '\n');
}

static void field_hex(struct text *t, const char *name, uint64_t value)
{
	text_str(t, name);
	text_char(t, '=');
	text_hex(t, value);
	text_char(t, '\n');
}

/* A value of several lines: its length in 64 bits, little-endian, then its bytes. */
static void field_lines(struct text *t, const char *name, const struct text *value)
{
	uint64_t len = value->len;

	text_str(t, name);
	text_char(t, '\n');
	text_bytes(t, &len, sizeof(len));
	text_bytes(t, value->buf, value->len);
	text_char(t, '\n');
}

static void header(struct text *t, const char *message_id, const char *priority)
{
	field(t, "MESSAGE_ID", message_id);
	field(t, "PRIORITY", priority);
	field(t, "SYSLOG_IDENTIFIER", "vatalloc");
	field(t, "VATALLOC_SOURCE", "process");
	field(t, "VATALLOC_VERSION", VATALLOC_VERSION);
}

/* --- where in the program --- */

struct place {
	const char *path;
	uintptr_t start;  /* where the module is mapped */
	uintptr_t offset; /* of the address in the module's file, as addr2line(1) wants it */
	size_t build_id_len;
	unsigned char build_id[BUILD_ID_MAX];
};

static const char *program_path(void)
{
	static char path[PATH_SIZE];
	const char *at_start = (const char *)getauxval(AT_EXECFN);
	ssize_t n;

	if (*path)
		return path;
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n > 0)
		path[n] = '\0';
	else if (at_start)
		strncpy(path, at_start, sizeof(path) - 1);
	return path;
}

/* Reads the build-id note of a module out of its program headers. */
static void find_build_id(struct place *place)
{
	const ElfW(Ehdr) *ehdr = (const ElfW(Ehdr) *)place->start;
	const ElfW(Phdr) *phdr = (const ElfW(Phdr) *)(place->start + ehdr->e_phoff);
	uintptr_t bias = place->start;

	if (memcmp(ehdr->e_ident, ELFMAG, SELFMAG))
		return;
	for (unsigned i = 0; i < ehdr->e_phnum; i++)
		if (phdr[i].p_type == PT_LOAD) {
			bias = place->start - phdr[i].p_vaddr;
			break;
		}
	for (unsigned i = 0; i < ehdr->e_phnum; i++) {
		uintptr_t at = bias + phdr[i].p_vaddr, end = at + phdr[i].p_memsz;

		if (phdr[i].p_type != PT_NOTE)
			continue;
		while (at + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
			uintptr_t name = at + sizeof(*note);
			uintptr_t desc = name + round_up(note->n_namesz, 4);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
				!memcmp((const void *)name, "GNU", 4)) {
				place->build_id_len = min_size(note->n_descsz, BUILD_ID_MAX);
				memcpy(place->build_id, (const void *)desc, place->build_id_len);
				return;
			}
			at = desc + round_up(note->n_descsz, 4);
		}
	}
}

/* Which module an instruction is in. _dl_find_object() takes no lock (glibc 2.35). */
static bool find_place(uintptr_t pc, struct place *ret_place)
{
	struct dl_find_object found;
	struct place *p = ret_place;

	if (_dl_find_object((void *)pc, &found) < 0)
		return false;
	*p = (struct place){.start = (uintptr_t)found.dlfo_map_start};
	p->path = found.dlfo_link_map->l_name;
	if (!*p->path)
		p->path = program_path();
	p->offset = pc - found.dlfo_link_map->l_addr;
	find_build_id(p);
	return true;
}

static bool in_library(uintptr_t pc)
{
	struct dl_find_object here, there;

	return _dl_find_object((void *)in_library, &here) == 0 &&
	       _dl_find_object((void *)pc, &there) == 0 &&
	       here.dlfo_map_start == there.dlfo_map_start;
}

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *arg)
{
	struct report *r = arg;
	int before_instruction = 0;
	uintptr_t pc = _Unwind_GetIPInfo(context, &before_instruction);

	if (!pc || r->n_frames == REPORT_FRAMES)
		return _URC_END_OF_STACK;
	/* First our own frames: the handler and those below it, or free and what it called. */
	if (r->n_frames == 0 && (r->pc ? pc != r->pc : in_library(pc)))
		return _URC_NO_REASON;
	/* A return address is one past the call, which may be in the next function. */
	r->frames[r->n_frames++] = before_instruction ? pc : pc - 1;
	return _URC_NO_REASON;
}

void report_frames(struct report *r)
{
	r->n_frames = 0;
	_Unwind_Backtrace(on_frame, r);
}

static void write_frames(struct text *t, const struct report *r, const char *before)
{
	struct place place;

	for (unsigned i = 0; i < r->n_frames; i++) {
		text_str(t, before);
		text_char(t, '#');
		text_dec(t, i);
		text_char(t, ' ');
		text_hex(t, r->frames[i]);
		if (find_place(r->frames[i], &place)) {
			text_char(t, ' ');
			text_str(t, place.path);
			text_char(t, '+');
			text_hex(t, place.offset);
			if (place.build_id_len) {
				text_str(t, " (build-id ");
				text_hex_bytes(t, place.build_id, place.build_id_len);
				text_char(t, ')');
			}
		}
		if (i + 1 < r->n_frames || *before)
			text_char(t, '\n');
	}
}

/* --- the words --- */

static void write_lives(struct text *t, const struct report *r)
{
	text_str(t, ", life ");
	text_dec(t, r->life);
	text_str(t, " of ");
	text_dec(t, r->lives);
	if (!r->freed)
		return;
	text_str(t, ", freed");
	if (r->current_life > r->life) {
		text_str(t, "; current life ");
		text_dec(t, r->current_life);
	}
}

static void write_object(struct text *t, const struct report *r)
{
	ptrdiff_t past = r->offset - (ptrdiff_t)r->size;

	text_str(t, ", ");
	if (past >= 0) {
		text_dec(t, (uint64_t)past);
		text_str(t, " bytes past the end of a ");
	} else if (r->offset < 0) {
		text_dec(t, (uint64_t)-r->offset);
		text_str(t, " bytes before a ");
	} else {
		text_dec(t, (uint64_t)r->offset);
		text_str(t, " bytes into a ");
	}
	text_dec(t, r->size);
	text_str(t, "-byte object");
}

/* "use-after-free: read at 0x..., 0 bytes into a 64-byte object, life 3 of 15, freed; ..." */
static void write_message(struct text *t, const struct report *r)
{
	text_str(t, r->kind);
	text_str(t, ": ");
	text_str(t, strcmp(r->access, "unknown") ? r->access : "access");
	if (r->has_address) {
		text_str(t, strcmp(r->access, "free") && strcmp(r->access, "realloc") ? " at "
										      : " of ");
		text_hex(t, r->address);
	} else {
		text_str(t, " at an unknown address");
	}
	if (r->has_chunk)
		write_object(t, r);
	if (r->has_lives)
		write_lives(t, r);
	if (r->detail) {
		text_str(t, ", ");
		text_str(t, r->detail);
	}
}

static void write_to_stderr(const struct report *r, const char *thread, pid_t tid)
{
	static char buf[ENTRY_MAX];
	struct text t = text_in(buf, sizeof(buf));

	text_str(&t, "vatalloc: ");
	write_message(&t, r);
	text_str(&t, "\nvatalloc:  ");
	if (r->has_chunk) {
		text_str(&t, " chunk ");
		text_hex(&t, r->chunk);
		text_str(&t, " size ");
		text_dec(&t, r->size);
	}
	if (r->has_tags) {
		text_str(&t, " pointer-tag ");
		text_dec(&t, r->pointer_tag);
		text_str(&t, " memory-tag ");
		text_dec(&t, r->memory_tag);
	}
	text_str(&t, " mode ");
	text_str(&t, mode_name(vatalloc_stats.mode));
	text_str(&t, "\nvatalloc:   in ");
	text_str(&t, program_path());
	text_char(&t, '[');
	text_dec(&t, (uint64_t)getpid());
	text_str(&t, "], thread ");
	text_str(&t, thread);
	text_char(&t, '[');
	text_dec(&t, (uint64_t)tid);
	text_str(&t, "]\n");
	write_frames(&t, r, "vatalloc:   ");
	text_write(&t, STDERR_FILENO);
}

static void write_entry(struct text *t, const struct report *r, const char *thread, pid_t tid)
{
	static char frames_buf[ENTRY_MAX / 2];
	struct text frames = text_in(frames_buf, sizeof(frames_buf));
	struct place place;

	header(t, FAULT_MESSAGE_ID, "2");
	text_str(t, "MESSAGE=");
	write_message(t, r);
	text_char(t, '\n');
	field(t, "VATALLOC_KIND", r->kind);
	field(t, "VATALLOC_ACCESS", r->access);
	field(t, "VATALLOC_MODE", mode_name(vatalloc_stats.mode));
	if (r->si_code)
		field_dec(t, "VATALLOC_SI_CODE", (uint64_t)r->si_code);
	if (r->has_address)
		field_hex(t, "VATALLOC_ADDRESS", r->address);
	if (r->has_tags) {
		field_dec(t, "VATALLOC_POINTER_TAG", r->pointer_tag);
		field_dec(t, "VATALLOC_MEMORY_TAG", r->memory_tag);
	}
	if (r->has_chunk) {
		field_hex(t, "VATALLOC_CHUNK", r->chunk);
		field_dec(t, "VATALLOC_SIZE", r->size);
		text_str(t, "VATALLOC_OFFSET=");
		if (r->offset < 0)
			text_char(t, '-');
		text_dec(t, (uint64_t)(r->offset < 0 ? -r->offset : r->offset));
		text_char(t, '\n');
	}
	if (r->has_lives) {
		field_dec(t, "VATALLOC_LIFE", r->life);
		field_dec(t, "VATALLOC_CURRENT_LIFE", r->current_life);
		field_dec(t, "VATALLOC_LIVES", r->lives);
	}
	field_dec(t, "VATALLOC_PROCESS_PID", (uint64_t)getpid());
	field_dec(t, "VATALLOC_TID", (uint64_t)tid);
	field(t, "VATALLOC_THREAD", thread);
	field(t, "VATALLOC_PROGRAM", program_path());
	if (r->n_frames) {
		field_hex(t, "VATALLOC_PC", r->frames[0]);
		if (find_place(r->frames[0], &place)) {
			field(t, "VATALLOC_MODULE", place.path);
			field_hex(t, "VATALLOC_MODULE_OFFSET", place.offset);
			if (place.build_id_len) {
				text_str(t, "VATALLOC_BUILD_ID=");
				text_hex_bytes(t, place.build_id, place.build_id_len);
				text_char(t, '\n');
			}
		}
	}
	write_frames(&frames, r, "");
	if (frames.len)
		field_lines(t, "VATALLOC_BACKTRACE", &frames);
}

void report_fault(const struct report *r)
{
	static char buf[ENTRY_MAX];
	struct text entry = text_in(buf, sizeof(buf));
	char thread[THREAD_NAME] = "";
	pid_t tid = (pid_t)syscall(SYS_gettid);

	add_u64(&vatalloc_stats.faults, 1);
	if (options.silent)
		return;
	prctl(PR_GET_NAME, thread);
	write_entry(&entry, r, thread, tid);
	if (send_entry(&entry) < 0) {
		write_to_stderr(r, thread, tid);
		return;
	}
	/*
	 * The journal looks up the unit of an entry when it reads it. If the process is gone by
	 * then, as it may be if no core is dumped, `journalctl -u` does not show the entry.
	 */
	nanosleep(&(const struct timespec){.tv_nsec = PAUSE}, NULL);
}

void report_space_exhausted(size_t space, bool fatal)
{
	char buf[1024], message_buf[256];
	struct text entry = text_in(buf, sizeof(buf));
	struct text message = text_in(message_buf, sizeof(message_buf));

	text_str(&message, "lease space of ");
	text_dec(&message, space >> 20);
	text_str(&message, " MiB is used up, ");
	text_str(&message,
		fatal ? "and on_exhaustion=abort ends the process"
		      : "recycling the oldest retired addresses: a dangling pointer that old may "
			"reach a newer object");
	header(&entry, EXHAUSTED_MESSAGE_ID, fatal ? "2" : "4");
	field(&entry, "MESSAGE", message_buf);
	if (send_entry(&entry) < 0)
		say(message_buf, NULL);
	if (fatal) {
		/* A handler of the program's could want memory, and this is where there is none. */
		sigaction(SIGABRT, &(const struct sigaction){.sa_handler = SIG_DFL}, NULL);
		abort();
	}
}
