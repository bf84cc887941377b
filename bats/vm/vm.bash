# SPDX-License-Identifier: MIT
#
# What the bats files of the guest load, after helpers.
#
#	guest_up                    in setup_file: the guest, with the packages installed, the programs of
#	                            lib/test in /opt/test and those of bats/vm/programs in /opt/programs
#	guest_down                  in teardown_file
#	guest SCRIPT [FILE]         a shell script in the guest; its input is FILE
#
# VM_IMAGE (full, small) and VM_KERNEL (6.12) say which guest. In its scripts there are
#
#	eventually COMMAND...       until it succeeds, for twenty seconds at most
#	configure NAME SETTING...   NAME.service has these settings (`Mode=sync`), and no others
#	protect NAME SETTING...     it has them, and is started anew
#	processes NAME              its PIDs
#	pid NAME                    that of its main process
#	checks NAME                 how the kernel checks tags for its threads: sync, async, both, none
#	tagged PID                  the mappings with tags: BEGIN-END and their name
#	prefer MODE                 what both bits mean on each CPU: sync, async, asymm
#	crashes NAME                the reports of its crashes, the journal's JSON, one a line

vm_top=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
vm_packages=$vm_top/build/vm/packages
vm_tests=$vm_top/build/arm64/test
vm_programs=$vm_top/build/vm/programs
export VM_IMAGE=${VM_IMAGE:-full} VM_KERNEL=${VM_KERNEL:-6.12}

vm() {
	"$vm_top/bats/vm/vm" "$@" 3>&- 4>&-
}

requires_guest() {
	local file
	for file in "$VM_IMAGE.ext4" "kernel-$VM_KERNEL" tools packages; do
		[ -e "$vm_top/build/vm/$file" ] || skip "no build/vm/$file: make vm-$VM_IMAGE"
	done
}

guest_up() {
	local what tree=$BATS_FILE_TMPDIR/guest
	requires_guest
	what=$(cat "$vm_packages"/*.deb "$vm_tests"/* "$vm_programs"/* | cksum)
	if vm has installed "$what"; then
		vm start installed
		return
	fi
	mkdir -p "$tree/opt/packages"
	cp -r "$vm_tests" "$vm_programs" "$tree/opt"
	cp "$vm_packages"/libvatalloc_*.deb "$vm_packages"/vatalloc_*.deb "$tree/opt/packages"
	tar -C "$tree" --exclude='*.d' -cf "$tree.tar" opt
	vm start booted
	VM_LIMIT=600 vm run 'tar -C / -x --no-same-owner && dpkg -i /opt/packages/*.deb' "$tree.tar"
	vm save installed "$what"
}

guest_down() {
	vm stop
}

guest() {
	vm run "$vm_functions
$1" "${@:2}"
}

read -rd '' vm_functions <<'END' || :
eventually() {
	local end=$((SECONDS + 20))
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep .1
	done
}

configure() {
	mkdir -p /etc/vatalloc.conf.d
	{
		echo "[$1.service]"
		printf '%s\n' "${@:2}"
	} > "/etc/vatalloc.conf.d/50-$1.conf"
	systemctl daemon-reload
}

protect() {
	configure "$@"
	systemctl enable -q "vatalloc@$1"
	systemctl restart "$1"
	eventually systemctl is-active -q "vatalloc@$1"
}

processes() {
	cat "/sys/fs/cgroup$(systemctl show -P ControlGroup "$1")/cgroup.procs"
}

pid() {
	systemctl show -P MainPID "$1"
}

checks() {
	for process in $(processes "$1"); do
		/opt/programs/tag-mode "$process"
	done | cut -d ' ' -f 1 | sort -u
}

tagged() {
	awk '/^[0-9a-f]+-/ { range = $1; name = $6 } /^VmFlags:.* mt( |$)/ { print range, name }' "/proc/$1/smaps"
}

prefer() {
	for file in /sys/devices/system/cpu/cpu*/mte_tcf_preferred; do
		echo "$1" > "$file"
	done
}

crashes() {
	journalctl -q --no-pager -o json -u "$1" MESSAGE_ID=ed3f568b47eb4501ae44d15dc645b4f3
}

set -eu
END
