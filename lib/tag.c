/* SPDX-License-Identifier: MIT */
#include "tag.h"

#include "os.h"

struct tag_secret tag_secret;

void tag_init(bool on)
{
	uint8_t draws[TAG_STEPS];
	uint8_t *s = tag_secret.sequence;

	if (!on)
		return;
	os_random(&tag_secret.key, sizeof(tag_secret.key));
	os_random(draws, sizeof(draws));
	for (unsigned i = 0; i < TAG_STEPS; i++)
		s[i] = (uint8_t)(i + 1);
	/* Fisher and Yates; a byte's bias of under 6% does not help a guess of one in fifteen. */
	for (unsigned i = TAG_STEPS - 1; i > 0; i--) {
		unsigned j = draws[i] % (i + 1);
		uint8_t swap = s[i];

		s[i] = s[j];
		s[j] = swap;
	}
	for (unsigned i = 0; i < TAG_STEPS; i++) {
		tag_secret.step_of[s[i]] = (uint8_t)i;
		s[TAG_STEPS + i] = s[i];
	}
	tag_secret.dc_gva_bytes = mte_dc_gva_bytes();
	tag_secret.on = true;
}
