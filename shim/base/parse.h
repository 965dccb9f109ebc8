/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_PARSE_H
#define SP_PARSE_H

/*
 * Parse -- what does the text of an option say?
 *
 * One parser a kind of options.def, all of one shape: true if @text is such a
 * value; the return argument is written on success only. @values is that column
 * of the option's row, at which only a count and a choice look.
 */

#include <stdbool.h>
#include <stdint.h>

/* A size, or a share of something that is known later. */
struct sp_amount {
        uint64_t bytes;
        unsigned int share; /* thousandths of a percent, at most 100000; 0 if @bytes counts */
        bool is_given;      /* false only where an option says nothing and has no default */
};

/* What an option says about something that is on or off by itself. */
enum sp_switch { SP_SWITCH_UNSET, SP_SWITCH_OFF, SP_SWITCH_ON };

#define SP_LIMITS 64 /* devices that can be named */

/* An amount for each device: its own where it is named, else that of the others. */
struct sp_limits {
        struct sp_amount others;
        struct sp_amount device[SP_LIMITS];
        uint64_t named; /* bit n: device[n] means something */
};

/* A range; both ends belong to it. */
struct sp_between {
        uint64_t low, high;
};

/* Which frames of a call stack are kept, and how many of each sort. */
struct sp_frames {
        bool python, native;
        unsigned int count;
};

#define SP_FRAMES_MAX   64
#define SP_FRAMES_USUAL 16

/** sp_limits_of() - the amount of one device. */
struct sp_amount sp_limits_of(const struct sp_limits *limits, unsigned int device);

/** sp_amount_bytes() - an amount in bytes, given what a percentage refers to. */
uint64_t sp_amount_bytes(struct sp_amount amount, uint64_t total);

bool sp_parse_flag(const char *text, const char *values, bool *flag);
/** sp_parse_switch() - a flag; no text at all is SP_SWITCH_UNSET. */
bool sp_parse_switch(const char *text, const char *values, enum sp_switch *position);
bool sp_parse_count(const char *text, const char *values, unsigned int *count);
bool sp_parse_bytes(const char *text, const char *values, uint64_t *bytes);
bool sp_parse_amount(const char *text, const char *values, struct sp_amount *amount);
/** sp_parse_limits() - "16G", "50%,0:16G"; no device is named twice, nor are the others. */
bool sp_parse_limits(const char *text, const char *values, struct sp_limits *limits);
/** sp_parse_set() - words with commas between them, "exit,abort"; bit n of @set is the n-th of
 * @values. No text is the empty set. */
bool sp_parse_set(const char *text, const char *values, unsigned int *set);
/** sp_parse_between() - sizes, "8-4096", "1K-" or "-2M". One without a dash is meant exactly, or,
 * as of what is put up with, @is_lone_at_most. */
bool sp_parse_between(const char *text, bool is_lone_at_most, struct sp_between *between);
/** sp_parse_frames() - "off", "python", "native" or "both", with a number or one alone for both:
 * "native,8", "32". */
bool sp_parse_frames(const char *text, const char *values, struct sp_frames *frames);
/** sp_parse_time() - in nanoseconds. */
bool sp_parse_time(const char *text, const char *values, uint64_t *time);
bool sp_parse_choice(const char *text, const char *values, unsigned int *choice);
bool sp_parse_word(const char *text, const char *values, const char **word);

#endif
