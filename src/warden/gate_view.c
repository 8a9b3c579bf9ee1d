/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_view.c - a control of the tenant's: looked at once, and answered where it would show more than the slice.
 *
 * Programs make hundreds of controls at their start and one with each allocation. So the 32 bytes of the call are read
 * and the command looked up before anything else; which file and whose it is, is found out only for those that are ours.
 * These are carried out like every other call: on a copy, with the tenant's rights.
 */
#include "warden/gate_view.h"

#include "warden/gate_driver.h"
#include "warden/gate_steer.h"
#include "warden/view.h"
#include "wire/lease.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* One gate a process, and one call at a time. Untouched, it costs nothing. */
static uint8_t params[BH_VIEW_PARAMS_MAX] __attribute__((aligned(8)));

struct question {
    struct rm_control call;
    uint64_t at; /* the call's place in the tenant */
    const struct bh_view_control *row;
    struct bh_view_lease lease;
};

/* ---- what the lease has ---- */

/* Of the GPU in question; where that is not known, of the fullest. */
static uint64_t used_on(const struct bh_gate *g, uint32_t gpu)
{
    uint64_t most = 0;
    if (gpu < g->n_gpus && gpu < BH_LEDGER_GPUS)
        return bh_ledger_sum(g->ledger, gpu).used;
    for (uint32_t i = 0; i < g->n_gpus && i < BH_LEDGER_GPUS; i++) {
        const uint64_t used = bh_ledger_sum(g->ledger, i).used;
        most = used > most ? used : most;
    }
    return most;
}

static struct bh_view_lease lease_of(struct bh_gate *g, const struct rm_control *a)
{
    (void)bh_gate_close_lost(g, false);
    (void)bh_proof_settle(&g->proof); /* what was freed is shown as free */
    bh_gate_pids(g);
    return (struct bh_view_lease){.view = g->config->view,
                                  .cap = g->config->cap_bytes,
                                  .used = used_on(g, bh_ledger_gpu_of(g->ledger, a->client, a->object)),
                                  .pids = g->pids.at,
                                  .n_pids = g->pids.n};
}

/* In a namespace of its own a tenant has numbers of its own, which the driver knows and we do not. What it tells there is not
 * all translated: samples keep the neighbours that it cannot name, with their load and an address of the kernel's. */
static bool has_own_numbers(uint32_t pid)
{
    struct stat mine, its;
    char path[40];
    (void)snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
    return stat("/proc/self/ns/pid", &mine) == 0 && stat(path, &its) == 0 && mine.st_ino != its.st_ino;
}

static bool names_processes(const struct bh_view_control *row)
{
    return row->what == BH_VIEW_PIDS || row->what == BH_VIEW_PID_INFO || row->what == BH_VIEW_SAMPLES;
}

/* ---- asking and answering ---- */

/* The answer in the call alone. */
static int answer_status(const struct bh_gate_call *c, struct question *q, uint32_t status)
{
    q->call.status = status;
    return bh_gate_store(c, q->at, &q->call, sizeof(q->call));
}

/* Asks the driver by our own parameters. The tenant's command, pointer and size stand in the call again afterwards. */
static int ask(struct bh_gate *g, const struct bh_gate_call *c, struct question *q, uint32_t command,
               uint32_t size)
{
    struct bh_view_asked asked;
    struct rm_control a = q->call;
    q->call.status = bh_view_ask(q->row, &q->lease, params, &asked);
    if (q->call.status != RM_OK)
        return 0;
    a.command = command;
    a.params = (uintptr_t)params;
    a.params_size = size;
    int rc = bh_gate_carry_out(g, c, RM_CONTROL, sizeof(a), &a);
    if (rc < 0)
        return rc;
    q->call.status = a.status;
    bh_view_answer(q->row, &q->lease, &asked, params);
    return 0;
}

static int plain(struct bh_gate *g, const struct bh_gate_call *c, struct question *q)
{
    int rc = bh_gate_fetch(c, q->call.params, params, q->row->params);
    if (rc == 0)
        rc = ask(g, c, q, q->call.command, q->row->params);
    if (rc < 0)
        return rc;
    const struct bh_remote_piece pieces[] = {{q->at, &q->call, sizeof(q->call)},
                                             {q->call.params, params, q->row->params}};
    return bh_gate_store_all(c, pieces, BH_COUNT_OF(pieces));
}

/* The older form: its list is put into the newer one, so that no pointer of the tenant's reaches the driver. */
static int listed(struct bh_gate *g, const struct bh_gate_call *c, struct question *q)
{
    struct rm_fb_info_list list;
    struct rm_fb_info *f = (void *)params;
    int rc = bh_gate_fetch(c, q->call.params, &list, sizeof(list));
    if (rc < 0)
        return rc;
    if (list.count > BH_VIEW_LIST_MAX)
        return answer_status(c, q, RM_INVALID_ARGUMENT);
    const size_t n = list.count * sizeof(f->at[0]);
    memset(f, 0, sizeof(*f));
    f->count = list.count;
    rc = n ? bh_gate_fetch(c, list.list, f->at, n) : 0;
    if (rc == 0)
        rc = ask(g, c, q, RM_CTRL_FB_GET_INFO_V2, sizeof(*f));
    if (rc < 0)
        return rc;
    const struct bh_remote_piece pieces[] = {{q->at, &q->call, sizeof(q->call)}, {list.list, f->at, n}};
    return bh_gate_store_all(c, pieces, n ? 2 : 1);
}

/* Ours, on one of the driver's files. */
static int question(struct bh_gate *g, struct bh_gate_call *c, struct question *q)
{
    if (q->row->what == BH_VIEW_WITHHOLD || q->call.flags || /* flags change what the parameters are */
        (names_processes(q->row) && has_own_numbers(c->process->pid)))
        return answer_status(c, q, RM_NOT_SUPPORTED);
    if (q->call.params_size != q->row->params)
        return answer_status(c, q, RM_INVALID_PARAM_STRUCT);
    q->lease = lease_of(g, &q->call);
    return q->row->what == BH_VIEW_FB_LIST ? listed(g, c, q) : plain(g, c, q);
}

int bh_gate_control(struct bh_gate *g, struct bh_gate_call *c)
{
    const struct seccomp_data *d = &c->notif->data;
    const uint32_t cmd = (uint32_t)d->args[1];
    struct question q = {.at = d->args[2]};
    /* Of another size the driver refuses it; where it cannot be read it says so itself. */
    if (RM_IOC_SIZE(cmd) != sizeof(q.call) || bh_gate_fetch(c, q.at, &q.call, sizeof(q.call)) < 0)
        return BH_GATE_CONTINUE;
    q.row = bh_view_control(g->config->view, q.call.command);
    const struct bh_gate_steered *steered = bh_gate_steered(g, &q.call);
    if (!q.row && !steered)
        return BH_GATE_CONTINUE;
    bh_gate_who(g, c);
    if (!c->process)
        return -ESRCH;
    int rc = bh_remote_file(&g->remote, c->process, c->tid, (int)d->args[0], &c->file);
    g->stats->no_room += rc == -EMFILE;
    if (rc < 0)
        return rc;
    if (c->file.what.kind != BH_FILE_CTL && c->file.what.kind != BH_FILE_GPU)
        return BH_GATE_CONTINUE; /* another driver's */
    bh_gate_mapped(g, c->process, c->tid);
    bh_gate_wake(g);
    if ((cmd & 0xff00) != (RM_IOC(0, 0) & 0xff00)) {
        g->stats->denied++;
        return -EPERM;
    }
    return steered ? bh_gate_steer(g, c, q.at, &q.call, steered) : question(g, c, &q);
}
