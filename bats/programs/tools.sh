# SPDX-License-Identifier: MIT
# Work on a tree of files with the small tools, several of which use threads.
set -eu

mkdir -p tree
i=0
while [ $i -lt 60 ]; do
	mkdir -p tree/$((i % 7))/$((i % 3))
	seq $i $((i * 100)) > tree/$((i % 7))/$((i % 3))/file$i
	i=$((i + 1))
done
seq 200000 | sed 's/\(.\)\(.*\)/\2\1/' | sort --parallel=2 -S 4M -r | uniq -w 3 | sha256sum
seq 300000 | awk '{ n[$1 % 5003] = n[$1 % 5003] $1 } END { for (k in n) print k, length(n[k]) }' |
	sort -n | sha256sum
tar -c --sort=name --mtime=2024-01-01 --owner=0 --group=0 --numeric-owner tree > tree.tar
sha256sum < tree.tar
xz -T2 --block-size=256KiB -1 -k tree.tar
sha256sum < tree.tar.xz
gzip -9 -n -k tree.tar
sha256sum < tree.tar.gz
mkdir unpacked
tar -xJf tree.tar.xz -C unpacked
diff -r tree unpacked/tree
zcat tree.tar.gz | cmp - tree.tar
find unpacked -type f -name 'file*' -size -4k -print0 | sort -z | xargs -0 -n 5 -P 2 cksum |
	sort | sha256sum
grep -rchE '^([0-9])\1+$' tree | paste -sd+ | sha256sum
find unpacked -type d | sort | while read -r directory; do
	ls -1 "$directory" | wc -l
done | sort | uniq -c
