/* SPDX-License-Identifier: MIT */
/*
 * preload_libc: the functions of libc that are wrapped, and the constructor that starts it all.
 *
 *   dlopen     without RTLD_DEEPBIND, which would bind a module's malloc to libc's
 *   sigaction  for SIGSEGV keeps the program's action behind ours, see fault.h
 *   signal     the same
 *   prctl      refuses to switch off the checks that the heap's protection is, see mode.h, and tells
 *              that the program is about to set up a seccomp filter
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine.h"
#include "fault.h"
#include "mode.h"
#include "os.h"
#include "report.h"
#include "util.h"

#define EXPORT __attribute__((visibility("default")))

extern int __sigaction(int signal, const struct sigaction *action, struct sigaction *old);

typedef void *(*dlopen_function)(const char *path, int flags);
typedef sighandler_t (*signal_function)(int signal, sighandler_t handler);

static dlopen_function real_dlopen;
static signal_function real_signal;

static void find_real(void)
{
	real_dlopen = (dlopen_function)dlsym(RTLD_NEXT, "dlopen");
	real_signal = (signal_function)dlsym(RTLD_NEXT, "signal");
}

/* Before every other constructor, and before there is a second thread. */
__attribute__((constructor(101))) static void start(void)
{
	engine_start();
	fault_init();
	report_init();
	find_real();
}

/*
 * glibc looks at the return address to know whose $ORIGIN and RUNPATH count, so this must be a
 * jump: the last call of a function whose frame is gone, which GCC makes of it at -O2
 * (bats/110-break.bats holds it to that).
 */
EXPORT void *dlopen(const char *path, int flags)
{
	if (unlikely(!real_dlopen))
		find_real();
	return real_dlopen(path, flags & ~RTLD_DEEPBIND);
}

EXPORT int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	if (signal == SIGSEGV)
		return fault_sigaction(action, old);
	return __sigaction(signal, action, old);
}

/* BSD semantics, as glibc has them: the handler stays and calls are restarted. */
EXPORT sighandler_t signal(int signal, sighandler_t handler)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;

	if (signal != SIGSEGV) {
		if (unlikely(!real_signal))
			find_real();
		return real_signal(signal, handler);
	}
	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	sigaddset(&action.sa_mask, SIGSEGV);
	return fault_sigaction(&action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

EXPORT int prctl(int option, ...)
{
	unsigned long args[4];
	va_list list;

	va_start(list, option);
	for (unsigned i = 0; i < 4; i++)
		args[i] = va_arg(list, unsigned long);
	va_end(list);
	if (unlikely(option == PR_SET_TAGGED_ADDR_CTRL) && !mode_keeps_checks(args[0])) {
		errno = EPERM;
		return -1;
	}
	/* Who is not privileged has to do the first before the second, or before seccomp(2). */
	if (unlikely(option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP))
		os_expect_filter();
	return (int)syscall(SYS_prctl, option, args[0], args[1], args[2], args[3]);
}
