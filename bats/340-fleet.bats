#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# More than one machine: systemd-journal-upload sends a journal to systemd-journal-remote, and vatallocctl
# reads the crashes of all machines there. Each machine collects its own journal so; that of the
# others comes as a file.

load helpers
load systemd

setup_file() {
	requires_machines
	machines_up fleet
	local top tree suite
	top=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	tree=$BATS_FILE_TMPDIR/programs
	install -D "$top/build/test/bug" "$tree/usr/local/bin/bug"
	for suite in $machine_suites; do
		machine_push "fleet-$suite" "$tree"
		machine "fleet-$suite" sh -c 'printf "%s\n" "[Service]" \
			"ExecStart=/usr/local/bin/bug double-free" \
			"Environment=\"LD_PRELOAD=/usr/\$LIB/vatalloc/libvatalloc.so\"" \
			> /etc/systemd/system/web.service; systemctl daemon-reload
			hostname "$0"; systemctl start web' "$suite"
	done
}

teardown_file() {
	machines_down fleet
}

remote=/var/log/journal/remote

collect() {
	inside sh -c 'mkdir -p /etc/systemd/system/systemd-journal-remote.service.d
		printf "[Service]\nExecStart=\nExecStart=/usr/lib/systemd/systemd-journal-remote \
			--listen-http=-3 --output=/var/log/journal/remote/\n" \
			> /etc/systemd/system/systemd-journal-remote.service.d/http.conf
		printf "[Upload]\nURL=http://127.0.0.1:19532\n" > /etc/systemd/journal-upload.conf
		install -d -o systemd-journal-remote -g systemd-journal-remote /var/log/journal/remote
		systemctl daemon-reload
		systemctl start systemd-journal-remote.socket systemd-journal-upload'
	eventually arrived "$suite"
	run inside vatallocctl crashes --directory=$remote
	assert_success
	assert_line --index 0 --regexp '^TIME +ID +HOST +UNIT +PID +KIND'
	assert_line --index 1 --regexp " $suite +web.service +[0-9]+ double-free"
}

# arrived HOST: its crash is among the collected ones.
arrived() {
	inside vatallocctl crashes --directory=$remote --json=short 2> /dev/null |
		grep -q "\"host\":\"$1\",.*\"kind\":\"double-free\""
}

@test "a journal that was uploaded" {
	each collect
}

merged() {
	local other
	for other in $machine_suites; do
		[ "$other" != "$suite" ] || continue
		machine "fleet-$other" journalctl -o export -t vatalloc |
			inside /usr/lib/systemd/systemd-journal-remote \
				--output=$remote/remote-$other.journal - > /dev/null
		arrived "$other"
	done
	run inside vatallocctl crashes --no-legend --directory=$remote
	assert_equal "${#lines[@]}" "$(wc -w <<< "$machine_suites")"
	# in the order of time, wherever they are from
	assert_equal "$output" "$(sort -s -k 1,2 <<< "$output")"
	run inside vatallocctl crashes --json=short --directory=$remote
	assert_output --partial '"unit":"web.service"'

	# as one of the journals of this machine
	inside sh -c 'mkdir -p /var/log/journal/00112233445566778899aabbccddeeff
		cp /var/log/journal/remote/*.journal /var/log/journal/00112233445566778899aabbccddeeff/'
	run inside vatallocctl crashes --no-legend --merge
	assert [ ${#lines[@]} -ge 2 ]
	run inside vatallocctl crashes --no-legend
	assert_equal ${#lines[@]} 1
}

@test "the journals of several machines together" {
	each merged
}

explained() {
	local ids
	ids=$(inside vatallocctl crashes --no-legend --directory=$remote | awk '{ print $3 }')
	run inside vatallocctl explain --directory=$remote "$(head -n 1 <<< "$ids")"
	assert_success
	assert_output --partial 'Reported '
	assert_output --partial ' of web.service'
}

@test "a bug is explained from collected journals" {
	each explained
}
