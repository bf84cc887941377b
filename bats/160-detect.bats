#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Each kind of mistake ends the process by the right signal, and is called by its name. The program
# says on stdout what must be said of its mistake: what was done where, and in which object.

load helpers
load cases

# detects MODES SIGNAL KIND BUG [TAIL]: TAIL is what follows, a regular expression.
detects() {
	local modes mode
	IFS=, read -ra modes <<< "$1"
	for mode in "${modes[@]}"; do
		case $mode in
		sync | async) run_in "$mode" bug "$4" ;;
		auto) run_in address bug "$4" ;;
		*) run_in "$mode:granularity=4K" bug "$4" ;;
		esac
		assert_killed "$2"
		assert [ "$output" ]
		# QEMU does not tell reads from writes.
		assert_reported "$3: ${output/#@(read|write)/(${output%% *}|access)}$5"
	done
}

shopt -s extglob

ONE_LIFE=', life 1 of 1, freed'
SOME_LIFE=', life 1 of 15, freed(; current life [0-9]+)?'
LAST_LIFE=', 0 bytes into a 320-byte object, life 1 of 15, freed; current life 15'
FORGOTTEN=', the object that was there is freed and forgotten'
NEVER_OURS=', not a heap pointer of this process'
NOT_A_BEGIN=', not where an object begins'

@test "a program without mistakes is left alone" {
	local mode
	for mode in address count off; do
		run_in $mode bug none
		assert_failure 42
		assert_equal "$(reported)" ''
	done
}

@test "with tags a program without mistakes is left alone" {
	local mode
	for mode in sync async; do
		run_in $mode bug none
		assert_failure 42
		assert_equal "$(reported)" ''
	done
}

# Use after free, by address

@test "address mode: read of a freed small object" {
	detects address SEGV use-after-free uaf-read "$ONE_LIFE"
}

@test "address mode: write to a freed small object" {
	detects address SEGV use-after-free uaf-write "$ONE_LIFE"
}

@test "address mode: read of a freed object of 256 KiB" {
	detects address SEGV use-after-free uaf-medium "$ONE_LIFE"
}

# Large objects have their addresses to themselves, which die with them.
traps_large() {
	local mode
	for mode in address address:granularity=4K address:granularity=2M; do
		run_in "$mode" bug "$1"
		assert_killed SEGV
		assert_reported "(use-after-free: $output$ONE_LIFE|retired-lease: ${output%%,*}$FORGOTTEN)"
	done
}

@test "address mode: read of a freed large object, with any granularity" {
	traps_large uaf-large
}

@test "address mode: write to a freed large object, with any granularity" {
	traps_large uaf-large-write
}

@test "address mode: read through the pointer from before a realloc that moved pages" {
	traps_large uaf-realloc
}

@test "address mode: read of what was freed by a thread that ended" {
	detects address SEGV use-after-free uaf-thread "$ONE_LIFE"
}

@test "address mode: in a child, read of what it freed there" {
	traps_large uaf-fork
}

@test "address mode: read of an address that is long retired" {
	detects address,auto SEGV retired-lease uaf-retired "$FORGOTTEN"
}

# Use after free, by tag

@test "sync: read of a freed small object" {
	detects sync SEGV use-after-free uaf-read "$SOME_LIFE"
}

@test "sync: write to a freed small object" {
	detects sync SEGV use-after-free uaf-write "$SOME_LIFE"
}

@test "sync: read of a freed object of 256 KiB" {
	detects sync SEGV use-after-free uaf-medium "$SOME_LIFE"
}

@test "sync: read of a freed large object" {
	detects sync SEGV use-after-free uaf-large "$SOME_LIFE"
}

@test "sync: write to a freed large object" {
	detects sync SEGV use-after-free uaf-large-write "$SOME_LIFE"
}

@test "sync: read through the pointer from before a realloc that moved pages" {
	detects sync SEGV use-after-free uaf-realloc "$SOME_LIFE"
}

@test "sync: read of what was freed by a thread that ended" {
	detects sync SEGV use-after-free uaf-thread "$SOME_LIFE"
}

@test "sync: in a child, read of what it freed there" {
	detects sync SEGV use-after-free uaf-fork "$SOME_LIFE"
}

@test "sync: the pointer's life and the current one are told" {
	detects sync SEGV use-after-free uaf-life ', life 3 of 15, freed; current life 7'
}

@test "sync: read of an address whose lives are all used" {
	detects sync SEGV use-after-free uaf-retired "$LAST_LIFE"
}

@test "async: every use of freed memory ends the process" {
	local bug
	for bug in uaf-read uaf-write uaf-medium uaf-large uaf-large-write uaf-realloc uaf-thread \
		uaf-fork uaf-life; do
		run_in async bug $bug
		assert_killed SEGV
		assert_reported 'asynchronous-fault: access at an unknown address, .*'
	done
}

# Errors of free and realloc

@test "double free" {
	detects address,auto ABRT double-free double-free "$ONE_LIFE"
}

@test "double free after other objects were allocated" {
	detects address,auto ABRT double-free double-free-later "$ONE_LIFE"
}

@test "double free of what another thread freed" {
	detects address,auto ABRT double-free double-free-thread "$ONE_LIFE"
}

@test "double free of a large object" {
	local mode
	for mode in address address:granularity=4K; do
		run_in $mode bug double-free-large
		assert_killed ABRT
		assert_reported "double-free: ($output$ONE_LIFE|${output%%,*}$FORGOTTEN)"
	done
}

@test "double free of an address that is long retired" {
	detects address,auto ABRT double-free double-free-retired "$FORGOTTEN"
}

@test "realloc of a freed object" {
	detects address,auto ABRT double-free realloc-freed "$ONE_LIFE"
}

@test "realloc of a freed large object" {
	run_in address bug realloc-freed-large
	assert_killed ABRT
	assert_reported "double-free: ($output$ONE_LIFE|${output%%,*}$FORGOTTEN)"
}

@test "free of an interior pointer" {
	detects address,count ABRT invalid-free free-interior "$NOT_A_BEGIN"
	detects address,count ABRT invalid-free free-odd "$NOT_A_BEGIN"
	detects address,count ABRT invalid-free free-interior-large "$NOT_A_BEGIN"
}

@test "realloc of an interior pointer" {
	detects address,count ABRT invalid-free realloc-interior "$NOT_A_BEGIN"
}

@test "free of what was never a heap object" {
	local bug
	for bug in free-stack free-static free-wild free-impossible free-mapping delete-stack \
		realloc-stack; do
		detects address,count ABRT invalid-free $bug "$NEVER_OURS"
	done
}

@test "with tags: double free" {
	detects "$WITH_TAGS" ABRT double-free double-free "$SOME_LIFE"
	detects "$WITH_TAGS" ABRT double-free double-free-thread "$SOME_LIFE"
	detects "$WITH_TAGS" ABRT double-free double-free-large "$SOME_LIFE"
}

@test "with tags: double free when the address is in use again" {
	detects "$WITH_TAGS" ABRT double-free double-free-later ', life 1 of 15, freed; current life 2'
}

@test "with tags: double free of an address whose lives are all used" {
	detects "$WITH_TAGS" ABRT double-free double-free-retired "$LAST_LIFE"
}

@test "with tags: realloc of a freed object" {
	detects "$WITH_TAGS" ABRT double-free realloc-freed "$SOME_LIFE"
	detects "$WITH_TAGS" ABRT double-free realloc-freed-large "$SOME_LIFE"
}

@test "with tags: free and realloc of an interior pointer" {
	detects "$WITH_TAGS" ABRT invalid-free free-interior "$NOT_A_BEGIN"
	detects "$WITH_TAGS" ABRT invalid-free free-odd "$NOT_A_BEGIN"
	detects "$WITH_TAGS" ABRT invalid-free free-interior-large "$NOT_A_BEGIN"
	detects "$WITH_TAGS" ABRT invalid-free realloc-interior "$NOT_A_BEGIN"
}

@test "with tags: free of what was never a heap object" {
	local bug
	# Not free-wild and free-impossible: QEMU has no process_vm_readv, by which the library finds
	# out that there is nothing at an address.
	for bug in free-stack free-static free-mapping delete-stack realloc-stack; do
		detects "$WITH_TAGS" ABRT invalid-free $bug "$NEVER_OURS"
	done
}

@test "with tags: free of a pointer without its tag" {
	detects "$WITH_TAGS" ABRT untagged-pointer free-untagged
}

@test "with tags: free of a pointer with a guessed tag" {
	detects "$WITH_TAGS" ABRT forged-pointer free-forged '(, .*)?'
}

# What only tags notice

@test "sync: overflow into the next object" {
	detects sync SEGV overflow overflow ', life 1 of 15'
}

@test "sync: underflow into the object before" {
	detects sync SEGV overflow underflow ', life 1 of 15'
}

@test "sync: overflow of a large object" {
	detects sync SEGV overflow overflow-large ', life 1 of 15'
}

@test "sync: access by a pointer without its tag" {
	detects sync SEGV untagged-pointer untagged
}

@test "sync: access by a pointer with a guessed tag" {
	detects sync SEGV forged-pointer forged
}

@test "async: overflows and forged pointers end the process" {
	local bug
	for bug in overflow underflow overflow-large untagged forged; do
		run_in async bug $bug
		assert_killed SEGV
		assert_reported 'asynchronous-fault: access at an unknown address, .*'
	done
}

# Ten processes, so that no tag is right by luck.
@test "sync: detection is certain, not likely" {
	local i
	for i in {1..10}; do
		detects sync SEGV use-after-free uaf-read "$SOME_LIFE"
		detects sync SEGV overflow overflow ', life 1 of 15'
	done
}

@test "count mode detects errors of free that need no protection" {
	detects count ABRT double-free double-free "$SOME_LIFE"
}
