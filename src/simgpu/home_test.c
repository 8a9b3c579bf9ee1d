/* SPDX-License-Identifier: Apache-2.0 */
#include "simgpu/home.h"

#include "base/scratch.h"
#include "base/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char home[64], libs[80];

static void touch(const char *folder, const char *name)
{
    if (!bh_scratch_put(folder, name, ""))
        abort();
}

/* A home of the test's own, and a folder with two files that stand for the libraries. */
static void begin(void)
{
    if (!bh_scratch_make(home, sizeof(home), "home"))
        abort();
    (void)snprintf(libs, sizeof(libs), "%s/LIBS", home); /* no node can have this name */
    touch(home, "LIBS/libnvidia-ml.so.1");
    touch(home, "LIBS/libcuda.so.1");
    (void)setenv("BULKHEAD_SIM_HOME", home, 1);
    (void)setenv("BULKHEAD_SIM_LIB", libs, 1);
}

/* false: something was left. */
static bool end(void)
{
    return bh_scratch_remove(libs) && rmdir(home) == 0;
}

static size_t count(void)
{
    bh_sim_places all = {0};
    size_t n = bh_sim_place_list(&all, NULL) == BH_OK ? all.n : 99;
    bh_vec_fini(&all);
    return n;
}

TEST(where_nodes_live)
{
    char got[BH_SIM_FOLDER_MAX], longer[200];
    struct bh_err err;
    (void)setenv("BULKHEAD_SIM_HOME", "/a/b//", 1);
    CHECK_EQ(bh_sim_home(got, &err), BH_OK);
    CHECK_STR(got, "/a/b");
    (void)setenv("BULKHEAD_SIM_HOME", "relative", 1);
    CHECK_EQ(bh_sim_home(got, &err), BH_INVALID);
    memset(longer, 'x', sizeof(longer) - 1);
    longer[0] = '/';
    longer[sizeof(longer) - 1] = '\0';
    (void)setenv("BULKHEAD_SIM_HOME", longer, 1);
    CHECK_EQ(bh_sim_home(got, &err), BH_INVALID);
    (void)unsetenv("BULKHEAD_SIM_HOME");
    (void)setenv("XDG_RUNTIME_DIR", "/run/user/1000", 1);
    CHECK_EQ(bh_sim_home(got, &err), BH_OK);
    CHECK_STR(got, "/run/user/1000/bulkhead-sim");
    (void)unsetenv("XDG_RUNTIME_DIR");
    CHECK_EQ(bh_sim_home(got, &err), BH_OK);
    if (geteuid() == 0)
        CHECK_STR(got, "/run/bulkhead-sim");
    else
        CHECK(strncmp(got, P_tmpdir "/bulkhead-sim-", strlen(P_tmpdir) + 14) == 0);
}

TEST(names_are_checked)
{
    static const char *const bad[] = {"",
                                      ".",
                                      "..",
                                      "a/b",
                                      "../x",
                                      "Lab",
                                      "a b",
                                      "-a",
                                      "a-",
                                      "\xc3\xa4",
                                      "a123456789012345678901234567890123456789012345678901234567890123"};
    struct bh_sim_place p;
    struct bh_err err;
    int lock;
    begin();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_EQ(bh_sim_place_take(bad[i], &p, &lock, &err), BH_INVALID);
        CHECK_EQ(bh_sim_place_find(bad[i], &p, &err), BH_NOT_FOUND);
    }
    CHECK_EQ(count(), 0);
    CHECK(end());
}

TEST(a_name_is_taken_once_and_given_back)
{
    static struct bh_sim_node node;
    struct bh_sim_place p, q;
    struct bh_err err;
    int lock, other;
    char at[200], to[200] = "";
    begin();
    CHECK_EQ(bh_sim_node_make(&node, "h100x8", 7, &err), BH_OK);
    CHECK_EQ(bh_sim_place_take("lab", &p, &lock, &err), BH_OK);
    CHECK_EQ(bh_sim_place_fill(&p, &node, &err), BH_OK);
    CHECK_EQ(bh_sim_place_take("lab", &q, &other, &err), BH_CONFLICT);
    CHECK(strstr(err.msg, "bulkhead sim stop lab") != NULL);
    CHECK_EQ(bh_sim_place_find("lab", &q, &err), BH_OK);
    CHECK(q.runs && q.seed == 7 && q.gpus == 8 && q.pid == (uint32_t)getpid() && q.uid == geteuid());
    CHECK(q.started_s > 1700000000);
    CHECK_STR(q.scene, "h100x8");
    CHECK_STR(q.folder, p.folder);
    (void)snprintf(at, sizeof(at), "%s/lib/libcuda.so.1", p.folder);
    CHECK(readlink(at, to, sizeof(to) - 1) > 0);
    CHECK(strstr(to, "LIBS/libcuda.so.1") != NULL);
    (void)snprintf(at, sizeof(at), "%s/sysroot/proc/driver/nvidia/version", p.folder);
    CHECK_EQ(access(at, R_OK), 0);
    CHECK_EQ(bh_sim_place_find("lob", &q, &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "did you mean 'lab'?") != NULL);
    CHECK_EQ(bh_sim_place_sweep(&p, &err), BH_CONFLICT);
    /* A second one beside it, and both are listed in order. */
    CHECK_EQ(bh_sim_place_take("a", &q, &other, &err), BH_OK);
    bh_sim_places all = {0};
    CHECK_EQ(bh_sim_place_list(&all, &err), BH_OK);
    CHECK_EQ(all.n, 2);
    CHECK_STR(all.at[0].name, "a");
    CHECK_STR(all.at[1].name, "lab");
    bh_vec_fini(&all);
    CHECK_EQ(bh_sim_place_remove(&q, &err), BH_OK);
    close(other);
    CHECK_EQ(bh_sim_place_remove(&p, &err), BH_OK);
    close(lock);
    CHECK_EQ(count(), 0);
    CHECK(end());
}

TEST(a_lock_ends_with_the_process_that_has_it)
{
    struct bh_sim_place p, q;
    struct bh_err err;
    int lock, status, go[2];
    char byte;
    begin();
    CHECK_EQ(pipe(go), 0);
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (bh_sim_place_take("lab", &p, &lock, &err) == BH_OK)
            touch(p.folder, "log");
        (void)!write(go[1], "x", 1);
        for (;;)
            (void)pause();
    }
    CHECK_EQ(read(go[0], &byte, 1), 1);
    CHECK_EQ(bh_sim_place_find("lab", &q, &err), BH_OK);
    CHECK(q.runs && bh_sim_place_runs(&q));
    CHECK_EQ(bh_sim_place_take("lab", &p, &lock, &err), BH_CONFLICT);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(bh_sim_place_find("lab", &q, &err), BH_OK);
    CHECK(!q.runs && !bh_sim_place_runs(&q));
    /* It can be taken at once, and nothing of the one before is in it. */
    CHECK_EQ(bh_sim_place_take("lab", &p, &lock, &err), BH_OK);
    char log[200];
    (void)snprintf(log, sizeof(log), "%s/log", p.folder);
    CHECK(access(log, F_OK) < 0);
    close(lock);
    CHECK_EQ(bh_sim_place_sweep(&q, &err), BH_OK);
    CHECK(!bh_sim_place_runs(&q));
    CHECK_EQ(count(), 0);
    close(go[0]);
    close(go[1]);
    CHECK(end());
}

TEST(what_is_removed_stays_within_the_folder)
{
    struct bh_sim_place p;
    struct bh_err err;
    int lock;
    char path[200], deep[400];
    begin();
    CHECK_EQ(bh_sim_place_take("lab", &p, &lock, &err), BH_OK);
    (void)snprintf(path, sizeof(path), "%s/out", p.folder);
    CHECK_EQ(symlink(libs, path), 0);
    (void)snprintf(deep, sizeof(deep), "%s/a", p.folder);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(mkdir(deep, 0755), 0);
        touch(deep, "f");
        (void)snprintf(deep + strlen(deep), sizeof(deep) - strlen(deep), "/a");
    }
    CHECK_EQ(bh_sim_place_remove(&p, &err), BH_OK);
    close(lock);
    (void)snprintf(path, sizeof(path), "%s/libcuda.so.1", libs);
    CHECK_EQ(access(path, F_OK), 0);
    CHECK(end());
}

TEST(a_folder_that_is_no_node_is_not_listed)
{
    struct bh_sim_place p;
    struct bh_err err;
    int lock;
    char path[200];
    begin();
    (void)snprintf(path, sizeof(path), "%s/stray", home);
    CHECK_EQ(mkdir(path, 0755), 0);
    touch(home, "file");
    CHECK_EQ(count(), 0);
    CHECK_EQ(bh_sim_place_find("stray", &p, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_sim_place_take("stray", &p, &lock, &err), BH_OK); /* an empty one can become one */
    CHECK_EQ(count(), 1);
    /* `node` is somebody's text: odd lines are passed over. */
    (void)snprintf(path, sizeof(path), "%s/node", p.folder);
    FILE *f = fopen(path, "w");
    CHECK(f);
    fputs("simulated yes\nscene\nseed x\nstarted 99999999999999999999\npid -1\n\n\nwhat ever\ngpus 3", f);
    (void)fclose(f);
    CHECK_EQ(bh_sim_place_find("stray", &p, &err), BH_OK);
    CHECK(p.gpus == 3 && p.seed == 0 && p.started_s == 0 && p.pid == 0);
    CHECK_STR(p.scene, "");
    CHECK_EQ(bh_sim_place_remove(&p, &err), BH_OK);
    close(lock);
    (void)snprintf(path, sizeof(path), "%s/file", home);
    CHECK_EQ(unlink(path), 0);
    CHECK(end());
}

/* How many entries, to say that nothing came or went; -1: no folder. */
static int entries(const char *folder)
{
    DIR *d = opendir(folder);
    int n = d ? 0 : -1;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2;
}

TEST(what_is_no_node_is_neither_emptied_nor_swept)
{
    struct bh_sim_place p, q = {.name = "mine"};
    struct bh_err err;
    int lock;
    char path[200];
    begin();
    (void)snprintf(q.folder, sizeof(q.folder), "%s/mine", home);
    CHECK_EQ(mkdir(q.folder, 0755), 0);
    touch(q.folder, "thesis.tex");
    CHECK_EQ(bh_sim_place_take("mine", &p, &lock, &err), BH_CONFLICT);
    CHECK(strstr(err.msg, "thesis.tex") && strstr(err.msg, "no simulated node") &&
          strstr(err.msg, "another"));
    CHECK_EQ(entries(q.folder), 1);
    /* A file called `lock`, or one called `node` that says something else, makes it no node either. */
    touch(q.folder, "lock");
    CHECK_EQ(count(), 0);
    CHECK_EQ(bh_sim_place_find("mine", &p, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_sim_place_sweep(&q, &err), BH_CONFLICT);
    (void)snprintf(path, sizeof(path), "%s/node", q.folder);
    FILE *f = fopen(path, "w");
    CHECK(f);
    fputs("{}", f);
    (void)fclose(f);
    CHECK_EQ(bh_sim_place_take("mine", &p, &lock, &err), BH_CONFLICT);
    CHECK_EQ(bh_sim_place_sweep(&q, &err), BH_CONFLICT);
    CHECK_EQ(entries(q.folder), 3);
    /* What one leaves that was killed while it took the name, or gave it back, is no obstacle. */
    CHECK_EQ(truncate(path, 0), 0);
    (void)snprintf(path, sizeof(path), "%s/thesis.tex", q.folder);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(bh_sim_place_take("mine", &p, &lock, &err), BH_OK);
    CHECK_EQ(bh_sim_place_remove(&p, &err), BH_OK);
    close(lock);
    CHECK(end());
}

TEST(only_the_owner_can_hold_the_lock)
{
    struct bh_sim_place p;
    struct bh_err err;
    struct stat st;
    char path[200];
    int lock;
    begin();
    CHECK_EQ(bh_sim_place_take("lab", &p, &lock, &err), BH_OK);
    (void)snprintf(path, sizeof(path), "%s/lock", p.folder);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
    CHECK_EQ(bh_sim_place_remove(&p, &err), BH_OK);
    close(lock);
    CHECK(end());
}

TEST(a_folder_others_can_change_is_not_used)
{
    struct bh_sim_place p;
    struct bh_err err;
    int lock;
    char path[200];
    begin();
    CHECK_EQ(chmod(home, 0777), 0);
    CHECK_EQ(bh_sim_place_take("lab", &p, &lock, &err), BH_DENIED);
    CHECK(strstr(err.msg, "others can write") && strstr(err.msg, home));
    CHECK_EQ(chmod(home, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/lab", home);
    CHECK(mkdir(path, 0755) == 0 && chmod(path, 0775) == 0);
    CHECK_EQ(bh_sim_place_take("lab", &p, &lock, &err), BH_DENIED);
    CHECK_EQ(chmod(path, 0755), 0);
    if (geteuid() == 0) { /* there is somebody else to be */
        CHECK_EQ(chown(path, 65534, 65534), 0);
        CHECK_EQ(bh_sim_place_take("lab", &p, &lock, &err), BH_DENIED);
        CHECK(strstr(err.msg, "uid 65534") != NULL);
        CHECK_EQ(entries(path), 0);
        CHECK_EQ(chown(home, 65534, 65534), 0);
        CHECK_EQ(bh_sim_place_take("other", &p, &lock, &err), BH_DENIED);
    }
    CHECK_EQ(rmdir(path), 0);
    CHECK(end());
}

/* The result of bh_sim_home for somebody without a folder of their own for such things. */
static int home_of(uid_t uid)
{
    int status;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char got[BH_SIM_FOLDER_MAX];
        (void)unsetenv("BULKHEAD_SIM_HOME");
        (void)unsetenv("XDG_RUNTIME_DIR");
        if (setuid(uid) < 0)
            _exit(99);
        int rc = bh_sim_home(got, NULL);
        _exit(rc == BH_OK ? 0 : rc == BH_DENIED ? 1 : 2);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(a_home_where_all_can_write_must_be_private)
{
    enum { SOMEBODY = 64973 };
    char path[100], other[110];
    if (geteuid() != 0)
        return; /* nobody else to be */
    (void)snprintf(path, sizeof(path), P_tmpdir "/bulkhead-sim-%d", SOMEBODY);
    (void)snprintf(other, sizeof(other), "%s.real", path);
    (void)unlink(path); /* of a run that failed */
    (void)rmdir(path);
    (void)rmdir(other);
    CHECK(mkdir(path, 0700) == 0); /* root's */
    CHECK_EQ(home_of(SOMEBODY), 1);
    CHECK_EQ(chown(path, SOMEBODY, SOMEBODY), 0);
    CHECK_EQ(home_of(SOMEBODY), 0);
    CHECK_EQ(chmod(path, 0750), 0); /* its own, and others look in */
    CHECK_EQ(home_of(SOMEBODY), 1);
    CHECK(chmod(path, 0700) == 0 && rename(path, other) == 0 && symlink(other, path) == 0);
    CHECK_EQ(home_of(SOMEBODY), 1); /* a link to it */
    CHECK(unlink(path) == 0 && rmdir(other) == 0);
    CHECK_EQ(home_of(SOMEBODY), 0); /* made */
    CHECK_EQ(rmdir(path), 0);
}

TEST(a_missing_library_is_named)
{
    static struct bh_sim_node node;
    struct bh_sim_place p;
    struct bh_err err;
    char at[400], path[200];
    int lock;
    begin();
    CHECK_EQ(bh_sim_library("libcuda.so.1", at, sizeof(at), &err), BH_OK);
    (void)snprintf(path, sizeof(path), "%s/libcuda.so.1", libs);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(bh_sim_library("libcuda.so.1", at, sizeof(at), &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "libcuda.so.1") && strstr(err.msg, libs) && strstr(err.msg, "BULKHEAD_SIM_LIB"));
    CHECK_EQ(bh_sim_node_make(&node, "h200", 1, &err), BH_OK);
    CHECK_EQ(bh_sim_place_take("lab", &p, &lock, &err), BH_OK);
    CHECK_EQ(bh_sim_place_fill(&p, &node, &err), BH_NOT_FOUND);
    CHECK_EQ(bh_sim_place_remove(&p, &err), BH_OK);
    close(lock);
    /* Without the variable, beside this program: nothing is there, and the message says where that is. */
    (void)unsetenv("BULKHEAD_SIM_LIB");
    CHECK_EQ(bh_sim_library("libno.so.1", at, sizeof(at), &err), BH_NOT_FOUND);
    CHECK(strstr(err.msg, "bulkhead/sim") != NULL);
    CHECK(end());
}

TEST(a_home_that_cannot_be_is_said)
{
    struct bh_sim_place p;
    struct bh_err err;
    int lock;
    (void)setenv("BULKHEAD_SIM_HOME", "/proc/no/such", 1);
    CHECK_EQ(bh_sim_place_take("lab", &p, &lock, &err), BH_NOT_FOUND);
    CHECK_EQ(count(), 0);
    (void)setenv("BULKHEAD_SIM_HOME", "/dev/null", 1);
    CHECK_EQ(bh_sim_place_take("lab", &p, &lock, &err), BH_SYSTEM);
    begin();
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        /* As somebody else, where there is somebody else to be. */
        if (geteuid() != 0)
            _exit(0);
        if (chmod(home, 0755) < 0 || setuid(65534) < 0)
            _exit(2);
        _exit(bh_sim_place_take("lab", &p, &lock, &err) == BH_DENIED && strstr(err.msg, "BULKHEAD_SIM_HOME")
                  ? 0
                  : 1);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(end());
}

TEST_MAIN
