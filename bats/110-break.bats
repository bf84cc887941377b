#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What breaks preloaded allocators; each was a real report against one. Limits of memory are in
# 140-limits.bats, forks and threads in 150-fork-threads.bats.

load helpers
load cases

# Before the constructors

@test "the heap works before any constructor, dlsym and dlerror included" {
	passes "$WITHOUT_TAGS,off" early
}

@test "with tags the heap works before any constructor" {
	passes "$WITH_TAGS" early
}

@test "thread-local memory of modules is allocated by the loader" {
	passes "$WITHOUT_TAGS,off" tls_module "$VATALLOC_TEST_DIR/so_tls.so"
}

@test "with tags thread-local memory of modules is allocated by the loader" {
	passes "$WITH_TAGS" tls_module "$VATALLOC_ARM64_TEST_DIR/so_tls.so"
}

# Two heaps in one process

@test "a module bound by RTLD_DEEPBIND shares the heap" {
	passes "$WITHOUT_TAGS,off" deepbind "$VATALLOC_TEST_DIR/so_alloc.so"
}

@test "with tags a module bound by RTLD_DEEPBIND shares the heap" {
	passes "$WITH_TAGS" deepbind "$VATALLOC_ARM64_TEST_DIR/so_alloc.so"
}

@test "free passes pointers of libc's heap on to libc" {
	passes "$WITHOUT_TAGS" foreign freed
}

@test "realloc passes pointers of libc's heap on to libc" {
	passes "$WITHOUT_TAGS" foreign resized
}

@test "malloc_usable_size passes pointers of libc's heap on to libc" {
	passes "$WITHOUT_TAGS" foreign measured
}

@test "a libc in a namespace of its own keeps its heap" {
	passes "$WITHOUT_TAGS" foreign other-namespace
}

@test "with tags pointers of libc's heap are passed on to libc" {
	passes "$WITH_TAGS" foreign freed
	passes "$WITH_TAGS" foreign resized
	passes "$WITH_TAGS" foreign measured
}

# The program and so_alloc.so in directories of their own.
dlopen_from_caller() {
	mkdir -p "$BATS_TEST_TMPDIR/modules"
	cp "$1/origin" "$BATS_TEST_TMPDIR"
	cp "$1/so_alloc.so" "$BATS_TEST_TMPDIR/modules"
}

@test "dlopen looks in the RUNPATH and \$ORIGIN of its caller" {
	dlopen_from_caller "$VATALLOC_TEST_DIR"
	passes "$WITHOUT_TAGS,off" "$BATS_TEST_TMPDIR/origin"
}

@test "with tags dlopen looks in the RUNPATH and \$ORIGIN of its caller" {
	requires qemu
	dlopen_from_caller "$VATALLOC_ARM64_TEST_DIR"
	passes "$WITH_TAGS" "$BATS_TEST_TMPDIR/origin"
}

# At the end

@test "destructors of thread keys use the heap" {
	passes "$WITHOUT_TAGS,off" thread_exit
}

@test "what the last destructors allocate is given to nobody else" {
	passes "$WITHOUT_TAGS,off" thread_exit last-round
}

@test "C++ thread_local and static objects are destroyed" {
	passes "$WITHOUT_TAGS,off" cxx_tls
	assert_output end
}

@test "the heap works after main, while other threads go on" {
	passes "$WITHOUT_TAGS,off" after_main
	assert_output end
}

@test "with tags the heap works in destructors and after main" {
	passes "$WITH_TAGS" thread_exit
	passes "$WITH_TAGS" cxx_tls
	assert_output end
	passes "$WITH_TAGS" after_main
	assert_output end
}

# seccomp

@test "a seccomp filter that kills for unusual system calls" {
	passes "$WITHOUT_TAGS,off" seccomp kill
}

@test "a seccomp filter that refuses unusual system calls" {
	passes "$WITHOUT_TAGS,off" seccomp refuse
}

@test "behind a seccomp filter a fault still ends the process" {
	run_with_lib mode=address seccomp refuse fault
	[ "$status" -ne 77 ] || skip "$stderr"
	assert_killed SEGV
	assert_reported '(use-after-free|retired-lease): read at 0x.*'
}

@test "behind a seccomp filter that kills a fault still ends the process" {
	run_with_lib mode=address seccomp kill fault
	[ "$status" -ne 77 ] || skip "$stderr"
	[ "$status" -eq $((128 + 31)) ] || assert_killed SEGV
}

# A system call that fails from the start on costs a feature, never the program.
works_without() {
	local mode
	for mode in address count; do
		run --separate-stderr quietly 180 "$VATALLOC_TEST_DIR/without" "$@" \
			env LD_PRELOAD="$VATALLOC_LIB" VATALLOC_OPTIONS="mode=$mode" \
			"$VATALLOC_TEST_DIR/api_realloc"
		[ "$status" -ne 77 ] || skip "$stderr"
		assert_success
	done
}

@test "a kernel without getrandom" {
	works_without ENOSYS getrandom
}

@test "a container that forbids prctl, membarrier and the like" {
	works_without EPERM prctl,membarrier,sched_getaffinity,sysinfo,rseq,uname,prlimit64
}

@test "mremap forbidden" {
	CHECK_QUICK=1 works_without EPERM mremap
}

@test "an mremap that unmaps its target and then fails" {
	local mode
	for mode in address count; do
		run --separate-stderr quietly 180 env VATALLOC_OPTIONS="mode=$mode" \
			LD_PRELOAD="$VATALLOC_LIB $VATALLOC_TEST_DIR/so_mremap.so" \
			"$VATALLOC_TEST_DIR/api_realloc" huge-interleaved
		assert_success
	done
}

@test "madvise forbidden" {
	works_without EPERM madvise
}

@test "sigaltstack and socket forbidden" {
	works_without EPERM sigaltstack,socket
}

@test "without getrandom addresses are random all the same" {
	local first
	run "$VATALLOC_TEST_DIR/without" ENOSYS getrandom env LD_PRELOAD="$VATALLOC_LIB" \
		"$VATALLOC_TEST_DIR/bug" uaf-medium
	first=$output
	run "$VATALLOC_TEST_DIR/without" ENOSYS getrandom env LD_PRELOAD="$VATALLOC_LIB" \
		"$VATALLOC_TEST_DIR/bug" uaf-medium
	[ "$first" != "$output" ] || fail "twice the same: $output"
}

# Core dumps

# The core in bytes as $size; its live object must be in it.
dumps_core() {
	local pattern core
	pattern=$(cat /proc/sys/kernel/core_pattern)
	[[ $pattern =~ ^[a-z.%]+$ ]] || skip "core dumps go to $pattern"
	cd "$BATS_TEST_TMPDIR"
	ulimit -H -c unlimited 2> /dev/null || :
	[ "$(ulimit -H -c)" = unlimited ] || skip 'core dumps are limited'
	ulimit -S -c unlimited
	run_with_lib "$1" core
	assert_killed ABRT
	core=$(echo core*)
	assert_file_exist "$core"
	run grep -c 'alive in the heap' "$core"
	assert_success
	size=$(stat -c %s "$core")
	rm -f "$core"
}

@test "a core dump has the live objects, not the address space" {
	dumps_core mode=address
	assert [ "$size" -lt $((512 << 20)) ]
}

@test "in mode count a core dump has the live objects, not the address space" {
	dumps_core mode=count
	assert [ "$size" -lt $((512 << 20)) ]
}

# gdb reads by the MiB and gives up where a page of one is a guard, so not all is in its cores.
@test "gcore does not take the address space" {
	requires gdb
	run_with_lib mode=address gdb -q -batch -ex run -ex "gcore $BATS_TEST_TMPDIR/core" \
		"$VATALLOC_TEST_DIR/core"
	assert_output --partial 'Saved corefile'
	assert [ "$(stat -c %s "$BATS_TEST_TMPDIR/core")" -lt $((512 << 20)) ]
}

# prctl

@test "a program cannot switch off the tag checks of its heap" {
	passes "$WITHOUT_TAGS,off" tag_control
	local mode
	for mode in sync async; do
		run_in $mode tag_control
		assert_success
		assert_equal "$(reported)" "the program may not switch off the tag checks of its heap by \
PR_SET_TAGGED_ADDR_CTRL: mode 'address' leaves tags to it"
	done
}

# SIGSEGV

@test "sigaction shows no handler before the program sets one" {
	passes "$WITHOUT_TAGS,off" sigsegv query-default
}

@test "sigaction and signal show the program its own handler" {
	passes "$WITHOUT_TAGS,off" sigsegv query-own
}

@test "the program's handler gets its own faults untouched" {
	passes "$WITHOUT_TAGS,off" sigsegv own-fault
	passes "$WITHOUT_TAGS,off" sigsegv own-null
}

@test "a handler set by signal works" {
	passes "$WITHOUT_TAGS,off" sigsegv own-signal
}

@test "a handler may mend the cause and return" {
	passes "$WITHOUT_TAGS,off" sigsegv own-mended
}

@test "a handler may continue elsewhere" {
	passes "$WITHOUT_TAGS,off" sigsegv own-continued-elsewhere
}

@test "SA_RESETHAND" {
	passes "$WITHOUT_TAGS,off" sigsegv own-resethand
}

@test "SA_NODEFER, and nested faults without it" {
	passes "$WITHOUT_TAGS,off" sigsegv own-nodefer
	passes "$WITHOUT_TAGS,off" sigsegv own-nested
}

@test "SA_ONSTACK uses the program's alternate stack" {
	passes "$WITHOUT_TAGS,off" sigsegv own-alternate-stack
}

@test "without SA_ONSTACK a handler runs on the normal stack" {
	passes "$WITHOUT_TAGS,off" sigsegv own-normal-stack
}

@test "a stack overflow is recovered from on an alternate stack in the heap" {
	passes "$WITHOUT_TAGS,off" sigsegv own-stack-overflow
}

@test "the default action is death by SIGSEGV" {
	passes "$WITHOUT_TAGS,off" sigsegv own-default
}

@test "signals that somebody sent are the program's" {
	passes "$WITHOUT_TAGS,off" sigsegv own-sent
}

@test "a fault where the program itself protected its object is the program's" {
	passes "$WITHOUT_TAGS,off" sigsegv own-heap
}

@test "handlers work in threads and in children" {
	passes "$WITHOUT_TAGS,off" sigsegv own-thread
	passes "$WITHOUT_TAGS,off" sigsegv own-fork
}

@test "a handler set by the system call itself works" {
	passes "$WITHOUT_TAGS,off" sigsegv own-system-call
}

@test "a handler set before the library's constructor works" {
	passes "$WITHOUT_TAGS,off" sigsegv before-own
}

@test "SIGSEGV that was ignored before the program began stays so" {
	trap '' SEGV
	passes "$WITHOUT_TAGS,off" sigsegv inherited-ignore
}

@test "other signals and wrong numbers are as ever" {
	passes "$WITHOUT_TAGS,off" sigsegv other-signals
}

@test "with tags the program's SIGSEGV handlers work" {
	local case
	for case in query-default query-own own-fault own-null own-signal own-mended \
		own-continued-elsewhere own-resethand own-nodefer own-alternate-stack own-default \
		own-sent own-heap own-thread own-fork other-signals; do
		passes "$WITH_TAGS" sigsegv "$case"
	done
}

# The heap's own faults are reported whatever the program does about SIGSEGV, and it dies of them.
dies_of_heap_fault() {
	run_in address sigsegv "$1"
	assert_killed SEGV
	assert_reported '(use-after-free|retired-lease): read at 0x[0-9a-f]+, .*'
}

@test "a heap fault is reported though the program has a handler" {
	dies_of_heap_fault heap-handler
	dies_of_heap_fault heap-handler-on-stack
	dies_of_heap_fault before-heap
}

@test "a heap fault is reported though the program would recover" {
	dies_of_heap_fault heap-recover
}

@test "a heap fault is reported though SIGSEGV is ignored or set to its default" {
	dies_of_heap_fault heap-ignore
	dies_of_heap_fault heap-default
}

@test "a heap fault is reported after faults of the program's own" {
	dies_of_heap_fault heap-after-own
	dies_of_heap_fault heap-after-resethand
}

@test "a heap fault in the program's handler is reported" {
	dies_of_heap_fault heap-in-handler
}

@test "a heap fault in a thread, on a small stack, in a child is reported" {
	dies_of_heap_fault heap-thread
	dies_of_heap_fault heap-small-stack
	dies_of_heap_fault heap-fork
}

@test "a heap fault in a child of vfork ends the child, and a later one in the parent the parent" {
	local fault='(use-after-free|retired-lease): read at 0x[0-9a-f]+, [^'$'\n'']*'
	run_in address sigsegv heap-vfork
	assert_killed SEGV
	assert_reported "$fault"$'\n'"$fault"
}

@test "with SIGSEGV blocked a heap fault ends the process without a report" {
	run_with_lib mode=address sigsegv heap-blocked
	assert_killed SEGV
	assert_equal "$(reported)" ''
}

@test "with tags a heap fault is reported whatever the program does about SIGSEGV" {
	local case
	for case in heap-handler heap-handler-on-stack heap-recover heap-ignore heap-after-own \
		heap-after-resethand heap-thread heap-small-stack heap-fork; do
		run_in sync sigsegv $case
		assert_killed SEGV
		assert_reported 'use-after-free: (read|access) at 0x[0-9a-f]+, 4194304 bytes into .*'
	done
}
