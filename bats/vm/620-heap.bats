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

@test "no address is handed out twice with one tag, when pages move with objects that grow" {
	passes sync programs/regrown 6
	passes async programs/regrown 2
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

# flat MODE SPACE MIB SLACK_MIB: MIB mebibytes go through a space of addresses, 16 MiB of them live at any
# time. What that takes is no more than what is meant to be kept, and looked at each second, it is no
# more in the second half of the time than in the first, but for two huge pages.
flat() {
	VM_LIMIT=500 run guest "VATALLOC_OPTIONS=mode=$1:space=$2 \
			LD_PRELOAD=\$(echo /usr/lib/*/vatalloc/libvatalloc.so) \
			/opt/test/churn random $3 16 1 $4 > /run/churned 2>&1 &
		pid=\$! status=0
		while awk '/^VmRSS:/ { print \$2; found = 1 } END { exit !found }' /proc/\$pid/status; do
			sleep 1
		done > /run/resident 2> /dev/null
		wait \$pid || status=\$?
		cat /run/churned
		journalctl --sync
		journalctl -q -o cat _PID=\$pid
		awk '{ kib[NR] = \$1 }
			END {
				for (i = 3; i <= NR; i++)
					if (kib[i] > most[2 * i > NR])
						most[2 * i > NR] = kib[i]
				print (most[1] - most[0] > 4096 ? \"grows\" : \"flat\"), NR, most[0], most[1]
			}' /run/resident
		exit \$status"
	assert_success
	assert_line --regexp "^lease space of ${2%M} MiB is used up, recycling the oldest"
	assert_line --regexp "^$3 MiB churned, at most [0-9]+ MiB resident for 16 MiB live"
	assert_line --index -1 --regexp '^flat [1-9][0-9]+ '
}

# With 15 lives 3.75 GiB use up 256 MiB of addresses, then the oldest are used again. A day on a
# machine with all its address space is no different. Meant to be kept are 16 MiB that live, as much
# as 12 MiB dead and 8 MiB parked, and in three open blocks 6 MiB; 6 MiB more for tables and chance.
@test "memory stays flat while all addresses are used up" {
	flat sync 256M 6144 24
}

# In this mode slots need more of their space, which is as large, than objects of theirs.
@test "memory stays flat while all addresses are used up, in address mode" {
	flat address 1024M 3072 24
}

@test "memory stays flat under other patterns" {
	passes sync test/churn random 256 16 2
	passes sync test/churn grow 128 16
	passes sync test/churn large 1024 64
	passes sync test/churn waves 256 32
	passes address test/churn fifo 512 16
}

@test "tags survive swapping" {
	VM_LIMIT=600 run guest 'truncate -s 0 /swap
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
	passes sync programs/regrown 4
	passes address test/churn fifo 256 16
}

@test "huge pages always" {
	with_huge_pages always
}

@test "huge pages where the library asks for them" {
	with_huge_pages madvise
}

@test "huge pages never" {
	with_huge_pages never
	# Debian's own setting, for the other tests
	guest 'echo always > /sys/kernel/mm/transparent_hugepage/enabled'
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
