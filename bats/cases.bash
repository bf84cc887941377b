# SPDX-License-Identifier: MIT
#
# How the tests of the heap run the programs of lib/test; loaded after helpers.
#
#	passes MODE[,MODE...] PROGRAM [ARGUMENT...]
#	                        run it in each mode; it must succeed, and the library say nothing. A
#	                        program that says 77 cannot test here: skip. Modes sync and async are
#	                        those of MTE, under QEMU, where the program does less (CHECK_QUICK).
#	run_in MODE[:OPTIONS] PROGRAM [ARGUMENT...]
#	                        bats' `run` in one such mode
#	reported                the first line of the last run's report, without "vatalloc: "
#	assert_reported REGEX   it is there, once, and all of it matches

# Modes that need no MTE, and those that do.
WITHOUT_TAGS=address,count
WITH_TAGS=sync,async

# Of the library's own lines, these are no complaint.
EXPECTED_WORDS="^vatalloc: mode 'count' measures only, it protects nothing$"

run_in() {
	case $1 in
	sync* | async*)
		requires qemu
		MTE_ENVIRONMENT=(CHECK_QUICK=1) run_mte "$@"
		;;
	*)
		run_with_lib "mode=$1" "${@:2}"
		;;
	esac
}

passes() {
	local mode modes said
	IFS=, read -ra modes <<< "$1"
	shift
	for mode in "${modes[@]}"; do
		run_in "$mode" "$@"
		if [ "$status" -eq 77 ]; then
			skip "${stderr#skipped: }"
		fi
		if [ "$status" -ne 0 ]; then
			batslib_print_kv_single_or_multi 8 program "$*" mode "$mode" status "$status" \
				output "$output" stderr "$stderr" |
				batslib_decorate 'the program failed' | fail
			return
		fi
		said=$(grep '^vatalloc:' <<< "$stderr" | grep -vE "$EXPECTED_WORDS") || :
		assert_equal "$mode: $said" "$mode: "
	done
}

reported() {
	grep -vE "$EXPECTED_WORDS" <<< "$stderr" | sed -n 's/^vatalloc: \([a-z]\)/\1/p'
}

assert_reported() {
	local line
	line=$(reported)
	if ! [[ $line =~ ^($1)$ ]]; then
		batslib_print_kv_single_or_multi 8 wanted "$1" reported "$line" status "$status" \
			output "$output" stderr "$stderr" |
			batslib_decorate 'the report is not as it should be' | fail
	fi
}
