#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# vatalloc@.service and what the generator writes, under real systemd of each suite: enabling and the
# ways back, and services with every kind of sandbox, which must start, and whose reports must
# come out.

load helpers
load systemd

setup_file() {
	local top programs=$BATS_FILE_TMPDIR/programs
	requires_machines
	top=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	machines_up service
	mkdir -p "$programs/usr/bin"
	cp "$top/build/test/bug" "$programs/usr/bin/vatalloc-bug"
	printf '#include <unistd.h>\nint main(void) { for (;;) pause(); }\n' |
		gcc -static -x c -o "$programs/usr/bin/vatalloc-static" -
	each push_programs "$programs"
}

push_programs() {
	machine_push "service-$suite" "$1"
	# It is restarted more often here than systemd likes.
	printf '[Unit]\nStartLimitIntervalSec=0\n' |
		inside sh -c 'd=/etc/systemd/system/nginx.service.d; mkdir $d; cat > $d/limit.conf
			systemctl daemon-reload'
}

teardown_file() {
	machines_down service
}

state_of() {
	inside systemctl show --property ActiveState --value "$1"
}

# protected UNIT, unprotected UNIT: all processes of a running unit have the library, or none has.
# After a reload nginx still ends old workers: one that has no mappings any more says nothing.
libraries() {
	inside sh -c 'cat /sys/fs/cgroup/$(systemctl show -P ControlGroup "$1")/cgroup.procs |
		while read -r pid; do
			maps=$(cat "/proc/$pid/maps" 2> /dev/null)
			case $maps in
			"") ;;
			*/vatalloc/libvatalloc.so*) echo yes ;;
			*) echo no ;;
			esac
		done | sort -u' sh "$1"
}

protected() {
	assert_equal "$(libraries "$1")" yes
}

unprotected() {
	assert_equal "$(libraries "$1")" no
}

is() {
	[ "$(state_of "$2")" = "$1" ]
}

no_jobs() {
	[ -z "$(inside systemctl list-jobs --no-legend)" ]
}

settled() {
	eventually no_jobs
}

started_at() {
	inside systemctl show --property ExecMainStartTimestampMonotonic --value "$1"
}

# A service that exists on one machine only for a test: unit NAME, its text on stdin.
unit() {
	inside sh -c 'cat > /etc/systemd/system/$1.service' sh "$1"
}

forget() {
	local name
	for name; do
		inside systemctl disable --quiet "vatalloc@$name" 2> /dev/null
		inside systemctl stop "vatalloc@$name" "$name"
		inside rm -rf "/etc/systemd/system/$name.service" \
			"/etc/systemd/system/$name.service.d"
	done
	inside systemctl daemon-reload
	inside systemctl reset-failed
}

the_way_there() {
	local before
	before=$(started_at nginx)
	inside systemctl enable vatalloc@nginx
	unprotected nginx
	assert_equal "$(started_at nginx)" "$before"
	assert_equal "$(state_of vatalloc@nginx)" inactive

	inside systemctl restart nginx
	settled
	protected nginx
	assert_equal "$(state_of vatalloc@nginx)" active
	inside systemctl disable --now vatalloc@nginx
	settled
}

@test "enabling changes the next start, and nothing before" {
	each the_way_there
}

enable_now() {
	inside systemctl start nginx
	unprotected nginx
	inside systemctl enable --now vatalloc@nginx
	# without another wait: that is what --now promises
	protected nginx
	assert_equal "$(state_of vatalloc@nginx)" active
	assert_equal "$(state_of nginx)" active
	local before
	before=$(started_at nginx)
	inside systemctl enable --now vatalloc@nginx
	assert_equal "$(started_at nginx)" "$before"
}

@test "enable --now restarts a running service, once, and stays active" {
	each enable_now
}

restart() {
	local before
	before=$(started_at vatalloc@nginx)
	inside systemctl restart nginx
	settled
	assert_equal "$(state_of vatalloc@nginx)" active
	[ "$(started_at vatalloc@nginx)" -gt "$before" ]
	protected nginx
	inside systemctl stop nginx
	settled
	assert_equal "$(state_of vatalloc@nginx)" inactive
	inside systemctl start nginx
	settled
	assert_equal "$(state_of vatalloc@nginx)" active
	inside systemctl reload nginx
	protected nginx
}

@test "each start of the service is checked, and a stop takes the check along" {
	each restart
}

automatic_restart() {
	local before
	unit phoenix <<< $'[Service]\nExecStart=/bin/sleep infinity\nRestart=always\nRestartSec=0'
	inside systemctl daemon-reload
	inside systemctl start phoenix
	inside systemctl enable --now --quiet vatalloc@phoenix
	before=$(started_at vatalloc@phoenix)
	inside systemctl kill --signal=KILL phoenix
	eventually started_after "$before" vatalloc@phoenix
	settled
	protected phoenix
	assert_equal "$(state_of vatalloc@phoenix)" active
	forget phoenix
}

started_after() {
	local now
	now=$(started_at "$2" 2> /dev/null) && [ "$now" -gt "$1" ]
}

@test "a start by Restart= is checked as well" {
	each automatic_restart
}

disable_now() {
	inside systemctl disable --now vatalloc@nginx
	settled
	unprotected nginx
	assert_equal "$(state_of vatalloc@nginx)" inactive
	assert_equal "$(state_of nginx)" active
	run inside find /run/systemd/generator -name '*vatalloc*'
	assert_output ''
}

@test "disable --now goes back" {
	each disable_now
}

# While the check waits for the service's processes.
disable_unfinished() {
	inside systemctl enable --now --no-block vatalloc@nginx
	inside systemctl disable --now vatalloc@nginx
	settled
	unprotected nginx
	assert_equal "$(state_of vatalloc@nginx)" inactive
	assert_equal "$(state_of nginx)" active
}

@test "disable --now goes back from enable --now that has not finished" {
	each disable_unfinished
}

disable() {
	inside systemctl enable --now vatalloc@nginx
	local before
	before=$(started_at nginx)
	inside systemctl disable vatalloc@nginx
	settled
	assert_equal "$(started_at nginx)" "$before"
	protected nginx
	inside systemctl restart nginx
	settled
	unprotected nginx
	assert_equal "$(state_of vatalloc@nginx)" inactive
}

@test "disable alone goes back with the next start" {
	each disable
}

while_stopped() {
	inside systemctl stop nginx
	inside systemctl enable --now vatalloc@nginx
	settled
	assert_equal "$(state_of nginx)" inactive
	assert_equal "$(state_of vatalloc@nginx)" inactive
	inside systemctl start nginx
	settled
	protected nginx
	assert_equal "$(state_of vatalloc@nginx)" active
	inside systemctl disable --now vatalloc@nginx
	settled
}

@test "a service that is stopped is not started by enable --now" {
	each while_stopped
}

not_enabled() {
	run inside systemctl start vatalloc@nginx
	assert_failure
	assert_equal "$(state_of vatalloc@nginx)" failed
	run inside journalctl --no-pager -o cat -u vatalloc@nginx -n 10
	assert_output --partial 'vatalloc@nginx is not enabled, so nginx.service is not protected'
	inside systemctl reset-failed
}

@test "started without being enabled it fails" {
	each not_enabled
}

mistyped() {
	run inside systemctl enable --now vatalloc@ngnix
	assert_failure
	run inside journalctl --no-pager -o cat -u vatalloc@ngnix
	assert_output --partial 'there is no ngnix.service'
	refute_output --partial 'not enabled'
	inside systemctl disable vatalloc@ngnix
	inside systemctl reset-failed
}

@test "enabled for a service that is not there it says so" {
	each mistyped
}

static_program() {
	local before
	unit static <<< $'[Service]\nExecStart=/usr/bin/vatalloc-static'
	inside systemctl daemon-reload
	inside systemctl start static
	run inside systemctl enable --now vatalloc@static
	assert_failure
	assert_equal "$(state_of vatalloc@static)" failed
	assert_equal "$(state_of static)" active
	run inside journalctl --no-pager -o cat -u vatalloc@static
	assert_output --partial 'statically linked'
	# One that can't be protected is not restarted again and again in the hope that it is.
	inside systemctl restart static
	before=$(started_at static)
	eventually is failed vatalloc@static
	settled
	assert_equal "$(started_at static)" "$before"
	run inside journalctl --no-pager -o cat -u vatalloc-apply@static --grep '^restarting'
	assert_output 'restarting static.service: it has been running without vatalloc'
	forget static
}

@test "a service that cannot be protected runs, and its vatalloc@ fails" {
	each static_program
}

late_service() {
	unit late <<< $'[Unit]\nAfter=multi-user.target\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=graphical.target'
	inside systemctl enable --quiet vatalloc@late late
	inside systemctl start graphical.target
	eventually is active vatalloc@late
	run inside journalctl --no-pager -b --grep 'ordering cycle'
	refute_output --partial 'ordering cycle on'
	forget late
}

@test "a service ordered after multi-user.target makes no cycle" {
	each late_service
}

names() {
	local name
	unit 'tmpl@' <<< $'[Service]\nExecStart=/bin/sleep infinity'
	unit 'dot1.2-x\x2dy' <<< $'[Service]\nExecStart=/bin/sleep infinity'
	unit 'real' <<< $'[Service]\nExecStart=/bin/sleep infinity\n[Install]\nAlias=nick.service'
	inside systemctl enable --quiet real
	for name in 'tmpl@17-main' 'dot1.2-x\x2dy' nick; do
		inside systemctl start "$name"
		inside systemctl enable --now --quiet "vatalloc@$name"
		assert_equal "$(state_of "vatalloc@$name")" active
		protected "$name.service"
	done
	forget 'tmpl@17-main' 'dot1.2-x\x2dy' nick
	# .service in the instance is taken as it is meant
	inside systemctl start real
	inside systemctl enable --now vatalloc@real.service.service
	protected real.service
	assert_equal "$(state_of vatalloc@real.service.service)" active
	inside systemctl restart real
	settled
	assert_equal "$(state_of vatalloc@real.service.service)" active
	forget real.service real
	inside rm '/etc/systemd/system/tmpl@.service'
}

@test "instances, dots, escapes, aliases and .service in the name" {
	each names
}

chain() {
	unit chain <<-'UNIT'
		[Service]
		ExecStart=/bin/sleep infinity
		Environment="LD_PRELOAD=/usr/lib/%%h/a b.so" X=y
	UNIT
	inside mkdir -p /etc/systemd/system/chain.service.d
	inside systemctl enable --quiet vatalloc@chain
	assert_equal "$(preload_of chain)" '/usr/$LIB/vatalloc/libvatalloc.so:/usr/lib/%h/a b.so'
	inside sh -c 'printf "[Service]\nEnvironment=LD_PRELOAD=%%t/libm.so.6\n" \
		> /etc/systemd/system/chain.service.d/override.conf; systemctl daemon-reload'
	assert_equal "$(preload_of chain)" '/usr/$LIB/vatalloc/libvatalloc.so:/run/libm.so.6'
	inside sh -c 'echo "LD_PRELOAD=/from/file.so" > /etc/default/chain
		printf "[Service]\nEnvironmentFile=/etc/default/%%p\n" \
		> /etc/systemd/system/chain.service.d/zz.conf; systemctl daemon-reload'
	assert_equal "$(preload_of chain)" '/usr/$LIB/vatalloc/libvatalloc.so:/from/file.so'
	forget chain
}

preload_of() {
	inside systemctl restart "$1"
	settled
	assert_equal "$(state_of "vatalloc@$1")" active
	inside sh -c 'tr "\0" "\n" < /proc/$(systemctl show -P MainPID "$1")/environ' sh "$1" |
		sed -n 's/^LD_PRELOAD=//p'
}

@test "an LD_PRELOAD of the unit, of a later drop-in or of an EnvironmentFile= stays, behind ours" {
	each chain
}

# sandboxed NAME LINES [no-report]: a service with these settings makes a bug. It must be ended for
# that, not for a system call, and its own report must be in the journal under its own name.
sandboxed() {
	local name=$1 result
	{
		printf '[Service]\nType=oneshot\nExecStart=/usr/bin/vatalloc-bug uaf-large\n'
		printf 'Environment=X=y\n%b\n' "$2"
	} | unit "$name"
	inside systemctl enable --quiet "vatalloc@$name"
	inside timeout 60 systemctl start "$name" || :
	result=$(inside systemctl show --property ExecMainStatus --value "$name")
	if [ "$result" != 11 ]; then
		inside systemctl cat "$name" >&2
		inside journalctl --no-pager -u "$name" -n 20 >&2
		fail "$suite: $name ended with $result instead of SIGSEGV"
	fi
	inside journalctl --sync
	result=$(inside journalctl --no-pager -o cat --output-fields VATALLOC_KIND \
		_SYSTEMD_UNIT="$name.service" VATALLOC_SOURCE=process)
	if [ "${3:-}" = no-report ]; then
		assert_equal "$name: $result" "$name: "
	else
		# Which of the two depends on how soon its addresses were given up.
		assert_regex "$name: $result" "^$name: (use-after-free|retired-lease)\$"
	fi
	forget "$name"
}

calls_and_families() {
	sandboxed sb-none ''
	sandboxed sb-service 'SystemCallFilter=@system-service\nSystemCallFilter=~@privileged @resources\nRestrictAddressFamilies=AF_INET AF_INET6'
	sandboxed sb-families-none 'RestrictAddressFamilies=none'
	sandboxed sb-no-unix 'RestrictAddressFamilies=~AF_UNIX'
	sandboxed sb-no-network 'SystemCallFilter=@system-service\nSystemCallFilter=~@network-io @ipc'
	sandboxed sb-forbid 'SystemCallFilter=~@network-io @signal @ipc madvise mremap prctl'
	sandboxed sb-tight 'SystemCallFilter=@basic-io @file-system'
	sandboxed sb-tighter 'SystemCallFilter=read write close openat fstat newfstatat pread64 access lseek'
	sandboxed sb-error 'SystemCallFilter=@basic-io @file-system\nSystemCallErrorNumber=EPERM'
}

@test "filters of system calls and address families" {
	each calls_and_families
}

closed_sandbox() {
	inside sh -c 'printf "[sb-closed.service]\nOpenSandbox=no\n" > /etc/vatalloc.conf'
	sandboxed sb-closed 'SystemCallFilter=@basic-io @file-system' no-report
	inside rm /etc/vatalloc.conf
}

@test "with OpenSandbox=no a service is not killed, and its report is lost" {
	each closed_sandbox
}

file_systems() {
	inside mkdir -p /srv/jail/usr /srv/jail/lib64 /srv/jail/lib
	local jail='BindReadOnlyPaths=/usr /lib /lib64'
	sandboxed sb-root "RootDirectory=/srv/jail\n$jail"
	sandboxed sb-root-no-exec "RootDirectory=/srv/jail\n$jail\nNoExecPaths=/\nExecPaths=+/usr +/lib +/lib64"
	run inside find /srv/jail -type f
	assert_output ''
	sandboxed sb-tmpfs "TemporaryFileSystem=/:ro\n$jail"
	sandboxed sb-tmpfs-run 'TemporaryFileSystem=/run'
	sandboxed sb-no-exec 'NoExecPaths=/\nExecPaths=/usr/bin /usr/lib/x86_64-linux-gnu/libc.so.6 /lib64 /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2'
	sandboxed sb-all 'DynamicUser=yes\nMemoryDenyWriteExecute=yes\nProtectSystem=strict\nProtectHome=yes\nPrivateTmp=yes\nPrivateDevices=yes\nPrivateNetwork=yes\nPrivateUsers=yes\nProtectProc=invisible\nProcSubset=pid\nProtectKernelTunables=yes\nProtectControlGroups=yes\nRestrictNamespaces=yes\nLockPersonality=yes\nNoNewPrivileges=yes\nCapabilityBoundingSet=\nSystemCallArchitectures=native\nSystemCallFilter=@system-service\nRestrictAddressFamilies=AF_INET\nUMask=0777\nLimitAS=2G'
}

@test "roots and file systems of their own" {
	each file_systems
}

user_manager() {
	inside sh -c 'id joe > /dev/null 2>&1 || useradd -m -u 1234 joe'
	inside sh -c 'mkdir -p /home/joe/.config/systemd/user
		printf "[Service]\nExecStart=/bin/sleep infinity\n" > /home/joe/.config/systemd/user/nap.service
		chown -R joe: /home/joe/.config'
	# pam_systemd would say so, where it is installed.
	inside sh -c 'mkdir -p /run/systemd/system/user@1234.service.d
		printf "[Service]\nEnvironment=XDG_RUNTIME_DIR=/run/user/1234\n" \
		> /run/systemd/system/user@1234.service.d/test.conf; systemctl daemon-reload'
	inside systemctl start user@1234
	as_joe systemctl --user start nap
	as_joe systemctl --user enable vatalloc@nap
	run as_joe vatallocctl --user status --no-legend nap
	assert_output --regexp ' running since before vatalloc was enabled: systemctl --user restart nap.service$'
	as_joe systemctl --user enable --now vatalloc@nap
	assert_equal "$(as_joe systemctl --user is-active vatalloc@nap)" active
	assert_equal "$(as_joe sh -c 'grep -cF /vatalloc/libvatalloc.so \
		/proc/$(systemctl --user show -P MainPID nap)/maps | sed "s/[1-9][0-9]*/yes/"')" yes
	as_joe systemctl --user disable --now vatalloc@nap
	inside systemctl stop user@1234
}

as_joe() {
	inside setpriv --reuid=joe --regid=joe --init-groups env HOME=/home/joe \
		XDG_RUNTIME_DIR=/run/user/1234 "$@"
}

@test "a user's own services" {
	each user_manager
}

soft_reboot() {
	local before
	# bookworm's systemd does not know how.
	! inside systemctl --version | grep -q '^systemd 252 ' || return 0
	# One as early as any, that everything else comes after.
	unit early <<-'UNIT'
		[Unit]
		DefaultDependencies=no
		Before=sysinit.target
		[Service]
		ExecStart=/bin/sleep infinity
		[Install]
		WantedBy=sysinit.target
	UNIT
	inside systemctl enable --quiet vatalloc@nginx vatalloc@early early
	inside systemctl reset-failed
	before=$(started_at nginx)
	inside systemctl soft-reboot
	eventually started_after "$before" nginx
	inside timeout 60 systemctl is-system-running --wait
	settled
	protected nginx
	protected early
	assert_equal "$(state_of vatalloc@nginx)" active
	assert_equal "$(state_of vatalloc@early)" active
	run inside journalctl --no-pager -b --grep 'ordering cycle'
	refute_output --partial 'ordering cycle on'
	inside systemctl disable --now vatalloc@nginx
	forget early
}

@test "it is there from boot" {
	each soft_reboot
}
