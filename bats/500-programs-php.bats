#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# PHP's own allocator takes large chunks; without it every string and array is malloc's. Its
# extensions are loaded with RTLD_DEEPBIND.

load helpers
load programs
load programs/web

teardown() {
	stop_servers
}

fpm_session() {
	local fpm=$1

	port=$(free_port)
	make_site
	configure nginx.conf "PORT=$port"
	configure php-fpm.conf USER=nobody GROUP=nogroup
	cp "$programs/php.php" site/
	start_server fpm "$fpm" --fpm-config "$PWD/php-fpm.conf"
	start_server nginx nginx -p "$PWD" -c "$PWD/nginx.conf" -e "$PWD/error.log"
	wait_until 10 serves /page.php
	fetch /page.php
	load_with_ab 4000 20 /page.php
	fetch /page.php
	stop_server nginx QUIT
	stop_server fpm QUIT
}

@test "php does the same with its own allocator" {
	requires php
	compare run_program php "$programs/php.php"
}

@test "php does the same with every object from malloc" {
	requires php
	compare run_program env USE_ZEND_ALLOC=0 php "$programs/php.php"
}

@test "php-fpm answers the same through nginx, under load" {
	local fpm

	requires nginx curl ab
	fpm=$(compgen -c php-fpm | sort | tail -n 1)
	requires "${fpm:-php-fpm}"
	compare fpm_session "$fpm"
}
