/* SPDX-License-Identifier: MIT */
#include "fault.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "history.h"
#include "lease.h"
#include "meta.h"
#include "report.h"
#include "space.h"
#include "stats.h"
#include "tag.h"

#ifndef SEGV_MTEAERR
#define SEGV_MTEAERR 8
#endif
#ifndef SEGV_MTESERR
#define SEGV_MTESERR 9
#endif
#ifndef SA_EXPOSE_TAGBITS
#define SA_EXPOSE_TAGBITS 0x800
#endif
#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

enum {
	STACK_BYTES = 56 << 10, /* of a signal stack, on top of what the kernel's frame takes */
};

/* libc's own, behind our wrapper. */
extern int __sigaction(int signal, const struct sigaction *action, struct sigaction *old);

/* The program's action for SIGSEGV, guarded by a lock that a signal handler may take, too. */
static struct {
	int locked;
	pid_t owner; /* whose dispositions these are: a child of vfork(2) has others */
	struct sigaction action;
} program;

static pid_t reporting;             /* the thread that reports, or 0 */
static __thread sigjmp_buf *rescue; /* where a fault in the report itself goes on */
static __thread void *own_stack;    /* the signal stack that fault_thread_begin() made */

/* --- what happened --- */

enum access {
	ACCESS_UNKNOWN,
	ACCESS_READ,
	ACCESS_WRITE,
};

static const char *const access_names[] = {
	[ACCESS_UNKNOWN] = "unknown", [ACCESS_READ] = "read", [ACCESS_WRITE] = "write"};

#if defined(__x86_64__)
static uintptr_t context_pc(const ucontext_t *uc)
{
	return (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
}

/* Bit 1 of the page fault's error code; Intel SDM vol. 3, 4.7. */
static enum access context_access(const ucontext_t *uc)
{
	return uc->uc_mcontext.gregs[REG_ERR] & 2 ? ACCESS_WRITE : ACCESS_READ;
}
#elif defined(__aarch64__)
static uintptr_t context_pc(const ucontext_t *uc)
{
	return uc->uc_mcontext.pc;
}

/* ESR_EL1 from its record in the frame; WnR is bit 6 of a data abort. */
static enum access context_access(const ucontext_t *uc)
{
	const unsigned char *at = (const unsigned char *)uc->uc_mcontext.__reserved;
	const unsigned char *end = at + sizeof(uc->uc_mcontext.__reserved);
	const uint32_t esr_magic = 0x45535201;
	struct {
		uint32_t magic, size;
		uint64_t esr;
	} record;

	while (at + sizeof(record) <= end) {
		memcpy(&record, at, sizeof(record));
		if (record.magic == esr_magic)
			return record.esr & 1 << 6 ? ACCESS_WRITE : ACCESS_READ;
		if (!record.magic || !record.size)
			break;
		at += record.size;
	}
	return ACCESS_UNKNOWN;
}
#else
static uintptr_t context_pc(const ucontext_t *uc)
{
	(void)uc;
	return 0;
}

static enum access context_access(const ucontext_t *uc)
{
	(void)uc;
	return ACCESS_UNKNOWN;
}
#endif

/* The chunk that a report is about, and where in it. */
static void name_chunk(struct report *r, const struct lease *l, size_t index)
{
	r->has_chunk = true;
	r->chunk = lease_chunk(l, index);
	r->size = l->chunk_size;
	r->offset = (ptrdiff_t)(r->address - r->chunk);
}

static void name_lives(struct report *r, const struct lease *l, size_t index, unsigned life)
{
	unsigned ended = l->life[index] & LIFE_COUNT;
	bool live = l->life[index] & LIFE_LIVE;

	r->has_lives = true;
	r->lives = l->lives;
	r->life = life + 1;
	r->current_life = ended + (live ? 1 : 0);
	r->freed = life < ended;
}

static bool is_live(const struct lease *l, size_t index)
{
	return l->life[index] & LIFE_LIVE;
}

/* The live neighbour whose tag the pointer has: what an overflow out of it would look like. */
static bool find_overflown(
	const struct lease *l, size_t index, uintptr_t address, unsigned tag, size_t *ret_index)
{
	bool low = address - lease_chunk(l, index) < l->chunk_size / 2;
	/* The nearer side first. */
	const size_t candidates[] = {low ? index - 1 : index + 1, low ? index + 1 : index - 1};

	for (size_t i = 0; i < 2; i++) {
		size_t c = candidates[i];

		if (c < l->n_chunks && is_live(l, c) && lease_tag(l, c, l->life[c]) == tag) {
			*ret_index = c;
			return true;
		}
	}
	return false;
}

/* By the pointer's tag: which life of which chunk did it belong to? */
static void judge_tag(struct report *r, const struct lease *l, size_t index)
{
	unsigned ended = l->life[index] & LIFE_COUNT;
	unsigned life = tag_life(lease_chunk(l, index), index, r->pointer_tag);
	bool near = r->address - lease_chunk(l, index) < 2 * MTE_GRANULE;
	size_t other;

	if (r->pointer_tag == TAG_DEAD) {
		r->kind = "untagged-pointer";
		name_chunk(r, l, index);
		return;
	}
	/* An old tag of this chunk's own, unless it looks even more like its neighbour's overflow.
	 */
	if (find_overflown(l, index, r->address, r->pointer_tag, &other) &&
		(life >= ended || near)) {
		r->kind = "overflow";
		name_chunk(r, l, other);
		name_lives(r, l, other, l->life[other] & LIFE_COUNT);
		return;
	}
	r->kind = life < ended ? "use-after-free" : "forged-pointer";
	name_chunk(r, l, index);
	if (life < ended)
		name_lives(r, l, index, life);
}

/* Without tags: the chunk is exhausted, or the address is none that was ever handed out. */
static void judge_address(struct report *r, const struct lease *l, size_t index)
{
	unsigned ended = l->life[index] & LIFE_COUNT;

	name_chunk(r, l, index);
	r->kind = ended ? "use-after-free" : "forged-pointer";
	if (ended)
		name_lives(r, l, index, ended - 1);
}

/* Beside the chunks of a lease, where nothing ever is; @index is the nearest. */
static void judge_slack(struct report *r, const struct lease *l, size_t index)
{
	unsigned ended = l->life[index] & LIFE_COUNT;

	name_chunk(r, l, index);
	if (is_live(l, index) || ended)
		name_lives(r, l, index, is_live(l, index) ? ended : ended - 1);
	r->kind = is_live(l, index) ? "overflow" : ended ? "use-after-free" : "forged-pointer";
}

static void judge(struct report *r, bool tag_fault)
{
	const struct lease *l;
	size_t index;

	if (!space_covers(r->address)) {
		r->kind = "forged-pointer";
		r->detail = "an address that was never handed out";
		return;
	}
	l = space_lease_at(r->address);
	if (!l && space_block_at(r->address)) {
		r->kind = "forged-pointer";
		r->detail = "an address that was never handed out";
		return;
	}
	if (!l || l == &lease_forgotten) {
		r->kind = "retired-lease";
		r->detail = "the object that was there is freed and forgotten";
		return;
	}
	index = lease_index_around(l, r->address);
	if (r->address < l->base || r->address >= lease_chunk(l, index) + l->chunk_size) {
		judge_slack(r, l, index);
		return;
	}
	if (tags_on() && !l->untagged) {
		r->has_tags = true;
		r->memory_tag = tag_fault ? mte_memory_tag(r->address) : TAG_DEAD;
		judge_tag(r, l, index);
	} else {
		judge_address(r, l, index);
	}
}

/* A pointer that cannot be freed. */
static void judge_free(struct report *r)
{
	const struct lease *l;
	unsigned ended, life;
	size_t index;

	r->kind = "invalid-free";
	if (!space_covers(r->address)) {
		r->detail = "not a heap pointer of this process";
		return;
	}
	l = space_lease_at(r->address);
	if (!l && space_block_at(r->address)) {
		r->detail = "an address that was never handed out";
		return;
	}
	if (!l || l == &lease_forgotten) {
		r->kind = "double-free";
		r->detail = "the object that was there is freed and forgotten";
		return;
	}
	if (tags_on()) {
		r->has_tags = true;
		r->memory_tag = l->untagged ? TAG_DEAD : mte_memory_tag(r->address);
	}
	if (!lease_index(l, r->address, &index)) {
		name_chunk(r, l, lease_index_around(l, r->address));
		r->detail = "not where an object begins";
		return;
	}
	name_chunk(r, l, index);
	ended = l->life[index] & LIFE_COUNT;
	life = tags_on() && r->pointer_tag ? tag_life(r->chunk, index, r->pointer_tag) : ended - 1;
	if (tags_on() && !r->pointer_tag) {
		r->kind = "untagged-pointer";
	} else if (ended && life < ended) {
		r->kind = "double-free";
		name_lives(r, l, index, life);
	} else {
		r->kind = tags_on() && life != ended ? "forged-pointer" : "invalid-free";
		r->detail = "an object that was never handed out";
	}
}

/* --- reporting --- */

/* One report at a time; a thread that faults meanwhile waits for the process to end. */
static bool report_begin(void)
{
	pid_t tid = (pid_t)syscall(SYS_gettid), none = 0;

	if (__atomic_compare_exchange_n(
		    &reporting, &none, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return true;
	if (none == tid)
		return false; /* a fault in our own report */
	for (;;)
		pause();
}

/*
 * In a child of vfork(2) or fork(2) the process that ends is not the one whose memory says who
 * reports.
 */
static void report_end(void)
{
	if (program.owner && getpid() != program.owner)
		__atomic_store_n(&reporting, 0, __ATOMIC_RELEASE);
}

/* The analysis and the unwinder read memory that the fault may have spoiled. */
static void report_guarded(struct report *r, void (*analyse)(struct report *r))
{
	sigjmp_buf here;
	sigset_t segv;

	sigemptyset(&segv);
	sigaddset(&segv, SIGSEGV);
	rescue = &here;
	pthread_sigmask(SIG_UNBLOCK, &segv, NULL);
	if (analyse && sigsetjmp(here, 0) == 0)
		analyse(r);
	if (sigsetjmp(here, 0) == 0)
		report_frames(r);
	if (sigsetjmp(here, 0) == 0)
		report_fault(r);
	rescue = NULL;
	pthread_sigmask(SIG_BLOCK, &segv, NULL);
}

static void analyse_access(struct report *r)
{
	judge(r, r->si_code == SEGV_MTESERR);
}

_Noreturn void fault_bad_free(const void *p, const char *call)
{
	struct report r = {
		.kind = "invalid-free",
		.access = call,
		.has_address = true,
		.address = mte_untag((uintptr_t)p),
		.pointer_tag = mte_pointer_tag((uintptr_t)p),
	};

	if (report_begin())
		report_guarded(&r, judge_free);
	report_end();
	abort();
}

/* --- the handler --- */

/* Pages of a live object that trap without a tag were made to by the program: mprotect(2). */
static bool in_live_object(uintptr_t address)
{
	const struct lease *l = space_covers(address) ? space_lease_at(address) : NULL;
	size_t index;

	if (!l || l == &lease_forgotten)
		return false;
	index = lease_index_around(l, address);
	return is_live(l, index) && address >= lease_chunk(l, index) &&
	       address < lease_chunk(l, index) + l->chunk_size;
}

static bool is_ours(const siginfo_t *si)
{
	uintptr_t address = mte_untag((uintptr_t)si->si_addr);

	if (si->si_code == SEGV_MTEAERR)
		return tags_on();
	return si->si_code > 0 && si->si_code != SI_KERNEL && space.size &&
	       address - space.base < space.size &&
	       (si->si_code == SEGV_MTESERR || !in_live_object(address));
}

static void default_action(int signal)
{
	struct sigaction action = {.sa_handler = SIG_DFL};

	__sigaction(signal, &action, NULL);
}

/* The default action for a fault of ours: the instruction again, or the signal again. */
static void die(int signal, siginfo_t *si)
{
	report_end();
	default_action(signal);
	if (si->si_code == SEGV_MTEAERR)
		syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), signal, si);
}

static void report_access(int signal, siginfo_t *si, const ucontext_t *uc)
{
	bool async = si->si_code == SEGV_MTEAERR;
	struct report r = {
		.kind = "asynchronous-fault",
		.access = async ? "unknown" : access_names[context_access(uc)],
		.has_address = !async,
		.address = mte_untag((uintptr_t)si->si_addr),
		.pointer_tag = mte_pointer_tag((uintptr_t)si->si_addr),
		.si_code = si->si_code,
		.pc = context_pc(uc),
	};

	if (async)
		r.detail = "noticed later; mode=sync tells where";
	if (report_begin())
		report_guarded(&r, async ? NULL : analyse_access);
	die(signal, si);
}

static void program_lock(void)
{
	while (__atomic_exchange_n(&program.locked, 1, __ATOMIC_ACQUIRE))
		;
}

static void program_unlock(void)
{
	__atomic_store_n(&program.locked, 0, __ATOMIC_RELEASE);
}

/* A fault of the program's own goes where it would have gone without us. */
static void forward(int signal, siginfo_t *si, void *context)
{
	struct sigaction action;
	sigset_t segv;

	program_lock();
	action = program.action;
	if (action.sa_flags & SA_RESETHAND)
		program.action.sa_handler = SIG_DFL;
	program_unlock();
	if (action.sa_handler == SIG_IGN && si->si_code <= 0)
		return;
	if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
		default_action(signal);
		/* Sent by kill(2), it would not come again by itself. */
		if (si->si_code <= 0)
			syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), signal,
				si);
		return;
	}
	/* Our action is SA_NODEFER; the rest of the mask is the program's own. */
	if (!(action.sa_flags & SA_NODEFER)) {
		sigemptyset(&segv);
		sigaddset(&segv, SIGSEGV);
		pthread_sigmask(SIG_BLOCK, &segv, NULL);
	}
	if (!(action.sa_flags & SA_EXPOSE_TAGBITS))
		si->si_addr = (void *)mte_untag((uintptr_t)si->si_addr);
	if (action.sa_flags & SA_SIGINFO)
		action.sa_sigaction(signal, si, context);
	else
		action.sa_handler(signal);
}

static void on_fault(int signal, siginfo_t *si, void *context)
{
	int saved = errno;

	if (rescue)
		siglongjmp(*rescue, 1);
	if (is_ours(si))
		report_access(signal, si, context);
	else
		forward(signal, si, context);
	errno = saved;
}

/*
 * Ours in the kernel, with the program's mask and flags as far as they matter to it. A handler of
 * the program's that wants no signal stack gets none, nor does the report then.
 */
static int install(const struct sigaction *theirs)
{
	bool handler = theirs->sa_handler != SIG_DFL && theirs->sa_handler != SIG_IGN;
	struct sigaction ours = {
		.sa_sigaction = on_fault,
		.sa_mask = theirs->sa_mask,
		.sa_flags = SA_SIGINFO | SA_NODEFER | SA_EXPOSE_TAGBITS |
	                    (theirs->sa_flags & SA_RESTART) |
	                    (handler ? theirs->sa_flags & SA_ONSTACK : SA_ONSTACK),
	};

	return __sigaction(SIGSEGV, &ours, NULL);
}

int fault_sigaction(const struct sigaction *action, struct sigaction *ret_old)
{
	struct sigaction old;
	sigset_t all, before;
	int r = 0;

	/* Not started, or in a child of vfork(2), which must not change what its parent remembers.
	 */
	if (!program.owner || program.owner != getpid())
		return __sigaction(SIGSEGV, action, ret_old);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	program_lock();
	old = program.action;
	if (action) {
		program.action = *action;
		r = install(action);
	}
	program_unlock();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret_old)
		*ret_old = old;
	return r;
}

/* --- signal stacks --- */

static size_t stack_bytes(void)
{
	return min_size(round_up(getauxval(AT_MINSIGSTKSZ) + STACK_BYTES, 4096), META_MAX);
}

void fault_thread_begin(void)
{
	stack_t stack;

	if (!program.owner || own_stack || sigaltstack(NULL, &stack) < 0 ||
		!(stack.ss_flags & SS_DISABLE))
		return;
	own_stack = meta_alloc(stack_bytes());
	if (!own_stack)
		return;
	stack = (stack_t){.ss_sp = own_stack, .ss_size = stack_bytes()};
	sigaltstack(&stack, NULL);
}

void fault_thread_end(void)
{
	stack_t stack;

	if (!own_stack || sigaltstack(NULL, &stack) < 0)
		return;
	/* The program may have put its own in the place, or be on ours right now. */
	if (stack.ss_sp == own_stack) {
		stack = (stack_t){.ss_flags = SS_DISABLE};
		if (sigaltstack(&stack, NULL) < 0)
			return;
	}
	meta_free(own_stack, stack_bytes());
	own_stack = NULL;
}

static void fault_fork_child(void)
{
	if (program.owner)
		program.owner = getpid();
	program.locked = 0;
	reporting = 0;
}

void fault_init(void)
{
	if (__sigaction(SIGSEGV, NULL, &program.action) < 0 || install(&program.action) < 0)
		return;
	program.owner = getpid();
	pthread_atfork(NULL, NULL, fault_fork_child);
	fault_thread_begin();
}
