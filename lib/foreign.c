/* SPDX-License-Identifier: MIT */
#include "foreign.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os.h"
#include "stats.h"
#include "util.h"

extern void __libc_free(void *p);

enum {
	IS_MMAPPED = 2,
	FLAGS = 7,
	CHUNK_LEAST = 32,
	STACK_NEAR = 1 << 20, /* bytes from here that are still this thread's stack */
};

/* Reads memory that may not be there. */
static bool peek(uintptr_t address, size_t *ret, size_t words)
{
	struct iovec to = {ret, words * sizeof(*ret)};
	struct iovec from = {(void *)address, words * sizeof(*ret)};
	ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

	if (n == (ssize_t)to.iov_len)
		return true;
	if (n >= 0 || errno == EFAULT)
		return false;
	/* Forbidden (seccomp): look, and let the worst be a fault inside free. */
	for (size_t i = 0; i < words; i++)
		ret[i] = ((const volatile size_t *)address)[i];
	return true;
}

static bool usable_size(const void *pointer, size_t *ret_size)
{
	uintptr_t p = (uintptr_t)pointer;
	uintptr_t here = (uintptr_t)&p;
	struct dl_find_object module;
	size_t header[2], next[2], size; /* the previous chunk's size, then this one's and flags */

	if (p % 16 || p < os.page || (p > here - STACK_NEAR && p < here + STACK_NEAR))
		return false;
	/* Static data of the program or a library. */
	if (_dl_find_object((void *)p, &module) == 0)
		return false;
	if (!peek(p - sizeof(header), header, 2))
		return false;
	size = header[1] & ~(size_t)FLAGS;
	if (size < CHUNK_LEAST || size % 16)
		return false;
	if (header[1] & IS_MMAPPED) {
		if ((p - sizeof(header) - header[0]) % os.page || (header[0] + size) % os.page)
			return false;
		*ret_size = size - sizeof(header);
		return true;
	}
	/* The chunk behind says that this one is in use. */
	if (!peek(p - sizeof(header) + size, next, 2) || !(next[1] & 1))
		return false;
	*ret_size = size - sizeof(size_t);
	return true;
}

bool foreign_usable_size(const void *p, size_t *ret_size)
{
	int saved = errno;
	bool is_libc = usable_size(p, ret_size);

	errno = saved;
	return is_libc;
}

bool foreign_free(void *p)
{
	size_t size;

	if (!foreign_usable_size(p, &size))
		return false;
	add_u64(&vatalloc_stats.foreign_frees, 1);
	__libc_free(p);
	return true;
}
