/* SPDX-License-Identifier: Apache-2.0 */

/* Survey in words -- how sizes and free memory of a pool are spread */

#include "report/inner.h"
#include "report/words.h"

static void add_buckets(struct sp_text *text, const struct spm_sizes *sizes)
{
        sp_text_add(text, ", \"buckets\": [");
        for (unsigned int i = 0; i < SPM_SIZE_BUCKETS; i++)
                sp_text_add(text, "%s%llu", i ? ", " : "", (unsigned long long)sizes->buckets[i]);
        sp_text_add(text, "]");
}

/* A pool that is no more, or whose books somebody keeps, has none. */
void sp_survey_json(struct sp_text *text, const struct sp_pool_figures *pool)
{
        struct spm_survey survey;

        sp_text_add(text, ", \"survey\": ");
        if (!sp_route_survey(pool, &survey)) {
                sp_text_add(text, "null");
                return;
        }
        sp_text_add(text, "{");
        sp_words_number(text, "free_pieces", survey.free_pieces);
        sp_words_next(text, "average_free", survey.average_free);
        sp_words_next(text, "fragmentation", survey.fragmentation);
        sp_text_add(text, ", \"live\": {");
        sp_words_number(text, "count", survey.live.count);
        sp_words_next(text, "bytes", survey.live.bytes);
        sp_words_next(text, "smallest", survey.live.smallest);
        sp_words_next(text, "median", spm_sizes_percentile(&survey.live, 50));
        sp_words_next(text, "p90", spm_sizes_percentile(&survey.live, 90));
        sp_words_next(text, "p99", spm_sizes_percentile(&survey.live, 99));
        sp_words_next(text, "largest", survey.live.largest);
        add_buckets(text, &survey.live);
        sp_text_add(text, "}}");
}
