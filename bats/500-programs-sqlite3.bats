#!/usr/bin/env bats
# SPDX-License-Identifier: MIT

load helpers
load programs

setup() {
	requires sqlite3
}

sqlite3_session() {
	run_program sqlite3 -batch test.db < "$programs/sqlite3.sql" > dump
	tail -n 3 dump
	grep -vc '^INSERT' dump
	sha256sum < dump
	# What was dumped goes into a second database, which must be dumped the same.
	sed -n '/^PRAGMA foreign_keys/,$p' dump > script
	run_program sqlite3 -batch second.db < script
	run_program sqlite3 -batch second.db .dump | cmp - script
	run_program sqlite3 -batch second.db 'PRAGMA integrity_check'
}

@test "sqlite3 makes, queries, changes, dumps and reloads the same database" {
	compare sqlite3_session
}
