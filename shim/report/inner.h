/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_REPORT_INNER_H
#define SP_REPORT_INNER_H

/*
 * Report, inside -- everything it says, before it is put into words
 *
 *   report.c   gathers this, and has it put into words
 *   put.c      how words get there
 *   text.c     for people, with text_findings.c
 *   advice.c   what a kind of finding is called, and what is to be done
 *   json.c     for programs, with json_place.c
 *   layout.c   of the pools' layout, for both
 *   order.c    of the order of streams: what is not behind what
 *   reuse.c    of a second free: who else has had the address
 *   sarif.c    for tools that show findings beside the code
 *   uses.c     of a copy or a set: what it touched
 *   survey.c   how sizes and free memory of a pool are spread
 *   words.c    values of JSON, for both
 *   site.c     a place in the program's code
 *   lines.c    its function, source file and line, by libdw.c
 *   frames.c   the calls above it
 *   shortage.c who held memory when there was none
 *   faults.c   what was made to fail
 *   sift.c     what is not to be heard of is taken out
 *   sifted.c   and what is said of that
 *
 * It is large and lives on pages of its own for as long as it is needed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "report/counters.h"
#include "report/figures.h"
#include "report/lines.h"
#include "report/shortage.h"
#include "track/fault.h"
#include "report/suppress.h"
#include "track/ledger.h"
#include "track/stack.h"

#define SP_REPORT_VERSION 1 /* of the JSON form: grows when a field goes or changes its meaning */
#define SP_REPORT_LEAKS   8192 /* places */
#define SP_PLACE_LINES                                                                             \
        16 /* functions of one place that were inlined into each other; C++ can have more */

/* Live allocations of one kind from one place. */
struct sp_leak {
        enum sp_kind kind;
        const void *site;
        int device; /* -1 if not known, or if there are several */
        uint64_t count;
        uint64_t bytes;
        uint64_t smallest, largest;
};

/* What a rule of STREAMPOOL_FAULT did. */
struct sp_fault_tally {
        const struct sp_fault_rule *rule;
        uint64_t matched, failed; /* calls */
};

#define SP_REPORT_HOLDERS 32
#define SP_SIFT_LINES     24 /* of a place, for rules: functions with a source file */

/* What was taken out of the lists of findings and leaks, and out of their sums. */
struct sp_sifted {
        uint64_t wrong_frees; /* times */
        uint64_t leaks;       /* allocations */
        uint64_t bytes;       /* of them */
        bool is_used[SP_RULES_MAX];
        struct sp_holding {
                char library[64];
                uint64_t count, bytes;
        } holding[SP_REPORT_HOLDERS]; /* what libraries keep until the end: no findings */
        size_t holdings;
        struct sp_line line[SP_SIFT_LINES]; /* where the names of one place are put */
};

struct sp_saving {
        uint64_t calls;   /* answered without the driver */
        uint64_t instead; /* calls of the driver that the pool made */
        uint64_t ns;
        uint64_t cost_ns[SP_NATIVE_COUNT];
        unsigned int samples[SP_NATIVE_COUNT]; /* 0: the cost is the usual one */
        uint64_t times[SP_NATIVE_COUNT];       /* of @calls */
};

struct sp_report {
        const char *program;
        const char *rank;
        char host[65];
        long process;
        bool is_coloured; /* the words go to a terminal */
        bool busy;        /* another thread kept the ledger: what comes from it is missing */
        struct sp_figures figures;
        struct sp_ledger_totals totals;
        struct sp_finding finding[SP_LEDGER_FINDINGS]; /* worst first */
        size_t findings;
        struct sp_leak leak[SP_REPORT_LEAKS + SP_KIND_COUNT]; /* most bytes first */
        size_t leaks;
        uint64_t leaked_count, leaked_bytes; /* all of them */
        struct sp_sifted sifted;
        uint64_t counter[SP_COUNTER_COUNT];
        const char *unseen; /* a function that may submit work behind our back, or NULL */
        bool was_short;
        struct sp_shortage shortage; /* the last one, if there was any */
        unsigned int faults;         /* rules of STREAMPOOL_FAULT */
        struct sp_fault_tally fault[SP_FAULT_RULES];
        struct sp_saving saving;
};

/** sp_report_gather() - fill in a report that is all zero. */
void sp_report_gather(struct sp_report *report);

/** sp_report_is_silent() - nothing was intercepted, so nothing is said. */
bool sp_report_is_silent(const struct sp_report *report);

void sp_report_text(const struct sp_report *report, bool with_lookups, struct sp_text *text);
void sp_findings_text(struct sp_text *text, const struct sp_report *report);
void sp_leaks_text(struct sp_text *text, const struct sp_report *report);
void sp_report_json(const struct sp_report *report, struct sp_text *text);
void sp_report_sarif(const struct sp_report *report, struct sp_text *text);

/** sp_layout_text(), sp_layout_json(), sp_shelves_json() - the layouts in force, and the lists of a
 * pool. */
void sp_layout_text(struct sp_text *text, const struct sp_report *report);
void sp_layout_json(struct sp_text *text, const struct sp_figures *figures);
void sp_shelves_json(struct sp_text *text, const struct sp_figures *figures, unsigned int pool);

/** sp_report_put() - into a file; to stderr if that cannot be, or if the path is "-". */
void sp_report_put(const char *path, const struct sp_text *words);

/** sp_faults_gather() - what the rules of STREAMPOOL_FAULT did. */
void sp_faults_gather(struct sp_report *report);
void sp_faults_text(struct sp_text *text, const struct sp_report *report);

/** sp_report_sift() - take out of a gathered report what a rule applies to, and what libraries
 * keep. Looks up places, so no lock may be held. */
void sp_report_sift(struct sp_report *report);

/** sp_report_is_sifted() - was anything taken out? */
bool sp_report_is_sifted(const struct sp_report *report);

/** sp_finding_rule() - the number of the rule that applies; -1 if none does. @line: room for
 * SP_SIFT_LINES, or NULL outside of reports, where places have no lines. */
int sp_finding_rule(const struct sp_finding *finding, struct sp_line *line);

void sp_sifted_text(struct sp_text *text, const struct sp_report *report);
void sp_sifted_json(struct sp_text *text, const struct sp_report *report);

/* A place in code, as addr2line takes it. */
struct sp_place {
        const char *path;   /* of the library or program; NULL if there is none at the address */
        const char *file;   /* the same without its folder */
        uint64_t offset;    /* of the call */
        const char *symbol; /* NULL if the call is in no exported function */
};

struct sp_place sp_place_of(const void *site);

/**
 * sp_places_open() - from now on this thread's places have functions and lines
 *
 * Unless STREAMPOOL_SYMBOLS=0, or a handler of a signal may have come here. Until
 * sp_places_close(), with which it makes a pair.
 */
void sp_places_open(void);
void sp_places_close(void);
bool sp_places_are_open(void);

/** sp_places_are_known() - are lines looked up, so that nobody else needs to? */
bool sp_places_are_known(void);

/** sp_place_lines() - as sp_lines_at(), of a return address; only the function if libdw is not
 * there, and nothing between reports. */
unsigned int sp_place_lines(const void *site, struct sp_line *line, unsigned int most);

/** sp_place_text() - "train.py:17 in step" where lines of Python were kept, else
 * "libfoo.so+0x1234 (function) at file.c:12, inlined into caller at file.c:40". */
void sp_place_text(struct sp_text *text, const void *site);

/** sp_place_native_text() - the second of these, whatever else is kept. */
void sp_place_native_text(struct sp_text *text, const void *address);

/** sp_place_natives() - how many of its native frames are the program's, and no interpreter's that
 * runs the lines which are told beside. */
unsigned int sp_place_natives(const struct sp_stack *stack);

/** sp_place_frames() - the frames above a place, a line each; nothing if no stack was kept. */
void sp_place_frames(struct sp_text *text, const void *site, const char *indent);

/** sp_use_text() - "writes 4096 bytes". */
void sp_use_text(struct sp_text *text, const struct sp_finding *finding);

/** sp_use_text_more() - a line with what is to be said of it beyond its places, if anything is. */
void sp_use_text_more(struct sp_text *text, const struct sp_finding *finding);

/** sp_use_json() - "use": {...}, of other findings null. */
void sp_use_json(struct sp_text *text, const struct sp_finding *finding);

/** sp_argument_text() - "argument 2 of kernel fill, not proven access". */
void sp_argument_text(struct sp_text *text, const struct sp_finding *finding);

/** sp_argument_json() - a member of the finding; null but for an argument. */
void sp_argument_json(struct sp_text *text, const struct sp_finding *finding);

/** sp_order_text() - "on stream 0x55d0"; sp_order_text_earlier(): what it is not behind. */
void sp_order_text(struct sp_text *text, const struct sp_finding *finding);
void sp_order_text_earlier(struct sp_text *text, const struct sp_finding *finding);

/** sp_order_json() - a member of the finding; null if it is not of the order of streams. */
void sp_order_json(struct sp_text *text, const struct sp_finding *finding);

/** sp_reuse_text() - whose the address is by now, or had been; sp_reuse_text_end(): who freed that,
 * unless it lives. */
void sp_reuse_text(struct sp_text *text, const struct sp_finding *finding);
void sp_reuse_text_end(struct sp_text *text, const struct sp_finding *finding);

/** sp_reuse_json() - a member of the finding; null if nobody else has had the address. */
void sp_reuse_json(struct sp_text *text, const struct sp_finding *finding);

/** sp_allocation_json() - the members that say what a block is and where it was allocated. */
void sp_allocation_json(struct sp_text *text, enum sp_kind kind, uint64_t address, size_t bytes,
                        const void *site);

/** sp_overrun_json() - a member of the finding; null but for an overrun. */
void sp_overrun_json(struct sp_text *text, const struct sp_finding *finding);

/** sp_overlap_json() - the same of a copy over itself. */
void sp_overlap_json(struct sp_text *text, const struct sp_finding *finding);

/** sp_survey_json() - a member of the pool: null where there is nothing to look at. */
void sp_survey_json(struct sp_text *text, const struct sp_pool_figures *pool);

#endif
