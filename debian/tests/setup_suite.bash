# SPDX-License-Identifier: MIT
#
# Before the first test while a package is built: what bats/setup_suite.bash says, but all is there
# already, and there is no other architecture.

setup_suite() {
	VATALLOC_SOURCE=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	unset MAKEFLAGS MAKELEVEL MFLAGS
	VATALLOC_LIB=${VATALLOC_LIB:-$VATALLOC_SOURCE/build/lib/libvatalloc.so}
	VATALLOC_TEST_DIR=$VATALLOC_SOURCE/build/test
	VATALLOC_NO_QEMU='not while a package is built'
	export VATALLOC_SOURCE VATALLOC_LIB VATALLOC_TEST_DIR VATALLOC_NO_QEMU
}
