# SPDX-License-Identifier: MIT
#
# apt for the test set-up. Sourced, not run.
#
# Packages that must not be installed on this machine (another architecture, another suite) are
# fetched by an apt that has its own root: own lists, own cache, own empty dpkg status. It reads
# the machine's mirror and the machine's apt.conf (proxy), and nothing of it is left behind
# outside that root. No mirror is ever written down: the machine's sources say which one.

KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# Lines "URI SUITE COMPONENT" of the Debian archives this machine uses.
debian_archives() {
	apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' | sed -n 's/^Debian //p' | sort -u
}

# The mirror of the main archive (not the security one).
debian_mirror() {
	debian_archives | awk '$1 !~ /security/ { print $1; exit }'
}

# private_apt_init ROOT ARCH < lines "URI SUITE COMPONENT": sets APT_OPTIONS.
private_apt_init() {
	local root arch=$2 uri suite component signed=
	root=$(realpath -m "$1")
	if [ -e "$KEYRING" ]; then
		signed="[signed-by=$KEYRING]"
	fi
	mkdir -p "$root"/{etc,state/lists/partial,cache/archives/partial,log}
	: > "$root/state/status"
	while read -r uri suite component; do
		echo "deb $signed $uri $suite $component"
	done > "$root/etc/sources.list"
	APT_ARCHIVES=$root/cache/archives
	APT_OPTIONS=(
		-qq
		-o "APT::Architecture=$arch" -o "APT::Architectures::=$arch"
		-o "Dir::Etc::sourcelist=$root/etc/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
		-o "Dir::State=$root/state" -o "Dir::State::status=$root/state/status"
		-o "Dir::Cache=$root/cache" -o "Dir::Log=$root/log"
		-o Acquire::Languages=none -o Acquire::Retries=3
		# The mirror may lag or be a frozen one; signatures are checked all the same.
		-o Acquire::Check-Valid-Until=false
		-o APT::Install-Recommends=false
	)
	if [ "$(id -u)" = 0 ]; then
		APT_OPTIONS+=(-o APT::Sandbox::User=root)
	fi
}

private_apt() {
	apt-get "${APT_OPTIONS[@]}" "$@" < /dev/null
}
