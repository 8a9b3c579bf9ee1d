/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.c - the soft limit up to the hard one; the hard one too, where this process may (CAP_SYS_RESOURCE).
 */
#include "host/limits.h"

#include "base/mem.h"
#include "base/sysfile.h"
#include "base/units.h"

#include <stdbool.h>
#include <sys/resource.h>

/* "No limit" is not to be had for open files: the kernel's own is the most. 0: it cannot be read. */
static rlim_t files_at_most(void)
{
    char text[32];
    uint64_t most;
    return bh_sysfile_line("/proc/sys/fs/nr_open", text, sizeof(text), NULL) == BH_OK &&
                   bh_uint_parse(text, UINT32_MAX, &most, NULL) == BH_OK
               ? most
               : 0;
}

static void raise_one(__rlimit_resource_t which, rlim_t most)
{
    const struct rlimit all = {most, most};
    struct rlimit now;
    if (getrlimit(which, &now) < 0 || (most && now.rlim_cur >= most))
        return;
    if (most && setrlimit(which, &all) == 0)
        return;
    now.rlim_cur = now.rlim_max;
    (void)setrlimit(which, &now);
}

void bh_limits_raise(void)
{
    static const __rlimit_resource_t rest[] = {RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_CPU};
    raise_one(RLIMIT_NOFILE, files_at_most());
    for (size_t i = 0; i < BH_COUNT_OF(rest); i++)
        raise_one(rest[i], RLIM_INFINITY);
}

static struct rlimit files_before;
static bool files_raised;

void bh_limits_raise_files(void)
{
    struct rlimit now;
    if (files_raised || getrlimit(RLIMIT_NOFILE, &now) < 0)
        return;
    files_before = now;
    now.rlim_cur = now.rlim_max;
    files_raised = setrlimit(RLIMIT_NOFILE, &now) == 0;
}

void bh_limits_lower_files(void)
{
    if (files_raised)
        (void)setrlimit(RLIMIT_NOFILE, &files_before);
}
