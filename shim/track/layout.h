/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_LAYOUT_H
#define SP_TRACK_LAYOUT_H

/*
 * Layout -- how pools of device memory are cut up, if not as the default heap
 *
 * What STREAMPOOL_LAYOUT says is in force from the start, for all devices; what the program says
 * itself (streampool_set_layout()) replaces it, for one device or for all. It concerns all pools of
 * device memory, one of which serves all streams of its device or context: a cap is one of that
 * pool, and not of a stream. Pinned host memory has no layout. Release thresholds, and options that
 * say what a pool may hold or keep, do nothing then; a program that trims a pool gets all of its
 * idle pages back.
 *
 * Windows of persistent memory are counted here, too: pools that get a layout later are in them.
 */

#include <stdbool.h>
#include <streampool/model.h>

#define SP_LAYOUT_ALL (-1) /* in place of a device */

enum sp_layout_source {
        SP_LAYOUT_OF_NOBODY, /* the default heap, as nothing was said */
        SP_LAYOUT_OF_ENVIRONMENT,
        SP_LAYOUT_OF_FILE,
        SP_LAYOUT_OF_PROGRAM,
};

/* For one device, or for all; the caller makes it of zeros, and then it is kept here. */
struct sp_layout_wish {
        enum sp_layout_source source;
        bool is_heap; /* the default one; else */
        struct spm_layout layout;
};

/**
 * sp_layout_start() - STREAMPOOL_LAYOUT, before the shim is on: the text, or @ and the path of a
 * file that has it
 * @devices: how many there are
 *
 * What is wrong in it is told, and then pools have the default heap.
 */
void sp_layout_start(const char *text, int devices);

/** sp_layout_devices() - how many can be named. */
int sp_layout_devices(void);

/** sp_layout_path() - the file of SP_LAYOUT_OF_FILE. */
const char *sp_layout_path(void);

/* With the model's lock held. */

/** sp_layout_make_pool() - a pool of device memory, with the layout that is in force. One that
 * cannot have it has the default heap. Return: false if there can be no pool. */
bool sp_layout_make_pool(struct spm_model *model, const struct spm_pool_config *wish,
                         spm_pool *pool);

/** sp_layout_of() - what was said of @device, or of all others; NULL if nothing was. */
const struct sp_layout_wish *sp_layout_of(int device);

/** sp_layout_is_in_force() - are pools of @device to be cut up otherwise than as the default heap?
 * One that could not be is none the less. */
bool sp_layout_is_in_force(int device);

/* Without it. */

/* What an attempt was in vain for, summed up over all pools. */
struct sp_layout_refusal {
        unsigned int pools; /* in use */
        uint64_t live;      /* bytes, as asked for */
        uint64_t pending;   /* freed, and not complete or known outside */
        const char *reason; /* of SPM_E_UNSUPPORTED */
};

/**
 * sp_layout_try() - all pools of @device get a layout, or none of them
 * @wish:    kept, once they have it
 * @refusal: return argument, if they have not
 * @actions: return argument: RELEASE of what is idle
 *
 * What threads have at hand of them goes back to them, in any case.
 *
 * Return: SPM_OK; SPM_AGAIN: carry out, try again; SPM_E_IN_USE; SPM_E_UNSUPPORTED;
 * SPM_E_HOST_MEMORY.
 */
enum spm_status sp_layout_try(struct sp_layout_wish *wish, int device,
                              struct sp_layout_refusal *refusal, struct spm_actions *actions);

/** sp_layout_window() - a window of persistent memory in the pools of @device is opened, or closed;
 * to close one that nobody opened there does nothing. */
void sp_layout_window(int device, bool opens);

#endif
