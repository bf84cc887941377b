#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The library built and run in a chroot of Debian sid: its jemalloc, compiler and C library are newer.

load helpers

setup_file() {
	requires root mmdebstrap unshare
	# The packages come from the network: a failure to get them is not the library's.
	make -s -C "$VATALLOC_ROOT" build/chroot/sid.done > "$BATS_FILE_TMPDIR/log" 2>&1 || {
		tail -n 20 "$BATS_FILE_TMPDIR/log"
		return 1
	}
	sid=$VATALLOC_ROOT/build/chroot/sid
	export sid
	rm -rf "$sid/srv/vatalloc"
	mkdir "$sid/srv/vatalloc"
	tar -C "$VATALLOC_ROOT" --exclude=./build --exclude=./.git -c . | tar -C "$sid/srv/vatalloc" -x
}

# A command in the chroot, with mounts and processes of its own that end with it.
in_sid() {
	unshare --mount --pid --fork --kill-child sh -euc '
		sid=$1
		shift
		mount -t proc proc "$sid/proc"
		mount --bind /dev "$sid/dev"
		mount -t tmpfs tmpfs "$sid/tmp"
		exec chroot "$sid" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
	' sh "$sid" "$@" 3>&-
}

@test "sid: the library builds" {
	run in_sid make -C /srv/vatalloc lib tests
	assert_success
	refute_output --partial warning:
}

@test "sid: the smoke tests pass" {
	run in_sid sh -c 'cd /srv/vatalloc && bats/setup/check --filter-tags smoke bats/*.bats'
	assert_success
	assert_line --regexp '^[1-9][0-9]* passed, 0 failed, [0-9]+ skipped$'
}
