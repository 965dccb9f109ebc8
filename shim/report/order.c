/* SPDX-License-Identifier: Apache-2.0 */

/* Order in words -- what is not behind what, and on which streams? */

#include "report/inner.h"
#include "report/words.h"

/* The two handles are NVIDIA's (cuda.h, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD). */
enum { HOST, LEGACY, PER_THREAD };

static void add_stream(struct sp_text *text, uint64_t stream)
{
        if (stream == LEGACY)
                sp_text_add(text, "the legacy stream");
        else if (stream == PER_THREAD)
                sp_text_add(text, "the thread's own stream");
        else
                sp_text_add(text, "stream 0x%llx", (unsigned long long)stream);
}

static const char *const earlier_names[] = {
        [SP_EARLIER_NONE] = "none",         [SP_EARLIER_ALLOC] = "allocation",
        [SP_EARLIER_READ] = "read",         [SP_EARLIER_WRITE] = "write",
        [SP_EARLIER_ARGUMENT] = "argument",
};

static const char *const earlier_words[] = {
        [SP_EARLIER_NONE] = "",
        [SP_EARLIER_ALLOC] = "",
        [SP_EARLIER_READ] = ", which reads,",
        [SP_EARLIER_WRITE] = ", which writes,",
        [SP_EARLIER_ARGUMENT] = ", which is given it as an argument,",
};

/* Does it take that an argument is used? */
static bool is_proven(const struct sp_finding *finding)
{
        return !finding->is_argument && finding->earlier != SP_EARLIER_ARGUMENT;
}

void sp_order_text(struct sp_text *text, const struct sp_finding *finding)
{
        if (finding->stream == HOST) {
                sp_text_add(text, "at once");
                return;
        }
        sp_text_add(text, sp_finding_is_use(finding) ? ", on " : "on ");
        add_stream(text, finding->stream);
}

void sp_order_text_earlier(struct sp_text *text, const struct sp_finding *finding)
{
        sp_text_add(text, "    not behind %s%s on ", finding->earlier_by,
                    earlier_words[finding->earlier]);
        add_stream(text, finding->earlier_stream);
        if (!is_proven(finding))
                sp_text_add(text, " (if the argument is used)");
}

static void add_handle(struct sp_text *text, const char *name, uint64_t stream)
{
        if (stream == HOST)
                sp_text_add(text, "\"%s\": null", name);
        else
                sp_text_add(text, "\"%s\": \"0x%llx\"", name, (unsigned long long)stream);
}

void sp_order_json(struct sp_text *text, const struct sp_finding *finding)
{
        sp_text_add(text, ", \"order\": ");
        if (!sp_finding_is_order(finding)) {
                sp_text_add(text, "null");
                return;
        }
        sp_text_add(text, "{");
        add_handle(text, "stream", finding->stream);
        sp_text_add(text, ", \"proven\": %s, \"earlier\": {",
                    is_proven(finding) ? "true" : "false");
        sp_words_text(text, "kind", earlier_names[finding->earlier]);
        sp_text_add(text, ", ");
        sp_words_text(text, "function", finding->earlier_by);
        sp_text_add(text, ", ");
        add_handle(text, "stream", finding->earlier_stream);
        sp_text_add(text, ", ");
        sp_words_site(text, "site", finding->earlier_at);
        sp_text_add(text, "}}");
}
