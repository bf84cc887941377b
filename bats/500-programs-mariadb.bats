#!/usr/bin/env bats
# SPDX-License-Identifier: MIT

load helpers
load programs

setup() {
	requires mariadbd mariadb mariadb-install-db mariadb-slap
}

teardown() {
	stop_servers
}

start_mariadb() {
	local options=(--no-defaults --datadir="$PWD/data" --user="$(id -un)"
		--innodb-buffer-pool-size=32M --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=0)

	run_program mariadb-install-db "${options[@]}" --auth-root-authentication-method=normal \
		--skip-test-db > install.log 2>&1
	start_server mariadb mariadbd "${options[@]}" --socket="$PWD/sock" --skip-networking \
		--pid-file="$PWD/pid" --max-heap-table-size=1M
	wait_until 30 query 'SELECT 1'
}

client() {
	local program=$1
	shift

	run_program "$program" --no-defaults --socket="$PWD/sock" --user=root "$@"
}

query() {
	client mariadb -BN -e "$1"
}

slap_session() {
	start_mariadb
	client mariadb-slap --auto-generate-sql --auto-generate-sql-load-type=mixed \
		--auto-generate-sql-add-autoincrement --auto-generate-sql-secondary-indexes=2 \
		--number-char-cols=4 --concurrency=20 --number-of-queries=6000 --no-drop > report
	grep -E 'Number of clients|Average number of queries' report
	query 'SELECT COUNT(*), COUNT(DISTINCT id) FROM mysqlslap.t1; CHECK TABLE mysqlslap.t1'
	stop_server mariadb
}

queries_session() {
	start_mariadb
	query 'CREATE DATABASE work'
	client mariadb -BN work < "$programs/mariadb.sql"
	client mariadb-dump --skip-dump-date work | sha256sum
	stop_server mariadb
}

@test "mariadbd takes mariadb-slap's load" {
	compare -m address slap_session
}

@test "mariadbd answers the same to sorts, joins, JSON and full text search" {
	compare queries_session
}
