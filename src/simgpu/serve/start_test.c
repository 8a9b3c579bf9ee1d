/* SPDX-License-Identifier: Apache-2.0 */
/* start_test.c - a node as a process: started, stopped, killed, started twice at once. */
#include "simgpu/serve/start.h"

#include "base/scratch.h"
#include "base/test.h"
#include "simgpu/drv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char home[64], libs[80];
static struct bh_sim_node node;

static void begin(void)
{
    if (!bh_scratch_make(home, sizeof(home), "start") || bh_sim_node_make(&node, "h100x8", 1, NULL) < 0 ||
        !bh_scratch_put(home, "LIBS/libnvidia-ml.so.1", "") || !bh_scratch_put(home, "LIBS/libcuda.so.1", ""))
        abort();
    (void)snprintf(libs, sizeof(libs), "%s/LIBS", home);
    (void)setenv("BULKHEAD_SIM_HOME", home, 1);
    (void)setenv("BULKHEAD_SIM_LIB", libs, 1);
    (void)unsetenv("BULKHEAD_SIM");
}

/* false: a node was left. */
static bool end(void)
{
    return bh_scratch_remove(libs) && rmdir(home) == 0;
}

static bool hello(const struct bh_sim_place *p)
{
    struct bh_sim_node_view view;
    bh_sim_use(p->folder);
    bool good = bh_sim_hello(&view) == 0 && view.n_gpus == p->gpus;
    bh_sim_use(NULL);
    return good;
}

/* Killed, and no longer to be seen: the daemon is nobody's child here. */
static bool kill_and_wait(const struct bh_sim_place *p)
{
    if (kill((pid_t)p->pid, SIGKILL) < 0)
        return false;
    for (int i = 0; i < 500 && bh_sim_place_runs(p); i++)
        (void)usleep(10000);
    return !bh_sim_place_runs(p);
}

TEST(it_answers_when_start_returns_and_is_gone_when_stop_does)
{
    struct bh_sim_place p, q;
    struct bh_err err;
    begin();
    CHECK_EQ(bh_sim_start("lab", &node, &p, &err), BH_OK);
    CHECK(hello(&p));
    CHECK(p.pid != (uint32_t)getpid() && getsid((pid_t)p.pid) != getsid(0));
    CHECK_EQ(bh_sim_place_find("lab", &q, &err), BH_OK);
    CHECK(q.runs && q.pid == p.pid);
    CHECK_EQ(bh_sim_start("lab", &node, &q, &err), BH_CONFLICT);
    CHECK_EQ(bh_sim_start("lab-2", &node, &q, &err), BH_OK);
    CHECK(hello(&p) && hello(&q));
    CHECK_EQ(bh_sim_stop(&p, &err), BH_OK);
    CHECK(access(p.folder, F_OK) < 0);
    CHECK(!hello(&p) && hello(&q));
    CHECK_EQ(bh_sim_stop(&q, &err), BH_OK);
    CHECK(end());
}

TEST(it_holds_nothing_of_its_parent)
{
    struct bh_sim_place p;
    struct bh_err err;
    int ends[2];
    char byte, path[80];
    begin();
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(bh_sim_start("lab", &node, &p, &err), BH_OK);
    close(ends[1]);
    CHECK_EQ(read(ends[0], &byte, 1), 0); /* nobody else has the other end */
    close(ends[0]);
    char to[300] = "";
    (void)snprintf(path, sizeof(path), "/proc/%u/fd/0", (unsigned)p.pid);
    CHECK(readlink(path, to, sizeof(to) - 1) > 0);
    CHECK_STR(to, "/dev/null");
    memset(to, 0, sizeof(to));
    (void)snprintf(path, sizeof(path), "/proc/%u/fd/2", (unsigned)p.pid);
    CHECK(readlink(path, to, sizeof(to) - 1) > 0);
    CHECK(strstr(to, "/lab/log") != NULL);
    memset(to, 0, sizeof(to));
    (void)snprintf(path, sizeof(path), "/proc/%u/cwd", (unsigned)p.pid);
    CHECK(readlink(path, to, sizeof(to) - 1) > 0);
    CHECK_STR(to, "/");
    CHECK_EQ(bh_sim_stop(&p, &err), BH_OK);
    CHECK(end());
}

TEST(one_that_was_killed_is_started_again_or_swept)
{
    struct bh_sim_place p, q;
    struct bh_err err;
    begin();
    CHECK_EQ(bh_sim_start("lab", &node, &p, &err), BH_OK);
    CHECK(kill_and_wait(&p));
    CHECK_EQ(bh_sim_place_find("lab", &q, &err), BH_OK);
    CHECK(!q.runs);
    CHECK_EQ(bh_sim_order(&q, BH_SIM_OP_STOP, 0, NULL, 0, 0, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "died") && strstr(err.msg, "bulkhead sim start h100x8 --name lab"));
    CHECK_EQ(bh_sim_start("lab", &node, &p, &err), BH_OK);
    CHECK(hello(&p));
    CHECK(kill_and_wait(&p));
    CHECK_EQ(bh_sim_stop(&p, &err), BH_OK);
    CHECK(access(p.folder, F_OK) < 0);
    CHECK(end());
}

TEST(a_signal_ends_it_as_stop_does)
{
    struct bh_sim_place p;
    struct bh_err err;
    begin();
    CHECK_EQ(bh_sim_start("lab", &node, &p, &err), BH_OK);
    CHECK_EQ(kill((pid_t)p.pid, SIGTERM), 0);
    for (int i = 0; i < 500 && access(p.folder, F_OK) == 0; i++)
        (void)usleep(10000);
    CHECK(access(p.folder, F_OK) < 0);
    CHECK(end());
}

TEST(one_that_does_not_answer_is_ended)
{
    struct bh_sim_place p;
    struct bh_err err;
    begin();
    CHECK_EQ(bh_sim_start("lab", &node, &p, &err), BH_OK);
    CHECK_EQ(kill((pid_t)p.pid, SIGSTOP), 0);
    CHECK_EQ(bh_sim_stop(&p, &err), BH_OK);
    CHECK(!bh_sim_place_runs(&p) && access(p.folder, F_OK) < 0);
    /* Whoever may not send it a signal hears so. */
    CHECK_EQ(bh_sim_start("lab", &node, &p, &err), BH_OK);
    CHECK_EQ(kill((pid_t)p.pid, SIGSTOP), 0);
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() != 0) /* nobody else to be */
            _exit(0);
        if (chmod(home, 0755) < 0 || setuid(65534) < 0)
            _exit(2);
        _exit(bh_sim_stop(&p, &err) == BH_BUSY && strstr(err.msg, "does not answer") ? 0 : 1);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(kill((pid_t)p.pid, SIGCONT), 0);
    CHECK(hello(&p));
    CHECK_EQ(bh_sim_stop(&p, &err), BH_OK);
    CHECK(end());
}

TEST(of_many_who_start_one_name_one_succeeds)
{
    enum { MANY = 6 };
    struct bh_sim_place p;
    struct bh_err err;
    pid_t pids[MANY];
    int made = 0, refused = 0;
    begin();
    (void)fflush(stdout);
    for (int i = 0; i < MANY; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            int rc = bh_sim_start("lab", &node, &p, &err);
            _exit(rc == BH_OK ? 0 : rc == BH_CONFLICT ? 1 : 2);
        }
    }
    for (int i = 0; i < MANY; i++) {
        int status = -1;
        CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
        made += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        refused += WIFEXITED(status) && WEXITSTATUS(status) == 1;
    }
    CHECK_EQ(made, 1);
    CHECK_EQ(refused, MANY - 1);
    CHECK_EQ(bh_sim_place_find("lab", &p, &err), BH_OK);
    CHECK_EQ(bh_sim_stop(&p, &err), BH_OK);
    CHECK(end());
}

static void ready_then_stop(const struct bh_sim_place *place, void *arg)
{
    *(bool *)arg = place->pid == (uint32_t)getpid() && bh_sim_place_runs(place);
    (void)raise(SIGTERM); /* blocked, and taken by the server's loop */
}

TEST(in_the_foreground_it_is_this_process)
{
    struct bh_err err;
    bool told = false;
    begin();
    const mode_t before = umask(077);
    CHECK_EQ(bh_sim_start_here("lab", &node, ready_then_stop, &told, &err), BH_OK);
    CHECK(told);
    CHECK_EQ(umask(before), 077);
    CHECK(end());
}

TEST(a_failure_leaves_nothing_and_says_why)
{
    struct bh_sim_place p;
    struct bh_err err;
    char path[200];
    begin();
    (void)snprintf(path, sizeof(path), "%s/libcuda.so.1", libs);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(bh_sim_start("lab", &node, &p, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "libcuda.so.1") != NULL);
    CHECK_EQ(bh_sim_start_here("lab", &node, NULL, NULL, &err), BH_NOT_FOUND);
    (void)snprintf(path, sizeof(path), "%s/lab", home);
    CHECK(access(path, F_OK) < 0);
    CHECK(end());
}

TEST(words_for_a_node_come_back_as_a_sentence)
{
    struct bh_sim_place p;
    struct bh_err err;
    char body[1024] = "gpu 3 lost";
    begin();
    CHECK_EQ(bh_sim_start("lab", &node, &p, &err), BH_OK);
    CHECK_EQ(bh_sim_order(&p, BH_SIM_OP_BREAK, 0, body, strlen(body), sizeof(body), &err), BH_OK);
    (void)snprintf(body, sizeof(body), "frobnicate the GPU");
    CHECK_EQ(bh_sim_order(&p, BH_SIM_OP_BREAK, 0, body, strlen(body), sizeof(body), &err), BH_INVALID);
    CHECK(strstr(err.msg, "gpu") != NULL);
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() != 0) /* nobody else to be */
            _exit(0);
        if (chmod(home, 0755) < 0 || setuid(65534) < 0)
            _exit(2);
        _exit(bh_sim_stop(&p, &err) == BH_DENIED && strstr(err.msg, "not yours") ? 0 : 1);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(hello(&p));
    CHECK_EQ(bh_sim_stop(&p, &err), BH_OK);
    CHECK(end());
}

/* Is it there, below the node's sysroot? */
static bool has_file(const struct bh_sim_place *p, const char *name)
{
    char path[300];
    (void)snprintf(path, sizeof(path), "%s/sysroot/%s", p->folder, name);
    return access(path, F_OK) == 0;
}

static bool mig(const struct bh_sim_place *p, struct bh_sim_mig_order *order)
{
    bh_sim_use(p->folder);
    bool good = bh_sim_mig(order) == 0 && order->status == 0;
    bh_sim_use(NULL);
    return good;
}

TEST(its_files_follow_what_is_cut)
{
    struct bh_sim_place p;
    struct bh_err err;
    begin();
    CHECK_EQ(bh_sim_node_make(&node, "mig", 1, &err), BH_OK);
    CHECK_EQ(bh_sim_start("lab", &node, &p, &err), BH_OK);
    const struct bh_mig_profile *profile = bh_mig_find(node.gpus[0].model, "3g.40gb");
    struct bh_sim_mig_order gi = {
        .verb = BH_SIM_MIG_GI_CREATE, .profile_id = profile->gi_profile_id, .start = -1};
    CHECK(mig(&p, &gi));
    struct bh_sim_mig_order ci = {
        .verb = BH_SIM_MIG_CI_CREATE, .gi = gi.gi, .profile_id = profile->compute_slices, .start = -1};
    CHECK(mig(&p, &ci));
    char gi_node[64], ci_node[64];
    (void)snprintf(gi_node, sizeof(gi_node), "dev/nvidia-caps/nvidia-cap%u", 3 + gi.gi * 9);
    (void)snprintf(ci_node, sizeof(ci_node), "dev/nvidia-caps/nvidia-cap%u", 3 + gi.gi * 9 + 1 + ci.ci);
    CHECK(has_file(&p, gi_node) && has_file(&p, ci_node));
    ci.verb = BH_SIM_MIG_CI_DESTROY;
    CHECK(mig(&p, &ci));
    CHECK(has_file(&p, gi_node) && !has_file(&p, ci_node));
    gi.verb = BH_SIM_MIG_GI_DESTROY;
    CHECK(mig(&p, &gi));
    CHECK(!has_file(&p, gi_node) && has_file(&p, "dev/nvidia-caps/nvidia-cap1"));
    CHECK_EQ(bh_sim_stop(&p, &err), BH_OK);
    CHECK(end());
}

TEST_MAIN
