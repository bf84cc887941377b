# SPDX-License-Identifier: MIT
#
# programs: run a real program without the library and with it, and compare what it does.
#
#	compare [-m "MODE…"] COMMAND [ARGUMENT…]
#		COMMAND, most often a function that is a whole session with a program, runs in a fresh
#		directory without the library, and again in each MODE (address and count unless told).
#		It must succeed each time, and print the same each time.
#	run_program PROGRAM [ARGUMENT…]
#		In a session: run PROGRAM as this pass wants it, with or without the library.
#	start_server NAME PROGRAM [ARGUMENT…], stop_server NAME [SIGNAL]
#		The same for a server, its output going to NAME.log in the session's directory. Stopping
#		it first checks its processes: the library mapped, its heap in force, few mappings.
#
# Every process of a pass with the library must have had it loaded (the dynamic linker keeps a record
# of each), none may have reported anything, and no log may tell of a process that crashed.

# Debian's own programs, whatever else the caller's PATH offers.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL=C.UTF-8 TZ=UTC

programs=${BASH_SOURCE[0]%/*}/programs
max_mappings=2000
report_lines='vatalloc: |from LD_PRELOAD'
count_notice="vatalloc: mode 'count' measures only, it protects nothing"
crash_lines='signal[ =:#]*\(?(4|5|6|7|8|11)\b|SIG(SEGV|ABRT|BUS|ILL)|Segmentation fault|stack smashing'

# Where programs run: `native`, or `arm64`, under QEMU with MTE, which cannot run another program.
machine=native
# The pass under way: a mode of the library, or `none`; and the directory of what is kept about it.
pass=none
pass_records=

# One copy of the library that every user may read, whatever directory the tests lie in.
program_library() {
	local library=$VATALLOC_LIB copy=$BATS_FILE_TMPDIR/$machine/libvatalloc.so

	[ "$machine" = native ] || library=$VATALLOC_ARM64_LIB
	[ -e "$copy" ] || install -D -m 644 "$library" "$copy"
	printf '%s' "$copy"
}

program_path() {
	local place

	if [ "$machine" = native ]; then
		printf '%s' "$1"
		return
	fi
	for place in "$VATALLOC_SYSROOT"/usr/{bin,sbin}; do
		[ ! -x "$place/$1" ] || printf '%s' "$place/$1"
	done
}

run_program() {
	local program=$1
	shift

	timeout -k 5 100 "${pass_prefix[@]}" "$(program_path "$program")" "$@" 3>&-
}

start_server() {
	local name=$1 program=$2
	shift 2

	setsid "${pass_prefix[@]}" "$(program_path "$program")" "$@" \
		> "$name.log" 2>&1 < /dev/null 3>&- &
	printf '%s' "$!" > "$BATS_TEST_TMPDIR/$name.pid"
}

server_pid() {
	cat "$BATS_TEST_TMPDIR/$1.pid"
}

stop_server() {
	local name=$1 signal=${2:-TERM} pid status=0

	pid=$(server_pid "$name")
	check_processes "$name" "$pid"
	kill -s "$signal" "$pid"
	wait_until 20 gone "$pid"
	wait "$pid" || status=$?
	rm "$BATS_TEST_TMPDIR/$name.pid"
	echo "$name ended with status $status"
}

gone() {
	! kill -0 "$1" 2> /dev/null || [[ $(ps -o stat= -p "$1") == Z* ]]
}

# For teardown: whatever a failed test left running, by the sessions start_server made.
stop_servers() {
	local file pid

	for file in "$BATS_TEST_TMPDIR"/*.pid; do
		[ -e "$file" ] || continue
		pid=$(< "$file")
		for pid in $(process_tree "$pid"); do
			kill -KILL "$pid" 2> /dev/null || true
		done
	done
}

process_tree() {
	local child

	echo "$1"
	for child in $(pgrep -P "$1"); do
		process_tree "$child"
	done
}

check_processes() {
	local name=$1 pid

	for pid in $(process_tree "$2"); do
		# Servers start and end processes as they like: one that is gone has passed.
		check_process "$name" "$pid" || gone "$pid" || return 1
	done
}

check_process() {
	local name=$1 pid=$2 maps mode

	maps=$(cat "/proc/$pid/maps") || return 1
	if [ "$pass" = none ]; then
		[[ $maps != *libvatalloc* ]] || fail "$name: process $pid has the library mapped"
		return
	fi
	[[ $maps == *$(program_library)* ]] || fail "$name: process $pid lacks the library" ||
		return 1
	[ "$(wc -l <<< "$maps")" -lt "$max_mappings" ] ||
		fail "$name: process $pid has $(wc -l <<< "$maps") mappings" || return 1
	mode=$("$programs/heap-mode" "$pid") || return 1
	[ "$mode" = "$pass" ] || fail "$name: the heap of process $pid is in mode '$mode'"
}

# wait_until SECONDS COMMAND…: poll until COMMAND succeeds.
wait_until() {
	local end=$((SECONDS + $1))
	shift

	until "$@" > /dev/null 2>&1; do
		[ "$SECONDS" -le "$end" ] || fail "gave up waiting for: $*"
		sleep 0.05
	done
}

port_open() {
	: 2> /dev/null < "/dev/tcp/127.0.0.1/$1"
}

# A TCP port nobody listens on, below those the kernel gives to clients.
free_port() {
	local port

	while port=$((20000 + RANDOM % 10000)) && port_open "$port"; do
		:
	done
	echo "$port"
}

# configure NAME [KEY=VALUE…]: copy a file of programs/ here, with @KEY@ replaced.
configure() {
	local name=$1 pair script=
	shift

	for pair in "PWD=$PWD" "$@"; do
		script+="s|@${pair%%=*}@|${pair#*=}|g;"
	done
	sed "$script" "$programs/$name" > "$name"
}

# The words in front of each program of a pass. Records of loaded objects go to one file a process.
set_pass() {
	local variables=() variable

	pass=$1
	pass_records=$BATS_TEST_TMPDIR/$pass
	pass_prefix=(env -u LD_PRELOAD -u VATALLOC_OPTIONS)
	mkdir -m 1777 "$pass_records"
	if [ "$pass" != none ]; then
		variables=(LD_PRELOAD="$(program_library)" VATALLOC_OPTIONS="mode=$pass:journal=no"
			LD_DEBUG=libs LD_DEBUG_OUTPUT="$pass_records/loaded")
	fi
	if [ "$machine" = native ]; then
		pass_prefix+=("${variables[@]}")
	else
		pass_prefix+=("$VATALLOC_QEMU" -cpu max -L "$VATALLOC_SYSROOT")
		for variable in "${variables[@]}"; do
			pass_prefix+=(-E "$variable")
		done
	fi
}

run_pass() {
	local status
	local directory=$BATS_TEST_TMPDIR/run
	local mode=$1
	shift

	set_pass "$mode"
	rm -rf "$directory"
	mkdir "$directory"
	chmod a+x "$BATS_RUN_TMPDIR" # for servers that give up root

	# The session stops at the first command that fails, and its status is looked at here.
	set +eET
	(
		set -e -o pipefail
		cd "$directory"
		"$@"
	) > "$pass_records/out" 2> "$pass_records/err"
	status=$?
	set -eET

	if [ "$status" -ne 0 ]; then
		show_pass
		fail "pass '$pass' failed with status $status: $*"
	fi
	check_quiet "$directory"
	[ "$pass" = none ] || check_loaded
}

show_pass() {
	local file

	for file in "$pass_records"/{out,err} "$BATS_TEST_TMPDIR"/run/*.log; do
		[ -s "$file" ] || continue
		echo "--- ${file##*/} of pass '$pass'"
		tail -n 15 "$file" | cut -c -200
	done
}

# check_quiet DIRECTORY: no report by the library, and no word of a crash, on stderr or in a log.
check_quiet() {
	local found

	found=$(grep -rHIE --include='*.log' --include=err "$report_lines|$crash_lines" \
		"$pass_records/err" "$1" | grep -vF "$count_notice" || true)
	[ -z "$found" ] || fail "pass '$pass': $found"
}

check_loaded() {
	local missing

	[ -n "$(find "$pass_records" -name 'loaded.*' -print -quit)" ] ||
		fail "pass '$pass' ran no program"
	missing=$(grep -L "calling init: .*/libvatalloc.so" "$pass_records"/loaded.* | head -n 1)
	[ -z "$missing" ] ||
		fail "pass '$pass' ran a program without the library: $(head -n 5 "$missing")"
}

compare() {
	local modes="address count" mode

	if [ "$1" = -m ]; then
		modes=$2
		shift 2
	fi
	run_pass none "$@"
	[ -s "$pass_records/out" ] || fail "nothing to compare: no output from $*"
	for mode in $modes; do
		run_pass "$mode" "$@"
		# A session that joins stderr to stdout shows the notice, once for each process.
		grep -vxF "$count_notice" "$pass_records/out" |
			diff -u "$BATS_TEST_TMPDIR/none/out" - | head -n 40 | cut -c -200
		[ "${PIPESTATUS[1]}" -eq 0 ] || fail "pass '$mode' printed something else"
	done
}
