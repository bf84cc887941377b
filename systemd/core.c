/* SPDX-License-Identifier: MIT */
#include "core.h"
#include "auto.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#ifndef PT_AARCH64_MEMTAG_MTE
#define PT_AARCH64_MEMTAG_MTE (PT_LOPROC + 2)
#endif
#ifndef NT_ARM_TAGGED_ADDR_CTRL
#define NT_ARM_TAGGED_ADDR_CTRL 0x409
#endif

enum {
	SEGMENTS_MAX = 1 << 18,
	TAG_SEGMENTS_MAX = 1 << 14,
	DATA_SEGMENTS_MAX = 8,
	NOTES_MAX = 16 << 20,
	DATA_MAX = 1 << 20, /* of the library's data */
	GRANULE = 16,	    /* bytes that a memory tag covers */
	BUFFER = 64 << 10,
};

/* A part of the file and the addresses that it is about. */
struct part {
	uint64_t start, end;  /* addresses */
	uint64_t offset, len; /* in the file */
};

struct reader {
	const struct core_source *source;
	uint64_t position;

	uint64_t data_start, data_end;
	uint16_t machine;
	struct part notes; /* the first segment of notes; no length if there is none */
	struct part data[DATA_SEGMENTS_MAX];
	size_t n_data;
	struct part *tags;
	size_t n_tags;
};

uint64_t core_untag(uint64_t address)
{
	return address & 0x00ffffffffffffff;
}

/* Reads @len bytes, or less where the dump ends. */
static int read_some(struct reader *reader, void *buf, size_t len, size_t *ret_n)
{
	unsigned char *p = buf;
	size_t got = 0;

	if (len > CORE_BYTES_MAX - reader->position)
		return -ENODATA;
	while (got < len) {
		ssize_t n = reader->source->read(reader->source->context, p + got, len - got);

		if (n < 0)
			return (int)n;
		if (!n)
			break;
		got += n;
		reader->position += n;
	}
	*ret_n = got;
	return 0;
}

/* Reads all @len bytes. -ENODATA where the dump ends before. */
static int read_all(struct reader *reader, void *buf, size_t len)
{
	size_t n;
	int r = read_some(reader, buf, len, &n);

	if (r < 0)
		return r;
	return n < len ? -ENODATA : 0;
}

/* Goes on to @offset; -EBADMSG if that has passed. */
static int go_to(struct reader *reader, uint64_t offset)
{
	unsigned char buf[4096];

	if (offset < reader->position)
		return -EBADMSG;
	if (offset > CORE_BYTES_MAX)
		return -ENODATA;
	while (reader->position < offset) {
		uint64_t left = offset - reader->position;
		int64_t n;

		if (reader->source->skip) {
			n = reader->source->skip(reader->source->context, left);
			if (n < 0)
				return (int)n;
			if (!n)
				return -ENODATA;
			reader->position += n;
		} else {
			int r = read_all(reader, buf, left < sizeof(buf) ? left : sizeof(buf));

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int keep_tags(struct reader *reader, const struct part *part)
{
	struct part *more;

	if (reader->n_tags >= TAG_SEGMENTS_MAX)
		return 0;
	/* Powers of two, without keeping the size. */
	if (!(reader->n_tags & (reader->n_tags - 1))) {
		more = realloc(
			reader->tags, (reader->n_tags ? reader->n_tags * 2 : 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		reader->tags = more;
	}
	reader->tags[reader->n_tags++] = *part;
	return 0;
}

static int keep_segment(struct reader *reader, const Elf64_Phdr *phdr)
{
	struct part part = {phdr->p_vaddr, 0, phdr->p_offset, phdr->p_filesz};

	if (__builtin_add_overflow(phdr->p_vaddr, phdr->p_memsz, &part.end) ||
		phdr->p_offset > CORE_BYTES_MAX || phdr->p_filesz > CORE_BYTES_MAX)
		return 0;
	switch (phdr->p_type) {
	case PT_NOTE:
		if (!reader->notes.len)
			reader->notes = part;
		return 0;
	case PT_LOAD:
		if (part.start < reader->data_end && part.end > reader->data_start &&
			reader->n_data < DATA_SEGMENTS_MAX && part.len)
			reader->data[reader->n_data++] = part;
		return 0;
	case PT_AARCH64_MEMTAG_MTE:
		return reader->machine == EM_AARCH64 ? keep_tags(reader, &part) : 0;
	default:
		return 0;
	}
}

static int read_headers(struct reader *reader)
{
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	int r;

	r = read_all(reader, &ehdr, sizeof(ehdr));
	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
		ehdr.e_ident[EI_DATA] != ELFDATA2LSB || ehdr.e_type != ET_CORE ||
		ehdr.e_phentsize != sizeof(phdr))
		return -EBADMSG;
	reader->machine = ehdr.e_machine;
	r = go_to(reader, ehdr.e_phoff);
	/*
	 * More segments than the header can count are counted at the far end of the file. But the
	 * notes follow the segments at once, so that is where these end.
	 */
	for (uint64_t i = 0; r >= 0 && i < SEGMENTS_MAX; i++) {
		if (ehdr.e_phnum != PN_XNUM ? i >= ehdr.e_phnum
					    : reader->notes.len && reader->position + sizeof(phdr) >
									   reader->notes.offset)
			return 0;
		r = read_all(reader, &phdr, sizeof(phdr));
		if (r >= 0)
			r = keep_segment(reader, &phdr);
	}
	return r;
}

static void read_status(
	const struct reader *reader, const unsigned char *data, size_t len, struct core *core)
{
	size_t at;

	if (core->has_pc)
		return;
	/* Where the program counter is in struct elf_prstatus, of which this is the whole size. */
	if (reader->machine == EM_X86_64 && len == 336)
		at = 112 + 16 * 8;
	else if (reader->machine == EM_AARCH64 && len == 392)
		at = 112 + 32 * 8;
	else
		return;
	memcpy(&core->pc, data + at, sizeof(core->pc));
	core->has_pc = true;
}

static void read_signal(const unsigned char *data, size_t len, struct core *core)
{
	if (core->has_signal || len < 24)
		return;
	memcpy(&core->signal, data, sizeof(core->signal));
	memcpy(&core->code, data + 8, sizeof(core->code));
	memcpy(&core->address, data + 16, sizeof(core->address));
	core->has_signal = true;
}

/* The first note of each kind counts: the kernel begins with the thread that crashed. */
static void read_note(const struct reader *reader, uint32_t type, const unsigned char *data,
	size_t len, struct core *core)
{
	switch (type) {
	case NT_PRSTATUS:
		read_status(reader, data, len, core);
		break;
	case NT_SIGINFO:
		read_signal(data, len, core);
		break;
	case NT_ARM_TAGGED_ADDR_CTRL:
		if (reader->machine != EM_AARCH64 || core->has_tag_control || len < 8)
			break;
		memcpy(&core->tag_control, data, sizeof(core->tag_control));
		core->has_tag_control = true;
		break;
	}
}

static int read_notes(struct reader *reader, struct core *core)
{
	size_t len = reader->notes.len < NOTES_MAX ? reader->notes.len : NOTES_MAX, got = 0;
	auto_free unsigned char *notes = NULL;
	int r = go_to(reader, reader->notes.offset);

	/* Takes memory as the data comes, and makes do with what came. */
	while (r >= 0 && got < len) {
		size_t n = len - got < BUFFER ? len - got : BUFFER;
		unsigned char *more = realloc(notes, got + n);

		if (!more)
			return -ENOMEM;
		notes = more;
		r = read_some(reader, notes + got, n, &n);
		if (r < 0 || !n)
			break;
		got += n;
	}
	if (r < 0 && r != -ENODATA)
		return r;

	for (size_t at = 0; got - at >= sizeof(Elf64_Nhdr);) {
		Elf64_Nhdr note;
		uint64_t name_len, data_len;

		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		name_len = ((uint64_t)note.n_namesz + 3) & ~3ull;
		data_len = ((uint64_t)note.n_descsz + 3) & ~3ull;
		if (name_len > got - at || data_len > got - at - name_len)
			break;
		read_note(reader, note.n_type, notes + at + name_len, note.n_descsz, core);
		at += name_len + data_len;
	}
	return r < 0 ? r : 0;
}

/* Looks for the counters by their magic in the library's data. */
static int read_data(struct reader *reader, const struct part *part, struct core *core)
{
	uint64_t skip = reader->data_start > part->start ? reader->data_start - part->start : 0;
	auto_free unsigned char *data = NULL;
	uint64_t len;
	int r;

	if (skip >= part->len)
		return 0;
	len = part->len - skip;
	if (len > DATA_MAX)
		len = DATA_MAX;
	r = go_to(reader, part->offset + skip);
	if (r < 0)
		return r;
	data = malloc(len);
	if (!data)
		return -ENOMEM;
	r = read_all(reader, data, len);
	if (r < 0)
		return r;
	for (uint64_t at = 0; at + sizeof(struct vatalloc_stats) <= len; at += 8) {
		struct vatalloc_stats stats;

		if (memcmp(data + at, VATALLOC_STATS_MAGIC, sizeof(stats.magic)))
			continue;
		memcpy(&stats, data + at, sizeof(stats));
		if (stats.version != VATALLOC_STATS_VERSION ||
			stats.size < offsetof(struct vatalloc_stats, lives_used))
			continue;
		if (stats.size < sizeof(stats))
			memset((unsigned char *)&stats + stats.size, 0, sizeof(stats) - stats.size);
		stats.library[sizeof(stats.library) - 1] = '\0';
		core->stats = stats;
		core->has_stats = true;
		return 0;
	}
	return 0;
}

/* Reads the one tag of interest; two are in a byte, the lower address in the lower half. */
static int read_tag(struct reader *reader, struct core *core)
{
	uint64_t address = core_untag(core->address);

	if (!core->has_signal)
		return 0;
	for (size_t i = 0; i < reader->n_tags; i++) {
		const struct part *part = &reader->tags[i];
		unsigned char byte;
		uint64_t granule;
		int r;

		if (address < part->start || address >= part->end)
			continue;
		granule = (address - part->start) / GRANULE;
		if (granule / 2 >= part->len)
			return 0;
		r = go_to(reader, part->offset + granule / 2);
		if (r >= 0)
			r = read_all(reader, &byte, 1);
		if (r < 0)
			return r;
		core->memory_tag = granule & 1 ? byte >> 4 : byte & 15;
		core->has_memory_tag = true;
		return 0;
	}
	return 0;
}

int core_read(
	const struct core_source *source, uint64_t data_start, uint64_t data_end, struct core *ret)
{
	struct reader reader = {.source = source, .data_start = data_start, .data_end = data_end};
	struct core core = {0};
	int r;

	r = read_headers(&reader);
	if (r >= 0 && reader.notes.len)
		r = read_notes(&reader, &core);
	for (size_t i = 0; r >= 0 && i < reader.n_data && !core.has_stats; i++)
		r = read_data(&reader, &reader.data[i], &core);
	if (r >= 0)
		r = read_tag(&reader, &core);
	free(reader.tags);
	if (r < 0 && r != -ENODATA)
		return r;
	*ret = core;
	return 0;
}

static ssize_t memory_read(void *context, void *buf, size_t len)
{
	struct core_memory *memory = context;

	if (len > memory->len)
		len = memory->len;
	if (len)
		memcpy(buf, memory->data, len);
	memory->data += len;
	memory->len -= len;
	return (ssize_t)len;
}

static int64_t memory_skip(void *context, uint64_t len)
{
	struct core_memory *memory = context;

	if (len > memory->len)
		len = memory->len;
	memory->data += len;
	memory->len -= len;
	return (int64_t)len;
}

struct core_source core_from_memory(struct core_memory *memory)
{
	return (struct core_source){memory_read, memory_skip, memory};
}
