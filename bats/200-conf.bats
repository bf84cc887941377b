#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The reader of vatalloc.conf, built with sanitizers, and the file we ship.

load helpers

setup() {
	top=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
}

@test "the reader passes its tests" {
	run --separate-stderr "$top/build/conf/test"
	assert_success
	assert_output --regexp '^[1-9][0-9]* passed, 0 failed$'
	assert_equal "$stderr" ''
}

@test "any bytes are read without harm" {
	[ -x "$top/build/conf/fuzz" ] || skip 'no clang'
	mkdir "$BATS_TEST_TMPDIR/corpus"
	cp "$top/conf/vatalloc.conf" "$BATS_TEST_TMPDIR/corpus"
	cd "$BATS_TEST_TMPDIR"
	run "$top/build/conf/fuzz" -dict="$top/conf/fuzz_conf.dict" -print_final_stats=1 \
		-max_total_time="${FUZZ_SECONDS:-5}" corpus
	assert_success
	assert_output --regexp 'stat::number_of_executed_units: *[0-9]{3}'
}

# Each key of the shipped file, its comment sign removed, must be what is built in.
@test "the shipped file shows every default, and is without error" {
	local root=$BATS_TEST_TMPDIR/root
	mkdir -p "$root/etc"
	sed 's/^#\([A-Z][A-Za-z]*=\)/\1/' "$top/conf/vatalloc.conf" |
		sed '/^#\[nginx/,$d' > "$root/etc/vatalloc.conf"
	VATALLOC_ROOT=$root run --separate-stderr "$top/build/systemd/vatallocctl" \
		--no-pager --no-legend check-config
	assert_success
	assert_equal "$stderr" ''
	VATALLOC_ROOT=$BATS_TEST_TMPDIR/nothing "$top/build/systemd/vatallocctl" \
		--no-pager --no-legend check-config > "$BATS_TEST_TMPDIR/built-in"
	run diff <(awk '{ print $2, $3 }' <<< "$output") <(awk '{ print $2, $3 }' \
		"$BATS_TEST_TMPDIR/built-in" )
	assert_success
	# and the commented file changes nothing
	cp "$top/conf/vatalloc.conf" "$root/etc/vatalloc.conf"
	VATALLOC_ROOT=$root run --separate-stderr "$top/build/systemd/vatallocctl" \
		--no-pager --no-legend check-config
	assert_equal "$output" "$(< "$BATS_TEST_TMPDIR/built-in")"
}
