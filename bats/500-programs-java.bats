#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The JVM's own SIGSEGV handler is part of how it works, and the library has one too.

load helpers
load programs

setup() {
	requires java javac
}

# A crash of the JVM leaves hs_err_pid*.log.
java_session() {
	run_program java "-XX:+Use$1GC" -Xmx128m "$programs/Churn.java"
	! ls hs_err_pid* || fail 'the JVM crashed'
}

@test "a JVM with the serial collector compiles and runs the same" {
	compare java_session Serial
}

@test "a JVM with the G1 collector compiles and runs the same" {
	compare java_session G1
}
