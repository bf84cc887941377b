#!/usr/bin/env bats
# SPDX-License-Identifier: MIT

load helpers
load programs

setup() {
	requires git
	export GIT_CONFIG_NOSYSTEM=1 HOME=$BATS_TEST_TMPDIR
	export GIT_AUTHOR_NAME=Author GIT_AUTHOR_EMAIL=author@example.org
	export GIT_COMMITTER_NAME=Committer GIT_COMMITTER_EMAIL=committer@example.org
}

git() {
	run_program git "$@"
}

write_files() {
	local i

	for i in {1..30}; do
		seq "$1" "$((i * 40 + $1))" > "file$i"
	done
	mkdir -p "directory$1"
	seq "$1" 300 > "directory$1/part"
}

# The same dates and names each time, so the same hashes: one wrong byte in an object shows.
git_session() {
	local i

	git init -q -b main repository
	cd repository
	for i in {1..40}; do
		write_files "$i"
		git add .
		GIT_AUTHOR_DATE="@$((1700000000 + i)) +0000" GIT_COMMITTER_DATE="@$((1700000000 + i)) +0000" \
			git commit -q -m "Change $i"
		if ((i % 10 == 0)); then
			git branch "side$i" HEAD~5
		fi
	done
	git log --format='%H %s' --stat
	git log -p -M --all | sha256sum
	git blame file30 | sha256sum
	git grep -c 7 HEAD~10 | sha256sum
	git -c pack.threads=2 gc -q --prune=now
	git fsck --full --strict 2>&1
	git count-objects -v | grep -E '^(count|in-pack|packs|garbage)'
	cd ..
	git clone -q --no-local repository copy
	git -C copy fsck --full
	git -C copy rev-parse HEAD
	git -C copy checkout -q HEAD~30
	(cd copy && find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 cat) | sha256sum
	git -C copy bundle create -q ../all.bundle --all
	git -C copy bundle verify -q ../all.bundle 2>&1
	git -C copy archive HEAD | sha256sum
}

@test "git commits, packs, verifies, clones and shows the same history" {
	compare git_session
}
