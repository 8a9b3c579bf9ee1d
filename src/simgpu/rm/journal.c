/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c - what was asked and answered, in the shape of a recording.
 *
 * The bytes go through the same decoder as those of a recording from a real node, so the two can be compared. Processes
 * are numbered as they appear; a recording starts with the first.
 */
#include "simgpu/rm/state.h"

void bh_sim_rm_journal(struct bh_sim_rm *rm, struct bh_recording *journal)
{
    bh_objects_fini(&rm->journal_objects);
    rm->journal_pids.n = 0;
    rm->journal = journal;
}

/* What follows is this process's. */
static void say_process(struct bh_sim_rm *rm, uint32_t pid)
{
    uint32_t i = 0, before = rm->journal_pid;
    while (i < rm->journal_pids.n && rm->journal_pids.at[i] != pid)
        i++;
    if (i == rm->journal_pids.n)
        *bh_vec_push(&rm->journal_pids) = pid;
    rm->journal_pid = pid;
    bool first_ever = rm->journal_pids.n == 1;
    if (first_ever || before == pid)
        return;
    struct bh_call call = {.kind = BH_CALL_PROCESS, .what = i + 1, .times = 1};
    bh_recording_add(rm->journal, &call);
}

void bh_simrm_journal_file(struct bh_sim_rm *rm, const struct sim_file *f, uint32_t pid,
                           enum bh_call_kind kind, const struct bh_sim_map *map)
{
    if (!rm->journal)
        return;
    struct bh_call call = {
        .kind = (uint8_t)kind, .file = (uint8_t)f->kind, .gpu = (uint8_t)f->minor, .times = 1};
    if (map) {
        call.size = map->length;
        call.what = map->prot;
        call.flags = map->flags;
    }
    say_process(rm, pid);
    bh_recording_add(rm->journal, &call);
}

/* Addresses are not followed: an ioctl has one pointer at most, and what it names came along. */
static bool read_params(void *ctx, uint64_t address, void *to, size_t n)
{
    const struct sim_call *c = ctx;
    (void)address;
    if (n > c->n_params)
        return false;
    memcpy(to, c->params, n);
    return true;
}

void bh_simrm_journal_ioctl(const struct sim_call *c, uint32_t cmd, const void *arg, size_t n, int rc)
{
    if (!c->rm->journal)
        return;
    struct sim_call copy = *c;
    struct bh_ioctl in = {.file = (uint8_t)c->file->kind,
                          .gpu = (uint8_t)c->file->minor,
                          .cmd = cmd,
                          .bytes = arg,
                          .n = n,
                          .error = -rc,
                          .read = read_params,
                          .ctx = &copy};
    struct bh_call call;
    bh_ioctl_decode(&c->rm->journal_objects, &in, &call);
    say_process(c->rm, c->who->pid);
    bh_recording_add(c->rm->journal, &call);
}
