/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Uses in words -- what did a copy or a set touch that it should not have?
 */

#include "report/inner.h"
#include "report/words.h"

static const char *plural(uint64_t count)
{
        return count == 1 ? "" : "s";
}

void sp_use_text(struct sp_text *text, const struct sp_finding *finding)
{
        if (finding->is_argument)
                sp_text_add(text, "is an argument");
        else
                sp_text_add(text, "%s %llu byte%s", finding->is_write ? "writes" : "reads",
                            (unsigned long long)finding->touched, plural(finding->touched));
}

/* How far it goes is told in bytes: the size of the block, which follows, may be rounded. */
static void add_excess(struct sp_text *text, const struct sp_finding *finding)
{
        sp_text_add(text, "    outside from byte %llu on, and %llu byte%s past the end of %llu\n",
                    (unsigned long long)finding->outside, (unsigned long long)finding->beyond,
                    plural(finding->beyond), (unsigned long long)finding->block.bytes);
}

/* Rows may lie between each other, so that it is not the distance which says where they meet. */
static void add_shared(struct sp_text *text, const struct sp_finding *finding)
{
        sp_text_add(text, "    read from 0x%llx on, and 0x%llx is in both\n",
                    (unsigned long long)finding->source, (unsigned long long)finding->shared);
}

void sp_use_text_more(struct sp_text *text, const struct sp_finding *finding)
{
        if (finding->kind == SP_FINDING_OVERLAP)
                add_shared(text, finding);
        else if (finding->kind == SP_FINDING_OUT_OF_BOUNDS || finding->kind == SP_FINDING_OVERRUN)
                add_excess(text, finding);
        else if (!finding->has_block)
                sp_text_add(text, "    in memory of the pool that is in no block; if one was freed "
                                  "there, it is not remembered\n");
}

static void add_extent(struct sp_text *text, const struct sp_finding *finding)
{
        sp_words_number(text, "outside", finding->outside);
        sp_text_add(text, ", ");
        sp_words_number(text, "beyond", finding->beyond);
}

void sp_use_json(struct sp_text *text, const struct sp_finding *finding)
{
        sp_text_add(text, ", \"use\": ");
        if (!sp_finding_is_use(finding)) {
                sp_text_add(text, "null");
                return;
        }
        sp_text_add(text, "{");
        sp_words_text(text, "access",
                      finding->is_argument ? "argument"
                      : finding->is_write  ? "write"
                                           : "read");
        sp_text_add(text, ", ");
        sp_words_number(text, "bytes", finding->touched);
        if (finding->kind == SP_FINDING_OUT_OF_BOUNDS) {
                sp_text_add(text, ", ");
                add_extent(text, finding);
        }
        sp_text_add(text, "}");
}

void sp_overrun_json(struct sp_text *text, const struct sp_finding *finding)
{
        sp_text_add(text, ", \"overrun\": ");
        if (finding->kind != SP_FINDING_OVERRUN) {
                sp_text_add(text, "null");
                return;
        }
        sp_text_add(text, "{");
        add_extent(text, finding);
        sp_text_add(text, "}");
}

void sp_overlap_json(struct sp_text *text, const struct sp_finding *finding)
{
        sp_text_add(text, ", \"overlap\": ");
        if (finding->kind != SP_FINDING_OVERLAP)
                sp_text_add(text, "null");
        else
                sp_text_add(text, "{\"source\": \"0x%llx\", \"shared\": \"0x%llx\"}",
                            (unsigned long long)finding->source,
                            (unsigned long long)finding->shared);
}
