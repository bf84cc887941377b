#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Debian's own nginx, unmodified, under the library.

load helpers
load programs
load programs/web

setup() {
	requires nginx curl ab wrk
}

teardown() {
	stop_servers
}

start_nginx() {
	port=$(free_port)
	make_site
	configure nginx.conf "PORT=$port"
	start_server nginx nginx -p "$PWD" -c "$PWD/nginx.conf" -e "$PWD/error.log"
	wait_until 10 serves /page.html
}

ab_session() {
	start_nginx
	load_with_ab 100000 100 /page.html
	stop_server nginx QUIT
}

wrk_session() {
	start_nginx
	load_with_wrk 3 /page.html
	load_with_wrk 3 /proxied/part50.html
	stop_server nginx QUIT
}

pages_session() {
	local round path

	start_nginx
	for round in first second; do
		for path in /page.html /large.txt /listing/ /included/all.shtml /proxied/large.txt \
			/cached/part7.html /cached/part7.html; do
			fetch "$path"
			fetch "$path" --compressed
		done
		fetch /large.txt -r 1000-2000,5000-5999,100000-
		fetch "/page.html?$(printf 'long%.0s' {1..1500})"
		for path in site/part*.html; do
			fetch "/proxied/${path#site/}" --compressed
		done
		# New workers read the configuration again; the old ones end.
		kill -HUP "$(server_pid nginx)"
	done
	stop_server nginx QUIT
}

@test "nginx answers all of ab's 100,000 requests at 100 connections" {
	compare -m address ab_session
}

@test "nginx answers wrk without a socket error or a bad status" {
	compare -m address wrk_session
}

@test "nginx serves the same files, listings, includes, compressed and proxied pages" {
	compare pages_session
}
