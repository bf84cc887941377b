#!/usr/bin/env bats
# SPDX-License-Identifier: MIT

load helpers
load programs

setup() {
	requires openssl
}

teardown() {
	stop_servers
}

openssl() {
	run_program openssl "$@"
}

# Keys are random: what is compared is that everything made with them fits together.
keys_session() {
	local kind

	seq 100000 > text
	openssl genrsa -out rsa.key 3072
	openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ec.key
	openssl genpkey -algorithm ED25519 -out ed25519.key
	for kind in rsa ec; do
		openssl pkey -in $kind.key -pubout -out $kind.pub
		openssl dgst -sha256 -sign $kind.key -out $kind.sig text
		openssl dgst -sha256 -verify $kind.pub -signature $kind.sig text
	done
	openssl rsa -in rsa.key -check -noout 2>&1
	for kind in rsa ec ed25519; do
		openssl req -x509 -new -key $kind.key -subj "/CN=$kind" -days 2 -out $kind.crt
		openssl verify -CAfile $kind.crt $kind.crt
	done
	openssl smime -encrypt -binary -aes256 -outform DER -out text.smime rsa.crt < text
	openssl smime -decrypt -binary -inform DER -inkey rsa.key -in text.smime | cmp - text
}

# With given keys and salts the bytes must be the same.
ciphers_session() {
	local cipher

	head -c 20000000 /dev/zero > zeroes
	for cipher in aes-256-ctr aes-128-cbc chacha20 camellia-256-cbc aria-192-ctr; do
		openssl enc -$cipher -pbkdf2 -S 0001020304050607 -pass pass:word -in zeroes -out sealed
		openssl dgst -sha256 sealed
		openssl enc -d -$cipher -pbkdf2 -S 0001020304050607 -pass pass:word -in sealed |
			cmp - zeroes
	done
	openssl dgst -sha512 zeroes
	openssl dgst -blake2b512 zeroes
	openssl prime -generate -bits 64 -safe | wc -l
}

# 60 connections, each with its own handshake, each asking for a page of what it agreed on.
tls_session() {
	local port i

	port=$(free_port)
	openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out crt -subj /CN=localhost -days 2
	start_server s_server openssl s_server -accept "127.0.0.1:$port" -cert crt -key key -www
	wait_until 10 port_open "$port"
	for i in {1..60}; do
		printf 'GET / HTTP/1.0\r\n\r\n' |
			openssl s_client -quiet -CAfile crt -verify_return_error -ign_eof \
				-connect "127.0.0.1:$port" -servername localhost |
			grep -cE '^(New, TLSv1.3|Secure Renegotiation)'
	done
	stop_server s_server
}

@test "openssl's keys, signatures, certificates and messages fit together" {
	compare keys_session
}

@test "openssl's ciphers and digests give the same bytes" {
	compare ciphers_session
}

@test "openssl s_server and s_client talk TLS" {
	compare tls_session
}
