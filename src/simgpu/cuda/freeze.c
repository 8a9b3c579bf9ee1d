/* SPDX-License-Identifier: Apache-2.0 */
/*
 * freeze.c - the process between two calls: its memory leaves the card and comes back.
 *
 * Locking closes the door to new calls, waits until those inside have left and until the card has done what it was
 * given. Then nobody but the keeper touches the tables. Memory that leaves keeps its addresses; its contents stay in
 * this process, stretches of zeros as nothing. A context and its channels stay on the card, unlike with the vendor's
 * library. As there, memory of another process, or lent to one, and managed memory are not moved.
 */
#include "simgpu/cuda/internal.h"

#include <errno.h>
#include <time.h>

enum { BLOCK = 64 * 1024, LOOK_NS = 200000 };

/* A stretch that is not all zeros. */
struct block {
    uint64_t offset, n;
    char *bytes;
};
struct bh_cu_kept {
    BH_VEC(struct block) blocks;
    bool on_card; /* obtained again, in a restore that may yet fail */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t inside;
    bool closed;
    int state;
} door = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static _Thread_local uint32_t depth; /* calls of this thread within each other: only the first one counts */

/* A child has no keeper, and whoever held the lock when it was made is not there. */
bool bh_cu_call_begin(void)
{
    if (bh_cu_enter() != CUDA_SUCCESS || depth++ > 0)
        return false;
    pthread_mutex_lock(&door.lock);
    while (door.closed)
        pthread_cond_wait(&door.changed, &door.lock);
    door.inside++;
    pthread_mutex_unlock(&door.lock);
    return true;
}

void bh_cu_call_end(const bool *counts)
{
    if (bh_cu_enter() != CUDA_SUCCESS || depth == 0)
        return;
    depth--;
    if (!*counts)
        return;
    pthread_mutex_lock(&door.lock);
    if (--door.inside == 0 && door.closed)
        pthread_cond_broadcast(&door.changed);
    pthread_mutex_unlock(&door.lock);
}

static void door_set(bool closed, int state)
{
    pthread_mutex_lock(&door.lock);
    door.closed = closed;
    door.state = state;
    pthread_cond_broadcast(&door.changed);
    pthread_mutex_unlock(&door.lock);
}

int bh_cu_freeze_state(void)
{
    pthread_mutex_lock(&door.lock);
    const int state = door.state;
    pthread_mutex_unlock(&door.lock);
    return state;
}

/* --- the way in and out --- */

/* until 0: for ever. */
static bool wait_for_calls(uint64_t until)
{
    pthread_mutex_lock(&door.lock);
    while (door.inside && (!until || bh_cu_now() < until)) {
        struct timespec t;
        (void)clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += LOOK_NS * 10;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&door.changed, &door.lock, &t);
    }
    const bool empty = door.inside == 0;
    pthread_mutex_unlock(&door.lock);
    return empty;
}

/* A context that met a fault has no work left. */
static bool wait_for_work(uint64_t until)
{
    const struct timespec nap = {.tv_nsec = LOOK_NS};
    size_t place = 0;
    CUcontext ctx;
    while ((ctx = bh_cu_handle_next(BH_CU_CONTEXT, &place)) != NULL)
        for (uint32_t i = 0; i < ctx->n_channels; i++)
            while (bh_cu_done(ctx, &ctx->channels[i], ctx->channels[i].last) == CUDA_ERROR_NOT_READY) {
                if (until && bh_cu_now() >= until)
                    return false;
                (void)nanosleep(&nap, NULL);
            }
    return true;
}

int bh_cu_freeze_lock(uint32_t timeout_ms)
{
    const uint64_t until = timeout_ms ? bh_cu_now() + timeout_ms * UINT64_C(1000000) : 0;
    if (bh_cu_freeze_state() != CU_PROCESS_RUNNING)
        return CUDA_ERROR_ILLEGAL_STATE;
    door_set(true, CU_PROCESS_RUNNING);
    const bool quiet = wait_for_calls(until) && wait_for_work(until);
    door_set(quiet, quiet ? CU_PROCESS_LOCKED : CU_PROCESS_RUNNING);
    return quiet ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

int bh_cu_freeze_unlock(void)
{
    if (bh_cu_freeze_state() != CU_PROCESS_LOCKED)
        return CUDA_ERROR_ILLEGAL_STATE;
    door_set(false, CU_PROCESS_RUNNING);
    return CUDA_SUCCESS;
}

/* --- contents --- */

static void kept_free(struct bh_cu_mem *mem)
{
    for (size_t i = 0; mem->kept && i < mem->kept->blocks.n; i++)
        free(mem->kept->blocks.at[i].bytes);
    if (mem->kept)
        bh_vec_fini(&mem->kept->blocks);
    free(mem->kept);
    mem->kept = NULL;
}

static bool is_zero(const char *bytes, uint64_t n)
{
    return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

static int keep(struct bh_cu_mem *mem)
{
    char *bytes = NULL;
    mem->kept = bh_alloc(1, sizeof(*mem->kept));
    for (uint64_t at = 0, n; at < mem->bytes; at += n) {
        n = mem->bytes - at < BLOCK ? mem->bytes - at : BLOCK;
        bytes = bytes ? bytes : bh_alloc(1, BLOCK);
        if (bh_sim_read(mem->fd, mem->client, mem->handle, at, bytes, n) < 0) {
            free(bytes);
            return bh_cu_from_errno(errno);
        }
        if (!is_zero(bytes, n))
            *bh_vec_push(&mem->kept->blocks) = (struct block){at, n, bh_steal(&bytes)};
    }
    free(bytes);
    return CUDA_SUCCESS;
}

/* A card that was told not to wipe has somebody else's bytes in what is zero here. */
static int put_back(const struct bh_cu_mem *mem)
{
    int rc = bh_sim_fill(mem->fd, mem->client, mem->handle, 0, 0, mem->bytes);
    for (size_t i = 0; rc == 0 && i < mem->kept->blocks.n; i++) {
        const struct block *b = &mem->kept->blocks.at[i];
        rc = bh_sim_write(mem->fd, mem->client, mem->handle, b->offset, b->bytes, b->n);
    }
    return rc < 0 ? bh_cu_from_errno(errno) : CUDA_SUCCESS;
}

/* --- memory --- */

static int map(const struct bh_cu_mem *mem)
{
    struct bh_cu_back back;
    int rc = CUDA_SUCCESS;
    for (size_t i = 0; !rc && bh_cu_back_of(mem, i, &back); i++) {
        bh_cu_mem_known(mem, true);
        rc = bh_cu_map_into(back.base, back.size, mem, back.offset);
    }
    return rc;
}

static void unmap(const struct bh_cu_mem *mem)
{
    struct bh_cu_back back;
    for (size_t i = 0; bh_cu_back_of(mem, i, &back); i++) {
        bh_cu_mem_known(mem, false);
        bh_cu_unmap_from(back.base, back.size, mem);
    }
}

static int comes_on(struct bh_cu_mem *mem)
{
    int rc = map(mem);
    return rc ? rc : put_back(mem);
}

/* All that is off the card comes back, or none of it: first everything is obtained, then it is filled. */
static int all_in(void)
{
    int rc = CUDA_SUCCESS;
    struct bh_cu_mem *m;
    for (m = cu.mems; m && !rc; m = m->next)
        if (m->kept) {
            rc = bh_cu_mem_obtain_again(m);
            m->kept->on_card = rc == CUDA_SUCCESS;
        }
    for (m = cu.mems; m && rc; m = m->next)
        if (m->kept && m->kept->on_card) {
            (void)bh_cu_mem_take_back(m);
            m->kept->on_card = false;
        }
    if (rc)
        return rc;
    for (m = cu.mems; m && !rc; m = m->next)
        if (m->kept) {
            rc = comes_on(m);
            kept_free(m);
        }
    door_set(true, rc ? CU_PROCESS_FAILED : CU_PROCESS_LOCKED);
    return rc;
}

/* What cannot be moved: what others see too, and what moves by itself. */
static bool movable(void)
{
    for (const struct bh_cu_mem *m = cu.mems; m; m = m->next)
        if (m->shape == BH_CU_SHAPE_N_ || m->lent)
            return false;
    return !bh_cu_alloc_any(BH_CU_MANAGED);
}

static int goes_off(struct bh_cu_mem *mem)
{
    int rc = keep(mem);
    if (!rc) {
        unmap(mem);
        rc = bh_cu_mem_take_back(mem);
        if (rc)
            (void)map(mem);
    }
    if (rc)
        kept_free(mem);
    return rc;
}

int bh_cu_freeze_out(void)
{
    int rc = CUDA_SUCCESS;
    if (bh_cu_freeze_state() != CU_PROCESS_LOCKED)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (!movable())
        return CUDA_ERROR_NOT_SUPPORTED;
    for (struct bh_cu_mem *m = cu.mems; m && !rc; m = m->next)
        if (m->shape != BH_CU_SHAPE_HOST)
            rc = goes_off(m);
    if (rc) {
        const int back = all_in();
        return back ? back : rc;
    }
    door_set(true, CU_PROCESS_CHECKPOINTED);
    return CUDA_SUCCESS;
}

int bh_cu_freeze_in(void)
{
    return bh_cu_freeze_state() == CU_PROCESS_CHECKPOINTED ? all_in() : CUDA_ERROR_ILLEGAL_STATE;
}
