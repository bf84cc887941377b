# SPDX-License-Identifier: MIT
#
# What every test file loads.
#
#	requires WORD...        skip the test, with the reason, unless all are there. A word is `root`,
#	                        `full` (what takes many minutes), `qemu` (MTE by run_mte) or else
#	                        the name of a command.
#	run_with_lib OPTIONS PROGRAM [ARGUMENT...]
#	                        bats' `run` of PROGRAM under the library with VATALLOC_OPTIONS=OPTIONS.
#	                        A PROGRAM without a slash is one of lib/test, or else a command.
#	run_without_lib PROGRAM [ARGUMENT...]
#	                        the same, but under glibc's own allocator.
#	run_mte MODE[:OPTIONS] PROGRAM [ARGUMENT...]
#	                        the same for arm64 with MTE, under QEMU, VATALLOC_OPTIONS=mode=MODE...
#	                        Commands are those of the arm64 system unpacked below build/.
#	assert_killed SIGNAL    the last run died of it (SEGV, ABRT)
#
# The three runs set $status, $output (of stdout alone) and $stderr, as `run --separate-stderr`. A
# run is ended after TIMEOUT seconds (180, under QEMU 360), its status is then 124: that is for what
# hangs, a busy computer is waited for. Its environment may be added to by the caller:
# `LC_ALL=C run_with_lib …` works as usual, for run_mte give MTE_ENVIRONMENT=(NAME=VALUE…).

bats_require_minimum_version 1.5.0
bats_load_library bats-support
bats_load_library bats-assert
bats_load_library bats-file

# Programs die on purpose here.
ulimit -S -c 0

requires() {
	local word
	for word; do
		case $word in
		root)
			[ "$(id -u)" = 0 ] || skip 'not root'
			;;
		full)
			[ "${VATALLOC_FULL-}" ] || skip 'takes many minutes; VATALLOC_FULL=1 runs it'
			;;
		qemu)
			[ -z "$VATALLOC_NO_QEMU" ] || skip "$VATALLOC_NO_QEMU"
			;;
		*)
			command -v "$word" > /dev/null || skip "no $word"
			;;
		esac
	done
}

# What the shell and timeout say of a child that died ("Segmentation fault", "dumped core") is not
# the child's: theirs goes to /dev/null, the child's to the stderr of the run.
quietly() {
	{ timeout -k 5 "$1" sh -c 'exec "$@" 2>&4 3>&- 4>&-' sh "${@:2}"; } 4>&2 2> /dev/null
}

test_program() {
	if [[ $1 != */* && -x $VATALLOC_TEST_DIR/$1 ]]; then
		printf '%s' "$VATALLOC_TEST_DIR/$1"
	else
		printf '%s' "$1"
	fi
}

run_with_lib() {
	local options=$1 program
	program=$(test_program "$2")
	shift 2
	run --separate-stderr quietly "${TIMEOUT:-180}" \
		env LD_PRELOAD="$VATALLOC_LIB" VATALLOC_OPTIONS="$options" "$program" "$@"
}

run_without_lib() {
	local program
	program=$(test_program "$1")
	shift
	run --separate-stderr quietly "${TIMEOUT:-180}" \
		env -u LD_PRELOAD -u VATALLOC_OPTIONS "$program" "$@"
}

run_mte() {
	local mode=$1 program=$2 place pair variables=()
	shift 2
	if [[ $program != */* ]]; then
		for place in "$VATALLOC_ARM64_TEST_DIR" "$VATALLOC_SYSROOT"/usr/{bin,sbin}; do
			if [ -x "$place/$program" ]; then
				program=$place/$program
				break
			fi
		done
	fi
	for pair in "${MTE_ENVIRONMENT[@]}"; do
		variables+=(-E "$pair")
	done
	run --separate-stderr quietly "${TIMEOUT:-360}" \
		"$VATALLOC_QEMU" -cpu max -L "$VATALLOC_SYSROOT" -E LD_PRELOAD="$VATALLOC_ARM64_LIB" \
		-E VATALLOC_OPTIONS="mode=$mode" "${variables[@]}" "$program" "$@"
	# QEMU's own word about it.
	stderr=$(sed '/^qemu: uncaught target signal /d' <<< "$stderr")
	mapfile -t stderr_lines < <(printf '%s' "${stderr:+$stderr$'\n'}")
}

assert_killed() {
	local signal
	signal=$(kill -l "$1")
	if [ "$status" -ne $((128 + signal)) ]; then
		batslib_print_kv_single_or_multi 8 status "$status" wanted "$((128 + signal)) (SIG$1)" \
			output "$output" stderr "$stderr" |
			batslib_decorate 'not killed by the expected signal' | fail
	fi
}
