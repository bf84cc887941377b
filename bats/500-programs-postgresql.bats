#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# PostgreSQL refuses to run as root, so the server gets another user where the tests are run by root.

load helpers
load programs

setup() {
	PATH=$(printf '%s:' /usr/lib/postgresql/*/bin)$PATH
	requires initdb postgres pgbench psql
}

teardown() {
	stop_servers
}

own_user() {
	if [ "$(id -u)" -eq 0 ]; then
		chown -R nobody .
		as_user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
	else
		as_user=()
	fi
}

start_postgres() {
	own_user
	run_program "${as_user[@]}" initdb -D data -U postgres -A trust --no-sync --locale=C \
		--encoding=UTF8 > initdb.log 2>&1
	start_server postgres "${as_user[@]}" postgres -D "$PWD/data" -k "$PWD" -c listen_addresses= \
		-c fsync=off -c shared_buffers=32MB -c work_mem=1MB -c max_parallel_workers=4
	wait_until 30 query 'SELECT 1'
}

query() {
	run_program psql -X -q -v ON_ERROR_STOP=1 -h "$PWD" -U postgres -d postgres -At -c "$1"
}

# Random transactions from a given seed: their order differs from run to run, their sums do not.
pgbench_session() {
	start_postgres
	run_program pgbench -h "$PWD" -U postgres -i -q -s 2 postgres 2> pgbench.log
	run_program pgbench -h "$PWD" -U postgres -n -c 8 -j 2 -t 400 -M prepared --random-seed=20 \
		postgres > report 2>> pgbench.log
	grep -E 'transactions actually|failed' report
	query 'SELECT sum(abalance) FROM pgbench_accounts'
	query 'SELECT sum(bbalance) FROM pgbench_branches'
	query 'SELECT sum(tbalance) FROM pgbench_tellers'
	query 'SELECT count(*), sum(delta) FROM pgbench_history'
	stop_server postgres INT
}

queries_session() {
	start_postgres
	run_program psql -X -q -v ON_ERROR_STOP=1 -h "$PWD" -U postgres -At postgres \
		< "$programs/postgresql.sql"
	run_program pg_dump -h "$PWD" -U postgres --inserts -t item postgres > dump.sql
	grep '^INSERT' dump.sql | sha256sum
	stop_server postgres INT
}

@test "postgres takes pgbench's transactions to the same balances" {
	compare -m address pgbench_session
}

@test "postgres answers the same to sorts, joins, parallel plans, JSON and full text search" {
	compare queries_session
}
