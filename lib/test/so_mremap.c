/* SPDX-License-Identifier: MIT */
/*
 * mremap(2) as it can fail by MREMAP_FIXED: what was at the target is unmapped already when the
 * kernel refuses. Preloaded beside the library, every other such call ends so.
 */
#include "check.h"

#include <sys/syscall.h>

void *mremap(void *old, size_t old_size, size_t new_size, int flags, ...)
{
	static unsigned calls;
	void *target = NULL;

	if (flags & MREMAP_FIXED) {
		va_list args;

		va_start(args, flags);
		target = va_arg(args, void *);
		va_end(args);
		if (__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % 2 == 0) {
			munmap(target, new_size);
			errno = EFAULT;
			return MAP_FAILED;
		}
	}
	return (void *)syscall(SYS_mremap, old, old_size, new_size, flags, target);
}
