/* SPDX-License-Identifier: Apache-2.0 */

/* Arguments in words -- what was a kernel given, and how sure is it that it used it? */

#include "base/config.h"
#include "report/inner.h"
#include "report/lines.h"
#include "report/words.h"

#define NAME_MAX 256

/* As it was written, unless names are not wanted: that takes another library. */
static void name_kernel(const struct sp_finding *finding, char *name, size_t size)
{
        struct sp_text text;

        if (sp_config()->symbols) {
                sp_demangle(finding->kernel, name, size);
                return;
        }
        sp_text_init(&text, name, size);
        sp_text_add(&text, "%s", finding->kernel);
}

void sp_argument_text(struct sp_text *text, const struct sp_finding *finding)
{
        char name[NAME_MAX];

        sp_text_add(text, "argument %u of ", finding->argument);
        if (finding->kernel) {
                name_kernel(finding, name, sizeof(name));
                sp_text_add(text, "kernel %s", name);
        } else {
                sp_text_add(text, "a kernel");
        }
        sp_text_add(text, ", not proven access");
}

void sp_argument_json(struct sp_text *text, const struct sp_finding *finding)
{
        char name[NAME_MAX];

        sp_text_add(text, ", \"argument\": ");
        if (!sp_finding_is_argument(finding)) {
                sp_text_add(text, "null");
                return;
        }
        sp_text_add(text, "{");
        sp_words_number(text, "number", finding->argument);
        sp_text_add(text, ", ");
        if (finding->kernel)
                name_kernel(finding, name, sizeof(name));
        sp_words_text(text, "kernel", finding->kernel ? name : NULL);
        sp_text_add(text, "}");
}
