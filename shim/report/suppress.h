/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_SUPPRESS_H
#define SP_SUPPRESS_H

/*
 * Suppress -- which findings does the user not want to hear of?
 *
 * Those that a rule of the file STREAMPOOL_SUPPRESS applies to. One rule a line;
 * a line that begins with # is a comment.
 *
 *   leak:libvendor.so              by place, as in files for LeakSanitizer
 *   double-free:^release_all$
 *   any:third_party/
 *   leak: library=libfoo function=^make_ kind=pinned size=8-4096 count=-3 device=0
 *
 * In front of the colon stands a kind of finding, or "any". Behind it stands a
 * pattern, or words of the form key=value, all of which have to be true.
 *
 * A pattern is part of a name. In it * stands for any characters, ^ in front and
 * $ at the end for the ends of the name. It is compared with the function, the
 * library and the source file of each frame of a place; function, library and
 * source are patterns for one of these, and are true of the same frame. Names of
 * files are compared without their folder unless the pattern has a slash.
 *
 * The place of a leak is that of the allocation, the place of a wrong free is
 * that of the free. A rule is about all blocks of a kind that leaked from one
 * place, so `size` has to be true of each of them.
 *
 *   kind    of memory, as the report names it
 *   size    of a block: 8, 8-4096, 1K-, -2M
 *   count   blocks that leaked, or how often it was freed wrongly: 3 or -3 for at
 *           most so many, 2-5, 10-
 *   device  by its number; not true of a place that leaks on several
 *
 * What kind, size and device ask is not true where the block is not known.
 *
 * All memory is taken at the start and stays as it is: a report may be written
 * when the heap cannot be used.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "base/text.h"
#include "track/ledger.h"

#define SP_RULES_MAX 1024

/* Beside those of enum sp_finding_kind. */
#define SP_FINDING_LEAK SP_FINDING_COUNT

/* Characters of the file; none if start is NULL. */
struct sp_span {
        const char *start;
        size_t length;
};

struct sp_rule {
        const char *text; /* as it was written */
        unsigned int line;
        unsigned int findings;   /* bit n: of kind n */
        struct sp_span anywhere; /* in a function, a library or a source file */
        struct sp_span function, library, source;
        int kind;   /* enum sp_kind; -1 for any */
        int device; /* -1 for any */
        bool has_size;
        struct sp_between size;
        struct sp_between count;
};

struct sp_rules {
        const char *path;
        size_t count;
        struct sp_rule rule[SP_RULES_MAX];
};

/* reading */

/** sp_suppress_start() - read the file, if one is named; once, before findings are made. */
void sp_suppress_start(void);

/** sp_suppress_rules() - those in force; NULL without a file. */
const struct sp_rules *sp_suppress_rules(void);

/**
 * sp_rules_parse() - the rules that @text has
 * @rules: return argument; refers to @path and to @text, which is written to
 * @text:  @length bytes and a NUL
 * @warn:  called for each line that is no rule, which is left out
 */
void sp_rules_parse(struct sp_rules *rules, const char *path, char *text, size_t length,
                    void (*warn)(const char *message));

/** sp_rule_read() - a line without blanks at its ends; @why, empty before, says what is wrong. */
bool sp_rule_read(const char *line, struct sp_rule *rule, struct sp_text *why);

/** sp_findings_named() - bit n for kind n; the word is that of the report, with - or _, or "any".
 */
bool sp_findings_named(struct sp_span word, unsigned int *findings);

/** sp_finding_word() - "double-free". */
void sp_finding_word(struct sp_text *text, unsigned int finding);

/** sp_finding_words() - "double-free|...|any", with or without "leak". */
void sp_finding_words(struct sp_text *text, bool with_leak);

/* asking */

/* A call in a place's stack; what is not known is NULL. */
struct sp_frame {
        const char *function;
        const char *library; /* path */
        const char *source;  /* path */
};

struct sp_case {
        unsigned int finding;
        bool has_block; /* the next three mean something */
        enum sp_kind kind;
        int device; /* -1 if not known, or if there are several */
        struct sp_between size;
        uint64_t count;
        const struct sp_frame *frames; /* the innermost first */
        size_t frame_count;
};

/** sp_rules_find() - the number of the first rule that applies; -1 if none does. */
int sp_rules_find(const struct sp_rules *rules, const struct sp_case *seen);

/** sp_pattern_matches() - false if @name is NULL. */
bool sp_pattern_matches(struct sp_span pattern, const char *name);

/**
 * sp_holder_of() - the library that keeps what was allocated there until the end
 *
 * NVIDIA's libraries and PyTorch's allocate once and never free. Such memory is
 * no fault of the program, and is shown by library. It is told by the name of
 * the library that made the call. The CUDA runtime calls on behalf of others and
 * is passed over, so without more frames than it nothing is said. So does PyTorch's
 * allocator: a tensor's memory is asked for by libtorch_cpu and is the program's, a
 * workspace's by libtorch_cuda and is kept (seen with PyTorch 2.11); what nobody is
 * seen to have asked for is the allocator's. A program that
 * forgets to give something back to such a library leaks memory that looks the
 * same from here: STREAMPOOL_LIBRARY_LEAKS=1 shows it.
 *
 * Return: its file name, of the frame; or NULL.
 */
const char *sp_holder_of(const struct sp_frame *frames, size_t count);

#endif
