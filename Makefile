# vatalloc: a hardened heap for existing services.
#
#   make                build everything for this machine, under build/
#   make ARCH=arm64     the library and its test programs for arm64, under build/arm64/
#   make deps           install what building and testing needs (as root)
#   make demo           see it work, on a throw-away machine: the packages are built and installed,
#                       nginx is protected, a service that uses freed memory is stopped (as root)
#   make check          run every test this machine can run (VATALLOC_FULL=1: and those that take
#                       many minutes); T=bats/010-api.bats runs one file,
#                       ARGS='-f double' passes options to bats
#   make bench          the same work under glibc's heap, jemalloc, others and ours, side by side;
#                       bats/bench/module.mk says more
#   make check-vm       test the arm64 packages on a real kernel with memory tagging, emulated;
#                       bats/vm/module.mk says more
#   make check-sid      build and test in a chroot of Debian sid
#   make deb            build the Debian packages, into build/deb/; debian/module.mk says more
#   make install        into $(DESTDIR)
#   make clean          forget what was built; distclean: and what was downloaded
#   V=1                 show the commands
#
# CFLAGS, CXXFLAGS, CPPFLAGS and LDFLAGS of the environment are added after our own flags.
#
# Each part of the project that builds something has a module.mk, read at the end of this file. A
# module may add to
#   BUILD         files or targets that `make` builds (not with ARCH=, which is the library only)
#   INSTALL       targets that `make install` runs, named install-PART
#   DEPS_BUILD    Debian packages that building needs
#   DEPS_TEST     Debian packages that testing needs
# and may use
#   O             build, or build/ARCH: all output goes below it
#   CC CXX        compilers, also when cross-building
#   WARN_FLAGS    the warnings all C here is compiled with
#   VERSION       the version; TRIPLET, LIBDIR: where libraries go; DESTDIR
#   Q, say        $(call say,WORD,FILE) prints what is done, $(Q) hides how
#   flags         $O/flags: depend on it and a change of compiler or flags rebuilds
# Our compilations write dependencies to FILE.d; a module reads its own with
#   -include $(MY_OBJECTS:.o=.d)

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
export LC_ALL = C.UTF-8

all:

# Where to and with what -----------------------------------------------------------------------

MACHINE_ARCH := $(shell dpkg --print-architecture)
O := build$(if $(ARCH),/$(ARCH))
CROSS_arm64 := aarch64-linux-gnu-
CROSS := $(if $(filter-out $(MACHINE_ARCH),$(ARCH)),$(or $(CROSS_$(ARCH)),$(error no cross compiler known for ARCH=$(ARCH))))

ifeq ($(origin CC),default)
CC := $(CROSS)gcc
endif
ifeq ($(origin CXX),default)
CXX := $(CROSS)g++
endif
# The binutils that belong to the compiler, also if the caller named a cross compiler in CC.
NM = $(shell $(CC) -print-prog-name=nm 2>/dev/null)
OBJCOPY = $(shell $(CC) -print-prog-name=objcopy 2>/dev/null)
AR = $(shell $(CC) -print-prog-name=ar 2>/dev/null)

# That of the source; what follows a dash is the package's.
VERSION := $(or $(shell sed -n '1s/.*(\([^-)]*\).*/\1/p' debian/changelog 2>/dev/null),0.1.0)
TRIPLET = $(shell $(CC) -print-multiarch 2>/dev/null)
LIBDIR = /usr/lib/$(TRIPLET)

ifeq ($(V),1)
Q :=
say :=
else
Q := @
say = @printf '  %-8s %s\n' '$(1)' '$(2)'
endif

BUILD :=
INSTALL :=
DEPS_BUILD := gcc g++ make binutils libc6-dev libjemalloc-dev
DEPS_TEST := bats bats-support bats-assert bats-file parallel gdb strace procps \
	nginx-light apache2 apache2-utils wrk redis-server redis-tools php-cli php-fpm postgresql \
	mariadb-server varnish bind9 bind9-dnsutils bind9-utils memcached python3 perl git sqlite3 \
	nodejs openssl default-jdk-headless chrony curl xz-utils zstd mmdebstrap
ifneq ($(MACHINE_ARCH),arm64)
DEPS_TEST += crossbuild-essential-arm64
endif

WARN_FLAGS := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes

# The library ----------------------------------------------------------------------------------

LIB := $(O)/lib/libvatalloc.so
LIB_OBJECTS := $(patsubst lib/%,$(O)/lib/%.o,$(basename $(wildcard lib/*.c lib/*.S)))

LIB_CPPFLAGS := -D_GNU_SOURCE -DVATALLOC_VERSION='"$(VERSION)"'
LIB_CFLAGS := -std=gnu11 -O2 -g $(WARN_FLAGS) -fPIC -fvisibility=hidden -ftls-model=initial-exec \
	-fasynchronous-unwind-tables
LIB_LDFLAGS := -shared -Wl,-soname,libvatalloc.so -Wl,--version-script=lib/libvatalloc.map \
	-Wl,--exclude-libs,ALL -Wl,-z,relro,-z,now,-z,nodlopen,-z,defs,-z,noexecstack
# The library needs libc and nothing else: a sandbox that lacks another library it needed would keep
# the service from starting.
LIB_LIBS := -static-libgcc -Wl,--as-needed

# The compiler must not turn the body of our calloc into a call of calloc, and the like.
$(O)/lib/preload.o $(O)/lib/preload%.o: FILE_CFLAGS := -fno-builtin
# operator new throws and is unwound through.
$(O)/lib/preload_cxx.o: FILE_CFLAGS := -fno-builtin -fexceptions

# jemalloc for a foreign architecture comes from a tree of its own packages: see JEMALLOC below.
LIB_CPPFLAGS += $(if $(CROSS),-isystem $(O)/cross/include)

$(LIB): $(LIB_OBJECTS) $(O)/lib/slot_jemalloc.a lib/libvatalloc.map $(O)/flags
	$(call say,LINK,$@)
	$(Q)$(CC) $(LIB_CFLAGS) $(CFLAGS) $(LIB_LDFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIB_LIBS)

$(O)/lib/%.o: lib/%.c $(O)/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -MMD -MP $(LIB_CPPFLAGS) $(CPPFLAGS) $(LIB_CFLAGS) $(CFLAGS) $(FILE_CFLAGS) -c -o $@ $<

$(O)/lib/%.o: lib/%.S $(O)/flags
	$(call say,AS,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -MMD -MP $(LIB_CPPFLAGS) $(CPPFLAGS) $(LIB_CFLAGS) $(CFLAGS) -c -o $@ $<

-include $(LIB_OBJECTS:.o=.d)

# Debian's jemalloc, renamed: each symbol it shows to the world gets slot_ in front (malloc becomes
# slot_malloc, malloc_conf slot_malloc_conf), its own je_ names stay, and some calls of libc
# go through lib/slot.c, and its C++ operators are
# left out, so that nothing of it can be taken for ours or needs libstdc++.
JEMALLOC = $(if $(CROSS),$(SYSROOT)/usr/lib/$(TRIPLET)/libjemalloc_pic.a,$(shell $(CC) -print-file-name=libjemalloc_pic.a 2>/dev/null))

$(O)/lib/slot_jemalloc.a: Makefile $(if $(CROSS),$(O)/sysroot.done) $(O)/flags
	$(call say,OBJCOPY,$@)
	$(Q)mkdir -p $(@D)
	$(Q)test -e '$(JEMALLOC)' || { echo "no $(JEMALLOC): try 'make deps' first" >&2; exit 1; }
	$(Q)cp -f $(JEMALLOC) $@.all
	$(Q)$(AR) d $@.all $$($(AR) t $@.all | grep jemalloc_cpp)
	$(Q)$(NM) --defined-only --extern-only $@.all | awk 'NF == 3 && $$3 !~ /^je_/ \
		{ print $$3, "slot_" $$3 } END { print "mmap slot_mmap"; \
		print "secure_getenv slot_getenv"; print "readlink slot_readlink"; \
		print "pthread_key_create slot_key_create"; \
		print "pthread_setspecific slot_key_set"; \
		print "exp slot_exp"; print "log slot_log"; print "round slot_round" }' | sort -u > $@.rename
	$(Q)grep -q '^malloc slot_malloc$$' $@.rename
	$(Q)$(OBJCOPY) --redefine-syms=$@.rename $@.all $@
	$(Q)rm -f $@.all

# Test programs --------------------------------------------------------------------------------
#
# Each file of lib/test is a program of its own; so_NAME.c is a module that programs load. They do
# not link the library, they run under it. A comment `/* LIBS: -lfoo */` in a file's first lines
# names the libraries it needs.

TEST_C := $(wildcard lib/test/*.c)
TEST_CXX := $(wildcard lib/test/*.cc)
TESTS := $(patsubst lib/test/%,$(O)/test/%,$(basename $(filter-out lib/test/so_%,$(TEST_C) $(TEST_CXX))))
TESTS += $(patsubst lib/test/%,$(O)/test/%.so,$(basename $(filter lib/test/so_%,$(TEST_C) $(TEST_CXX))))

TEST_FLAGS := -O1 -g -pthread -Ilib -D_GNU_SOURCE -fno-builtin-malloc -fno-builtin-free \
	-Wno-free-nonheap-object
TEST_FLAGS += $(if $(CROSS),-isystem $(O)/cross/include -L$(O)/cross/lib)
TEST_DEPEND = -MMD -MP -MF $@.d
test_libs = $$(sed -n '1,3s,.*/\* LIBS: *\(.*\) \*/.*,\1,p' $<)

$(O)/test/so_%.so: lib/test/so_%.c $(O)/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TEST_DEPEND) $(TEST_FLAGS) -shared -fPIC -o $@ $< $(test_libs)

$(O)/test/so_%.so: lib/test/so_%.cc $(O)/flags
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(TEST_DEPEND) $(TEST_FLAGS) -shared -fPIC -o $@ $< $(test_libs)

$(O)/test/%: lib/test/%.c $(O)/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(TEST_DEPEND) $(TEST_FLAGS) -o $@ $< $(test_libs)

$(O)/test/%: lib/test/%.cc $(O)/flags
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(TEST_DEPEND) $(TEST_FLAGS) -o $@ $< $(test_libs)

-include $(TESTS:=.d)

# Things from elsewhere ------------------------------------------------------------------------

# A tree of arm64 packages: what the library links with there, and what the tests run in it.
SYSROOT := $(O)/sysroot
SYSROOT_PACKAGES := libc6 libc6-dev libjemalloc-dev libjemalloc2 libgcc-s1 libstdc++6 python3 perl \
	git sqlite3 nginx-light

build/arm64/sysroot.packages: FORCE
	@mkdir -p $(@D)
	@echo '$(SYSROOT_PACKAGES)' | cmp -s - $@ || echo '$(SYSROOT_PACKAGES)' > $@

build/arm64/sysroot.done: build/arm64/sysroot.packages
	$(call say,FETCH,build/arm64/sysroot)
	$(Q)bats/setup/arm64-sysroot build/arm64/sysroot $(SYSROOT_PACKAGES)
	$(Q)rm -rf build/arm64/cross
	$(Q)mkdir -p build/arm64/cross/include build/arm64/cross/lib
	$(Q)ln -s ../../sysroot/usr/include/jemalloc build/arm64/cross/include/
	$(Q)ln -s ../../sysroot/usr/lib/aarch64-linux-gnu/libjemalloc.so build/arm64/cross/lib/
	$(Q)touch $@

ifneq ($(CROSS),)
$(LIB_OBJECTS) $(TESTS): | $(O)/sysroot.done
endif

QEMU := build/qemu/bin/qemu-aarch64

$(QEMU):
	$(call say,FETCH,$@)
	$(Q)bats/setup/qemu build/qemu

# A chroot of Debian sid for bats/900-sid.bats, with what building needs and the smoke tests need.
SID_PACKAGES = $(sort $(DEPS_BUILD) bats bats-support bats-assert bats-file procps python3)

build/chroot/sid.packages: FORCE
	@mkdir -p $(@D)
	@echo '$(SID_PACKAGES)' | cmp -s - $@ || echo '$(SID_PACKAGES)' > $@

build/chroot/sid.done: build/chroot/sid.packages
	$(call say,FETCH,build/chroot/sid)
	$(Q)bats/setup/sid-chroot build/chroot/sid $(SID_PACKAGES)
	$(Q)touch $@

# Targets --------------------------------------------------------------------------------------

# Written anew when the compiler, the flags or this file change.
$(O)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(CC) $(CXX) $(CPPFLAGS) $(CFLAGS) $(CXXFLAGS) $(LDFLAGS)' \
		"$$(cksum Makefile)" '$(VERSION)' > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# The parts that build things.
-include conf/module.mk systemd/module.mk bats/bench/module.mk bats/vm/module.mk debian/module.mk

all: lib tests $(if $(ARCH),,$(BUILD))
lib: $(LIB)
tests: $(TESTS)

install: $(LIB) $(INSTALL)
	$(Q)install -D -m 0644 $(LIB) $(DESTDIR)$(LIBDIR)/vatalloc/libvatalloc.so

deps:
	$(Q)bats/setup/deps $(sort $(DEPS_BUILD)) -- $(sort $(DEPS_TEST))
ifneq ($(MACHINE_ARCH),arm64)
	$(Q)$(MAKE) --no-print-directory fetched
endif

fetched: build/arm64/sysroot.done $(QEMU)
	@:

# A second make, because what deps installs changes what a Makefile finds.
check: deps
	$(Q)$(MAKE) --no-print-directory all
	$(Q)bats/setup/check $(ARGS) $(or $(T),$(sort $(wildcard bats/*.bats)))

# It builds and runs everything elsewhere, so this is all it needs here.
DEPS_DEMO := apache2-utils curl dpkg-dev mmdebstrap procps systemd-container util-linux xz-utils

demo:
	$(Q)bats/setup/deps $(sort $(DEPS_DEMO)) --
	$(Q)bats/demo/run

check-sid:
	$(Q)$(MAKE) --no-print-directory check T=bats/900-sid.bats

clean:
	$(Q)find build -mindepth 1 -maxdepth 1 ! -name arm64 ! -name qemu ! -name chroot \
		-exec rm -rf {} + 2>/dev/null || :
	$(Q)find build/arm64 -mindepth 1 -maxdepth 1 ! -name 'sysroot*' ! -name cross \
		-exec rm -rf {} + 2>/dev/null || :

distclean:
	$(Q)rm -rf build

.PHONY: all lib tests install deps fetched check check-sid demo clean distclean FORCE
FORCE:
