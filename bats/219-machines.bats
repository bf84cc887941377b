#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The machines of the files that follow outlive no test run, even one that was killed.

load helpers
load systemd

teardown() {
	machine_stop left
}

@test "what a killed run left is taken away by the next, which may use its names" {
	local suite=${machine_suites%% *} pattern run state nspawn
	requires_machines
	# A run of its own: it starts a machine and waits to be killed.
	env -u BATS_ROOT_PID setsid bash -c '. "$1"; machine_start "$2" left || exit
		echo "$machine_state" > "$3"; exec sleep 1000' bash \
		"$BATS_TEST_DIRNAME/systemd.bash" "$suite" "$BATS_TEST_TMPDIR/state" 3>&- 4>&- &
	run=$!
	for _ in {1..1200}; do
		[ ! -s "$BATS_TEST_TMPDIR/state" ] || break
		sleep .1
	done
	state=$(< "$BATS_TEST_TMPDIR/state")
	nspawn=$(< "$state/left/nspawn")
	# It lives, so it is left alone.
	machine_sweep
	assert lives "$nspawn"
	kill -KILL $run
	wait $run || :
	assert lives "$nspawn"

	machine_start "$suite" left
	assert_not_exists "$state"
	refute lives "$nspawn"
	run machine left systemctl is-system-running
	assert_output running

	# The files that run beside this one have machines too, which come and go.
	machine_stop left
	assert_not_exists "$machine_state/left"
	pattern=$(< /proc/sys/kernel/core_pattern)
	if ! compgen -G "$machine_all/*/*/" > /dev/null; then
		refute_regex "$pattern" "$machine_core_helper"
	fi
}
