#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# redis-server is linked with jemalloc: it asks for mallctl, malloc_usable_size and nallocx, and
# writes up to the usable size of what it is given.

load helpers
load programs

setup() {
	requires redis-server redis-cli redis-benchmark
}

teardown() {
	stop_servers
}

start_redis() {
	start_server redis redis-server --port 0 --unixsocket "$PWD/redis.sock" --dir "$PWD" \
		--save '' --enable-debug-command local --appendonly "${1:-no}"
	wait_until 20 ready
}

redis() {
	redis-cli -s redis.sock "$@"
}

ready() {
	[ "$(redis ping)" = PONG ]
}

no_rewrite_runs() {
	redis info persistence | tr -d '\r' | grep -qx 'aof_rewrite_in_progress:0'
}

# Values of every type and many sizes, many of them overwritten, grown, cut and deleted again.
fill() {
	redis --raw eval "
		for i = 1, 30000 do
			local n = tostring(i % 4000)
			redis.call('set', 's' .. n, string.rep(n, i % 200))
			redis.call('append', 'a' .. i % 50, n)
			redis.call('hset', 'h' .. i % 300, 'f' .. i % 700, string.rep('v', i % 90))
			redis.call('rpush', 'l' .. i % 100, n, n .. n)
			redis.call('zadd', 'z' .. i % 60, i % 977, 'm' .. i % 1900)
			redis.call('sadd', 't' .. i % 40, i % 811)
			redis.call('xadd', 'x' .. i % 10, i .. '-1', 'field', n)
			if i % 3 == 0 then redis.call('lpop', 'l' .. i % 70) end
			if i % 5 == 0 then redis.call('del', 's' .. (i * 7) % 4000) end
			if i % 701 == 0 then redis.call('del', 'h' .. i % 300, 'z' .. i % 60) end
		end
		return redis.call('dbsize')" 0
}

benchmark_session() {
	start_redis
	redis-benchmark -s redis.sock -q -n 60000 -c 50 -P 4 -d 100 -r 20000 --csv \
		-t set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset > benchmark 2>&1
	! grep -i error benchmark || fail 'redis-benchmark had errors'
	cut -d, -f1 benchmark
	redis flushall
	stop_server redis
}

data_session() {
	start_redis yes
	fill
	redis debug digest
	redis --raw get a7 | sha256sum
	redis --raw lrange l5 0 -1 | sha256sum
	redis --raw zrange z9 0 -1 withscores | sha256sum
	redis save
	# A child writes the log anew while this process goes on changing what it shares with it.
	redis bgrewriteaof > rewrite.log
	redis --raw eval "for i = 1, 4000 do redis.call('set', 's' .. i, 'new' .. i) end return 1" 0
	wait_until 20 no_rewrite_runs
	redis debug digest
	redis debug reload
	redis debug loadaof
	redis debug digest
	redis memory purge
	redis flushall async
	fill
	redis debug digest
	stop_server redis
}

# Debian's build may refuse it: then it must refuse it all the same. If it does not, it moves every
# value while they are used.
defragmentation_session() {
	start_redis
	redis config set activedefrag yes 2>&1
	redis config set active-defrag-ignore-bytes 1
	redis config set active-defrag-threshold-lower 0
	redis config set active-defrag-cycle-min 50
	fill
	redis config get activedefrag
	for round in 1 2 3; do
		fill
	done
	sleep 2
	redis debug digest
	redis --raw lrange l5 0 -1 | sha256sum
	stop_server redis
}

@test "redis-server takes redis-benchmark's load without an error" {
	compare -m address benchmark_session
}

@test "redis-server keeps, saves, rewrites and reloads the same data" {
	compare data_session
}

@test "redis-server answers the same to active defragmentation and keeps the same data" {
	compare defragmentation_session
}
