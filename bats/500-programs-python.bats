#!/usr/bin/env bats
# SPDX-License-Identifier: MIT

load helpers
load programs

setup() {
	requires python3
}

@test "python3 does the same with its own small-object allocator" {
	compare run_program python3 "$programs/python.py"
}

@test "python3 does the same with every object from malloc" {
	compare run_program env PYTHONMALLOC=malloc python3 "$programs/python.py"
}
