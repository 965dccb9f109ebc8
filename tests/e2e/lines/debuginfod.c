/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debuginfod -- stands for elfutils' client, and writes down that it was asked
 *
 * Into the file named by ASKED. libdw loads it by itself if it was built to.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void *debuginfod_begin(void);
void debuginfod_end(void *client);
int debuginfod_find_debuginfo(void *client, const unsigned char *id, int size, char **path);
int debuginfod_find_executable(void *client, const unsigned char *id, int size, char **path);

static int write_down(const char *what)
{
        const char *name = getenv("ASKED");
        FILE *file = name ? fopen(name, "a") : NULL;

        if (file) {
                fprintf(file, "%s\n", what);
                fclose(file);
        }
        return -ENOENT;
}

void *debuginfod_begin(void)
{
        static int client;

        return &client;
}

void debuginfod_end(void *client)
{
        (void)client;
}

int debuginfod_find_debuginfo(void *client, const unsigned char *id, int size, char **path)
{
        (void)client, (void)id, (void)size, (void)path;
        return write_down("debuginfo");
}

int debuginfod_find_executable(void *client, const unsigned char *id, int size, char **path)
{
        (void)client, (void)id, (void)size, (void)path;
        return write_down("executable");
}
