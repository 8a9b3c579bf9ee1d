/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_log.c - what a job wrote, from an offset on, as the bytes it wrote.
 *
 * The state is read before the file: where the job had ended by then, what is in the file is all there will be.
 */
#include "api/handle.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Bytes from the offset on into q->out; *ret_end: the file had no more. A file that is not there yet has none. */
static int read_file(struct bh_api_req *q, const struct bh_q_log *in, bool *ret_end)
{
    const size_t most = in->limit ? in->limit : LOG_DEFAULT;
    struct stat st;
    *ret_end = true;
    const int fd = q->log_path ? open(q->log_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0)
        return !q->log_path || errno == ENOENT
                   ? 0
                   : bh_api_refuse(&q->problem, BH_SYSTEM, "the log cannot be read: %s", strerror(errno));
    BH_AUTOFREE char *buf = bh_alloc(1, most);
    const bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    const ssize_t n = is_file ? pread(fd, buf, most, (off_t)in->offset) : -1;
    (void)close(fd);
    if (n < 0)
        return bh_api_refuse(&q->problem, BH_SYSTEM, "the log cannot be read");
    bh_buf_add(&q->out, buf, (size_t)n);
    *ret_end = in->offset + (uint64_t)n >= (uint64_t)st.st_size;
    return 0;
}

int bh_h_log(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_q_log *in = q->in;
    struct bh_store_job b;
    uint64_t lease;
    bool over, end;
    int rc = bh_h_job_get(core, q, &b);
    if (rc < 0 || (rc = bh_api_check(q, b.tenant, b.user)) < 0 ||
        (rc = attempt(core, q, &b, in->lease, &lease, &over)) < 0)
        return rc;
    q->log_path = lease ? bh_arena_printf(&q->arena, "%s/%llu/%s", core->log_dir, (unsigned long long)lease,
                                          in->stream ? in->stream : "out")
                        : NULL;
    if ((rc = read_file(q, in, &end)) < 0)
        return rc;
    q->has_offset = true;
    q->next_offset = in->offset + q->out.n;
    q->ended = over && end;
    q->wait_ms = in->wait_ms;
    q->follow = q->out.n == 0 && !q->ended && in->wait_ms ? BH_FOLLOW_LOG : BH_FOLLOW_NOTHING;
    return 0;
}
