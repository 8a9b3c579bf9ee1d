/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_adopt.c - the place of a warden that died, taken by the next one.
 *
 * The journal says what was known and how far the call had come that was being served. Nothing is believed that can be
 * looked at: files are opened again from the tenants, processes are those that are there, the driver counts. What
 * cannot be told stays charged until the driver's count says that it is gone.
 *
 * A call that the driver may have been asked for already is made safe to ask for again: what it would make is freed
 * first, and what it would free may be gone.
 */
#include "warden/gate_inside.h"

#include "gpu/abi/rm.h"
#include "warden/gate_driver.h"
#include "warden/thread.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { GHOSTS_AT_ONCE = 256 }; /* counted together: mostly none of them has anything */

/* ---- processes and files ---- */

static void adopt_process(struct bh_gate *g, const struct bh_journal_process *known)
{
    const uint64_t started = bh_thread_started(known->pid);
    struct bh_remote_process *p =
        started && started == known->started ? bh_remote_process(&g->remote, known->pid) : NULL;
    if (p) {
        p->mapped = bh_ledger_managed(g->ledger, p->pid);
        return;
    }
    /* Its managed memory went with it; its other memory may be with a child. A number that is somebody else's says
     * nothing any more. */
    bh_ledger_unmap(g->ledger, known->pid, UINT64_MAX);
    if (started == 0)
        *bh_vec_push(&g->ghosts) = (struct bh_gate_ghost){known->pid, known->started, -1};
}

static struct bh_remote_process *process_by_pid(const struct bh_gate *g, uint32_t pid)
{
    for (size_t i = 0; i < g->remote.processes.n; i++)
        if (g->remote.processes.at[i]->pid == pid)
            return g->remote.processes.at[i];
    return NULL;
}

static const struct bh_remote_file *file_by_id(const struct bh_gate *g, uint64_t id)
{
    for (size_t i = 0; i < g->remote.files.n; i++)
        if (g->remote.files.at[i].id == id)
            return &g->remote.files.at[i];
    return NULL;
}

static void adopt_files(struct bh_gate *g, const struct bh_journal_found *found)
{
    g->remote.last_id = found->last_file;
    for (size_t i = 0; i < found->slots.n; i++) {
        const struct bh_journal_slot *s = &found->slots.at[i];
        struct bh_remote_process *p = s->pid ? process_by_pid(g, s->pid) : NULL;
        if (p)
            (void)bh_remote_restore(&g->remote, p, s->fd, s->file,
                                    (struct bh_driver_file){(uint8_t)s->kind, s->gpu}, s->inode);
    }
    /* Children that never asked for anything. */
    bh_remote_find_holders(&g->remote);
    for (size_t i = 0; i < found->slots.n; i++)
        if (!file_by_id(g, found->slots.at[i].file))
            bh_ledger_file_closed(g->ledger, found->slots.at[i].file);
}

/* Every process since the half was written last is in the journal: most have left nothing. */
static void drop_idle_ghosts(struct bh_gate *g)
{
    const size_t n_gpus = g->n_gpus < BH_LEDGER_GPUS ? g->n_gpus : BH_LEDGER_GPUS;
    size_t kept = 0;
    for (size_t i = 0, n; i < g->ghosts.n; i += n) {
        uint32_t pids[GHOSTS_AT_ONCE];
        uint64_t bytes[BH_LEDGER_GPUS] = {0}, sum = 0;
        struct bh_err err;
        n = g->ghosts.n - i < GHOSTS_AT_ONCE ? g->ghosts.n - i : GHOSTS_AT_ONCE;
        for (size_t k = 0; k < n; k++)
            pids[k] = g->ghosts.at[i + k].pid;
        const bool counted = g->driver->count(g->counter, pids, n, bytes, n_gpus, &err) == BH_OK;
        for (size_t gpu = 0; gpu < n_gpus; gpu++)
            sum |= bytes[gpu];
        if (counted && sum == 0)
            continue; /* none has a pidfd to close */
        for (size_t k = 0; k < n; k++)
            g->ghosts.at[kept++] = g->ghosts.at[i + k];
    }
    g->ghosts.n = kept;
}

/* What was granted and is not mapped may be about to be: it stays charged for as long as that can take. */
static void expect_mappings(struct bh_gate *g, const struct bh_journal_found *found)
{
    for (size_t i = 0; i < found->mappings.n; i++) {
        const struct bh_journal_mapping *m = &found->mappings.at[i];
        struct bh_remote_process *p = process_by_pid(g, m->pid);
        if (!p)
            continue;
        struct bh_remote_mapping *at =
            bh_gate_expect(g, p, m->tid, m->bytes < p->mapped ? m->bytes : p->mapped);
        at->unsettled = true; /* it may have been given up, and mapped since */
        at->lingers = true;
    }
    for (size_t i = 0; i < g->remote.processes.n; i++)
        g->remote.processes.at[i]->let_map = true; /* it is not known */
}

void bh_gate_adopt(struct bh_gate *g, const struct bh_journal_found *found)
{
    for (size_t i = 0; i < found->processes.n; i++)
        adopt_process(g, &found->processes.at[i]);
    drop_idle_ghosts(g);
    adopt_files(g, found);
    bh_proof_adopt(&g->proof);
    expect_mappings(g, found);
    bh_gate_count(g);
    bh_gate_forgive(g);
    bh_journal_compact(g->journal, bh_journal_stage(g->journal));
}

/* ---- the call it was at ---- */

/* Calls that make or free what they name. */
static const struct naming {
    uint32_t number;
    size_t client, object;
} namings[] = {
    {RM_ALLOC, offsetof(struct rm_alloc, client), offsetof(struct rm_alloc, object)},
    {RM_ALLOC_MEMORY, offsetof(struct rm_alloc_memory, client), offsetof(struct rm_alloc_memory, object)},
    {RM_DUP_OBJECT, offsetof(struct rm_dup, client), offsetof(struct rm_dup, object)},
    {RM_FREE, offsetof(struct rm_free, client), offsetof(struct rm_free, object)},
    {RM_VID_HEAP_CONTROL, offsetof(struct rm_vid_heap, client), offsetof(struct rm_vid_heap, memory)},
};

static uint32_t word_at(const void *arg, size_t offset)
{
    uint32_t word;
    memcpy(&word, (const char *)arg + offset, sizeof(word));
    return word;
}

static const struct naming *naming_of(uint32_t number)
{
    for (size_t i = 0; i < BH_COUNT_OF(namings); i++)
        if (namings[i].number == number)
            return &namings[i];
    return NULL;
}

/* RM_FREE, or a free by way of the heap. */
static bool is_free(uint32_t number, const void *arg)
{
    return number == RM_FREE || (number == RM_VID_HEAP_CONTROL &&
                                 word_at(arg, offsetof(struct rm_vid_heap, function)) == RM_HEAP_FREE);
}

void bh_gate_issuing(struct bh_gate *g, const struct bh_gate_call *c, uint32_t number, const void *arg)
{
    struct bh_journal_flight *f = bh_journal_flight(g->journal);
    const struct naming *naming = naming_of(number);
    f->pid = c->process->pid;
    f->file = c->file.id;
    f->number = is_free(number, arg) ? RM_FREE : number;
    f->client = naming ? word_at(arg, naming->client) : 0;
    f->object = naming ? word_at(arg, naming->object) : 0;
    bh_journal_set_stage(g->journal, BH_JOURNAL_ISSUING);
}

static bool is_gone(uint32_t status)
{
    return status == RM_OBJECT_NOT_FOUND || status == RM_INVALID_OBJECT_HANDLE || status == RM_INVALID_CLIENT;
}

void bh_gate_issued(struct bh_gate *g, uint32_t number, void *arg)
{
    struct bh_journal_flight *f = bh_journal_flight(g->journal);
    const struct naming *naming = naming_of(number);
    if (!naming)
        return;
    f->object = word_at(arg, naming->object); /* where the driver chose it, it is known now */
    if (!g->again || !is_free(number, arg))
        return;
    const size_t at =
        number == RM_FREE ? offsetof(struct rm_free, status) : offsetof(struct rm_vid_heap, status);
    const uint32_t done = RM_OK;
    if (is_gone(word_at(arg, at)))
        memcpy((char *)arg + at, &done, sizeof(done)); /* the first time it was asked for */
}

/*
 * Frees what the call may have made. A name that the ledger knows was in use before: then the call is one that frees it,
 * which is asked for again where somebody waits for that, or the driver has refused to make another of that name.
 */
static void unmake(struct bh_gate *g, bool waited_for)
{
    const struct bh_journal_flight *f = bh_journal_flight(g->journal);
    const struct bh_remote_file *file = file_by_id(g, f->file);
    struct bh_gate_call c = {
        .notif = &f->notif, .process = process_by_pid(g, f->pid), .listener = g->config->listener};
    const bool known = bh_ledger_has(g->ledger, f->client, f->object);
    if (!f->object || !file || !c.process || (known && (f->number != RM_FREE || waited_for)))
        return;
    c.file = *file;
    struct rm_free gone = {.client = f->client, .object = f->object};
    if (bh_gate_issue(g, &c, RM_FREE, sizeof(gone), &gone) == 0 &&
        (gone.status == RM_OK || is_gone(gone.status)))
        bh_ledger_drop(g->ledger, gone.client, gone.object);
}

void bh_gate_finish_flight(struct bh_gate *g)
{
    struct bh_journal_flight *f = bh_journal_flight(g->journal);
    const enum bh_journal_stage stage = bh_journal_stage(g->journal);
    struct bh_gate_call c = {.notif = &f->notif, .listener = g->config->listener};
    if (f->notif.id && stage == BH_JOURNAL_ANSWERED && f->answer.id == f->notif.id) {
        bh_gate_send_answer(g, &c); /* it may have been: then this one is for nobody */
    } else if (f->notif.id) {
        const bool waited_for = ioctl(g->config->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &f->notif.id) == 0;
        if (stage == BH_JOURNAL_ISSUING)
            unmake(g, waited_for);
        g->again = stage == BH_JOURNAL_ISSUING;
        if (waited_for)
            bh_gate_serve_flight(g);
        g->again = false;
    }
    bh_journal_clear_flight(g->journal);
}
