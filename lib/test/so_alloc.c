/* SPDX-License-Identifier: MIT */
/* A module that allocates and frees by whatever heap it was bound to. */
#include <stdlib.h>

void *module_malloc(size_t n);
void module_free(void *p);
void *module_realloc(void *p, size_t n);
void *module_malloc_address(void);

void *module_malloc(size_t n)
{
	return malloc(n);
}

void module_free(void *p)
{
	free(p);
}

void *module_realloc(void *p, size_t n)
{
	return realloc(p, n);
}

void *module_malloc_address(void)
{
	return (void *)malloc;
}
