/* SPDX-License-Identifier: MIT */
/*
 * without ERRNO CALL[,CALL...] PROGRAM [ARGUMENT...]: run a program for which each of these system
 * calls fails with ERRNO (EPERM or ENOSYS) from the start, as in a container or a strict service.
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

int main(int argc, char **argv)
{
	struct sock_filter filter[2 * N_CALLS + 3];
	struct sock_fprog program = {0, filter};
	unsigned short n = 0;
	int error;

	CHECK(argc > 3, "usage: without ERRNO CALL[,CALL...] PROGRAM [ARGUMENT...]");
	error = strcmp(argv[1], "ENOSYS") == 0 ? ENOSYS : EPERM;
	filter[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (char *name = strtok(argv[2], ","); name; name = strtok(NULL, ",")) {
		unsigned i;

		for (i = 0; i < N_CALLS && strcmp(calls[i].name, name) != 0; i++)
			;
		CHECK(i < N_CALLS, "unknown system call %s", name);
		filter[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
		filter[n++] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = n;
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		SKIP("no seccomp filters here");
	execvp(argv[3], argv + 3);
	CHECK(0, "%s cannot be run", argv[3]);
}
