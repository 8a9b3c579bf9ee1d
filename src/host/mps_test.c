/* SPDX-License-Identifier: Apache-2.0 */
/* mps_test.c - what clients are told, and a control program that is a shell script: orders, limits, silence. */
#include "host/mps.h"

#include "base/scratch.h"
#include "base/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];

static void fixture(struct bh_arena *arena, const char *script, struct bh_mps *m)
{
    struct bh_err err = {0};
    CHECK(bh_scratch_make(folder, sizeof(folder), "mps"));
    *m = (struct bh_mps){.program = bh_arena_printf(arena, "%s/control", folder),
                         .pipes = bh_arena_printf(arena, "%s/pipes", folder),
                         .logs = bh_arena_printf(arena, "%s/logs", folder),
                         .uid = getuid(),
                         .gid = getgid()};
    CHECK(bh_scratch_put(folder, "control", script) && chmod(m->program, 0755) == 0);
    CHECK_EQ(bh_mps_folders(m, &err), BH_OK);
    m->uid = m->gid = 0; /* as we are */
}

static void done(const struct bh_mps *m)
{
    bh_mps_remove(m->pipes);
    bh_mps_remove(m->logs);
    bh_mps_remove(m->logs); /* again: nothing */
    CHECK(access(m->pipes, F_OK) < 0 && access(m->logs, F_OK) < 0);
    CHECK_EQ(unlink(m->program), 0);
    CHECK_EQ(rmdir(folder), 0);
}

TEST(what_a_client_is_told)
{
    struct bh_arena arena = {0};
    const struct bh_mps m = {.pipes = "/run/p"};
    const struct bh_mps_share share = {.thread_percent = 25, .mib = {20480, 0, 512}, .n_gpus = 3};
    const char *const *env = bh_mps_client_env(&m, &share, &arena);
    CHECK_STR(env[0], "CUDA_MPS_PIPE_DIRECTORY=/run/p");
    CHECK_STR(env[1], "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25");
    CHECK_STR(env[2], "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=20480MB,2=512MB");
    CHECK(env[3] == NULL);
    env = bh_mps_client_env(&m, &(struct bh_mps_share){0}, &arena);
    CHECK(env[1] == NULL);
    bh_arena_fini(&arena);
}

TEST(servers)
{
    pid_t at[2];
    CHECK_EQ(bh_mps_parse_servers("", at, 2), 0);
    CHECK_EQ(bh_mps_parse_servers("17\n23\n42\n", at, 2), 2);
    CHECK_EQ(at[1], 23);
    CHECK_EQ(bh_mps_parse_servers("Server 17\n-3\n0\n99999999999999999999\n5", at, 2), 1);
    CHECK_EQ(at[0], 5);
}

TEST(orders)
{
    struct bh_arena arena = {0};
    struct bh_err err = {0};
    struct bh_buf out;
    struct bh_mps m;
    fixture(&arena, "#!/bin/sh\nread line; echo \"$line\" >> \"$CUDA_MPS_LOG_DIRECTORY/said\"; echo 17\n",
            &m);
    bh_buf_init(&out, 1 << 16);
    CHECK_EQ(bh_mps_wait(&m, 0, &err), BH_OK);
    CHECK_EQ(bh_mps_order(&m, "get_server_list", &out, &err), BH_OK);
    CHECK_STR(bh_buf_text(&out), "17\n");
    const struct bh_mps_share most = {.thread_percent = 30, .mib = {1024, 0, 2048}, .n_gpus = 3};
    CHECK_EQ(bh_mps_limit(&m, &most, &err), BH_OK);
    bh_buf_fini(&out);
    char *said = bh_scratch_get(m.logs, "said");
    CHECK_STR(said,
              "get_server_list\nget_server_list\nset_default_active_thread_percentage 30\n"
              "set_default_device_pinned_mem_limit 0 1024MB\nset_default_device_pinned_mem_limit 2 2048MB\n");
    free(said);
    done(&m);
    bh_arena_fini(&arena);
}

TEST(silence)
{
    struct bh_arena arena = {0};
    struct bh_err err = {0};
    struct bh_mps m;
    fixture(&arena, "#!/bin/sh\necho Cannot find MPS control daemon process >&2; exit 1\n", &m);
    CHECK_EQ(bh_mps_wait(&m, 100, &err), BH_SYSTEM);
    CHECK(strstr(err.msg, "Cannot find MPS control daemon") != NULL);
    done(&m);
    bh_arena_fini(&arena);
}

TEST(where_it_is)
{
    char path[512];
    struct bh_err err = {0};
    CHECK_EQ(setenv("BULKHEAD_MPS_CONTROL", "/bin/sh", 1), 0);
    CHECK_EQ(bh_mps_find(path, sizeof(path), &err), BH_OK);
    CHECK_STR(path, "/bin/sh");
    CHECK_EQ(setenv("BULKHEAD_MPS_CONTROL", "sh", 1), 0); /* not looked up: it runs as root's word */
    CHECK(bh_mps_find(path, sizeof(path), &err) == BH_NOT_FOUND || strcmp(path, "/bin/sh") != 0);
}

TEST_MAIN
