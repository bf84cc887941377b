#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# vatallocctl without a service manager: its parts, run, verify PID, check-config, explain, and what it
# makes of nonsense.

load helpers

setup() {
	top=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	ctl=$top/build/systemd/vatallocctl
	idle=$top/build/systemd/test/idle
	export VATALLOC_PAGER=cat
}

teardown() {
	[ -z "${pids-}" ] || kill $pids 2> /dev/null || :
}

ctl() {
	run --separate-stderr "$ctl" --no-pager "$@"
}

# started PROGRAM...: runs it behind, its PID in $pid, and waits until it has become PROGRAM.
started() {
	"$@" > /dev/null 2>&1 3>&- &
	pid=$!
	pids="${pids-} $pid"
	local _
	for _ in {1..100}; do
		[[ $(readlink "/proc/$pid/exe") == */"${expected:-idle}" ]] && break
		sleep .01
	done
	sleep .1
}

@test "what reads other people's bytes passes its tests" {
	run --separate-stderr "$top/build/systemd/test/parts"
	assert_success
	assert_output --regexp '^[1-9][0-9]* passed, 0 failed$'
	assert_equal "$stderr" ''
}

@test "any core dump, map, report and text is read without harm" {
	[ -x "$top/build/systemd/test/fuzz_core" ] || skip 'no clang'
	mkdir "$BATS_TEST_TMPDIR/corpus"
	"$top/build/systemd/test/parts" "$BATS_TEST_TMPDIR/corpus"
	cd "$BATS_TEST_TMPDIR"
	run "$top/build/systemd/test/fuzz_core" -print_final_stats=1 -max_len=40000 \
		-max_total_time="${FUZZ_SECONDS:-5}" corpus
	assert_success
	assert_output --regexp 'stat::number_of_executed_units: *[0-9]{3}'
}

@test "run: the library is in the command, with its options in order" {
	ctl run --library="$VATALLOC_LIB" --mode=count --on-fault=silent sh -c \
		'grep -c libvatalloc /proc/self/maps; echo $VATALLOC_OPTIONS'
	assert_success
	refute_line --index 0 0
	assert_line --index 1 'mode=auto:mode=count:on_fault=silent'
	VATALLOC_OPTIONS=mode=off ctl run --library="$VATALLOC_LIB" --mode=address -- \
		sh -c 'echo $VATALLOC_OPTIONS $LD_PRELOAD'
	assert_output "mode=auto:mode=off:mode=address $VATALLOC_LIB"
	LD_PRELOAD='' VATALLOC_OPTIONS='' ctl run --library="$VATALLOC_LIB" \
		sh -c 'echo "$LD_PRELOAD"'
	assert_output "$VATALLOC_LIB"
}

@test "run: the command's options are its own, and its exit status is ours" {
	ctl run --library="$VATALLOC_LIB" sh -c 'exit 7' --json
	assert_equal "$status" 7
	run -127 "$ctl" run --library="$VATALLOC_LIB" no-such-command
	ctl run --library="$VATALLOC_LIB" "$BATS_TEST_DIRNAME"
	assert_equal "$status" 126
	ctl run --library=/nowhere/libvatalloc.so true
	assert_equal "$status" 125
	ctl run --library="$VATALLOC_LIB" "$idle-static"
	assert_equal "$status" 125
	assert_regex "$stderr" 'statically linked'
	ctl run --mode=a:b true
	assert_equal "$status" 1
}

@test "run: the configuration's defaults count" {
	mkdir -p "$BATS_TEST_TMPDIR/etc"
	printf '[Defaults]\nGranularity=64K\n[x.service]\nGranularity=4K\n' \
		> "$BATS_TEST_TMPDIR/etc/vatalloc.conf"
	ctl run --library="$VATALLOC_LIB" --root="$BATS_TEST_TMPDIR" sh -c 'echo $VATALLOC_OPTIONS'
	assert_output 'mode=auto:granularity=64K'
}

@test "verify: a process that is protected, and its mode" {
	started "$ctl" run --library="$VATALLOC_LIB" --mode=address "$idle"
	ctl verify "$pid"
	assert_success
	assert_output --regexp "$pid idle +yes +address"
	ctl --json=short verify "$pid"
	assert_output --partial '"protected":true,"mode":"address","reason":"protected"'
	assert_output --partial "\"library\":\"$VATALLOC_LIB\""
}

@test "verify: modes that protect nothing are named, and are no failure" {
	local mode
	for mode in count off; do
		started "$ctl" run --library="$VATALLOC_LIB" --mode=$mode "$idle"
		ctl verify "$pid"
		assert_success
		assert_output --regexp " no +$mode +mode '$mode' .*protects nothing"
	done
}

@test "verify: MTE asked for and not there" {
	grep -qw mte /proc/cpuinfo && skip 'MTE is there'
	started "$ctl" run --library="$VATALLOC_LIB" --mode=sync "$idle"
	ctl verify --json=short "$pid"
	assert_success
	assert_output --partial '"protected":true,"mode":"address","reason":"fallback"'
}

@test "verify: each reason why a process is not protected" {
	started "$idle"
	ctl verify --json=short "$pid"
	assert_equal "$status" 3
	assert_output --partial '"reason":"environment"'
	assert_output --partial 'is not set'

	started env LD_PRELOAD=libm.so.6 "$idle"
	ctl verify --json=short "$pid"
	assert_equal "$status" 3
	assert_output --partial "is 'libm.so.6', without the library"

	expected=idle-static started "$idle-static"
	ctl verify --json=short "$pid"
	assert_equal "$status" 3
	assert_output --partial '"reason":"static"'

	started env LD_PRELOAD=/nowhere/libvatalloc.so "$idle"
	ctl verify --json=short "$pid"
	assert_equal "$status" 3
	assert_output --partial '"reason":"not-visible"'
	assert_output --partial 'there is no /nowhere/libvatalloc.so'
}

@test "verify: another allocator in front" {
	local other
	other=$(ldconfig -p | awk '/libjemalloc.so.2 .*x86-64|libjemalloc.so.2 .*AArch64/ { print $NF; exit }')
	[ "$other" ] || skip 'no libjemalloc2'
	started env LD_PRELOAD="$other:$VATALLOC_LIB" "$idle"
	ctl verify --json=short "$pid"
	assert_equal "$status" 3
	assert_output --partial '"reason":"other-allocator"'
	assert_output --partial "$other"
	# behind ours it is no harm
	started env LD_PRELOAD="$VATALLOC_LIB:$other" "$idle"
	ctl verify "$pid"
	assert_success
}

@test "verify: an allocator of the program's own" {
	printf '%s\n' '#include <stddef.h>' 'int pause(void);' 'static char heap[99999], *p = heap;' \
		'void *malloc(size_t n) { p += n; return p - n; }' 'void free(void *q) { (void)q; }' \
		'int main(void) { malloc(1); for (;;) pause(); }' > "$BATS_TEST_TMPDIR/own.c"
	gcc -w -fno-builtin -rdynamic -o "$BATS_TEST_TMPDIR/own" "$BATS_TEST_TMPDIR/own.c"
	expected=own started env LD_PRELOAD="$VATALLOC_LIB" "$BATS_TEST_TMPDIR/own"
	ctl verify --json=short "$pid"
	assert_equal "$status" 3
	assert_output --partial 'the program itself comes before it'
}

@test "verify: a 32-bit program" {
	as --32 -o "$BATS_TEST_TMPDIR/small.o" - 2> /dev/null <<- 'END' || skip 'no 32-bit assembler'
		.globl _start
		_start: mov $29, %eax
		int $0x80
		jmp _start
	END
	ld -m elf_i386 -o "$BATS_TEST_TMPDIR/small" "$BATS_TEST_TMPDIR/small.o"
	expected=small started "$BATS_TEST_TMPDIR/small"
	[ -e "/proc/$pid/exe" ] || skip 'no 32-bit programs here'
	ctl verify --json=short "$pid"
	assert_equal "$status" 3
	assert_output --partial '"reason":"32-bit"'
}

@test "verify: a library that was replaced, and one that is not ours" {
	cp "$VATALLOC_LIB" "$BATS_TEST_TMPDIR/libvatalloc.so"
	started env LD_PRELOAD="$BATS_TEST_TMPDIR/libvatalloc.so" "$idle"
	cp "$VATALLOC_LIB" "$BATS_TEST_TMPDIR/new"
	mv "$BATS_TEST_TMPDIR/new" "$BATS_TEST_TMPDIR/libvatalloc.so"
	ctl verify --json=short "$pid"
	assert_success
	assert_output --partial '"protected":true,"mode":"address","reason":"outdated"'

	printf 'int vatalloc_stats[64] = {1};\n' |
		gcc -shared -fPIC -x c -o "$BATS_TEST_TMPDIR/libvatalloc.so" -
	started env LD_PRELOAD="$BATS_TEST_TMPDIR/libvatalloc.so" "$idle"
	ctl verify --json=short "$pid"
	assert_equal "$status" 3
	assert_output --partial '"reason":"version"'
}

@test "verify: no such process, and no PID at all" {
	ctl verify 4194304
	assert_equal "$status" 4
	ctl verify 99999999999
	assert_equal "$status" 1
	ctl verify
	assert_equal "$status" 1
}

@test "verify: another user's process is not told about" {
	requires root setpriv
	started "$idle"
	run --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups \
		--inh-caps=-all --bounding-set=-all "$ctl" verify "$pid"
	assert_equal "$status" 1
	assert_regex "$stderr" 'only root may look'
	# nor where /proc does not even show it
	unshare --mount true 2> /dev/null || skip 'needs mount namespaces'
	run --separate-stderr unshare --mount sh -c 'mount -t proc -o hidepid=2 proc /proc &&
		exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \
			--bounding-set=-all "$@"' sh "$ctl" verify "$pid"
	assert_equal "$status" 1
	assert_regex "$stderr" 'only root may look'
}

@test "check-config: settings, where they are from, and errors" {
	mkdir -p "$BATS_TEST_TMPDIR/etc/vatalloc.conf.d"
	printf '[Defaults]\nMode=address\nColour=red\n[nginx.service]\nGranularity=2M\n' \
		> "$BATS_TEST_TMPDIR/etc/vatalloc.conf"
	ctl --root="$BATS_TEST_TMPDIR" check-config
	assert_equal "$status" 1
	assert_regex "$stderr" '/etc/vatalloc.conf:3: .*Colour'
	assert_output --regexp 'Defaults +Mode +address +/etc/vatalloc.conf:2'
	assert_output --regexp 'nginx.service +Granularity +2M +/etc/vatalloc.conf:5'
	sed -i /Colour/d "$BATS_TEST_TMPDIR/etc/vatalloc.conf"
	ctl --root="$BATS_TEST_TMPDIR" --json=short check-config nginx
	assert_success
	assert_equal "$stderr" ''
	assert_output --partial '"key":"Granularity","value":"2M","file":"/etc/vatalloc.conf","line":4}'
	refute_output --partial Defaults
}

@test "explain: every kind of error, and messages by their ID" {
	local kind
	ctl explain
	assert_success
	for kind in $output; do
		ctl explain "$kind"
		assert_success
		assert [ ${#lines[@]} -ge 2 ]
	done
	ctl explain ed3f568b47eb4501ae44d15dc645b4f3
	assert_line use-after-free
	ctl -D "$BATS_TEST_TMPDIR" explain no-such-kind
	assert_equal "$status" 4
}

# Every kind that the library can report is one that can be looked up.
@test "explain: knows every kind that the library reports" {
	local kind kinds
	kinds=$(strings "$VATALLOC_LIB" | grep -xE \
		'use-after-free|double-free|invalid-free|overflow|[a-z]+-pointer|[a-z]+-lease|[a-z]+-fault')
	assert [ "$(wc -l <<< "$kinds")" -ge 7 ]
	for kind in $kinds; do
		"$ctl" explain "$kind" > /dev/null
	done
}

@test "crashes: nothing in an empty directory, in each form" {
	ctl crashes -D "$BATS_TEST_TMPDIR"
	assert_success
	assert_output ''
	ctl crashes -D "$BATS_TEST_TMPDIR" --json=short
	assert_output '{"crashes":[]}'
	ctl crashes -D /nowhere
	assert_equal "$status" 1
	assert_regex "$stderr" 'No such file'
}

@test "nonsense on the command line" {
	local words
	while read -r words; do
		# shellcheck disable=SC2086 # words
		ctl $words
		assert_equal "$status" 1
		refute [ -z "$stderr" ]
	done <<- 'END'
		frobnicate
		--json=xml status
		--no-such-option status
		crashes --since=tea-time
		crashes --lines=-1
		crashes nginx
		explain a b
		run
		verify --timeout=x 1
	END
	ctl --help
	assert_success
	assert_output --partial 'check-config'
	ctl
	assert_success
	ctl --version
	assert_output --regexp '^vatallocctl [0-9]'
	run bash -c "'$ctl' --help > /dev/full"
	assert_equal "$status" 1
}

@test "completion: verbs, options, kinds" {
	# shellcheck source=systemd/completion/bash
	source "$top/systemd/completion/bash"
	PATH=$top/build/systemd:$PATH
	complete_words() {
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		_vatallocctl
		output="${COMPREPLY[*]}"
	}
	complete_words vatallocctl ''
	assert_output 'run status verify crashes check-config explain'
	complete_words vatallocctl --no-pager cr
	assert_output crashes
	complete_words vatallocctl crashes --s
	assert_output '--since --symbols'
	complete_words vatallocctl --json = p
	assert_output pretty
	complete_words vatallocctl run --mode = a
	assert_output 'auto async address'
	complete_words vatallocctl explain double
	assert_output double-free
	! type -P zsh > /dev/null || zsh -n "$top/systemd/completion/zsh"
}

# The completion's words are written by hand: each option must be there, and in the manual.
@test "every option and verb is completed and described" {
	local word
	for word in $("$ctl" --help | grep -oE -- '--[a-z-]+' | sort -u) \
		run status verify crashes check-config explain; do
		grep -qe "$word" "$top/systemd/completion/bash"
		grep -qe "${word#--}" "$top/systemd/completion/zsh"
		sed 's/\\-/-/g' "$top/systemd/man/vatallocctl.1" | grep -qe "$word"
	done
}

@test "the manual pages are well formed" {
	requires man groff
	local page
	for page in vatalloc.7 vatallocctl.1 vatalloc-reporter.8; do
		run man --warnings -E UTF-8 -l -Tutf8 "$top/systemd/man/$page"
		assert_success
		refute_output --partial 'warning:'
	done
}
