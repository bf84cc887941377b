/* SPDX-License-Identifier: MIT */
/*
 * evidence: whether a crash was a heap error, and the report about it, from what the process wrote
 * and what its core dump tells.
 */
#pragma once

#include "dump.h"

/*
 * The report about a crash in the journal's current entry, which @dump was read from; the caller
 * frees what is in it. -ENOENT if there is no sign of a heap error.
 */
int evidence_read(sd_journal *journal, const struct dump *dump, struct crash *ret);
