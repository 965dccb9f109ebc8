/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Report as SARIF -- for tools that show findings beside the code
 *
 * SARIF 2.1.0 (OASIS): one run, a result a line. A result's location is the
 * innermost line that is known, which is one of Python where the interpreter called;
 * else it is a library and an offset, as in the other forms. The stack of a result
 * has every frame; what is told of the block, where it was allocated and where it
 * was freed before, are related locations.
 */

#include <streampool/streampool.h>
#include <string.h>

#include "report/advice.h"
#include "report/inner.h"
#include "report/words.h"

#define LEAK SP_FINDING_COUNT

/* A relative reference (RFC 3986): what is known is a path, or a name as "<string>". */
static void add_uri(struct sp_text *text, const char *path)
{
        static const char plain[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~+";

        sp_text_add(text, "\"uri\": \"");
        for (; *path; path++)
                sp_text_add(text, strchr(plain, *path) ? "%c" : "%%%02X", (unsigned char)*path);
        sp_text_add(text, "\"");
}

static void add_artifact(struct sp_text *text, const char *path, unsigned int line)
{
        sp_text_add(text, "\"physicalLocation\": {\"artifactLocation\": {");
        add_uri(text, path);
        sp_text_add(text, "}");
        if (line)
                sp_text_add(text, ", \"region\": {\"startLine\": %u}", line);
}

static void add_address(struct sp_text *text, const struct sp_place *place)
{
        sp_text_add(text, ", \"address\": {\"relativeAddress\": %llu, ",
                    (unsigned long long)place->offset);
        sp_words_text(text, "fullyQualifiedName", place->symbol ? place->symbol : "");
        sp_text_add(text, "}}");
}

static void add_function(struct sp_text *text, const char *function)
{
        if (!function)
                return;
        sp_text_add(text, ", \"logicalLocations\": [{");
        sp_words_text(text, "fullyQualifiedName", function);
        sp_text_add(text, ", \"kind\": \"function\"}]");
}

static void add_native_location(struct sp_text *text, const void *address)
{
        struct sp_place place = sp_place_of(address);
        struct sp_line line = {0};

        (void)sp_place_lines(address, &line, 1);
        if (line.line)
                add_artifact(text, line.file, line.line);
        else
                add_artifact(text, place.path ? place.path : "unknown", 0);
        add_address(text, &place);
        add_function(text, line.function[0] ? line.function : place.symbol);
}

static void add_python_location(struct sp_text *text, const struct sp_stack_line *line)
{
        add_artifact(text, line->file, line->line);
        sp_text_add(text, "}");
        add_function(text, line->function);
}

/* The members of a location. */
static void add_location(struct sp_text *text, const void *site)
{
        const struct sp_stack *stack = sp_stack_of(site);

        if (stack && stack->pythons)
                add_python_location(text, stack->line[0]);
        else
                add_native_location(text, site);
}

static void add_stack(struct sp_text *text, const void *site)
{
        const struct sp_stack *stack = sp_stack_of(site);
        unsigned int natives = stack ? sp_place_natives(stack) : 0;

        if (!stack)
                return;
        sp_text_add(text, ", \"stacks\": [{\"frames\": [{\"location\": {");
        add_native_location(text, site);
        for (unsigned int i = 0; i < natives; i++) {
                sp_text_add(text, "}}, {\"location\": {");
                add_native_location(text, stack->native[i]);
        }
        for (unsigned int i = 0; i < stack->pythons; i++) {
                sp_text_add(text, "}}, {\"location\": {");
                add_python_location(text, stack->line[i]);
        }
        sp_text_add(text, "}}]}]");
}

static void begin_result(struct sp_text *text, unsigned int rule, bool is_first)
{
        sp_text_add(text, "%s\n      {\"ruleId\": \"%s\", \"ruleIndex\": %u, \"level\": \"%s\", ",
                    is_first ? "" : ",", sp_advice(rule)->id, rule,
                    sp_advice(rule)->is_error ? "error" : "warning");
}

static void add_message(struct sp_text *text, const char *bytes)
{
        sp_text_add(text, "\"message\": {");
        sp_words_text(text, "text", bytes);
        sp_text_add(text, "}");
}

static void add_where(struct sp_text *text, const void *site)
{
        sp_text_add(text, ", \"locations\": [{");
        add_location(text, site);
        sp_text_add(text, "}]");
        add_stack(text, site);
}

static void add_related(struct sp_text *text, const char *message, const void *site, int id)
{
        sp_text_add(text, "%s{\"id\": %d, ", id ? ", " : "", id);
        add_message(text, message);
        sp_text_add(text, ", ");
        add_location(text, site);
        sp_text_add(text, "}");
}

static void add_reuse(struct sp_text *text, const struct sp_reuse *reuse, int id)
{
        if (!reuse->freed_by) {
                add_related(text, "its address is of what was allocated here", reuse->site, id);
                return;
        }
        add_related(text, "its address had been allocated here", reuse->site, id);
        add_related(text, "and freed here", reuse->freed_at, id + 1);
}

static void add_finding(struct sp_text *text, const struct sp_finding *finding, bool is_first)
{
        const struct sp_ledger_entry *block = &finding->block;
        char words_bytes[512];
        struct sp_text words;
        int id = 0;

        sp_text_init(&words, words_bytes, sizeof(words_bytes));
        sp_text_add(&words, "%s: %s(0x%llx)", sp_advice(finding->kind)->title, finding->function,
                    (unsigned long long)finding->address);
        if (sp_finding_is_use(finding) && finding->touched)
                sp_text_add(&words, " %s %llu bytes", finding->is_write ? "writes" : "reads",
                            (unsigned long long)finding->touched);
        if (finding->kind == SP_FINDING_OUT_OF_BOUNDS || finding->kind == SP_FINDING_OVERRUN)
                sp_text_add(&words, ", from byte %llu on outside",
                            (unsigned long long)finding->outside);
        if (finding->kind == SP_FINDING_OVERLAP)
                sp_text_add(&words, ", and 0x%llx is read as well",
                            (unsigned long long)finding->shared);
        if (sp_finding_is_argument(finding)) {
                sp_text_add(&words, ", ");
                sp_argument_text(&words, finding);
        }
        if (finding->has_block) {
                sp_text_add(&words, sp_finding_is_argument(finding) ? ", in " : " of ");
                sp_text_add_bytes(&words, block->bytes);
                sp_text_add(&words, " of %s memory", sp_kind_name(block->kind));
        }
        begin_result(text, finding->kind, is_first);
        add_message(text, words_bytes);
        sp_text_add(text, ", \"occurrenceCount\": %llu", (unsigned long long)finding->times);
        add_where(text, finding->site);
        if (finding->has_block) {
                sp_text_add(text, ", \"relatedLocations\": [");
                add_related(text, "allocated here", block->site, id++);
                if (finding->freed_by)
                        add_related(text, "freed before here", finding->freed_at, id++);
                if (sp_finding_is_order(finding) && finding->earlier != SP_EARLIER_ALLOC)
                        add_related(text, "not behind what is here", finding->earlier_at, id++);
                if (finding->has_reuse)
                        add_reuse(text, &finding->reuse, id);
                sp_text_add(text, "]");
        }
        sp_text_add(text, "}");
}

static void add_leak(struct sp_text *text, const struct sp_leak *leak, bool is_first)
{
        char words_bytes[256];
        struct sp_text words;

        sp_text_init(&words, words_bytes, sizeof(words_bytes));
        sp_text_add(&words, "%s: ", sp_advice(LEAK)->title);
        sp_text_add_bytes(&words, leak->bytes);
        sp_text_add(&words, " of %s memory in %llu allocation%s", sp_kind_name(leak->kind),
                    (unsigned long long)leak->count, leak->count == 1 ? "" : "s");
        begin_result(text, LEAK, is_first);
        add_message(text, words_bytes);
        sp_text_add(text, ", \"occurrenceCount\": %llu", (unsigned long long)leak->count);
        add_where(text, leak->site);
        sp_text_add(text, "}");
}

static void add_tool(struct sp_text *text)
{
        sp_text_add(text, "    \"tool\": {\"driver\": {\"name\": \"streampool\", ");
        sp_words_text(text, "version", STREAMPOOL_VERSION);
        sp_text_add(text, ", \"rules\": [");
        for (unsigned int i = 0; i <= LEAK; i++) {
                sp_text_add(text, "%s\n      {\"id\": \"%s\", \"shortDescription\": {",
                            i ? "," : "", sp_advice(i)->id);
                sp_words_text(text, "text", sp_advice(i)->title);
                sp_text_add(text, "}, \"help\": {");
                sp_words_text(text, "text", sp_advice(i)->cure);
                sp_text_add(text, "}}");
        }
        sp_text_add(text, "]}},\n");
}

void sp_report_sarif(const struct sp_report *report, struct sp_text *text)
{
        bool is_first = true;

        sp_text_add(text, "{\"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\", "
                          "\"version\": \"2.1.0\", \"runs\": [{\n");
        add_tool(text);
        sp_text_add(text,
                    "    \"invocations\": [{\"executionSuccessful\": true, \"processId\": %ld, ",
                    report->process);
        sp_words_text(text, "machine", report->host);
        sp_text_add(text, "}],\n    \"results\": [");
        for (size_t i = 0; i < report->findings; i++, is_first = false)
                add_finding(text, &report->finding[i], is_first);
        for (size_t i = 0; i < report->leaks; i++, is_first = false)
                add_leak(text, &report->leak[i], is_first);
        sp_text_add(text, "]\n  }]}\n");
}
