/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordinary files stand for device files here: an ioctl on one fails with ENOTTY (25), which is recorded like
 * any other outcome. The programs that are recorded are this one again, in the role that the environment
 * names.
 */
#include "record/trace.h"

#include "base/scratch.h"
#include "base/test.h"
#include "gpu/abi/rm.h"
#include "record/decode.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char dev[256]; /* the folder that stands for /dev */

/* --- the roles --- */

static int device(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", getenv("BH_ROLE_DEV"), name);
    return open(path, O_RDWR);
}
static void mark(const char *name)
{
    (void)ioctl(-1, (unsigned long)BH_RECORD_MARK, name);
}
static void control(int fd, uint32_t command)
{
    struct rm_control c = {.command = command, .status = 0x56};
    (void)ioctl(fd, (unsigned long)RM_IOC(RM_CONTROL, sizeof(c)), &c);
}

static int role_calls(void)
{
    struct rm_memory_params params = {.size = 2 << 20, .attr = 0x10, .attr2 = 0x20, .flags = 0x30};
    struct rm_alloc a = {.class = RM_CLASS_MEMORY_LOCAL, .params = (uintptr_t)&params, .params_size = 128};
    int left = 0, ctl = device("nvidiactl"), uvm = device("nvidia-uvm");
    mark("first part");
    (void)ioctl(ctl, (unsigned long)RM_IOC(RM_ALLOC, sizeof(a)), &a);
    (void)ioctl(ctl, (unsigned long)RM_IOC(RM_ALLOC, sizeof(a)), &a);
    (void)ioctl(ctl, FIONREAD, &left); /* one that a file does answer */
    (void)ioctl(ctl, (unsigned long)RM_IOC(RM_ALLOC, sizeof(a)), NULL);
    mark("second part");
    (void)ioctl(uvm, UVM_REGISTER_GPU, &params);
    (void)ioctl(ctl, 0x5401, &left); /* not NVIDIA's, on NVIDIA's file: still a number and a size */
    void *at = mmap(NULL, 8192, PROT_READ, MAP_SHARED, uvm, 0);
    int copy = dup(uvm), null = open("/dev/null", O_RDWR);
    control(null, 1);
    control(copy, 37);
    munmap(at, 8192);
    close(copy);
    close(null);
    close(ctl);
    (void)device("nvidia7");
    return 7;
}

/* The calls that newer libraries make instead of open and close. */
static int role_newer(void)
{
    char path[512];
    struct open_how how = {.flags = O_RDWR};
    snprintf(path, sizeof(path), "%s/nvidia0", getenv("BH_ROLE_DEV"));
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)), null = open("/dev/null", O_RDWR);
    control(fd, 1);
    (void)close_range((unsigned)fd, (unsigned)null, CLOSE_RANGE_CLOEXEC); /* closes nothing */
    (void)close_range((unsigned)null, (unsigned)fd, 0);                   /* nor does this */
    control(fd, 2);
    (void)close_range((unsigned)fd, ~0u, 0);
    return fcntl(fd, F_GETFD) < 0 && null > fd ? 5 : 6;
}

static int role_fork(void)
{
    int ctl = device("nvidiactl"), status = 0;
    control(ctl, 1);
    for (uint32_t i = 2; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            control(ctl, i);
            _exit(0);
        }
        waitpid(child, &status, 0);
    }
    control(ctl, 4);
    return WIFEXITED(status) ? 0 : 1;
}

static void *hammer(void *ctx)
{
    for (int i = 0; i < 50; i++)
        control(*(int *)ctx, 9);
    return NULL;
}

static int role_threads(void)
{
    pthread_t t[4];
    int ctl = device("nvidiactl");
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, hammer, &ctl);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    return 0;
}

/* The descriptor is kept over exec; its number is the same there. */
static void *exec_now(void *ctx)
{
    control(*(int *)ctx, 1);
    setenv("BH_ROLE", "after-exec", 1);
    execl("/proc/self/exe", "after-exec", (char *)NULL);
    return NULL;
}
static int role_exec(void)
{
    int ctl = device("nvidiactl");
    dup2(ctl, 9);
    exec_now(&ctl);
    return 1;
}
static int role_thread_exec(void)
{
    pthread_t t;
    int ctl = device("nvidiactl");
    dup2(ctl, 9);
    pthread_create(&t, NULL, exec_now, &ctl);
    pthread_join(t, NULL);
    return 1;
}
static int role_after_exec(void)
{
    control(9, 2);
    return 11;
}

static volatile sig_atomic_t seen;
static void on_signal(int signal)
{
    seen = signal;
}
static int role_signal(void)
{
    int ctl = device("nvidiactl");
    signal(SIGUSR1, on_signal);
    control(ctl, 1);
    raise(SIGUSR1);
    control(ctl, 2);
    return seen == SIGUSR1 ? 3 : 4;
}

static int role_kill(void)
{
    control(device("nvidiactl"), 1);
    kill(getpid(), SIGKILL);
    return 0;
}

/* Threads are in the middle of recorded calls when all of them are killed. */
static int role_kill_threads(void)
{
    pthread_t t[4];
    int ctl = device("nvidiactl");
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, hammer, &ctl);
    kill(getpid(), SIGKILL);
    return 0;
}

static int role_stop(void)
{
    int ctl = device("nvidiactl"), status = 0;
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        control(ctl, 5);
        _exit(0);
    }
    bool stopped = waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status);
    kill(child, SIGCONT);
    bool ended = waitpid(child, &status, 0) == child && WIFEXITED(status);
    return stopped && ended ? 21 : 22;
}

static int role_outlive(void)
{
    int ctl = device("nvidiactl"), ready[2];
    if (pipe(ready) != 0)
        return 1;
    if (fork() == 0) {
        char byte;
        close(ready[1]);
        (void)!read(ready[0], &byte, 1); /* until the parent has ended */
        control(ctl, 6);
        _exit(9);
    }
    return 2;
}

static int role_loud_mark(void)
{
    mark("a\nprocess 9");
    mark(NULL);
    mark("");
    return 0;
}

static const struct {
    const char *name;
    int (*fn)(void);
} ROLES[] = {
    {"calls", role_calls},
    {"newer", role_newer},
    {"fork", role_fork},
    {"threads", role_threads},
    {"exec", role_exec},
    {"thread-exec", role_thread_exec},
    {"after-exec", role_after_exec},
    {"signal", role_signal},
    {"kill", role_kill},
    {"kill-threads", role_kill_threads},
    {"stop", role_stop},
    {"outlive", role_outlive},
    {"loud-mark", role_loud_mark},
};

/* Before the tests' own main; _exit, since the leak checker cannot run in a process that is followed. */
__attribute__((constructor)) static void play(void)
{
    const char *role = getenv("BH_ROLE");
    for (size_t i = 0; role && i < BH_COUNT_OF(ROLES); i++)
        if (strcmp(role, ROLES[i].name) == 0)
            _exit(ROLES[i].fn());
}

/* --- the tests --- */

static void make_dev(void)
{
    static const char *const FILES[] = {"nvidiactl", "nvidia0", "nvidia-uvm"};
    char folder[200], path[300];
    if (!bh_scratch_make(folder, sizeof(folder), "trace"))
        abort();
    char *real = realpath(folder, NULL);
    snprintf(dev, sizeof(dev), "%s", real);
    free(real);
    for (size_t i = 0; i < BH_COUNT_OF(FILES); i++) {
        snprintf(path, sizeof(path), "%s/%s", dev, FILES[i]);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || ftruncate(fd, 8192) != 0)
            abort();
        close(fd);
    }
    setenv("BH_ROLE_DEV", dev, 1);
}

/* What a role's recording says between its head and its end; "" and a status of -1: it was not made. */
static const char *recorded(const char *role, int *ret_status)
{
    static struct bh_buf b;
    char exe[] = "/proc/self/exe", *argv[] = {exe, NULL};
    struct bh_recording r;
    struct bh_err err = {.msg = ""};
    if (!*dev)
        make_dev();
    setenv("BH_ROLE", role, 1);
    int rc = bh_record_run(dev, argv, &r, ret_status, &err);
    unsetenv("BH_ROLE");
    bh_buf_fini(&b);
    bh_buf_init(&b, 1 << 20);
    for (size_t i = 0; i < r.calls.n; i++) {
        bh_call_write(&b, &r.calls.at[i]);
        bh_buf_str(&b, "\n");
    }
    bh_recording_fini(&r);
    if (rc < 0) {
        printf("# %s\n", err.msg);
        *ret_status = -1;
        return "";
    }
    return bh_buf_text(&b);
}

TEST(calls_are_recorded_with_their_outcome)
{
    int status;
    CHECK_STR(
        recorded("calls", &status),
        "open ctl\n"
        "open uvm\n"
        "mark first part\n"
        "ctl alloc 48 class 40 new #0 in #0 params 128 flags 0 size 2097152 attr 10 attr2 20 mflags 30 errno "
        "25 times 2\n"
        "ctl escape 1b 0\n"
        "ctl escape 2b 48 errno 25\n"
        "mark second part\n"
        "uvm call 37 errno 25\n"
        "ctl escape 1 0 errno 25\n"
        "map uvm 8192 prot 1 flags 1\n"
        "uvm call 3223340586 errno 25\n"
        "close uvm\n"
        "close ctl\n"
        "open gpu7 errno 2\n");
    CHECK_EQ(status, 7);
}

TEST(newer_forms_of_open_and_close_are_seen)
{
    int status;
    CHECK_STR(recorded("newer", &status), "open gpu0\n"
                                          "gpu0 control 32 command 1 on #0 params 0 flags 0 errno 25\n"
                                          "gpu0 control 32 command 2 on #0 params 0 flags 0 errno 25\n"
                                          "close gpu0\n");
    CHECK_EQ(status, 5);
}

TEST(processes_are_told_apart)
{
    int status;
    CHECK_STR(recorded("fork", &status), "open ctl\n"
                                         "ctl control 32 command 1 on #0 params 0 flags 0 errno 25\n"
                                         "process 2\n"
                                         "ctl control 32 command 2 on #0 params 0 flags 0 errno 25\n"
                                         "process 3\n"
                                         "ctl control 32 command 3 on #0 params 0 flags 0 errno 25\n"
                                         "process 1\n"
                                         "ctl control 32 command 4 on #0 params 0 flags 0 errno 25\n");
    CHECK_EQ(status, 0);
}

TEST(threads_are_one_process_and_none_is_lost)
{
    int status;
    CHECK_STR(recorded("threads", &status),
              "open ctl\nctl control 32 command 9 on #0 params 0 flags 0 errno 25 times 200\n");
    CHECK_EQ(status, 0);
}

TEST(exec_is_followed)
{
    static const char WANT[] = "open ctl\n"
                               "ctl control 32 command 1 on #0 params 0 flags 0 errno 25\n"
                               "ctl control 32 command 2 on #0 params 0 flags 0 errno 25\n";
    int status;
    CHECK_STR(recorded("exec", &status), WANT);
    CHECK_EQ(status, 11);
    CHECK_STR(recorded("thread-exec", &status), WANT);
    CHECK_EQ(status, 11);
}

TEST(signals_arrive)
{
    int status;
    CHECK_STR(recorded("signal", &status), "open ctl\n"
                                           "ctl control 32 command 1 on #0 params 0 flags 0 errno 25\n"
                                           "ctl control 32 command 2 on #0 params 0 flags 0 errno 25\n");
    CHECK_EQ(status, 3);
}

TEST(a_killed_command_leaves_its_recording)
{
    int status;
    CHECK_STR(recorded("kill", &status),
              "open ctl\nctl control 32 command 1 on #0 params 0 flags 0 errno 25\n");
    CHECK_EQ(status, 128 + SIGKILL);
    CHECK(strncmp(recorded("kill-threads", &status), "open ctl\n", 9) == 0);
    CHECK_EQ(status, 128 + SIGKILL);
}

TEST(a_stopped_process_stays_stopped_until_it_is_continued)
{
    int status;
    CHECK_STR(recorded("stop", &status),
              "open ctl\nprocess 2\nctl control 32 command 5 on #0 params 0 flags 0 errno 25\n");
    CHECK_EQ(status, 21);
}

TEST(what_outlives_the_command_is_followed)
{
    int status;
    CHECK_STR(recorded("outlive", &status),
              "open ctl\nprocess 2\nctl control 32 command 6 on #0 params 0 flags 0 errno 25\n");
    CHECK_EQ(status, 2);
}

/* A mark cannot forge another line, and one that cannot be read is none. */
TEST(marks_are_made_fit_to_print)
{
    int status;
    CHECK_STR(recorded("loud-mark", &status), "mark a?process 9\nmark -\n");
    CHECK_EQ(status, 0);
}

TEST(a_command_that_cannot_start_is_one_line)
{
    char none[] = "no-such-command-anywhere", folder[] = "/", *missing[] = {none, NULL},
         *directory[] = {folder, NULL};
    struct bh_recording r;
    struct bh_err err = {.msg = ""};
    int status;
    CHECK_EQ(bh_record_run("/dev", missing, &r, &status, &err), BH_NOT_FOUND);
    CHECK_STR(err.msg, "starting no-such-command-anywhere: No such file or directory");
    bh_recording_fini(&r);
    CHECK_EQ(bh_record_run("/dev", directory, &r, &status, &err), BH_DENIED);
    CHECK_STR(err.msg, "starting /: Permission denied");
    bh_recording_fini(&r);
}

TEST(a_program_that_asks_for_nothing_gives_an_empty_recording)
{
    char sh[] = "sh", c[] = "-c", script[] = "true | cat; exit 5", *argv[] = {sh, c, script, NULL};
    struct bh_recording r;
    struct bh_err err;
    int status;
    CHECK_EQ(bh_record_run("/dev", argv, &r, &status, &err), BH_OK);
    CHECK_EQ(r.calls.n, 0);
    CHECK_EQ(status, 5);
    bh_recording_fini(&r);
}

TEST_MAIN
