/* SPDX-License-Identifier: MIT */
/*
 * Programs that handle SIGSEGV themselves (JVM, Mono, PostgreSQL, Go) must not notice the library:
 * their faults reach their handlers as the kernel would bring them, and sigaction tells of nothing
 * but what the program set. The cases heap-* end by a fault in the heap, which the caller awaits.
 */
#include "check.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

static char *forbidden; /* a page of our own that nobody may touch */
static sigjmp_buf back;
static volatile sig_atomic_t calls, code, blocked_usr1, blocked_segv, on_alternate;
static void *volatile fault_address;
static void *volatile fault_pc;
static char *alternate_start, *alternate_end;

__attribute__((constructor)) static void map_forbidden(void)
{
	forbidden = (char *)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(forbidden != MAP_FAILED);
}

/* Read where nobody may: the handler gets us out. */
static int faults(void)
{
	if (sigsetjmp(back, 1) == 0) {
		(void)*(volatile char *)hide(forbidden + 123);
		return 0;
	}
	return 1;
}

static void set(void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags};

	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGUSR1);
	CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
}

static void note(int signal, siginfo_t *info, void *context)
{
	char here;
	sigset_t mask;

	CHECK(signal == SIGSEGV);
	calls++;
	code = info->si_code;
	fault_address = info->si_addr;
	CHECK(context);
	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
	blocked_usr1 = sigismember(&mask, SIGUSR1);
	blocked_segv = sigismember(&mask, SIGSEGV);
	on_alternate = &here >= alternate_start && &here < alternate_end;
}

static void recover(int signal, siginfo_t *info, void *context)
{
	note(signal, info, context);
	siglongjmp(back, 1);
}

/* How a child ends that runs RUN: what waitpid says. */
static int status_of(void (*run)(void))
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		run();
		_exit(99);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

static void touch_forbidden(void)
{
	(void)*(volatile char *)hide(forbidden);
}

/* Before the program sets anything there is nothing set. */
static void query_default(void)
{
	struct sigaction seen;

	memset(&seen, 0xff, sizeof(seen));
	CHECK(sigaction(SIGSEGV, NULL, &seen) == 0);
	CHECK(seen.sa_handler == SIG_DFL, "handler %p", (void *)seen.sa_handler);
	CHECK(!(seen.sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESETHAND)), "flags %#x",
		(unsigned)seen.sa_flags);
	CHECK(signal(SIGSEGV, SIG_DFL) == SIG_DFL);
}

static void plain_handler(int signal)
{
	CHECK(signal == SIGSEGV);
	calls++;
	siglongjmp(back, 1);
}

/* What was set is what sigaction and signal give back, flags and mask included. */
static void query_own(void)
{
	struct sigaction seen, other = {.sa_handler = plain_handler, .sa_flags = SA_NODEFER};

	set(recover, SA_SIGINFO | SA_RESTART | SA_ONSTACK);
	CHECK(sigaction(SIGSEGV, NULL, &seen) == 0);
	CHECK(seen.sa_sigaction == recover);
	CHECK((seen.sa_flags & 0x7fffffff & ~0x04000000) == (SA_SIGINFO | SA_RESTART | SA_ONSTACK),
		"flags %#x", (unsigned)seen.sa_flags);
	CHECK(sigismember(&seen.sa_mask, SIGUSR1) == 1 && sigismember(&seen.sa_mask, SIGUSR2) == 0);
	CHECK(sigaction(SIGSEGV, &other, &seen) == 0);
	CHECK(seen.sa_sigaction == recover && sigismember(&seen.sa_mask, SIGUSR1) == 1);
	CHECK(sigaction(SIGSEGV, NULL, &seen) == 0);
	CHECK(seen.sa_handler == plain_handler && !(seen.sa_flags & SA_SIGINFO));
	CHECK(seen.sa_flags & SA_NODEFER);
	CHECK(signal(SIGSEGV, SIG_IGN) == plain_handler);
	CHECK(signal(SIGSEGV, plain_handler) == SIG_IGN);
	CHECK(signal(SIGSEGV, SIG_DFL) == plain_handler);
}

/* The kernel's own information arrives: address, code, context; SIGSEGV and the mask are blocked.
 */
static void own_fault(void)
{
	set(recover, SA_SIGINFO);
	for (int i = 1; i <= 100; i++) {
		CHECK(faults(), "nothing happened");
		CHECK(calls == i, "%d calls, not %d", (int)calls, i);
		CHECK(fault_address == forbidden + 123, "address %p", fault_address);
		CHECK(code == SEGV_ACCERR, "code %d", (int)code);
		CHECK(blocked_usr1 && blocked_segv, "mask");
	}
	munmap(forbidden, 4096);
	CHECK(faults() && code == SEGV_MAPERR && fault_address == forbidden + 123);
}

/* NULL is not ours either. */
static void own_null(void)
{
	set(recover, SA_SIGINFO);
	if (sigsetjmp(back, 1) == 0) {
		*(volatile char *)hide(NULL) = 1;
		CHECK(0, "a write to NULL did not fault");
	}
	CHECK(calls == 1 && fault_address == NULL && code == SEGV_MAPERR);
}

static void own_signal(void)
{
	CHECK(signal(SIGSEGV, plain_handler) == SIG_DFL);
	CHECK(faults() && faults() && calls == 2, "%d calls", (int)calls);
}

static void move_on(int signal, siginfo_t *info, void *context)
{
	note(signal, info, context);
	CHECK(mprotect(forbidden, 4096, PROT_READ | PROT_WRITE) == 0);
}

/* A handler that mends the cause and returns: the access is made again and succeeds. */
static void own_mended(void)
{
	set(move_on, SA_SIGINFO | SA_ONSTACK);
	*(volatile char *)hide(forbidden) = 5;
	CHECK(calls == 1 && forbidden[0] == 5);
}

/* The handler changes the interrupted context, as a JVM does to continue elsewhere. */
static void skip_instruction(int signal, siginfo_t *info, void *context)
{
	ucontext_t *user = (ucontext_t *)context;

	note(signal, info, context);
#ifdef __x86_64__
	user->uc_mcontext.gregs[REG_RIP] = (greg_t)fault_pc;
#elif defined __aarch64__
	user->uc_mcontext.pc = (uintptr_t)fault_pc;
#endif
}

static void own_continued_elsewhere(void)
{
	set(skip_instruction, SA_SIGINFO);
	fault_pc = &&after;
	/* An indirect jump, so that the compiler keeps the label where it is. */
	if (hide_size(calls))
		goto *hide(&&after);
	(void)*(volatile char *)hide(forbidden);
	CHECK(0, "the context was not changed");
after:
	CHECK(calls == 1, "%d calls", (int)calls);
}

/* SA_RESETHAND: one call, then the default action. */
static void reset_twice(void)
{
	struct sigaction seen;

	set(recover, SA_SIGINFO | SA_RESETHAND);
	CHECK(faults() && calls == 1);
	CHECK(sigaction(SIGSEGV, NULL, &seen) == 0 && seen.sa_handler == SIG_DFL);
	faults();
}

static void own_resethand(void)
{
	int status = status_of(reset_twice);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %#x", (unsigned)status);
}

static void fault_again(int signal, siginfo_t *info, void *context)
{
	note(signal, info, context);
	if (calls < 3)
		touch_forbidden();
	siglongjmp(back, 1);
}

/* SA_NODEFER: a fault in the handler calls the handler. */
static void own_nodefer(void)
{
	set(fault_again, SA_SIGINFO | SA_NODEFER);
	CHECK(faults());
	CHECK(calls == 3 && !blocked_segv && blocked_usr1, "%d calls", (int)calls);
}

static void nested_unwanted(void)
{
	set(fault_again, SA_SIGINFO);
	faults();
}

/* Without it, a fault in the handler is the end. */
static void own_nested(void)
{
	int status = status_of(nested_unwanted);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %#x", (unsigned)status);
}

static void use_alternate(void)
{
	static char memory[256 * 1024];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};

	alternate_start = memory;
	alternate_end = memory + sizeof(memory);
	CHECK(sigaltstack(&stack, NULL) == 0);
}

/* The program's alternate stack is used if it says SA_ONSTACK, and only then. */
static void own_alternate_stack(void)
{
	stack_t seen;

	use_alternate();
	set(recover, SA_SIGINFO | SA_ONSTACK);
	CHECK(faults() && on_alternate, "not on the program's alternate stack");
	CHECK(sigaltstack(NULL, &seen) == 0 && seen.ss_sp == alternate_start);
}

static void own_normal_stack(void)
{
	use_alternate();
	set(recover, SA_SIGINFO);
	CHECK(faults() && !on_alternate,
		"on the alternate stack, though SA_ONSTACK was not asked for");
}

static size_t recurse(size_t depth)
{
	volatile char frame[1000];

	frame[0] = (char)depth;
	return depth ? recurse(depth + 1) + (size_t)frame[0] : 0;
}

static void *overflow_stack(void *arg)
{
	stack_t stack = {.ss_sp = malloc(64 * KIB), .ss_size = 64 * KIB};

	CHECK(sigaltstack(&stack, NULL) == 0);
	if (sigsetjmp(back, 1) == 0) {
		recurse(hide_size(1));
		CHECK(0, "the stack has no end");
	}
	stack.ss_flags = SS_DISABLE;
	CHECK(sigaltstack(&stack, NULL) == 0);
	free(stack.ss_sp);
	return arg;
}

/* A stack overflow is recovered from, on an alternate stack that lies in the heap. */
static void own_stack_overflow(void)
{
	pthread_t thread;

	set(recover, SA_SIGINFO | SA_ONSTACK);
	for (int i = 1; i <= 3; i++) {
		CHECK(pthread_create(&thread, NULL, overflow_stack, NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(calls == i, "%d calls, code %d", (int)calls, (int)code);
	}
}

static void default_again(void)
{
	set(recover, SA_SIGINFO);
	CHECK(faults());
	CHECK(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
	touch_forbidden();
}

static void ignore_and_fault(void)
{
	CHECK(signal(SIGSEGV, SIG_IGN) == SIG_DFL);
	CHECK(raise(SIGSEGV) == 0 && kill(getpid(), SIGSEGV) == 0);
	touch_forbidden();
}

static void no_handler(void)
{
	touch_forbidden();
}

static void raise_without_handler(void)
{
	raise(SIGSEGV);
}

/* The default action is death by SIGSEGV, whatever came before; SIG_IGN helps only against kill. */
static void own_default(void)
{
	static void (*const runs[])(void) = {
		no_handler, raise_without_handler, default_again, ignore_and_fault};

	for (unsigned i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		int status = status_of(runs[i]);

		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "%u: status %#x", i,
			(unsigned)status);
	}
}

/* A signal that somebody sent is the program's, even if it looks like an address of ours. */
static void own_sent(void)
{
	union sigval value = {.sival_ptr = hide(malloc(100))};

	set(note, SA_SIGINFO);
	CHECK(raise(SIGSEGV) == 0 && calls == 1 && code == SI_TKILL, "code %d", (int)code);
	CHECK(kill(getpid(), SIGSEGV) == 0 && calls == 2 && code == SI_USER, "code %d", (int)code);
	CHECK(sigqueue(getpid(), SIGSEGV, value) == 0 && calls == 3 && code == SI_QUEUE, "code %d",
		(int)code);
	free(value.sival_ptr);
}

static char *guarded;

static void unguard(int signal, siginfo_t *info, void *context)
{
	note(signal, info, context);
	CHECK(mprotect(guarded, 4096, PROT_READ | PROT_WRITE) == 0);
}

/* A page of a live object that the program itself made read-only, to learn who writes to it. */
static void own_heap(void)
{
	char *p = (char *)hide(aligned_alloc(4096, 16 * KIB));

	set(unguard, SA_SIGINFO);
	memset(p, 1, 16 * KIB);
	guarded = p + 8 * KIB;
	CHECK(mprotect(guarded, 4096, PROT_READ) == 0);
	memset(p, 2, 8 * KIB + 100);
	CHECK(calls == 1 && code == SEGV_ACCERR, "%d calls, code %d", (int)calls, (int)code);
	CHECK(p[0] == 2 && p[8 * KIB + 99] == 2 && p[8 * KIB + 100] == 1);
	free(p);
}

static void *fault_in_thread(void *arg)
{
	touch_forbidden();
	return arg;
}

static void exit_thread(int signal, siginfo_t *info, void *context)
{
	note(signal, info, context);
	pthread_exit((void *)5);
}

/* Every thread's faults reach the handler, and a handler may end its thread. */
static void own_thread(void)
{
	pthread_t thread;
	void *result;

	set(exit_thread, SA_SIGINFO);
	for (int i = 1; i <= 10; i++) {
		CHECK(pthread_create(&thread, NULL, fault_in_thread, NULL) == 0);
		CHECK(pthread_join(thread, &result) == 0);
		CHECK(result == (void *)5 && calls == i);
	}
}

static void fault_in_child(void)
{
	CHECK(faults() && calls == 1);
	_exit(3);
}

static void own_fork(void)
{
	int status;

	set(recover, SA_SIGINFO);
	status = status_of(fault_in_child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3, "status %#x", (unsigned)status);
}

/* A handler that was set past the C library, as Go does. */
static void own_system_call(void)
{
#ifdef __x86_64__
	/* The kernel wants a restorer here; libc's is in the action that it set for another signal.
	 */
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		unsigned long mask;
	} raw;
	struct sigaction any = {.sa_sigaction = recover, .sa_flags = SA_SIGINFO};

	CHECK(sigaction(SIGUSR2, &any, NULL) == 0);
	CHECK(syscall(SYS_rt_sigaction, SIGUSR2, NULL, &raw, 8) == 0);
	CHECK(syscall(SYS_rt_sigaction, SIGSEGV, &raw, NULL, 8) == 0);
	CHECK(faults() && calls == 1 && fault_address == forbidden + 123);
#else
	SKIP("written for x86-64");
#endif
}

/* Other signals, and wrong ones, are as ever. */
static void other_signals(void)
{
	struct sigaction action = {.sa_handler = SIG_IGN}, seen;

	CHECK(sigaction(SIGKILL, &action, NULL) == -1 && errno == EINVAL);
	CHECK(sigaction(0, &action, NULL) == -1 && errno == EINVAL);
	CHECK(sigaction(65, &action, NULL) == -1 && errno == EINVAL);
	CHECK(sigaction(-1, NULL, &seen) == -1 && errno == EINVAL);
	CHECK(signal(SIGKILL, SIG_IGN) == SIG_ERR && errno == EINVAL);
	CHECK(signal(1000, SIG_IGN) == SIG_ERR && errno == EINVAL);
	CHECK(signal(SIGSEGV, SIG_ERR) == SIG_ERR && errno == EINVAL);
	CHECK(sigaction(SIGUSR1, &action, &seen) == 0 && seen.sa_handler == SIG_DFL);
	CHECK(sigaction(SIGUSR1, NULL, &seen) == 0 && seen.sa_handler == SIG_IGN);
	CHECK(signal(SIGBUS, plain_handler) == SIG_DFL && signal(SIGBUS, SIG_DFL) == plain_handler);
}

static void *use_after_free(void *arg)
{
	char *p = (char *)hide(malloc(8 * MIB));

	memset(p, 1, 8 * MIB);
	free(p);
	(void)*(volatile char *)hide(p + 4 * MIB);
	return arg;
}

/* None of these may hide a fault in the heap; if one goes on, the caller sees that it did. */
static void came_back(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	_exit(42);
}

static void heap_handler(void)
{
	set(came_back, SA_SIGINFO);
	use_after_free(NULL);
}

static void heap_handler_on_stack(void)
{
	use_alternate();
	set(came_back, SA_SIGINFO | SA_ONSTACK | SA_NODEFER);
	use_after_free(NULL);
}

static void heap_recover(void)
{
	set(recover, SA_SIGINFO | SA_ONSTACK);
	if (sigsetjmp(back, 1) == 0)
		use_after_free(NULL);
	_exit(42);
}

static void heap_ignore(void)
{
	CHECK(signal(SIGSEGV, SIG_IGN) == SIG_DFL);
	use_after_free(NULL);
}

static void heap_default(void)
{
	CHECK(signal(SIGSEGV, plain_handler) == SIG_DFL &&
		signal(SIGSEGV, SIG_DFL) == plain_handler);
	use_after_free(NULL);
}

static void heap_after_own(void)
{
	set(recover, SA_SIGINFO);
	CHECK(faults() && faults());
	set(came_back, SA_SIGINFO);
	use_after_free(NULL);
}

static void heap_after_resethand(void)
{
	set(recover, SA_SIGINFO | SA_RESETHAND);
	CHECK(faults());
	use_after_free(NULL);
}

static void heap_fault(int signal, siginfo_t *info, void *context)
{
	static int entered;

	(void)signal, (void)info, (void)context;
	if (entered++)
		_exit(42);
	use_after_free(NULL);
}

/* In the program's handler for a fault of its own. */
static void heap_in_handler(void)
{
	set(heap_fault, SA_SIGINFO | SA_NODEFER);
	touch_forbidden();
}

static void heap_thread(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, use_after_free, NULL) == 0);
	pthread_join(thread, NULL);
}

/* A stack of its own, small and in the heap, as coroutine libraries make them. */
static void heap_small_stack(void)
{
	static ucontext_t here, there;

	CHECK(getcontext(&there) == 0);
	there.uc_stack.ss_size = 24 * KIB;
	there.uc_stack.ss_sp = malloc(there.uc_stack.ss_size);
	there.uc_link = &here;
	makecontext(&there, (void (*)(void))use_after_free, 1, NULL);
	CHECK(swapcontext(&here, &there) == 0);
}

/* With SIGSEGV blocked no handler runs: there is no report, but death it is. */
static void heap_blocked(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGSEGV);
	CHECK(sigprocmask(SIG_BLOCK, &mask, NULL) == 0);
	use_after_free(NULL);
}

static void run_forked(void (*run)(void))
{
	int status = status_of(run);

	if (WIFSIGNALED(status))
		kill(getpid(), WTERMSIG(status));
	_exit(WEXITSTATUS(status));
}

static void heap_fault_here(void)
{
	use_after_free(NULL);
}

static void heap_fork(void)
{
	run_forked(heap_fault_here);
}

/* The child is in its parent's memory: its end must not look like the parent's. */
static void heap_vfork(void)
{
	char *p = (char *)hide(malloc(8 * MIB));
	int status;
	pid_t pid;

	memset(p, 1, 8 * MIB);
	free(p);
	pid = vfork();
	CHECK(pid >= 0);
	if (pid == 0) {
		(void)*(volatile char *)hide(p + 4 * MIB);
		_exit(42);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %#x", (unsigned)status);
	(void)*(volatile char *)hide(p + 4 * MIB);
}

/* For some cases the handler was set before the library's constructor could set its own. */
static void before_constructors(int argc, char **argv, char **envp)
{
	(void)envp;
	if (argc == 2 && strncmp(argv[1], "before-", 7) == 0)
		set(recover, SA_SIGINFO);
}

__attribute__((section(".preinit_array"), used)) static void (*preinit)(
	int, char **, char **) = before_constructors;

static void before_own(void)
{
	struct sigaction seen;

	CHECK(sigaction(SIGSEGV, NULL, &seen) == 0 && seen.sa_sigaction == recover);
	CHECK(faults() && faults() && calls == 2 && fault_address == forbidden + 123);
}

static void before_heap(void)
{
	use_after_free(NULL);
}

/* The caller of this process ignores SIGSEGV, which exec hands on. */
static void inherited_ignore(void)
{
	struct sigaction seen;

	CHECK(sigaction(SIGSEGV, NULL, &seen) == 0 && seen.sa_handler == SIG_IGN);
	CHECK(raise(SIGSEGV) == 0 && kill(getpid(), SIGSEGV) == 0);
}

static const struct check_case cases[] = {
	{"query-default", query_default},
	{"query-own", query_own},
	{"own-fault", own_fault},
	{"own-null", own_null},
	{"own-signal", own_signal},
	{"own-mended", own_mended},
	{"own-continued-elsewhere", own_continued_elsewhere},
	{"own-resethand", own_resethand},
	{"own-nodefer", own_nodefer},
	{"own-nested", own_nested},
	{"own-alternate-stack", own_alternate_stack},
	{"own-normal-stack", own_normal_stack},
	{"own-stack-overflow", own_stack_overflow},
	{"own-default", own_default},
	{"own-sent", own_sent},
	{"own-heap", own_heap},
	{"own-thread", own_thread},
	{"own-fork", own_fork},
	{"own-system-call", own_system_call},
	{"other-signals", other_signals},
	{"before-own", before_own},
	{"before-heap", before_heap},
	{"inherited-ignore", inherited_ignore},
	{"heap-handler", heap_handler},
	{"heap-handler-on-stack", heap_handler_on_stack},
	{"heap-recover", heap_recover},
	{"heap-ignore", heap_ignore},
	{"heap-default", heap_default},
	{"heap-after-own", heap_after_own},
	{"heap-after-resethand", heap_after_resethand},
	{"heap-in-handler", heap_in_handler},
	{"heap-thread", heap_thread},
	{"heap-small-stack", heap_small_stack},
	{"heap-blocked", heap_blocked},
	{"heap-fork", heap_fork},
	{"heap-vfork", heap_vfork},
};

/* Each case changes what SIGSEGV does, so one process runs one case. */
int main(int argc, char **argv)
{
	CHECK(argc == 2, "usage: sigsegv CASE");
	return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
