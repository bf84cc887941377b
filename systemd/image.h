/* SPDX-License-Identifier: MIT */
/*
 * image: an ELF file as it is mapped in another process.
 *
 * Everything is read from the process's memory: so it works for files that were replaced, that lie
 * in another mount namespace, or that this user could not open. The process may be hostile and may
 * change what is read while it is read: each value is checked where it is used, each walk has a
 * limit, and the worst that can happen is a wrong answer about that very process.
 *
 * Functions return 0 or a negative errno: -ENOENT for a symbol that is not there, -EBADMSG for what
 * is no ELF file of this machine's kind, -ELOOP at a limit, or what reading memory gave.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image {
	int memory;				    /* descriptor of /proc/PID/mem, the caller's */
	uint64_t base;				    /* what its addresses are relative to */
	uint64_t symbols, strings, gnu_hash, debug; /* addresses; 0 where there is none */
	uint64_t strings_size;
};

/* Reads all @len bytes at @addr. */
int image_read_memory(int memory, uint64_t addr, void *buf, size_t len);

/* The image whose ELF header is mapped at @start. */
int image_open(int memory, uint64_t start, struct image *ret);

/* The image whose @n program headers are mapped at @addr, as AT_PHDR tells it for a program. */
int image_open_program(int memory, uint64_t addr, size_t n, struct image *ret);

/* The address of a symbol that the image defines. */
int image_find(const struct image *image, const char *symbol, uint64_t *ret_addr);

/*
 * The list that the dynamic linker keeps of what it loaded, in the order in which symbols are
 * looked up; @program is the program's own image. @found is called with the address and the path of
 * each, until it returns something other than 0, which is passed on.
 */
int image_for_each(const struct image *program,
	int (*found)(const struct image *image, const char *path, void *context), void *context);
