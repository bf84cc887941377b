#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The packages as `make deb` makes them for this machine: what is in them and how it is built. They are built
# twice, which has to come to the same.

load helpers
load packages

requires_build_dependencies() {
	dpkg-checkbuilddeps "$VATALLOC_SOURCE/debian/control" || skip 'build dependencies are missing'
}

setup_file() {
	needs 'requires dpkg-buildpackage dh lintian fakeroot' requires_build_dependencies || return 0
	export packages=$VATALLOC_SOURCE/build/deb log=$VATALLOC_SOURCE/build/deb/log
	export again=$BATS_FILE_TMPDIR/another/directory multiarch
	multiarch=$(gcc -print-multiarch)
	DEB_BUILD_OPTIONS=parallel=2 make -C "$VATALLOC_SOURCE" deb > "$BATS_FILE_TMPDIR/log" 2>&1 3>&- || {
		tail -n 40 "$BATS_FILE_TMPDIR/log" >&2
		return 1
	}
	mv "$BATS_FILE_TMPDIR/log" "$log"
	TZ=Pacific/Kiritimati LANG=C HOME=/nonexistent USER=another DEB_BUILD_OPTIONS='nocheck terse parallel=1' \
		build "$again/log" -n -o "$again" - "$packages_machine"
	dpkg-deb -x "$packages"/libvatalloc_*.deb "$BATS_FILE_TMPDIR/library"
	dpkg-deb -x "$packages"/vatalloc_*.deb "$BATS_FILE_TMPDIR/vatalloc"
}

field() {
	dpkg-deb -f "$packages"/"$1"_*_"$packages_machine".deb "$2"
}

# The files of package $1 with their modes, without what every package has in /usr/share.
contents() {
	cd "$BATS_FILE_TMPDIR/$1"
	find . ! -type d -printf '%M %P\n' | grep -vE ' usr/share/(doc|lintian)/' | LC_ALL=C sort -k 2
}

@test "make deb makes the source, two packages and their debug symbols" {
	run bash -c "cd '$packages' && ls -1 | sed -E 's/_[0-9.]+-[0-9]+/_V-R/; s/_[0-9.]+\./_V./' | grep vatalloc"
	assert_output "libvatalloc-dbgsym_V-R_$packages_machine.deb
libvatalloc_V-R_$packages_machine.deb
vatalloc-dbgsym_V-R_$packages_machine.deb
vatalloc_V-R.debian.tar.xz
vatalloc_V-R.dsc
vatalloc_V-R_$packages_machine.buildinfo
vatalloc_V-R_$packages_machine.changes
vatalloc_V-R_$packages_machine.deb
vatalloc_V.orig.tar.xz"
}

@test "the packages are the same when built elsewhere" {
	local file
	for file in "$packages"/*.deb "$packages"/*.dsc "$packages"/*.tar.xz; do
		cmp "$file" "$again/${file##*/}"
	done
}

@test "libvatalloc holds the library alone, to be preloaded" {
	run contents library
	assert_output "-rw-r--r-- usr/lib/$multiarch/vatalloc/libvatalloc.so"
	assert_equal "$(field libvatalloc Multi-Arch)" same
	# No shlibs, no symbols, no trigger of ldconfig, no script.
	run bash -c "dpkg-deb --ctrl-tarfile '$packages'/libvatalloc_*.deb | tar -t | grep -E '^\./.' | sort"
	assert_output './control
./md5sums'
}

@test "libvatalloc names the jemalloc that is linked in" {
	assert_equal "$(field libvatalloc Built-Using)" \
		"$(dpkg-query -W -f '${source:Package} (= ${source:Version})' libjemalloc-dev)"
	run field libvatalloc Depends
	refute_output --partial jemalloc
	run cat "$BATS_FILE_TMPDIR/library/usr/share/doc/libvatalloc/copyright"
	assert_output --partial 'Redistributions in binary form must reproduce'
}

@test "vatalloc holds what systemd and the administrator use" {
	run contents vatalloc
	assert_success
	assert_line -- '-rw-r--r-- etc/vatalloc.conf'
	assert_line -- '-rwxr-xr-x usr/bin/vatallocctl'
	assert_line -- '-rwxr-xr-x usr/libexec/vatalloc-protect'
	assert_line -- '-rwxr-xr-x usr/libexec/vatalloc-reporter'
	assert_line -- '-rw-r--r-- usr/lib/systemd/catalog/vatalloc.catalog'
	assert_line -- '-rw-r--r-- usr/share/bash-completion/completions/vatallocctl'
	assert_line -- '-rw-r--r-- usr/share/zsh/vendor-completions/_vatallocctl'
	local page
	for page in vatallocctl.1 vatalloc.conf.5 vatalloc.7 vatalloc@.service.8 vatalloc-generator.8 \
		vatalloc-reporter.8; do
		assert_line -- "-rw-r--r-- usr/share/man/man${page##*.}/$page.gz"
	done
	# Nothing else than these, and the files in systemd's directories.
	run bash -c 'grep -vE " (etc/vatalloc.conf|usr/bin/vatallocctl|usr/libexec/vatalloc-(protect|reporter)|usr/share/(man|zsh|bash-completion)/.*|(usr/)?lib/systemd/.*)$"' <<< "$output"
	assert_output ''
	assert [ -d "$BATS_FILE_TMPDIR/vatalloc/etc/vatalloc.conf.d" ]
	run bash -c "dpkg-deb --ctrl-tarfile '$packages'/vatalloc_*.deb | tar -xO ./conffiles"
	assert_output /etc/vatalloc.conf
}

@test "units and generators are where this release's systemd looks" {
	local directory
	cd "$BATS_FILE_TMPDIR/vatalloc"
	for directory in unit generator; do
		export "system_$directory=.$(pkg-config --variable=systemd_system_${directory}_dir systemd)"
		export "user_$directory=.$(pkg-config --variable=systemd_user_${directory}_dir systemd)"
	done
	assert_file_exists "$system_unit/vatalloc@.service"
	assert_file_exists "$system_unit/vatalloc-apply@.service"
	assert_file_exists "$system_unit/vatalloc-reporter.service"
	assert_file_exists "$user_unit/vatalloc@.service"
	assert_file_executable "$system_generator/vatalloc-generator"
	assert [ -L "$user_generator/vatalloc-user-generator" ]
}

@test "vatalloc depends on the library of its own version" {
	run field vatalloc Depends
	assert_output --partial "libvatalloc (= $(field vatalloc Version))"
}

@test "everything is hardened" {
	requires hardening-check
	cd "$BATS_FILE_TMPDIR"
	local file programs=0
	while read -r file; do
		file -b "$file" | grep -q ELF || continue
		programs=$((programs + 1))
		# Debian's C library and jemalloc mark no branch targets, so no file as a whole can.
		# shellcheck disable=SC2046
		run hardening-check --nocfprotection $([[ $file != *.so ]] || echo --nopie) "$file"
		assert_success
		if [ "$packages_machine" = amd64 ]; then
			run bash -c "objdump -d '$file' | grep -c endbr64"
			assert [ "$output" -gt 30 ]
		fi
		run readelf -dlW "$file"
		refute_output --regexp '\((RPATH|RUNPATH|TEXTREL)\)'
		refute_output --regexp ' LOAD .* RWE '
	done < <(find library vatalloc -type f)
	assert_equal "$programs" 4
}

@test "no file names the directory it was built in" {
	cd "$BATS_FILE_TMPDIR"
	run grep -rlF -e "$VATALLOC_SOURCE" -e "$again" library vatalloc
	assert_output ''
}

@test "the tests are run, unless DEB_BUILD_OPTIONS has nocheck" {
	run grep -c '^ok [0-9]* a program starts under the library' "$log"
	assert_output 1
	run grep -cE '^ok |bats ' "$again/log"
	assert_output 0
}

@test "commands are shown, unless DEB_BUILD_OPTIONS has terse" {
	run grep -cE '(^|/|-)gcc .* -c -o build/' "$log"
	assert [ "$output" -gt 20 ]
	run grep -cE '(^|/|-)gcc .* -c -o build/' "$again/log"
	assert_output 0
}

@test "DEB_BUILD_OPTIONS has the number of compilers" {
	run grep -cE '^	make -j2 .* package$' "$log"
	assert_output 1
	run grep -cE '^	make -j' "$again/log"
	assert_output 0
}

@test "all is built with the flags of dpkg-buildflags" {
	run bash -c "grep -E '(^|/|-)gcc .* -c -o build/' '$log' | grep -vE -- '-D_FORTIFY_SOURCE=2.*-ffile-prefix-map=.*-fstack-protector-strong|-ffile-prefix-map=.*-fstack-protector-strong.*-D_FORTIFY_SOURCE=2'"
	assert_output ''
}

@test "no man page has a mistake" {
	requires man
	local page
	while read -r page; do
		run env MANROFFSEQ='' MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$page"
		assert_equal "$stderr" ''
		assert_success
	done < <(find "$BATS_FILE_TMPDIR/vatalloc/usr/share/man" -type f)
}

@test "the source package unpacks to the tree it was made of" {
	dpkg-source --no-check -x "$packages"/*.dsc "$BATS_TEST_TMPDIR/source" > /dev/null
	cd "$VATALLOC_SOURCE"
	[ -e .git ] || skip 'not a git tree'
	# Others may be writing in the tree just now; what git has recorded is there in any case.
	git ls-files -z | LC_ALL=C sort -z > "$BATS_TEST_TMPDIR/wanted"
	# .pc is dpkg-source's own.
	(cd "$BATS_TEST_TMPDIR/source" && find . -path ./.pc -prune -o ! -type d -printf '%P\0') | LC_ALL=C sort -z > "$BATS_TEST_TMPDIR/found"
	cmp "$BATS_TEST_TMPDIR/wanted" "$BATS_TEST_TMPDIR/found"
}
