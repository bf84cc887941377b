#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Debian's own arm64 programs do the same under sync and async checks as without the library.

load ../helpers
load vm

setup_file() {
	VM_IMAGE=full
	guest_up
	tar -cf "$BATS_FILE_TMPDIR/scripts.tar" -C "$BATS_TEST_DIRNAME/../programs" . -C ../vm/programs luajit.lua
	guest 'mkdir /opt/scripts
		tar -C /opt/scripts -x
		chmod -R a+rX /opt
		# Nobody may have complained, and nobody may have crashed, when all is over.
		journalctl --rotate -q' "$BATS_FILE_TMPDIR/scripts.tar"
}

teardown_file() {
	guest_down
}

# same SESSION [MODE...]: the shell script SESSION prints the same in each mode (sync and async unless
# told) as without the library, and neither the library nor the kernel has anything to say of it.
same() {
	local session=$1 mode
	shift
	VM_LIMIT=900 run guest "library=\$(echo /usr/lib/*/vatalloc/libvatalloc.so)
		export WORK_PERCENT=5 LC_ALL=C.UTF-8
		cat > /run/session <<- 'END'
			set -eu
			cd \"\$(mktemp -d)\"
			$session
		END
		for mode in off ${*:-sync async}; do
			variables=()
			[ \$mode = off ] || variables=(LD_PRELOAD=\$library VATALLOC_OPTIONS=mode=\$mode)
			env \"\${variables[@]}\" bash /run/session > /run/\$mode.out 2> /run/\$mode.err ||
				{ echo \"\$mode: status \$?\"; tail -n 5 /run/\$mode.err /run/\$mode.out; }
			sha256sum < /run/\$mode.out
			grep vatalloc: /run/\$mode.err || :
		done
		wc -l < /run/off.out"
	assert_success
	assert [ "${lines[-1]}" -gt 0 ]
	for mode in "${lines[@]:0:$((${#lines[@]} - 1))}"; do
		assert_equal "$mode" "${lines[0]}"
	done
}

@test "python3" {
	same 'python3 /opt/scripts/python.py'
}

@test "perl" {
	same 'perl /opt/scripts/perl.pl'
}

@test "sqlite3" {
	same 'sed s/60000/3000/ /opt/scripts/sqlite3.sql | sqlite3 -batch test.db'
}

@test "git" {
	same 'export HOME=$PWD GIT_CONFIG_NOSYSTEM=1
		export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_AUTHOR_DATE="@1700000000 +0000"
		export GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org GIT_COMMITTER_DATE="@1700000000 +0000"
		git init -q -b main repository
		cd repository
		for i in 1 2 3; do
			seq $i $((i * 300)) > numbers
			cp /opt/scripts/* .
			git add .
			git commit -q -m "Change $i"
		done
		git log -p --stat | sha256sum
		git blame numbers | sha256sum
		git repack -adq
		git fsck --full --strict
		git clone -q . ../other
		git -C ../other log --format="%H %s"'
}

@test "gcc compiles a program that does its work" {
	same 'gcc -O2 -o words /opt/scripts/words.c
		sha256sum < words
		./words < /opt/scripts/python.py | sha256sum'
}

@test "PostgreSQL makes a cluster and answers queries" {
	same 'chown nobody .
		as_user="setpriv --reuid=nobody --regid=nogroup --clear-groups"
		PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
		$as_user initdb -D data -U postgres -A trust --no-sync --locale=C --encoding=UTF8 > /dev/null
		$as_user postgres -D data -k $PWD -c listen_addresses= -c fsync=off -c shared_buffers=16MB > log 2>&1 &
		until psql -X -h $PWD -U postgres -c "" > /dev/null 2>&1; do sleep .2; done
		psql -X -q -At -h $PWD -U postgres <<- "SQL"
			CREATE TABLE item AS SELECT n, md5(n::text) AS name, n % 97 AS class FROM generate_series(1, 20000) n;
			CREATE INDEX ON item (name);
			SELECT class, count(*), max(name) FROM item GROUP BY class ORDER BY class;
			SELECT md5(string_agg(name, chr(44) ORDER BY name)) FROM item;
			SELECT a.n, b.n FROM item a JOIN item b ON a.name = b.name AND a.class = 5 ORDER BY 1 LIMIT 50;
		SQL
		kill -INT $!
		wait'
}

@test "redis serves a benchmark" {
	same 'redis-server --port 0 --unixsocket $PWD/s --dir $PWD --save "" > log 2>&1 &
		until redis-cli -s s ping > /dev/null 2>&1; do sleep .2; done
		redis-benchmark -s s -q -n 1000 -c 10 -P 4 -d 100 -r 500 --csv -t set,lpush,sadd,hset,zadd > /dev/null
		redis-cli -s s --raw flushall
		redis-cli -s s --raw eval "for i = 1, 3000 do
				local n = tostring(i % 400)
				redis.call(\"set\", \"s\" .. n, string.rep(n, i % 200))
				redis.call(\"hset\", \"h\" .. i % 30, \"f\" .. i % 70, string.rep(\"v\", i % 90))
				redis.call(\"rpush\", \"l\" .. i % 10, n, n .. n)
			end
			return redis.call(\"dbsize\")" 0
		redis-cli -s s --raw lrange l5 0 -1 | sha256sum
		redis-cli -s s shutdown
		wait'
}

# They keep data of their own in the upper bits of pointers.
@test "LuaJIT" {
	same 'luajit /opt/scripts/luajit.lua'
}

@test "C modules hand LuaJIT tagged pointers" {
	same '/opt/programs/light-userdata | grep -x "20000 good, 0 bad"'
}

@test "node" {
	same 'sed -E "s/(bufferChurn\(.*, )[0-9]+/\17000/; s/i < 30000/i < 3000/" /opt/scripts/node.js > node.js
		node node.js'
}
