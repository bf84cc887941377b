/* SPDX-License-Identifier: MIT */
/* tls_module MODULE: thread-local memory of so_tls.so, loaded late, in old and new threads. */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>

static void *(*module_tls)(size_t *ret_size);
static pthread_barrier_t loaded;

static void *use(void *late)
{
	unsigned char *p;
	size_t size;

	if (!late)
		pthread_barrier_wait(&loaded);
	free(hide(malloc(100)));
	p = (unsigned char *)module_tls(&size);
	CHECK(p, "the thread's memory is not what the module initialises");
	fill(p, size, 1);
	free(hide(malloc(100)));
	CHECK(first_changed(p, size, 1) == size);
	return NULL;
}

int main(int argc, char **argv)
{
	enum { N = 8 };
	pthread_t old[N], new;
	void *module;

	CHECK(argc == 2, "usage: tls_module MODULE");
	CHECK(pthread_barrier_init(&loaded, NULL, N + 1) == 0);
	for (unsigned i = 0; i < N; i++)
		CHECK(pthread_create(&old[i], NULL, use, NULL) == 0);
	module = dlopen(argv[1], RTLD_NOW);
	CHECK(module, "%s", dlerror());
	module_tls = (void *(*)(size_t *))dlsym(module, "module_tls");
	CHECK(module_tls);
	pthread_barrier_wait(&loaded);
	for (unsigned i = 0; i < 200; i++) {
		CHECK(pthread_create(&new, NULL, use, (void *)1) == 0);
		CHECK(pthread_join(new, NULL) == 0);
	}
	for (unsigned i = 0; i < N; i++)
		CHECK(pthread_join(old[i], NULL) == 0);
	return 0;
}
