#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A service, or its machine, that gets in the way of the tags: what becomes of it is one of a few
# things, and is said.

load ../helpers
load vm

setup_file() {
	guest_up
	guest "cat > /etc/systemd/system/idle.service <<- 'END'
			[Service]
			ExecStart=/opt/programs/where
		END
		cat > /etc/systemd/system/tags-off.service <<- 'END'
			[Service]
			ExecStart=/opt/programs/tags-off
		END
		systemctl daemon-reload"
}

teardown_file() {
	VM_MTE=off vm stop
	guest_down
}

@test "a service cannot switch its checks off, and is told" {
	local mode
	for mode in sync async auto; do
		run guest "protect tags-off Mode=$mode
			checks tags-off
			vatallocctl verify --no-legend tags-off
			journalctl -q -o cat _PID=\$(pid tags-off)"
		assert_success
		refute_line -n 0 none
		assert_line -n 1 --regexp "tags-off +yes +(sync|async|mte) +-$"
		assert_line 'prctl: Operation not permitted'
		assert_line --regexp '^vatalloc: the program may not switch off the tag checks of its heap'
	done
}

@test "in mode address a service does with tags as it likes" {
	run guest 'protect tags-off Mode=address
		journalctl -q -o cat _PID=$(pid tags-off)'
	assert_success
	assert_output 'prctl: done'
}

@test "tagged addresses forbidden: what runs goes on, what starts falls back and says so" {
	run guest 'protect idle Mode=sync
		sysctl -q abi.tagged_addr_disabled=1
		checks idle
		vatallocctl verify --no-legend idle
		systemctl restart idle
		sleep 1
		checks idle
		vatallocctl verify --no-legend idle || echo "status $?"
		vatallocctl status --no-legend idle
		journalctl -q -o cat _PID=$(pid idle)'
	assert_success
	assert_line -n 0 sync
	assert_line -n 1 --regexp '^[0-9]+ where +yes +sync +-$'
	assert_line -n 2 none
	assert_line -n 3 --regexp '^[0-9]+ where +.* +address +protected, but not in the mode asked for: .*abi.tagged_addr_disabled'
	assert_line --regexp '^idle.service +[a-z]+ +address '
	assert_line --regexp "^vatalloc: the kernel refuses tagged addresses .*, running in mode 'address'$"
}

@test "tagged addresses forbidden: Fallback=fail does not start, and says why" {
	run guest 'configure idle Mode=sync Fallback=fail
		systemctl restart idle
		eventually systemctl is-failed -q idle
		systemctl show -P Result -P ExecMainStatus idle
		journalctl -q -o cat -u idle -n 8
		sysctl -q abi.tagged_addr_disabled=0
		systemctl reset-failed idle
		systemctl restart idle
		sleep 1
		checks idle'
	assert_success
	assert_line -n 0 exit-code
	assert_line -n 1 78
	assert_line --regexp "^vatalloc: the kernel refuses tagged addresses .* mode 'sync' has fallback="
	assert_line --index -1 sync
}

# A machine of its own.
@test "without MTE: sync falls back, Fallback=fail does not start, auto says nothing" {
	export VM_MTE=off
	guest_up
	run guest 'grep -c "\<mte\>" /proc/cpuinfo || :
		printf "[Service]\nExecStart=/opt/programs/where\n" > /run/systemd/system/idle.service
		for settings in "Mode=sync" "Mode=auto"; do
			protect idle $settings
			vatallocctl verify --no-legend idle || echo "status $?"
			journalctl -q -o cat _PID=$(pid idle) | grep vatalloc || echo nothing said
		done
		configure idle Mode=async Fallback=fail
		systemctl restart idle
		eventually systemctl is-failed -q idle
		systemctl show -P ExecMainStatus idle
		journalctl -q -o cat -u idle -n 8'
	assert_success
	assert_line -n 0 0
	assert_line -n 1 --regexp '^[0-9]+ where +.* +address +protected, but not in the mode asked for: the CPU or the kernel has no MTE'
	assert_line "vatalloc: no MTE here, running in mode 'address'"
	assert_line --regexp '^[0-9]+ where +yes +address +-$'
	assert_line 'nothing said'
	assert_line 78
	assert_line --regexp "^vatalloc: no MTE here, and mode 'async' has fallback="
}
