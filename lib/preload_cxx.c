/* SPDX-License-Identifier: MIT */
/*
 * preload_cxx: operator new and delete in all forms, under the names that the C++ ABI gives them.
 * Programs linked with another allocator's operators (libjemalloc has them) must get these, and
 * everybody else is spared a detour through libstdc++.
 *
 * C has no exceptions, and the library must not need libstdc++: what a failing operator new has to
 * call is looked up in the program. Compiled with -fexceptions, for the exception passes through.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "engine.h"
#include "site.h"
#include "text.h"
#include "util.h"

#define EXPORT __attribute__((visibility("default")))

typedef void (*new_handler)(void);

/* A function of the C++ library, NULL where there is none; a module may have loaded it for itself.
 */
static void *cxx_function(const char *name)
{
	void *function = dlsym(RTLD_DEFAULT, name);
	void *library;

	if (function)
		return function;
	library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
	return library ? dlsym(library, name) : NULL;
}

/* std::get_new_handler() */
static new_handler current_handler(void)
{
	new_handler (*get)(void) = (new_handler(*)(void))cxx_function("_ZSt15get_new_handlerv");

	return get ? get() : NULL;
}

/* Throws std::bad_alloc. */
static void throw_bad_alloc(void)
{
	void (*throw)(void) = (void (*)(void))cxx_function("_ZSt17__throw_bad_allocv");

	if (throw)
		throw();
	say("out of memory in operator new, and no C++ library to throw", NULL);
	abort();
}

static ALWAYS_INLINE void *allocate_once(size_t size, size_t align, uintptr_t caller)
{
	return align > 1 ? engine_memalign(align, size, caller) : engine_malloc(size, caller);
}

/* [new.delete.single]: the handler is called until it makes room, throws, or is gone. */
static NOINLINE void *allocate_again(size_t size, size_t align)
{
	new_handler handler;
	void *p;

	for (;;) {
		handler = current_handler();
		if (!handler)
			throw_bad_alloc();
		handler();
		p = allocate_once(size, align, 0);
		if (p)
			return p;
	}
}

static ALWAYS_INLINE void *allocate(size_t size, size_t align)
{
	void *p = allocate_once(size, align, site_caller());

	return likely(p) ? p : allocate_again(size, align);
}

/* One of libstdc++'s own operators, NULL where it is not loaded. */
static void *cxx_operator(const char *name)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);

	return library ? dlsym(library, name) : NULL;
}

struct nothrow; /* std::nothrow_t */

/*
 * A handler may throw, which a nothrow form has to catch, and C cannot. libstdc++'s form can: it
 * calls the throwing operator, which is ours. Without a handler nothing throws.
 */
static ALWAYS_INLINE void *allocate_nothrow(size_t size, const struct nothrow *n, const char *name)
{
	void *p = allocate_once(size, 1, site_caller());
	void *(*operator_new)(size_t, const struct nothrow *);

	if (likely(p) || !current_handler())
		return p;
	operator_new = (void *(*)(size_t, const struct nothrow *))cxx_operator(name);
	return operator_new ? operator_new(size, n) : NULL;
}

static ALWAYS_INLINE void *allocate_aligned_nothrow(
	size_t size, size_t align, const struct nothrow *n, const char *name)
{
	void *p = allocate_once(size, align, site_caller());
	void *(*operator_new)(size_t, size_t, const struct nothrow *);

	if (likely(p) || !current_handler())
		return p;
	operator_new = (void *(*)(size_t, size_t, const struct nothrow *))cxx_operator(name);
	return operator_new ? operator_new(size, align, n) : NULL;
}

/* The ABI's names: n(ew) w or a(rray), d(e)l(ete) or d(elete) a(rray), then the parameters. */
void *_Znwm(size_t size);
void *_Znam(size_t size);
void *_ZnwmRKSt9nothrow_t(size_t size, const struct nothrow *n);
void *_ZnamRKSt9nothrow_t(size_t size, const struct nothrow *n);
void *_ZnwmSt11align_val_t(size_t size, size_t align);
void *_ZnamSt11align_val_t(size_t size, size_t align);
void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const struct nothrow *n);
void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const struct nothrow *n);
void _ZdlPv(void *p);
void _ZdaPv(void *p);
void _ZdlPvm(void *p, size_t size);
void _ZdaPvm(void *p, size_t size);
void _ZdlPvRKSt9nothrow_t(void *p, const struct nothrow *n);
void _ZdaPvRKSt9nothrow_t(void *p, const struct nothrow *n);
void _ZdlPvSt11align_val_t(void *p, size_t align);
void _ZdaPvSt11align_val_t(void *p, size_t align);
void _ZdlPvmSt11align_val_t(void *p, size_t size, size_t align);
void _ZdaPvmSt11align_val_t(void *p, size_t size, size_t align);
void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *p, size_t align, const struct nothrow *n);
void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *p, size_t align, const struct nothrow *n);

EXPORT void *_Znwm(size_t size)
{
	return allocate(size, 1);
}

EXPORT void *_Znam(size_t size)
{
	return allocate(size, 1);
}

EXPORT void *_ZnwmSt11align_val_t(size_t size, size_t align)
{
	return allocate(size, align);
}

EXPORT void *_ZnamSt11align_val_t(size_t size, size_t align)
{
	return allocate(size, align);
}

EXPORT void *_ZnwmRKSt9nothrow_t(size_t size, const struct nothrow *n)
{
	return allocate_nothrow(size, n, "_ZnwmRKSt9nothrow_t");
}

EXPORT void *_ZnamRKSt9nothrow_t(size_t size, const struct nothrow *n)
{
	return allocate_nothrow(size, n, "_ZnamRKSt9nothrow_t");
}

EXPORT void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const struct nothrow *n)
{
	return allocate_aligned_nothrow(size, align, n, "_ZnwmSt11align_val_tRKSt9nothrow_t");
}

EXPORT void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const struct nothrow *n)
{
	return allocate_aligned_nothrow(size, align, n, "_ZnamSt11align_val_tRKSt9nothrow_t");
}

/* A size or an alignment tells nothing that the page map does not know. */
EXPORT void _ZdlPv(void *p)
{
	engine_free(p);
}

EXPORT void _ZdaPv(void *p)
{
	engine_free(p);
}

EXPORT void _ZdlPvm(void *p, size_t size)
{
	(void)size;
	engine_free(p);
}

EXPORT void _ZdaPvm(void *p, size_t size)
{
	(void)size;
	engine_free(p);
}

EXPORT void _ZdlPvRKSt9nothrow_t(void *p, const struct nothrow *n)
{
	(void)n;
	engine_free(p);
}

EXPORT void _ZdaPvRKSt9nothrow_t(void *p, const struct nothrow *n)
{
	(void)n;
	engine_free(p);
}

EXPORT void _ZdlPvSt11align_val_t(void *p, size_t align)
{
	(void)align;
	engine_free(p);
}

EXPORT void _ZdaPvSt11align_val_t(void *p, size_t align)
{
	(void)align;
	engine_free(p);
}

EXPORT void _ZdlPvmSt11align_val_t(void *p, size_t size, size_t align)
{
	(void)size;
	(void)align;
	engine_free(p);
}

EXPORT void _ZdaPvmSt11align_val_t(void *p, size_t size, size_t align)
{
	(void)size;
	(void)align;
	engine_free(p);
}

EXPORT void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *p, size_t align, const struct nothrow *n)
{
	(void)align;
	(void)n;
	engine_free(p);
}

EXPORT void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *p, size_t align, const struct nothrow *n)
{
	(void)align;
	(void)n;
	engine_free(p);
}
