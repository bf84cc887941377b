/* SPDX-License-Identifier: MIT */
/*
 * fault: the SIGSEGV handler, and what a bad pointer means.
 *
 * The handler decides whether the address lies in lease space. If not, the fault is the program's:
 * its own handler gets it as the kernel would have delivered it, or the default action happens.
 * Programs install handlers later than we do, so sigaction(2) is wrapped: for SIGSEGV it keeps the
 * program's action here and leaves ours in the kernel.
 *
 * A fault of ours is analysed, reported (report.h) and then left to the default action, so that
 * the core dump and the service manager see what they always see. Because tags are a sequence the
 * analysis is exact: the tag of a pointer says which life of the chunk it belongs to.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Installs the handler. Once, before the program runs. */
void fault_init(void);

/* Gives the calling thread a signal stack if it has none; taken back by fault_thread_end(). */
void fault_thread_begin(void);
void fault_thread_end(void);

/* sigaction(2) for SIGSEGV, as the program sees it. */
int fault_sigaction(const struct sigaction *action, struct sigaction *ret_old);

/* Reports that the program passed a bad pointer to @call ("free", "realloc"), and aborts. */
_Noreturn void fault_bad_free(const void *p, const char *call);
