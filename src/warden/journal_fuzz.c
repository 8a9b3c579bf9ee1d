/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a journal. A third of them are records that nobody would write, with right sums; a third are that as the
 * version before wrote it; others are a right journal in which bytes were changed. Whatever it is: an error that says so,
 * or a ledger that keeps its invariants, from which the next one can go on.
 */
#include "base/choice.h"
#include "warden/journal.h"
#include "warden/journal_old_fixture.h"
#include "warden/ledger_ops_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CAP (UINT64_C(1) << 30)
enum { HEAD = 4096, NAMES = 6, RECORDS_MAX = 200 };

static struct old_journal old; /* fd 0: it is one of this version */

static void stop_if(const char *why)
{
    if (!why)
        return;
    (void)fprintf(stderr, "%s\n", why);
    abort();
}

static void no_rest(void *arg, struct bh_journal *j)
{
    (void)arg;
    (void)j;
}

static uint32_t number(struct bh_choice *c) /* mostly few that meet, sometimes any */
{
    return bh_choose(c, 8) ? bh_choose(c, NAMES) : bh_choose(c, UINT32_MAX);
}

static uint64_t bytes_of(struct bh_choice *c)
{
    static const uint64_t bytes[] = {0, 1, 65536, CAP, CAP + 1, UINT64_MAX, UINT64_C(1) << 43, 4096};
    return bytes[bh_choose(c, BH_COUNT_OF(bytes))];
}

static void put_op(struct bh_journal *j, struct bh_ledger *l, struct bh_choice *c)
{
    (void)j;
    const struct bh_ledger_op op = {.kind = bh_choose(c, BH_LEDGER_OP_N_ + 1),
                                    .pid = number(c),
                                    .client = number(c),
                                    .parent = number(c),
                                    .object = number(c),
                                    .gpu = bh_choose(c, 4) ? bh_choose(c, 3) : number(c),
                                    .flags = bh_choose(c, 2),
                                    .bytes = bytes_of(c),
                                    .file = number(c),
                                    .source_client = number(c),
                                    .source = bh_choose(c, 2) ? number(c) : UINT32_MAX};
    l->log.fn(l->log.arg, &op); /* as if the ledger had told it */
}

static void put_slot(struct bh_journal *j, struct bh_ledger *l, struct bh_choice *c)
{
    (void)l;
    const struct bh_journal_slot s = {
        .pid = number(c), .fd = (int32_t)number(c), .file = number(c), .kind = number(c)};
    const bool gone = !bh_choose(c, 2);
    if (old.fd)
        old_slot(&old, gone ? OLD_SLOT_GONE : OLD_SLOT, &s);
    else if (gone)
        bh_journal_slot_gone(j, s.pid, s.fd);
    else
        bh_journal_slot(j, &s);
}

static void put_process(struct bh_journal *j, struct bh_ledger *l, struct bh_choice *c)
{
    (void)l;
    struct bh_journal_process p = {.pid = number(c)};
    struct bh_journal_mapping m = {0};
    p.started = number(c);
    m.pid = number(c);
    m.tid = number(c);
    m.bytes = bytes_of(c);
    if (old.fd) {
        old_process(&old, &p);
        old_mapping(&old, &m);
        return;
    }
    bh_journal_process(j, &p);
    bh_journal_mapping(j, &m);
}

/* Takes it over, if that can be; goes on, and lets another one take over. */
static void take_over(int fd, int more)
{
    struct bh_journal *j;
    struct bh_journal_found found;
    struct bh_err err = {0};
    if (bh_journal_adopt(fd, CAP, 1, &j, &found, &err) < 0) {
        stop_if(err.code == BH_CONFLICT && err.msg[0] ? NULL : "an error that says nothing");
        stop_if(more ? NULL : "what was just written is not believed");
        return;
    }
    stop_if(bh_ledger_check(found.ledger));
    bh_journal_attach(j, found.ledger, no_rest, NULL);
    (void)bh_ledger_client(found.ledger, 3, 4, 5);
    bh_ledger_counted(found.ledger, 0, 4096);
    bh_journal_compact(j, bh_journal_stage(j));
    bh_journal_free(j);
    if (more)
        take_over(fd, 0);
    bh_journal_found_fini(&found);
}

static void change_bytes(int fd, struct bh_choice *c)
{
    for (uint32_t n = bh_choose(c, 4); n > 0; n--) {
        const uint8_t value = (uint8_t)bh_choose(c, 256);
        const off_t at = bh_choose(c, 2) ? (off_t)bh_choose(c, 64) : HEAD + (off_t)bh_choose(c, 8192);
        if (pwrite(fd, &value, 1, at) != 1)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const puts[])(struct bh_journal *, struct bh_ledger *,
                                struct bh_choice *) = {put_op, put_op, put_op, put_op, put_slot, put_process};
    struct bh_choice c = {data, size};
    struct bh_journal *j;
    const uint32_t what = bh_choose(&c, 3);
    const bool changed = what == 0, garbage = bh_choose(&c, 16) == 0;
    int fd = memfd_create("journal-fuzz", MFD_CLOEXEC);
    struct bh_ledger *l = bh_ledger_new(CAP);
    if (fd < 0 || bh_journal_new(fd, CAP, &j, NULL) < 0)
        abort();
    bh_journal_attach(j, l, no_rest, NULL);
    old = (struct old_journal){.fd = what == 2 ? fd : 0, .half = size % 2};
    if (old.fd)
        bh_ledger_observe(l, (struct bh_ledger_log){old_hear, &old});
    for (uint32_t n = 0; c.left && n < RECORDS_MAX; n++)
        puts[bh_choose(&c, BH_COUNT_OF(puts))](j, l, &c);
    if (old.fd)
        old_commit(&old, CAP, (enum bh_journal_stage)(size % 3));
    else
        bh_journal_commit(j, (enum bh_journal_stage)(size % 3));
    if (old.failed)
        abort();
    bh_journal_free(j);
    struct bh_choice again = {data, size};
    if (changed)
        change_bytes(fd, &again);
    if (garbage && pwrite(fd, data, size < HEAD ? size : HEAD, 0) < 0)
        abort();
    take_over(fd, 1);
    bh_ledger_free(l);
    close(fd);
    return 0;
}
