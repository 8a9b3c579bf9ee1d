/* SPDX-License-Identifier: Apache-2.0 */
#include "host/mps.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "host/net_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 50, ANSWER_MAX = 1 << 16 };

int bh_mps_find(char *ret, size_t size, struct bh_err *err)
{
    static const char *const places[] = {"/usr/bin/nvidia-cuda-mps-control",
                                         "/usr/sbin/nvidia-cuda-mps-control",
                                         "/usr/local/bin/nvidia-cuda-mps-control"};
    const char *named = getenv("BULKHEAD_MPS_CONTROL");
    for (size_t i = 0; i < BH_COUNT_OF(places) + 1; i++) {
        const char *at = i ? places[i - 1] : named;
        if (at && *at == '/' && strlen(at) < size && access(at, X_OK) == 0) {
            (void)snprintf(ret, size, "%s", at);
            return BH_OK;
        }
    }
    return bh_fail(err, BH_NOT_FOUND,
                   "nvidia-cuda-mps-control is not installed: it comes with the driver's compute utilities");
}

/* ---- folders ---- */

static int own_folder(const char *path, uint32_t uid, uint32_t gid, struct bh_err *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return bh_fail(err, BH_SYSTEM, "%.200s: %s", path, strerror(errno));
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const bool ok = fd >= 0 && fchown(fd, uid, gid) == 0;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    return ok ? BH_OK : bh_fail(err, BH_SYSTEM, "%.200s: %s", path, strerror(error));
}

int bh_mps_folders(const struct bh_mps *m, struct bh_err *err)
{
    const int rc = own_folder(m->pipes, m->uid, m->gid, err);
    return rc == BH_OK ? own_folder(m->logs, m->uid, m->gid, err) : rc;
}

void bh_mps_remove(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    for (const struct dirent *e; d && (e = readdir(d));)
        if (!bh_str_eq(e->d_name, ".") && !bh_str_eq(e->d_name, ".."))
            (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        (void)closedir(d);
    else if (fd >= 0)
        close(fd);
    (void)rmdir(folder);
}

/* ---- clients ---- */

/* `0=20480MB,1=20480MB`; "" where nothing is held. */
static const char *memory_words(const struct bh_mps_share *share, struct bh_arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < share->n_gpus && i < BH_MPS_GPUS_MAX; i++)
        if (share->mib[i])
            text = bh_arena_printf(arena, "%s%s%zu=%lluMB", text, *text ? "," : "", i,
                                   (unsigned long long)share->mib[i]);
    return text;
}

const char *const *bh_mps_client_env(const struct bh_mps *m, const struct bh_mps_share *share,
                                     struct bh_arena *arena)
{
    const char **env = bh_arena_alloc(arena, 4 * sizeof(*env));
    const char *memory = memory_words(share, arena);
    size_t n = 0;
    env[n++] = bh_arena_printf(arena, "CUDA_MPS_PIPE_DIRECTORY=%s", m->pipes);
    if (share->thread_percent)
        env[n++] = bh_arena_printf(arena, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%u", share->thread_percent);
    if (*memory)
        env[n++] = bh_arena_printf(arena, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=%s", memory);
    env[n] = NULL;
    return env;
}

/* ---- orders ---- */

int bh_mps_order(const struct bh_mps *m, const char *line, struct bh_buf *out, struct bh_err *err)
{
    struct bh_arena arena = {0};
    const char *const argv[] = {m->program, NULL};
    const char *const env[] = {bh_arena_printf(&arena, "CUDA_MPS_PIPE_DIRECTORY=%s", m->pipes),
                               bh_arena_printf(&arena, "CUDA_MPS_LOG_DIRECTORY=%s", m->logs), NULL};
    const struct bh_run tool = {.argv = argv,
                                .env = env,
                                .uid = m->uid,
                                .gid = m->gid,
                                .input = bh_arena_printf(&arena, "%s\n", line),
                                .netns = -1,
                                .out = out};
    const int rc = bh_run_tool(&tool, err);
    bh_arena_fini(&arena);
    return rc;
}

int bh_mps_wait(const struct bh_mps *m, unsigned patience_ms, struct bh_err *err)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    int rc = BH_SYSTEM;
    for (unsigned waited = 0; rc < 0 && waited <= patience_ms; waited += STEP_MS) {
        rc = bh_mps_order(m, "get_server_list", NULL, err);
        if (rc < 0)
            (void)nanosleep(&step, NULL);
    }
    return rc;
}

int bh_mps_limit(const struct bh_mps *m, const struct bh_mps_share *most, struct bh_err *err)
{
    char line[96];
    int rc = BH_OK;
    if (most->thread_percent) {
        (void)snprintf(line, sizeof(line), "set_default_active_thread_percentage %u", most->thread_percent);
        rc = bh_mps_order(m, line, NULL, err);
    }
    for (size_t i = 0; rc == BH_OK && i < most->n_gpus && i < BH_MPS_GPUS_MAX; i++) {
        if (!most->mib[i])
            continue;
        (void)snprintf(line, sizeof(line), "set_default_device_pinned_mem_limit %zu %lluMB", i,
                       (unsigned long long)most->mib[i]);
        rc = bh_mps_order(m, line, NULL, err);
    }
    return rc;
}

size_t bh_mps_parse_servers(const char *text, pid_t *ret, size_t max)
{
    size_t n = 0;
    while (*text) {
        char word[16];
        uint64_t v;
        const size_t len = strcspn(text, "\n");
        if (len > 0 && len < sizeof(word)) {
            (void)snprintf(word, sizeof(word), "%.*s", (int)len, text);
            if (n < max && bh_uint_parse(word, INT32_MAX, &v, NULL) == BH_OK && v)
                ret[n++] = (pid_t)v;
        }
        text += len + (text[len] == '\n');
    }
    return n;
}
