# conf: vatalloc.conf and the reader of it, which other programs link in.
#
# The reader's tests are compiled with it anew, with sanitizers: make check runs them.

CONF_OBJECTS := $(O)/conf/conf.o $(O)/conf/load.o $(O)/systemd/unit.o $(O)/systemd/files.o
CONF_TEST_SOURCES := conf/conf.c conf/load.c systemd/unit.c systemd/files.c
CONF_TEST_HEADERS := conf/conf.h systemd/auto.h systemd/files.h systemd/unit.h

BUILD += $(O)/conf/test $(if $(shell command -v clang),$(O)/conf/fuzz)
INSTALL += install-conf
DEPS_TEST += clang libclang-rt-dev

SANITIZE := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

$(O)/conf/test: conf/test/conf.c $(CONF_TEST_SOURCES) $(CONF_TEST_HEADERS) $(O)/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -std=gnu11 $(WARN_FLAGS) $(SANITIZE) -o $@ $(filter %.c,$^)

# libFuzzer comes with clang only.
$(O)/conf/fuzz: conf/fuzz_conf.c $(CONF_TEST_SOURCES) $(CONF_TEST_HEADERS) $(O)/flags
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang -D_GNU_SOURCE -std=gnu11 $(WARN_FLAGS) $(SANITIZE) -fsanitize=fuzzer -o $@ $(filter %.c,$^)

install-conf:
	$(Q)install -D -m 0644 conf/vatalloc.conf $(DESTDIR)/etc/vatalloc.conf

.PHONY: install-conf
