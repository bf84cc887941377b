#!/usr/bin/env bats
# SPDX-License-Identifier: MIT

load helpers
load programs

setup() {
	requires node
}

@test "node does the same: buffers, JSON, zlib, its thread pool, workers, a child" {
	compare run_program node "$programs/node.js"
}
