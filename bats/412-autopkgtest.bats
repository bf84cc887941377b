#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# debian/tests as Debian runs them: by autopkgtest, on the installed packages, on a machine that may be broken.

load helpers
load packages
load systemd

suite=trixie
machine_packages+=,autopkgtest,apt-utils,binutils,dpkg-dev,g++,gcc,libc6-dev,libjemalloc-dev,make,procps
machine_packages+=,bats,bats-assert,bats-file,bats-support,bash,gzip,perl,python3-minimal

setup_file() {
	local packages tree=$BATS_FILE_TMPDIR/tree
	needs 'requires full' requires_chroot requires_machines || return 0
	export machine_prefix=autopkgtest
	packages=$(packages $suite)
	mkdir -p "$tree/srv"
	cp "$packages"/{libvatalloc,vatalloc}_*.deb "$tree/srv"
	dpkg-source --no-check -x "$packages"/*.dsc "$tree/srv/source" > /dev/null
	machine_start $suite autopkgtest-$suite
	machine_push autopkgtest-$suite "$tree"
	# No network: what the tests depend on is there.
	inside sh -c ': > /etc/apt/sources.list; rm -rf /etc/apt/sources.list.d/* /var/lib/apt/lists/*'
}

teardown_file() {
	machine_stop autopkgtest-$suite
}

# autopkgtest NAME: its test NAME passes.
autopkgtest() {
	run inside sh -c 'autopkgtest --no-built-binaries --ignore-restrictions=isolation-container --test-name="$1" \
		/srv/*.deb /srv/source -- null' sh "$1"
	assert_line --regexp "^$1 +PASS"
	assert_success
}

@test "autopkgtest: smoke" {
	autopkgtest smoke
}

@test "autopkgtest: build-against" {
	autopkgtest build-against
}

@test "autopkgtest: service" {
	autopkgtest service
}
