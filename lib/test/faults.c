/* SPDX-License-Identifier: MIT */
/*
 * faults MIB OBJECTS LEAST MOST PART: allocate and free MIB mebibytes in objects of LEAST to MOST bytes,
 * OBJECTS of them live, any of which goes, and touch every page of each. The heap walks through
 * address space meanwhile; its pages have to come along, or be huge, so that no more than one in PART
 * is faulted in.
 */
#include "check.h"

#include <stdbool.h>
#include <sys/resource.h>

enum { OBJECTS_MOST = 8192, PAGE = 4096 };

static void *objects[OBJECTS_MOST];

/* Also those that the kernel was asked to do ahead of time. */
static size_t page_faults(void)
{
	struct rusage usage;

	CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
	return (size_t)usage.ru_minflt;
}

static bool has_huge_pages(void)
{
	char text[64] = "";
	int fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return false;
	return !strstr(text, "[never]");
}

int main(int argc, char **argv)
{
	size_t total, n, least, most, part, before, faults, allocated = 0;
	uint64_t seed = 1;

	CHECK(argc == 6);
	total = strtoul(argv[1], NULL, 10) * MIB;
	n = strtoul(argv[2], NULL, 10);
	least = strtoul(argv[3], NULL, 10);
	most = strtoul(argv[4], NULL, 10);
	part = strtoul(argv[5], NULL, 10);
	CHECK(n <= OBJECTS_MOST && least < most);
	if (!has_huge_pages())
		SKIP("no huge pages");
	before = page_faults();
	while (allocated < total) {
		size_t at = next_random(&seed) % n;
		size_t size = least + random_size(&seed, most - least);
		char *p;

		free(objects[at]);
		objects[at] = p = (char *)hide(malloc(size));
		CHECK(p, "no memory for %zu bytes", size);
		for (size_t i = 0; i < size; i += PAGE)
			p[i] = 1;
		p[size - 1] = 1;
		allocated += size;
	}
	faults = page_faults() - before;
	printf("%zu MiB, %zu page faults\n", total / MIB, faults);
	CHECK(faults < total / PAGE / part, "%zu for %zu pages", faults, total / PAGE);
	return 0;
}
