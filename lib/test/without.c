/* SPDX-License-Identifier: MIT */
/*
 * without ERRNO CALL[,CALL...] PROGRAM [ARGUMENT...]: run a program for which each of these system
 * calls fails with ERRNO from the start, as in a container, a strict service or on an old kernel.
 * "guard" stands for madvise's MADV_GUARD_INSTALL and MADV_GUARD_REMOVE alone.
 */
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const struct {
	const char *name;
	unsigned number;
} calls[] = {
	{"getrandom", SYS_getrandom},
	{"prctl", SYS_prctl},
	{"mremap", SYS_mremap},
	{"madvise", SYS_madvise},
	{"sigaltstack", SYS_sigaltstack},
	{"socket", SYS_socket},
	{"membarrier", SYS_membarrier},
	{"sched_getaffinity", SYS_sched_getaffinity},
	{"sysinfo", SYS_sysinfo},
	{"rseq", SYS_rseq},
	{"uname", SYS_uname},
	{"prlimit64", SYS_prlimit64},
	{"clock_gettime", SYS_clock_gettime},
};
#define N_CALLS (sizeof(calls) / sizeof(calls[0]))

static const struct {
	const char *name;
	int number;
} errors[] = {{"EPERM", EPERM}, {"ENOSYS", ENOSYS}, {"EINVAL", EINVAL}};

static struct sock_filter filter[64];
static unsigned short n_filter;

static void add(struct sock_filter instruction)
{
	CHECK(n_filter < sizeof(filter) / sizeof(filter[0]));
	filter[n_filter++] = instruction;
}

/* The accumulator holds the number of the call, at the start and at the end of each. */
static void refuse(const char *name, unsigned result)
{
	unsigned i;

	if (strcmp(name, "guard") == 0) {
		add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 5));
		/* The low half of the third argument; both architectures are little-endian. */
		add((struct sock_filter)BPF_STMT(
			BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])));
		add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 102, 1, 0));
		add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 103, 0, 1));
		add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result));
		add((struct sock_filter)BPF_STMT(
			BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
		return;
	}
	for (i = 0; i < N_CALLS && strcmp(calls[i].name, name) != 0; i++)
		;
	CHECK(i < N_CALLS, "unknown system call %s", name);
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1));
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result));
}

int main(int argc, char **argv)
{
	struct sock_fprog program = {0, filter};
	unsigned error;

	CHECK(argc > 3, "usage: without ERRNO CALL[,CALL...] PROGRAM [ARGUMENT...]");
	for (error = 0; error < 3 && strcmp(errors[error].name, argv[1]) != 0; error++)
		;
	CHECK(error < 3, "unknown error %s", argv[1]);
	add((struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
	for (char *name = strtok(argv[2], ","); name; name = strtok(NULL, ","))
		refuse(name, SECCOMP_RET_ERRNO | (unsigned)errors[error].number);
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	program.len = n_filter;
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		SKIP("no seccomp filters here");
	execvp(argv[3], argv + 3);
	CHECK(0, "%s cannot be run", argv[3]);
}
