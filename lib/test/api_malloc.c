/* SPDX-License-Identifier: MIT */
/* malloc: every size, its alignment, its limits. */
#include "check.h"

/* malloc(0) is an object of its own, as in glibc. */
static void zero(void)
{
	void *first = hide(malloc(0)), *second = hide(malloc(0));

	CHECK(first && second, "malloc(0) failed");
	CHECK(first != second, "malloc(0) gave %p twice", first);
	free(first);
	free(second);
}

/* Each size up to 16 KiB and some beyond: aligned for any type, all its bytes usable. */
static void small_sizes(void)
{
	unsigned step = often(1, 31);

	for (size_t size = 1; size <= 256 * KIB; size += size < 16 * KIB ? step : step * 997) {
		void *p = hide(malloc(size));

		CHECK(p, "malloc(%zu)", size);
		CHECK(is_aligned(p, 16), "malloc(%zu) gave %p", size, p);
		fill(p, size, (unsigned)size);
		CHECK(first_changed(p, size, (unsigned)size) == size);
		free(p);
	}
}

/* Powers of two, one less and one more, up to 4 GiB. */
static void large_sizes(void)
{
	for (size_t power = 16 * KIB; power <= 4 * GIB; power *= 2)
		for (int delta = -1; delta <= 1; delta++) {
			size_t size = power + (size_t)(ptrdiff_t)delta;
			char *p = (char *)hide(malloc(size));

			CHECK(p, "malloc(%zu)", size);
			CHECK(is_aligned(p, 16), "malloc(%zu) gave %p", size, (void *)p);
			p[0] = 1;
			p[size / 2] = 2;
			p[size - 1] = 3;
			CHECK(p[0] == 1 && p[size / 2] == 2 && p[size - 1] == 3);
			free(p);
		}
}

/* Several huge objects at once keep out of each other. */
static void huge(void)
{
	enum { N = 4 };
	char *p[N];
	size_t size = 3 * GIB + 12345;

	for (unsigned i = 0; i < N; i++) {
		p[i] = (char *)hide(malloc(size));
		CHECK(p[i], "malloc(%zu), the %uth", size, i);
		fill_sparse(p[i], size, 64 * MIB, i);
	}
	for (unsigned i = 0; i < N; i++)
		CHECK(first_changed_sparse(p[i], size, 64 * MIB, i) == size);
	for (unsigned i = 0; i < N; i++)
		free(p[i]);
}

/* Beyond PTRDIFF_MAX there is no object: ENOMEM, and the heap goes on. */
static void too_large(void)
{
	static const size_t sizes[] = {(size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX + 4096,
		SIZE_MAX - 4095, SIZE_MAX - 15, SIZE_MAX - 1, SIZE_MAX, PTRDIFF_MAX,
		PTRDIFF_MAX - 4096, (size_t)1 << 48};
	void *p;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		errno = 0;
		p = hide(malloc(hide_size(sizes[i])));
		CHECK(!p, "malloc(%zu) gave %p", sizes[i], p);
		CHECK(errno == ENOMEM, "malloc(%zu)", sizes[i]);
	}
	p = hide(malloc(100));
	CHECK(p, "malloc(100) after failures");
	free(p);
}

/* The KiB that /proc/self/status gives for NAME. */
static size_t status_kib(const char *name)
{
	static char text[8192];
	ssize_t n;
	char *line;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && (n = read(fd, text, sizeof(text) - 1)) > 0);
	close(fd);
	text[n] = 0;
	line = strstr(text, name);
	CHECK(line, "no %s", name);
	return strtoul(line + strlen(name), NULL, 10);
}

/* Terabytes are more than anybody has: no room for tables is made on the way to that answer. */
static void too_large_costs_nothing(void)
{
	size_t data = status_kib("\nVmData:"), tables = status_kib("\nVmPTE:");

	for (size_t size = (size_t)5 << 40; size <= (size_t)50 << 40; size += (size_t)5 << 40) {
		errno = 0;
		CHECK(!hide(malloc(hide_size(size))) && errno == ENOMEM, "malloc(%zu)", size);
	}
	/* What comes next must not pay for it either. */
	for (unsigned i = 0; i < 100; i++)
		free(hide(malloc(100 * KIB + i)));
	CHECK(status_kib("\nVmData:") < data + 256 * KIB, "%zu KiB of data more",
		status_kib("\nVmData:") - data);
	CHECK(status_kib("\nVmPTE:") < tables + 2 * KIB, "%zu KiB of page tables more",
		status_kib("\nVmPTE:") - tables);
}

/* Ten thousand live objects of all sizes, none overlapping another. */
static void disjoint(void)
{
	enum { N = 10000 };
	static unsigned char *p[N];
	static size_t size[N];
	unsigned n = often(N, N / 10);
	uint64_t seed = 1;

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < n; i++) {
			if (p[i] && next_random(&seed) % 2)
				continue;
			if (p[i])
				CHECK(first_changed(p[i], size[i], i) == size[i], "object %u", i);
			free(p[i]);
			size[i] = random_size(&seed, 64 * KIB);
			p[i] = (unsigned char *)hide(malloc(size[i]));
			CHECK(p[i], "malloc(%zu)", size[i]);
			fill(p[i], size[i], i);
		}
	}
	for (unsigned i = 0; i < n; i++) {
		CHECK(first_changed(p[i], size[i], i) == size[i], "object %u was written over", i);
		free(p[i]);
	}
}

static const struct check_case cases[] = {
	{"zero", zero},
	{"small-sizes", small_sizes},
	{"large-sizes", large_sizes},
	{"huge", huge},
	{"too-large", too_large},
	{"too-large-costs-nothing", too_large_costs_nothing},
	{"disjoint", disjoint},
};

CHECK_MAIN(cases)
