#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The generator, on trees of files: generator/NN-name holds what it finds below / (etc, usr, …), and in
# run.expected all that it is to write below /run, and nowhere else. What it is to say, if anything,
# is in log.expected. With a home/ in the tree it is the generator of that user's manager. The
# architecture's triplet is written as TRIPLET.
#
# To take over what the generator writes now, after reading the differences:
#	VATALLOC_RECORD=1 bats bats/210-generator.bats

load helpers

setup_file() {
	top=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	triplet=$(gcc -print-multiarch)
	export top triplet
	export UBSAN_OPTIONS=halt_on_error=1 ASAN_OPTIONS=detect_leaks=1
	unset XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_DATA_HOME XDG_DATA_DIRS XDG_RUNTIME_DIR
}

# prepare CASE: makes $root of it, with the library installed, and $destination to write to.
prepare() {
	root=$BATS_TEST_TMPDIR/root
	destination=$root/run/systemd/generator
	generator=$top/build/systemd/test/vatalloc-generator
	cp -a "$BATS_TEST_DIRNAME/generator/$1" "$root"
	chmod -R u+w "$root"
	rm -rf "$root/run.expected" "$root/log.expected"
	mkdir -p "$root/usr/lib/$triplet/vatalloc"
	touch "$root/usr/lib/$triplet/vatalloc/libvatalloc.so"
	if [ -d "$root/home" ]; then
		generator=$top/build/systemd/test/vatalloc-user-generator
		destination=$root/run/user/1000/systemd/generator
		export HOME=/home/joe XDG_RUNTIME_DIR=/run/user/1000
	fi
	mkdir -p "$destination"
}

generate() {
	run --separate-stderr env VATALLOC_ROOT="$root" "$generator" "$@"
}

run_case() {
	local case=$1 expected=$BATS_TEST_DIRNAME/generator/$1 before after
	prepare "$case"
	before=$(find "$root" ! -path "$destination*" -printf '%p %s %T@\n' | sort)
	generate "$destination" "$destination.early" "$destination.late"
	assert_success
	assert_output ''
	after=$(find "$root" ! -path "$destination*" -printf '%p %s %T@\n' | sort)
	assert_equal "$after" "$before"

	find "$destination" -type f -exec sed -i "s,$triplet,TRIPLET,g" {} +
	rm -rf "$root/run/systemd/system"
	sed "s,$triplet,TRIPLET,g; s/^vatalloc-[a-z-]*: //" <<< "$stderr" | sed '/^$/d' \
		> "$BATS_TEST_TMPDIR/log"
	if [ "${VATALLOC_RECORD:-}" ]; then
		rm -rf "$expected/run.expected" "$expected/log.expected"
		[ -z "$(find "$root/run" -type f)" ] || cp -a "$root/run" "$expected/run.expected"
		[ ! -s "$BATS_TEST_TMPDIR/log" ] || cp "$BATS_TEST_TMPDIR/log" "$expected/log.expected"
	fi
	# An empty directory is not kept in git.
	find "$root/run" -depth -type d -empty -delete
	mkdir -p "$root/run" "$BATS_TEST_TMPDIR/nothing"
	[ -d "$expected/run.expected" ] || expected_run=$BATS_TEST_TMPDIR/nothing
	run diff -ru "${expected_run:-$expected/run.expected}" "$root/run"
	assert_success
	run diff -u "$([ -e "$expected/log.expected" ] && echo "$expected/log.expected" ||
		echo /dev/null)" "$BATS_TEST_TMPDIR/log"
	assert_success
}

@test "writes a drop-in for the one enabled service" {
	run_case 01-one-service
}

@test "writes nothing where nothing is enabled" {
	run_case 02-nothing-enabled
}

@test "understands instances with .service, @, dots and escapes, and of no unit" {
	run_case 03-instance-names
}

@test "puts the library in front of an LD_PRELOAD of the unit" {
	run_case 04-preload-in-front
}

@test "comes after a drop-in that would undo it" {
	run_case 05-later-drop-in
}

@test "leaves masked units, instances, links and drop-ins alone" {
	run_case 06-masked
}

@test "does nothing if vatalloc@.service is masked" {
	run_case 07-template-masked
}

@test "follows aliases as systemd does" {
	run_case 08-alias
}

@test "takes settings from the configuration and reports its errors" {
	run_case 09-configuration
}

@test "opens filters no further than needed" {
	run_case 10-system-calls-and-families
}

@test "brings library and socket into a root of its own" {
	run_case 11-file-systems
}

@test "finds links in all directories systemd looks in" {
	run_case 12-where-links-are-found
}

@test "comes after an EnvironmentFile= that sets LD_PRELOAD" {
	run_case 13-environment-file
}

@test "refuses what is no service and goes on" {
	run_case 14-bad-instances
}

@test "reads drop-ins of templates, prefixes and all services in their order" {
	run_case 15-drop-in-directories
}

@test "leaves specifiers of the unit to systemd" {
	run_case 16-percent
}

@test "is switched off by the kernel command line" {
	run_case 17-switched-off
}

@test "serves a user" {
	run_case 18-user
}

@test "every tree is tested" {
	local directory
	for directory in "$BATS_TEST_DIRNAME"/generator/*/; do
		run -0 grep -c "run_case $(basename "$directory")$" "$BATS_TEST_FILENAME"
		assert_output 1
	done
}

@test "a system without units is no error" {
	root=$BATS_TEST_TMPDIR generator=$top/build/systemd/test/vatalloc-generator
	mkdir "$root/out"
	generate "$root/out"
	assert_success
	assert_equal "$stderr" ''
	run ls -A "$root/out"
	assert_output ''
}

@test "without the library it does nothing, and says so" {
	prepare 01-one-service
	rm "$root/usr/lib/$triplet/vatalloc/libvatalloc.so"
	generate "$destination"
	assert_success
	assert_equal "$stderr" "vatalloc-generator: /usr/lib/$triplet/vatalloc/libvatalloc.so is missing: no service is protected"
	run ls -A "$destination"
	assert_output ''
}

@test "it overwrites nothing" {
	prepare 04-preload-in-front
	mkdir "$destination/a.service.d"
	echo mine > "$destination/a.service.d/50-vatalloc.conf"
	generate "$destination"
	assert_success
	assert_equal "$stderr" 'vatalloc-generator: a.service cannot be protected: File exists'
	run cat "$destination/a.service.d/50-vatalloc.conf"
	assert_output mine
	run ls -A "$destination/a.service.d" "$destination/b.service.d"
	assert_output "$destination/a.service.d:
50-vatalloc.conf

$destination/b.service.d:
50-vatalloc.conf"
}

@test "a destination that cannot be written to is no failure of the boot" {
	prepare 01-one-service
	generate /dev/null
	assert_success
	assert_equal "$stderr" 'vatalloc-generator: nginx.service cannot be protected: Not a directory'
}

@test "its files can be read by all, whatever the umask" {
	prepare 01-one-service
	umask 077
	generate "$destination"
	run stat -c '%a' "$destination/nginx.service.d" "$destination/nginx.service.d/50-vatalloc.conf"
	assert_output "755
644"
}

@test "it takes one directory or three" {
	generator=$top/build/systemd/test/vatalloc-generator root=
	generate
	assert_failure 2
	generate a b
	assert_failure 2
}

@test "unit files of any bytes do no harm" {
	local i times=${VATALLOC_FULL:+500}
	prepare 01-one-service
	for i in $(seq "${times:-50}"); do
		{
			echo '[Service]'
			printf 'Environment="LD_PRELOAD=%s\n' "$(head -c 20 /dev/urandom | tr -d '\0\n')"
			printf 'SystemCallFilter=%s\n' "$(head -c 20 /dev/urandom | tr -d '\0\n')"
			head -c 200 /dev/urandom
		} > "$root/usr/lib/systemd/system/nginx.service"
		rm -rf "${destination:?}"/*
		generate "$destination"
		assert_success
		assert [ -s "$destination/nginx.service.d/50-vatalloc.conf" ]
	done
}

# Time depends on what else runs here; the work does not.
@test "ten times the services take ten times the system calls, some ninety each" {
	local i n dir calls=()
	requires strace
	prepare 01-one-service
	dir=$root/etc/systemd/system
	generator=$top/build/systemd/vatalloc-generator
	for n in 10 100; do
		for i in $(seq $n); do
			mkdir -p "$dir/s$i.service.wants" "$dir/s$i.service.d"
			ln -sf /usr/lib/systemd/system/vatalloc@.service "$dir/s$i.service.wants/vatalloc@s$i.service"
			printf '[Service]\nExecStart=/bin/true\nSystemCallFilter=@basic-io\n' > "$dir/s$i.service"
			printf '[Service]\nEnvironment=LD_PRELOAD=/x.so\n' > "$dir/s$i.service.d/override.conf"
		done
		rm -rf "$destination"
		mkdir -p "$destination"
		VATALLOC_ROOT=$root strace -f -o "$BATS_TEST_TMPDIR/calls" "$generator" "$destination"
		run find "$destination" -name '50-vatalloc.conf'
		assert_equal "${#lines[@]}" $((n + 1))
		calls+=("$(wc -l < "$BATS_TEST_TMPDIR/calls")")
	done
	echo "# ${calls[*]} system calls" >&3
	assert [ "${calls[1]}" -lt $((10 * calls[0])) ]
	assert [ "${calls[1]}" -lt $((120 * 100)) ]
}
