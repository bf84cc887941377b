#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The library built and run in a chroot of Debian sid: its jemalloc, compiler and C library are newer.

load helpers

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

setup_file() {
	requires root mmdebstrap unshare
	log=$BATS_FILE_TMPDIR/log
	sid=$VATALLOC_SOURCE/build/chroot/sid
	export log sid
	make -s -C "$VATALLOC_SOURCE" build/chroot/sid.done > "$log" 2>&1 || {
		tail -n 20 "$log"
		return 1
	}
	rm -rf "$sid/srv/vatalloc"
	mkdir "$sid/srv/vatalloc"
	tar -C "$VATALLOC_SOURCE" --exclude=./build --exclude=./.git -c . | tar -C "$sid/srv/vatalloc" -x
	in_sid make -C /srv/vatalloc -j2 lib tests > "$log" 2>&1 || {
		grep -vE '^  [A-Z]+ ' "$log"
		return 1
	}
}

@test "sid: the library builds without a warning" {
	run grep warning: "$log"
	assert_output ''
}

@test "sid: the smoke tests pass" {
	run in_sid sh -c 'cd /srv/vatalloc && bats/setup/check --filter-tags smoke bats/*.bats'
	assert_success
	assert_line --regexp '^[1-9][0-9]* passed, 0 failed, [0-9]+ skipped$'
}

@test "sid: the malloc family behaves, and no address comes twice" {
	run in_sid sh -euc '
		cd /srv/vatalloc/build
		export LD_PRELOAD=$PWD/lib/libvatalloc.so
		for program in test/api_* test/cxx_*; do
			[ -x "$program" ] || continue
			echo "$program"
			timeout 60 "$program" > /tmp/output 2>&1 || { cat /tmp/output; exit 1; }
		done
		VATALLOC_OPTIONS=mode=address timeout 100 test/invariant once 1024 2
		VATALLOC_OPTIONS=mode=count timeout 100 test/invariant counted 1024 2
	'
	assert_success
	assert_line test/api_malloc
	assert_line test/cxx_new
}

@test "sid: its compiler and python3 work under the library" {
	run in_sid sh -euc '
		cd /srv/vatalloc
		export LD_PRELOAD=$PWD/build/lib/libvatalloc.so
		gcc -std=gnu11 -O2 -D_GNU_SOURCE -c -o /tmp/text.o lib/text.c
		g++ -O1 -Ilib -D_GNU_SOURCE -c -o /tmp/cxx.o lib/test/cxx_new.cc
		python3 -c "import json; print(len(json.dumps([{str(i): i} for i in range(100000)])))"
	'
	assert_success
	assert_output 1777780
}
