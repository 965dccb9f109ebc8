/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_FAULT_RULE_H
#define SP_TRACK_FAULT_RULE_H

/*
 * Fault rule -- which allocations are to fail, and how?
 *
 * What STREAMPOOL_FAULT says: rules, apart by semicolons, each a list of
 * conditions, apart by commas. Those of the first group say which calls a rule
 * matches; the calls that it matches are numbered from 1, and those of the
 * second group say which of them fail: where several do, all have to agree, and
 * where none does, every one fails.
 *
 *   kind=device+async   kinds of memory, as the report names them
 *   size=4K-1M          bytes asked for; also 8, 1M- and -2M
 *   site=PATTERN        a part of where the call came from, "libfoo.so+0x12 (function)"; a * in
 *                       it stands for anything
 *
 *   nth=N               this one
 *   every=N             every N-th one
 *   p=0.01              by chance, which follows from the seed and the number alone
 *   seed=S              of that; taken from the clock where it is not said
 *   after=N             none of the first N
 *   times=N             N of them, and no more (fault.h)
 *
 *   error=NAME          what is answered, by its number or its name in cuda.h
 *
 * Nothing here keeps anything, reads a clock or knows of a thread: the same rule
 * says the same about the same call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "base/text.h"
#include "track/ledger.h"

#define SP_FAULT_RULES 16
#define SP_FAULT_WORDS 240

/* What a rule can say. */
enum sp_fault_word {
        SP_FAULT_NTH,
        SP_FAULT_EVERY,
        SP_FAULT_P,
        SP_FAULT_SEED,
        SP_FAULT_AFTER,
        SP_FAULT_TIMES,
        SP_FAULT_SIZE,
        SP_FAULT_KIND,
        SP_FAULT_SITE,
        SP_FAULT_ERROR,
        SP_FAULT_WORD_COUNT,
};

struct sp_fault_rule {
        char words[SP_FAULT_WORDS]; /* as it was written */
        unsigned int said;          /* bit n: enum sp_fault_word n; the fields of others are 0 */
        unsigned int nth, every, after, times;
        uint64_t chance; /* a call fails whose number from 0 to UINT64_MAX is not above */
        unsigned int seed;
        struct sp_between size;
        unsigned int kinds; /* bit n: enum sp_kind n */
        char site[SP_FAULT_WORDS];
        int error; /* CUresult; out of memory where it is not said */
};

/* Not known, as of memory that somebody else has made: then no size matches. */
#define SP_FAULT_UNSIZED SIZE_MAX

struct sp_fault_call {
        enum sp_kind kind;
        size_t bytes;
        const char *site; /* where it came from; may be NULL if no rule asks */
};

static inline bool sp_fault_says(const struct sp_fault_rule *rule, enum sp_fault_word word)
{
        return rule->said >> word & 1;
}

/**
 * sp_fault_read() - the rules of a text
 * @rules:     return argument, SP_FAULT_RULES of them
 * @count:     return argument, how many are used
 * @complaint: is added to, if something is wrong: the rule, the word, and what would do
 *
 * Return: false if something is wrong; then the return arguments are not written. A text of
 * nothing has no rules.
 */
bool sp_fault_read(const char *text, struct sp_fault_rule *rules, unsigned int *count,
                   struct sp_text *complaint);

/** sp_fault_matches() - is this call one of those that the rule is about? */
bool sp_fault_matches(const struct sp_fault_rule *rule, const struct sp_fault_call *call);

/** sp_fault_wants() - is the @ordinal-th of them to fail? How many did before is not looked at. */
bool sp_fault_wants(const struct sp_fault_rule *rule, uint64_t ordinal);

#endif
