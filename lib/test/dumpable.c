/* SPDX-License-Identifier: MIT */
/*
 * dumpable: live objects, small and large, lie in mappings that go into core dumps; a mapping of
 * 64 MiB or more that nobody may read does not ("dd" among the flags in smaps), or a core has the
 * address space.
 */
#include "check.h"

static void *objects[200];

/* How many of our objects lie between. */
static unsigned live_between(size_t start, size_t end)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 200; i++)
		n += address_of(objects[i]) >= start && address_of(objects[i]) < end;
	return n;
}

int main(void)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	size_t start = 0, end = 0;
	unsigned found = 0, live = 0;
	char line[4096], protection[8] = "";

	CHECK(smaps);
	for (unsigned i = 0; i < 200; i++) {
		objects[i] = hide(malloc(i % 10 ? 10 * i : 3 * MIB));
		memset(objects[i], 1, 10 * i);
	}
	while (fgets(line, sizeof(line), smaps)) {
		size_t a, b;

		if (sscanf(line, "%zx-%zx %7s", &a, &b, protection) == 3) {
			start = a;
			end = b;
			live = live_between(start, end);
			found += live;
		}
		if (strncmp(line, "VmFlags:", 8) != 0)
			continue;
		if (live)
			CHECK(!strstr(line, " dd"), "%zx-%zx has %u live objects", start, end,
				live);
		else if (end - start >= 64 * MIB && strncmp(protection, "---p", 4) == 0)
			CHECK(strstr(line, " dd"), "%zx-%zx is only reserved", start, end);
	}
	CHECK(found == 200, "%u objects lie in mappings", found);
	return 0;
}
