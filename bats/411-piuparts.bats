#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# piuparts: in a chroot of each release, where no systemd runs, the packages are installed, removed and
# purged, and nothing may be left.

load helpers
load packages

setup_file() {
	needs 'requires full piuparts' requires_chroot || return 0
}

passes() {
	local suite=$1 root packages
	packages=$(packages "$suite")
	root=$(chroot_root "base-$suite" "$suite" debfoster)
	mkdir "$BATS_TEST_TMPDIR/packages"
	cp "$packages"/{libvatalloc,vatalloc}_*"$packages_machine".deb "$BATS_TEST_TMPDIR/packages"
	# The directory is debconf's; the packages they depend on make it.
	run piuparts --distribution "$suite" --mirror "$(debian_mirror) main" --existing-chroot "$root" \
		--tmpdir "$BATS_TEST_TMPDIR" --no-eatmydata --no-check-valid-until --no-upgrade-test \
		--ignore-regex '^/var/cache/debconf/tmp\.ci/?' \
		"$BATS_TEST_TMPDIR"/packages/*.deb
	output=$(grep -vE ' (DEBUG|DUMP): ' <<< "$output" | tail -n 30)
	assert_success
	assert_output --partial 'PASS: All tests.'
}

@test "piuparts: trixie" {
	passes trixie
}

@test "piuparts: bookworm" {
	passes bookworm
}
