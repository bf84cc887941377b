#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The packages built on this machine for arm64, in a clean chroot of trixie.

load helpers
load packages

requires_other_than_arm64() {
	[ "$packages_machine" != arm64 ] || skip 'this machine is arm64'
}

setup_file() {
	needs 'requires full' requires_chroot requires_other_than_arm64 || return 0
	export packages=$VATALLOC_SOURCE/build/deb/trixie-arm64 tree=$BATS_FILE_TMPDIR/tree
	build "$packages/log" trixie arm64
	dpkg-deb -x "$packages"/libvatalloc_*_arm64.deb "$tree"
	dpkg-deb -x "$packages"/vatalloc_*_arm64.deb "$tree"
}

@test "the library and the programs are arm64's" {
	local file
	for file in usr/lib/aarch64-linux-gnu/vatalloc/libvatalloc.so usr/bin/vatallocctl \
		usr/libexec/vatalloc-reporter usr/lib/systemd/system-generators/vatalloc-generator; do
		run readelf -hW "$tree/$file"
		assert_line --regexp 'Machine: *AArch64'
	done
	run strings "$tree/usr/bin/vatallocctl"
	assert_output --partial aarch64-linux-gnu
	refute_output --partial x86_64-linux-gnu
}

@test "return addresses are signed" {
	requires aarch64-linux-gnu-objdump
	local file
	while read -r file; do
		# An old binutils knows them as hints.
		run bash -c "aarch64-linux-gnu-objdump -d '$file' | grep -cE 'paciasp|hint	#0x19'"
		assert [ "$output" -gt 20 ]
	done < <(find "$tree/usr" -type f \( -name '*.so' -o -perm /1 ! -name vatalloc-protect \))
}

@test "the library from the package finds a use after free with memory tagging" {
	requires qemu
	VATALLOC_ARM64_LIB=$tree/usr/lib/aarch64-linux-gnu/vatalloc/libvatalloc.so
	run_mte sync bug uaf-read
	assert_killed SEGV
	assert_equal "${stderr_lines[0]%%:*}" vatalloc
}

@test "the library of both architectures can be installed at once" {
	local other root
	other=$(packages trixie)
	mkdir "$BATS_TEST_TMPDIR/both"
	cp "$packages"/libvatalloc_*_arm64.deb "$other"/libvatalloc_*_"$packages_machine".deb "$BATS_TEST_TMPDIR/both"
	root=$(chroot_root deb-arm64-trixie trixie lintian "$VATALLOC_SOURCE/debian/control" arm64)
	run in_chroot "$root" "$BATS_TEST_TMPDIR/both" sh -c 'apt-get install -y --no-install-recommends ./*.deb &&
		dpkg --verify libvatalloc:arm64 && dpkg -L libvatalloc:arm64 libvatalloc:amd64'
	assert_success
	assert_line /usr/lib/aarch64-linux-gnu/vatalloc/libvatalloc.so
	assert_line /usr/lib/x86_64-linux-gnu/vatalloc/libvatalloc.so
}
