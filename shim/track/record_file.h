/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_RECORD_FILE_H
#define SP_TRACK_RECORD_FILE_H

/*
 * Record, file -- where a recording is written, piece by piece
 *
 * The file is opened for each piece: a descriptor that stays open would be closed, and its number
 * taken by another file, where a program closes all that it does not know. What is
 * written is a file that begins empty and that nobody else changes; if that is not so any more, or
 * if a piece cannot be written, the recording ends with the piece before it.
 *
 * The caller serialises all calls. errno stays as it is, and a thread that was cancelled goes on.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sp_record_file {
        char path[2 * PATH_MAX]; /* whatever the working directory becomes */
        uint64_t device, inode;
        uint64_t bytes; /* that were written */
        bool has_ended; /* nothing more is written */
};

/**
 * sp_record_file_make() - an empty file
 * @pattern: its name, as that of a report (base/name.h)
 *
 * Return: false if it cannot be had; that has been said then.
 */
bool sp_record_file_make(struct sp_record_file *file, const char *pattern);

/** sp_record_file_add() - all of @bytes, or nothing, and that is said. Return: true if they are
 * written. */
bool sp_record_file_add(struct sp_record_file *file, const char *bytes, size_t length);

#endif
