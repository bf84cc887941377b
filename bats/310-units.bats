#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# vatallocctl and the service manager: what status and verify say of units, for each way in which
# a unit can be without protection.

load helpers
load systemd

setup_file() {
	requires_machines
	machines_up units
	local top build tree suite
	top=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	build=$top/build
	tree=$BATS_FILE_TMPDIR/programs
	install -D "$build/systemd/test/idle" "$tree/usr/local/bin/idle"
	install -D "$build/systemd/test/idle-static" "$tree/usr/local/bin/idle-static"
	install -D -m 4755 "$build/systemd/test/idle" "$tree/usr/local/bin/idle-setuid"
	for suite in $machine_suites; do
		machine_push "units-$suite" "$tree"
		machine "units-$suite" chmod 4755 /usr/local/bin/idle-setuid
	done
}

teardown_file() {
	machines_down units
}

# service NAME LINE...: a unit with these lines in [Service], enabled and running. Its start is over when
# its program runs: before that the process is one of the service manager's.
service() {
	local name=$1
	shift
	printf '%s\n' '[Service]' Type=exec "$@" |
		inside tee "/etc/systemd/system/$name.service" > /dev/null
	inside systemctl enable -q "vatalloc@$name"
	inside systemctl start "$name"
	# vatalloc@.service may restart it once, where it finds it unprotected.
	eventually no_jobs
}

no_jobs() {
	[ -z "$(inside systemctl list-jobs --no-legend)" ]
}

# unprotected NAME REASON TEXT: what verify says of a unit that is not protected.
unprotected() {
	run inside vatallocctl verify --json=short "$1"
	assert_equal "$status" 3
	assert_output --partial "\"protected\":false"
	assert_output --partial "\"reason\":\"$2\""
	assert_output --partial "$3"
	run inside vatallocctl status --no-legend "$1"
	assert_success
	assert_output --regexp "^$1.service +no +"
	assert_output --partial "$3"
}

# nginx writes its title over its environment, and the other one has no LD_PRELOAD in it.
older() {
	local unit
	printf '%s\n' '[Service]' Type=exec 'ExecStart=/usr/local/bin/idle' |
		inside tee /etc/systemd/system/older.service > /dev/null
	inside systemctl daemon-reload
	inside systemctl start older
	for unit in nginx older; do
		inside systemctl enable -q "vatalloc@$unit"
		# Read anew the drop-in is younger, and the link is as old as it was.
		inside systemctl daemon-reload
		run inside vatallocctl status --no-legend "$unit"
		assert_success
		assert_output --regexp "^$unit\.service +no .* running since before vatalloc was enabled: systemctl restart $unit\.service\$"
		run inside vatallocctl verify --no-legend "$unit"
		assert_equal "$status" 3
		assert_line --regexp " no +- +running since before vatalloc was enabled: systemctl restart $unit\.service\$"
	done
	# Started since without the library it has another reason, and so it has with an older link.
	inside touch --no-dereference --date=2020-01-01 \
		/etc/systemd/system/nginx.service.wants/vatalloc@nginx.service \
		/etc/systemd/system/older.service.wants/vatalloc@older.service
	run inside vatallocctl status --no-legend nginx
	assert_output --partial 'cannot be seen from outside'
	refute_output --partial 'before vatalloc'
	run inside vatallocctl status --no-legend older
	assert_output --partial 'is not set: restart the unit'
	inside systemctl restart older
	run inside vatallocctl verify --wait older
	assert_success
	inside systemctl disable -q vatalloc@older
	inside systemctl stop older
}

@test "a unit that has been running since before vatalloc was enabled for it" {
	each older
}

protected_nginx() {
	inside systemctl enable -q vatalloc@nginx
	run inside vatallocctl status --no-legend nginx
	assert_output --regexp '^nginx.service +no +'
	inside systemctl restart nginx
	run inside vatallocctl verify --wait nginx
	assert_success
	assert_output --regexp '^nginx.service: [0-9]+ processes protected, mode address$'
	run inside vatallocctl verify --no-legend nginx
	assert_success
	assert [ ${#lines[@]} -ge 2 ]
	refute_output --regexp ' no '
}

@test "a unit of several processes" {
	each protected_nginx
}

columns() {
	run inside vatallocctl status
	assert_success
	assert_line --index 0 --regexp '^UNIT +PROTECTED +MODE +PROCESSES +LIVES +SPACE +LIVE +DEAD +CRASHES +NOTE'
	assert_line --regexp '^nginx.service +yes +address +([0-9]+)/\1 +1 +[0-9.]+[BKMG] +[0-9.]+% +[0-9.]+[KM] +[0-9.]+[BKM] +0 +-'
	run inside vatallocctl status --json=short nginx
	local key
	for key in unit active enabled protected reason mode processes processes_protected lives \
		lives_used space_used space_size live_bytes dead_resident bytes_retired \
		bytes_recycled crashes crashes_since_start version note; do
		assert_output --partial "\"$key\":"
	done
	assert_output --regexp '"lives_used":[1-9]'
	assert_output --regexp '"space_size":[1-9][0-9]{8}'
}

@test "the counters are read from the processes" {
	each columns
}

not_enabled() {
	run inside vatallocctl verify --json=short dbus
	assert_equal "$status" 3
	assert_output --partial 'vatalloc is not enabled for the unit'
	run inside vatallocctl verify no-such-unit
	assert_equal "$status" 4
	run inside vatallocctl status no-such-unit
	assert_equal "$status" 4
	run inside vatallocctl status nginx no-such-unit dbus
	assert_equal "$status" 4
	assert_line --regexp '^nginx.service'
	assert_line --regexp '^dbus.service'
	run inside vatallocctl verify 1
	assert_equal "$status" 3
}

@test "units that are not enabled, and those that are not there" {
	each not_enabled
}

not_running() {
	service sleeper 'ExecStart=/usr/local/bin/idle'
	inside systemctl stop sleeper
	run inside vatallocctl verify sleeper
	assert_equal "$status" 4
	run inside vatallocctl verify --wait sleeper
	assert_success
	assert_output --partial 'it will be protected when it is started'
	run inside vatallocctl status --no-legend sleeper
	assert_output --regexp '^sleeper.service +inactive .*will be protected when it is started'
}

@test "a unit that does not run" {
	each not_running
}

static() {
	service static 'ExecStart=/usr/local/bin/idle-static'
	unprotected static static 'statically linked'
}

@test "a static program" {
	each static
}

setuid() {
	service setuid 'ExecStart=/usr/local/bin/idle-setuid' User=nobody
	unprotected setuid secure 'secure mode'
}

@test "a setuid program" {
	each setuid
}

environment_file() {
	# The generator looks into the file, so this one comes later.
	service override 'ExecStart=/usr/local/bin/idle' EnvironmentFile=-/etc/override
	inside sh -c 'echo LD_PRELOAD=libm.so.6 > /etc/override'
	inside systemctl restart override
	unprotected override environment 'EnvironmentFile='
}

@test "a file of the environment that overrides" {
	each environment_file
}

cleared() {
	service cleared 'ExecStart=/usr/bin/env -i /usr/local/bin/idle'
	unprotected cleared environment 'is not set'
}

@test "a start script that clears the environment" {
	each cleared
}

other_allocator() {
	local other
	other=$(inside sh -c 'ls /usr/lib/*/libjemalloc.so.2')
	inside sh -c "echo '#!/bin/sh
LD_PRELOAD=$other:\$LD_PRELOAD exec /usr/local/bin/idle' > /usr/local/bin/start; chmod +x /usr/local/bin/start"
	service other 'ExecStart=/usr/local/bin/start'
	unprotected other other-allocator "$other"
}

@test "another allocator that a start script puts in front" {
	each other_allocator
}

no_root() {
	inside sh -c 'mkdir -p /srv/root/usr/local/bin; cp /usr/local/bin/idle /srv/root/usr/local/bin
		for file in $(ldd /usr/local/bin/idle | grep -o "/[^ ]*"); do
			mkdir -p /srv/root/${file%/*}; cp $file /srv/root/$file; done'
	service rooted 'ExecStart=+/usr/sbin/chroot /srv/root /usr/local/bin/idle'
	inside systemctl status rooted || :
	run inside vatallocctl verify --json=short rooted
	assert_equal "$status" 3
	assert_output --partial '"reason":"not-visible"'
	assert_output --partial 'no /usr/lib/'
	# what the dynamic linker said about it
	assert_output --partial 'cannot open shared object file'
}

@test "a root without the library" {
	each no_root
}

replaced() {
	service replaced 'ExecStart=/usr/local/bin/idle'
	# the old one is mapped
	inside vatallocctl verify --wait replaced
	inside sh -c 'cd /usr/lib/*/vatalloc; cp libvatalloc.so new; mv new libvatalloc.so'
	run inside vatallocctl verify --json=short replaced
	assert_success
	assert_output --partial '"protected":true'
	assert_output --partial '"reason":"outdated"'
	inside systemctl restart replaced
	run inside vatallocctl verify --wait replaced
	assert_success
	assert_output 'replaced.service: 1 process protected, mode address'
}

@test "a library that was replaced" {
	each replaced
}

slow() {
	service slow Type=notify 'ExecStart=/bin/sh -c "sleep 3; systemd-notify --ready; exec /usr/local/bin/idle"' \
		NotifyAccess=all &
	eventually activating
	run inside vatallocctl verify --wait slow
	assert_success
	assert_output --partial 'protected, mode'
	wait $!
	run inside vatallocctl verify --wait --timeout=0 slow
	assert_success
}

activating() {
	[ "$(inside systemctl show -P ActiveState slow)" = activating ]
}

@test "--wait waits until the unit has started" {
	each slow
}

only_what_is_enabled() {
	run inside vatallocctl status --no-legend
	assert_line --regexp '^nginx.service'
	refute_line --regexp '^dbus.service'
	inside systemctl disable -q vatalloc@nginx
	# it still has the library, and says so
	run inside vatallocctl status --no-legend --json=short nginx
	assert_output --partial '"enabled":false,"protected":true'
	run inside vatallocctl status --no-legend
	assert_line --regexp '^nginx.service +yes'
	inside systemctl restart nginx
	run inside vatallocctl status --no-legend
	refute_line --regexp '^nginx.service'
}

@test "without arguments status shows what is enabled or has the library" {
	each only_what_is_enabled
}

# as UID COMMAND...: as a user of no group.
as() {
	local uid=$1
	shift
	run --separate-stderr inside setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"
}

as_a_user() {
	inside systemctl enable -q vatalloc@nginx
	inside systemctl restart nginx
	inside systemctl stop sleeper
	as 65534 vatallocctl status --no-legend
	assert_success
	assert_line --regexp '^nginx.service +unknown +- +\?/[0-9]+ .* only root may look into this process$'
	as 65534 vatallocctl verify --json=short sleeper
	assert_equal "$status" 4
	inside systemctl start sleeper
	as 65534 vatallocctl verify --json=short sleeper
	assert_equal "$status" 1
	assert_output --partial '"protected":null,"mode":null,"reason":"denied"'
	assert_equal "$stderr" 'vatallocctl: sleeper.service: cannot tell, only root may look into its processes'
	as 65534 vatallocctl verify --no-legend sleeper
	assert_equal "$status" 1
	assert_output --regexp '^ *[0-9]+ idle +unknown +- +only root may look'
	as 65534 vatallocctl status --json=short sleeper
	assert_success
	assert_output --partial '"protected":null,"reason":"denied"'
	assert_output --partial '"processes":1,"processes_protected":null'
}

@test "a user may ask, and is told what a user may know" {
	each as_a_user
}

own_process() {
	# What is seen to be unprotected is so, whatever else there is.
	printf '%s\n' '[Service]' 'User=nobody' \
		'ExecStart=+/bin/sh -c "/usr/local/bin/idle & exec setpriv --reuid=65534 --regid=65534 --clear-groups env -i /usr/local/bin/idle"' |
		inside tee /etc/systemd/system/mixed.service > /dev/null
	inside systemctl daemon-reload
	inside systemctl start mixed
	eventually two_idle
	as 65534 vatallocctl verify --no-legend mixed
	assert_equal "$status" 3
	assert_line --regexp 'idle +unknown '
	assert_line --regexp 'idle +no '
	as 65534 vatallocctl status --no-legend mixed
	assert_output --regexp '^mixed.service +no +- +\?/2 '
	inside systemctl stop mixed
}

two_idle() {
	[ "$(inside sh -c 'for pid in $(cat /sys/fs/cgroup/$(systemctl show -P ControlGroup mixed)/cgroup.procs); do
		cat /proc/$pid/comm; done' | sort | uniq -c | tr -s ' ')" = ' 2 idle' ]
}

@test "a unit of which a user may see a part" {
	each own_process
}

nameless_user() {
	refute inside getent passwd 54321
	as 54321 vatallocctl status nginx
	assert_equal "$status" 1
	assert_output ''
	assert_equal "$stderr" 'vatallocctl: cannot ask the service manager: D-Bus accepts no user that passwd does not have, such as UID 54321'
	as 54321 vatallocctl verify nginx
	assert_equal "$status" 1
	assert_regex "$stderr" 'such as UID 54321$'
}

@test "a user that passwd does not have is told so" {
	each nameless_user
}
