#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The built library as a file: what it shows, what it needs, how it is to be loaded.
# bats file_tags=smoke

load helpers

# The names lib/libvatalloc.map makes global; they may be patterns.
declared() {
	sed 's,/\*.*\*/,,; s,#.*,,' "$VATALLOC_SOURCE/lib/libvatalloc.map" | tr -s ' \t{};' '\n' |
		sed -n '/^global:$/,/^local:$/p' | grep -vE '^(global:|local:|)$'
}

exported() {
	nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }'
}

imported() {
	nm -D --undefined-only "$1" | awk '{ sub(/@.*/, "", $NF); print $NF }'
}

# Of the lines of the second file, those the first one does not match; $3 says what it holds.
unmatched() {
	local line pattern
	while read -r line; do
		while read -r pattern; do
			# shellcheck disable=SC2053
			if [[ $3 == patterns && $line == $pattern || $3 == names && $pattern == $line ]]; then
				continue 2
			fi
		done < "$1"
		echo "$line"
	done < <(grep -vxFf "$1" "$2")
}

exports_what_the_map_says() {
	local declared=$BATS_TEST_TMPDIR/declared exported=$BATS_TEST_TMPDIR/exported
	declared > "$declared"
	exported "$1" > "$exported"
	assert [ -s "$declared" ]
	run unmatched "$declared" "$exported" patterns
	assert_equal "exported, not declared: $output" 'exported, not declared: '
	run unmatched "$exported" "$declared" names
	assert_equal "declared, not exported: $output" 'declared, not exported: '
}

shows_nothing_of_jemalloc() {
	run exported "$1"
	assert_success
	refute_line --regexp '^(slot_|je_|mallctl|malloc_(conf|message|stats_print))'
}

needs_only_libc() {
	run bash -c "readelf -dW '$1' | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
		grep -vE '^(libc|ld-linux-.*)\.so\.[0-9]$'"
	assert_output ''
	run imported "$1"
	refute_line --regexp '^(_Z|__cxa_(throw|allocate|begin))'
}

has_static_tls_only() {
	run imported "$1"
	refute_line __tls_get_addr
	run readelf -rW "$1"
	assert_success
	refute_output --regexp 'DTPMOD|TLSDESC'
}

is_hardened() {
	run readelf -dlW "$1"
	assert_success
	assert_line --regexp '\(SONAME\).*\[libvatalloc\.so\]'
	assert_line --regexp '\(FLAGS_1\).* NOW'
	assert_line --regexp '\(FLAGS_1\).* NOOPEN'
	assert_line --regexp '^ *GNU_RELRO '
	assert_line --regexp '^ *GNU_STACK .* RW '
	refute_output --regexp '\((TEXTREL|RPATH|RUNPATH)\)'
	refute_line --regexp '^ *LOAD .* RWE '
}

# objdump of a compiler's own kind: $2 is the prefix of its tools.
calloc_does_not_call_itself() {
	local object objdump=${2:-}objdump
	for object in "$(dirname "$1")"/*.o; do
		if "$objdump" -t "$object" | grep -qE '^[0-9a-f]+ g +F \.text.*\bcalloc$'; then
			run "$objdump" -dr --no-show-raw-insn --disassemble=calloc "$object"
			assert_success
			assert_output --partial '<calloc>:'
			refute_output --regexp '(R_[A-Z0-9_]+|call|jmp|bl?)[[:space:]]+.*\bcalloc\b[^+]*$'
			return
		fi
	done
	fail 'no object defines calloc'
}

@test "the library exports what its map declares and nothing else" {
	exports_what_the_map_says "$VATALLOC_LIB"
}

@test "the library shows nothing of jemalloc" {
	shows_nothing_of_jemalloc "$VATALLOC_LIB"
}

@test "the library needs libc only" {
	needs_only_libc "$VATALLOC_LIB"
}

@test "the library's thread-local variables are static" {
	has_static_tls_only "$VATALLOC_LIB"
}

@test "the library is bound at start, read-only after it, and refuses dlopen" {
	is_hardened "$VATALLOC_LIB"
}

@test "calloc is not compiled into a call of calloc" {
	calloc_does_not_call_itself "$VATALLOC_LIB"
}

@test "the arm64 library exports what its map declares and nothing else" {
	requires qemu
	exports_what_the_map_says "$VATALLOC_ARM64_LIB"
}

@test "the arm64 library shows nothing of jemalloc" {
	requires qemu
	shows_nothing_of_jemalloc "$VATALLOC_ARM64_LIB"
}

@test "the arm64 library needs libc only" {
	requires qemu
	needs_only_libc "$VATALLOC_ARM64_LIB"
}

@test "the arm64 library's thread-local variables are static" {
	requires qemu
	has_static_tls_only "$VATALLOC_ARM64_LIB"
}

@test "the arm64 library is bound at start, read-only after it, and refuses dlopen" {
	requires qemu
	is_hardened "$VATALLOC_ARM64_LIB"
}

@test "the arm64 calloc is not compiled into a call of calloc" {
	requires qemu
	calloc_does_not_call_itself "$VATALLOC_ARM64_LIB" aarch64-linux-gnu-
}

@test "the library runs on any processor of its architecture" {
	[ "$(uname -m)" = x86_64 ] || skip 'not x86-64'
	run bash -c "objdump -d --no-show-raw-insn '$VATALLOC_LIB' | grep -cE '%[yz]mm'"
	assert_output 0
}

@test "a program starts under the library and nothing is said" {
	run_with_lib '' /bin/true
	assert_success
	assert_equal "$output$stderr" ''
}

@test "an arm64 program starts under the library and nothing is said" {
	requires qemu
	run_mte auto perl -e 1
	assert_success
	assert_equal "$output$stderr" ''
}

@test "dlopen of the library is refused" {
	requires python3
	run python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$VATALLOC_LIB"
	assert_failure
	assert_output --partial 'cannot be dlopen()ed'
}

@test "flags of the environment are added to the library's own" {
	cd "$VATALLOC_SOURCE"
	run env -u CC CFLAGS=-Dmine_c CPPFLAGS=-Dmine_cpp LDFLAGS=-Wl,-O2 make -B -n V=1 lib
	assert_success
	assert_line --regexp ' -fPIC .*-ftls-model=initial-exec .* -Dmine_c '
	assert_line --regexp ' -Dmine_cpp '
	assert_line --regexp ' -Wl,-z,relro,.* -Wl,-O2 '
}

@test "make install puts one readable file in place" {
	cd "$VATALLOC_SOURCE"
	run make install INSTALL= DESTDIR="$BATS_TEST_TMPDIR/root"
	assert_success
	run bash -c "cd '$BATS_TEST_TMPDIR/root' && find . -type f -printf '%m %p\n'"
	assert_output "644 ./usr/lib/$(gcc -print-multiarch)/vatalloc/libvatalloc.so"
}
