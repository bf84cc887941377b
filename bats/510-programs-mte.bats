#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The arm64 builds of programs under QEMU with MTE, every bad access trapping at once. A process
# there cannot run another program, so each test is of one that does its work alone.

load helpers
load programs
load programs/web

setup() {
	requires qemu
	machine=arm64
	export WORK_PERCENT=10 # of what the same scripts do on a real processor
}

teardown() {
	stop_servers
}

# Without what git would run as a process of its own.
git() {
	run_program git -c gc.auto=0 -c maintenance.auto=false -c core.commitGraph=false \
		-c core.multiPackIndex=false "$@"
}

git_session() {
	local i pack

	export GIT_CONFIG_NOSYSTEM=1 HOME=$PWD
	export GIT_AUTHOR_NAME=Author GIT_AUTHOR_EMAIL=author@example.org
	export GIT_COMMITTER_NAME=Committer GIT_COMMITTER_EMAIL=committer@example.org
	git init -q -b main repository
	cd repository
	for i in 1 2 3; do
		for name in one two three four; do
			seq "$i" $((i * 300)) > "$name"
		done
		git add .
		GIT_AUTHOR_DATE="@$((1700000000 + i)) +0000" GIT_COMMITTER_DATE="@$((1700000000 + i)) +0000" \
			git commit -q -m "Change $i"
	done
	git log -p --stat | sha256sum
	git log --format='%H %s'
	git blame four | sha256sum
	git rev-list --objects --all | git pack-objects -q --threads=2 --depth=20 all > name
	git index-pack "all-$(< name).pack"
	git index-pack --verify-stat "all-$(< name).pack" | tail -n 3
	git fsck --full --strict
}

sqlite3_session() {
	sed 's/60000/5000/' "$programs/sqlite3.sql" > script.sql
	run_program sqlite3 -batch test.db < script.sql | sha256sum
}

nginx_session() {
	local path

	port=$(free_port)
	make_site
	configure nginx.conf "PORT=$port"
	start_server nginx nginx -p "$PWD" -c "$PWD/nginx.conf" -e "$PWD/error.log" \
		-g 'master_process off;'
	wait_until 30 serves /page.html
	load_with_ab 2000 20 /page.html
	for path in /page.html /large.txt /listing/ /included/all.shtml /proxied/large.txt \
		/cached/part7.html /cached/part7.html; do
		fetch "$path"
		fetch "$path" --compressed
	done
	stop_server nginx QUIT
}

@test "MTE sync: python3 does the same" {
	compare -m sync run_program python3 "$programs/python.py" json_round_trips dict_churn \
		growing_buffers threads short_threads c_memory regular_expressions
}

@test "MTE sync: perl does the same" {
	compare -m sync run_program perl "$programs/perl.pl"
}

@test "MTE sync: git commits, packs, verifies and shows the same history" {
	compare -m sync git_session
}

@test "MTE sync: sqlite3 makes, queries, changes and dumps the same database" {
	compare -m sync sqlite3_session
}

@test "MTE sync: nginx serves the same under load" {
	requires curl ab
	compare -m sync nginx_session
}
