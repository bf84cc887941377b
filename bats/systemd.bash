# SPDX-License-Identifier: MIT
#
# systemd: throw-away machines with real systemd as PID 1, for the bats files of the 3NN series.
#
# A machine is a systemd-nspawn container on a tmpfs overlay over a cached root file system
# (build/chroot/SUITE-*), so a test can break whatever it likes: machine_stop forgets it all.
#
#   requires_machines           skip unless this computer can boot them
#   machine_start SUITE NAME    returns when its boot has finished
#   machine NAME CMD...         runs CMD inside as root, status and output passed on
#   machine_push NAME DIR       copies the tree DIR onto the machine's root
#   machine_stop NAME
#
# For a file whose tests all run on a machine of each suite, which are called PREFIX-SUITE:
#
#   machines_up PREFIX          one of each, with what `make install` installs
#   machines_down PREFIX
#   each COMMAND...             once for each suite, with $suite set
#   inside CMD...               on the machine of $suite
#   eventually COMMAND...       until it succeeds, for twenty seconds at most
#
# nspawn wants a pure cgroup2 hierarchy and systemd as the manager of this computer. Neither is needed:
# it runs in a mount namespace of its own, where cgroup2 is all there is, and registers nowhere.
#
# core_pattern is one setting for the whole computer and its helper runs in the computer's own root, so
# while machines run it points to a helper that finds the machine a core comes from and hands it to
# the systemd-coredump in there. The last machine_stop puts the old pattern back. So the machines of
# all test runs on the computer are below one directory, each run's in one of its own. What a run that
# was killed left there, and its machines, the next run takes away.

machine_top=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
# shellcheck source=bats/setup/apt.bash
. "$machine_top/bats/setup/apt.bash"

machine_roots=${VATALLOC_CHROOT:-$machine_top/build/chroot}
machine_all=/run/vatalloc-machines
machine_suites=${VATALLOC_SUITES:-trixie bookworm}
machine_packages=systemd,systemd-sysv,systemd-coredump,systemd-journal-remote,dbus,nginx-light
machine_packages+=,libsmartcols1,libdw1,libjemalloc2
machine_core_helper=$machine_all/core-helper

# process_id PID: prints what no other process will ever have, PID.STARTTIME. Fails if there is none, or
# only a zombie, whoever is to reap it.
process_id() {
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	# shellcheck disable=SC2086
	set -- "$1" ${stat##*) }
	[[ $2 != Z ]] && echo "$1.${21}"
}

# lives ID: that process is still there.
lives() {
	[[ $(process_id "${1%.*}") = "$1" ]]
}

machine_state=$machine_all/$(process_id "${BATS_ROOT_PID:-$$}")

requires_machines() {
	requires root mmdebstrap systemd-nspawn nsenter unshare pgrep
	unshare --mount true 2>/dev/null || skip "needs mount namespaces"
	grep -qw cgroup2 /proc/filesystems || skip "needs cgroup2"
}

# machine_root SUITE: prints the cached root file system, making it first where there is none. The name
# holds a checksum of the package list, so a changed list makes a new one.
machine_root() {
	local suite=$1 root
	root=$machine_roots/$suite-$(cksum <<<"$machine_packages" | cut -d ' ' -f 1)
	if [[ ! -d $root ]]; then
		mkdir -p "$machine_roots"
		# The lock is for two runs at once; what an interrupted one left is removed.
		(
			flock 9
			[[ ! -d $root ]] || exit 0
			rm -rf "$root.new"
			# Its own open files must have numbers below 10: its commands know no others.
			nice mmdebstrap --quiet --mode=root --aptopt='Acquire::Retries "3"' --variant=minbase \
				--include="$machine_packages" "$suite" "$root.new" \
				"$(debian_mirror)" >&2 3>&- 4>&- 5>&- 9>&- || exit 1
			rm -f "$root.new"/var/cache/apt/*.bin
			mv "$root.new" "$root"
		) 9>"$machine_roots/$suite.lock" || return 1
	fi
	echo "$root"
}

machine_cores_on() {
	[[ -w /proc/sys/kernel/core_pattern ]] || return 0
	cat >"$machine_core_helper.$$" <<-HELPER
		#!/bin/sh
		# \$1 is the PID out here, \$2 to \$7 are PID UID GID SIGNAL TIME DUMPABLE inside.
		export PATH=/usr/sbin:/usr/bin:/sbin:/bin
		namespace=\$(readlink "/proc/\$1/ns/pid") || exit 1
		for file in $machine_all/*/*/init; do
			init=\$(cat "\$file") || continue
			[ "\$(readlink "/proc/\$init/ns/pid")" = "\$namespace" ] || continue
			exec nsenter -t "\$init" -a /usr/lib/systemd/systemd-coredump \\
				"\$2" "\$3" "\$4" "\$5" "\$6" 9223372036854775808 machine "\$7"
		done
	HELPER
	chmod 0755 "$machine_core_helper.$$"
	mv "$machine_core_helper.$$" "$machine_core_helper"
	if ! grep -qF "$machine_core_helper" /proc/sys/kernel/core_pattern; then
		cat /proc/sys/kernel/core_pattern >"$machine_all/core_pattern"
	fi
	echo "|$machine_core_helper %P %p %u %g %s %t %d" >/proc/sys/kernel/core_pattern
}

machine_cores_off() {
	compgen -G "$machine_all/*/*/" >/dev/null && return 0
	if [[ -e $machine_all/core_pattern ]]; then
		cat "$machine_all/core_pattern" >/proc/sys/kernel/core_pattern
		rm -f "$machine_all/core_pattern" "$machine_core_helper"
	fi
}

# Takes away what runs left that were killed, one sweep at a time.
machine_sweep() {
	(
		flock 9
		machine_sweep_alone 9>&-
	) 9>"/run/lock/${machine_all##*/}"
}

machine_sweep_alone() {
	local run machine
	for run in "$machine_all"/*.*/; do
		run=${run%/}
		if [[ ! -d $run ]] || lives "$(basename "$run")"; then
			continue
		fi
		for machine in "$run"/*/; do
			[[ -d $machine ]] || continue
			machine_state=$run machine_stop "$(basename "$machine")"
		done
		rm -rf "$run"
	done
	machine_cores_off
}

machine() {
	local init
	init=$(<"$machine_state/$1/init") || return 1
	shift
	nsenter -t "$init" -a -- env -i HOME=/root LANG=C.UTF-8 TERM=dumb \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

machine_push() {
	# /lib is a link to /usr/lib in there, and stays one.
	tar -C "$2" -c --owner=0 --group=0 . |
		machine "$1" tar -C / -x --no-overwrite-dir --keep-directory-symlink
}

machine_start() {
	local suite=$1 name=$2 root state nspawn init result _
	root=$(machine_root "$suite") || return 1
	state=$machine_state/$name
	machine_sweep
	mkdir -p "$machine_state"
	mkdir "$state" || return 1 # the name is taken
	machine_cores_on

	# Nothing of bats' may stay open in there, or bats waits for the machine at its end.
	setsid unshare --mount --propagation private bash -c '
		umount -R /sys/fs/cgroup
		mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit
		mkdir -p "/sys/fs/cgroup/$2"
		echo $$ >"/sys/fs/cgroup/$2/cgroup.procs"
		exec systemd-nspawn --quiet --register=no --keep-unit --boot --private-network \
			--console=read-only --volatile=overlay --resolv-conf=off --timezone=off \
			-D "$1" -M "$0"' "$name" "$root" "$name.$(basename "$machine_state")" \
		>"$state/console" 2>&1 </dev/null 3>&- 4>&- &
	nspawn=$!
	process_id "$nspawn" >"$state/nspawn"
	for _ in {1..400}; do
		if ! process_id "$nspawn" >/dev/null; then
			cat "$state/console" >&2
			rm -r "$state"
			rmdir --ignore-fail-on-non-empty "$machine_state"
			machine_cores_off
			return 1
		fi
		for init in $(pgrep -P "$nspawn"); do
			# Not a process that prepares the machine, and sees this computer's own systemd.
			grep -q '^NSpid:.*	1$' "/proc/$init/status" &&
				[[ -S /proc/$init/root/run/systemd/private ]] && break 2
		done 2>/dev/null
		sleep .05
	done
	echo "$init" >"$state/init"

	result=$(machine "$name" timeout 60 systemctl is-system-running --wait) || :
	if [[ $result != running ]]; then
		echo "$name: boot ended as '$result'" >&2
		machine "$name" systemctl --failed --no-pager >&2
		machine_stop "$name"
		return 1
	fi
}

machine_stop() {
	local state=$machine_state/$1 nspawn cgroups cgroup _
	[[ -d $state ]] || return 0
	# Not there if its run was killed before it had written it.
	nspawn=$(cat "$state/nspawn" 2>/dev/null) || :
	if lives "$nspawn"; then
		# The manager may be gone before it can answer.
		machine "$1" systemctl poweroff 2>/dev/null || kill "${nspawn%.*}" || :
	fi
	for _ in {1..300}; do
		lives "$nspawn" || break
		sleep .05
	done
	! lives "$nspawn" || kill -KILL "${nspawn%.*}"
	cgroups=$(mktemp -d)
	mount -t cgroup2 cgroup2 "$cgroups"
	cgroup=$cgroups/$1.$(basename "$machine_state")
	[[ ! -d $cgroup ]] || find "$cgroup" -depth -type d -exec rmdir {} + || :
	umount "$cgroups"
	rmdir "$cgroups"
	rm -rf "$state"
	# Another's sweep may have been faster.
	rmdir --ignore-fail-on-non-empty "$machine_state" 2>/dev/null || :
	machine_cores_off
}

machines_up() {
	local suite tree
	machine_prefix=$1
	tree=$BATS_FILE_TMPDIR/tree
	make -s -C "$machine_top" install DESTDIR="$tree"
	for suite in $machine_suites; do
		machine_start "$suite" "$machine_prefix-$suite"
		machine_push "$machine_prefix-$suite" "$tree"
		machine "$machine_prefix-$suite" journalctl --update-catalog
		machine "$machine_prefix-$suite" systemctl daemon-reload
	done
	export machine_prefix
}

machines_down() {
	local suite
	for suite in $machine_suites; do
		machine_stop "$1-$suite"
	done
}

inside() {
	machine "$machine_prefix-$suite" "$@"
}

each() {
	for suite in $machine_suites; do
		echo "suite $suite"
		"$@"
	done
}

eventually() {
	local _
	for _ in {1..200}; do
		! "$@" || return 0
		sleep .1
	done
	"$@"
}
