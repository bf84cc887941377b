#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The report of a fault, in the journal and on stderr.

load helpers
load cases

FAULT_ID=ed3f568b47eb4501ae44d15dc645b4f3
EXHAUSTED_ID=54b553d653484e94b696af1778565e9d

# Runs a program under the library in a place where the journal is ours. Options, then variables of
# the environment, then after "--" the program. Sets $entries, $status, $output and $stderr.
# JOURNAL=--full: no entry finds room there.
run_with_journal() {
	local options=$1 variables=()
	shift
	requires root python3 unshare
	unshare -m true 2> /dev/null || skip 'no mount namespaces'
	while [ "$1" != -- ]; do
		variables+=("$1")
		shift
	done
	shift
	run --separate-stderr quietly 180 env -u INVOCATION_ID unshare -m --propagation private \
		"$BATS_TEST_DIRNAME/journal/receive" $JOURNAL "$BATS_TEST_TMPDIR/entries" \
		env LD_PRELOAD="$VATALLOC_LIB" VATALLOC_OPTIONS="$options" "${variables[@]}" \
		"$VATALLOC_TEST_DIR/$1" "${@:2}"
	entries=$(cat "$BATS_TEST_TMPDIR/entries")
}

# The value of a field of the only entry.
field() {
	sed -n "s/^$1=//p" <<< "$entries"
}

assert_field() {
	assert_equal "$1=$(field "$1")" "$1=$2"
}

assert_one_entry() {
	assert_equal "$(grep -c '^--$' <<< "$entries")" 1
}

assert_no_entry() {
	assert_equal "$entries" ''
}

@test "the journal gets one entry, with every field that applies" {
	run_with_journal mode=address:journal=yes:granularity=4K -- bug uaf-write
	assert_killed SEGV
	assert_equal "$stderr" ''
	assert_one_entry
	assert_field MESSAGE "use-after-free: $output, life 1 of 1, freed"
	assert_field MESSAGE_ID $FAULT_ID
	assert_field PRIORITY 2
	assert_field SYSLOG_IDENTIFIER vatalloc
	assert_field VATALLOC_SOURCE process
	assert_field VATALLOC_KIND use-after-free
	assert_field VATALLOC_ACCESS write
	assert_field VATALLOC_MODE address
	assert_field VATALLOC_ADDRESS "$(sed 's/write at \([^,]*\),.*/\1/' <<< "$output")"
	assert_field VATALLOC_SIZE 320
	assert_field VATALLOC_OFFSET 319
	assert_equal "$(($(field VATALLOC_ADDRESS)))" "$(($(field VATALLOC_CHUNK) + 319))"
	assert_field VATALLOC_LIFE 1
	assert_field VATALLOC_CURRENT_LIFE 1
	assert_field VATALLOC_LIVES 1
	assert_regex "$(field VATALLOC_SI_CODE)" '^[1-9][0-9]*$'
	assert_regex "$(field VATALLOC_PROCESS_PID)" '^[0-9]+$'
	assert_field VATALLOC_TID "$(field VATALLOC_PROCESS_PID)"
	assert_field VATALLOC_THREAD bug
	assert_field VATALLOC_PROGRAM "$VATALLOC_TEST_DIR/bug"
	assert_field VATALLOC_MODULE "$VATALLOC_TEST_DIR/bug"
	assert_regex "$(field VATALLOC_PC)" '^0x[0-9a-f]+$'
	assert_regex "$(field VATALLOC_MODULE_OFFSET)" '^0x[0-9a-f]+$'
	assert_regex "$(field VATALLOC_VERSION)" '^[0-9]'
	# Without tags there are none to tell.
	refute_regex "$entries" 'VATALLOC_(POINTER|MEMORY)_TAG='
	refute_regex "$entries" 'SYSLOG_FACILITY='
}

@test "each field comes once" {
	run_with_journal mode=address:journal=yes:granularity=4K -- bug uaf-read
	assert_one_entry
	assert_equal "$(sed -n 's/=.*//p' <<< "$entries" | sort | uniq -d)" ''
}

@test "the place in the program is where addr2line finds it" {
	requires addr2line readelf
	run_with_journal mode=address:journal=yes:granularity=4K -- bug uaf-write
	assert_one_entry
	assert_field VATALLOC_BUILD_ID \
		"$(readelf -nW "$VATALLOC_TEST_DIR/bug" | sed -n 's/.*Build ID: //p')"
	run addr2line -fe "$VATALLOC_TEST_DIR/bug" "$(field VATALLOC_MODULE_OFFSET)"
	assert_line --regexp '/bug\.c:[0-9]+'
	assert_line --index 0 --regexp '^(write_at|uaf_write)$'
}

@test "the backtrace leads from the fault to main" {
	requires addr2line
	run_with_journal mode=address:journal=yes:granularity=4K -- bug uaf-write
	assert_one_entry
	# "#0 0xPC MODULE+0xOFFSET (build-id HEX)\n#1 ..."
	field VATALLOC_BACKTRACE | sed 's/\\n/\n/g' > "$BATS_TEST_TMPDIR/frames"
	run grep -vE '^#[0-9]+ 0x[0-9a-f]+ /[^ ]*\+0x[0-9a-f]+( \(build-id [0-9a-f]+\))?$' \
		"$BATS_TEST_TMPDIR/frames"
	assert_output ''
	run bash -c "sed -n 's,^#[0-9]* 0x[0-9a-f]* $VATALLOC_TEST_DIR/bug+\(0x[0-9a-f]*\).*,\1,p' \
		'$BATS_TEST_TMPDIR/frames' | addr2line -fie '$VATALLOC_TEST_DIR/bug'"
	assert_line uaf_write
	assert_line main
	assert_equal "$(sed -n '1s/ .*//p' "$BATS_TEST_TMPDIR/frames")" '#0'
	assert_equal "$(sed -n '1s/^#0 \(0x[0-9a-f]*\) .*/\1/p' "$BATS_TEST_TMPDIR/frames")" \
		"$(field VATALLOC_PC)"
}

@test "an error of free is told with the place that called free" {
	requires addr2line
	run_with_journal mode=address:journal=yes -- bug double-free
	assert_killed ABRT
	assert_equal "$stderr" ''
	assert_one_entry
	assert_field MESSAGE "double-free: $output, life 1 of 1, freed"
	assert_field VATALLOC_KIND double-free
	assert_field VATALLOC_ACCESS free
	assert_field VATALLOC_OFFSET 0
	assert_field VATALLOC_MODULE "$VATALLOC_TEST_DIR/bug"
	run addr2line -fie "$VATALLOC_TEST_DIR/bug" "$(field VATALLOC_MODULE_OFFSET)"
	assert_line --index 0 double_free
}

@test "fields that do not apply are absent" {
	run_with_journal mode=address:journal=yes -- bug free-stack
	assert_killed ABRT
	assert_one_entry
	assert_field VATALLOC_KIND invalid-free
	refute_regex "$entries" 'VATALLOC_(CHUNK|SIZE|OFFSET|LIFE|CURRENT_LIFE|LIVES|SI_CODE)='
}

# When

@test "journal=auto: a service, which has an INVOCATION_ID, writes to the journal" {
	run_with_journal mode=address INVOCATION_ID=00112233445566778899aabbccddeeff -- bug double-free
	assert_killed ABRT
	assert_equal "$stderr" ''
	assert_one_entry
	run_with_journal mode=address:journal=auto INVOCATION_ID=00112233445566778899aabbccddeeff -- \
		bug double-free
	assert_one_entry
}

@test "journal=auto: what is no service writes to stderr" {
	run_with_journal mode=address -- bug double-free
	assert_killed ABRT
	assert_no_entry
	assert_reported "double-free: $output, .*"
}

@test "journal=no: a service writes to stderr, too" {
	run_with_journal mode=address:journal=no INVOCATION_ID=x -- bug double-free
	assert_killed ABRT
	assert_no_entry
	assert_reported "double-free: $output, .*"
}

@test "without a journal the report goes to stderr" {
	INVOCATION_ID=x run_with_lib mode=address:journal=yes bug double-free
	[ ! -S /run/systemd/journal/socket ] || skip 'there is a journal'
	assert_killed ABRT
	assert_reported "double-free: $output, .*"
}

@test "a journal that is behind does not keep a process alive: the report goes to stderr" {
	JOURNAL=--full run_with_journal mode=address:journal=yes -- bug uaf-large
	assert_killed SEGV
	assert_no_entry
	assert_reported '(use-after-free|retired-lease): read at 0x.*'
}

@test "a process is there until the journal has looked up its unit" {
	local _
	# On a busy computer the journal may be too late.
	for _ in {1..5}; do
		run_with_journal mode=address:journal=yes -- bug uaf-large
		assert_killed SEGV
		assert_one_entry
		[ "$(field _SENDER)" != here ] || return 0
	done
	fail 'the sender is gone'
}

@test "on_fault=silent writes no entry" {
	run_with_journal mode=address:journal=yes:on_fault=silent -- bug double-free
	assert_killed ABRT
	assert_no_entry
	assert_equal "$stderr" ''
}

@test "a program without mistakes writes no entry, and has no descriptor of ours in its way" {
	run_with_journal mode=address:journal=yes -- bug none
	assert_failure 42
	assert_no_entry
	# 3 is what bash opens next.
	run --separate-stderr env LD_PRELOAD="$VATALLOC_LIB" VATALLOC_OPTIONS=journal=yes \
		bash -c 'exec {fd}< /dev/null; ls /proc/self/fd | wc -l'
	assert_success
}

@test "exhausted lease space is a warning in the journal" {
	run_with_journal mode=address:journal=yes:space=256M -- heap_info 2048
	assert_success
	assert_one_entry
	assert_field MESSAGE_ID $EXHAUSTED_ID
	assert_field PRIORITY 4
	assert_field SYSLOG_IDENTIFIER vatalloc
	assert_regex "$(field MESSAGE)" '^lease space of 256 MiB is used up, recycling '
	assert_equal "$stderr" ''
}

@test "exhausted lease space that ends the process is critical" {
	run_with_journal mode=address:journal=yes:space=256M:on_exhaustion=abort -- heap_info 2048
	assert_killed ABRT
	assert_one_entry
	assert_field MESSAGE_ID $EXHAUSTED_ID
	assert_field PRIORITY 2
}

# In which state the process is

@test "after chroot the report still reaches the journal" {
	mkdir "$BATS_TEST_TMPDIR/empty"
	run_with_journal mode=address:journal=yes -- report_late chroot "$BATS_TEST_TMPDIR/empty"
	assert_killed SEGV
	assert_one_entry
	assert_field MESSAGE_ID $FAULT_ID
	assert_equal "$stderr" ''
}

@test "a process that closed all descriptors still reports" {
	run_with_journal mode=address:journal=yes -- report_late close
	assert_killed SEGV
	assert_one_entry
	assert_field MESSAGE_ID $FAULT_ID
}

@test "files under the number that our socket had are not written to" {
	run_with_journal mode=address:journal=yes -- report_late reuse "$BATS_TEST_TMPDIR/file"
	assert_killed SEGV
	assert_file_empty "$BATS_TEST_TMPDIR/file"
	assert_one_entry
}

@test "a thread's name cannot forge a field" {
	run_with_journal mode=address:journal=yes -- report_late name
	assert_killed SEGV
	assert_one_entry
	assert_field PRIORITY 2
	assert_equal "$(grep -c '^PRIORITY=' <<< "$entries")" 1
}

@test "a child reports with its own process number" {
	run_with_journal mode=address:journal=yes -- report_late fork
	assert_killed SEGV
	assert_one_entry
	assert_field VATALLOC_TID "$(field VATALLOC_PROCESS_PID)"
}

@test "a closed stderr is no problem" {
	run_with_lib mode=address sh -c "exec 2>&-; exec '$VATALLOC_TEST_DIR/bug' double-free"
	assert_killed ABRT
	run_with_lib mode=address sh -c "exec 2>/dev/full; exec '$VATALLOC_TEST_DIR/bug' uaf-large"
	assert_killed SEGV
}

# On stderr

@test "on stderr the report is complete, each line marked" {
	run_with_lib mode=address:granularity=4K bug uaf-write
	assert_killed SEGV
	run grep -v '^vatalloc: ' <<< "$stderr"
	assert_output ''
	assert_regex "$stderr" $'\nvatalloc:   chunk 0x[0-9a-f]+ size 320 (offset 319 )?mode address\n'
	assert_regex "$stderr" $'\nvatalloc:   in [^\n]*bug\[[0-9]+\], thread bug\[[0-9]+\]'
	assert_regex "$stderr" $'\nvatalloc:   #0 0x[0-9a-f]+ /[^ ]*/bug\+0x[0-9a-f]+ \(build-id [0-9a-f]+\)'
}

@test "with tags the report has them" {
	run_in sync bug uaf-read
	assert_killed SEGV
	assert_regex "$stderr" $'\nvatalloc:   chunk 0x[0-9a-f]+ size 320 (offset 8 )?pointer-tag [1-9][0-9]* memory-tag [1-9][0-9]* mode sync\n'
}

@test "two threads that fault at once make one report" {
	local i
	for i in 1 2 3 4 5; do
		run_with_lib mode=address race
		assert_killed SEGV
		assert_equal "$(reported | wc -l)" 1
	done
}
