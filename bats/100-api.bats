#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The functions of the malloc family, each with its edges, in every mode.

load helpers
load cases

# malloc

@test "malloc(0) gives an object of its own" {
	passes "$WITHOUT_TAGS" api_malloc zero
}

@test "malloc aligns every size to 16 bytes and all bytes are usable" {
	passes "$WITHOUT_TAGS" api_malloc small-sizes
}

@test "malloc serves sizes around each power of two up to 4 GiB" {
	passes "$WITHOUT_TAGS" api_malloc large-sizes
}

@test "huge objects keep out of each other" {
	passes "$WITHOUT_TAGS" api_malloc huge
}

@test "malloc beyond PTRDIFF_MAX, or what the machine has, is ENOMEM" {
	passes "$WITHOUT_TAGS,off" api_malloc too-large
}

@test "malloc of terabytes fails without tables for them" {
	passes "$WITHOUT_TAGS" api_malloc too-large-costs-nothing
}

@test "ten thousand live objects do not overlap" {
	passes "$WITHOUT_TAGS,off" api_malloc disjoint
}

# calloc

@test "calloc zeroes" {
	passes "$WITHOUT_TAGS" api_calloc zeroed
}

@test "calloc zeroes where dirty objects were freed" {
	passes "$WITHOUT_TAGS,off" api_calloc zeroed-after-reuse
}

@test "calloc zeroes where realloc left dirty bytes" {
	passes "$WITHOUT_TAGS,off" api_calloc zeroed-after-realloc
}

@test "calloc notices an overflow" {
	passes "$WITHOUT_TAGS,off" api_calloc overflow
}

@test "calloc of nothing gives an object of its own" {
	passes "$WITHOUT_TAGS" api_calloc zero
}

@test "calloc of gigabytes costs no memory until it is written" {
	passes "$WITHOUT_TAGS" api_calloc huge-costs-nothing
}

# realloc and reallocarray

@test "realloc of NULL is malloc" {
	passes "$WITHOUT_TAGS" api_realloc null-is-malloc
}

@test "realloc to 0 frees and gives NULL" {
	passes "$WITHOUT_TAGS" api_realloc zero-frees
}

@test "realloc keeps the contents between any two sizes" {
	passes "$WITHOUT_TAGS,off" api_realloc contents
}

@test "realloc grows and shrinks in small steps" {
	passes "$WITHOUT_TAGS" api_realloc steps
}

@test "a buffer that realloc grows again and again is moved seldom" {
	passes "$WITHOUT_TAGS" api_realloc growth
}

@test "realloc grows to 5 GiB and shrinks again, every page arrives" {
	passes "$WITHOUT_TAGS" api_realloc huge
}

@test "realloc moves the pages of many large objects past each other" {
	passes "$WITHOUT_TAGS" api_realloc huge-interleaved
}

@test "a realloc that fails leaves the object alone" {
	passes "$WITHOUT_TAGS,off" api_realloc failure-keeps
}

@test "realloc keeps the contents of aligned objects" {
	passes "$WITHOUT_TAGS" api_realloc aligned
}

@test "realloc to the usable size and back keeps the contents" {
	passes "$WITHOUT_TAGS" api_realloc same-size
}

@test "reallocarray is realloc of a product" {
	passes "$WITHOUT_TAGS" api_realloc array
}

@test "reallocarray notices an overflow and leaves the object alone" {
	passes "$WITHOUT_TAGS" api_realloc array-overflow
}

# free

@test "free of NULL does nothing" {
	passes "$WITHOUT_TAGS,off" api_free null
}

@test "free keeps errno" {
	passes "$WITHOUT_TAGS,off" api_free keeps-errno
}

@test "free keeps errno when memory is locked and madvise fails" {
	passes "$WITHOUT_TAGS" api_free keeps-errno-locked
}

@test "free_sized frees and keeps errno" {
	passes "$WITHOUT_TAGS" api_free sized
}

@test "free_aligned_sized frees and keeps errno" {
	passes "$WITHOUT_TAGS" api_free aligned-sized
}

# Aligned

@test "posix_memalign aligns up to 64 MiB, with all sizes" {
	passes "$WITHOUT_TAGS" api_aligned posix
}

@test "posix_memalign refuses bad alignments by EINVAL and leaves its result alone" {
	passes "$WITHOUT_TAGS,off" api_aligned posix-invalid
}

@test "aligned_alloc and memalign align up to 1 GiB" {
	passes "$WITHOUT_TAGS" api_aligned up-to-1g
}

@test "aligned_alloc takes sizes that are no multiple of the alignment" {
	passes "$WITHOUT_TAGS" api_aligned odd-sizes
}

@test "memalign rounds odd alignments up, aligned_alloc does too or fails" {
	passes "$WITHOUT_TAGS" api_aligned odd-alignments
}

@test "aligned objects beyond PTRDIFF_MAX are ENOMEM" {
	passes "$WITHOUT_TAGS,off" api_aligned too-large
}

@test "valloc gives pages, pvalloc whole ones" {
	passes "$WITHOUT_TAGS" api_aligned pages
}

# malloc_usable_size

@test "the usable size of NULL is 0" {
	passes "$WITHOUT_TAGS,off" api_usable null
}

@test "all usable bytes are the program's, and their number is constant" {
	passes "$WITHOUT_TAGS,off" api_usable writable
}

@test "the usable size of large objects is near what was asked for" {
	passes "$WITHOUT_TAGS" api_usable large
}

@test "realloc keeps all usable bytes" {
	passes "$WITHOUT_TAGS" api_usable kept-by-realloc
}

# The rest of the family

@test "malloc_trim leaves live objects alone" {
	passes "$WITHOUT_TAGS,off" api_info trim
}

@test "malloc_trim gives back all but the pages of live objects" {
	passes "$WITHOUT_TAGS" api_info trim-gives-back
}

@test "mallopt accepts what glibc accepts" {
	passes "$WITHOUT_TAGS,off" api_info opt
}

@test "mallinfo has no negative numbers" {
	passes "$WITHOUT_TAGS" api_info info
}

@test "mallinfo2 follows what is in use" {
	passes "$WITHOUT_TAGS" api_info info2
}

@test "malloc_stats prints the counters on stderr" {
	run_with_lib mode=address api_info stats
	assert_success
	assert_equal "$output" ''
	assert_regex "$stderr" $'(^|\n)vatalloc: mode address, lives 1\n'
	assert_regex "$stderr" $'\nvatalloc: lives_used [1-9][0-9]*(\n|$)'
}

@test "malloc_info prints well-formed XML with the counters" {
	requires python3
	run_with_lib mode=address api_info xml
	assert_success
	run python3 -c '
import sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.argv[1])
text = tree.tostring(root, encoding="unicode")
assert root.tag == "malloc", root.tag
assert root.get("version"), "no version"
for name in "lives_used", "bytes_retired", "space_left", "dead_resident":
    assert name in text, name
' "$output"
	assert_success
}

@test "malloc_info refuses options" {
	passes "$WITHOUT_TAGS" api_info xml-invalid
}

# jemalloc's interface

@test "mallocx and dallocx" {
	passes "$WITHOUT_TAGS" api_jemalloc plain
}

@test "mallocx aligns as its flags say" {
	passes "$WITHOUT_TAGS" api_jemalloc alignment
}

@test "MALLOCX_ZERO zeroes" {
	passes "$WITHOUT_TAGS" api_jemalloc zero
}

@test "rallocx with MALLOCX_ZERO zeroes what is new" {
	passes "$WITHOUT_TAGS" api_jemalloc zero-realloc
}

@test "rallocx keeps contents and alignment" {
	passes "$WITHOUT_TAGS" api_jemalloc resize
}

@test "xallocx does not move and tells the true size" {
	passes "$WITHOUT_TAGS" api_jemalloc in-place
}

@test "nallocx foretells what sallocx says" {
	passes "$WITHOUT_TAGS" api_jemalloc sizes-foretold
}

@test "sizes too large for jemalloc's interface give NULL or 0" {
	passes "$WITHOUT_TAGS" api_jemalloc too-large
}

@test "arenas and tcaches of the program's own libjemalloc are accepted" {
	passes "$WITHOUT_TAGS,off" api_jemalloc arena-and-tcache
}

@test "malloc's and jemalloc's functions work on each other's objects" {
	passes "$WITHOUT_TAGS,off" api_jemalloc mixed
}

@test "mallctl goes to the program's own libjemalloc" {
	passes "$WITHOUT_TAGS" api_jemalloc control
}

# C++

@test "operator new and delete" {
	passes "$WITHOUT_TAGS" cxx_new plain
}

@test "operator delete of nullptr does nothing" {
	passes "$WITHOUT_TAGS,off" cxx_new null
}

@test "nothrow operators give nullptr" {
	passes "$WITHOUT_TAGS,off" cxx_new nothrow
}

@test "aligned operators align" {
	passes "$WITHOUT_TAGS" cxx_new aligned
}

@test "sized operator delete" {
	passes "$WITHOUT_TAGS" cxx_new sized
}

@test "new expressions, also of over-aligned types" {
	passes "$WITHOUT_TAGS,off" cxx_new expressions
}

@test "operator new throws std::bad_alloc" {
	passes "$WITHOUT_TAGS,off" cxx_new bad-alloc
}

@test "std::bad_alloc unwinds the frames of a thread" {
	passes "$WITHOUT_TAGS,off" cxx_new bad-alloc-unwinds
}

@test "the new handler is called until there is none" {
	passes "$WITHOUT_TAGS,off" cxx_new new-handler
}

@test "operators and malloc are one heap" {
	passes "$WITHOUT_TAGS,off" cxx_new mixed
}

@test "a C program loads a C++ module, which catches bad_alloc" {
	passes "$WITHOUT_TAGS,off" dlopen_cxx "$VATALLOC_TEST_DIR/so_cxx.so"
}

@test "a C++ program linked with jemalloc has one heap" {
	passes "$WITHOUT_TAGS,off" cxx_jemalloc
}

# With tags; sync and async differ in the faults only, so that one is enough here

@test "malloc with tags" {
	passes sync api_malloc
}

@test "calloc with tags" {
	passes sync api_calloc
}

@test "realloc and reallocarray with tags" {
	passes sync api_realloc
}

@test "free with tags keeps errno" {
	passes sync api_free keeps-errno
}

@test "free_sized and free_aligned_sized with tags" {
	passes sync api_free sized
	passes sync api_free aligned-sized
}

@test "aligned objects with tags" {
	passes sync api_aligned
}

@test "malloc_usable_size with tags" {
	passes sync api_usable
}

@test "malloc_trim and mallinfo with tags" {
	passes sync api_info trim
	passes sync api_info info2
}

@test "jemalloc's interface with tags" {
	passes sync api_jemalloc
}

@test "C++ with tags" {
	passes "$WITH_TAGS" cxx_new
	passes sync cxx_jemalloc
	passes sync dlopen_cxx "$VATALLOC_ARM64_TEST_DIR/so_cxx.so"
}
