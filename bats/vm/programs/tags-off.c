/* SPDX-License-Identifier: MIT */
/* tags-off: a service that thinks memory tags are its own business, and goes on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_TAGGED_ADDR_CTRL
#define PR_SET_TAGGED_ADDR_CTRL 55
#endif

int main(void)
{
	int r = prctl(PR_SET_TAGGED_ADDR_CTRL, 0, 0, 0, 0);

	printf("prctl: %s\n", r < 0 ? strerror(errno) : "done");
	fflush(stdout);
	pause();
}
