/* SPDX-License-Identifier: Apache-2.0 */
/* selftest_test.c - it holds on silicon that keeps its word, and says what is wrong where it does not. */
#include "warden/selftest.h"

#include "simgpu/serve/serve_fixture.h"

#include <sys/stat.h>
#include <time.h>

static char run_dir[96];
static const char version[] = "580.159.04";

static void run_dir_begin(void)
{
    if (!bh_scratch_make(run_dir, sizeof(run_dir), "run") || rmdir(run_dir) < 0)
        abort();
    (void)setenv("BULKHEAD_RUN_DIR", run_dir, 1);
}

static const char *memo(void)
{
    static char path[128];
    (void)snprintf(path, sizeof(path), "%s/selftest", run_dir);
    return path;
}

/* Nothing but the one file may be in it. */
static bool run_dir_end(void)
{
    (void)unlink(memo());
    (void)unsetenv("BULKHEAD_RUN_DIR");
    return rmdir(run_dir) == 0;
}

static bool may_hold_a_gate(void)
{
    return geteuid() == 0;
}

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static size_t open_files(void)
{
    size_t n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static bool nothing_held_soon(void)
{
    for (int i = 0; i < 2000 && !sim_holds_nothing(); i++)
        (void)usleep(1000);
    return sim_holds_nothing();
}

TEST(it_holds_on_silicon_that_keeps_its_word)
{
    struct bh_err err = {0};
    if (!may_hold_a_gate())
        return;
    sim_begin();
    CHECK(nothing_held_soon());
    const size_t files = open_files();
    const double begun = now();
    CHECK_EQ(bh_selftest_now(&bh_driver_simulated, version, &err), BH_OK);
    CHECK_STR(err.msg, "");
    printf("# %.1f ms\n", now() - begun);
    CHECK_EQ(open_files(), files);
    CHECK(waitpid(-1, NULL, WNOHANG) == 0); /* the node is the only child */
    CHECK(nothing_held_soon());
    CHECK(sim_end());
}

/* ---- drivers that do not ---- */

static uint64_t lie;

static int count_wrong(void *self, const uint32_t *pids, size_t n_pids, uint64_t *bytes, size_t n_gpus,
                       struct bh_err *err)
{
    int rc = bh_driver_simulated.count(self, pids, n_pids, bytes, n_gpus, err);
    for (size_t i = 0; i < n_gpus; i++)
        bytes[i] += lie;
    return rc;
}

static int count_nothing(void *self, const uint32_t *pids, size_t n_pids, uint64_t *bytes, size_t n_gpus,
                         struct bh_err *err)
{
    int rc = bh_driver_simulated.count(self, pids, n_pids, bytes, n_gpus, err);
    memset(bytes, 0, n_gpus * sizeof(*bytes));
    return rc;
}

/* Layouts of another branch look like this: the gate does not see what goes by. */
static struct bh_driver_file identify_nothing(int fd)
{
    (void)fd;
    return (struct bh_driver_file){.kind = BH_FILE_OTHER};
}

static int ioctl_gives_more(int fd, uint32_t cmd, void *arg)
{
    struct rm_alloc *a = arg;
    if (RM_IOC_NUMBER(cmd) == RM_ALLOC && a->class == RM_CLASS_MEMORY_LOCAL && a->params)
        ((struct rm_memory_params *)(uintptr_t)a->params)->size /= 2;
    return bh_driver_simulated.ioctl(fd, cmd, arg);
}

static int ioctl_full(int fd, uint32_t cmd, void *arg)
{
    struct rm_alloc *a = arg;
    if (RM_IOC_NUMBER(cmd) != RM_ALLOC || a->class != RM_CLASS_MEMORY_LOCAL)
        return bh_driver_simulated.ioctl(fd, cmd, arg);
    a->status = RM_NO_MEMORY;
    return 0;
}

static void refused(const struct bh_driver *driver, const char *words)
{
    struct bh_err err = {0};
    const int rc = bh_selftest_now(driver, version, &err);
    printf("# %s\n", err.msg);
    CHECK_EQ(rc, BH_REFUSED);
    CHECK(strstr(err.msg, words) != NULL);
    CHECK(strstr(err.msg, "580.159.04") != NULL && strstr(err.msg, "MIG") != NULL && !strchr(err.msg, '\n'));
    CHECK(nothing_held_soon());
}

TEST(each_number_that_does_not_fit_is_said)
{
    struct bh_driver d;
    if (!may_hold_a_gate())
        return;
    sim_begin();
    lie = 9 << 20;
    d = bh_driver_simulated;
    d.count = count_wrong;
    refused(&d, "should be 64 MiB and is 73 MiB");
    d.count = count_nothing;
    refused(&d, "should be 64 MiB and is 0 MiB");
    d = bh_driver_simulated;
    d.identify = identify_nothing;
    refused(&d, "should be answered with status 0x51 and was with 0x0");
    d = bh_driver_simulated;
    d.ioctl = ioctl_gives_more;
    refused(&d, "what the driver gave should be 64 MiB and is 32 MiB");
    CHECK(sim_end());
}

TEST(a_node_that_fails_is_no_promise)
{
    struct bh_err err = {0};
    struct bh_driver full = bh_driver_simulated;
    if (!may_hold_a_gate())
        return;
    sim_begin();
    /* a card that the neighbours have filled says nothing of the gate */
    full.ioctl = ioctl_full;
    CHECK_EQ(bh_selftest_now(&full, version, &err), BH_BUSY);
    CHECK(strstr(err.msg, "every GPU is full") != NULL && !strstr(err.msg, "no memory cap can be promised"));
    CHECK_EQ(order(BH_SIM_OP_BREAK, 0, "calls fail 51 every 1"), 0);
    CHECK_EQ(bh_selftest_now(&bh_driver_simulated, version, &err), BH_SYSTEM);
    CHECK(strstr(err.msg, "status 0x51") != NULL);
    CHECK_EQ(order(BH_SIM_OP_BREAK, 0, "mend"), 0);
    CHECK_EQ(bh_selftest_now(&bh_driver_simulated, version, &err), BH_OK);
    CHECK(sim_end());
    CHECK(bh_selftest_now(&bh_driver_simulated, version, &err) < 0); /* it is gone */
}

/* ---- what is remembered ---- */

TEST(once_it_held_it_is_not_done_again)
{
    struct bh_err err = {0};
    struct stat st;
    if (!may_hold_a_gate())
        return;
    run_dir_begin();
    sim_begin();
    CHECK(!bh_selftest_remembered(&bh_driver_simulated, version));
    CHECK_EQ(bh_selftest(&bh_driver_simulated, version, &err), BH_OK);
    CHECK(sim_end());
    CHECK(stat(run_dir, &st) == 0 && (st.st_mode & 07777) == 0755);
    CHECK(stat(memo(), &st) == 0 && (st.st_mode & 07777) == 0600);
    /* with no silicon at all it still says so: nothing was tried */
    const double begun = now();
    CHECK_EQ(bh_selftest(&bh_driver_simulated, version, &err), BH_OK);
    printf("# %.3f ms\n", now() - begun);
    /* another driver, another version: nothing is known */
    CHECK(!bh_selftest_remembered(&bh_driver_nvidia, version));
    CHECK(bh_selftest(&bh_driver_simulated, "580.159.05", &err) < 0);
    CHECK(bh_selftest_remembered(&bh_driver_simulated, version)); /* a failure forgets nothing that held */
    CHECK(run_dir_end());
}

TEST(what_others_could_have_written_is_not_believed)
{
    struct stat st;
    if (!may_hold_a_gate())
        return;
    run_dir_begin();
    bh_selftest_remember(&bh_driver_simulated, version);
    CHECK(bh_selftest_remembered(&bh_driver_simulated, version));
    static const struct {
        mode_t folder, file;
        uid_t folder_owner, file_owner;
    } odd[] = {{0700, 0622, 0, 0}, {0700, 0660, 0, 0},     {0720, 0600, 0, 0},
               {0702, 0600, 0, 0}, {0700, 0600, 65534, 0}, {0700, 0600, 0, 65534}};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        CHECK(chmod(run_dir, odd[i].folder) == 0 && chmod(memo(), odd[i].file) == 0);
        CHECK(chown(run_dir, odd[i].folder_owner, 0) == 0 && chown(memo(), odd[i].file_owner, 0) == 0);
        CHECK(!bh_selftest_remembered(&bh_driver_simulated, version));
        CHECK(chown(run_dir, 0, 0) == 0 && chown(memo(), 0, 0) == 0);
        CHECK(chmod(run_dir, 0700) == 0 && chmod(memo(), 0600) == 0);
        CHECK(bh_selftest_remembered(&bh_driver_simulated, version));
    }
    /* a link to a good one is not one */
    char other[160];
    (void)snprintf(other, sizeof(other), "%s/other", run_dir);
    CHECK(rename(memo(), other) == 0 && symlink("other", memo()) == 0);
    CHECK(!bh_selftest_remembered(&bh_driver_simulated, version));
    /* it is written over, and what the link led to is not */
    bh_selftest_remember(&bh_driver_simulated, version);
    CHECK(lstat(memo(), &st) == 0 && S_ISREG(st.st_mode));
    CHECK(bh_selftest_remembered(&bh_driver_simulated, version));
    CHECK(unlink(other) == 0);
    /* text that differs in one letter */
    const int fd = open(memo(), O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && write(fd, "no", 2) == 2);
    close(fd);
    CHECK(!bh_selftest_remembered(&bh_driver_simulated, version));
    CHECK(run_dir_end());
}

TEST(where_it_cannot_be_written_nothing_happens)
{
    (void)setenv("BULKHEAD_RUN_DIR", "/proc/no/such/place", 1);
    bh_selftest_remember(&bh_driver_simulated, version);
    CHECK(!bh_selftest_remembered(&bh_driver_simulated, version));
    (void)unsetenv("BULKHEAD_RUN_DIR");
    bh_selftest_remember(&bh_driver_simulated,
                         version); /* simulated silicon leaves nothing in the machine's folder */
    CHECK(!bh_selftest_remembered(&bh_driver_simulated, version));
}

TEST_MAIN
