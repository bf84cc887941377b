#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The packages under apt, on a machine of each release, from installing to purging, with nginx
# serving all the while. Each test goes on from the one before.

load helpers
load packages
load systemd

copy() {
	cp "$1"/libvatalloc_*.deb "$2/libvatalloc.deb"
	cp "$1"/vatalloc_*.deb "$2/vatalloc.deb"
}

setup_file() {
	local suite tree
	needs requires_chroot requires_machines || return 0
	export machine_prefix=install
	for suite in $machine_suites; do
		tree=$BATS_FILE_TMPDIR/$suite
		mkdir -p "$tree/srv/old" "$tree/srv/new"
		copy "$(old_packages "$suite")" "$tree/srv/old"
		copy "$(packages "$suite")" "$tree/srv/new"
		machine_start "$suite" "install-$suite"
		cat > "$tree/srv/serving" <<- 'END'
			#!/bin/bash
			# Asks nginx for its page until /run/serving is gone. Says how often it got it or did not.
			touch /run/serving
			declare -A count=([200]=0)
			while [ -e /run/serving ]; do
				answer=none
				{ exec 3<> /dev/tcp/127.0.0.1/80; } 2> /dev/null &&
					printf 'GET / HTTP/1.0\r\n\r\n' >&3 && read -r _ answer _ <&3
				exec 3>&-
				count[$answer]=$((${count[$answer]:-0} + 1))
				sleep .02
			done
			echo "${count[200]} ${#count[@]}" > /run/served
		END
		cat > "$tree/srv/files" <<- 'END'
			#!/bin/sh
			# All that is there and is not kept by apt and dpkg for themselves.
			find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /srv \
				-o -path /var/tmp -o -path /var/log -o -path /var/cache -o -path /var/lib/apt \
				-o -path /var/lib/systemd/coredump -o -path /var/lib/private \) -prune \
				-o -path '/var/lib/dpkg/*-old' -o -print | sort
			find /run /var/log /var/cache -name '*vatalloc*'
		END
		chmod 755 "$tree/srv/serving" "$tree/srv/files"
		machine_push "install-$suite" "$tree"
		# No network: everything the packages need is there, and nothing else is asked for.
		machine "install-$suite" sh -c 'rm -rf /etc/apt/sources.list.d/* /var/lib/apt/lists/*
			: > /etc/apt/sources.list
			# nginx is restarted more often here than systemd likes.
			mkdir /etc/systemd/system/nginx.service.d
			printf "[Unit]\nStartLimitIntervalSec=0\n" > /etc/systemd/system/nginx.service.d/limit.conf
			systemctl daemon-reload'
	done
}

teardown_file() {
	machines_down install
}

apt() {
	local output status=0
	output=$(inside env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends "$@" 2>&1) || status=$?
	echo "$output"
	# What a maintainer script says of a failure is one.
	[ $status -eq 0 ] && ! grep -qiE 'failed|syntax|error' <<< "$output"
}

# serving CMD...: nginx does not miss one request and does not change its processes meanwhile.
serving() {
	local before after ok kinds
	before=$(processes)
	inside rm -f /run/served
	inside sh -c 'setsid /srv/serving > /dev/null 2>&1 < /dev/null &'
	eventually inside test -e /run/serving
	"$@" || return
	inside rm /run/serving
	eventually inside test -s /run/served
	read -r ok kinds < <(inside cat /run/served)
	after=$(processes)
	if [ "$ok" -lt 5 ] || [ "$kinds" -ne 1 ] || [ "$after" != "$before" ]; then
		echo "$ok requests served, $((kinds - 1)) kinds of failure, processes" $before, then $after
		return 1
	fi
}

processes() {
	inside sh -c 'cat "/sys/fs/cgroup$(systemctl show -P ControlGroup nginx)/cgroup.procs"'
}

mapped() {
	inside sh -c 'grep -h /vatalloc/libvatalloc.so "/proc/$(systemctl show -P MainPID nginx)/maps" |
		sed "s,.* /usr,/usr," | sort -u'
}

nothing_failed() {
	run inside systemctl --failed --no-legend --plain
	assert_output ''
}

installs() {
	inside /srv/files > "$BATS_FILE_TMPDIR/$suite/before"
	run serving apt install /srv/old/libvatalloc.deb /srv/old/vatalloc.deb
	assert_success
	inside systemctl is-active --quiet vatalloc-reporter
	inside systemctl is-enabled --quiet vatalloc-reporter
	inside vatallocctl --version
	run inside journalctl --no-pager --dump-catalog ed3f568b47eb4501ae44d15dc645b4f3
	assert_success
	# Nothing is protected by installing alone.
	inside systemctl restart nginx
	assert_equal "$(mapped)" ''
	nothing_failed
}

@test "installing starts the reporter and touches no service" {
	each installs
}

enables() {
	inside systemctl enable --quiet --now vatalloc@nginx
	run inside vatallocctl verify --wait nginx
	assert_success
	inside systemctl is-active --quiet vatalloc@nginx
	inside sed -i 's/^#Space=auto/Space=2T/' /etc/vatalloc.conf
	inside systemctl daemon-reload
	inside systemctl restart nginx
	run inside vatallocctl verify --wait nginx
	assert_success
	run mapped
	assert_output --regexp '^/usr/lib/[^/]*/vatalloc/libvatalloc.so$'
}

@test "nginx is protected by one command" {
	each enables
}

upgrades() {
	run serving apt -o Dpkg::Options::=--force-confold install /srv/new/libvatalloc.deb /srv/new/vatalloc.deb
	assert_success
	nothing_failed
	run inside dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' vatalloc libvatalloc
	assert_output --regexp '^libvatalloc 0\.[1-9][0-9.]*-[0-9]+ installed
vatalloc 0\.[1-9][0-9.]*-[0-9]+ installed$'
	# The reporter is ours to restart.
	inside systemctl is-active --quiet vatalloc-reporter
	inside sh -c '! grep -q deleted "/proc/$(systemctl show -P MainPID vatalloc-reporter)/maps"'
}

@test "an upgrade keeps nginx running" {
	each upgrades
}

keeps() {
	# Its default has changed with the version.
	run inside cat /etc/vatalloc.conf
	assert_line Space=2T
	assert_line --partial 'in its time'
	inside test -e /etc/vatalloc.conf.dpkg-dist
	run inside vatallocctl check-config
	assert_success
}

@test "an upgrade keeps an edited vatalloc.conf" {
	each keeps
}

outdated() {
	run mapped
	assert_output --partial '(deleted)'
	run inside vatallocctl status --no-legend nginx
	assert_output --regexp '0\.0\.9'
	# It is protected all the same.
	run inside vatallocctl verify --json=short nginx
	assert_success
	assert_output --partial '"reason":"outdated"'
	inside systemctl restart nginx
	run inside vatallocctl verify --wait nginx
	assert_success
	run mapped
	refute_output --partial '(deleted)'
	run inside vatallocctl status --no-legend nginx
	assert_output --regexp '^nginx.service +yes '
}

@test "status says which processes run the old library, until they are restarted" {
	each outdated
}

reinstalls() {
	run serving apt reinstall /srv/new/libvatalloc.deb /srv/new/vatalloc.deb
	assert_success
	nothing_failed
	run inside cat /etc/vatalloc.conf
	assert_line Space=2T
	inside systemctl restart nginx
	run inside vatallocctl verify --wait nginx
	assert_success
}

@test "reinstalling changes nothing" {
	each reinstalls
}

removes() {
	run serving apt remove libvatalloc
	assert_success
	nothing_failed
	run mapped
	assert_output --partial '(deleted)'
	run inside sh -c 'ls -d /run/systemd/generator*/*/*vatalloc*'
	assert_failure
	run inside systemctl list-units --all --plain --no-legend 'vatalloc*'
	refute_output --partial ' active '
	assert_equal "$(inside systemctl show -P Environment nginx)" ''
	# What the administrator wrote stays.
	inside grep -q Space=2T /etc/vatalloc.conf

	inside systemctl restart nginx
	assert_equal "$(mapped)" ''
	run serving sleep .5
	assert_success
	nothing_failed
	run inside journalctl --no-pager -u nginx -b
	refute_output --partial 'cannot be preloaded'
}

@test "removing leaves nginx running, and able to start" {
	each removes
}

returns() {
	run apt install /srv/new/libvatalloc.deb /srv/new/vatalloc.deb
	assert_success
	inside systemctl restart nginx
	run inside vatallocctl verify --wait nginx
	assert_success
	inside systemctl is-active --quiet vatalloc-reporter
	inside grep -q Space=2T /etc/vatalloc.conf
}

@test "installed again, what was enabled is protected again" {
	each returns
}

purges() {
	inside systemctl --global --quiet enable vatalloc@dbus
	inside sh -c 'echo "[nginx.service]" > /etc/vatalloc.conf.d/50-site.conf'
	inside systemctl mask --quiet vatalloc@other
	run serving apt purge vatalloc libvatalloc
	assert_success
	nothing_failed
	inside systemctl restart nginx
	assert_equal "$(mapped)" ''
	inside /srv/files > "$BATS_FILE_TMPDIR/$suite/after"
	run diff "$BATS_FILE_TMPDIR/$suite/before" "$BATS_FILE_TMPDIR/$suite/after"
	assert_output ''
	run inside sh -c 'systemctl list-unit-files --no-legend "vatalloc*"
		systemctl list-units --all --plain --no-legend "vatalloc*"
		journalctl --no-pager --list-catalog | grep vatalloc'
	assert_output ''
}

@test "purging leaves nothing behind" {
	each purges
}
