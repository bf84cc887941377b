#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Reports of heap errors in the journal: the process's own, the reporter's for those that could not,
# and none that is forged, told twice or about something else.

load helpers
load systemd

crash_id=ed3f568b47eb4501ae44d15dc645b4f3
throttle_id=3e1dbaca9eb04c27b4ea12d1fc0dade2

setup_file() {
	requires_machines
	grep -q . /proc/sys/kernel/core_pattern && [ -w /proc/sys/kernel/core_pattern ] ||
		skip 'core_pattern cannot be set'
	machines_up reports
	local top tree suite
	top=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	tree=$BATS_FILE_TMPDIR/programs
	install -D "$top/build/test/bug" "$tree/usr/local/bin/bug"
	install -D -m 0644 /dev/stdin "$tree/etc/systemd/system/vatalloc-reporter.service.d/test.conf" <<- 'END'
		[Service]
		ExecStart=
		ExecStart=/usr/libexec/vatalloc-reporter --debug --burst=3
	END
	for suite in $machine_suites; do
		machine_push "reports-$suite" "$tree"
		machine "reports-$suite" systemctl daemon-reload
		machine "reports-$suite" systemctl enable -q --now vatalloc-reporter
	done
}

teardown_file() {
	machines_down reports
}

# service NAME BUG LINE...: a protected unit that makes a mistake when it is started. The checks of
# vatalloc@.service are left out: they would start a unit that ends at once a second time.
service() {
	local name=$1 bug=$2
	shift 2
	printf '%s\n' '[Service]' "ExecStart=/usr/local/bin/bug $bug" \
		'Environment="LD_PRELOAD=/usr/$LIB/vatalloc/libvatalloc.so"' "$@" |
		inside tee "/etc/systemd/system/$name.service" > /dev/null
	inside systemctl daemon-reload
	inside systemctl start "$name"
}

# entries JOURNALCTL-OPTION...: the number of entries.
entries() {
	inside journalctl --no-pager -q -o cat --output-fields=MESSAGE_ID "$@" | grep -c .
}

reported() {
	[ "$(entries "MESSAGE_ID=$crash_id" "OBJECT_SYSTEMD_UNIT=$1.service")" -ge "${2:-1}" ]
}

# dumped NAME [N]: systemd-coredump has told of it, and the reporter has seen that.
dumped() {
	eventually dumps_of "$1" "${2:-1}"
	sleep .5
}

dumps_of() {
	[ "$(entries "COREDUMP_UNIT=$1.service")" -ge "$2" ]
}

# crashes NAME: its reports as JSON.
crashes() {
	inside vatallocctl crashes --json=short --unit="$1"
}

by_process() {
	service plain uaf-large
	dumped plain
	# as every admin looks: by unit, by identifier, by message
	[ "$(entries -u plain -t vatalloc)" = 1 ]
	[ "$(entries -t vatalloc)" = 1 ]
	[ "$(entries "MESSAGE_ID=$crash_id")" = 1 ]
	run inside journalctl --no-pager -x -u plain -t vatalloc
	assert_output --partial 'Subject: Heap error in /usr/local/bin/bug'
	assert_output --partial 'What to do:'
	refute_output --partial '@VATALLOC'
	run crashes plain
	assert_output --partial '"source":"process"'
	assert_output --partial '"unit":"plain.service"'
	assert_output --partial '"program":"/usr/local/bin/bug"'
	assert_output --regexp '"backtrace":"#0 0x[0-9a-f]+ bug\+0x'
	# the signal is the program's, as ever
	run inside systemctl show -P Result plain
	assert_output --regexp 'core-dump|signal'
}

@test "a process reports its error, and nobody reports it again" {
	each by_process
}

double_free() {
	service freed double-free
	dumped freed
	run crashes freed
	assert_output --partial '"kind":"double-free","access":"free"'
	[ "$(entries "MESSAGE_ID=$crash_id" _SYSTEMD_UNIT=freed.service)" = 1 ]
	! reported freed
}

@test "an error found in free() ends in one report too" {
	each double_free
}

on_stderr() {
	service stderr double-free Environment=VATALLOC_OPTIONS=journal=no
	eventually reported stderr
	run crashes stderr
	assert_output --partial '"source":"reporter"'
	assert_output --partial '"kind":"double-free","access":"free"'
	assert_output --regexp '"message":"double-free: free of 0x[0-9a-f]+, 0 bytes into a 64-byte object'
	assert_output --regexp '"chunk":"0x[0-9a-f]+"'
	assert_output --partial '"size":64'
	assert_output --partial '"thread":"bug"'
	assert_output --regexp '"backtrace":"#0 0x[0-9a-f]+ bug\+0x'
	# the unit's log has it
	[ "$(entries -u stderr "MESSAGE_ID=$crash_id")" = 1 ]
}

@test "a report that went to stderr becomes an entry" {
	each on_stderr
}

from_core() {
	service core uaf-large Environment=VATALLOC_OPTIONS=journal=no StandardError=null
	eventually reported core
	run crashes core
	assert_output --partial '"source":"reporter"'
	assert_output --partial '"kind":"retired-lease","access":"unknown"'
	assert_output --regexp '"address":"0x[0-9a-f]+"'
	assert_output --partial '"mode":"address"'
	assert_output --partial '"module":"/usr/local/bin/bug"'
	assert_output --regexp '"si_code":[12]'
	# where the program says the access was
	local address
	address=$(grep -o '"address":"[^"]*' <<< "$output" | cut -d '"' -f 4)
	inside journalctl --no-pager -o cat -u core | grep -q "^read at $address, "

	service abort double-free Environment=VATALLOC_OPTIONS=journal=no StandardError=null
	eventually reported abort
	run crashes abort
	assert_output --partial '"kind":"unknown"'
	run inside journalctl --no-pager -x -u abort -t vatalloc
	assert_output --partial 'Heap error in /usr/local/bin/bug: unknown'
}

@test "without a word of the process the core dump tells" {
	each from_core
}

silenced() {
	service silent uaf-large Environment=VATALLOC_OPTIONS=on_fault=silent
	dumped silent
	run crashes silent
	assert_output '{"crashes":[]}'
}

@test "who wants silence gets it" {
	each silenced
}

unrelated() {
	printf '%s\n' '[Service]' 'ExecStart=/bin/sh -c "kill -SEGV $$$$"' \
		'Environment="LD_PRELOAD=/usr/$LIB/vatalloc/libvatalloc.so"' |
		inside tee /etc/systemd/system/unrelated.service > /dev/null
	inside systemctl daemon-reload
	inside systemctl start unrelated
	dumped unrelated
	run crashes unrelated
	assert_output '{"crashes":[]}'
	run inside journalctl --no-pager -o cat -u vatalloc-reporter
	assert_output --partial 'no sign of a heap error'
}

@test "other crashes of protected processes are none of ours" {
	each unrelated
}

sandboxed() {
	service sandbox uaf-large DynamicUser=yes ProtectSystem=strict MemoryDenyWriteExecute=yes \
		RestrictAddressFamilies=AF_INET SystemCallFilter=@system-service \
		PrivateTmp=yes ProtectProc=invisible NoNewPrivileges=yes
	eventually reported sandbox
	run crashes sandbox
	assert_output --partial '"kind":"retired-lease"'
	assert_output --partial '"source":"reporter"'
	[ "$(entries -u sandbox "MESSAGE_ID=$crash_id")" = 1 ]
}

@test "a sandbox without the journal's socket" {
	each sandboxed
}

chrooted() {
	inside sh -c 'mkdir -p /srv/root; for file in /usr/local/bin/bug /usr/lib/*/vatalloc/libvatalloc.so \
			$(ldd /usr/local/bin/bug /usr/lib/*/vatalloc/libvatalloc.so | grep -o "/[^ ]*" | grep -v :); do
			mkdir -p "/srv/root/${file%/*}"; cp "$file" "/srv/root/$file"; done'
	service rooted uaf-large RootDirectory=/srv/root StandardError=null
	dumped rooted
	run crashes rooted
	assert_output --partial '"kind":"retired-lease"'
	assert_output --partial '"unit":"rooted.service"'
	# Newer systemd brings the socket along, and then the process can tell itself.
	[ "$(entries "MESSAGE_ID=$crash_id" -u rooted)" = 1 ]
}

@test "a root without the journal's socket" {
	each chrooted
}

# seen_to NAME N: the place that the reporter keeps is behind the Nth crash.
seen_to() {
	local last
	last=$(inside journalctl --no-pager -q -o cat --show-cursor "COREDUMP_UNIT=$1.service" |
		sed -n 's/^-- cursor: //p')
	[ "$(inside cat /var/lib/vatalloc/cursor)" = "$last" ] && dumps_of "$1" "$2"
}

# Of a service of joe's: the core dump's entry is in joe's journal.
of_a_user() {
	inside sh -c 'id joe > /dev/null 2>&1 || useradd -m -u 1234 joe
		mkdir -p /home/joe/.config/systemd/user /var/log/journal /run/systemd/system/user@1234.service.d
		for name in told mute; do
			printf "[Service]\nExecStart=/usr/local/bin/bug uaf-large\nEnvironment=\"LD_PRELOAD=/usr/\$LIB/vatalloc/libvatalloc.so\"\n" \
				> /home/joe/.config/systemd/user/$name.service
		done
		printf "Environment=VATALLOC_OPTIONS=journal=no\nStandardError=null\n" \
			>> /home/joe/.config/systemd/user/mute.service
		chown -R joe: /home/joe
		# pam_systemd would say so, where it is installed
		printf "[Service]\nEnvironment=XDG_RUNTIME_DIR=/run/user/1234\n" \
			> /run/systemd/system/user@1234.service.d/test.conf
		journalctl --flush
		systemctl daemon-reload; systemctl start user@1234'
	joe systemctl --user start told mute
	run joe vatallocctl --user status --no-legend told
	assert_output --regexp '^told.service '
	eventually reported_user mute
	run inside vatallocctl crashes --json=short -u mute
	assert_output --partial '"unit":"user@1234.service","user_unit":"mute.service"'
	assert_output --partial '"source":"reporter"'
	run joe vatallocctl crashes --json=short
	assert_output --partial '"user_unit":"told.service"'
	assert_output --partial '"source":"process"'
	inside systemctl stop user@1234
}

joe() {
	inside setpriv --reuid=joe --regid=joe --init-groups env HOME=/home/joe \
		XDG_RUNTIME_DIR=/run/user/1234 "$@"
}

reported_user() {
	[ "$(entries "MESSAGE_ID=$crash_id" "OBJECT_SYSTEMD_USER_UNIT=$1.service")" = 1 ]
}

@test "a user's own services" {
	each of_a_user
}

# Each start is a crash: three are looked at, the rest are counted.
loop() {
	local i
	service loop double-free Environment=VATALLOC_OPTIONS=journal=no
	eventually dumps_of loop 1
	for i in {2..6}; do
		inside systemctl reset-failed loop 2> /dev/null || :
		inside systemctl start loop
		eventually dumps_of loop "$i"
	done
	eventually reported loop 3
	eventually seen_to loop 6
	[ "$(entries "MESSAGE_ID=$crash_id" OBJECT_SYSTEMD_UNIT=loop.service)" = 3 ]
}

@test "of a crash loop the first few are reported" {
	each loop
}

loop_told() {
	inside systemctl restart vatalloc-reporter
	run inside journalctl --no-pager -o cat --output-fields=VATALLOC_COUNT -u loop "MESSAGE_ID=$throttle_id"
	assert_output 3
	run inside journalctl --no-pager -x -u loop "MESSAGE_ID=$throttle_id"
	assert_output --partial 'crashes again and again'
	assert_output --partial '3 more since'
}

# The count is told when the interval is over, ten minutes, or when the reporter ends.
@test "and the rest are counted" {
	each loop_told
}

restarted() {
	inside systemctl stop vatalloc-reporter
	service missed double-free Environment=VATALLOC_OPTIONS=journal=no
	dumped missed
	! reported missed
	inside systemctl start vatalloc-reporter
	eventually reported missed
	inside systemctl restart vatalloc-reporter
	sleep 1
	[ "$(entries "MESSAGE_ID=$crash_id" OBJECT_SYSTEMD_UNIT=missed.service)" = 1 ]
	# a lost or foreign place in the journal is no reason to stop
	inside systemctl stop vatalloc-reporter
	inside sh -c 'echo "s=nonsense;i=1" > /var/lib/vatalloc/cursor'
	inside systemctl start vatalloc-reporter
	inside systemctl is-active vatalloc-reporter
}

@test "crashes while the reporter was away are reported once" {
	each restarted
}

# as UID FIELD=VALUE...: sends an entry to the journal.
as() {
	local uid=$1
	shift
	printf '%s\n' "$@" | inside setpriv --reuid="$uid" --clear-groups logger --journald
}

forged() {
	local maps='COREDUMP_PROC_MAPS=7f0000000000-7f0000001000 rw-p 00000000 00:00 1 /usr/lib/vatalloc/libvatalloc.so'
	local before
	before=$(entries "MESSAGE_ID=$crash_id")
	as 65534 MESSAGE_ID=fc2e22bc6ee647b6b90729ab34a250b1 MESSAGE=forged COREDUMP_PID=1 \
		COREDUMP_SIGNAL=11 COREDUMP_UNIT=dbus.service "$maps" _SYSTEMD_UNIT=systemd-coredump@1.service
	sleep 3
	[ "$(entries "MESSAGE_ID=$crash_id")" = "$before" ]
	run inside journalctl --no-pager -o cat -u vatalloc-reporter
	assert_output --partial 'did not come from systemd-coredump'

	# and what is sent as if the reporter had
	as 65534 "MESSAGE_ID=$crash_id" MESSAGE=forged VATALLOC_KIND=overflow VATALLOC_SOURCE=reporter \
		OBJECT_SYSTEMD_UNIT=dbus.service VATALLOC_PROCESS_PID=1
	as 65534 "MESSAGE_ID=$crash_id" MESSAGE=forged VATALLOC_KIND=overflow VATALLOC_SOURCE=process \
		OBJECT_SYSTEMD_UNIT=dbus.service _SYSTEMD_UNIT=dbus.service
	[ "$(entries "MESSAGE_ID=$crash_id")" = $((before + 2)) ]
	run crashes dbus
	assert_output '{"crashes":[]}'
	run inside vatallocctl crashes --json=short
	refute_output --partial '"source":"reporter","unit":"dbus'
}

@test "forged entries" {
	each forged
}

hostile() {
	printf 'MESSAGE_ID=%s\nMESSAGE=\e[31mred\nVATALLOC_KIND=overflow\e]0;title\a\nVATALLOC_SIZE=1,"x":2\n' "$crash_id" |
		inside logger --journald
	run inside vatallocctl --no-pager crashes
	assert_success
	refute_output --regexp $'[\e\a]'
	run inside sh -c 'vatallocctl crashes --json=short -n 1 > /tmp/json'
	run inside cat /tmp/json
	assert_output --partial '"size":null'
	refute_output --regexp $'[\e\a]'
	run inside sh -c 'vatallocctl explain --no-pager "$(grep -o "\"id\":\"[^\"]*" /tmp/json | cut -d\" -f4)"'
	assert_success
	refute_output --regexp $'[\e\a]'
}

@test "what a process says cannot drive the terminal" {
	each hostile
}

told() {
	run inside vatallocctl crashes --no-legend
	assert_line --regexp '^20..-..-.. ..:..:.. [0-9a-f]{12} plain.service +[0-9]+ retired-lease +read +address +bug\+0x'
	run inside vatallocctl crashes --no-legend -u plain -n 1 --since=-1h --until=now --boot
	assert [ ${#lines[@]} = 1 ]
	run inside vatallocctl crashes --no-legend --until=-1h
	assert_output ''
	run inside vatallocctl crashes --no-legend --reverse -u 'f*'
	assert_line --index 0 --partial freed.service
	local id
	id=$(inside vatallocctl crashes --no-legend -u freed | awk '{ print $3 }')
	run inside vatallocctl explain "$id"
	assert_success
	assert_output --partial 'Reported '
	assert_output --partial 'VATALLOC_KIND=double-free'
	assert_output --partial 'Where it happened:'
	assert_output --partial '#0 0x'
	assert_output --partial 'The program freed an object that it had freed before'
	# the program has its symbols, the C library its public ones
	run inside vatallocctl explain --symbols "$id"
	assert_output --partial 'double_free at bug.c:'
	assert_output --regexp '__libc_start_main|libc_start'
	run inside vatallocctl crashes --symbols --no-legend -u freed
	assert_output --partial 'double_free at bug.c:'
	run inside vatallocctl status --json=short plain
	assert_output --partial '"crashes":1'
}

@test "crashes and explain tell of them" {
	each told
}

own_crash() {
	local pid
	pid=$(inside systemctl show -P MainPID vatalloc-reporter)
	[ "$pid" -gt 1 ]
	inside sh -c "kill -SEGV $pid"
	dumped vatalloc-reporter
	inside sleep 6
	inside systemctl is-active vatalloc-reporter
	[ "$(entries "MESSAGE_ID=$crash_id" OBJECT_SYSTEMD_UNIT=vatalloc-reporter.service)" = 0 ]
}

@test "the reporter's own crash is no report" {
	each own_crash
}

confined() {
	local pid
	pid=$(inside systemctl show -P MainPID vatalloc-reporter)
	run inside grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' "/proc/$pid/status"
	assert_line --regexp 'CapEff:.0000000000000000'
	assert_line --regexp 'CapBnd:.0000000000000000'
	assert_line --regexp 'NoNewPrivs:.1'
	assert_line --regexp 'Seccomp:.2'
}

@test "the reporter has no privileges that it does not need" {
	each confined
}
