#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Shells and the small tools they run, each of which is a process of its own.

load helpers
load programs

@test "bash runs a long script to the same end" {
	compare run_program bash "$programs/bash.sh"
}

@test "dash, find, sort, awk, sed, tar, xz and gzip move a tree to the same place" {
	requires dash xz
	compare run_program dash "$programs/tools.sh"
}
