# SPDX-License-Identifier: MIT
#
# Before the first test: build what the tests use and say where it is.
#
#	VATALLOC_SOURCE            the source tree
#	VATALLOC_LIB             the library for this machine
#	VATALLOC_TEST_DIR        the programs of lib/test for this machine
#	VATALLOC_QEMU            a QEMU that has MTE, or nothing, and then
#	VATALLOC_NO_QEMU         says why it or what it needs is missing
#	VATALLOC_ARM64_LIB, VATALLOC_ARM64_TEST_DIR, VATALLOC_SYSROOT
#	                         what run_mte runs under it, and the arm64 system it runs in

setup_suite() {
	VATALLOC_SOURCE=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	# Called by `make check`, this make is not a part of that one.
	unset MAKEFLAGS MAKELEVEL MFLAGS

	build=$VATALLOC_SOURCE/build
	make -C "$VATALLOC_SOURCE" -j2 all

	VATALLOC_LIB=$build/lib/libvatalloc.so
	VATALLOC_TEST_DIR=$build/test
	VATALLOC_ARM64_LIB=$build/arm64/lib/libvatalloc.so
	VATALLOC_ARM64_TEST_DIR=$build/arm64/test
	VATALLOC_SYSROOT=$build/arm64/sysroot
	VATALLOC_QEMU=$build/qemu/bin/qemu-aarch64
	VATALLOC_NO_QEMU=

	if ! command -v aarch64-linux-gnu-gcc > /dev/null; then
		VATALLOC_NO_QEMU='no aarch64-linux-gnu-gcc'
	elif ! [ -x "$VATALLOC_QEMU" ]; then
		VATALLOC_NO_QEMU='no build/qemu: make deps'
	elif ! [ -d "$VATALLOC_SYSROOT" ]; then
		VATALLOC_NO_QEMU='no build/arm64/sysroot: make deps'
	else
		make -C "$VATALLOC_SOURCE" -j2 ARCH=arm64 all
	fi
	export VATALLOC_SOURCE VATALLOC_LIB VATALLOC_TEST_DIR VATALLOC_ARM64_LIB \
		VATALLOC_ARM64_TEST_DIR VATALLOC_SYSROOT VATALLOC_QEMU VATALLOC_NO_QEMU
}
