/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_log.c - what a job wrote, from an offset on, as the bytes it wrote; and how many of these are no longer there.
 *
 * The state is read before the file: where the job had ended by then, what is in the file is all there will be.
 */
#include "api/handle.h"

#include "store/state_room.h"
#include "wire/stream.h"

enum { LOG_DEFAULT = 256 * 1024 };

/* The attempt that was named, else the newest; *ret 0: there was none yet. */
static int attempt(struct bh_api_core *core, struct bh_api_req *q, const struct bh_store_job *b,
                   uint64_t wanted, uint64_t *ret, bool *ret_over)
{
    const struct bh_store_lease_filter f = {.job = b->id};
    const struct bh_store_page page = {.limit = BH_API_LIST_MAX, .newest = true};
    bh_store_leases leases = {0};
    struct bh_err err;
    const int rc = bh_store_leases_list(core->store, &q->arena, &f, &page, &leases, &err);
    size_t at = 0;
    while (wanted && at < leases.n && leases.at[at].id != wanted)
        at++;
    const bool found = rc == 0 && at < leases.n;
    *ret = found ? leases.at[at].id : 0;
    /* Of an attempt that was followed by another, and of one that is over, nothing more comes. */
    *ret_over = b->state == BH_JOB_ENDED || (found && (at > 0 || bh_lease_is_over(leases.at[at].state)));
    bh_vec_fini(&leases);
    if (rc < 0)
        return bh_api_fail(q, rc, &err);
    if (wanted && !found)
        return bh_api_refuse(&q->problem, BH_NOT_FOUND, "job 'J%llu' has no lease 'L%llu'",
                             (unsigned long long)b->id, (unsigned long long)wanted);
    return 0;
}

/* What it wrote, with its attempts' folders, goes one day; that it did is known. */
static int check_kept(struct bh_api_core *core, struct bh_api_req *q, uint64_t job)
{
    struct bh_err err;
    uint64_t pruned_ms;
    const int rc = bh_store_remain_pruned(core->store, job, &pruned_ms, &err);
    if (rc < 0)
        return bh_api_fail(q, rc, &err);
    if (!pruned_ms)
        return 0;
    bh_api_hint(&q->problem, NULL, NULL, "keep what you need elsewhere: docs/node.md says how long it stays");
    return bh_api_refuse(
        &q->problem, BH_NOT_FOUND,
        "what J%llu wrote was removed %llu s ago: it was too old, or its tenant had too much",
        (unsigned long long)job,
        (unsigned long long)(core->view->now_ms > pruned_ms ? (core->view->now_ms - pruned_ms) / 1000 : 0));
}

int bh_h_log(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_q_log *in = q->in;
    struct bh_stream_got got = {.next = in->offset, .end = true};
    struct bh_store_job b;
    struct bh_err err;
    uint64_t lease;
    bool over;
    int rc = bh_h_job_get(core, q, &b);
    if (rc < 0 || (rc = bh_api_check(q, b.tenant, b.user)) < 0 || (rc = check_kept(core, q, b.id)) < 0 ||
        (rc = attempt(core, q, &b, in->lease, &lease, &over)) < 0)
        return rc;
    q->log_folder =
        lease ? bh_arena_printf(&q->arena, "%s/%llu", core->log_dir, (unsigned long long)lease) : NULL;
    q->log_name = in->stream ? in->stream : "out";
    if (lease && (rc = bh_stream_read(q->log_folder, q->log_name, in->offset,
                                      in->limit ? in->limit : LOG_DEFAULT, &q->out, &got, &err)) < 0)
        return bh_api_fail(q, rc, &err);
    q->has_offset = true;
    q->next_offset = got.next;
    q->dropped = got.dropped;
    q->log_mark = got.mark;
    q->ended = over && got.end;
    q->wait_ms = in->wait_ms;
    q->follow = q->out.n == 0 && !q->dropped && !q->ended && in->wait_ms ? BH_FOLLOW_LOG : BH_FOLLOW_NOTHING;
    return 0;
}
