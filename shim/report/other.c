/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Other in words -- who else has had an address that was freed a second time?
 *
 * A block that lives there, or one that was freed before the finding's block came there.
 */

#include "report/inner.h"
#include "report/words.h"

void sp_other_text(struct sp_text *text, const struct sp_finding *finding)
{
        const struct sp_other *other = &finding->other;

        if (other->freed_by)
                sp_text_add(text, "    in the place of ");
        else
                sp_text_add(text, "    already reused: %llu bytes into ",
                            (unsigned long long)(finding->address - other->address));
        sp_text_add_bytes(text, other->bytes);
        sp_text_add(text, " of %s memory, allocated", sp_kind_name(other->kind));
}

void sp_other_text_end(struct sp_text *text, const struct sp_finding *finding)
{
        sp_text_add(text, "    and freed by %s", finding->other.freed_by);
}

void sp_other_json(struct sp_text *text, const struct sp_finding *finding)
{
        const struct sp_other *other = &finding->other;

        sp_text_add(text, ", \"reused\": ");
        if (!finding->has_other) {
                sp_text_add(text, "null");
                return;
        }
        sp_text_add(text, "{");
        sp_allocation_json(text, other->kind, other->address, other->bytes, other->site);
        sp_text_add(text, ", ");
        sp_words_text(text, "freed_by", other->freed_by);
        sp_text_add(text, ", ");
        sp_words_site(text, "freed_at", other->freed_at);
        sp_text_add(text, "}");
}
