#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# fork from programs with threads, threads that come and go, objects that change hands.

load helpers
load cases

# $VATALLOC_FULL=1: 1,000 of them.
@test "forks while other threads are in malloc" {
	local forks=${VATALLOC_FULL:+1000}

	TIMEOUT=480 passes address fork_threads "${forks:-150}"
}

@test "count mode: forks while other threads are in malloc" {
	passes count fork_threads 100
}

@test "mode off: forks while other threads are in malloc" {
	passes off fork_threads 100
}

@test "with tags: forks while other threads are in malloc" {
	passes "$WITH_TAGS" fork_threads 12
}

@test "vfork and posix_spawn leave the parent's heap and handlers alone" {
	passes "$WITHOUT_TAGS,off" vfork
}

@test "10,000 short threads leave nothing behind" {
	passes "$WITHOUT_TAGS" thread_churn 10000
}

@test "with tags: short threads leave nothing behind" {
	passes "$WITH_TAGS" thread_churn 400
}

@test "producers allocate 2 GiB that consumers free" {
	passes "$WITHOUT_TAGS" exchange 2048
}

@test "sixteen threads free each other's objects of 50 to 300 KB" {
	passes "$WITHOUT_TAGS" swap 16 3000 50000 300000
}

@test "count mode: four threads free each other's objects of all sizes, and nothing stays behind" {
	passes count swap 4 25000 64 470000
}

@test "with tags: threads free each other's objects of 100 to 500 KB" {
	passes "$WITH_TAGS" swap 3 1000 100000 500000
}

@test "with tags: producers allocate what consumers free" {
	passes "$WITH_TAGS" exchange 64
}

@test "blocks die while other threads forget the leases in them" {
	passes "$WITHOUT_TAGS" forget
}
