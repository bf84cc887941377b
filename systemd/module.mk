# The programs that systemd and the administrator run, and what is installed beside them.

DEPS_BUILD += pkg-config libsystemd-dev libsmartcols-dev libdw-dev libzstd-dev
DEPS_TEST += mmdebstrap systemd-container util-linux

# A package build for another architecture names its own.
PKG_CONFIG ?= pkg-config

SYSTEMD_CTL := vatallocctl ctl_config ctl_crashes ctl_run ctl_status ctl_verify \
	crash explain fragment image journal map pager process service status symbols table text
SYSTEMD_REPORTER := reporter core core_file crash dump evidence explain map text throttle

SYSTEMD_GENERATOR := generator fragment output preload sandbox

SYSTEMD_PROGRAMS := vatallocctl vatalloc-reporter vatalloc-generator

SYSTEMD_BUILT := $(SYSTEMD_PROGRAMS:%=$O/systemd/%)
BUILD += $(SYSTEMD_BUILT)

SYSTEMD_CPPFLAGS := -D_GNU_SOURCE -D_FORTIFY_SOURCE=2 -DVATALLOC_VERSION='"$(VERSION)"' \
	-DVATALLOC_TRIPLET='"$(TRIPLET)"' \
	-DLIBRARY_PATH='"$(LIBDIR)/vatalloc/libvatalloc.so"'
SYSTEMD_CFLAGS := -std=gnu11 -O2 -g $(WARN_FLAGS) -fPIE -fstack-protector-strong \
	$(shell $(PKG_CONFIG) --cflags libsystemd smartcols libdw libzstd 2>/dev/null)
SYSTEMD_LDFLAGS := -pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed

$O/systemd/vatallocctl: SYSTEMD_LIBS := -lsystemd -lsmartcols -ldw -lelf
$O/systemd/vatallocctl: $(SYSTEMD_CTL:%=$O/systemd/%.o) $(CONF_OBJECTS)
$O/systemd/vatalloc-reporter: SYSTEMD_LIBS := -lsystemd -lzstd
$O/systemd/vatalloc-reporter: $(SYSTEMD_REPORTER:%=$O/systemd/%.o)

$O/systemd/vatalloc-generator: $(SYSTEMD_GENERATOR:%=$O/systemd/%.o) $(CONF_OBJECTS)

$(SYSTEMD_BUILT): $O/flags
	$(call say,LINK,$@)
	$(Q)$(CC) $(SYSTEMD_CFLAGS) $(CFLAGS) $(SYSTEMD_LDFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(SYSTEMD_LIBS)

$O/systemd/%.o $O/conf/%.o: SYSTEMD_COMPILE = $(CC) -MMD -MP $(SYSTEMD_CPPFLAGS) $(CPPFLAGS) \
	$(SYSTEMD_CFLAGS) $(CFLAGS) -c -o $@ $<

$O/systemd/%.o: systemd/%.c $O/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(SYSTEMD_COMPILE)

$O/conf/%.o: conf/%.c $O/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(SYSTEMD_COMPILE)

# It has the catalog in it.
$O/systemd/explain.o: systemd/vatalloc.catalog

-include $(wildcard $O/systemd/*.d $O/conf/*.d)

SYSTEMD_MAN := vatalloc.7 vatallocctl.1 vatalloc-reporter.8 \
	vatalloc.conf.5 vatalloc@.service.8 vatalloc-generator.8
INSTALL += install-ctl
BUILD += $O/systemd/system/vatalloc-reporter.service

install-ctl: $O/systemd/vatallocctl $O/systemd/vatalloc-reporter $O/systemd/system/vatalloc-reporter.service
	$(Q)install -D -m 0755 $O/systemd/vatallocctl $(DESTDIR)/usr/bin/vatallocctl
	$(Q)install -D -m 0755 $O/systemd/vatalloc-reporter $(DESTDIR)$(LIBEXECDIR)/vatalloc-reporter
	$(Q)install -D -m 0644 $O/systemd/system/vatalloc-reporter.service \
		$(DESTDIR)$(SYSTEM_UNIT_DIR)/vatalloc-reporter.service
	$(Q)install -D -m 0644 systemd/vatalloc.catalog $(DESTDIR)/usr/lib/systemd/catalog/vatalloc.catalog
	$(Q)install -D -m 0644 systemd/completion/bash $(DESTDIR)/usr/share/bash-completion/completions/vatallocctl
	$(Q)install -D -m 0644 systemd/completion/zsh $(DESTDIR)/usr/share/zsh/vendor-completions/_vatallocctl
	$(Q)for page in $(SYSTEMD_MAN); do \
		install -D -m 0644 systemd/man/$$page $(DESTDIR)/usr/share/man/man$${page##*.}/$$page || exit 1; \
	done

.PHONY: install-ctl

# The parts that read what others wrote, with sanitizers: their tests, and a fuzzer of them.
SYSTEMD_PARTS := core crash explain map text throttle
SYSTEMD_PARTS_SOURCES := $(SYSTEMD_PARTS:%=systemd/%.c)
SYSTEMD_PARTS_FLAGS = $(SYSTEMD_CPPFLAGS) -U_FORTIFY_SOURCE -std=gnu11 $(WARN_FLAGS) $(SANITIZE)

BUILD += $O/systemd/test/idle $O/systemd/test/idle-static
BUILD += $O/systemd/test/parts $(if $(shell command -v clang),$O/systemd/test/fuzz_core)

# What the tests look at from outside; without protection, as most programs are built.
$O/systemd/test/idle: systemd/test/idle.c $O/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -O1 -g $(WARN_FLAGS) -o $@ $<

$O/systemd/test/idle-static: systemd/test/idle.c $O/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -O1 -g $(WARN_FLAGS) -static -o $@ $<

$O/systemd/test/parts: systemd/test/parts.c $(SYSTEMD_PARTS_SOURCES) $(wildcard systemd/*.h) \
		systemd/vatalloc.catalog $O/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SYSTEMD_PARTS_FLAGS) -o $@ $(filter %.c,$^) -lsystemd

$O/systemd/test/fuzz_core: systemd/fuzz_core.c $(SYSTEMD_PARTS_SOURCES) $(wildcard systemd/*.h) \
		systemd/vatalloc.catalog $O/flags
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang $(SYSTEMD_PARTS_FLAGS) -fsanitize=fuzzer -o $@ $(filter %.c,$^) -lsystemd

# One program serves both managers, by its name.
$O/systemd/vatalloc-user-generator: $O/systemd/vatalloc-generator
	$(Q)ln -sf vatalloc-generator $@

# The generator with sanitizers, for its tests.
$O/systemd/test/vatalloc-generator: $(SYSTEMD_GENERATOR:%=systemd/%.c) $(CONF_TEST_SOURCES) $O/flags \
		$(wildcard systemd/*.h conf/*.h)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SYSTEMD_CPPFLAGS) -U_FORTIFY_SOURCE -std=gnu11 $(WARN_FLAGS) $(SANITIZE) -o $@ $(filter %.c,$^)
	$(Q)ln -sf vatalloc-generator $(@D)/vatalloc-user-generator

# Each template serves both managers too. Its helper is told which, and lines that begin with
# @SYSTEM@ are for the system's alone.
LIBEXECDIR := /usr/libexec
SYSTEMD_UNITS := vatalloc@.service vatalloc-apply@.service
SYSTEMD_UNITS_BUILT := $(SYSTEMD_UNITS:%=$O/systemd/system/%) $(SYSTEMD_UNITS:%=$O/systemd/user/%)

$O/systemd/system/%: systemd/%.in systemd/module.mk
	$(Q)mkdir -p $(@D)
	$(Q)sed 's,@LIBEXECDIR@,$(LIBEXECDIR),; s,@FLAGS@,,; s,^@SYSTEM@,,' $< > $@

$O/systemd/user/%: systemd/%.in systemd/module.mk
	$(Q)mkdir -p $(@D)
	$(Q)sed '/^@SYSTEM@/d; s,@LIBEXECDIR@,$(LIBEXECDIR),; s,@FLAGS@,--user ,' $< > $@

BUILD += $O/systemd/vatalloc-user-generator $O/systemd/test/vatalloc-generator $(SYSTEMD_UNITS_BUILT)

# Where systemd of this release looks: bookworm's says /lib, later ones /usr/lib.
systemd_dir = $(or $(shell $(PKG_CONFIG) --variable=$(1) systemd 2>/dev/null),$(2))
SYSTEM_UNIT_DIR = $(call systemd_dir,systemd_system_unit_dir,/usr/lib/systemd/system)
USER_UNIT_DIR = $(call systemd_dir,systemd_user_unit_dir,/usr/lib/systemd/user)
SYSTEM_GENERATOR_DIR = $(call systemd_dir,systemd_system_generator_dir,/usr/lib/systemd/system-generators)
USER_GENERATOR_DIR = $(call systemd_dir,systemd_user_generator_dir,/usr/lib/systemd/user-generators)

INSTALL += install-generator

install-generator: $(SYSTEMD_UNITS_BUILT) $O/systemd/vatalloc-generator
	$(Q)install -D -m 0755 $O/systemd/vatalloc-generator $(DESTDIR)$(SYSTEM_GENERATOR_DIR)/vatalloc-generator
	$(Q)install -d -m 0755 $(DESTDIR)$(USER_GENERATOR_DIR) $(DESTDIR)$(SYSTEM_UNIT_DIR) $(DESTDIR)$(USER_UNIT_DIR)
	$(Q)ln -sfr $(DESTDIR)$(SYSTEM_GENERATOR_DIR)/vatalloc-generator \
		$(DESTDIR)$(USER_GENERATOR_DIR)/vatalloc-user-generator
	$(Q)install -m 0644 $(SYSTEMD_UNITS:%=$O/systemd/system/%) $(DESTDIR)$(SYSTEM_UNIT_DIR)
	$(Q)install -m 0644 $(SYSTEMD_UNITS:%=$O/systemd/user/%) $(DESTDIR)$(USER_UNIT_DIR)
	$(Q)install -D -m 0755 systemd/vatalloc-protect $(DESTDIR)$(LIBEXECDIR)/vatalloc-protect

.PHONY: install-generator
