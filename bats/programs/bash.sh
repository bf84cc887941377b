# SPDX-License-Identifier: MIT
# A long script: every line of its output depends on data that has been through the heap.
set -eu

# Associative and indexed arrays whose entries come and go.
declare -A entries
for ((i = 0; i < 30000; i++)); do
	key=k$((i * 7919 % 2000))
	printf -v entries[$key] '%*d' $((i % 200 + 1)) "$i"
	if ((i % 13 == 0)); then
		unset "entries[k$((i % 2000))]"
	fi
done
for key in "${!entries[@]}"; do
	echo "$key=${entries[$key]}"
done | sort | sha256sum

# Strings: growing, cutting, replacing, matching.
text=
for ((i = 0; i < 4000; i++)); do
	text+="word$i "
	if ((${#text} > 20000)); then
		text=${text:15000}
	fi
done
text=${text//word/w}
echo "${#text} ${text^^}" | sha256sum
count=0
while [[ $text =~ w([0-9]*7)\ (.*) ]]; do
	count=$((count + BASH_REMATCH[1]))
	text=${BASH_REMATCH[2]}
done
echo "$count"

# Functions that call themselves, with locals.
fibonacci() {
	local n=$1 a b
	if ((n < 2)); then
		result=$n
		return
	fi
	fibonacci $((n - 1))
	a=$result
	fibonacci $((n - 2))
	b=$result
	result=$((a + b))
}
fibonacci 17
echo "$result"

# Subshells, command and process substitution, pipelines, here-documents.
total=0
for ((i = 0; i < 300; i++)); do
	total=$((total + $(echo $((i * i)))))
done
echo "$total"
while read -r left right; do
	echo "$left:$right"
done < <(paste -d ' ' <(seq 1 500) <(seq 500 -1 1)) | sha256sum
for i in {1..50}; do
	cat <<-END
	$i: $(printf '%s-' "${!entries[@]}" | wc -c)
	END
done | sort -n | tail -n 1

# mapfile, printf, arithmetic, and globs over many names.
mapfile -t lines < <(seq 1 20000)
unset 'lines[100]'
printf '%s\n' "${lines[@]/%5/five}" | sha256sum
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
for i in {1..500}; do
	: > "$directory/file $i"
done
names=("$directory"/*)
echo "${#names[@]}" "${names[@]##*/}" | sha256sum
eval "$(for i in {1..300}; do echo "f$i() { echo \$((\$1 + $i)); }"; done)"
f300 7
