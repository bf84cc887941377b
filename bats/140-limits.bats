#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Where memory or address space is limited the heap reserves less; it never refuses to start.

load helpers
load cases

# With little address space it is soon used up, and said so.
EXPECTED_WORDS+='|^vatalloc: lease space of [0-9]+ MiB is used up, recycling the oldest retired addresses: '

# $1 KiB of address space.
passes_limited() {
	ulimit -v "$1"
	shift
	passes "$@"
}

@test "RLIMIT_AS of 1 GiB leaves room for 256 MiB of objects" {
	passes_limited 1048576 "$WITHOUT_TAGS,off" limits 256
}

@test "RLIMIT_AS of 512 MiB leaves room for 64 MiB of objects" {
	passes_limited 524288 "$WITHOUT_TAGS,off" limits 64
}

@test "RLIMIT_AS of 256 MiB leaves room for 16 MiB of objects" {
	passes_limited 262144 "$WITHOUT_TAGS,off" limits 16
}

# More than the limit is an error of that call; nothing is used up by it, so nothing is to be said.
refuses() {
	local EXPECTED_WORDS="^vatalloc: mode 'count' measures only, it protects nothing$"
	passes_limited 1048576 "$WITHOUT_TAGS,off,address:on_exhaustion=abort" impossible "$1"
}

@test "RLIMIT_AS of 1 GiB: 2 GiB are refused" {
	refuses later
}

@test "RLIMIT_AS of 1 GiB: 2 GiB are refused as the first allocation, too" {
	refuses first
}

@test "RLIMIT_AS of 64 MiB lets a program start" {
	passes_limited 65536 "$WITHOUT_TAGS,off" /bin/true
}

@test "RLIMIT_AS of 1 GiB: threads and forks" {
	passes_limited 1048576 "$WITHOUT_TAGS" fork_threads 20
}

@test "RLIMIT_AS of 512 MiB: python runs" {
	requires python3
	passes_limited 524288 "$WITHOUT_TAGS" python3 -c 'x = [str(i) * 10 for i in range(100000)]'
}

@test "RLIMIT_DATA of 1 GiB leaves room for 256 MiB of objects" {
	ulimit -d 1048576
	passes "$WITHOUT_TAGS" limits 256
}

@test "an unlimited stack, which turns the address space over" {
	ulimit -s unlimited
	passes "$WITHOUT_TAGS" api_realloc huge
}

@test "address space that is not randomised" {
	requires setarch
	passes "$WITHOUT_TAGS" setarch -R "$VATALLOC_TEST_DIR/api_realloc" huge
}

@test "a small space= holds a live heap of more than half of it" {
	local EXPECTED_WORDS='^$'
	passes address:space=64M limits 36 1
	passes address:space=1G limits 560 1
}

@test "a small space= on arm64, where a slab is up to 512 KiB" {
	requires qemu
	run_mte address:space=256M limits 100 1
	assert_success
}

@test "space=64M: address space is recycled" {
	passes address:space=64M limits 16
	assert_regex "$stderr" 'lease space of 64 MiB is used up, recycling the oldest'
}

# The setting is the machine's: keep it for as short as possible, and put it back whatever happens.
teardown() {
	if [ -e "$BATS_TEST_TMPDIR/overcommit" ]; then
		cat "$BATS_TEST_TMPDIR/overcommit" > /proc/sys/vm/overcommit_memory
	fi
}

@test "vm.overcommit_memory=2" {
	requires root
	# Only the limit on commitments counts then, so the machine must have room for others' too.
	awk '/^CommitLimit/ { limit = $2 } /^Committed_AS/ { used = $2 }
		END { exit limit - used < 2097152 }' /proc/meminfo || skip 'too much is committed'
	cat /proc/sys/vm/overcommit_memory > "$BATS_TEST_TMPDIR/overcommit.new"
	{ echo 2 > /proc/sys/vm/overcommit_memory; } 2> /dev/null || skip 'it cannot be set'
	mv "$BATS_TEST_TMPDIR/overcommit.new" "$BATS_TEST_TMPDIR/overcommit"
	passes "$WITHOUT_TAGS" limits 256
	passes "$WITHOUT_TAGS" fork_threads 3
}

@test "mlockall(MCL_CURRENT | MCL_FUTURE) locks what is used, and memory comes back" {
	passes "$WITHOUT_TAGS" mlockall
}

@test "mlockall with MCL_ONFAULT" {
	passes "$WITHOUT_TAGS" mlockall onfault
}

@test "an arm64 address space of 39 bits" {
	requires qemu
	local mode
	for mode in sync address; do
		run --separate-stderr quietly 180 "$VATALLOC_QEMU" -R 0x8000000000 -cpu max \
			-L "$VATALLOC_SYSROOT" -E LD_PRELOAD="$VATALLOC_ARM64_LIB" \
			-E VATALLOC_OPTIONS="mode=$mode" "$VATALLOC_ARM64_TEST_DIR/api_realloc" huge
		assert_success
	done
}
