/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_CONFIG_H
#define SP_CONFIG_H

/*
 * Config -- what was asked for from outside?
 *
 * The environment is read once, by sp_config_load(), and is constant
 * afterwards: later setenv() calls of the application change nothing here. A
 * process that runs with raised privileges gets the defaults.
 *
 * A value that cannot be read is named in a warning and the default stays; a
 * variable that begins with STREAMPOOL_ and is no option is named together with
 * the nearest option. Before the load every field is zero.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "base/text.h"

/* The order of the words in options.def. */
enum sp_mode { SP_MODE_POOL, SP_MODE_OBSERVE, SP_MODE_OFF };
enum sp_free_mode { SP_FREE_MODE_POOL, SP_FREE_MODE_SYNC };
enum sp_pinned { SP_PINNED_POOL, SP_PINNED_OFF };
enum sp_backing { SP_BACKING_AUTO, SP_BACKING_VMM, SP_BACKING_NATIVE };
enum sp_vmm { SP_VMM_REUSE, SP_VMM_PASS };
enum sp_growth { SP_GROWTH_BALANCED, SP_GROWTH_SPEED, SP_GROWTH_TIGHT };
/* Bits of report_on. */
enum { SP_ON_EXIT = 1, SP_ON_ERROR = 2, SP_ON_ABORT = 4, SP_ON_USR1 = 8, SP_ON_USR2 = 16 };
/* Bits of check; "off" stands for nothing. */
enum { SP_CHECK_OFF = 1, SP_CHECK_USES = 2, SP_CHECK_ARGUMENTS = 4, SP_CHECK_ORDER = 8 };
/* Bits of poison. */
enum { SP_POISON_ALLOC = 1, SP_POISON_FREE = 2 };
enum sp_format { SP_FORMAT_AUTO, SP_FORMAT_TEXT, SP_FORMAT_JSON, SP_FORMAT_SARIF };

#define SP_FIELD_FLAG(field)   bool field;
#define SP_FIELD_SWITCH(field) enum sp_switch field;
#define SP_FIELD_COUNT(field)  unsigned int field;
#define SP_FIELD_BYTES(field)  uint64_t field;
#define SP_FIELD_AMOUNT(field) struct sp_amount field;
#define SP_FIELD_LIMITS(field) struct sp_limits field;
#define SP_FIELD_SET(field)    unsigned int field;
#define SP_FIELD_FRAMES(field) struct sp_frames field;
#define SP_FIELD_TIME(field)   uint64_t field; /* nanoseconds */
#define SP_FIELD_CHOICE(field) enum sp_##field field;
#define SP_FIELD_WORD(field)   const char *field;

/* Written once by sp_config_load(), before other threads may ask. */
struct sp_config {
#define SP_OPTION(kind, field, name, preset, values, help) SP_FIELD_##kind(field)
#include "base/options.def"
#undef SP_OPTION
        bool is_plain;    /* NO_COLOR is set, or TERM says that a terminal knows no colours */
        const char *rank; /* of this process among its launcher's; "0" if there is none */
};

struct sp_option {
        const char *name;
        const char *preset;
        const char *values;
        const char *help;
};

/* config */

/** sp_config_load() - read the environment and log the warnings; the first call counts. */
void sp_config_load(void);
extern struct sp_config sp_config_loaded;
static inline const struct sp_config *sp_config(void)
{
        return &sp_config_loaded;
}

/** sp_config_help() - the table of options on stderr. */
void sp_config_help(void);

/** sp_config_selects() - does `only` allow this executable? Its folder is ignored. */
bool sp_config_selects(const struct sp_config *config, const char *executable);

/* what the load is made of */

/** sp_config_read() - fill @config from @environment, an array as `environ`; one call of @warn
 * for each complaint. Words are copied; a word that cannot be copied keeps its default. */
void sp_config_read(struct sp_config *config, char *const *environment,
                    void (*warn)(const char *message));

/** sp_config_options() - all rows of options.def in order. */
const struct sp_option *sp_config_options(size_t *count);

/** sp_config_nearest() - the option whose name takes the fewest edits to reach from @name, or
 * NULL if all are far. Two neighbouring letters swapped are one edit. */
const char *sp_config_nearest(const char *name);

#define SP_CONFIG_TABLE_MAX 16384 /* bytes that the table has room in */

/** sp_config_table() - the table of options, for people. */
void sp_config_table(struct sp_text *text);

#endif
