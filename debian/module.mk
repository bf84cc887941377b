# debian: the packages.
#
#   make deb                  for this machine's release, with its tools, into build/deb/
#   make deb SUITE=trixie     in a clean chroot of that release, into build/deb/trixie/
#   make deb ARCH=arm64       cross-built, into build/deb/arm64/ (or build/deb/trixie-arm64/)
#
# DEB_BUILD_OPTIONS and DEB_BUILD_PROFILES of the environment count. Lintian looks at what comes
# out, and any tag that is not overridden, with a reason, is a failure.

DEPS_DEB := bats bats-assert bats-file bats-support build-essential debhelper dpkg-dev fakeroot \
	lintian mmdebstrap pkgconf
# Where systemd says what goes where.
DEPS_DEB += systemd$(if $(filter-out bookworm,$(shell . /etc/os-release && echo $${VERSION_CODENAME:-sid})),-dev)
DEPS_TEST += $(DEPS_DEB) devscripts file man-db piuparts

# What a package's rules call. All that `make install` installs:
PACKAGE := $(LIB) $(SYSTEMD_BUILT) $(SYSTEMD_UNITS_BUILT) $O/systemd/system/vatalloc-reporter.service

package: $(PACKAGE)

# What works without privileges, network and anything but the build dependencies.
package-check: $(LIB) $(TESTS)
	$(Q)bats --setup-suite-file debian/tests/setup_suite.bash bats/000-build.bats bats/100-api.bats < /dev/null

package-directories:
	@printf '%s=%s\n' SYSTEM_GENERATOR_DIR '$(SYSTEM_GENERATOR_DIR)' SYSTEM_UNIT_DIR '$(SYSTEM_UNIT_DIR)' \
		USER_GENERATOR_DIR '$(USER_GENERATOR_DIR)' USER_UNIT_DIR '$(USER_UNIT_DIR)'

deb:
	$(Q)bats/setup/deps $(sort $(DEPS_BUILD) $(DEPS_DEB)) --
	$(Q)debian/build-package $(or $(SUITE),-) $(or $(ARCH),$(MACHINE_ARCH))

.PHONY: package package-check package-directories deb
