#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# No heap address is ever handed out twice with the same tag: the program remembers all it is given,
# from small objects to 64 MiB, by every function, across realloc, threads, trims and forks.

load helpers
load cases

# $VATALLOC_FULL makes them run twenty-five times as long.
times=${VATALLOC_FULL:+25}
times=${times:-1}

holds() {
	TIMEOUT=$((360 * times)) passes "$@"
	assert_output --regexp '^[0-9]+ objects, '
}

@test "the test itself notices an address that comes again" {
	run_with_lib mode=count invariant once 100 1
	assert_failure 1
	assert_regex "$stderr" 'an address is given again'
}

@test "the test itself notices an address that comes a sixteenth time" {
	run_without_lib invariant counted 1000 1
	assert_failure 1
	assert_regex "$stderr" 'is given the 16th time'
}

@test "the test itself notices a missing tag" {
	run_with_lib mode=address invariant tagged 100 1
	assert_failure 1
	assert_regex "$stderr" 'is given with tag 0'
}

@test "address mode: 8 GiB in one thread" {
	holds address invariant once $((8192 * times)) 1
}

@test "address mode: 8 GiB in eight threads" {
	holds address invariant once $((8192 * times)) 8
}

@test "address mode: 1 GiB with each granularity from 4K to 2M" {
	local granularity
	for granularity in 4K 64K 2M; do
		holds address:granularity=$granularity invariant once 1024 4
	done
}

@test "address mode: 1 GiB on a kernel without guard pages" {
	run --separate-stderr quietly 180 "$VATALLOC_TEST_DIR/without" EINVAL guard env \
		LD_PRELOAD="$VATALLOC_LIB" "$VATALLOC_TEST_DIR/invariant" once 1024 4
	[ "$status" -ne 77 ] || skip "$stderr"
	assert_success
}

@test "address mode: 1 GiB where pages cannot be moved" {
	run --separate-stderr quietly 180 "$VATALLOC_TEST_DIR/without" EPERM mremap env \
		LD_PRELOAD="$VATALLOC_LIB" "$VATALLOC_TEST_DIR/invariant" once 1024 4
	[ "$status" -ne 77 ] || skip "$stderr"
	assert_success
}

@test "count mode: 4 GiB in one thread" {
	holds count invariant counted $((4096 * times)) 1
}

@test "count mode: 4 GiB in eight threads" {
	holds count invariant counted $((4096 * times)) 8
}

@test "sync: one thread" {
	holds sync invariant tagged $((300 * times)) 1
}

@test "sync: four threads" {
	holds sync invariant tagged $((300 * times)) 4
}

@test "sync: with granularity 4K" {
	holds sync:granularity=4K invariant tagged $((100 * times)) 4
}

@test "async: four threads" {
	holds async invariant tagged $((200 * times)) 4
}

@test "address mode on arm64" {
	requires qemu
	run_mte address invariant once $((200 * times)) 4
	assert_success
}
