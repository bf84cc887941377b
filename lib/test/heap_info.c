/* SPDX-License-Identifier: MIT */
/*
 * heap_info [MIB]: use a little of the heap, MIB mebibytes in all, and print what the library says
 * of itself in the struct that it exports, "name value" a line, and the tag of a pointer.
 */
#include "check.h"
#include "stats.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
	static const char *const modes[] = {
		"unset", "off", "count", "address", "sync", "async", "mte"};
	const struct vatalloc_stats *stats =
		(const struct vatalloc_stats *)dlsym(RTLD_DEFAULT, "vatalloc_stats");
	size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	void *p = hide(malloc(100));

	CHECK(p);
	fill(p, 100, 1);
	for (size_t i = 0; i < mib * MIB / 1024; i++)
		free(hide(malloc(1024)));
	CHECK(first_changed(p, 100, 1) == 100);
	if (!stats) {
		printf("library none\n");
		return 0;
	}
	CHECK(memcmp(stats->magic, VATALLOC_STATS_MAGIC, sizeof(stats->magic)) == 0);
	CHECK(stats->version == VATALLOC_STATS_VERSION && stats->size == sizeof(*stats));
	printf("library %s\n", stats->library);
	printf("mode %s\nrequested %s\nfallback %u\nlives %u\n", modes[stats->mode],
		modes[stats->mode_requested], stats->fallback, stats->lives);
	printf("granularity %llu\nspace_size %llu\nlives_used %llu\nbytes_recycled %llu\n",
		(unsigned long long)stats->granularity, (unsigned long long)stats->space_size,
		(unsigned long long)stats->lives_used, (unsigned long long)stats->bytes_recycled);
	printf("tag %s\n", tag_of(p) ? "some" : "none");
	free(p);
	return 0;
}
