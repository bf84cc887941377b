#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# nginx, enabled as an administrator does it, in each mode: the kernel checks tags as was asked for,
# in every process and thread, requests are served, and vatallocctl tells the truth about it.

load ../helpers
load vm

setup_file() {
	guest_up
	guest 'systemctl start nginx
		seq 200000 > /var/www/html/large.txt
		systemctl enable -q --now vatalloc@nginx
		eventually systemctl is-active -q vatalloc@nginx'
}

teardown_file() {
	guest_down
}

# serves MODE CHECKS SHOWN LIVES [SETTING...]: with these settings, the kernel checks tags as CHECKS, and
# vatallocctl shows that mode.
serves() {
	run guest "protect nginx ${*:4}
		checks nginx
		curl -sfZ -o /dev/null 'http://localhost/large.txt?[1-40]'
		curl -sf http://localhost/large.txt | sha256sum
		sha256sum < /var/www/html/large.txt
		checks nginx
		vatallocctl status --no-legend nginx
		vatallocctl verify --no-legend nginx
		journalctl -q -o cat -u nginx -u vatalloc@nginx --since=-20s -p warning"
	assert_success
	assert_line -n 0 "$1"
	assert_equal "${lines[1]}" "${lines[2]}"
	assert_line -n 3 "$1"
	# the master and the two workers, one for each processor
	assert_line -n 4 --regexp "^nginx.service +yes +$2 +3/3 +$3 "
	assert_line -n 5 --regexp "^[0-9]+ nginx +yes +$2 +-$"
	assert_line -n 6 --regexp "^[0-9]+ nginx +yes +$2 +-$"
	assert_line -n 7 --regexp "^[0-9]+ nginx +yes +$2 +-$"
	assert_equal "${lines[*]:8}" ''
}

@test "the guest's kernel is the one asked for, with MTE" {
	run guest 'uname -r; grep -c "\<mte\>" /proc/cpuinfo; cat /etc/debian_version; systemctl is-system-running'
	assert_success
	assert_line -n 0 "$(< "$vm_top/build/vm/kernel-$VM_KERNEL/version")"
	assert_line -n 1 2
	assert_line -n 2 --regexp '^13'
	assert_line -n 3 running
}

@test "nginx in mode sync" {
	serves sync sync 15 Mode=sync
}

@test "nginx in mode async" {
	serves async async 15 Mode=async
}

@test "nginx in mode auto, where the processors prefer async" {
	guest 'prefer async'
	serves both mte 15 Mode=auto
}

@test "nginx in mode auto, where the processors prefer sync" {
	guest 'prefer sync'
	serves both mte 15 Mode=auto
}

@test "nginx in mode auto, where the processors prefer asymmetric checks" {
	guest 'prefer asymm'
	serves both mte 15 Mode=auto
}

# With threads that read the files, three in each of the workers.
@test "nginx with threads: each of them is checked as asked for" {
	local mode word
	guest "echo 'thread_pool default threads=3;' > /etc/nginx/modules-enabled/90-threads.conf
		echo 'aio threads;' > /etc/nginx/conf.d/threads.conf"
	for mode in sync:sync async:async auto:both; do
		word=${mode#*:}
		serves "$word" "${word/both/mte}" 15 "Mode=${mode%:*}"
		run guest 'for process in $(processes nginx); do
				/opt/programs/tag-mode "$process"
			done | sort | uniq -c'
		assert_success
		# the master, and each worker with its own
		assert_output --regexp "^ +9 $word nginx$"
	done
	guest 'rm /etc/nginx/modules-enabled/90-threads.conf /etc/nginx/conf.d/threads.conf'
}

@test "nginx in mode address" {
	serves none address 1 Mode=address
}

@test "nginx without the library" {
	run guest 'systemctl disable -q --now vatalloc@nginx
		systemctl restart nginx
		checks nginx
		tagged "$(pid nginx)" | wc -l
		vatallocctl verify --no-legend nginx || echo $?'
	assert_success
	assert_line -n 0 none
	assert_line -n 1 0
	assert_line -n 5 3
}

# tags_where MODE: whether the kernel has tags for all heap addresses, and for nothing else.
tags_where() {
	run guest "printf '[Service]\nExecStart=/opt/programs/where\nStandardOutput=file:/run/where\n' > \
			/run/systemd/system/where.service
		protect where Mode=$1
		eventually test -s /run/where
		tagged \$(pid where) > /run/tagged
		while read -r what address; do
			found=other
			while IFS='- ' read -r begin end name; do
				[ \$((address < 16#\$begin || address >= 16#\$end)) = 1 ] || found=heap
			done < /run/tagged
			echo \"\$what \$found \$address\"
		done < /run/where
		systemctl stop where"
	assert_success
}

@test "the heap has tags, and nothing else has" {
	local mode
	for mode in sync async; do
		tags_where $mode
		assert_equal "$(grep -c '^heap heap ' <<< "$output")" 8
		assert_equal "$(grep -c '^other other ' <<< "$output")" 9
		assert_equal "${#lines[@]}" 17
	done
}

@test "in mode address nothing has tags" {
	tags_where address
	assert_equal "$(grep -c '^heap other ' <<< "$output")" 8
	assert_equal "$(grep -c '^other other ' <<< "$output")" 9
}

@test "nginx's tagged memory is all anonymous, and no stack" {
	run guest 'protect nginx Mode=sync
		for process in $(processes nginx); do
			tagged "$process" | sort -u
		done'
	assert_success
	assert [ "${#lines[@]}" -ge 3 ]
	refute_line --regexp ' (/|\[stack|\[heap|\[v)'
}

# Nobody asked for it: an executable that was started before, and one of two services.
@test "only the service it is enabled for is protected" {
	run guest 'checks systemd-journald; checks dbus; checks nginx'
	assert_success
	assert_line -n 0 none
	assert_line -n 1 none
	assert_line -n 2 sync
}
