/* SPDX-License-Identifier: Apache-2.0 */

/* Match -- which rule applies to a finding? */

#include "report/suppress.h"

#include <string.h>

#include "base/pattern.h"

/* patterns */

static bool take(struct sp_span *pattern, char end, bool in_front)
{
        size_t at = in_front ? 0 : pattern->length - 1;

        if (pattern->length == 0 || pattern->start[at] != end)
                return false;
        pattern->start += in_front;
        pattern->length--;
        return true;
}

bool sp_pattern_matches(struct sp_span pattern, const char *name)
{
        bool at_start = take(&pattern, '^', true);
        bool at_end = take(&pattern, '$', false);

        return name && sp_pattern_is_in(name, pattern.start, pattern.length, at_start, at_end);
}

/* rules */

static const char *without_folder(const char *path)
{
        const char *slash = path ? strrchr(path, '/') : NULL;

        return slash ? slash + 1 : path;
}

/* "^libfoo" is meant of a file, wherever it is installed. */
static bool matches_file(struct sp_span pattern, const char *path)
{
        bool has_folder = memchr(pattern.start, '/', pattern.length);

        return sp_pattern_matches(pattern, has_folder ? path : without_folder(path));
}

static bool has_pattern(const struct sp_rule *rule)
{
        return rule->anywhere.start || rule->function.start || rule->library.start ||
               rule->source.start;
}

static bool matches_frame(const struct sp_rule *rule, const struct sp_frame *frame)
{
        if (rule->anywhere.start)
                return sp_pattern_matches(rule->anywhere, frame->function) ||
                       matches_file(rule->anywhere, frame->library) ||
                       matches_file(rule->anywhere, frame->source);
        return (!rule->function.start || sp_pattern_matches(rule->function, frame->function)) &&
               (!rule->library.start || matches_file(rule->library, frame->library)) &&
               (!rule->source.start || matches_file(rule->source, frame->source));
}

static bool matches_place(const struct sp_rule *rule, const struct sp_case *seen)
{
        if (!has_pattern(rule))
                return true;
        for (size_t i = 0; i < seen->frame_count; i++) {
                if (matches_frame(rule, &seen->frames[i]))
                        return true;
        }
        return false;
}

/* A size has to be true of all blocks, or a rule for small ones would hide a large one. */
static bool matches_block(const struct sp_rule *rule, const struct sp_case *seen)
{
        if (rule->kind < 0 && rule->device < 0 && !rule->has_size)
                return true;
        return seen->has_block && (rule->kind < 0 || rule->kind == (int)seen->kind) &&
               (rule->device < 0 || rule->device == seen->device) &&
               (!rule->has_size ||
                (seen->size.low >= rule->size.low && seen->size.high <= rule->size.high));
}

/* The place is last, since it takes longest. */
static bool matches(const struct sp_rule *rule, const struct sp_case *seen)
{
        return rule->findings >> seen->finding & 1 && seen->count >= rule->count.low &&
               seen->count <= rule->count.high && matches_block(rule, seen) &&
               matches_place(rule, seen);
}

int sp_rules_find(const struct sp_rules *rules, const struct sp_case *seen)
{
        for (size_t i = 0; rules && i < rules->count; i++) {
                if (matches(&rules->rule[i], seen))
                        return (int)i;
        }
        return -1;
}

/* libraries: the beginnings of their names, because versions and builds follow */

static bool begins_with_one_of(const char *name, const char *const *words)
{
        for (; *words; words++) {
                if (strncmp(name, *words, strlen(*words)) == 0)
                        return true;
        }
        return false;
}

const char *sp_holder_of(const struct sp_frame *frames, size_t count)
{
        static const char *const go_betweens[] = {"libcuda.so", "libcudart", NULL};
        static const char *const allocators[] = {"libc10_cuda", NULL};
        static const char *const holders[] = {
                "libcublas",   "libcudnn",      "libcufft", "libcurand", "libcusolver",
                "libcusparse", "libtorch_cuda", "libnccl",  NULL,
        };
        const char *allocator = NULL;

        for (size_t i = 0; i < count && frames[i].library; i++) {
                const char *name = without_folder(frames[i].library);

                if (begins_with_one_of(name, allocators))
                        allocator = name;
                else if (!begins_with_one_of(name, go_betweens))
                        return begins_with_one_of(name, holders) ? name : NULL;
        }
        return allocator;
}
