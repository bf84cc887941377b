# SPDX-License-Identifier: MIT
#
# web: a site to serve, and the clients that load and check a web server. The clients never run
# under the library. Sourced by tests of web servers, after programs.bash.

# A directory site/ that is the same, times included, in every pass.
make_site() {
	local i

	mkdir site
	{
		echo '<!doctype html><title>page</title>'
		printf '<p>paragraph %d with a needle in it</p>\n' {1..200}
	} > site/page.html
	for i in {1..60}; do
		printf "<li>$i %s\n" $(seq "$((i * 17))") > "site/part$i.html"
	done
	echo '<!--#include virtual="page.html" --><!--#include virtual="part60.html" -->' \
		> site/all.shtml
	seq 300000 > site/large.txt
	find site -exec touch -d '2024-05-06 07:08:09' {} +
}

# fetch PATH [CURL-OPTION…]: the status, size and digest of one answer, which must be a good one.
fetch() {
	local path=$1 body=$BATS_TEST_TMPDIR/body answer
	shift

	answer=$(curl -sS --max-time 30 -o "$body" "$@" -w '%{http_code} %{size_download}' \
		"http://127.0.0.1:$port$path")
	[[ $answer == 20[06]\ * ]] || fail "$path: $answer"
	echo "${path:0:40} $* $answer $(sha256sum < "$body")"
}

serves() {
	curl -sSf --max-time 5 -o "$BATS_TEST_TMPDIR/body" "http://127.0.0.1:$port$1"
}

# load_with_ab REQUESTS CONNECTIONS PATH [AB-OPTION…]: every answer must be complete and good.
load_with_ab() {
	local requests=$1 connections=$2 path=$3 report
	shift 3

	report=$(ab -q -n "$requests" -c "$connections" "$@" "http://127.0.0.1:$port$path" 2>&1) ||
		fail "$report"
	grep -qx "Complete requests: *$requests" <<< "$report" || fail "$report"
	grep -qx 'Failed requests: *0' <<< "$report" || fail "$report"
	! grep 'Non-2xx' <<< "$report" || fail "$report"
	grep -E '^(Complete requests|HTML transferred)' <<< "$report"
}

# load_with_wrk SECONDS PATH: no socket error, no answer but 2xx and 3xx.
load_with_wrk() {
	local report

	report=$(wrk -t 2 -c 100 -d "$1s" "http://127.0.0.1:$port$2" 2>&1) || fail "$report"
	! grep -E 'Socket errors|Non-2xx' <<< "$report" || fail "$report"
	[ "$(awk '/requests in/ { print $1 }' <<< "$report")" -gt 1000 ] || fail "$report"
	echo "wrk is content with $2"
}
