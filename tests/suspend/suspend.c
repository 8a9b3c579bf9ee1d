/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspend.c - both ends of a suspension, for the tests: a tenant with contents, and whoever suspends it.
 *
 *     suspend hold SIZE                takes memory in several forms, fills all of it, says `ready PID`; then, for each line on
 *                                      its input, reads it back and says `sum N`, until the end
 *     suspend out|in|state PID...      the product's own code; each step is a line
 *     suspend dies|interrupted PID...  suspends, and is killed, or told to end, when the first checkpoint begins
 */
#include "base/units.h"
#include "gpu/checkpoint.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEP = 1 << 20, PIDS = 16, FORMS = 3 };

#define CALLS(X)       \
    X(cuInit)          \
    X(cuCtxCreate_v2)  \
    X(cuMemAlloc_v2)   \
    X(cuMemAllocAsync) \
    X(cuMemcpyHtoD_v2) \
    X(cuMemcpyDtoH_v2)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    CALLS(MEMBER)
#undef MEMBER
} cuda;

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *at;
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define FIND(name)              \
    at = dlsym(library, #name); \
    memcpy(&cuda.name, &at, sizeof(at));
    CALLS(FIND)
#undef FIND
}

#define MUST(name, ...)                                     \
    do {                                                    \
        int rc_ = cuda.name(__VA_ARGS__);                   \
        if (rc_) {                                          \
            fprintf(stderr, "%s failed: %d\n", #name, rc_); \
            exit(1);                                        \
        }                                                   \
    } while (0)

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 11;
}

/* One half of it plain, the rest from a pool and in small pieces. */
static int hold(const char *text)
{
    static uint64_t words[STEP / sizeof(uint64_t)];
    CUdeviceptr at[FORMS];
    CUcontext ctx;
    uint64_t size, seed = 1;
    char line[64];
    if (bh_size_parse(text, &size, NULL) < 0 || size < 16 * STEP)
        return 2;
    const uint64_t sizes[FORMS] = {size / 2 / STEP * STEP, size / 4 / STEP * STEP, STEP};
    load();
    MUST(cuInit, 0);
    MUST(cuCtxCreate_v2, &ctx, 0, 0);
    MUST(cuMemAlloc_v2, &at[0], sizes[0]);
    MUST(cuMemAllocAsync, &at[1], sizes[1], NULL);
    MUST(cuMemAlloc_v2, &at[2], sizes[2]);
    for (int i = 0; i < FORMS; i++)
        for (uint64_t done = 0; done < sizes[i]; done += STEP) {
            for (size_t k = 0; k < sizeof(words) / sizeof(*words); k++)
                words[k] = next(&seed);
            MUST(cuMemcpyHtoD_v2, at[i] + done, words, STEP);
        }
    printf("ready %d\n", (int)getpid());
    (void)fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        uint64_t sum = 0;
        for (int i = 0; i < FORMS; i++)
            for (uint64_t done = 0; done < sizes[i]; done += STEP) {
                MUST(cuMemcpyDtoH_v2, words, at[i] + done, STEP);
                for (size_t k = 0; k < sizeof(words) / sizeof(*words); k++)
                    sum = (sum << 7 | sum >> 57) ^ words[k];
            }
        printf("sum %" PRIu64 "\n", sum);
        (void)fflush(stdout);
    }
    return 0;
}

static void say(void *self, const struct bh_checkpoint_event *e)
{
    const int *signal_at_out = self;
    if (!e->done)
        printf("%s%s %" PRIu32 "\n", e->undo ? "undo " : "", bh_checkpoint_step_words(e->step), e->pid);
    else if (e->bytes)
        printf("bytes %" PRIu64 "\n", e->bytes);
    (void)fflush(stdout);
    if (*signal_at_out && e->step == BH_CHECKPOINT_OUT && !e->done)
        (void)raise(*signal_at_out);
}

static int state_of(const uint32_t *pids, size_t n, struct bh_err *err)
{
    int rc = BH_OK;
    for (size_t i = 0; i < n && rc == BH_OK; i++) {
        enum cuda_process_state now;
        rc = bh_checkpoint_state(pids[i], &now, err);
        if (rc == BH_OK)
            printf("%s %" PRIu32 "\n", bh_checkpoint_state_words(now), pids[i]);
    }
    return rc;
}

int main(int argc, char **argv)
{
    uint32_t pids[PIDS];
    size_t n = 0;
    struct bh_err err = {0};
    if (argc == 3 && strcmp(argv[1], "hold") == 0)
        return hold(argv[2]);
    for (int i = 2; i < argc && n < PIDS; i++) {
        uint64_t pid;
        if (bh_uint_parse(argv[i], UINT32_MAX, &pid, NULL) < 0)
            return 2;
        pids[n++] = (uint32_t)pid;
    }
    if (argc < 3)
        return 2;
    int signal_at_out = strcmp(argv[1], "dies") == 0          ? SIGKILL
                        : strcmp(argv[1], "interrupted") == 0 ? SIGTERM
                                                              : 0;
    const struct bh_checkpoint_progress progress = {say, &signal_at_out};
    int rc = strcmp(argv[1], "state") == 0 ? state_of(pids, n, &err)
             : strcmp(argv[1], "in") == 0  ? bh_checkpoint_restore(pids, n, &progress, &err)
                                           : bh_checkpoint_suspend(pids, n, &progress, &err);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.msg);
    return bh_code_exit(rc);
}
