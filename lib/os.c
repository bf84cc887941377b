/* SPDX-License-Identifier: MIT */
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util.h"

/* Newer than bookworm's headers. */
#ifndef PROT_MTE
#define PROT_MTE 0x20
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
#ifndef PIDFD_SELF
#define PIDFD_SELF (-10000)
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/*
 * Callers get their errors as return values; errno is the program's, and free(3) has to keep it.
 * Each function that makes system calls declares one of these.
 */
struct kept_errno {
	int value;
};

static void restore_errno(struct kept_errno *kept)
{
	errno = kept->value;
}

#define KEEP_ERRNO __attribute__((cleanup(restore_errno))) struct kept_errno kept = {errno}

struct os os = {.page = 4096, .has_moves = true};

/* A seccomp filter may end the process for a call that it does not know. */
static enum {
	FILTER_NONE,
	FILTER_INHERITED, /* of a service, say: it knew prctl(2), but perhaps nothing so rare and new */
	FILTER_NEW,       /* the program is about to set one up: just the calls every heap needs */
} filter;

void os_name(void *addr, size_t len, enum os_use use)
{
	KEEP_ERRNO;
	static const char *const names[] = {
		[OS_LEASE] = "vatalloc:lease",
		[OS_UNTAGGED] = "vatalloc:lease",
		[OS_SLOTS] = "vatalloc:slots",
		[OS_META] = "vatalloc:meta",
	};

	static bool refused; /* a kernel without CONFIG_ANON_VMA_NAME */

	if (filter == FILTER_NEW || refused)
		return;
	if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, addr, len, names[use]) < 0)
		refused = errno == EINVAL;
}

/*
 * MADV_GUARD_INSTALL has to be probed by its effect: emulators accept any advice and do nothing.
 * A page under a guard cannot be populated.
 */
static bool probe_guards(void)
{
	void *page = NULL;
	bool works;

	if (os_map(os.page, OS_META, &page) < 0)
		return false;
	works = madvise(page, os.page, MADV_GUARD_INSTALL) == 0 &&
	        madvise(page, os.page, MADV_POPULATE_READ) < 0 && errno == EFAULT;
	munmap(page, os.page);
	return works;
}

void os_init(void)
{
	os.page = getauxval(AT_PAGESZ) ?: 4096;
	if (prctl(PR_GET_SECCOMP))
		filter = FILTER_INHERITED;
}

void os_expect_filter(void)
{
	filter = FILTER_NEW;
}

/* Guards are needed only once memory dies in pieces, so small processes never pay for the probe. */
static bool has_guards(void)
{
	static int probed; /* 0 unknown, 1 yes, -1 no; a race probes twice */
	int known = __atomic_load_n(&probed, __ATOMIC_RELAXED);

	if (!known) {
		known = probe_guards() ? 1 : -1;
		__atomic_store_n(&probed, known, __ATOMIC_RELAXED);
	}
	return known > 0;
}

void os_random(void *buf, size_t len)
{
	KEEP_ERRNO;
	const unsigned char *seed = (const unsigned char *)getauxval(AT_RANDOM);
	unsigned char *out = buf;
	uint64_t x = (uintptr_t)&buf ^ (uint64_t)getpid() << 32;

	if (getrandom(buf, len, GRND_NONBLOCK) == (ssize_t)len)
		return;
	/* seccomp or a very early boot: stretch the 16 bytes the kernel gave this process. */
	for (size_t i = 0; i < len; i++) {
		if (seed)
			x ^= (uint64_t)seed[i % 16] << (i % 8 * 8);
		x = mix64(x + i + 1);
		out[i] = (unsigned char)(x >> 32);
	}
}

int os_reserve(size_t size, size_t align, enum os_use use, void **ret_addr)
{
	KEEP_ERRNO;
	size_t slack = align > os.page ? align : 0;
	char *map, *addr;

	if (size + slack < size)
		return -ENOMEM;
	map = mmap(
		NULL, size + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	addr = slack ? (char *)round_up((uintptr_t)map, align) : map;
	if (addr > map)
		munmap(map, (size_t)(addr - map));
	if (addr + size < map + size + slack)
		munmap(addr + size, (size_t)(map + slack - addr));
	madvise(addr, size, MADV_DONTDUMP);
	os_name(addr, size, use);
	*ret_addr = addr;
	return 0;
}

int os_open(void *addr, size_t len, enum os_use use)
{
	KEEP_ERRNO;
	int prot = PROT_READ | PROT_WRITE;

	if (use == OS_LEASE && os.mte)
		prot |= PROT_MTE;
	if (mprotect(addr, len, prot) < 0)
		return -errno;
	madvise(addr, len, MADV_DODUMP);
	return 0;
}

int os_map(size_t size, enum os_use use, void **ret_addr)
{
	KEEP_ERRNO;
	void *addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (addr == MAP_FAILED)
		return -errno;
	os_name(addr, size, use);
	*ret_addr = addr;
	return 0;
}

void os_want_huge(void *addr, size_t len)
{
	KEEP_ERRNO;
	madvise(addr, len, MADV_HUGEPAGE);
}

void os_want_small(void *addr, size_t len)
{
	KEEP_ERRNO;
	/* Guards stay where they are. */
	if (os.mte || !has_guards())
		madvise(addr, len, MADV_NOHUGEPAGE);
}

void os_populate(void *addr, size_t len)
{
	KEEP_ERRNO;

	madvise(addr, len, MADV_POPULATE_WRITE);
}

int os_retire(void *addr, size_t len, enum os_use use)
{
	KEEP_ERRNO;
	void *map = mmap(addr, len, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	if (map == MAP_FAILED)
		return -errno;
	/* Never touched since, so there is nothing in it to dump; the flag is for merging. */
	madvise(addr, len, MADV_DONTDUMP);
	os_name(addr, len, use);
	return 0;
}

int os_purge(void *addr, size_t len)
{
	KEEP_ERRNO;
	if (madvise(addr, len, MADV_DONTNEED) == 0)
		return 0;
	/* EINVAL: the program called mlockall(2). */
	if (errno == EINVAL && madvise(addr, len, MADV_DONTNEED_LOCKED) == 0)
		return 0;
	return -errno;
}

int os_release(void *addr, size_t len)
{
	KEEP_ERRNO;
	if (!os.mte && has_guards() && madvise(addr, len, MADV_GUARD_INSTALL) == 0)
		return 0;
	return os_purge(addr, len);
}

/* process_madvise(2) of all ranges; whether it did all of it. */
static bool advise_all(const struct iovec *ranges, size_t n, int advice)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += ranges[i].iov_len;
	return syscall(SYS_process_madvise, PIDFD_SELF, ranges, n, advice, 0) == (long)bytes;
}

static bool release_together(const struct iovec *ranges, size_t n)
{
	static bool refused;

	if (n < 2 || refused || filter != FILTER_NONE)
		return false;
	/* The pages first, which is done in one go; then guards find nothing that has to go. */
	if (!advise_all(ranges, n, MADV_DONTNEED)) {
		refused = errno == ENOSYS || errno == EBADF || errno == EPERM;
		return false;
	}
	return os.mte || !has_guards() || advise_all(ranges, n, MADV_GUARD_INSTALL);
}

int os_release_all(const struct iovec *ranges, size_t n)
{
	KEEP_ERRNO;
	int r = 0;

	if (release_together(ranges, n))
		return 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = os_release(ranges[i].iov_base, ranges[i].iov_len);
	return r;
}

int os_move(void *from, void *to, size_t len)
{
	KEEP_ERRNO;
	const int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
	int r;

	if (!os.has_moves)
		return -EOPNOTSUPP;
	if (mremap(from, len, len, flags, to) == to)
		return 0;
	r = -errno;
	if (r == -EINVAL || r == -ENOSYS || r == -EPERM)
		os.has_moves = false;
	/* It may have unmapped the target before it refused: no hole may stay. */
	os_retire(to, len, OS_LEASE);
	return r;
}

unsigned long os_max_vmas(void)
{
	KEEP_ERRNO;
	static unsigned long max;
	unsigned long value = 0;
	char text[32];
	ssize_t len = -1;
	int fd;

	if (__atomic_load_n(&max, __ATOMIC_RELAXED))
		return max;
	fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = read(fd, text, sizeof(text));
		close(fd);
	}
	for (ssize_t i = 0; i < len && text[i] >= '0' && text[i] <= '9'; i++)
		value = value * 10 + (unsigned long)(text[i] - '0');
	if (!value)
		value = 65530; /* the kernel's default */
	__atomic_store_n(&max, value, __ATOMIC_RELAXED);
	return value;
}

size_t os_address_limit(void)
{
	KEEP_ERRNO;
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	return limit.rlim_cur;
}
