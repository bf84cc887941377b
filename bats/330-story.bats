#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What an administrator does, from installing to removing, in this order, with a service that has a
# bug. Each test goes on from the one before.

load helpers
load systemd

crash_id=ed3f568b47eb4501ae44d15dc645b4f3

setup_file() {
	requires_machines
	[ -w /proc/sys/kernel/core_pattern ] || skip 'core_pattern cannot be set'
	machines_up story
	local top tree suite
	top=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	tree=$BATS_FILE_TMPDIR/programs
	install -D "$top/build/test/bug" "$tree/usr/local/bin/bug"
	# It works until it is told to make its mistake.
	install -D -m 0644 /dev/stdin "$tree/etc/systemd/system/shop.service" <<- 'END'
		[Service]
		ExecStart=/bin/sh -c 'trap "exec /usr/local/bin/bug $${BUG}" USR1; echo open; while :; do sleep .1; done'
		EnvironmentFile=-/etc/shop
	END
	sed '1a RootDirectory=/srv/root\nDynamicUser=yes\nProtectSystem=strict\nMemoryDenyWriteExecute=yes\nRestrictAddressFamilies=AF_INET\nSystemCallFilter=@system-service\nSystemCallArchitectures=native\nPrivateNetwork=yes\nRestrictNamespaces=yes\nLockPersonality=yes\nCapabilityBoundingSet=' \
		"$tree/etc/systemd/system/shop.service" > "$tree/etc/systemd/system/vault.service"
	for suite in $machine_suites; do
		machine_push "story-$suite" "$tree"
		machine "story-$suite" sh -c 'mkdir -p /srv/root
			for file in /bin/sh /usr/bin/sleep /usr/local/bin/bug $(ldd /bin/sh /usr/bin/sleep \
				/usr/local/bin/bug /usr/lib/*/vatalloc/libvatalloc.so | grep -o "^[^:]*/[^ ]*" |
				grep -o "/[^ ]*"); do
				mkdir -p "/srv/root/${file%/*}"; cp "$file" "/srv/root/$file"
			done
			systemctl daemon-reload; systemctl enable -q --now vatalloc-reporter
			systemctl start shop vault'
	done
}

teardown_file() {
	machines_down story
}

mapped() {
	inside sh -c 'grep -c vatalloc/libvatalloc.so "/proc/$(systemctl show -P MainPID "$1")/maps"' sh "$1"
}

options() {
	inside sh -c 'tr "\0" "\n" < "/proc/$(systemctl show -P MainPID "$1")/environ" |
		sed -n "s/^VATALLOC_OPTIONS=//p"' sh "$1"
}

executed() {
	inside sh -c 'readlink "/proc/$(systemctl show -P MainPID "$1")/exe"' sh "$1" | grep -q 'sh$'
}

# crash NAME BUG: has it make its mistake, and waits for what becomes of it.
crash() {
	local before
	before=$(reports_of "$1")
	inside sh -c "echo BUG=$2 > /etc/shop"
	inside systemctl restart "$1"
	eventually inside sh -c 'journalctl --no-pager -q -o cat -u "$1" _PID="$(systemctl show -P MainPID "$1")" |
		grep -q open' sh "$1"
	inside systemctl kill -s USR1 --kill-whom=main "$1"
	eventually more_reports "$1" "$before"
	# a second report of the same crash would come from the core dump
	sleep 1
	[ "$(reports_of "$1")" = $((before + 1)) ]
}

reports_of() {
	inside journalctl --no-pager -q -o cat --output-fields=MESSAGE_ID -u "$1" \
		"MESSAGE_ID=$crash_id" | grep -c . || :
}

more_reports() {
	[ "$(reports_of "$1")" -gt "$2" ]
}

enable() {
	[ "$(mapped shop)" = 0 ]
	inside systemctl enable -q --now vatalloc@shop
	eventually inside systemctl is-active -q vatalloc@shop
	[ "$(mapped shop)" -gt 0 ]
	run inside vatallocctl status --no-legend shop
	assert_output --regexp '^shop.service +yes +address'
}

@test "enable --now protects a running service" {
	each enable
}

configure() {
	inside sh -c 'mkdir -p /etc/vatalloc.conf.d
		printf "[shop.service]\nMode=count\nGranularity=64K\nGranularite=1\n" > /etc/vatalloc.conf.d/shop.conf'
	run inside vatallocctl check-config shop
	assert_equal "$status" 1
	assert_output --regexp 'shop.conf:4: .*Granularite'
	assert_output --regexp 'Mode +count +/etc/vatalloc.conf.d/shop.conf:2'
	inside systemctl daemon-reload
	# the process has what it was started with
	run options shop
	refute_output --partial count
	inside systemctl restart shop
	# a restart is done before the program is executed
	eventually executed shop
	run options shop
	assert_output --partial mode=count
	assert_output --partial granularity=64K
	run inside vatallocctl status --no-legend shop
	assert_output --regexp "^shop.service +no +count .*protects nothing"
	run inside vatallocctl verify --wait shop
	assert_success
}

@test "a changed configuration counts after daemon-reload and a restart" {
	each configure
}

in_count() {
	crash shop double-free
	run inside vatallocctl crashes --json=short -n 1
	assert_output --partial '"kind":"double-free"'
	assert_output --partial '"mode":"count"'
	inside rm /etc/vatalloc.conf.d/shop.conf
	inside systemctl daemon-reload
}

@test "a double free, counting only" {
	each in_count
}

in_address() {
	crash shop uaf-large
	run inside vatallocctl crashes --json=short -n 1
	assert_output --partial '"access":"read"'
	assert_output --partial '"mode":"address"'
	assert_output --partial '"source":"process"'
	run inside journalctl --no-pager -o cat -u shop
	assert_output --regexp '(retired-lease|use-after-free): read at 0x'
	run inside journalctl --no-pager -o cat -t vatalloc
	assert_output --regexp '(retired-lease|use-after-free): read at 0x'
	run inside journalctl --no-pager -x -u shop -t vatalloc -n 1
	assert_output --partial 'Heap error in /usr/local/bin/bug'
	# the crash is what it would have been without us
	run inside systemctl show -P Result shop
	assert_output --regexp 'core-dump|signal'
	run inside vatallocctl status --no-legend shop
	assert_output --regexp '^shop.service +failed .* 2 '
}

@test "a use after free, in address mode" {
	each in_address
}

in_mte() {
	local mode
	inside grep -qw mte /proc/cpuinfo || return 77
	for mode in sync async; do
		inside sh -c "printf '[shop.service]\nMode=$mode\n' > /etc/vatalloc.conf.d/shop.conf"
		inside systemctl daemon-reload
		crash shop uaf-read
		run inside vatallocctl crashes --json=short -n 1
		assert_output --partial "\"mode\":\"$mode\""
	done
	inside rm /etc/vatalloc.conf.d/shop.conf
	inside systemctl daemon-reload
}

@test "a use after free, with MTE" {
	grep -qw mte /proc/cpuinfo || skip 'no MTE here'
	each in_mte
}

sandboxed() {
	inside systemctl enable -q --now vatalloc@vault
	eventually inside systemctl is-active -q vatalloc@vault
	[ "$(mapped vault)" -gt 0 ]
	crash vault uaf-large
	run inside vatallocctl crashes --json=short -n 1 -u vault
	assert_output --partial '"unit":"vault.service"'
	assert_output --regexp '"kind":"(retired-lease|use-after-free)"'
	run inside journalctl --no-pager -o cat -u vault
	assert_output --regexp 'status=11/SEGV'
}

@test "a service that forbids itself everything starts, and is reported" {
	each sandboxed
}

disable() {
	inside systemctl start shop
	eventually inside systemctl is-active -q vatalloc@shop
	[ "$(mapped shop)" -gt 0 ]
	inside systemctl disable -q --now vatalloc@shop
	not_mapped() { [ "$(mapped shop)" = 0 ]; }
	eventually not_mapped
	inside systemctl is-active -q shop
	run inside vatallocctl verify --json=short shop
	assert_equal "$status" 3
	assert_output --partial 'vatalloc is not enabled for the unit'
}

@test "disable --now goes back" {
	each disable
}

remove() {
	inside sh -c 'echo BUG=none > /etc/shop'
	inside systemctl enable -q --now vatalloc@shop
	eventually inside systemctl is-active -q vatalloc@shop
	inside sh -c 'systemctl disable -q vatalloc@shop vatalloc@vault; systemctl disable -q --now vatalloc-reporter
		rm -r /usr/bin/vatallocctl /usr/libexec/vatalloc-* /usr/lib/*/vatalloc /usr/lib/systemd/system/vatalloc* \
			/usr/lib/systemd/system-generators/vatalloc-generator /usr/lib/systemd/catalog/vatalloc.catalog \
			/etc/vatalloc.conf* /var/lib/vatalloc
		systemctl daemon-reload; journalctl --update-catalog'
	# what runs goes on with what it has, and the next start is clean
	inside systemctl is-active -q shop
	[ "$(mapped shop)" -gt 0 ]
	inside systemctl restart shop
	eventually executed shop
	[ "$(mapped shop)" = 0 ]
	run inside find /run/systemd/generator /etc/systemd -name '*vatalloc*'
	assert_output ''
	run inside sh -c 'journalctl --no-pager -o cat _SYSTEMD_INVOCATION_ID="$(systemctl show -P InvocationID shop)"'
	assert_output open
	run inside systemctl --failed --no-legend --plain
	refute_output --partial vatalloc
}

@test "removed, it leaves running services alone and nothing behind" {
	each remove
}
