#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Programs that lock all their memory, present and future: mlockall must not make the library's
# reserved address space resident, and the heap must go on growing under it.

load helpers
load programs

setup() {
	requires root
}

teardown() {
	stop_servers
}

# kilobytes NAME FIELD: one value of a server's /proc/PID/status.
kilobytes() {
	awk -v field="$2:" '$1 == field { print $2 }' "/proc/$(server_pid "$1")/status"
}

check_locked() {
	local locked resident

	locked=$(kilobytes "$1" VmLck)
	resident=$(kilobytes "$1" VmRSS)
	[ "$locked" -gt 1000 ] || fail "$1 has only $locked kB locked"
	[ "$resident" -lt "$2" ] || fail "$1 has $resident kB resident"
}

chronyc() {
	command chronyc -h "$PWD/run/chronyd.sock" -n "$@"
}

# A server of its own clock that asks itself over and over, and never touches that clock (-x).
chronyd_session() {
	local port i

	port=$(free_port)
	mkdir -m 700 run
	configure chrony.conf "PORT=$port"
	start_server chronyd chronyd -d -x -m -u root -f "$PWD/chrony.conf"
	wait_until 20 chronyc tracking
	for i in {1..200}; do
		chronyc sources > report
		chronyc add server "127.0.1.$i" port "$port" > report
	done
	chronyc -c activity
	# Without the right to raise its limit, chronyd runs on unlocked.
	grep -q 'setrlimit() failed' chronyd.log || check_locked chronyd 300000
	stop_server chronyd
}

# Send what stdin has and print what comes back.
tell_memcached() {
	local connection

	exec {connection}<> "/dev/tcp/127.0.0.1/$port"
	cat - <(printf 'quit\r\n') >&"$connection"
	timeout 30 cat <&"$connection"
	exec {connection}>&-
}

# Far more values than fit: most of them push out older ones.
memcached_session() {
	local i

	port=$(free_port)
	start_server memcached memcached -k -u root -l 127.0.0.1 -p "$port" -U 0 -m 16 -t 4
	wait_until 10 port_open "$port"
	for ((i = 0; i < 24000; i++)); do
		printf 'set key%d 0 0 %d noreply\r\n%0*d\r\n' $i $((i % 2000 + 9)) $((i % 2000 + 9)) $i
	done | tell_memcached
	printf 'get key%d\r\n' {23200..23999..2} | tell_memcached | tee values | sha256sum
	grep -c '^VALUE' values
	check_locked memcached 300000
	printf 'flush_all\r\nget key23999\r\n' | tell_memcached
	stop_server memcached
}

@test "python3 does the same with all its memory locked" {
	requires python3
	compare run_program python3 "$programs/locked.py"
}

@test "chronyd works the same with all its memory locked" {
	requires chronyd chronyc
	compare chronyd_session
}

@test "memcached keeps the same values with all its memory locked" {
	requires memcached
	compare memcached_session
}
