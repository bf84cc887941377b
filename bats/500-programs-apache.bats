#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# apache2 with threads (mpm event) and with processes (mpm prefork).

load helpers
load programs
load programs/web

setup() {
	requires apache2 curl ab
}

teardown() {
	stop_servers
}

apache_session() {
	local mpm=$1 round path

	port=$(free_port)
	make_site
	configure apache.conf "PORT=$port" "MPM=$mpm" MODULES=/usr/lib/apache2/modules \
		USER=nobody GROUP=nogroup
	start_server apache apache2 -D FOREGROUND -f "$PWD/apache.conf"
	wait_until 10 serves /page.html
	for round in first second; do
		load_with_ab 8000 60 /page.html
		load_with_ab 600 8 /proxied/part20.html -H 'Accept-Encoding: gzip'
		for path in /page.html /large.txt /listing/ /all.shtml /proxied/large.txt; do
			fetch "$path"
			fetch "$path" --compressed
		done
		fetch /large.txt -r 1000-1999
		# New children read the configuration again; the old ones end.
		kill -s USR1 "$(server_pid apache)"
	done
	stop_server apache
}

@test "apache2 with mpm event serves the same under load" {
	compare -m address apache_session event
}

@test "apache2 with mpm prefork serves the same under load" {
	compare -m address apache_session prefork
}
