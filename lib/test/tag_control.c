/* SPDX-License-Identifier: MIT */
/*
 * tag_control: with tags (modes sync and async) a program cannot switch off, by prctl, what finds
 * the mistakes in its heap; what leaves that as it is, it may, and every other prctl works.
 */
#include "check.h"

#include <errno.h>
#include <sys/prctl.h>

#ifndef PR_SET_TAGGED_ADDR_CTRL
#define PR_SET_TAGGED_ADDR_CTRL 55
#define PR_GET_TAGGED_ADDR_CTRL 56
#define PR_TAGGED_ADDR_ENABLE   (1UL << 0)
#endif

int main(void)
{
	char name[16] = "", *p = (char *)hide(malloc(100));
	int before = prctl(PR_GET_TAGGED_ADDR_CTRL, 0, 0, 0, 0);

	CHECK(prctl(PR_SET_NAME, "another") == 0);
	CHECK(prctl(PR_GET_NAME, name) == 0 && !strcmp(name, "another"), "the name is '%s'", name);
	CHECK(prctl(-1, 0, 0, 0, 0) == -1 && errno == EINVAL);
	if (!tag_of(p)) {
		/* Nothing of ours depends on it. */
		prctl(PR_SET_TAGGED_ADDR_CTRL, 0, 0, 0, 0);
		return 0;
	}
	CHECK(before > 0 && before & PR_TAGGED_ADDR_ENABLE, "control %#x", (unsigned)before);
	errno = 0;
	CHECK(prctl(PR_SET_TAGGED_ADDR_CTRL, 0, 0, 0, 0) == -1 && errno == EPERM);
	CHECK(prctl(PR_SET_TAGGED_ADDR_CTRL, PR_TAGGED_ADDR_ENABLE, 0, 0, 0) == -1);
	CHECK(prctl(PR_SET_TAGGED_ADDR_CTRL, (before & ~(int)PR_TAGGED_ADDR_ENABLE), 0, 0, 0) == -1);
	CHECK(prctl(PR_GET_TAGGED_ADDR_CTRL, 0, 0, 0, 0) == before);
	CHECK(prctl(PR_SET_TAGGED_ADDR_CTRL, before, 0, 0, 0) == 0);
	CHECK(prctl(PR_GET_TAGGED_ADDR_CTRL, 0, 0, 0, 0) == before);
	return 0;
}
