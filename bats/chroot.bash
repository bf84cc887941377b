# SPDX-License-Identifier: MIT
#
# chroot: clean Debian releases to build packages in and to try them out.
#
#   chroot_root NAME SUITE PACKAGES [CONTROL [ARCH]]
#                               prints the cached root file system build/chroot/NAME-…, making it
#                               first where there is none: SUITE with PACKAGES (a,b,c), the build
#                               dependencies in the file CONTROL, and those to build for ARCH
#   in_chroot ROOT DIR CMD...   runs CMD there as root in /build, which is DIR; all that is written
#                               elsewhere is forgotten. Its processes end with it. With
#                               CHROOT_USER=UID it has no privileges and no network either.
#
# The release comes from this computer's own mirror, which may be a frozen one. As root.

chroot_top=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
chroot_roots=${VATALLOC_CHROOT:-$chroot_top/build/chroot}
. "$chroot_top/bats/setup/apt.bash"

# The name of a root holds a checksum of what it is made from, so that a change of it makes a new
# one. Older ones of the same name are removed.
chroot_root() {
	local name=$1 suite=$2 packages=$3 control=${4-} arch=${5-} root machine
	machine=$(dpkg --print-architecture)
	[[ $arch != "$machine" ]] || arch=
	root=$chroot_roots/$name-$({
		echo "$suite $packages $arch"
		# An empty line ends what is said of the source.
		[[ -z $control ]] || sed '/^$/q' "$control"
	} | cksum | cut -d ' ' -f 1)
	if [[ ! -d $root ]]; then
		mkdir -p "$chroot_roots"
		(
			flock 9
			[[ ! -d $root ]] || exit 0
			find "$chroot_roots" -maxdepth 1 -name "$name-*" -exec rm -rf {} +
			# A mirror may be busy.
			chroot_make > "$chroot_roots/$name.log" 2>&1 ||
				{ sleep 10 && chroot_make > "$chroot_roots/$name.log" 2>&1; } || {
				tail -n 50 "$chroot_roots/$name.log"
				exit 1
			}
			mv "$root.new" "$root"
		) 9> "$chroot_roots/$name.lock" >&2 || return 1
	fi
	echo "$root"
}

# Uses the variables of chroot_root.
chroot_make() {
	local options=() variant=minbase get='apt-get -qq -y --no-install-recommends'
	[[ ! -e $KEYRING ]] || options+=(--keyring="$KEYRING")
	if [[ $control ]]; then
		variant=buildd
		options+=(--customize-hook='mkdir -p "$1/build/debian"')
		options+=(--customize-hook="upload '$control' /build/debian/control")
		options+=(--customize-hook="chroot \"\$1\" sh -c 'cd /build &&
			$get ${arch:+-a$arch -Pcross,nocheck} build-dep ./'")
		options+=(--customize-hook='rm -r "$1/build"')
	fi
	if [[ $arch ]]; then
		options+=(--architectures="$machine,$arch")
		packages+=,crossbuild-essential-$arch
	fi
	rm -rf "$root.new"
	# Its own open files must have numbers below 10: its commands know no others.
	nice mmdebstrap --quiet --mode=root --variant=$variant --include="$packages" "${options[@]}" \
		--aptopt='Acquire::Retries "3"' --aptopt='Acquire::Check-Valid-Until "false"' \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		"$suite" "$root.new" "$(debian_mirror)" < /dev/null 3>&- 4>&- 5>&- 9>&-
}

in_chroot() {
	local root directory user=${CHROOT_USER-} variables=() name
	root=$(realpath "$1")
	directory=$(realpath "$2")
	shift 2
	for name in DEB_BUILD_OPTIONS DEB_BUILD_PROFILES; do
		[[ ! -v $name ]] || variables+=("$name=${!name}")
	done
	mkdir -p "$chroot_roots/mounted"
	# All mounts are gone with the namespace.
	# shellcheck disable=SC2016
	unshare --mount --pid ${user:+--net} --fork --kill-child sh -euc '
		root=$1 directory=$2 mounted=$3 user=$4
		shift 4
		mount -t tmpfs -o size=90% tmpfs "$mounted"
		cd "$mounted"
		mkdir upper work root
		mount -t overlay -o "lowerdir=$root,upperdir=upper,workdir=work" overlay root
		cd root
		mount -t proc proc proc
		mount --rbind /dev dev
		mount -t tmpfs -o mode=1777 tmpfs tmp
		mkdir build
		mount --bind "$directory" build
		# What apt asks names of.
		cp /etc/resolv.conf /etc/hosts etc
		home=/root
		if [ "$user" ]; then
			home=/nonexistent
			set -- setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs "$@"
		fi
		exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=$home \
			DEBIAN_FRONTEND=noninteractive \
			sh -c "cd /build && exec \"\$@\"" sh "$@"
	' sh "$root" "$directory" "$chroot_roots/mounted" "$user" env "${variables[@]}" "$@" 3>&-
}
