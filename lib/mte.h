/* SPDX-License-Identifier: MIT */
/*
 * mte: the tag instructions of Arm's Memory Tagging Extension, and nothing else.
 *
 * A file of its own so that the rest of the library is plain C for any CPU. Every function does
 * nothing, or returns 0, where the architecture has no MTE; on arm64 they may only run where the
 * kernel reports HWCAP2_MTE. Memory arguments carry the tag to store in bits 56-59 of the pointer.
 * asm volatile throughout: GCC 12 to 14 treat the intrinsics for LDG and IRG as pure functions.
 * Arm ARM, C6.2: LDG, STG, ST2G, STZG, DC GVA, DC GZVA.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MTE_GRANULE = 16,   /* bytes that one tag covers */
	MTE_TAG_SHIFT = 56, /* bit of a pointer where its tag begins */
	MTE_TAGS = 16,
#ifdef __aarch64__
	MTE_ARCH = true, /* the architecture has the instructions, if not this CPU */
#else
	MTE_ARCH = false,
#endif
};

/* The tag a pointer carries. */
static inline unsigned mte_pointer_tag(uintptr_t p)
{
	return p >> MTE_TAG_SHIFT & (MTE_TAGS - 1);
}

#ifdef __aarch64__

/* The pointer without its top byte. */
static inline uintptr_t mte_untag(uintptr_t p)
{
	return p & (((uintptr_t)1 << MTE_TAG_SHIFT) - 1);
}

static inline uintptr_t mte_with_tag(uintptr_t address, unsigned tag)
{
	return address | (uintptr_t)tag << MTE_TAG_SHIFT;
}

/* The tag that the granule at @address carries. */
static inline unsigned mte_memory_tag(uintptr_t address)
{
	__asm__ volatile(".arch armv8.5-a+memtag\n\tldg %0, [%0]" : "+r"(address) : : "memory");
	return mte_pointer_tag(address);
}

/* Bytes of the block that DC GVA tags at once, 0 where it is prohibited. */
static inline size_t mte_dc_gva_bytes(void)
{
	uint64_t dczid;

	__asm__("mrs %0, dczid_el0" : "=r"(dczid));
	return dczid & 16 ? 0 : (size_t)4 << (dczid & 15);
}

/* Gives @size bytes (a multiple of MTE_GRANULE) at @p the tag of @p. */
static inline void mte_set_tags(uintptr_t p, size_t size, size_t dc_gva_bytes)
{
	uintptr_t end = p + size;

	if (dc_gva_bytes && size >= 4 * dc_gva_bytes) {
		for (; p & (dc_gva_bytes - 1); p += MTE_GRANULE)
			__asm__ volatile(".arch armv8.5-a+memtag\n\tstg %0, [%0]"
					 :
					 : "r"(p)
					 : "memory");
		for (; end - p >= dc_gva_bytes; p += dc_gva_bytes)
			__asm__ volatile(".arch armv8.5-a+memtag\n\tdc gva, %0"
					 :
					 : "r"(p)
					 : "memory");
	}
	for (; end - p >= 2 * MTE_GRANULE; p += 2 * MTE_GRANULE)
		__asm__ volatile(".arch armv8.5-a+memtag\n\tst2g %0, [%0]" : : "r"(p) : "memory");
	if (p < end)
		__asm__ volatile(".arch armv8.5-a+memtag\n\tstg %0, [%0]" : : "r"(p) : "memory");
}

#else

static inline uintptr_t mte_untag(uintptr_t p)
{
	return p;
}

static inline uintptr_t mte_with_tag(uintptr_t address, unsigned tag)
{
	(void)tag;
	return address;
}

static inline unsigned mte_memory_tag(uintptr_t address)
{
	(void)address;
	return 0;
}

static inline size_t mte_dc_gva_bytes(void)
{
	return 0;
}

static inline void mte_set_tags(uintptr_t p, size_t size, size_t dc_gva_bytes)
{
	(void)p;
	(void)size;
	(void)dc_gva_bytes;
}

#endif
