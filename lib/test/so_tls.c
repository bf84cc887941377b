/* SPDX-License-Identifier: MIT */
/* A module with much thread-local memory, which the loader allocates for each thread by malloc. */
#include <string.h>

void *module_tls(size_t *ret_size);

static _Thread_local char small_one[32] __attribute__((aligned(64))) = "initialised";
static _Thread_local char large_one[300000];

void *module_tls(size_t *ret_size)
{
	if (strcmp(small_one, "initialised") != 0 || large_one[0] ||
		large_one[sizeof(large_one) - 1])
		return NULL;
	*ret_size = sizeof(large_one);
	return large_one;
}
