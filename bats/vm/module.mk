# bats/vm: the arm64 packages on a real kernel with MTE, in a machine emulated by QEMU.
#
#   make check-vm                   the whole suite, under trixie's kernel 6.12
#   make check-vm VM_KERNEL=6.1     under bookworm's kernel; VM_KERNEL=newer: under sid's
#   make check-vm VM_T=bats/vm/610-faults.bats
#   make bench-vm                   instruction counts, into build/bench/vm.csv
#
# What is made once for that is kept below build/vm: QEMU 10, the kernels, the disks, and beside each
# disk the guest as it was when it had booted. `bats/vm/vm` alone starts it and runs commands in it.

VM_KERNEL := 6.12
VM_SUITE_6.1 := bookworm
VM_SUITE_6.12 := trixie
VM_SUITE_newer := sid

# What the short form needs, and what the rest does.
VM_PACKAGES_small := systemd systemd-sysv systemd-coredump libpam-systemd udev dbus kmod procps \
	iproute2 netbase curl nginx-light libsmartcols1 libdw1t64 libelf1t64
VM_PACKAGES_full := $(VM_PACKAGES_small) gdb redis-server redis-tools sqlite3 python3 perl git gcc \
	libc6-dev postgresql luajit nodejs apache2-utils strace

VM_DEPS := mmdebstrap arch-test
DEPS_TEST += $(VM_DEPS)

# What a thing is made from: it is made anew when that changes, not when a file is merely newer.
VM_FROM = @mkdir -p $(@D); cat $(2) | { echo '$(1)'; cat; } | cksum > $@.new; \
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

build/vm/%.ext4.from: FORCE
	$(call VM_FROM,$(VM_PACKAGES_$*),bats/vm/image bats/vm/agent bats/vm/agent.service)

build/vm/tools.from: FORCE
	$(call VM_FROM,,bats/vm/tools)

build/vm/kernel-%.from: FORCE
	$(call VM_FROM,$(VM_SUITE_$*),bats/vm/kernel)

build/vm/%.ext4: build/vm/%.ext4.from | $(QEMU)
	$(call say,IMAGE,$@)
	$(Q)bats/vm/image $@ $(VM_PACKAGES_$*)

build/vm/tools: build/vm/tools.from
	$(call say,FETCH,$@)
	$(Q)bats/vm/tools $@

build/vm/kernel-%: build/vm/kernel-%.from | build/vm/tools
	$(call say,FETCH,$@)
	$(Q)bats/vm/kernel build/vm/tools $(or $(VM_SUITE_$*),$(error VM_KERNEL is one of 6.1 6.12 newer)) $@

# The packages as of now.
build/vm/packages: $(shell git ls-files conf debian lib systemd Makefile 2>/dev/null)
	$(call say,DEB,$@)
	$(Q)mkdir -p $@
	$(Q)debian/build-package -n -o $@ trixie arm64 > $@.log 2>&1 || { tail -n 50 $@.log >&2; exit 1; }
	$(Q)touch $@

VM_PROGRAMS := $(patsubst bats/vm/programs/%.c,build/vm/programs/%,$(wildcard bats/vm/programs/*.c))

build/vm/programs/%: bats/vm/programs/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CROSS_arm64)gcc -O1 -g $(WARN_FLAGS) -D_GNU_SOURCE -pthread -o $@ $<

# What a guest takes: the short form's tests make it where it is not, but not in a `make check`'s time.
vm-small vm-full: vm-%: build/vm/%.ext4 build/vm/kernel-$(VM_KERNEL) build/vm/tools build/vm/packages $(VM_PROGRAMS)
	$(Q)$(MAKE) --no-print-directory tests ARCH=arm64

check-vm: deps
	$(Q)$(MAKE) --no-print-directory vm-full
	$(Q)VM_KERNEL=$(VM_KERNEL) bats/setup/check --jobs 1 $(ARGS) $(or $(VM_T),$(sort $(wildcard bats/vm/*.bats)))

bench-vm: deps
	$(Q)$(MAKE) --no-print-directory vm-full
	$(Q)VM_KERNEL=$(VM_KERNEL) bats/vm/bench build/bench/vm.csv

.PHONY: vm-small vm-full check-vm bench-vm
.PRECIOUS: build/vm/%.ext4.from build/vm/%.ext4 build/vm/kernel-%.from build/vm/kernel-%
