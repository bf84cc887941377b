#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Memory comes back: a live heap of 100 MiB costs less than 1.5 times that plus 64 MiB, and fewer
# than 2,000 mappings, however much is allocated and freed. $VATALLOC_FULL=1 churns 200 GiB in
# address mode and 1 TiB in mode count.

load helpers
load cases

gib=1024
if [ "$VATALLOC_FULL" ]; then
	address_mib=$((200 * gib)) count_mib=$((1024 * gib)) other_mib=$((20 * gib))
else
	address_mib=$((4 * gib)) count_mib=$((12 * gib)) other_mib=$((2 * gib))
fi

stays_small() {
	TIMEOUT=${VATALLOC_FULL:+3600}
	TIMEOUT=${TIMEOUT:-480} passes "$@"
	# For the log of a long run.
	echo "$output"
}

@test "address mode: first in first out, with long-lived survivors" {
	stays_small address churn fifo $address_mib 100
}

@test "address mode: the same in four threads" {
	stays_small address churn fifo $other_mib 100 4
}

@test "address mode: any object goes" {
	stays_small address churn random $other_mib 100
}

@test "address mode: objects grow by realloc" {
	stays_small address churn grow $((other_mib / 4)) 100
}

@test "address mode: large objects" {
	stays_small address churn large $((other_mib * 8)) 100
}

@test "address mode: the heap fills and empties" {
	stays_small address churn waves $other_mib 100
}

@test "small objects that stay do not keep the large ones around them" {
	stays_small "$WITHOUT_TAGS" churn pins 1200 8 1 32
}

@test "address mode: objects that stay are not among those that do not, if a site tells them apart" {
	stays_small address sites
	stays_small address sites 4
}

@test "address mode: an object from a place that never asked for one is not among those that go" {
	passes address:granularity=2M new_sites
}

@test "what lies between aligned objects does not stay" {
	stays_small "$WITHOUT_TAGS" churn aligned 160 32
}

@test "address mode: with granularity 4K" {
	stays_small address:granularity=4K churn fifo $((other_mib / 4)) 100
}

@test "address mode: a small daemon stays small" {
	stays_small address churn fifo 1024 1 1 32
}

@test "address mode: the pages of the dead come along to new addresses" {
	passes address faults 512 4096 16 527 8
	passes address faults 1024 2048 16384 65536 8
	passes address faults 2048 48 65536 8388608 3
}

# Runs the program in mode $1 where system calls fail as WITHOUT says: "ERROR CALL[,CALL...]".
stays_small_without() {
	run --separate-stderr quietly 480 "$VATALLOC_TEST_DIR/without" $1 env \
		LD_PRELOAD="$VATALLOC_LIB" VATALLOC_OPTIONS="mode=$2" "$VATALLOC_TEST_DIR/churn" "${@:3}"
	[ "$status" -ne 77 ] || skip "$stderr"
	assert_success
}

@test "address mode: on a kernel without guard pages" {
	stays_small_without 'EINVAL guard' address fifo $other_mib 100
}

@test "address mode: on a kernel without guard pages, large objects" {
	stays_small_without 'EINVAL guard' address large $other_mib 100
}

@test "address mode: where pages cannot be moved" {
	stays_small_without 'EPERM mremap' address fifo $((other_mib / 2)) 100
}

@test "count mode: first in first out, with long-lived survivors" {
	stays_small count churn fifo $count_mib 100
}

@test "count mode: the same in four threads" {
	stays_small count churn fifo $other_mib 100 4
}

@test "count mode: any object goes" {
	stays_small count churn random $other_mib 100
}

@test "count mode: objects grow by realloc" {
	stays_small count churn grow $other_mib 100
}

@test "count mode: large objects" {
	stays_small count churn large $other_mib 100
}

@test "count mode: the heap fills and empties" {
	stays_small count churn waves $((other_mib / 4)) 100
}

@test "sync: first in first out" {
	stays_small sync churn fifo 512 16
}

@test "sync: large objects" {
	stays_small sync churn large 512 64
}

# Mappings, as /proc shows them

# The names of all anonymous mappings and the sizes in KiB of those without one.
mappings() {
	awk '
	/^[0-9a-f]+-[0-9a-f]+ / { name = NF > 5 ? $6 : "none"; inode = $5 }
	/^Size:/ { if (inode == 0) print name, $2 }' "$1"
}

@test "every mapping of the heap has a name" {
	run_with_lib mode=address cat /proc/self/smaps
	assert_success
	grep -q '\[anon:' <<< "$output" || skip 'a kernel without CONFIG_ANON_VMA_NAME'
	echo "$output" > "$BATS_TEST_TMPDIR/smaps"
	run mappings "$BATS_TEST_TMPDIR/smaps"
	assert_line --regexp '^\[anon:vatalloc:lease\] '
	assert_line --regexp '^\[anon:vatalloc:slots\] '
	assert_line --regexp '^\[anon:vatalloc:meta\] '
	# libc has small ones for thread-local memory and the like.
	refute_line --regexp '^none [0-9]{5,}$'
}

@test "core dumps get live memory and no reserved address space" {
	passes "$WITHOUT_TAGS" dumpable
}
