/* SPDX-License-Identifier: MIT */
/*
 * Tests of the parts that vatallocctl and the reporter are made of: what they read is made up here,
 * whole, cut off and contradictory. With an argument, writes the core dumps made up here into that
 * directory, for a fuzzer to begin with.
 */
#include "../core.h"
#include "../crash.h"
#include "../explain.h"
#include "../map.h"
#include "../text.h"
#include "../throttle.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned passed, failed;

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (condition) {                                                                   \
			passed++;                                                                  \
		} else {                                                                           \
			failed++;                                                                  \
			fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);            \
		}                                                                                  \
	} while (0)

#define EXPECT_TEXT(found, wanted)                                                                 \
	do {                                                                                       \
		const char *f = (found);                                                           \
		if (f && !strcmp(f, (wanted))) {                                                   \
			passed++;                                                                  \
		} else {                                                                           \
			failed++;                                                                  \
			fprintf(stderr, "line %d: \"%s\" instead of \"%s\"\n", __LINE__,           \
				f ? f : "(null)", (wanted));                                       \
		}                                                                                  \
	} while (0)

/* map --------------------------------------------------------------------------------------------
 */

static void test_map(void)
{
	static const char maps[] =
		"55d2f4e01000-55d2f4e02000 r-xp 00001000 00:28 53     /usr/sbin/nginx\n"
		"nonsense\n"
		"7f00-6f00 r--p 00000000 00:00 0 \n"
		"7f7c0ce00000-7f7c10e00000 ---p 00000000 00:00 0 \n"
		"7f7c11158000-7f7c11159000 rw-p 00000000 00:28 50     "
		"/usr/lib/x/vatalloc/libvatalloc.so (deleted)\n"
		"7f7c11160000-7f7c11161000 rw-p 00000000 00:28 50     /a b\\012c (deleted)x\n"
		"7fffc31fb000-7fffc321c000 rw-p 00000000 00:00 0      [stack]";
	const char *text = maps;
	struct map map;

	EXPECT(map_next(&text, &map));
	EXPECT(map.start == 0x55d2f4e01000 && map.end == 0x55d2f4e02000 && map.offset == 0x1000);
	EXPECT(map.readable && !map.writable && map.executable && !map.deleted);
	EXPECT_TEXT(map.path, "/usr/sbin/nginx");
	EXPECT_TEXT(map_name(&map), "nginx");
	EXPECT(!map_is_library(&map));
	EXPECT(map_next(&text, &map));
	EXPECT_TEXT(map.path, "");
	EXPECT(!map.readable);
	EXPECT(map_next(&text, &map));
	EXPECT(map_is_library(&map) && map.deleted);
	EXPECT(map_next(&text, &map));
	EXPECT_TEXT(map.path, "/a b\nc (deleted)x");
	EXPECT(!map.deleted);
	EXPECT(map_next(&text, &map));
	EXPECT_TEXT(map.path, "[stack]");
	EXPECT(!map_next(&text, &map));
}

/* text -------------------------------------------------------------------------------------------
 */

static void expect_clean(const char *dirty, size_t len, bool lines, const char *wanted)
{
	char *clean = NULL;

	EXPECT(text_clean(dirty, len, lines, &clean) == 0);
	EXPECT_TEXT(clean, wanted);
	free(clean);
}

static void test_text(void)
{
	static const uint64_t now = 1796000000000000, hour = 3600000000;
	static const char *const no_times[] = {"", "-", "-h", "2", "2h", "ago", " ago", "2 ago",
		"2 fortnights ago", "2026-13-01", "2026-11-30 12", "2026-11-30 12:00 ", "@", "@x",
		"@18446744073709551616", "-99999999999999999999h", "-1000000w", "noon"};
	uint64_t time;
	char buf[16];

	expect_clean("plain", 5, false, "plain");
	expect_clean("gr\xc3\xbc\xc3\x9f", 6, false, "gr\xc3\xbc\xc3\x9f");
	expect_clean("\x1b[31mred", 8, false, "?[31mred");
	expect_clean("a\nb\tc", 5, false, "a?b c");
	expect_clean("a\nb", 3, true, "a\nb");
	expect_clean("nul\0byte", 8, false, "nul?byte");
	/* Overlong, cut off, surrogate, C1 control, right-to-left override. */
	expect_clean("\xc0\xaf", 2, false, "??");
	expect_clean("x\xe2\x82", 3, false, "x??");
	expect_clean("\xed\xa0\x80", 3, false, "???");
	expect_clean("\xc2\x9b", 2, false, "?");
	expect_clean("\xe2\x80\xae", 3, false, "?");
	expect_clean("", 0, false, "");

	EXPECT_TEXT(text_bytes(0, buf, sizeof(buf)), "0B");
	EXPECT_TEXT(text_bytes(1023, buf, sizeof(buf)), "1023B");
	EXPECT_TEXT(text_bytes(1536, buf, sizeof(buf)), "1.5K");
	EXPECT_TEXT(text_bytes(64ull << 40, buf, sizeof(buf)), "64T");
	EXPECT_TEXT(text_bytes(UINT64_MAX, buf, sizeof(buf)), "16E");

	EXPECT(text_time("now", now, &time) == 0 && time == now);
	EXPECT(text_time("-2h", now, &time) == 0 && time == now - 2 * hour);
	EXPECT(text_time("2 hours ago", now, &time) == 0 && time == now - 2 * hour);
	EXPECT(text_time("90min ago", now, &time) == 0 && time == now - hour * 3 / 2);
	EXPECT(text_time("-1d", now, &time) == 0 && time == now - 24 * hour);
	EXPECT(text_time("@1700000000", now, &time) == 0 && time == 1700000000000000);
	setenv("TZ", "UTC", 1);
	EXPECT(text_time("2026-11-30 12:00", now, &time) == 0 && time == 1796040000000000);
	EXPECT(text_time("2026-11-30", now, &time) == 0 && time == 1795996800000000);
	EXPECT(text_time("today", now, &time) == 0 && time == 1795996800000000);
	EXPECT(text_time("yesterday", now, &time) == 0 && time == 1795910400000000);
	EXPECT(text_time("00:30", now, &time) == 0 && time == 1795998600000000);
	for (size_t i = 0; i < sizeof(no_times) / sizeof(no_times[0]); i++) {
		if (text_time(no_times[i], now, &time) == -EINVAL) {
			passed++;
		} else {
			failed++;
			fprintf(stderr, "\"%s\" was taken for a time\n", no_times[i]);
		}
	}
}

/* crash ------------------------------------------------------------------------------------------
 */

static const char report[] =
	"vatalloc: mode 'count' measures only, it protects nothing\n"
	"vatalloc: double-free: free of 0x10, 0 bytes into a 64-byte object\n"
	"vatalloc: use-after-free: read at 0x55d2f4e01040, 0 bytes into a 64-byte object, life 3 "
	"of 15, "
	"freed; current life 7\n"
	"vatalloc:   chunk 0x55d2f4e01040 size 64 pointer-tag 5 memory-tag 9 mode sync\n"
	"vatalloc:   in /usr/sbin/nginx[1234], thread ng[i]nx[1235]\n"
	"something else\n"
	"vatalloc:   #0 0x1234 /usr/sbin/ng+inx+0x234 (build-id 0a1b)\n"
	"vatalloc:   #1 0x2234\n";

static int count_frame(const struct crash_frame *frame, void *context)
{
	int *n = context;

	if (*n == 0) {
		EXPECT(frame->pc == 0x1234 && frame->offset == 0x234);
		EXPECT_TEXT(frame->module, "/usr/sbin/ng+inx");
		EXPECT_TEXT(frame->build_id, "0a1b");
	} else {
		EXPECT(frame->pc == 0x2234 && frame->offset == 0x2234);
		EXPECT_TEXT(frame->module, "");
	}
	++*n;
	return 0;
}

static void test_crash(void)
{
	struct crash crash = {0}, other = {0};
	char id[13], other_id[13];
	int n = 0;

	EXPECT(crash_parse("", &crash) == -EBADMSG);
	EXPECT(crash_parse("vatalloc: no MTE here, running in mode 'address'\n", &crash) ==
		-EBADMSG);
	EXPECT(crash_parse("vatalloc:   mode sync\n", &crash) == -EBADMSG);

	EXPECT(crash_parse(report, &crash) == 0);
	EXPECT_TEXT(crash.field[CRASH_KIND], "use-after-free");
	EXPECT_TEXT(crash.field[CRASH_ACCESS], "read");
	EXPECT_TEXT(crash.field[CRASH_ADDRESS], "0x55d2f4e01040");
	EXPECT_TEXT(crash.field[CRASH_CHUNK], "0x55d2f4e01040");
	EXPECT_TEXT(crash.field[CRASH_SIZE], "64");
	EXPECT_TEXT(crash.field[CRASH_LIFE], "3");
	EXPECT_TEXT(crash.field[CRASH_LIVES], "15");
	EXPECT_TEXT(crash.field[CRASH_CURRENT_LIFE], "7");
	EXPECT_TEXT(crash.field[CRASH_POINTER_TAG], "5");
	EXPECT_TEXT(crash.field[CRASH_MEMORY_TAG], "9");
	EXPECT_TEXT(crash.field[CRASH_MODE], "sync");
	EXPECT_TEXT(crash.field[CRASH_THREAD], "ng[i]nx");
	EXPECT_TEXT(crash.field[CRASH_TID], "1235");
	EXPECT(crash_for_each_frame(&crash, count_frame, &n) == 0 && n == 2);

	/* Another process, another address: the same bug. Another kind: another. */
	EXPECT(crash_parse(report, &other) == 0);
	crash_id(&crash, id);
	EXPECT(crash_set(&other, CRASH_ADDRESS, "0x1") == 0);
	EXPECT(crash_set(&other, CRASH_PROGRAM, "%s", "") == 0);
	EXPECT(crash_set(&other, CRASH_BACKTRACE, "%s",
		       "#0 0x91234 /opt/nginx+0x234 (build-id 0a1b)\n#1 0x2234") == 0);
	crash_id(&other, other_id);
	EXPECT_TEXT(other_id, id);
	EXPECT(crash_set(&other, CRASH_KIND, "overflow") == 0);
	crash_id(&other, other_id);
	EXPECT(strcmp(other_id, id));
	crash_free(&crash);
	crash_free(&other);

	EXPECT(crash_parse("vatalloc: asynchronous-fault: access at an unknown address\n",
		       &crash) == 0);
	EXPECT_TEXT(crash.field[CRASH_ACCESS], "unknown");
	EXPECT(!crash.field[CRASH_ADDRESS]);
	crash_free(&crash);
	EXPECT(crash_parse("vatalloc: invalid-free: free of 0x7ffc, no heap pointer\n", &crash) ==
		0);
	EXPECT_TEXT(crash.field[CRASH_ACCESS], "free");
	EXPECT_TEXT(crash.field[CRASH_ADDRESS], "0x7ffc");
	crash_free(&crash);
}

static void test_explain(void)
{
	char *text = NULL, *name;
	size_t n = 0;

	for (; (name = explain_name(n)); n++) {
		EXPECT(explain_kind(name, &text) == 0 && strlen(text) > 40);
		EXPECT(text && !strchr(text, '\t'));
		free(text);
		free(name);
		text = NULL;
	}
	EXPECT(n == 10);
	EXPECT(explain_kind("use-after", &text) == -ENOENT);
	EXPECT(explain_kind("", &text) == -ENOENT);
	EXPECT(explain_message(CRASH_MESSAGE_ID, &text) == 0 && strstr(text, "use-after-free\n"));
	EXPECT(text && !strchr(text, '@') && !strstr(text, "Subject:"));
	free(text);
	EXPECT(explain_message(THROTTLED_MESSAGE_ID, &text) == 0);
	free(text);
	EXPECT(explain_message(EXHAUSTED_MESSAGE_ID, &text) == 0);
	free(text);
	EXPECT(explain_message("00000000000000000000000000000000", &text) == -ENOENT);
}

/* throttle ---------------------------------------------------------------------------------------
 */

static unsigned told, told_n;

static void tell(const struct throttle_count *count, void *context)
{
	(void)context;
	told++;
	told_n += count->n;
}

static void test_throttle(void)
{
	static const uint64_t second = 1000000;
	struct throttle *throttle = NULL;
	char unit[32];

	EXPECT(throttle_new(2, 10 * second, &throttle) == 0);
	EXPECT(throttle_wait(throttle, 0) == UINT64_MAX);
	EXPECT(throttle_pass(throttle, "a.service", "/a", 1 * second));
	EXPECT(throttle_pass(throttle, "a.service", "/b", 2 * second));
	EXPECT(!throttle_pass(throttle, "a.service", "/a", 3 * second));
	EXPECT(!throttle_pass(throttle, "a.service", NULL, 3 * second));
	EXPECT(throttle_pass(throttle, "b.service", "/a", 3 * second));
	EXPECT(throttle_pass(throttle, NULL, "/a", 3 * second));
	EXPECT(throttle_wait(throttle, 4 * second) == 7 * second);
	throttle_tell(throttle, 10 * second, false, tell, NULL);
	EXPECT(told == 0);
	throttle_confirm(throttle, "a.service", "/a");
	throttle_tell(throttle, 11 * second, false, tell, NULL);
	EXPECT(told == 1 && told_n == 2);
	EXPECT(throttle_pass(throttle, "a.service", "/a", 12 * second));

	/* Counted, but never found to be a heap error: nothing to tell. */
	for (int i = 0; i < 5; i++)
		throttle_pass(throttle, "c.service", "/c", 12 * second);
	throttle_tell(throttle, 12 * second, true, tell, NULL);
	EXPECT(told == 1);

	/* More units than are remembered; and a clock that goes backwards. */
	for (int i = 0; i < 1000; i++) {
		snprintf(unit, sizeof(unit), "u%d.service", i);
		EXPECT(throttle_pass(throttle, unit, "/u", (20 + i) * second));
	}
	throttle_tell(throttle, second, false, tell, NULL);
	EXPECT(throttle_wait(throttle, 0) == UINT64_MAX);
	throttle_free(throttle);
}

/* core -------------------------------------------------------------------------------------------
 */

static const uint64_t data_start = 0x7f0000001000, data_end = 0x7f0000003000;
static const uint64_t heap = 0xffff00000000;

struct dump {
	unsigned char bytes[32768];
	size_t len;
};

static void add(struct dump *dump, const void *data, size_t len)
{
	memcpy(dump->bytes + dump->len, data, len);
	dump->len += len;
}

static void add_note(struct dump *dump, uint32_t type, const void *data, size_t len)
{
	Elf64_Nhdr note = {5, (uint32_t)len, type};

	add(dump, &note, sizeof(note));
	add(dump, "CORE\0\0\0", 8);
	add(dump, data, len);
	dump->len = (dump->len + 3) & ~3ul;
}

/* A core dump as the kernel writes it: headers, notes, the library's data, and for arm64 tags. */
static void make_dump(struct dump *dump, bool arm, int code, uint64_t address)
{
	unsigned char status[392] = {0}, info[128] = {0}, tags[8] = {0x21, 0x43, 0x65, 0x87};
	struct vatalloc_stats stats = {
		.version = VATALLOC_STATS_VERSION,
		.size = sizeof(stats),
		.library = "1.2.3",
		.mode = VATALLOC_MODE_SYNC,
		.faults = 1,
	};
	Elf64_Ehdr ehdr = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_CORE,
		.e_machine = arm ? EM_AARCH64 : EM_X86_64,
		.e_phoff = sizeof(ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = arm ? 3 : 2};
	Elf64_Phdr phdr[3] = {{.p_type = PT_NOTE},
		{.p_type = PT_LOAD,
			.p_vaddr = data_start - 0x1000,
			.p_filesz = 0x3000,
			.p_memsz = 0x3000},
		{.p_type = PT_LOPROC + 2,
			.p_vaddr = heap,
			.p_filesz = sizeof(tags),
			.p_memsz = 256}};
	uint64_t pc = 0x401234, control = 0x7fff3;
	int signal = SIGSEGV;
	size_t notes = sizeof(ehdr) + ehdr.e_phnum * sizeof(*phdr);

	memset(dump, 0, sizeof(*dump));
	memcpy(stats.magic, VATALLOC_STATS_MAGIC, sizeof(stats.magic));
	dump->len = notes;
	memcpy(status + (arm ? 368 : 240), &pc, sizeof(pc));
	add_note(dump, NT_PRSTATUS, status, arm ? 392 : 336);
	memcpy(info, &signal, sizeof(signal));
	memcpy(info + 8, &code, sizeof(code));
	memcpy(info + 16, &address, sizeof(address));
	add_note(dump, NT_SIGINFO, info, sizeof(info));
	if (arm)
		add_note(dump, 0x409, &control, sizeof(control));
	/* Of a second thread, which does not count. */
	memset(status, 0xff, sizeof(status));
	add_note(dump, NT_PRSTATUS, status, arm ? 392 : 336);
	phdr[0].p_offset = notes;
	phdr[0].p_filesz = dump->len - notes;
	phdr[1].p_offset = dump->len;
	dump->len += 0x1000 + 64;
	add(dump, &stats, sizeof(stats));
	dump->len = phdr[1].p_offset + 0x3000;
	phdr[2].p_offset = dump->len;
	if (arm)
		add(dump, tags, sizeof(tags));
	memcpy(dump->bytes, &ehdr, sizeof(ehdr));
	memcpy(dump->bytes + sizeof(ehdr), phdr, ehdr.e_phnum * sizeof(*phdr));
}

static int read_dump(const struct dump *dump, struct core *ret)
{
	struct core_memory memory = {dump->bytes, dump->len};
	struct core_source source = core_from_memory(&memory);

	return core_read(&source, data_start, data_end, ret);
}

static void test_core(void)
{
	static struct dump dump;
	struct core core;
	size_t whole;

	make_dump(&dump, false, SEGV_MAPERR, 0x1234);
	EXPECT(read_dump(&dump, &core) == 0);
	EXPECT(core.has_signal && core.signal == SIGSEGV && core.code == SEGV_MAPERR);
	EXPECT(core.address == 0x1234 && core.has_pc && core.pc == 0x401234);
	EXPECT(core.has_stats && core.stats.faults == 1 && !core.has_memory_tag);
	EXPECT_TEXT(core.stats.library, "1.2.3");

	make_dump(&dump, true, 9, 0x0500000000000000 | (heap + 0x35));
	EXPECT(read_dump(&dump, &core) == 0);
	EXPECT(core.code == 9 && core_untag(core.address) == heap + 0x35 && core.pc == 0x401234);
	EXPECT(core.has_tag_control && core.tag_control == 0x7fff3);
	EXPECT(core.has_memory_tag && core.memory_tag == 4);
	EXPECT(core.has_stats);
	/* Behind the tags that are there. */
	make_dump(&dump, true, 9, heap + 0xf0);
	EXPECT(read_dump(&dump, &core) == 0 && core.has_memory_tag && core.memory_tag == 0);
	make_dump(&dump, true, 9, heap + 0x100);
	EXPECT(read_dump(&dump, &core) == 0 && !core.has_memory_tag);

	/* Cut off anywhere it says less, and never fails but for a header that is not all there. */
	make_dump(&dump, true, 9, heap);
	whole = dump.len;
	for (dump.len = 0; dump.len < whole; dump.len += dump.len < 2048 ? 1 : 61) {
		int r = read_dump(&dump, &core);

		if (r != (dump.len < sizeof(Elf64_Ehdr) ? -EBADMSG : 0)) {
			failed++;
			fprintf(stderr, "%zu bytes of a core dump: %d\n", dump.len, r);
		}
	}
	dump.len = whole;

	/* More segments than can be counted: the notes say where they end. */
	((Elf64_Ehdr *)(void *)dump.bytes)->e_phnum = PN_XNUM;
	EXPECT(read_dump(&dump, &core) == 0 && core.has_memory_tag && core.has_stats);

	/* Not ours to read: another class, byte order or kind of file. */
	make_dump(&dump, false, 1, 0);
	dump.bytes[EI_CLASS] = ELFCLASS32;
	EXPECT(read_dump(&dump, &core) == -EBADMSG);
	make_dump(&dump, false, 1, 0);
	dump.bytes[EI_DATA] = ELFDATA2MSB;
	EXPECT(read_dump(&dump, &core) == -EBADMSG);
	make_dump(&dump, false, 1, 0);
	((Elf64_Ehdr *)(void *)dump.bytes)->e_type = ET_DYN;
	EXPECT(read_dump(&dump, &core) == -EBADMSG);
	/* Segments before the header, and notes before the segments. */
	make_dump(&dump, false, 1, 0);
	((Elf64_Ehdr *)(void *)dump.bytes)->e_phoff = 8;
	EXPECT(read_dump(&dump, &core) == -EBADMSG);
	make_dump(&dump, false, 1, 0);
	((Elf64_Phdr *)(void *)(dump.bytes + sizeof(Elf64_Ehdr)))->p_offset = 0;
	EXPECT(read_dump(&dump, &core) == -EBADMSG);
	/* Sizes beyond everything. */
	make_dump(&dump, false, 1, 0);
	((Elf64_Phdr *)(void *)(dump.bytes + sizeof(Elf64_Ehdr)))->p_filesz = UINT64_MAX;
	EXPECT(read_dump(&dump, &core) == 0);
	make_dump(&dump, false, 1, 0);
	((Elf64_Phdr *)(void *)(dump.bytes + sizeof(Elf64_Ehdr)))->p_filesz = 1ull << 33;
	EXPECT(read_dump(&dump, &core) == -EBADMSG);
}

static int write_seed(const char *dir, const char *name, char kind, const void *data, size_t len)
{
	char path[4096];
	uint64_t head[2] = {data_start, data_end - data_start};
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f)
		return 1;
	putc(kind, f);
	if (kind == 'C')
		fwrite(head, sizeof(head), 1, f);
	fwrite(data, len, 1, f);
	return fclose(f) != 0;
}

int main(int argc, char **argv)
{
	static struct dump dump;

	if (argc == 2) {
		make_dump(&dump, false, SEGV_MAPERR, 0x1234);
		if (write_seed(argv[1], "amd64", 'C', dump.bytes, dump.len))
			return 1;
		make_dump(&dump, true, 9, heap + 0x35);
		if (write_seed(argv[1], "arm64", 'C', dump.bytes, dump.len))
			return 1;
		return write_seed(argv[1], "report", 'R', report, sizeof(report) - 1);
	}
	test_map();
	test_text();
	test_crash();
	test_explain();
	test_throttle();
	test_core();
	printf("%u passed, %u failed\n", passed, failed);
	return failed > 0;
}
