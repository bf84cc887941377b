#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The demo, which checks what it shows, and the README, whose tour is a copy of what it shows.

load helpers
load packages
load systemd

setup_file() {
	needs requires_chroot requires_machines 'requires ab curl' || return 0
	export demo=$BATS_FILE_TMPDIR/demo
	mkdir "$BATS_FILE_TMPDIR/tmp"
	TMPDIR=$BATS_FILE_TMPDIR/tmp "$BATS_TEST_DIRNAME/demo/run" > "$demo" 2>&1 3>&- || {
		cat "$demo" >&2
		return 1
	}
}

# What the demo shows for the command $1, each time it comes.
answers() {
	awk -v command="$1" 'NF == 0 { on = 0 } on { print } substr($0, 3) == command { on = 1 }' "$demo"
}

@test "the demo: nginx, protected, serves all that is asked of it" {
	run answers 'vatallocctl verify nginx'
	assert_line --index 0 --regexp '^PID NAME +PROTECTED MODE +NOTE$'
	refute_line --index 1 --regexp ' no '
	run answers 'ab -q -n 100000 -c 100 http://localhost/ | grep requests:'
	assert_line --regexp '^Complete requests: +100000$'
	assert_line --regexp '^Failed requests: +0$'
	run answers "grep -c '\" 200 ' /var/log/nginx/access.log"
	assert_output 100000
}

@test "the demo: what a dangling pointer finds, without and with vatalloc, and with small units" {
	run answers 'curl localhost:8080/account/1'
	assert_output 'this is the account of guest
this is the account of alice
this is the account of guest
this is the account of guest
this is the account of guest
curl: (52) Empty reply from server'
}

@test "the demo: the crash is in the journal and in the list" {
	run answers 'journalctl -u shop -n 4'
	assert_line --regexp ' vatalloc\[[0-9]+\]: use-after-free: read at 0x[0-9a-f]+, 0 bytes into a 32768-byte object'
	run answers 'vatallocctl crashes --symbols'
	assert_line --regexp ' shop.service +[0-9]+ use-after-free +read +address +account at shop.c:[0-9]+$'
}

@test "the demo leaves nothing behind, here" {
	run ls -A "$BATS_FILE_TMPDIR/tmp"
	assert_output ''
	assert_not_exists $machine_state/demo
	run pgrep -f 'systemd-nspawn .*-M demo$'
	assert_failure
}

@test "the demo says why it cannot run" {
	run setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_DIRNAME/demo/run"
	assert_failure 1
	assert_output --partial 'demo: containers take root'
}

# Numbers, times and the like differ from run to run, and so do the columns they are in.
normal() {
	sed -E 's/^[A-Z][a-z]{2} [0-9]{2} [0-9:]{8} /TIME /; s/0x[0-9a-f]+|[0-9a-f]{12}/N/g
		s/_[a-z0-9]+\.deb/_ARCH.deb/g; s/[0-9][0-9.]*[BKMGT]?/N/g; s/ +/ /g; s/^ | $//g' "$@"
}

@test "README.md shows nothing that the demo does not" {
	normal "$demo" > "$BATS_TEST_TMPDIR/demo"
	sed -n '/^```console$/,/^```$/{/^```/d; /^$/d; /^\.\.\.$/d; p}' "$VATALLOC_SOURCE/README.md" |
		normal > "$BATS_TEST_TMPDIR/readme"
	assert [ "$(wc -l < "$BATS_TEST_TMPDIR/readme")" -gt 30 ]
	run grep -vxFf "$BATS_TEST_TMPDIR/demo" "$BATS_TEST_TMPDIR/readme"
	assert_output ''
}
