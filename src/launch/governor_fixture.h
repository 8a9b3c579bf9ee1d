/* SPDX-License-Identifier: Apache-2.0 */
/*
 * governor_fixture.h - a run folder of the test's own, and the path of the governor's socket in it.
 */
#ifndef BH_LAUNCH_GOVERNOR_FIXTURE_H
#define BH_LAUNCH_GOVERNOR_FIXTURE_H

#include "base/scratch.h"
#include "base/test.h"
#include "wire/govern.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[BH_SCRATCH_SOCKET_PATH], path[108];
static struct bh_err err;

static void begin_folder(void)
{
    if (!bh_scratch_make(folder, sizeof(folder), "gov"))
        abort();
    (void)snprintf(path, sizeof(path), "%s/%s", folder, BH_GOVERN_SOCKET_NAME);
    (void)setenv("BULKHEAD_RUN_DIR", folder, 1);
}

static void end(void)
{
    char lock[140];
    (void)snprintf(lock, sizeof(lock), "%s/governor.lock", folder);
    (void)unlink(path);
    (void)unlink(lock);
    CHECK_EQ(rmdir(folder), 0);
    (void)unsetenv("BULKHEAD_RUN_DIR");
}

#endif
