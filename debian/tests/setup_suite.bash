# SPDX-License-Identifier: MIT
#
# Before the first test while a package is built: what bats/setup_suite.bash says, but all is there
# already, and there is no other architecture.

setup_suite() {
	VATALLOC_ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	unset MAKEFLAGS MAKELEVEL MFLAGS
	VATALLOC_LIB=${VATALLOC_LIB:-$VATALLOC_ROOT/build/lib/libvatalloc.so}
	VATALLOC_TEST_DIR=$VATALLOC_ROOT/build/test
	VATALLOC_NO_QEMU='not while a package is built'
	export VATALLOC_ROOT VATALLOC_LIB VATALLOC_TEST_DIR VATALLOC_NO_QEMU
}
