#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The short form of `make check-vm`: the arm64 packages in an emulated machine with MTE, under a kernel of
# its own. To make the guest takes many minutes, once; where it is there (`make vm-small`) this takes
# about two.

load helpers
load packages
load vm/vm

setup_file() {
	needs 'requires root mmdebstrap arch-test aarch64-linux-gnu-gcc' || return 0
	export VM_IMAGE=small
	[ -e "$VATALLOC_SOURCE/build/vm/small.ext4" ] || needs 'requires full' requires_binfmt || return 0
	make -C "$VATALLOC_SOURCE" vm-small
	guest_up
}

teardown_file() {
	guest_down
}

requires_binfmt() {
	[ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc ||
		skip 'the kernel cannot be told of foreign programs (binfmt_misc)'
}

@test "nginx serves under synchronous checks, and only its heap has tags" {
	run guest 'systemctl start nginx
		protect nginx Mode=sync
		checks nginx
		curl -sfZ -o /dev/null "http://localhost/?[1-50]"
		vatallocctl verify --no-legend nginx
		tagged "$(pid nginx)" | grep -cE " (/|\[stack)" || :'
	assert_success
	assert_line -n 0 sync
	assert_line -n 1 --regexp '^[0-9]+ nginx +yes +sync +-$'
	assert_line --index -1 0
}

@test "a service that uses freed memory ends, and the journal names it" {
	run guest 'printf "[Service]\nType=oneshot\nExecStart=/opt/test/bug uaf-read\n" > /run/systemd/system/bug.service
		configure bug Mode=sync
		systemctl enable -q vatalloc@bug
		systemctl start bug 2> /dev/null || systemctl show -P Result bug
		journalctl --sync
		crashes bug'
	assert_success
	assert_line -n 0 --regexp '^(core-dump|signal)$'
	assert_line -n 1 --regexp '"MESSAGE":"use-after-free: read at 0x[0-9a-f]+, [0-9]+ bytes into a 320-byte object, life 1 of 15, freed"'
}

@test "no address is handed out twice with one tag" {
	run guest 'VATALLOC_OPTIONS=mode=sync LD_PRELOAD=$(echo /usr/lib/*/vatalloc/libvatalloc.so) \
		/opt/test/invariant tagged 50 4'
	assert_success
	refute_output --partial vatalloc:
}
