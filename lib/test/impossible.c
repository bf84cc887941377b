/* SPDX-License-Identifier: MIT */
/*
 * impossible WHEN: ask for more than the address space that the caller's limit leaves, as the
 * `first` allocation of the process or `later`. That is an error of this call, and of nothing else.
 */
#include "check.h"

#define FAR_TOO_MUCH (64 * GIB)

static void refused(size_t size)
{
	errno = 0;
	CHECK(!hide(malloc(size)) && errno == ENOMEM, "malloc of %zu MiB", size / MIB);
}

static void refused_and_on(void)
{
	void *p;

	refused(2 * GIB);
	refused(FAR_TOO_MUCH);
	p = hide(malloc(100 * KIB));
	CHECK(p);
	fill(p, 100 * KIB, 1);
	CHECK(!hide(realloc(hide(p), 2 * GIB)) && errno == ENOMEM);
	refused(2 * GIB);
	CHECK(first_changed(p, 100 * KIB, 1) == 100 * KIB);
	free(p);
}

static void first(void)
{
	refused_and_on();
}

static void later(void)
{
	void *p = hide(malloc(10));

	CHECK(p);
	refused_and_on();
	free(p);
}

static const struct check_case cases[] = {
	{"first", first},
	{"later", later},
};

/* What is first can be first only once. */
int main(int argc, char **argv)
{
	CHECK(argc == 2, "usage: impossible WHEN");
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
