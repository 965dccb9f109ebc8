/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym -- which look-ups are ours to answer?
 *
 * Only dlsym.S is under test; what it leads to is here and writes down what
 * arrives. Everything else has to reach the C library as it came.
 */

#define _GNU_SOURCE

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "driver/lookup.h"

static void *last_handle;
static const char *last_name;

static int answer;

void *sp_on_dlsym(void *handle, const char *name)
{
        last_handle = handle;
        last_name = name;
        return &answer;
}

static void *a_handle(void)
{
        return dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
}

struct row {
        char name[16];
        bool is_ours;
};

static const struct row rows[] = {
        {"cuInit", true},        {"cuA", true},        {"cuZ", true},
        {"cuMemAlloc_v2", true}, {"", false},          {"c", false},
        {"cu", false},           {"cu@", false},       {"cu[", false},
        {"cua", false},          {"cuz", false},       {"cu_A", false},
        {"cudnnCreate", false},  {"cUInit", false},    {"CuInit", false},
        {"dlopen", false},       {"curl_init", false}, {"xcuInit", false},
};

Test(dlsym, takes_only_names_like_the_drivers)
{
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                void *found;

                last_name = NULL;
                found = dlsym(a_handle(), rows[i].name);
                cr_expect_eq(last_name == rows[i].name, rows[i].is_ours, "\"%s\"", rows[i].name);
                if (rows[i].is_ours) {
                        cr_expect_eq(last_handle, a_handle(), "\"%s\"", rows[i].name);
                        cr_expect_eq(found, &answer);
                }
        }
        cr_expect_neq(dlsym(a_handle(), "malloc"), NULL, "the C library answers for itself");
}

Test(dlsym, leaves_questions_that_depend_on_the_caller)
{
        last_name = NULL;
        cr_expect_null(dlsym(RTLD_DEFAULT, "cuNothingOfThisName"));
        cr_expect_null(dlsym(RTLD_NEXT, "cuNothingOfThisName"));
        cr_expect_null(last_name);
}

Test(dlsym, finds_the_real_one_when_it_is_first_called)
{
        atomic_store(&sp_real_dlsym, NULL);
        cr_expect_eq(dlsym(a_handle(), "strlen"), sp_dlsym(a_handle(), "strlen"));
        atomic_store(&sp_real_dlsym, NULL);
        cr_expect_neq(dlsym(RTLD_DEFAULT, "strlen"), NULL);
        cr_expect_neq(atomic_load(&sp_real_dlsym), NULL);
}
