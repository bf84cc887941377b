/* SPDX-License-Identifier: MIT */
#include "image.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

enum {
	SEGMENTS_MAX = 256,
	DYNAMIC_MAX = 512,
	CHAIN_MAX = 1 << 20,
	LOADED_MAX = 1 << 14,
};

int image_read_memory(int memory, uint64_t addr, void *buf, size_t len)
{
	char *p = buf;

	while (len) {
		ssize_t n = pread(memory, p, len, addr);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		/* The process has ended, and its memory with it. */
		if (!n)
			return -ESRCH;
		p += n;
		addr += n;
		len -= n;
	}
	return 0;
}

/*
 * The dynamic linker writes addresses over the offsets in most architectures' dynamic sections, not
 * in all: what is below the image is an offset still.
 */
static uint64_t absolute(const struct image *image, uint64_t value)
{
	return value < image->base ? value + image->base : value;
}

static int read_dynamic(struct image *image, uint64_t addr)
{
	for (int i = 0; i < DYNAMIC_MAX; i++) {
		Elf64_Dyn dyn;
		int r = image_read_memory(image->memory, addr + i * sizeof(dyn), &dyn, sizeof(dyn));

		if (r < 0)
			return r;
		switch (dyn.d_tag) {
		case DT_NULL:
			return 0;
		case DT_SYMTAB:
			image->symbols = absolute(image, dyn.d_un.d_ptr);
			break;
		case DT_STRTAB:
			image->strings = absolute(image, dyn.d_un.d_ptr);
			break;
		case DT_STRSZ:
			image->strings_size = dyn.d_un.d_val;
			break;
		case DT_GNU_HASH:
			image->gnu_hash = absolute(image, dyn.d_un.d_ptr);
			break;
		case DT_DEBUG:
			image->debug = dyn.d_un.d_ptr;
			break;
		}
	}
	return -ELOOP;
}

static int read_segments(struct image *image, uint64_t addr, size_t n, uint64_t start)
{
	uint64_t dynamic = 0;
	bool has_base = false, has_dynamic = false;

	if (n > SEGMENTS_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++) {
		Elf64_Phdr phdr;
		int r = image_read_memory(
			image->memory, addr + i * sizeof(phdr), &phdr, sizeof(phdr));

		if (r < 0)
			return r;
		/* A program knows where its headers are, a mapped file where its start is. */
		if (!start && phdr.p_type == PT_PHDR) {
			image->base = addr - phdr.p_vaddr;
			has_base = true;
		}
		if (start && phdr.p_type == PT_LOAD && !phdr.p_offset) {
			image->base = start - phdr.p_vaddr;
			has_base = true;
		}
		if (phdr.p_type == PT_DYNAMIC) {
			dynamic = phdr.p_vaddr;
			has_dynamic = true;
		}
	}
	if (!has_base || !has_dynamic)
		return -EBADMSG;
	return read_dynamic(image, image->base + dynamic);
}

int image_open(int memory, uint64_t start, struct image *ret)
{
	struct image image = {.memory = memory};
	Elf64_Ehdr ehdr;
	int r = image_read_memory(memory, start, &ehdr, sizeof(ehdr));

	if (r < 0)
		return r;
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
		ehdr.e_ident[EI_DATA] != ELFDATA2LSB || ehdr.e_phentsize != sizeof(Elf64_Phdr))
		return -EBADMSG;
	r = read_segments(&image, start + ehdr.e_phoff, ehdr.e_phnum, start);
	if (r < 0)
		return r;
	*ret = image;
	return 0;
}

int image_open_program(int memory, uint64_t addr, size_t n, struct image *ret)
{
	struct image image = {.memory = memory};
	int r = read_segments(&image, addr, n, 0);

	if (r < 0)
		return r;
	*ret = image;
	return 0;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* Symbol number @index is a definition called @name. */
static int check_symbol(
	const struct image *image, uint32_t index, const char *name, uint64_t *ret_addr)
{
	size_t len = strlen(name) + 1;
	Elf64_Sym symbol;
	char found[128];
	int r;

	r = image_read_memory(image->memory, image->symbols + (uint64_t)index * sizeof(symbol),
		&symbol, sizeof(symbol));
	if (r < 0)
		return r;
	if (symbol.st_shndx == SHN_UNDEF || len > sizeof(found) ||
		symbol.st_name > image->strings_size || len > image->strings_size - symbol.st_name)
		return -ENOENT;
	r = image_read_memory(image->memory, image->strings + symbol.st_name, found, len);
	if (r < 0)
		return r;
	if (memcmp(found, name, len))
		return -ENOENT;
	*ret_addr = image->base + symbol.st_value;
	return 0;
}

int image_find(const struct image *image, const char *symbol, uint64_t *ret_addr)
{
	struct {
		uint32_t n_buckets, first, n_bloom, bloom_shift;
	} head;
	uint32_t hash = gnu_hash(symbol), index;
	uint64_t buckets, chain;
	int r;

	if (!image->symbols || !image->strings || !image->gnu_hash)
		return -ENOENT;
	r = image_read_memory(image->memory, image->gnu_hash, &head, sizeof(head));
	if (r < 0)
		return r;
	if (!head.n_buckets)
		return -ENOENT;
	/* The bloom filter only saves time. */
	buckets = image->gnu_hash + sizeof(head) + (uint64_t)head.n_bloom * sizeof(uint64_t);
	chain = buckets + (uint64_t)head.n_buckets * sizeof(uint32_t);
	r = image_read_memory(image->memory, buckets + hash % head.n_buckets * sizeof(uint32_t),
		&index, sizeof(index));
	if (r < 0)
		return r;
	if (index < head.first)
		return -ENOENT;

	for (int i = 0; i < CHAIN_MAX; i++, index++) {
		uint32_t h;

		r = image_read_memory(image->memory,
			chain + (uint64_t)(index - head.first) * sizeof(h), &h, sizeof(h));
		if (r < 0)
			return r;
		/* The lowest bit marks the chain's end instead of being part of the hash. */
		if ((h | 1) == (hash | 1)) {
			r = check_symbol(image, index, symbol, ret_addr);
			if (r != -ENOENT)
				return r;
		}
		if (h & 1)
			return -ENOENT;
	}
	return -ELOOP;
}

/* A string of unknown length, cut at the end of @size. Reads up to a page's end at a time. */
static int read_string(int memory, uint64_t addr, char *buf, size_t size)
{
	size_t n = 0;

	while (n + 1 < size) {
		size_t len = 4096 - (addr + n) % 4096;
		char *end;
		int r;

		if (len > size - 1 - n)
			len = size - 1 - n;
		r = image_read_memory(memory, addr + n, buf + n, len);
		if (r < 0)
			return r;
		end = memchr(buf + n, '\0', len);
		if (end)
			return 0;
		n += len;
	}
	buf[n] = '\0';
	return 0;
}

int image_for_each(const struct image *program,
	int (*found)(const struct image *image, const char *path, void *context), void *context)
{
	struct r_debug debug;
	uint64_t next;
	int r;

	if (!program->debug)
		return -ENOENT;
	r = image_read_memory(program->memory, program->debug, &debug, sizeof(debug));
	if (r < 0)
		return r;
	next = (uintptr_t)debug.r_map;
	for (int i = 0; next; i++) {
		struct image image = {.memory = program->memory};
		struct link_map map;
		char path[4096] = "";

		if (i >= LOADED_MAX)
			return -ELOOP;
		r = image_read_memory(program->memory, next, &map, sizeof(map));
		if (r < 0)
			return r;
		image.base = map.l_addr;
		r = read_dynamic(&image, (uintptr_t)map.l_ld);
		if (r < 0)
			return r;
		r = read_string(program->memory, (uintptr_t)map.l_name, path, sizeof(path));
		if (r < 0)
			return r;
		r = found(&image, path, context);
		if (r)
			return r;
		next = (uintptr_t)map.l_next;
	}
	return 0;
}
