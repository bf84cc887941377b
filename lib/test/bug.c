/* SPDX-License-Identifier: MIT */
/*
 * bug NAME: make one mistake. On stdout comes what a report must say of it, as far as the program
 * can know, and the process is expected to end there; if nothing stops it, it exits with 42.
 *
 * Where only tags can notice, or addresses can in time, the comment says so. Without MTE freed
 * memory traps when a whole unit of the granularity is dead: small objects are therefore taken from
 * the middle of many dead ones, which needs granularity=4K to happen at once.
 */
#include "check.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

#define SIZE  320 /* a size of which several make no whole page, so a page has parts of several */
#define MANY  4096
#define APART 32 /* every so many objects one stays alive, and its run with it */

static char *objects[MANY];

/* Expected: "WORD at|of ADDRESS, OFFSET bytes into a SIZE-byte object". */
static void expect(
	const char *word, const char *preposition, const char *p, size_t offset, size_t size)
{
	printf("%s %s %#zx, %zu bytes into a %zu-byte object\n", word, preposition,
		(size_t)address_of(p) + offset, offset, size);
	fflush(stdout);
}

static void expect_address(const char *words, const void *p)
{
	printf("%s %#zx\n", words, (size_t)address_of(p));
	fflush(stdout);
}

static void read_at(const char *p)
{
	(void)*(const volatile char *)hide(p);
}

static void write_at(char *p)
{
	*(volatile char *)hide(p) = 1;
}

/* Objects of SIZE bytes in the order of their addresses. */
static void allocate_many(void)
{
	for (unsigned i = 0; i < MANY; i++) {
		objects[i] = (char *)hide(malloc(SIZE));
		CHECK(objects[i] && malloc_usable_size(objects[i]) == SIZE);
		memset(objects[i], 1, SIZE);
	}
	for (unsigned gap = MANY / 2; gap; gap /= 2)
		for (unsigned i = gap; i < MANY; i++)
			for (unsigned k = i; k >= gap; k -= gap) {
				char *p = objects[k];

				if (address_of(objects[k - gap]) < address_of(p))
					break;
				objects[k] = objects[k - gap];
				objects[k - gap] = p;
			}
}

/* Is objects[FROM] to objects[TO] one row without a gap? */
static int in_a_row(unsigned from, unsigned to)
{
	return address_of(objects[to]) - address_of(objects[from]) == (to - from) * SIZE;
}

/* One in the middle of a row. */
static unsigned middle(void)
{
	for (unsigned i = MANY / 2 / APART * APART + APART / 2; i + APART < MANY; i += APART)
		if (in_a_row(i - APART / 2, i + APART / 2))
			return i;
	CHECK(0, "the objects lie scattered");
}

/* A freed object with nothing but freed objects in the page around it, whose run is still in use.
 */
static char *dangling(void)
{
	unsigned victim;

	allocate_many();
	victim = middle();
	for (unsigned i = 0; i < MANY; i++)
		if (i % APART)
			free(hide(objects[i]));
	return objects[victim];
}

static void uaf_read(void)
{
	char *p = dangling();

	expect("read", "at", p, 8, SIZE);
	read_at(p + 8);
}

static void uaf_write(void)
{
	char *p = dangling();

	expect("write", "at", p, 319, SIZE);
	write_at(p + 319);
}

static char *dangling_large(size_t size)
{
	char *p = (char *)hide(malloc(size));

	CHECK(p);
	memset(p, 1, size);
	free(p);
	return (char *)hide(p);
}

static void uaf_large(void)
{
	char *p = dangling_large(8 * MIB);

	expect("read", "at", p, 5 * MIB, 8 * MIB);
	read_at(p + 5 * MIB);
}

static void uaf_large_write(void)
{
	char *p = dangling_large(8 * MIB);

	expect("write", "at", p, 0, 8 * MIB);
	write_at(p);
}

/* An object that fills no block of address space by itself. */
static void uaf_medium(void)
{
	char *p = dangling_large(256 * KIB);

	expect("read", "at", p, 128 * KIB, 256 * KIB);
	read_at(p + 128 * KIB);
}

/* Through the pointer from before a realloc that moved pages. */
static void uaf_realloc(void)
{
	char *p = (char *)hide(malloc(8 * MIB)), *q;

	memset(p, 1, 8 * MIB);
	q = (char *)hide(realloc(hide(p), 80 * MIB));
	CHECK(q && q != p && q[8 * MIB - 1] == 1);
	expect("read", "at", p, 4 * MIB, 8 * MIB);
	read_at(p + 4 * MIB);
}

static void *allocate_in_thread(void *arg)
{
	(void)arg;
	return dangling();
}

/* Allocated and freed by a thread that is no more. */
static void uaf_thread(void)
{
	pthread_t thread;
	void *p;

	CHECK(pthread_create(&thread, NULL, allocate_in_thread, NULL) == 0);
	CHECK(pthread_join(thread, &p) == 0);
	expect("read", "at", (char *)p, 0, SIZE);
	read_at((char *)p);
}

/* Allocated before a fork, freed and used in the child. */
static void uaf_fork(void)
{
	char *p = (char *)hide(malloc(8 * MIB));
	int status;
	pid_t pid;

	memset(p, 1, 8 * MIB);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		free(hide(p));
		expect("read", "at", p, 0, 8 * MIB);
		read_at(p);
		_exit(42);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(p[8 * MIB - 1] == 1, "the parent's object is gone, too");
	_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/*
 * With tags, until the lives of the first objects are all used. Without, until nothing is remembered
 * of them and their memory is gone: others die until the old ones are forgotten, with a survivor in
 * each block, because a block that dies takes its leases along.
 */
static void let_all_die(void)
{
	for (unsigned round = 0; round < 50; round++) {
		for (unsigned i = 0; i < MANY; i++)
			objects[i] = (char *)hide(malloc(SIZE));
		for (unsigned i = 0; i < MANY; i++)
			free(hide(objects[i]));
	}
	for (unsigned i = 0; i < 400000; i++) {
		void *p = hide(malloc(4096));

		if (i % 256)
			free(p);
	}
	malloc_trim(0);
}

/* So long ago that nothing is known of the object any more; the addresses stay forbidden. */
static void uaf_retired(void)
{
	char *p;

	allocate_many();
	p = objects[MANY / 2];
	for (unsigned i = 0; i < MANY; i++)
		free(hide(objects[i]));
	let_all_die();
	expect_address("read at", p);
	read_at(p);
}

/* Two lives of an address further on (tags): "life 3 of 15, freed; current life 7". */
static void uaf_life(void)
{
	static struct {
		uintptr_t address;
		unsigned lives;
		char *third;
	} seen[MANY];

	for (;;) {
		char *p = (char *)hide(malloc(SIZE));
		unsigned i;

		for (i = 0; i < MANY && seen[i].address && seen[i].address != address_of(p); i++)
			;
		CHECK(i < MANY, "addresses do not come again");
		seen[i].address = address_of(p);
		if (++seen[i].lives == 3)
			seen[i].third = p;
		if (seen[i].lives == 7) {
			expect("read", "at", seen[i].third, 16, SIZE);
			read_at((char *)hide(seen[i].third) + 16);
			return;
		}
		free(p);
	}
}

static char *freed(size_t size)
{
	char *p = (char *)hide(malloc(size));

	CHECK(p);
	memset(p, 1, size);
	free(p);
	return (char *)hide(p);
}

static void double_free(void)
{
	char *p = freed(64);

	expect("free", "of", p, 0, 64);
	free(p);
}

static void double_free_large(void)
{
	char *p = freed(8 * MIB);

	expect("free", "of", p, 0, 8 * MIB);
	free(p);
}

/* With other objects allocated in between, one of which may have the address by now. */
static void double_free_later(void)
{
	char *p = freed(64);

	for (unsigned i = 0; i < 10; i++)
		CHECK(hide(malloc(64)) != p, "a pointer is given twice");
	expect("free", "of", p, 0, 64);
	free(p);
}

static void *free_in_thread(void *p)
{
	free(p);
	return NULL;
}

static void double_free_thread(void)
{
	char *p = (char *)hide(malloc(64));
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, free_in_thread, p) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	expect("free", "of", p, 0, 64);
	free(hide(p));
}

/* Of an object whose run is retired. */
static void double_free_retired(void)
{
	char *p;

	allocate_many();
	p = objects[MANY / 2];
	for (unsigned i = 0; i < MANY; i++)
		free(hide(objects[i]));
	let_all_die();
	expect_address("free of", p);
	free(hide(p));
}

static void realloc_freed(void)
{
	char *p = freed(64);

	expect("realloc", "of", p, 0, 64);
	hide(realloc(p, 100));
}

static void realloc_freed_large(void)
{
	char *p = freed(8 * MIB);

	expect("realloc", "of", p, 0, 8 * MIB);
	hide(realloc(p, 100 * MIB));
}

static void free_interior(void)
{
	char *p = (char *)hide(malloc(64));

	expect("free", "of", p, 16, 64);
	free(hide(p + 16));
}

static void free_odd(void)
{
	char *p = (char *)hide(malloc(64));

	expect("free", "of", p, 1, 64);
	free(hide(p + 1));
}

static void free_interior_large(void)
{
	char *p = (char *)hide(malloc(8 * MIB));

	expect("free", "of", p, 4 * MIB, 8 * MIB);
	free(hide(p + 4 * MIB));
}

static void realloc_interior(void)
{
	char *p = (char *)hide(malloc(64));

	expect("realloc", "of", p, 32, 64);
	hide(realloc(hide(p + 32), 100));
}

static void free_stack(void)
{
	char here[64] __attribute__((aligned(16)));

	free(hide(malloc(10)));
	expect_address("free of", hide(here));
	free(hide(here));
}

static void free_static(void)
{
	static char here[64] __attribute__((aligned(16)));

	expect_address("free of", here);
	free(hide(here));
}

static void free_wild(void)
{
	expect_address("free of", (void *)0x123450);
	free(hide((void *)0x123450));
}

/* Not an address that a machine could have. */
static void free_impossible(void)
{
	expect_address("free of", (void *)0x41414141414140);
	free(hide((void *)0x41414141414140));
}

static void free_mapping(void)
{
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	expect_address("free of", (char *)p + 16);
	free(hide((char *)p + 16));
}

static void realloc_stack(void)
{
	char here[64] __attribute__((aligned(16)));

	expect_address("realloc of", hide(here));
	hide(realloc(hide(here), 100));
}

static void delete_stack(void)
{
	extern void operator_delete(void *p) __asm__("_ZdlPv") __attribute__((weak));
	char here[64] __attribute__((aligned(16)));

	CHECK(operator_delete, "no operator delete");
	expect_address("free of", hide(here));
	operator_delete(hide(here));
}

/* One byte behind the end, into the next object (tags). */
static void overflow(void)
{
	allocate_many();
	printf("write at %#zx, 0 bytes past the end of a %u-byte object\n",
		(size_t)address_of(objects[middle()]) + SIZE, SIZE);
	fflush(stdout);
	write_at(objects[middle()] + SIZE);
}

/* One byte before the beginning (tags). */
static void underflow(void)
{
	allocate_many();
	printf("read at %#zx, 1 bytes before a %u-byte object\n",
		(size_t)address_of(objects[middle()]) - 1, SIZE);
	fflush(stdout);
	read_at(objects[middle()] - 1);
}

/* Behind the last byte of a large object (tags). */
static void overflow_large(void)
{
	char *p = (char *)hide(malloc(MIB));
	size_t usable = malloc_usable_size(p);

	printf("write at %#zx, 0 bytes past the end of a %zu-byte object\n",
		(size_t)address_of(p) + usable, usable);
	fflush(stdout);
	write_at(p + usable);
}

/* A pointer whose tag somebody took away (tags). */
static void untagged(void)
{
	char *p = (char *)hide(malloc(SIZE));

	memset(p, 1, SIZE);
	expect("read", "at", p, 10, SIZE);
	read_at((char *)address_of(p) + 10);
}

static char *with_tag(const char *p, unsigned tag)
{
	return (char *)(address_of(p) | (uintptr_t)tag << 56);
}

/* A guessed tag, neither this object's nor a neighbour's (tags). */
static void forged(void)
{
	unsigned tag, i;

	allocate_many();
	i = middle();
	for (tag = 1; tag == tag_of(objects[i]) || tag == tag_of(objects[i - 1]) ||
		      tag == tag_of(objects[i + 1]);
		tag++)
		;
	expect("write", "at", objects[i], 4, SIZE);
	write_at(with_tag(objects[i], tag) + 4);
}

static void free_untagged(void)
{
	char *p = (char *)hide(malloc(64));

	expect("free", "of", p, 0, 64);
	free(hide((char *)address_of(p)));
}

static void free_forged(void)
{
	char *p = (char *)hide(malloc(64));

	expect("free", "of", p, 0, 64);
	free(hide(with_tag(p, tag_of(p) % 15 + 1)));
}

/* Not a bug: everything above, done right. */
static void none(void)
{
	char *p = (char *)hide(malloc(64));

	memset(p, 1, 64);
	p = (char *)hide(realloc(p, 8 * MIB));
	memset(p, 1, 8 * MIB);
	free(hide(p));
	allocate_many();
	for (unsigned i = 0; i < MANY; i++)
		free(objects[i]);
}

static const struct check_case cases[] = {
	{"uaf-read", uaf_read},
	{"uaf-write", uaf_write},
	{"uaf-large", uaf_large},
	{"uaf-large-write", uaf_large_write},
	{"uaf-medium", uaf_medium},
	{"uaf-realloc", uaf_realloc},
	{"uaf-thread", uaf_thread},
	{"uaf-fork", uaf_fork},
	{"uaf-retired", uaf_retired},
	{"uaf-life", uaf_life},
	{"double-free", double_free},
	{"double-free-large", double_free_large},
	{"double-free-later", double_free_later},
	{"double-free-thread", double_free_thread},
	{"double-free-retired", double_free_retired},
	{"realloc-freed", realloc_freed},
	{"realloc-freed-large", realloc_freed_large},
	{"free-interior", free_interior},
	{"free-odd", free_odd},
	{"free-interior-large", free_interior_large},
	{"realloc-interior", realloc_interior},
	{"free-stack", free_stack},
	{"free-static", free_static},
	{"free-wild", free_wild},
	{"free-impossible", free_impossible},
	{"free-mapping", free_mapping},
	{"realloc-stack", realloc_stack},
	{"delete-stack", delete_stack},
	{"overflow", overflow},
	{"underflow", underflow},
	{"overflow-large", overflow_large},
	{"untagged", untagged},
	{"forged", forged},
	{"free-untagged", free_untagged},
	{"free-forged", free_forged},
	{"none", none},
};

int main(int argc, char **argv)
{
	int error;

	CHECK(argc == 2, "usage: bug NAME");
	error = run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
	if (error)
		return error;
	/* A system call, for what is noticed only by then. */
	usleep(1);
	return 42;
}
