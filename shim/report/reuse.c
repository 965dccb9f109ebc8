/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reuse in words -- who else has had an address that was freed a second time?
 *
 * A block that lives there, or one that was freed before the finding's block came there.
 */

#include "report/inner.h"
#include "report/words.h"

void sp_reuse_text(struct sp_text *text, const struct sp_finding *finding)
{
        const struct sp_reuse *reuse = &finding->reuse;

        if (reuse->freed_by)
                sp_text_add(text, "    in the place of ");
        else
                sp_text_add(text, "    already reused: %llu bytes into ",
                            (unsigned long long)(finding->address - reuse->address));
        sp_text_add_bytes(text, reuse->bytes);
        sp_text_add(text, " of %s memory, allocated", sp_kind_name(reuse->kind));
}

void sp_reuse_text_end(struct sp_text *text, const struct sp_finding *finding)
{
        sp_text_add(text, "    and freed by %s", finding->reuse.freed_by);
}

void sp_reuse_json(struct sp_text *text, const struct sp_finding *finding)
{
        const struct sp_reuse *reuse = &finding->reuse;

        sp_text_add(text, ", \"reused\": ");
        if (!finding->has_reuse) {
                sp_text_add(text, "null");
                return;
        }
        sp_text_add(text, "{");
        sp_allocation_json(text, reuse->kind, reuse->address, reuse->bytes, reuse->site);
        sp_text_add(text, ", ");
        sp_words_text(text, "freed_by", reuse->freed_by);
        sp_text_add(text, ", ");
        sp_words_site(text, "freed_at", reuse->freed_at);
        sp_text_add(text, "}");
}
