/* SPDX-License-Identifier: MIT */
/*
 * where: addresses of this process, one a line, with what is there: `heap`, which has tags under
 * the library, or `other`, which has none; then it waits for its end.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int in_data, in_bss[1024];
static __thread int in_tls;

static void show(const char *what, const void *p)
{
	printf("%s %#lx\n", what, (unsigned long)p & ~(0xffUL << 56));
}

static void *thread(void *unused)
{
	int on_stack = 0;

	show("other", &on_stack);
	show("other", &in_tls);
	show("heap", malloc(100));
	return unused;
}

int main(void)
{
	static const size_t sizes[] = {1, 100, 3000, 20000, 100000, 1 << 20, 5 << 20};
	pthread_t t;
	int on_stack = 0;
	void *p;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		p = malloc(sizes[i]);
		memset(p, 1, sizes[i]);
		show("heap", p);
	}
	show("other", &on_stack);
	show("other", &in_data);
	show("other", in_bss);
	show("other", (void *)main);
	show("other", (void *)printf);
	show("other", stdin);
	p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, 1, 1 << 20);
	show("other", p);
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	fflush(stdout);
	pause();
}
