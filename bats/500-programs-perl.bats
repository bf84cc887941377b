#!/usr/bin/env bats
# SPDX-License-Identifier: MIT

load helpers
load programs

setup() {
	requires perl
}

@test "perl does the same: hashes, strings, regular expressions, forks, interpreter threads" {
	compare run_program perl "$programs/perl.pl"
}
