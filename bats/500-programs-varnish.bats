#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# varnishd is linked with jemalloc and keeps what it caches in the heap.

load helpers
load programs
load programs/web

setup() {
	requires varnishd varnishadm nginx curl ab gcc
}

teardown() {
	stop_servers
}

varnishadm() {
	local answer status=0

	# What else it reports may end in an empty line or not, as its processes take their time.
	answer=$(command varnishadm -n "$PWD/varnish" "$@") || status=$?
	sed '/^$/d' <<< "$answer"
	return $status
}

# A cache much smaller than what is asked of it: objects come and go all the time.
varnish_session() {
	local backend path round

	make_site
	backend=$(free_port)
	configure nginx.conf "PORT=$backend"
	start_server nginx nginx -p "$PWD" -c "$PWD/nginx.conf" -e "$PWD/error.log"
	port=$(free_port)
	configure varnish.vcl "BACKEND=$backend"
	start_server varnish varnishd -F -j none -n "$PWD/varnish" -f "$PWD/varnish.vcl" \
		-a "127.0.0.1:$port" -s malloc,1M -t 2 -p thread_pools=1 -p thread_pool_min=20
	wait_until 20 serves /page.html
	load_with_ab 20000 50 /page.html
	for round in 1 2 3; do
		for path in site/part*.html; do
			fetch "/${path#site/}?round=$round"
		done
		fetch /large.txt
		fetch /included/all.shtml --compressed
		varnishadm ban "req.url ~ part[1-4]"
		varnishadm vcl.load "round$round" "$PWD/varnish.vcl"
		varnishadm vcl.use "round$round"
	done
	varnishadm vcl.list | grep -c round
	load_with_ab 5000 20 /part50.html -H 'Accept-Encoding: gzip'
	# The manager starts a child that died anew: there must be none.
	! varnishadm panic.show > panic 2>&1
	grep -o 'Child has not panicked' panic
	stop_server varnish
	stop_server nginx QUIT
}

@test "varnishd serves, evicts, bans and compiles the same under load" {
	compare -m address varnish_session
}
