/* SPDX-License-Identifier: Apache-2.0 */

/* Spot -- where exactly does the program free wrongly? */

#include "report/spot.h"

#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/lock.h"
#include "base/log.h"
#include "report/inner.h"

#define LEAK (1u << SP_FINDING_LEAK)

/* Written once, before the shim is on. */
static unsigned int kinds;

/* the option */

static void complain(struct sp_span word, void (*warn)(const char *message))
{
        char bytes[SP_LOG_MAX];
        struct sp_text text;

        sp_text_init(&text, bytes, sizeof(bytes));
        sp_text_add(&text, "STREAMPOOL_ABORT_ON: %.*s is not one of ",
                    word.length < 60 ? (int)word.length : 60, word.start);
        sp_finding_words(&text, false);
        warn(bytes);
}

unsigned int sp_spot_parse(const char *text, void (*warn)(const char *message))
{
        unsigned int all = 0;

        while (*text) {
                struct sp_span word = {text, strcspn(text, ",")};
                unsigned int named;

                /* A leak is known when there is no spot any more. */
                if (sp_findings_named(word, &named) && named != LEAK)
                        all |= named & ~LEAK;
                else if (word.length)
                        complain(word, warn);
                text += word.length + (text[word.length] == ',');
        }
        return all;
}

static void warn_of_word(const char *message)
{
        sp_log(SP_LOG_WARNING, "%s; the word is left out", message);
}

/* the spot */

static void add_place(struct sp_text *text, const void *site)
{
        sp_text_add(text, " at ");
        sp_place_text(text, site);
}

/* Several short lines rather than a long one, which the log would cut. */
static void say_block(const struct sp_finding *finding)
{
        const struct sp_ledger_entry *block = &finding->block;
        char bytes[SP_LOG_MAX];
        struct sp_text text;

        if (finding->freed_by) {
                sp_text_init(&text, bytes, sizeof(bytes));
                sp_text_add(&text, "freed before by %s", finding->freed_by);
                add_place(&text, finding->freed_at);
                sp_log(SP_LOG_ERROR, "  %s", bytes);
        }
        sp_text_init(&text, bytes, sizeof(bytes));
        if (finding->kind == SP_FINDING_INTERIOR)
                sp_text_add(&text, "%llu bytes into ",
                            (unsigned long long)(finding->address - block->address));
        sp_text_add_bytes(&text, block->bytes);
        sp_text_add(&text, " of %s memory, allocated", sp_kind_name(block->kind));
        add_place(&text, block->site);
        sp_log(SP_LOG_ERROR, "  %s", bytes);
}

/* In the order in which it is read: what, where, and what became of the memory before. */
static void say(const struct sp_finding *finding)
{
        char bytes[SP_LOG_MAX];
        struct sp_text text;

        sp_text_init(&text, bytes, sizeof(bytes));
        sp_finding_word(&text, finding->kind);
        sp_text_add(&text, ": %s(0x%llx)", finding->function, (unsigned long long)finding->address);
        if (sp_finding_is_argument(finding)) {
                sp_text_add(&text, ", ");
                sp_argument_text(&text, finding);
        }
        add_place(&text, finding->site);
        sp_log(SP_LOG_ERROR, "%s", bytes);
        if (finding->has_block)
                say_block(finding);
        sp_log(SP_LOG_ERROR, "STREAMPOOL_ABORT_ON asks to stop here");
}

/* Whoever catches SIGABRT may call the driver, and so us: with a lock of ours held he would wait
 * for ever. */
static void heed(const struct sp_finding *finding)
{
        if (!(kinds >> finding->kind & 1) || sp_lock_held() != SP_RANK_NONE ||
            sp_finding_rule(finding, NULL) >= 0)
                return;
        say(finding);
        abort();
}

void sp_spot_start(void)
{
        if (sp_config()->abort_on)
                kinds = sp_spot_parse(sp_config()->abort_on, warn_of_word);
        if (kinds)
                sp_ledger_heed = heed;
}
