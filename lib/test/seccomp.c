/* SPDX-License-Identifier: MIT */
/*
 * seccomp kill|refuse [fault]: close the process in a filter that lets a handful of system calls
 * through, and kills it (or gives EPERM) for any other; then use the heap. With "fault", touch
 * freed memory at the end: whatever the filter does to the report, the process must die of it.
 */
#include "check.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void enter_filter(unsigned otherwise)
{
	struct sock_filter filter[] = {
		LOAD(nr),
		ALLOW(mmap),
		ALLOW(munmap),
		ALLOW(mprotect),
		ALLOW(mremap),
		ALLOW(madvise),
		ALLOW(brk),
		ALLOW(read),
		ALLOW(write),
		ALLOW(futex),
		ALLOW(rt_sigaction),
		ALLOW(rt_sigprocmask),
		ALLOW(rt_sigreturn),
		ALLOW(gettid),
		ALLOW(getpid),
		ALLOW(tgkill),
		ALLOW(exit),
		ALLOW(exit_group),
		BPF_STMT(BPF_RET | BPF_K, otherwise),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		SKIP("no seccomp filters here");
}

static void use_heap(void)
{
	enum { N = 2000 };
	static void *objects[N];
	static size_t sizes[N];
	uint64_t seed = 7;

	for (unsigned i = 0; i < 200000; i++) {
		unsigned at = next_random(&seed) % N;

		if (objects[at])
			CHECK(first_changed(objects[at], sizes[at] % 512, at) == sizes[at] % 512);
		if (i % 5 == 0) {
			sizes[at] = random_size(&seed, 20000);
			objects[at] = hide(realloc(objects[at], sizes[at]));
		} else {
			free(objects[at]);
			sizes[at] = random_size(&seed, i % 100 ? 2000 : 2 * MIB);
			objects[at] =
				hide(i % 3 ? malloc(sizes[at]) : aligned_alloc(64, sizes[at]));
		}
		if (!objects[at]) {
			CHECK(sizes[at] == 0);
			continue;
		}
		fill(objects[at], sizes[at] % 512, at);
	}
	for (unsigned i = 0; i < N; i++)
		free(objects[i]);
}

int main(int argc, char **argv)
{
	int kill = argc > 1 && strcmp(argv[1], "kill") == 0;

	CHECK(kill || (argc > 1 && strcmp(argv[1], "refuse") == 0),
		"usage: seccomp kill|refuse [fault]");
	free(hide(malloc(100)));
	enter_filter(kill ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM);
	use_heap();
	if (argc > 2) {
		char *p = (char *)hide(malloc(8 * MIB));

		memset(p, 1, 8 * MIB);
		free(p);
		(void)*(volatile char *)hide(p + 4 * MIB);
	}
	return 0;
}
