# The programs that systemd and the administrator run, and what is installed beside them.

DEPS_BUILD += pkg-config libsystemd-dev libsmartcols-dev libdw-dev libzstd-dev
DEPS_TEST += mmdebstrap systemd-container util-linux

SYSTEMD_CTL := vatallocctl ctl_config ctl_crashes ctl_run ctl_status ctl_verify \
	crash explain image journal map pager process service status symbols table text
SYSTEMD_REPORTER := reporter core crash map text

SYSTEMD_PROGRAMS := vatallocctl

SYSTEMD_BUILT := $(SYSTEMD_PROGRAMS:%=$O/systemd/%)
BUILD += $(SYSTEMD_BUILT)

SYSTEMD_CPPFLAGS := -D_GNU_SOURCE -D_FORTIFY_SOURCE=2 -DVATALLOC_VERSION='"$(VERSION)"' \
	-DVATALLOC_TRIPLET='"$(TRIPLET)"' \
	-DLIBRARY_PATH='"$(LIBDIR)/vatalloc/libvatalloc.so"'
SYSTEMD_CFLAGS := -std=gnu11 -O2 -g $(WARN_FLAGS) -fPIE -fstack-protector-strong \
	$(shell pkg-config --cflags libsystemd smartcols libdw libzstd 2>/dev/null)
SYSTEMD_LDFLAGS := -pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed

$O/systemd/vatallocctl: SYSTEMD_LIBS := -lsystemd -lsmartcols -ldw -lelf
$O/systemd/vatallocctl: $(SYSTEMD_CTL:%=$O/systemd/%.o) $(CONF_OBJECTS)

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
