/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_clock.c - the clock by which is charged, from one daemon to the next and when the time of day is set. */
#include "node/daemon_clock.h"

#include "base/units.h"
#include "node/life.h"
#include "node/ops.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLOCK_NOTE "clock"

/* Of the kernel that counts the time since boot, whatever else of the machine is simulated. */
static bool boot_id(char *ret, size_t size)
{
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);
    if (fd >= 0)
        close(fd);
    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, " \n")] = '\0';
    return *ret != '\0';
}

/* For the next daemon of this boot: what this one's clock says, and when. */
static int write_clock(struct bh_daemon *d, struct bh_err *err)
{
    char boot[64], text[128];
    if (!boot_id(boot, sizeof(boot)))
        return BH_OK;
    (void)snprintf(text, sizeof(text), "%s %llu %llu", boot, (unsigned long long)bh_clock_read().boot_ms,
                   (unsigned long long)bh_daemon_now(d));
    return bh_store_note_set_text(d->store, CLOCK_NOTE, text, err);
}

/* Is there a lease for which time must not be charged twice or left out? */
static bool any_live(struct bh_daemon *d)
{
    const struct bh_store_lease_filter filter = {.states = bh_store_lease_live() | 1u << BH_LEASE_REQUESTED |
                                                           1u << BH_LEASE_ADMITTED};
    const struct bh_store_page page = {.limit = 1};
    struct bh_arena arena = {0};
    bh_store_leases rows = {0};
    const bool any = bh_store_leases_list(d->store, &arena, &filter, &page, &rows, NULL) < 0 || rows.n > 0;
    bh_vec_fini(&rows);
    bh_arena_fini(&arena);
    return any;
}

/* Where something is live it goes on as the daemon before this one had it, of the same boot. */
int bh_daemon_clock_take_up(struct bh_daemon *d, struct bh_err *err)
{
    char boot[64];
    struct bh_arena arena = {0};
    struct bh_store_note note;
    uint64_t boot_ms, at_ms;
    if (any_live(d) && bh_store_note_get(d->store, &arena, CLOCK_NOTE, &note, NULL) == BH_OK &&
        boot_id(boot, sizeof(boot))) {
        const char *text = bh_arena_strn(&arena, note.value, note.n);
        const size_t n = strcspn(text, " "), m = n + (text[n] ? 1 + strcspn(text + n + 1, " ") : 0);
        if (n == strlen(boot) && memcmp(text, boot, n) == 0 && m > n && text[m] &&
            bh_uint_parse(bh_arena_strn(&arena, text + n + 1, m - n - 1), INT64_MAX, &boot_ms, NULL) ==
                BH_OK &&
            bh_uint_parse(text + m + 1, INT64_MAX, &at_ms, NULL) == BH_OK)
            bh_clock_resume(&d->clock, boot_ms, at_ms);
    }
    bh_arena_fini(&arena);
    int rc = bh_store_begin(d->store, err);
    if (rc < 0)
        return rc;
    rc = write_clock(d, err);
    if (rc == BH_OK)
        return bh_store_commit(d->store, err);
    bh_store_rollback(d->store);
    return rc;
}

static void say_step(struct bh_daemon *d, int64_t by_ms)
{
    char words[120];
    struct bh_err err;
    (void)snprintf(words, sizeof(words),
                   "the time of day was set %lld ms %s; what is charged does not follow",
                   (long long)(by_ms < 0 ? -by_ms : by_ms), by_ms < 0 ? "back" : "ahead");
    const struct bh_audit_event e = {.event = BH_AUDIT_TIME_STEP,
                                     .sub = "service:bulkheadd",
                                     .object_type = "node",
                                     .object_id = d->node,
                                     .reason = words};
    bh_daemon_say(d, "%s", words);
    if (bh_ops_owe(d, &e, true, &err) < 0)
        bh_daemon_say(d, "and that is not in the log yet: %s", err.msg);
}

void bh_daemon_clock_tick(struct bh_daemon *d)
{
    struct bh_err err;
    bool charged = false;
    int64_t by_ms;
    if (bh_clock_step(&d->clock, bh_clock_read(), &by_ms))
        say_step(d, by_ms);
    for (size_t i = 0; !charged && i < d->runs.n; i++)
        charged = bh_lease_is_charged(d->runs.at[i]->state);
    if (!bh_clock_follow(&d->clock, bh_clock_read(), charged))
        return;
    bh_daemon_say(d, "nothing is charged: the time of day is followed again");
    int rc = bh_life_begin(d, &err);
    if (rc == BH_OK)
        rc = bh_life_end(d, write_clock(d, &err), &err);
    if (rc < 0) /* the next start finds an older time, and rows that are later */
        bh_daemon_say(d, "the clock is not written down: %s", err.msg);
}
