#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The heap's own promises on a real kernel: no address twice with one tag, memory that stays small,
# tags that survive swapping, huge pages and moves.

load ../helpers
load vm

setup_file() {
	guest_up
}

teardown_file() {
	guest_down
}

# passes MODE[:OPTIONS] PROGRAM [ARGUMENT...]: under the library it succeeds, and the library has
# nothing to say.
passes() {
	run guest "export VATALLOC_OPTIONS=mode=$1 LD_PRELOAD=\$(echo /usr/lib/*/vatalloc/libvatalloc.so)
		exec /opt/${*:2}"
	assert_success
	refute_output --partial 'vatalloc:'
}

@test "no address is handed out twice with one tag" {
	passes sync test/invariant tagged 200 1
	passes async test/invariant tagged 100 1
}

@test "no address is handed out twice with one tag, with threads" {
	passes sync test/invariant tagged 200 4
}

@test "no address is handed out twice with one tag, with purges of single pages" {
	passes sync:granularity=4K test/invariant tagged 100 4
}

@test "no address is handed out twice in address mode" {
	passes address test/invariant once 200 4
}

@test "a thousand forks while other threads allocate" {
	VM_LIMIT=600 passes sync programs/forks 1000
	assert_output '1000 forks'
	passes async programs/forks 100
}

@test "forks of children with threads, while threads allocate all the time" {
	VM_LIMIT=300 passes sync test/fork_threads 12
	VM_LIMIT=300 passes address test/fork_threads 12
}

@test "objects go from thread to thread" {
	passes sync test/swap 4 500 100000 300000
}

# With 15 lives 3.75 GiB go through 256 MiB of addresses, then the oldest are used again. A day on a
# machine with all its address space is no different.
@test "memory stays flat while all addresses are used up" {
	VM_LIMIT=400 run guest 'VATALLOC_OPTIONS=mode=sync:space=256M LD_PRELOAD=$(echo /usr/lib/*/vatalloc/libvatalloc.so) \
		/opt/test/churn random 6144 16 1 96'
	assert_success
	assert_line --regexp '^vatalloc: lease space of 256 MiB is used up, recycling the oldest'
	assert_line --regexp '^6144 MiB churned, at most 1?[0-9]{2} MiB resident for 16 MiB live'
}

@test "memory stays flat under other patterns" {
	passes sync test/churn random 256 16 2
	passes sync test/churn grow 128 16
	passes sync test/churn large 1024 64
	passes sync test/churn waves 256 32
	passes address test/churn fifo 512 16
}

@test "tags survive swapping" {
	VM_LIMIT=300 run guest 'truncate -s 0 /swap
		fallocate -l 512M /swap
		chmod 600 /swap
		mkswap -q /swap
		swapon /swap
		for mode in sync async; do
			VATALLOC_OPTIONS=mode=$mode LD_PRELOAD=$(echo /usr/lib/*/vatalloc/libvatalloc.so) /opt/programs/swapped 16
		done'
	assert_success
	assert_line -n 0 --regexp '^[0-9]+ KiB swapped out'
	assert_line -n 1 --regexp '^[0-9]+ KiB swapped out'
}

# In a cgroup too small for them, so that the kernel has to swap all the time.
@test "the heap works while it is swapped out and in" {
	run guest 'systemd-run -q --wait --pipe -p MemoryMax=24M -p MemorySwapMax=infinity \
			-E VATALLOC_OPTIONS=mode=sync -E LD_PRELOAD=$(echo /usr/lib/*/vatalloc/libvatalloc.so) \
			/opt/test/invariant tagged 20 2
		swapoff -a
		grep SwapTotal /proc/meminfo'
	assert_success
	assert_line --regexp '^[0-9]+ objects, 20 MiB'
	assert_line --regexp '^SwapTotal: +0 kB'
}

with_huge_pages() {
	guest "echo $1 > /sys/kernel/mm/transparent_hugepage/enabled"
	passes sync test/invariant tagged 100 2
	passes sync test/churn fifo 256 16
	VM_LIMIT=300 passes sync programs/grown
	passes address test/churn fifo 256 16
}

@test "huge pages always" {
	with_huge_pages always
}

@test "huge pages never" {
	with_huge_pages never
	guest 'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled'
}

@test "realloc keeps tags, and takes them from what it leaves" {
	VM_LIMIT=300 passes sync programs/grown
	VM_LIMIT=300 passes sync:granularity=4K programs/grown
}

@test "debuggers and profilers can read the heap" {
	local mode
	for mode in sync async address; do
		passes $mode programs/readers
		assert_line -n 0 'process_vm_readv: read'
		assert_line -n 1 'process_vm_readv, tagged: read'
		assert_line -n 2 'ptrace: read'
		# An old kernel leaves it to the debugger to take the tag off.
		[ "$VM_KERNEL" = 6.1 ] || assert_line -n 3 'ptrace, tagged: read'
		assert_line -n 4 'mem: read'
		assert_line -n 5 'process_vm_readv into the heap: read'
	done
}
