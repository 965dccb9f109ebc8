/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Config -- the table of options, and who reads it
 *
 * Links base/config.c alone; the log is a function of this file.
 */

#include "base/config.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static char heard[4096];

static void hear(const char *message)
{
        size_t length = strlen(heard);

        snprintf(heard + length, sizeof(heard) - length, "%s\n", message);
}

static struct sp_config config;
static struct sp_config before[16]; /* a leak checker follows these */
static unsigned int reads;

static void read_from(const char *first, const char *second)
{
        char *environment[] = {(char *)first, (char *)second, NULL};

        before[reads++] = config;
        heard[0] = '\0';
        sp_config_read(&config, environment, hear);
}

Test(config, defaults_are_those_of_the_table_and_need_no_warning)
{
        read_from(NULL, NULL);
        cr_expect_eq(config.mode, SP_MODE_POOL);
        cr_expect_eq(config.free_mode, SP_FREE_MODE_POOL);
        cr_expect_eq(config.backing, SP_BACKING_AUTO);
        cr_expect_eq(config.format, SP_FORMAT_AUTO);
        cr_expect_str_eq(config.report, "-");
        cr_expect_str_eq(config.only, "");
        cr_expect_eq(config.exitcode, 0);
        cr_expect_eq(config.log, 1);
        cr_expect_eq(config.growth, SP_GROWTH_BALANCED);
        cr_expect_eq(config.decay, 10000000000);
        cr_expect_eq(config.keep.share, 100000);
        cr_expect_eq(config.batch, 128);
        cr_expect_eq(config.batch_bytes, 32ULL << 20);
        cr_expect_eq(config.pending.bytes, 0);
        cr_expect_not(config.help || config.disable || config.diag);
        cr_expect_str_eq(config.rank, "0");
        cr_expect_str_empty(heard);
}

Test(config, values_of_every_kind_are_read)
{
        read_from("STREAMPOOL_MODE=observe", "STREAMPOOL_KEEP=12.5%");
        cr_expect_eq(config.mode, SP_MODE_OBSERVE);
        cr_expect_eq(config.keep.share, 12500);
        cr_expect_eq(sp_amount_bytes(config.keep, 8ULL << 30), 1ULL << 30);

        read_from("STREAMPOOL_FREE=sync", "STREAMPOOL_BACKING=native");
        cr_expect_eq(config.free_mode, SP_FREE_MODE_SYNC);
        cr_expect_eq(config.backing, SP_BACKING_NATIVE);

        read_from("STREAMPOOL_GROWTH=tight", "STREAMPOOL_DECAY=1.5s");
        cr_expect_eq(config.growth, SP_GROWTH_TIGHT);
        cr_expect_eq(config.decay, 1500000000);

        read_from("STREAMPOOL_FORMAT=json", "STREAMPOOL_REPORT=/a/%p=x");
        cr_expect_eq(config.format, SP_FORMAT_JSON);
        cr_expect_str_eq(config.report, "/a/%p=x");

        read_from("STREAMPOOL_BATCH=7", "STREAMPOOL_DISABLE=yes");
        cr_expect_eq(config.batch, 7);
        cr_expect(config.disable);
        cr_expect_str_empty(heard);
}

Test(config, a_bad_value_is_named_and_the_default_stays)
{
        read_from("STREAMPOOL_KEEP=lots", "STREAMPOOL_MODE=pol");
        cr_expect_eq(config.keep.share, 100000);
        cr_expect_eq(config.mode, SP_MODE_POOL);
        cr_expect(strstr(heard, "STREAMPOOL_KEEP=lots") && strstr(heard, "100%"), "%s", heard);
        cr_expect(strstr(heard, "STREAMPOOL_MODE=pol is not one of pool|observe|off"), "%s", heard);
}

Test(config, an_empty_value_is_an_unset_one)
{
        read_from("STREAMPOOL_KEEP=", "STREAMPOOL_REPORT=");
        cr_expect_eq(config.keep.share, 100000);
        cr_expect_str_eq(config.report, "-");
        cr_expect_str_empty(heard);
}

Test(config, an_unknown_name_is_named_with_the_nearest)
{
        read_from("STREAMPOOL_REPROT=x", "STREAMPOOL_NOTHING_LIKE_IT=1");
        cr_expect(strstr(heard,
                         "STREAMPOOL_REPROT is not an option; did you mean STREAMPOOL_REPORT?"),
                  "%s", heard);
        cr_expect(strstr(heard, "STREAMPOOL_NOTHING_LIKE_IT is not an option; STREAMPOOL_HELP=1"),
                  "%s", heard);
        cr_expect_str_eq(config.report, "-");
}

Test(config, a_name_that_begins_like_an_option_is_not_that_option)
{
        read_from("STREAMPOOL_BATCH_BYTE=5", "STREAMPOOL_BATCH_BYTES=5");
        cr_expect_eq(config.batch, 128);
        cr_expect_eq(config.batch_bytes, 5);
        cr_expect(strstr(heard, "did you mean STREAMPOOL_BATCH_BYTES?"), "%s", heard);
}

Test(config, other_peoples_variables_are_left_alone)
{
        read_from("STREAMPOOLS=1", "XSTREAMPOOL_MODE=off");
        cr_expect_str_empty(heard);
        cr_expect_eq(config.mode, SP_MODE_POOL);
}

Test(config, limits_are_read_by_device)
{
        read_from("STREAMPOOL_LIMIT=16G", "STREAMPOOL_SOFT_LIMIT=50%,3:8G,1:0");
        cr_expect_eq(sp_limits_of(&config.limit, 0).bytes, 16ULL << 30);
        cr_expect_eq(sp_limits_of(&config.limit, 63).bytes, 16ULL << 30);
        cr_expect_eq(sp_limits_of(&config.limit, 64).bytes, 16ULL << 30);
        cr_expect_eq(sp_limits_of(&config.soft_limit, 0).share, 50000);
        cr_expect_eq(sp_limits_of(&config.soft_limit, 3).bytes, 8ULL << 30);
        cr_expect_eq(sp_limits_of(&config.soft_limit, 1).bytes, 0);
        cr_expect_eq(sp_limits_of(&config.soft_limit, 1).share, 0);
        cr_expect_str_empty(heard);
        read_from("STREAMPOOL_LIMIT=63:1T", NULL);
        cr_expect_eq(sp_limits_of(&config.limit, 0).bytes, 0);
        cr_expect_eq(sp_limits_of(&config.limit, 63).bytes, 1ULL << 40);
        cr_expect_str_empty(heard);
}

Test(config, a_bad_limit_is_named_with_the_rule_and_is_none)
{
        static const char *const bad[] = {
                "lots",
                "16G,8G",
                "0:16G,0:8G",
                "64:1G",
                "-1:1G",
                "1:",
                ":1G",
                ",",
                "16G,",
                ",16G",
                "1:2:3",
                "101%",
                "1:50%%",
                "1G;2",
                "0x10:1G",
                "18446744073709551616:1G",
                "1234567890123456789012345678901234567890123456789012345678901234567890",
        };

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                char line[128], words[256];

                snprintf(line, sizeof(line), "STREAMPOOL_LIMIT=%s", bad[i]);
                snprintf(words, sizeof(words), "%s is not one of [device:]size|%%,...; using 0\n",
                         line);
                reads = 0;
                read_from(line, NULL);
                cr_expect_str_eq(heard, words);
                cr_expect(!config.limit.named && !config.limit.others.bytes &&
                                  !config.limit.others.share,
                          "%s", bad[i]);
        }
}

Test(config, an_amount_without_a_default_may_be_left_out)
{
        read_from("STREAMPOOL_LOG=1", NULL);
        cr_expect_not(config.pool_threshold.is_given);
        read_from("STREAMPOOL_POOL_THRESHOLD=", NULL);
        cr_expect_not(config.pool_threshold.is_given);
        read_from("STREAMPOOL_POOL_THRESHOLD=0", NULL);
        cr_expect(config.pool_threshold.is_given);
        cr_expect_eq(config.pool_threshold.bytes, 0);
        cr_expect(config.keep.is_given);
}

Test(config, a_switch_without_a_value_is_neither)
{
        read_from("STREAMPOOL_POOL_FOLLOW=0", NULL);
        cr_expect_eq(config.pool_follow, SP_SWITCH_OFF);
        cr_expect_eq(config.pool_internal, SP_SWITCH_UNSET);
}

/* nearest */

Test(nearest, takes_one_edit_of_each_sort)
{
        static const char *const rows[][2] = {
                {"STREAMPOOL_MODE", "STREAMPOOL_MODE"},
                {"STREAMPOOL_MOD", "STREAMPOOL_MODE"},
                {"STREAMPOOL_MODES", "STREAMPOOL_MODE"},
                {"STREAMPOOL_MADE", "STREAMPOOL_MODE"},
                {"STREAMPOOL_OMDE", "STREAMPOOL_MODE"},
                {"STREAMPOOL_LGO", "STREAMPOOL_LOG"},
                {"STREAMPOOL_EXIT_CODE", "STREAMPOOL_EXITCODE"},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const char *nearest = sp_config_nearest(rows[i][0]);

                cr_expect(nearest && strcmp(nearest, rows[i][1]) == 0, "%s gave %s", rows[i][0],
                          nearest ? nearest : "nothing");
        }
}

Test(nearest, gives_nothing_where_nothing_is_near)
{
        char longer[300];

        memset(longer, 'X', sizeof(longer) - 1);
        longer[sizeof(longer) - 1] = '\0';
        cr_expect_null(sp_config_nearest("STREAMPOOL_XYZZY"));
        cr_expect_null(sp_config_nearest("STREAMPOOL_"));
        cr_expect_null(sp_config_nearest(longer));
}

/* rank */

Test(rank, comes_from_the_launcher_and_is_a_number)
{
        read_from("OMPI_COMM_WORLD_RANK=3", "RANK=5");
        cr_expect_str_eq(config.rank, "3");
        read_from("RANK=5", "SLURM_PROCID=6");
        cr_expect_str_eq(config.rank, "5");
        read_from("PMI_RANK=../../etc", "SLURM_PROCID=6");
        cr_expect_str_eq(config.rank, "6");
        read_from("PMIX_RANK=8", NULL);
        cr_expect_str_eq(config.rank, "8");
        read_from("MV2_COMM_WORLD_RANK=9", NULL);
        cr_expect_str_eq(config.rank, "9");
}

/* only */

Test(only, selects_by_the_name_without_its_folder)
{
        read_from("STREAMPOOL_ONLY=train,python3", NULL);
        cr_expect(sp_config_selects(&config, "/usr/bin/python3"));
        cr_expect(sp_config_selects(&config, "train"));
        cr_expect_not(sp_config_selects(&config, "/train/bash"));
        cr_expect_not(sp_config_selects(&config, "python"));
        cr_expect_not(sp_config_selects(&config, ""));
        read_from(NULL, NULL);
        cr_expect(sp_config_selects(&config, "bash"));
}

/* help */

Test(help, names_every_option_with_its_values_and_its_sentence)
{
        char bytes[SP_CONFIG_TABLE_MAX];
        struct sp_text text;
        size_t count;
        const struct sp_option *options = sp_config_options(&count);

        sp_text_init(&text, bytes, sizeof(bytes));
        sp_config_table(&text);
        cr_expect_not(text.cut);
        cr_expect_gt(count, 10);
        for (size_t i = 0; i < count; i++) {
                const char *line = strstr(bytes, options[i].name);

                cr_assert(line, "%s", options[i].name);
                cr_expect(strstr(line, options[i].values), "%s", options[i].name);
                cr_expect(strstr(line, options[i].help), "%s", options[i].name);
        }
}

Test(help, the_words_of_a_choice_are_in_the_order_of_its_enum)
{
        static const struct {
                const char *name;
                unsigned int value;
                const char *word;
        } rows[] = {
                {"STREAMPOOL_MODE", SP_MODE_OBSERVE, "observe"},
                {"STREAMPOOL_MODE", SP_MODE_OFF, "off"},
                {"STREAMPOOL_FREE", SP_FREE_MODE_SYNC, "sync"},
                {"STREAMPOOL_BACKING", SP_BACKING_VMM, "vmm"},
                {"STREAMPOOL_BACKING", SP_BACKING_NATIVE, "native"},
                {"STREAMPOOL_VMM", SP_VMM_REUSE, "reuse"},
                {"STREAMPOOL_VMM", SP_VMM_PASS, "pass"},
                {"STREAMPOOL_GROWTH", SP_GROWTH_SPEED, "speed"},
                {"STREAMPOOL_GROWTH", SP_GROWTH_TIGHT, "tight"},
                {"STREAMPOOL_FORMAT", SP_FORMAT_TEXT, "text"},
                {"STREAMPOOL_FORMAT", SP_FORMAT_JSON, "json"},
        };
        size_t count;
        const struct sp_option *options = sp_config_options(&count);

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                for (size_t j = 0; j < count; j++) {
                        unsigned int value = 99;

                        if (strcmp(options[j].name, rows[i].name) != 0)
                                continue;
                        cr_expect(sp_parse_choice(rows[i].word, options[j].values, &value));
                        cr_expect_eq(value, rows[i].value, "%s=%s", rows[i].name, rows[i].word);
                }
        }
}

void sp_log(enum sp_log_level level, const char *format, ...)
{
        (void)level;
        (void)format;
}
