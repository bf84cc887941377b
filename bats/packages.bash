# SPDX-License-Identifier: MIT
#
# packages: the Debian packages of this tree, for the bats files of the 4NN series.
#
#   needs COMMAND...            runs the commands, which may call skip. For setup_file, where bats itself
#                               cannot skip: it is to return when this fails, and each test is skipped
#   requires_chroot             skip unless this computer can make chroots
#   packages SUITE              the directory with those of SUITE, which are built if a file of the tree
#                               is newer; unless it is trixie or $VATALLOC_FULL is set, without the
#                               tests that a build runs
#   old_packages SUITE          those with an older version, 0.0.9 for 0.1.0, and another vatalloc.conf
#   build LOG ARGUMENT...       debian/build-package ARGUMENT...; on failure the end of LOG is shown

# shellcheck source=bats/chroot.bash
. "${BASH_SOURCE[0]%/*}/chroot.bash"

packages_top=$chroot_top
packages_machine=$(dpkg --print-architecture)

needs() {
	local command reason
	for command; do
		reason=$(
			skip() {
				echo "${1:-no reason given}" >&5
				exit 0
			}
			eval "$command" 5>&1 >&2
		) || return 1
		if [ "$reason" ]; then
			export packages_skip=$reason
			return 1
		fi
	done
}

setup() {
	[ -z "${packages_skip-}" ] || skip "$packages_skip"
}

requires_chroot() {
	requires root mmdebstrap unshare setpriv
	unshare --mount --pid --fork true 2> /dev/null || skip 'needs namespaces'
}

build() {
	local log=$1
	shift
	mkdir -p "$(dirname "$log")"
	"$packages_top/debian/build-package" "$@" > "$log" 2>&1 < /dev/null 3>&- || {
		tail -n 40 "$log" >&2
		return 1
	}
}

# Whether the packages in directory $1 are newer than what they are made from. What git has ignored
# is not looked at: it is in build/.
packages_fresh() {
	local changes
	changes=$(compgen -G "$1/vatalloc_*_$packages_machine.changes" | head -n 1)
	[[ $changes && -z $(find "$packages_top" -path "$packages_top/build" -prune -o \
		-path "$packages_top/.git" -prune -o -type f -newer "$changes" -print -quit) ]]
}

# fresh DIRECTORY ARGUMENT...: builds them there, with these arguments of build-package, unless they are
# fresh. Other test files may want the same.
fresh() {
	local directory=$1
	shift
	mkdir -p "$directory"
	(
		flock 9
		packages_fresh "$directory" || build "$directory/log" -o "$directory" "$@" 9>&-
	) 9> "$directory/lock" || return 1
	echo "$directory"
}

packages() {
	if [ "$1" = trixie ] || [ "${VATALLOC_FULL-}" ]; then
		fresh "$packages_top/build/deb/$1" "$1" "$packages_machine"
	else
		# The build runs the library's tests, which takes minutes.
		DEB_BUILD_OPTIONS='nocheck parallel=2' \
			fresh "$packages_top/build/deb/$1-nocheck" "$1" "$packages_machine"
	fi
}

old_packages() {
	local new directory=$packages_top/build/deb/old/$1
	new=$(packages "$1") || return 1
	mkdir -p "$directory"
	(
		flock 9
		rm -rf "$directory"/*.deb "$directory/tree"
		for deb in "$new"/libvatalloc_*.deb "$new"/vatalloc_*.deb; do
			make_old "$deb" "$directory" || exit 1
		done
	) 9> "$directory/lock" || return 1
	echo "$directory"
}

# make_old PACKAGE DIRECTORY: the same, which says everywhere that it is older, in as many bytes.
make_old() {
	local tree=$2/tree version old
	version=$(dpkg-deb -f "$1" Version)
	version=${version%-*}
	old=$(sed 's/[0-9]/0/g; s/0$/9/' <<< "$version")
	dpkg-deb -R "$1" "$tree" || return 1
	rm "$tree/DEBIAN/md5sums"
	find "$tree/DEBIAN/control" "$tree/usr" -type f -not -path '*/share/*' \
		-exec sed -i "s/${version//./\\.}/$old/g" {} +
	if [ -e "$tree/etc/vatalloc.conf" ]; then
		sed -i 's/^# vatalloc: /&in its time, /' "$tree/etc/vatalloc.conf"
	fi
	dpkg-deb --root-owner-group -Znone -b "$tree" "$2" > /dev/null || return 1
	rm -r "$tree"
}
