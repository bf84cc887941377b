#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# VATALLOC_OPTIONS: each key, each value, and what is wrong is named once and its default used.

load helpers
load cases

# The value of a line "NAME value" that heap_info printed.
info() {
	sed -n "s/^$1 //p" <<< "$output"
}

# With these options a program runs, in mode address, and exactly this is said.
says() {
	run_with_lib "$1" heap_info
	assert_success
	assert_equal "$stderr" "$2"
	assert_equal "$(info mode)" address
}

# mode

@test "mode=address: one life, no tags" {
	run_with_lib mode=address heap_info
	assert_success
	assert_equal "$(info mode) $(info lives) $(info tag)" 'address 1 none'
	assert_equal "$stderr" ''
}

@test "mode=count: 15 lives, no tags, and it says what it is, once" {
	run_with_lib mode=count heap_info
	assert_success
	assert_equal "$(info mode) $(info lives) $(info tag)" 'count 15 none'
	assert_equal "$stderr" "vatalloc: mode 'count' measures only, it protects nothing"
}

@test "mode=off: nothing is used of the library but jemalloc" {
	run_with_lib mode=off heap_info
	assert_success
	assert_equal "$(info mode) $(info tag)" 'off none'
	assert_equal "$stderr" ''
	run_with_lib mode=off bug uaf-large
	refute_regex "$stderr" 'vatalloc'
}

@test "mode=auto without MTE is address, and nothing is said" {
	run_with_lib mode=auto heap_info
	assert_success
	assert_equal "$(info mode) $(info requested)" 'address unset'
	assert_equal "$stderr" ''
	run_with_lib '' heap_info
	assert_equal "$(info mode)" address
	assert_equal "$stderr" ''
}

@test "sync and async where there is no MTE: address, and that is said" {
	local mode
	for mode in sync async; do
		run_with_lib mode=$mode heap_info
		assert_success
		assert_equal "$(info mode) $(info requested) $(info fallback)" "address $mode 1"
		assert_equal "$stderr" "vatalloc: no MTE here, running in mode 'address'"
	done
}

@test "fallback=abort where there is no MTE: no process" {
	run_with_lib mode=sync:fallback=abort heap_info
	assert_failure 78 # EX_CONFIG
	assert_equal "$output" ''
	assert_regex "$stderr" '^vatalloc: no MTE here'
	# It is only for what was asked for by name.
	run_with_lib mode=auto:fallback=abort heap_info
	assert_success
	assert_equal "$stderr" ''
}

@test "with MTE: sync, async and auto have tags" {
	requires qemu
	run_mte sync heap_info
	assert_success
	assert_equal "$(info mode) $(info lives) $(info tag)" 'sync 15 some'
	assert_equal "$stderr" ''
	run_mte async heap_info
	assert_success
	assert_equal "$(info mode) $(info lives) $(info tag)" 'async 15 some'
	assert_equal "$stderr" ''
	run_mte auto heap_info
	assert_success
	assert_regex "$(info mode) $(info lives) $(info tag)" '^(mte|sync|async) 15 some$'
	assert_equal "$stderr" ''
}

@test "with MTE: address, count and off have no tags, for programs that use those bits" {
	requires qemu
	local mode
	for mode in address count off; do
		run_mte $mode heap_info
		assert_success
		assert_equal "$(info mode) $(info tag)" "$mode none"
	done
}

# lives

@test "mode=count: an address is handed out as often as lives says" {
	local n
	for n in 1 2 4 8 15; do
		run_with_lib mode=count:lives=$n lives
		assert_success
		assert_output $n
		run_with_lib mode=count:lives=$n heap_info
		assert_equal "$(info lives)" $n
	done
	run_with_lib mode=count:lives=auto lives
	assert_output 15
}

@test "lives does not change what the other modes promise" {
	run_with_lib mode=address:lives=15 lives
	assert_success
	assert_output 1
	says lives=3 "vatalloc: bad value '3' for option 'lives', using 'auto'"
}

# granularity

@test "granularity takes each power of two from 4K to 2M, and auto" {
	local kib
	for kib in 4 8 16 32 64 128 256 512 1024 2048; do
		run_with_lib mode=address:granularity=${kib}K heap_info 8
		assert_success
		assert_equal "$(info granularity)" $((kib * 1024))
		assert_equal "$stderr" ''
	done
	run_with_lib mode=address:granularity=2M heap_info
	assert_equal "$(info granularity)" 2097152
	run_with_lib mode=address:granularity=auto heap_info
	assert_equal "$(info granularity)" 0
	assert_equal "$stderr" ''
}

# space and on_exhaustion

@test "space= is the most that is reserved" {
	local space
	for space in 256M 1G 64G; do
		run_with_lib mode=address:space=$space heap_info
		assert_success
		assert_equal "$stderr" ''
		assert [ "$(info space_size)" -gt $((200 << 20)) ]
		assert [ "$(info space_size)" -le "$(numfmt --from=iec $space)" ]
	done
}

@test "with little space= the heap is protected all the same" {
	local space
	for space in 64M 128M 1G; do
		says mode=address:space=$space ''
		assert [ "$(info space_size)" -le "$(numfmt --from=iec $space)" ]
	done
}

@test "by default terabytes are reserved" {
	run_with_lib mode=address heap_info
	assert_success
	assert [ "$(info space_size)" -ge $((4 << 40)) ]
}

@test "on_exhaustion=recycle: addresses come again, with one warning" {
	local options
	for options in space=256M space=256M:on_exhaustion=recycle; do
		run_with_lib "mode=address:$options" heap_info 2048
		assert_success
		assert [ "$(info bytes_recycled)" -gt $((1 << 30)) ]
		assert_regex "$stderr" '^vatalloc: lease space of 256 MiB is used up, recycling [^.]*$'
		assert_equal "$(grep -c . <<< "$stderr")" 1
	done
}

@test "on_exhaustion=abort: the process ends, and that is said" {
	run_with_lib mode=address:space=256M:on_exhaustion=abort heap_info 2048
	assert_killed ABRT
	assert_regex "$stderr" '^vatalloc: lease space of 256 MiB is used up, and on_exhaustion=abort'
	run_with_lib mode=address:space=1G:on_exhaustion=abort heap_info 128
	assert_success
}

@test "recycled address space is as good as new" {
	local EXPECTED_WORDS='^vatalloc: lease space of 512 MiB is used up, recycling '
	passes address:space=512M api_calloc zeroed-after-reuse
	passes address:space=512M api_realloc contents
	passes address:space=512M churn random 4096 50
	passes address:space=512M fork_threads 50
	passes address:space=512M exchange 1024
}

# on_fault

@test "on_fault=silent: no word, the same end" {
	run_with_lib mode=address:on_fault=silent bug uaf-large
	assert_killed SEGV
	assert_equal "$stderr" ''
	run_with_lib mode=address:on_fault=silent bug double-free
	assert_killed ABRT
	assert_equal "$stderr" ''
	run_with_lib mode=address:on_fault=report bug double-free
	assert_killed ABRT
	assert_reported 'double-free: .*'
}

# stats

@test "stats=exit prints a counter a line at exit" {
	local counter
	run_with_lib mode=address:stats=exit heap_info 64
	assert_success
	assert_regex "$stderr" '^vatalloc: mode address, lives 1'
	for counter in lives_used chunks_exhausted bytes_exhausted bytes_retired bytes_recycled \
		space_size space_used space_left live_bytes dead_resident leases_bound \
		leases_retired leases_parked blocks_live faults foreign_frees; do
		assert_equal "$counter: $(grep -cE "^vatalloc: $counter [0-9]+$" <<< "$stderr")" \
			"$counter: 1"
	done
}

@test "the counters count" {
	local used exhausted space
	run_with_lib mode=address:stats=exit heap_info 64
	used=$(sed -n 's/^vatalloc: lives_used //p' <<< "$stderr")
	exhausted=$(sed -n 's/^vatalloc: bytes_exhausted //p' <<< "$stderr")
	space=$(sed -n 's/^vatalloc: space_used //p' <<< "$stderr")
	# 64 MiB in pieces of 1 KiB, and little else.
	assert [ "$used" -ge 65536 ]
	assert [ "$used" -lt 67000 ]
	assert [ "$exhausted" -ge $((64 << 20)) ]
	assert [ "$exhausted" -lt $((65 << 20)) ]
	# Where in lease space it began does not matter.
	assert [ "$space" -ge $((64 << 20)) ]
	assert [ "$space" -lt $((96 << 20)) ]
}

@test "a chunk that one thread frees and another gets is counted once" {
	local sent used
	run_with_lib mode=count:stats=exit exchange 64
	assert_success
	sent=${output%% *}
	used=$(sed -n 's/^vatalloc: lives_used //p' <<< "$stderr")
	assert [ "$used" -ge "$sent" ]
	# Those that are ready count, too.
	assert [ "$used" -lt $((sent + sent / 10)) ]
}

@test "stats=no prints nothing" {
	says mode=address:stats=no ''
}

# What is wrong

@test "an unknown key is named and ignored" {
	says mode=address:colour=red "vatalloc: unknown option 'colour', ignoring"
	says colour=red:mode=address "vatalloc: unknown option 'colour', ignoring"
	# Keys are matched whole, and by case.
	says mod=count "vatalloc: unknown option 'mod', ignoring"
	says modes=count "vatalloc: unknown option 'modes', ignoring"
	says MODE=count "vatalloc: unknown option 'MODE', ignoring"
}

@test "a bad value is named and the default used" {
	local pair key value default
	for pair in mode=fast mode= mode=SYNC mode=countdown on_exhaustion=never on_fault=ignore \
		fallback=no stats=yes journal=1; do
		key=${pair%%=*} value=${pair#*=}
		case $key in
		on_exhaustion) default=recycle ;;
		on_fault) default=report ;;
		fallback) default=address ;;
		stats) default=no ;;
		*) default=auto ;;
		esac
		says "$pair" "vatalloc: bad value '$value' for option '$key', using '$default'"
	done
}

@test "a bad size is named and the default used" {
	local value
	for value in '' 0x1000 4k 4KB 3K 2K 4M -4K 4097 1.5M 99999999999999999999 18446744073709551616 \
		17179869184G ' 4K' K; do
		says "granularity=$value" "vatalloc: bad value '$value' for option 'granularity', using 'auto'"
		assert_equal "$(info granularity)" 0
	done
	for value in '' 1K much -1 1P 17179869184G; do
		says "space=$value" "vatalloc: bad value '$value' for option 'space', using 'auto'"
	done
}

@test "several mistakes are all named, and what is right counts" {
	run_with_lib foo=1:mode=count:bar=2:granularity=7:stats=exit heap_info
	assert_success
	assert_equal "$(info mode)" count
	assert_equal "$(grep -c "^vatalloc: unknown option 'foo', ignoring$" <<< "$stderr")" 1
	assert_equal "$(grep -c "^vatalloc: unknown option 'bar', ignoring$" <<< "$stderr")" 1
	assert_equal "$(grep -c "^vatalloc: bad value '7' for option 'granularity'" <<< "$stderr")" 1
	assert_regex "$stderr" 'vatalloc: lives_used '
}

@test "empty items are no mistakes" {
	says '::mode=address::' ''
	says ':' ''
}

@test "nonsense of any length does no harm" {
	local long
	long=$(printf 'x%.0s' {1..5000})
	for options in "$long" "$long=$long" "mode=$long" "$long:mode=address" "=" "==" "=x" ":=:" \
		$'\x01\xff=\n' "space=$long"; do
		run_with_lib "$options" heap_info
		assert_success
		assert_equal "$(info mode)" address
		assert_regex "$stderr" '^vatalloc: '
	done
}

# AT_SECURE

# A program that the kernel calls secure, with the library: the loader takes only a setuid one from a
# directory of its own then, which --preload and --library-path name here.
run_secure() {
	local loader
	requires root readelf
	loader=$(readelf -lW /bin/true | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
	cp "$VATALLOC_LIB" "$BATS_TEST_TMPDIR/libvatalloc.so"
	chmod u+s "$BATS_TEST_TMPDIR/libvatalloc.so"
	# The loader takes variables out of a secure environment, and some versions fail over it.
	run --separate-stderr quietly 180 env -i VATALLOC_OPTIONS="$1" INVOCATION_ID=x \
		"$VATALLOC_TEST_DIR/at_secure" "$loader" --library-path "$BATS_TEST_TMPDIR" \
		--preload libvatalloc.so "$VATALLOC_TEST_DIR/heap_info"
	assert_success
	[[ $output != 'library none' ]] || skip 'the loader does not take the library'
}

@test "AT_SECURE: options are ignored" {
	run_secure mode=count:stats=exit:foo=bar
	assert_equal "$(info mode)" address
	assert_equal "$stderr" ''
}
