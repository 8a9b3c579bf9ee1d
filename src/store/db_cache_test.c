/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db_cache.h"

#include "store/state_fixture.h"

#include <sys/wait.h>

/* KiB of this process that its children do not get. */
static unsigned long kept_kib(void)
{
    char line[512];
    unsigned long size = 0, sum = 0;
    FILE *f = fopen("/proc/self/smaps", "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, "Size:", 5) == 0) {
            size = 0;
            for (const char *c = line + 5; *c; c++)
                size = *c >= '0' && *c <= '9' ? size * 10 + (unsigned long)(*c - '0') : size;
        }
        if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dc"))
            sum += size;
    }
    if (f)
        fclose(f);
    return sum;
}

static int pages_used(void)
{
    int now = 0, most = 0;
    sqlite3_status(SQLITE_STATUS_PAGECACHE_USED, &now, &most, 0);
    return now;
}

TEST(pages_of_a_store_stay_with_the_process_that_has_it)
{
    struct fix f;
    int status = -1;
    const unsigned long before = kept_kib();
    bh_store_cache_apart();
    CHECK(kept_kib() >= before + 8192);
    fix_init(&f);
    CHECK_EQ(bh_store_note_set_text(f.s, "a", "1", &f.err), 0);
    CHECK(pages_used() > 0);
    const pid_t child = fork();
    if (child == 0)
        _exit(kept_kib() == 0 ? 0 : 1);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(bh_store_note_set_text(f.s, "b", "1", &f.err), 0);
    /* Too late: nothing changes, and nothing is lost. */
    const unsigned long kept = kept_kib();
    bh_store_cache_apart();
    CHECK_EQ(kept_kib(), kept);
    CHECK_EQ(bh_store_note_set_text(f.s, "c", "1", &f.err), 0);
    CHECK_EQ(bh_store_verify(f.s, true, &f.err), 0);
    fix_fini(&f);
}

TEST_MAIN
