#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# A service makes each kind of mistake, under synchronous, asynchronous and asymmetric checks: it
# dies of it, and the journal names the mistake. The program says on stdout what must be said of it.

load ../helpers
load vm

# Those that the kernel notices, and those that free and realloc do.
ACCESSES='uaf-read uaf-write uaf-medium uaf-large uaf-large-write uaf-realloc uaf-thread uaf-fork
	uaf-life uaf-retired overflow underflow overflow-large untagged forged'
CALLS='double-free double-free-large double-free-later double-free-thread double-free-retired
	realloc-freed realloc-freed-large free-interior free-odd free-interior-large realloc-interior
	free-stack free-static free-wild free-impossible free-mapping delete-stack realloc-stack
	free-untagged free-forged'

# The last crash of a service, as the journal has it, when it has come to its end.
mistake='
mistake() {
	echo "BUGS=$1" > /run/bugs
	systemctl start bug 2> /dev/null || :
	systemctl show -P Result bug
	journalctl --sync
	crashes bug | tail -n 1
}
'

setup_file() {
	guest_up
	# One mistake as the service itself, or all one after another. delete-stack takes the operator of
	# libstdc++, or of the library in front of it.
	guest "cat > /etc/systemd/system/bug.service <<- 'END'
			[Service]
			Type=oneshot
			EnvironmentFile=/run/bugs
			ExecStart=/opt/test/bug \$BUGS
		END
		cat > /etc/systemd/system/bugs.service <<- 'END'
			[Service]
			Type=oneshot
			EnvironmentFile=/run/bugs
			ExecStart=/bin/bash /etc/bugs
			StandardOutput=truncate:/run/bugs.out
			LimitCORE=0
		END
		cat > /etc/bugs <<- 'END'
			echo \$INVOCATION_ID > /run/bugs.id
			for bug in \$BUGS; do
				said=\$(/opt/test/bug \$bug)
				echo \"\$bug	\$?	\$said\"
			done
		END
		systemctl daemon-reload
		systemctl enable -q vatalloc@bug vatalloc@bugs"
}

teardown_file() {
	guest_down
}

# make_all MODE [PREFERRED]: the table of all mistakes, the process's status, what it said, and what
# the journal says.
make_all() {
	VM_LIMIT=600 guest "prefer ${2-async}
		configure bugs Mode=$1
		echo BUGS=\"${ACCESSES//$'\n'/ } ${CALLS//$'\n'/ }\" > /run/bugs
		systemctl start bugs
		journalctl --sync
		journalctl -q -o cat --output-fields=MESSAGE MESSAGE_ID=ed3f568b47eb4501ae44d15dc645b4f3 \
			_SYSTEMD_INVOCATION_ID=\$(< /run/bugs.id) |
			paste /run/bugs.out -" > "$BATS_FILE_TMPDIR/$1${2-}"
}

# named TABLE: each of them is named.
named() {
	local table=$BATS_FILE_TMPDIR/$1 bug status said message kind rest wrong=0 some forgotten n=0
	some='(, 0 bytes into a 320-byte object)?, life 1 of 15, freed(; current life [0-9]+)?'
	forgotten=', the object that was there is freed and forgotten'
	while IFS=$'\t' read -r bug status said message; do
		n=$((n + 1))
		case $bug in
		uaf-life) kind=use-after-free rest=', life 3 of 15, freed; current life 7' ;;
		# Forgotten, or its last life known still.
		uaf-retired) kind='(use-after-free|retired-lease)' rest="($some|$forgotten)" ;;
		uaf-*) kind=use-after-free rest=$some ;;
		overflow | underflow | overflow-large) kind=overflow rest=', life 1 of 15' ;;
		untagged | free-untagged) kind=untagged-pointer rest= ;;
		forged | free-forged) kind=forged-pointer rest='(, .*)?' ;;
		double-free-later) kind=double-free rest=', life 1 of 15, freed; current life 2' ;;
		double-free-retired) kind=double-free rest="($some|$forgotten)" ;;
		double-free* | realloc-freed*) kind=double-free rest=$some ;;
		*-interior* | free-odd) kind=invalid-free rest=', not where an object begins' ;;
		*) kind=invalid-free rest=', not a heap pointer of this process' ;;
		esac
		# What the kernel tells of too late to know where it was.
		case $1:$bug:$said in
		*:free* | *:double-free* | *:realloc-* | *:delete-*) ;;
		async:* | autoasymm:*:write*)
			kind=asynchronous-fault said='access at an unknown address' rest=', noticed later; mode=sync tells where' ;;
		esac
		if ! [[ $message =~ ^$kind:\ $said$rest$ ]]; then
			echo "$bug: wanted $kind: $said$rest; got $message"
			wrong=1
		fi
		case $bug:$status in
		uaf-*:139 | overflow*:139 | underflow:139 | untagged:139 | forged:139) ;;
		*free*:134 | realloc*:134 | delete*:134) ;;
		*)
			echo "$bug ended with $status"
			wrong=1
			;;
		esac
	done < "$table"
	assert_equal $wrong:$n "0:$(wc -w <<< "$ACCESSES $CALLS")"
}

@test "every mistake is named, checked synchronously" {
	make_all sync
	named sync
}

@test "every mistake is named, checked asynchronously" {
	make_all async
	named async
}

@test "every mistake is named, checked asymmetrically" {
	make_all auto asymm
	named autoasymm
}

@test "every mistake is named in mode auto, where the processors prefer synchronous checks" {
	make_all auto sync
	named autosync
}

@test "an asynchronous fault tells the program, the thread and where it was noticed" {
	run guest "$mistake
		configure bug Mode=async
		mistake uaf-write
		vatallocctl crashes --no-legend -n 1"
	assert_success
	assert_line -n 0 --regexp '^(core-dump|signal)$'
	assert_output --regexp '"VATALLOC_PROGRAM":"/opt/test/bug"'
	assert_output --regexp '"VATALLOC_THREAD":"bug"'
	assert_output --regexp '"VATALLOC_KIND":"asynchronous-fault"'
	assert_output --regexp '"VATALLOC_MODE":"async"'
	assert_output --regexp '"VATALLOC_SI_CODE":"8"'
	# Noticed at the first entry into the kernel, behind the mistake.
	assert_output --regexp '"VATALLOC_BACKTRACE":"#0 0x[0-9a-f]+ /[^ ]*'
	assert_output --regexp '"VATALLOC_BACKTRACE":"[^"]* /opt/test/bug\+0x'
	refute_output --partial VATALLOC_ADDRESS
	assert_line -n 2 --regexp 'bug.service .*asynchronous-fault'
}

@test "a bad pointer in a system call is EFAULT and no crash" {
	run guest 'for mode in sync async address; do
		VATALLOC_OPTIONS=mode=$mode LD_PRELOAD=$(echo /usr/lib/*/vatalloc/libvatalloc.so) /opt/programs/syscalls
	done'
	assert_success
	assert_line -n 0 'write: EFAULT; read: EFAULT; readv: EFAULT; live: 64'
	# unchecked in asynchronous mode, and gone for good in address mode only page by page
	assert_line -n 1 --regexp '^write: (EFAULT|64); read: (EFAULT|64); readv: (EFAULT|64); live: 64$'
	assert_line -n 2 --regexp 'live: 64$'
	assert_equal "${#lines[@]}" 3
}

# dumped MODE PREFERRED BUG SI_CODE: the core dump of such a mistake is there, of a sane size, and gdb
# reads it, with the tags of the heap.
dumped() {
	[ "$VM_IMAGE" = full ] || skip 'the small image has no gdb'
	run guest "$mistake
		prefer $2
		configure bug Mode=$1
		mistake $3 > /dev/null
		eventually coredumpctl -q info -1 /opt/test/bug > /dev/null
		coredumpctl -q dump -1 /opt/test/bug -o /run/core > /dev/null 2>&1
		stat -c %s /var/lib/systemd/coredump/core.bug.* | sort -n | tail -n 1
		stat -c %s /run/core
		gdb -batch -ex 'printf \"si_code %d\n\", \$_siginfo.si_code' -ex 'info registers tag_ctl' -ex bt \
			-ex 'memory-tag check objects[0]' -ex 'memory-tag check objects[1]' \
			/opt/test/bug /run/core 2>&1"
	assert_success
	assert [ "${lines[0]}" -lt 1000000 ]
	assert [ "${lines[1]}" -lt 100000000 ]
	assert_line "si_code $4"
	assert_line --regexp '^tag_ctl +0x7fff'
	assert_line --regexp '^#[0-9]+ .* main \('
	# the first of the objects is alive, the second is freed
	assert_line --regexp '^Memory tags for address 0x[0-9a-f]+ match \(0x[1-9a-f]\)\.$'
	assert_line --regexp '^Logical tag \(0x[1-9a-f]\) does not match the allocation tag \(0x[1-9a-f]\) for address'
}

@test "a core dump holds a synchronous fault and the tags" {
	dumped sync async uaf-read 9
	assert_line --regexp '^Memory tag violation while accessing address 0x0[1-9a-f]'
	assert_line --regexp '^#0 .*read_at \('
}

@test "a core dump holds an asynchronous fault" {
	dumped async async uaf-write 8
}

@test "a core dump holds either fault of asymmetric checks" {
	dumped auto asymm uaf-read 9
	assert_line --regexp '^Memory tag violation while accessing address 0x0[1-9a-f]'
	dumped auto asymm uaf-write 8
}
