/* SPDX-License-Identifier: Apache-2.0 */

/* Advice -- what is a kind of finding called, and what is to be done about it? */

#include "report/advice.h"

static const struct sp_advice advices[] = {
        [SP_FINDING_USE_AFTER_FREE] = {"use-after-free", "Used after it was freed",
                                       "Free it behind the copy or set: by then the memory may be "
                                       "somebody else's.",
                                       true},
        [SP_FINDING_OUT_OF_BOUNDS] = {"out-of-bounds", "Used past its end",
                                      "Allocate what is used, or use less: what lies behind may be "
                                      "somebody else's.",
                                      true},
        [SP_FINDING_USE_BEFORE_ALLOC] = {"use-before-alloc", "Used before it was allocated",
                                         "Let the stream that uses it wait for an event recorded "
                                         "behind the allocation: before, the memory may be "
                                         "somebody else's.",
                                         true},
        [SP_FINDING_RACE] = {"race", "Used on two streams in no order",
                             "Let the later stream wait for an event recorded behind the earlier "
                             "use: one of them writes what the other touches.",
                             true},
        [SP_FINDING_OVERLAP] = {"overlap", "Copied over itself",
                                "Copy by way of another block: what is read where both ranges are "
                                "may be written already.",
                                true},
        [SP_FINDING_OVERRUN] = {"overrun", "Written past its end",
                                "Allocate what is written, or write less: it was seen when the "
                                "block was freed, and done before.",
                                true},
        [SP_FINDING_FREE_BEFORE_USE] = {"free-before-use", "Freed while another stream uses it",
                                        "Let the stream that frees wait for an event recorded "
                                        "behind the use (in PyTorch: record_stream()): the memory "
                                        "may be somebody else's before the use is done.",
                                        true},
        [SP_FINDING_FREE_BEFORE_ALLOC] = {"free-before-alloc", "Freed before it was allocated",
                                          "Let the stream that frees wait for an event recorded "
                                          "behind the allocation, or free on that stream.",
                                          true},
        [SP_FINDING_SYNC_FREE] = {"sync-free", "Freed at once while in use",
                                  "Wait for the stream that uses it, or free it in its order "
                                  "(cuMemFreeAsync): cuMemFree does not wait for it.",
                                  true},
        [SP_FINDING_DOUBLE_FREE] = {"double-free", "Freed twice",
                                    "One of the two frees is too many: after the first the memory "
                                    "may be somebody else's.",
                                    true},
        [SP_FINDING_WRONG_KIND] = {"wrong-kind", "Freed by the wrong function",
                                   "Free it by the function that belongs to the one that it came "
                                   "from.",
                                   true},
        [SP_FINDING_INTERIOR] = {"interior", "Freed in the middle",
                                 "Free the address that the allocation returned.", true},
        [SP_FINDING_AFTER_CONTEXT] = {"after-context", "Freed after the end of its context",
                                      "Free it before, or not at all: a context takes its memory "
                                      "along.",
                                      true},
        [SP_FINDING_FOREIGN] = {"foreign", "Freed, but never allocated",
                                "Free what an allocation returned: this address is none of these.",
                                true},
        [SP_FINDING_ARGUMENT_AFTER_FREE] = {"argument-after-free",
                                            "Given to a kernel after it was freed",
                                            "Free it behind the launch, or give the kernel no "
                                            "address that it has no use for: what it does with "
                                            "this one is not seen.",
                                            false},
        [SP_FINDING_COUNT] = {"leak", "Never freed",
                              "Free it; or, if it is held on purpose, name it in a file of rules "
                              "(STREAMPOOL_SUPPRESS).",
                              false},
};

_Static_assert(sizeof(advices) / sizeof(advices[0]) == SP_FINDING_COUNT + 1, "one for each kind");

const struct sp_advice *sp_advice(unsigned int kind)
{
        return &advices[kind];
}
