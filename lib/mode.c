/* SPDX-License-Identifier: MIT */
#include "mode.h"

#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lease.h"
#include "options.h"
#include "stats.h"
#include "text.h"

/* Newer than bookworm's headers, or arm64's alone. */
#ifndef HWCAP2_MTE
#define HWCAP2_MTE (1UL << 18)
#endif
#ifndef PR_SET_TAGGED_ADDR_CTRL
#define PR_SET_TAGGED_ADDR_CTRL 55
#define PR_TAGGED_ADDR_ENABLE   (1UL << 0)
#endif
#ifndef PR_MTE_TCF_SYNC
#define PR_MTE_TCF_SYNC  (1UL << 1)
#define PR_MTE_TCF_ASYNC (1UL << 2)
#define PR_MTE_TAG_SHIFT 3
#endif

enum {
	EXIT_NO_MTE = 78, /* EX_CONFIG of sysexits(3), which systemd prints by name */
};

/* What the threads of a process in @mode have in PR_SET_TAGGED_ADDR_CTRL. */
static unsigned long control_of(unsigned mode)
{
	unsigned long control = PR_TAGGED_ADDR_ENABLE;

	if (mode != VATALLOC_MODE_ASYNC)
		control |= PR_MTE_TCF_SYNC;
	if (mode != VATALLOC_MODE_SYNC)
		control |= PR_MTE_TCF_ASYNC;
	return control;
}

static unsigned enable(unsigned mode)
{
	unsigned long control = control_of(mode) | 0xfffeUL << PR_MTE_TAG_SHIFT;

#ifdef __aarch64__
	if (!(getauxval(AT_HWCAP2) & HWCAP2_MTE))
		return VATALLOC_FALLBACK_NO_MTE;
#else
	return VATALLOC_FALLBACK_NO_MTE;
#endif
	if (prctl(PR_SET_TAGGED_ADDR_CTRL, control, 0, 0, 0) < 0)
		return VATALLOC_FALLBACK_TAGGED_ABI;
	return VATALLOC_FALLBACK_NONE;
}

static void fall_back(unsigned asked, unsigned reason)
{
	const char *why = reason == VATALLOC_FALLBACK_NO_MTE
	                          ? "no MTE here"
	                          : "the kernel refuses tagged addresses (sysctl "
	                            "abi.tagged_addr_disabled, or seccomp)";

	vatalloc_stats.fallback = reason;
	/* auto asks for nothing, so on most CPUs there is nothing to say. */
	if (asked == VATALLOC_MODE_MTE && reason == VATALLOC_FALLBACK_NO_MTE)
		return;
	if (options.abort_fallback && asked != VATALLOC_MODE_MTE) {
		say(why, ", and mode '", mode_name(asked), "' has fallback=abort", NULL);
		_exit(EXIT_NO_MTE);
	}
	say(why, ", running in mode 'address'", NULL);
}

void mode_init(void)
{
	unsigned mode = options.mode;
	unsigned reason;

	vatalloc_stats.mode_requested = mode;
	vatalloc_stats.granularity = options.granularity;
	if (mode == VATALLOC_MODE_UNSET)
		mode = VATALLOC_MODE_MTE;
	if (mode >= VATALLOC_MODE_SYNC) {
		reason = enable(mode);
		if (reason) {
			fall_back(mode, reason);
			mode = VATALLOC_MODE_ADDRESS;
		}
	}
	if (mode == VATALLOC_MODE_COUNT)
		say("mode 'count' measures only, it protects nothing", NULL);
	vatalloc_stats.mode = mode;
	vatalloc_stats.lives = mode_lives();
}

bool mode_keeps_checks(unsigned long control)
{
	static bool said;
	unsigned long needed = control_of(vatalloc_stats.mode);

	if (!mode_has_tags() || (control & needed) == needed)
		return true;
	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		say("the program may not switch off the tag checks of its heap by "
		    "PR_SET_TAGGED_ADDR_CTRL: mode 'address' leaves tags to it",
			NULL);
	return false;
}

void mode_give_up(void)
{
	vatalloc_stats.fallback = VATALLOC_FALLBACK_NO_SPACE;
	vatalloc_stats.mode = VATALLOC_MODE_OFF;
}

uint8_t mode_lives(void)
{
	if (vatalloc_stats.mode == VATALLOC_MODE_COUNT && options.lives)
		return (uint8_t)options.lives;
	return vatalloc_stats.mode == VATALLOC_MODE_ADDRESS ? 1 : LIVES_MTE;
}

bool mode_has_tags(void)
{
	return vatalloc_stats.mode >= VATALLOC_MODE_SYNC;
}
