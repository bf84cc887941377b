#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The packages of each release, built in a clean chroot of it, without network and without privileges,
# with the compiler, the debhelper and the Lintian that it has.

load helpers
load packages

setup_file() {
	needs 'requires full' requires_chroot || return 0
}

# built SUITE DIRECTORY: where systemd's files are below.
built() {
	local suite=$1 systemd=$2 packages
	packages=$(packages "$suite")
	run bash -c "dpkg-deb -c '$packages'/vatalloc_*_$packages_machine.deb | sed -E 's,.* \./,,; s, -> .*,,'"
	assert_success
	assert_line "$systemd/system/vatalloc@.service"
	assert_line "$systemd/system/vatalloc-reporter.service"
	assert_line "$systemd/system-generators/vatalloc-generator"
	assert_line usr/lib/systemd/user/vatalloc@.service
	assert_line usr/lib/systemd/user-generators/vatalloc-user-generator
	run grep -E '^ok [0-9]+ a program starts under the library' "$packages/log"
	assert_success
	run tail -n 12 "$packages/log"
	assert_line 'Lintian has nothing to say about these:'
	# What is linked in is that release's.
	assert_regex "$(dpkg-deb -f "$packages"/libvatalloc_*_"$packages_machine".deb Built-Using)" \
		'^jemalloc \(= 5\.3\.[0-9]+-[0-9.]+(\+[a-z0-9+~.]+)?\)$'
}

@test "bookworm: the packages build" {
	built bookworm lib/systemd
}

@test "trixie: the packages build" {
	built trixie usr/lib/systemd
}

@test "sid: the packages build" {
	built sid usr/lib/systemd
}
