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

/* As where somebody's bill has more to sort than there may be of it. */
TEST(no_more_memory_than_it_may_have)
{
    struct fix f;
    int64_t before;
    fix_init(&f);
    before = sqlite3_memory_used();
    bh_store_memory_most((uint64_t)before + (4 << 20));
    CHECK(raw(f.s, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)"
                   " SELECT count(DISTINCT printf('%064d', i)) FROM n") != 0);
    CHECK_EQ(sqlite3_errcode(bh_store_handle(f.s)), SQLITE_NOMEM);
    CHECK(sqlite3_memory_used() < before + (8 << 20));
    bh_store_memory_most(0);
    CHECK_EQ(bh_store_note_set_text(f.s, "d", "1", &f.err), 0); /* and it goes on */
    fix_fini(&f);
}

TEST_MAIN
