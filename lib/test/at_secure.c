/* SPDX-License-Identifier: MIT */
/*
 * at_secure PROGRAM [ARGUMENT...]: as root, run a program with a real user other than the effective
 * one, for which the kernel sets AT_SECURE as it does for a setuid program.
 */
#include "check.h"

int main(int argc, char **argv)
{
	CHECK(argc > 1, "usage: at_secure PROGRAM [ARGUMENT...]");
	if (geteuid() != 0)
		SKIP("not root");
	CHECK(setresuid(65534, 0, 0) == 0);
	execvp(argv[1], argv + 1);
	CHECK(0, "%s cannot be run", argv[1]);
}
