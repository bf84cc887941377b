#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The bench is honest: what it says it measured, it measured. No test looks at how long it took.

load helpers

setup() {
	requires python3 nm
	[ -e "$(/sbin/ldconfig -p | sed -n 's/.*libjemalloc\.so\.2 .*=> //p' | head -n 1)" ] ||
		skip 'no libjemalloc2'
	cd "$VATALLOC_SOURCE"
	out=$BATS_TEST_TMPDIR/out
	tools=$VATALLOC_SOURCE/build/bench/tools
}

# What is not installed is left out: tests install nothing.
bench() {
	run --separate-stderr env -u MAKEFLAGS -u VATALLOC_LIB \
		make --no-print-directory bench DEPS_BENCH= BENCH_OUTPUT="$out" "$@"
}

# A heap of our own that shows who uses it: libc's, and the maps of each process that has it.
make_peer() {
	cat > "$BATS_TEST_TMPDIR/peer.c" <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		void *__libc_malloc(size_t size);
		void __libc_free(void *p);
		void *malloc(size_t size) { return __libc_malloc(size); }
		void free(void *p) { __libc_free(p); }
		__attribute__((constructor)) static void start(void)
		{
			const char *path = getenv("PEER_MAPS");
			FILE *in = fopen("/proc/self/maps", "r"), *out = path ? fopen(path, "a") : NULL;
			for (int c; in && out && (c = getc(in)) != EOF;)
				putc(c, out);
			if (out)
				fclose(out);
			if (in)
				fclose(in);
		}
	END
	gcc -shared -fPIC -fno-builtin -o "$BATS_TEST_TMPDIR/peer.so" "$BATS_TEST_TMPDIR/peer.c"
}

# column NAME [ROW-PATTERN]: of the CSV file of work `start`.
column() {
	python3 -c '
import csv, re, sys
for row in csv.DictReader(open(sys.argv[1])):
    if re.search(sys.argv[3], ",".join(row.values())):
        print(row[sys.argv[2]])' "$out/start.csv" "$1" "${2-}"
}

@test "make bench measures each allocator once a round, and each was loaded" {
	make_peer
	bench BENCH=start RUNS=2 QUICK=1 \
		PEERS="peer=$BATS_TEST_TMPDIR/peer.so,PEER_MAPS=$BATS_TEST_TMPDIR/maps"
	assert_success
	assert_line --regexp '^\| wall / glibc +\| jemalloc .*\| address +\| count +\| peer '
	assert_line --regexp '^\| start of /bin/true, ms more +\| address .*(holds|FAILS) \|$'

	for allocator in glibc jemalloc address count peer; do
		assert_equal "$allocator: $(column round ",$allocator,[a-z]+,20" | xargs)" "$allocator: 0 1"
	done
	# The rounds begin with another allocator each.
	assert_equal "$(column loaded)" "$(column processes)"
	assert [ "$(column wall | awk '$1 <= 0' | wc -l)" -eq 0 ]
	# What the peer itself saw: it was in our program, under its own name.
	run grep -c "$tools/micro\$" "$BATS_TEST_TMPDIR/maps"
	assert [ "$output" -ge 2 ]
	assert_file_contains "$BATS_TEST_TMPDIR/maps" '/peer/peer\.so$'
}

@test "a peer that the dynamic linker does not load is not measured" {
	head -c 64 "$VATALLOC_LIB" > "$BATS_TEST_TMPDIR/broken.so"
	bench BENCH=start RUNS=1 QUICK=1 ALLOCATORS=broken PEERS="broken=$BATS_TEST_TMPDIR/broken.so"
	assert_failure
	assert_equal "$(grep -c "bench: start: malloc of .*/micro is not broken's" <<< "$stderr")" 1
	assert_not_exists "$out/start.csv"
}

@test "a peer that loads but whose malloc is not used is not measured" {
	echo 'int nothing;' | gcc -shared -x c -o "$BATS_TEST_TMPDIR/idle.so" -
	bench BENCH=start RUNS=1 QUICK=1 ALLOCATORS=idle PEERS="idle=$BATS_TEST_TMPDIR/idle.so"
	assert_failure
	assert_equal "$(grep -c "malloc of .*/micro is not idle's" <<< "$stderr")" 1
}

@test "what make bench cannot understand is named" {
	local pair
	for pair in \
		"BENCH=nonsense|BENCH: no 'nonsense'; BENCH=list lists what there is" \
		"PEERS=old|PEERS: 'old' is not NAME=/path/library.so" \
		"PEERS=old=/nonexistent.so|PEERS: old: there is no file '/nonexistent.so'" \
		"PEERS=old=Makefile|PEERS: old: 'Makefile' is not a library" \
		"PEERS=old=$VATALLOC_LIB,count|PEERS: old: 'count' is not VARIABLE=VALUE" \
		"PEERS=glibc=$VATALLOC_LIB,VATALLOC_OPTIONS=mode=off|PEERS: there is another 'glibc'" \
		"ALLOCATORS=dlmalloc|ALLOCATORS: no 'dlmalloc'; there are: glibc jemalloc" \
		"RUNS=many|RUNS: 'many' is not a number of rounds" \
		"NICE=much|NICE: 'much' is not a number" \
		"VATALLOC_LIB=/nonexistent.so|VATALLOC_LIB: there is no file '/nonexistent.so'"; do
		bench RUNS=1 BENCH=start "${pair%%|*}"
		assert_failure
		assert_regex "$stderr" "^bench: ${pair#*|}"
		assert_equal "$(grep -c Traceback <<< "$stderr")" 0
	done
	bench BENCH=list
	assert_success
	assert_line 'programs: nginx redis pgbench sqlite python perl gcc git'
}

@test "a vatalloc as a peer is measured in both modes, or in the one it is told" {
	bench BENCH=start RUNS=1 QUICK=1 NICE=5 ALLOCATORS='old-address old-count one' \
		PEERS="old=$VATALLOC_LIB one=$VATALLOC_LIB,VATALLOC_OPTIONS=mode=count"
	assert_success
	assert_equal "$(column role ',old-address,')" address
	assert_equal "$(column role ',old-count,')" count
	assert_equal "$(column role ',one,')" count
}

@test "measure sees the memory, the mappings and the end of what it runs" {
	measure=$tools/measure
	make bench-tools
	run "$measure" -o "$BATS_TEST_TMPDIR/m" -l "$VATALLOC_LIB" \
		-s "0x$(nm -D "$VATALLOC_LIB" | sed -n 's/ . vatalloc_stats$//p')" \
		-E LD_PRELOAD="$VATALLOC_LIB" -E VATALLOC_OPTIONS=mode=address -t \
		-- sh -c "'$VATALLOC_TEST_DIR/heap_info' 64 > /dev/null; exit 3"
	assert_equal "$status" 3
	run cat "$BATS_TEST_TMPDIR/m"
	assert_line 'processes 2'
	assert_line 'loaded 2'
	space=$(sed -n 's/^space_used //p' "$BATS_TEST_TMPDIR/m")
	assert [ "$space" -ge $((64 << 20)) ]

	run "$measure" -o "$BATS_TEST_TMPDIR/m" -l /nothing -- python3 -c '
import mmap, os
kept = [mmap.mmap(-1, 8192, prot=1 + i % 2) for i in range(200)] + [b"x" * (100 << 20)]
os._exit(0)'
	assert_success
	assert_equal "$(sed -n 's/^loaded //p' "$BATS_TEST_TMPDIR/m")" 0
	assert [ "$(sed -n 's/^vmas_max //p' "$BATS_TEST_TMPDIR/m")" -ge 200 ]
	assert [ "$(sed -n 's/^maxrss //p' "$BATS_TEST_TMPDIR/m")" -ge $((100 << 10)) ]
	assert [ "$(sed -n 's/^hwm_max //p' "$BATS_TEST_TMPDIR/m")" -ge $((100 << 10)) ]

	run "$measure" -o "$BATS_TEST_TMPDIR/m" -- sh -c 'kill -SEGV $$'
	assert_equal "$status" $((128 + 11))
}

@test "what is allocated is counted" {
	make bench-tools
	head -c 16 /dev/zero > "$BATS_TEST_TMPDIR/sums"
	LD_PRELOAD=$tools/count.so COUNT_FILE=$BATS_TEST_TMPDIR/sums "$tools/micro" pair 2 10000 640
	read -r count bytes < <(od -An -t u8 "$BATS_TEST_TMPDIR/sums")
	assert [ "$count" -ge 20000 ]
	assert [ "$count" -lt 20100 ]
	assert [ "$bytes" -ge 12800000 ]
	assert [ "$bytes" -lt 12900000 ]
}

# judged COUNT-SECONDS: the bar for count mode, jemalloc having taken a second in each round.
judged() {
	python3 -B - "$1" <<-'END'
		import sys
		sys.path.insert(0, 'bats/bench')
		import report
		rows = [{'work': w, 'group': 'programs', 'pass': 'time', 'round': n, 'allocator': a, 'role': r,
		         'wall': seconds * machine, 'cpu': seconds, 'vmas': 60, 'rss': 100}
		        for w in 'abcdefgh' for n, machine in enumerate((1, 3))
		        for a, r, seconds in (('glibc', 'peer', 2), ('jemalloc', 'peer', 1),
		                              ('count', 'count', float(sys.argv[1])))]
		print(report.bars(report.Results(rows)))
	END
}

@test "a bar holds or fails by the ratios of each round" {
	run judged 1.02
	assert_success
	assert_line --regexp '^\| programs, run time / jemalloc .*<= 1.030 \| 1\.020 .*1\.020\.\.1\.020 .*holds \|$'
	run judged 1.04
	assert_line --regexp '^\| programs, run time / jemalloc .*<= 1.030 \| 1\.040 .*FAILS \|$'
}

@test "the page of results has the tables and keeps what was written by hand" {
	bench BENCH=start RUNS=1 QUICK=1 ALLOCATORS='address count'
	assert_success
	grep '^| start ' <<< "$output" > "$BATS_TEST_TMPDIR/printed"
	printf '%s\n' '# By hand' '<!-- Written by `make bench-results` from here on. -->' old \
		> "$out/RESULTS.md"
	run bats/bench/results "$out" "$out"
	assert_success
	run cat "$out/RESULTS.md"
	assert_line --index 0 '# By hand'
	refute_line old
	assert_line --regexp "^make bench BENCH='start' RUNS='1' ALLOCATORS='address count' QUICK='1' "
	# No number in it that was not printed.
	grep '^| start ' "$out/RESULTS.md" | sort > "$BATS_TEST_TMPDIR/written"
	run sort "$BATS_TEST_TMPDIR/printed"
	assert_output "$(cat "$BATS_TEST_TMPDIR/written")"
}
