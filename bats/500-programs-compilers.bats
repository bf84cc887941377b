#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# gcc and g++ compile under the library to the same bytes, and what they made runs under it.

load helpers
load programs

build_and_run() {
	local compiler=$1 source=$2
	shift 2

	cp "$programs/$source" .
	run_program "$compiler" "$@" -o program "$source"
	sha256sum program
	run_program ./program
}

@test "gcc makes the same program, and that runs the same" {
	requires gcc
	compare build_and_run gcc words.c -O2 -g -flto -ffat-lto-objects -frandom-seed=1
}

@test "g++ makes the same program, and that runs the same" {
	requires g++
	compare build_and_run g++ shelves.cc -std=c++17 -O1 -g
}
