/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Layout -- how pools of device memory are cut up, if not as the default heap
 *
 * The pools are listed here as they are made, with the model's lock held, and nowhere else in one
 * place: so a layout that is installed reaches all there are, and what is made later has it from
 * the start.
 */

#define _GNU_SOURCE

#include "track/layout.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file.h"
#include "base/log.h"
#include "base/parse.h"
#include "track/state.h"

#define DEVICES   SP_LIMITS
#define NO_MEMORY "there is no memory for it"

struct member {
        spm_pool pool;
        int device;
        bool is_laid; /* it has what is in force for its device */
        struct member *next;
};

/* Guarded by the model's lock. The first of each is for all devices; the others for one. */
static struct sp_layout_wish *in_force[1 + DEVICES];
static unsigned int windows[1 + DEVICES];
static struct member *members;
static bool is_told;

/* Written once, before the shim is on. */
static int devices;
static const char *file;

static bool is_named(int device)
{
        return device >= 0 && device < DEVICES;
}

const struct sp_layout_wish *sp_layout_of(int device)
{
        return is_named(device) ? in_force[1 + device] : in_force[0];
}

static const struct spm_layout *layout_of(const struct sp_layout_wish *wish)
{
        return wish && !wish->is_heap ? &wish->layout : NULL;
}

static const struct spm_layout *layout_for(int device)
{
        const struct sp_layout_wish *own = sp_layout_of(device);

        return layout_of(own ? own : in_force[0]);
}

bool sp_layout_is_in_force(int device)
{
        return layout_for(device) != NULL;
}

/* what the environment says */

static void complain(const char *what, const char *why)
{
        sp_log(SP_LOG_ERROR, "STREAMPOOL_LAYOUT%s%s %s, and pools have the default heap: %s",
               file ? "=@" : "", file ? file : "", what, why);
}

/* Return: false, and it was said why. */
static bool parse(const char *text, struct spm_layout *layout)
{
        struct spm_layout_error error;
        char why[SP_LOG_MAX];

        if (spm_layout_parse(text, layout, &error) == SPM_OK)
                return true;
        spm_layout_explain(&error, why, sizeof(why));
        complain("is wrong", why);
        return false;
}

/* As text of its own, for as long as it takes. */
static bool parse_file(struct spm_layout *layout)
{
        const char *why;
        size_t size = SP_FILE_MAX + 1, length = 0;
        char *text = mmap(NULL, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        bool is_read;

        if (text == MAP_FAILED) {
                complain("cannot be read", NO_MEMORY);
                return false;
        }
        why = sp_file_read(file, text, &length);
        if (!why && strlen(text) != length)
                why = "it is no text";
        if (why)
                complain("cannot be read", why);
        is_read = !why && parse(text, layout);
        munmap(text, size);
        return is_read;
}

void sp_layout_start(const char *text, int count)
{
        struct sp_layout_wish *wish;

        devices = count < DEVICES ? count : DEVICES;
        if (!text || !*text)
                return;
        if (*text == '@')
                file = text + 1;
        wish = calloc(1, sizeof(*wish));
        if (!wish) {
                complain("cannot be kept", NO_MEMORY);
                return;
        }
        wish->source = file ? SP_LAYOUT_OF_FILE : SP_LAYOUT_OF_ENVIRONMENT;
        if (file ? parse_file(&wish->layout) : parse(text, &wish->layout))
                in_force[0] = wish;
        else
                free(wish);
}

int sp_layout_devices(void)
{
        return devices;
}

const char *sp_layout_path(void)
{
        return file;
}

/* one pool */

static unsigned int windows_of(int device)
{
        return windows[0] + (is_named(device) ? windows[1 + device] : 0);
}

/* The pool holds nothing that would be given back. The default heap has no windows, so that a pool
 * that comes from there has to be told. */
static enum spm_status lay(struct spm_model *model, struct member *member,
                           const struct spm_layout *layout, struct spm_layout_error *error)
{
        struct spm_actions actions;
        enum spm_status status = spm_pool_install(model, member->pool, layout, error, &actions);

        assert(!actions.count);
        if (status)
                return status;
        if (layout && !member->is_laid)
                for (unsigned int i = windows_of(member->device); i; i--)
                        (void)spm_persistent_enter(model, member->pool);
        member->is_laid = layout != NULL;
        return status;
}

static void lay_first(struct spm_model *model, struct member *member)
{
        const struct spm_layout *layout = layout_for(member->device);
        struct spm_layout_error error = {.fault = SPM_LAYOUT_FINE};
        enum spm_status status = layout ? lay(model, member, layout, &error) : SPM_OK;
        char why[SP_LOG_MAX];

        if (status == SPM_OK || is_told)
                return;
        is_told = true;
        spm_layout_explain(&error, why, sizeof(why));
        sp_log(SP_LOG_WARNING, "a pool has the default heap, and not the layout in force: %s",
               error.fault ? why : spm_status_name(status));
}

static void forget_ended(const struct spm_model *model)
{
        struct member **at = &members;
        struct spm_pool_config config;

        while (*at) {
                struct member *member = *at;

                if (spm_pool_get_config(model, member->pool, &config) == SPM_OK) {
                        at = &member->next;
                        continue;
                }
                *at = member->next;
                free(member);
        }
}

bool sp_layout_make_pool(struct spm_model *model, const struct spm_pool_config *wish,
                         spm_pool *pool)
{
        struct member *made = calloc(1, sizeof(*made));

        forget_ended(model);
        if (!made || spm_pool_create(model, wish, pool) != SPM_OK) {
                free(made);
                return false;
        }
        *made = (struct member){.pool = *pool, .device = wish->device, .next = members};
        members = made;
        lay_first(model, made);
        return true;
}

/* all of them */

static bool is_meant(const struct member *member, int device)
{
        return device == SP_LAYOUT_ALL || member->device == device;
}

/* @idle: return argument, a pool that has to give something back first. */
static enum spm_status survey(struct spm_model *model, const struct spm_layout *layout, int device,
                              struct sp_layout_refusal *refusal, spm_pool *idle)
{
        *idle = 0;
        for (const struct member *member = members; member; member = member->next) {
                struct spm_layout_error why = {.fault = SPM_LAYOUT_FINE};
                enum spm_status status;

                if (!is_meant(member, device))
                        continue;
                (void)spm_magazine_retire(model, member->pool);
                status = spm_pool_may_install(model, member->pool, layout, &why);
                if (status == SPM_AGAIN) {
                        *idle = member->pool;
                } else if (status == SPM_E_IN_USE) {
                        refusal->pools++;
                        refusal->live += why.value;
                        refusal->pending += why.limit;
                } else if (status != SPM_OK && status != SPM_E_UNKNOWN) {
                        refusal->reason = why.field;
                        return status;
                }
        }
        if (refusal->pools)
                return SPM_E_IN_USE;
        return *idle ? SPM_AGAIN : SPM_OK;
}

/* What stays although it is idle is known outside, or a capture is in the way. */
static enum spm_status give_back(struct spm_model *model, spm_pool pool,
                                 struct sp_layout_refusal *refusal, struct spm_actions *actions)
{
        uint64_t released = 0;

        (void)spm_trim(model, pool, 0, &released, actions);
        if (released || actions->count)
                return SPM_AGAIN;
        refusal->pools++;
        return SPM_E_IN_USE;
}

/* Back to what they had. One for which the host has no memory even now keeps the new one: it is as
 * empty, and works. */
static void undo(struct spm_model *model, int device, const struct member *end)
{
        for (struct member *member = members; member != end; member = member->next)
                if (is_meant(member, device))
                        (void)lay(model, member, layout_for(member->device), NULL);
}

/* Nothing of theirs is in use or idle, so that it can only be the host that has no memory. */
static enum spm_status lay_all(struct spm_model *model, const struct spm_layout *layout, int device)
{
        for (struct member *member = members; member; member = member->next) {
                enum spm_status status =
                        is_meant(member, device) ? lay(model, member, layout, NULL) : SPM_OK;

                if (status == SPM_OK || status == SPM_E_UNKNOWN)
                        continue;
                undo(model, device, member);
                return status;
        }
        return SPM_OK;
}

static void replace(unsigned int place, struct sp_layout_wish *wish)
{
        free(in_force[place]);
        in_force[place] = wish;
}

/* What is said of all devices is said of each. */
static void put_in_force(struct sp_layout_wish *wish, int device)
{
        if (device != SP_LAYOUT_ALL) {
                replace(1 + (unsigned int)device, wish);
                return;
        }
        for (unsigned int i = 1; i <= DEVICES; i++)
                replace(i, NULL);
        replace(0, wish);
}

enum spm_status sp_layout_try(struct sp_layout_wish *wish, int device,
                              struct sp_layout_refusal *refusal, struct spm_actions *actions)
{
        const struct spm_layout *layout = layout_of(wish);
        struct spm_model *model = sp_model_enter();
        enum spm_status status;
        spm_pool idle;

        *refusal = (struct sp_layout_refusal){0};
        actions->count = 0;
        status = survey(model, layout, device, refusal, &idle);
        if (status == SPM_AGAIN)
                status = give_back(model, idle, refusal, actions);
        else if (status == SPM_OK)
                status = lay_all(model, layout, device);
        if (status == SPM_OK)
                put_in_force(wish, device);
        sp_model_leave();
        return status;
}

void sp_layout_window(int device, bool opens)
{
        struct spm_model *model = sp_model_enter();
        unsigned int *open = device == SP_LAYOUT_ALL ? &windows[0] : &windows[1 + device];
        bool counts = opens || *open;

        if (counts)
                *open += opens ? 1u : -1u;
        for (const struct member *member = members; counts && member; member = member->next) {
                if (!is_meant(member, device))
                        continue;
                if (opens)
                        (void)spm_persistent_enter(model, member->pool);
                else
                        (void)spm_persistent_leave(model, member->pool);
        }
        sp_model_leave();
}
