/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_test.c - the server with the real resource manager behind it, and the real caller's side before it.
 *
 * Ends of processes are certain when waitpid returned: what a process held is given back before its parent hears of it,
 * so nothing here waits for a while and hopes.
 */
#include "simgpu/serve/serve_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

/* ---- files and whose they are ---- */

TEST(says_what_it_is)
{
    struct bh_sim_node_view node;
    struct bh_sim_gpu_view gpu;
    sim_begin();
    CHECK_EQ(bh_sim_hello(&node), 0);
    CHECK_STR(node.scene, bh_sim_scenes[0].name);
    CHECK(node.n_gpus > 0);
    CHECK_EQ(bh_sim_view(node.n_gpus - 1, &gpu), 0);
    CHECK_EQ(gpu.index, node.n_gpus - 1);
    CHECK(bh_sim_view(node.n_gpus, &gpu) < 0);
    CHECK_EQ(errno, ENXIO);
    struct bh_sim_msg m = {.op = BH_SIM_OP_HELLO, .a = BH_SIM_WIRE_VERSION + 1};
    CHECK(bh_sim_call(&m, &node, sizeof(node), -1, NULL) < 0);
    CHECK_EQ(errno, EPROTONOSUPPORT);
    CHECK(sim_end());
}

TEST(a_file_lives_as_long_as_its_last_duplicate)
{
    sim_begin();
    CHECK(sim_holds_nothing());
    int fd = bh_sim_open("/dev/nvidiactl");
    CHECK(fd >= 3);
    CHECK(sim_set_up(fd, SIM_CLIENT));
    CHECK_EQ(sim_held().files, 1);
    CHECK_EQ(sim_held().clients, 1);
    int copy = dup(fd);
    close(fd);
    CHECK_EQ(sim_held().clients, 1);
    struct rm_free f = {.client = SIM_CLIENT, .parent = SIM_DEV, .object = SIM_MEM};
    CHECK_EQ(bh_sim_ioctl(copy, RM_IOC(RM_FREE, sizeof(f)), &f), 0);
    CHECK_EQ(f.status, RM_OK);
    close(copy);
    CHECK(sim_holds_nothing());
    CHECK(bh_sim_open("/dev/nvidia4711") < 0);
    CHECK(sim_holds_nothing());
    CHECK(sim_end());
}

TEST(a_child_keeps_what_its_parent_opened)
{
    int go[2], back[2];
    char byte = 0;
    sim_begin();
    CHECK(pipe(go) == 0 && pipe(back) == 0);
    int fd = bh_sim_open("/dev/nvidiactl");
    pid_t pid = fork_quiet();
    if (pid == 0) {
        /* The parent has closed it by now; here it still is the same file. */
        bool good = read(go[0], &byte, 1) == 1 && sim_set_up(fd, SIM_CLIENT) && sim_held().clients == 1;
        (void)!write(back[1], good ? "y" : "n", 1);
        for (;;)
            (void)pause();
    }
    close(fd);
    CHECK_EQ(sim_held().files, 1);
    CHECK_EQ(write(go[1], "x", 1), 1);
    CHECK(read(back[0], &byte, 1) == 1 && byte == 'y');
    CHECK_EQ(sim_held().files, 1);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(exit_of(pid), -1);
    CHECK(sim_holds_nothing());
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(back[i]);
    }
    CHECK(sim_end());
}

static bool is_shown(pid_t pid)
{
    char path[100], to[32] = "", want[32];
    (void)snprintf(path, sizeof(path), "%s/sysroot/proc/%d", sim_folder, (int)pid);
    (void)snprintf(want, sizeof(want), "/proc/%d", (int)pid);
    ssize_t n = readlink(path, to, sizeof(to) - 1);
    return n > 0 && strcmp(to, want) == 0;
}

TEST(processes_are_shown_while_they_use_the_node)
{
    struct bh_sim_node_view view;
    sim_begin();
    CHECK_EQ(bh_sim_hello(&view), 0);
    CHECK(!is_shown(getpid())); /* it only looked */
    int a = bh_sim_open("/dev/nvidiactl"), b = bh_sim_open("/dev/nvidia0");
    CHECK(is_shown(getpid()));
    close(a);
    CHECK_EQ(sim_held().files, 1);
    CHECK(is_shown(getpid()));
    pid_t pid = fork_quiet();
    if (pid == 0) {
        bool before = is_shown(getpid());
        (void)sim_set_up(b, SIM_CLIENT);
        _exit(!before && is_shown(getpid()) ? 0 : 1);
    }
    CHECK_EQ(exit_of(pid), 0);
    CHECK_EQ(sim_held().files, 1);
    CHECK(!is_shown(pid));
    close(b);
    CHECK(sim_holds_nothing());
    CHECK(!is_shown(getpid()));
    CHECK(sim_end());
}

TEST(only_our_descriptors_are_files)
{
    int pair[2], pipes[2];
    uint64_t done;
    sim_begin();
    int fd = bh_sim_open("/dev/nvidiactl");
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQ(pipe(pipes), 0);
    const int wrong[] = {pair[0], pipes[0], STDIN_FILENO, sim_raw()};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK(bh_sim_fence(wrong[i], SIM_CLIENT, SIM_CHAN, &done) < 0);
        CHECK_EQ(errno, EBADF);
    }
    struct bh_sim_msg m = {.op = BH_SIM_OP_FENCE};
    CHECK(bh_sim_call(&m, NULL, 0, -1, NULL) < 0);
    CHECK_EQ(errno, EBADF);
    close(wrong[3]);
    /* Many of them, and the server has as many descriptors as before: it closes what it is given. */
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/fd/60", (int)sim_pid);
    for (int i = 0; i < 200; i++)
        CHECK(bh_sim_fence(pipes[0], 1, 1, &done) < 0);
    CHECK(access(path, F_OK) < 0);
    close(pair[0]);
    close(pair[1]);
    close(pipes[0]);
    close(pipes[1]);
    close(fd);
    CHECK(sim_end());
}

/* ---- what goes over a file ---- */

TEST(memory_is_written_read_and_filled)
{
    static unsigned char out[100000], in[sizeof(out)];
    uint64_t range;
    sim_begin();
    int fd = bh_sim_open("/dev/nvidiactl");
    CHECK(sim_set_up(fd, SIM_CLIENT));
    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (unsigned char)(i * 7);
    CHECK_EQ(bh_sim_write(fd, SIM_CLIENT, SIM_MEM, 4096, out, sizeof(out)), 0);
    CHECK_EQ(bh_sim_read(fd, SIM_CLIENT, SIM_MEM, 4096, in, sizeof(in)), 0);
    CHECK_EQ(memcmp(in, out, sizeof(out)), 0);
    CHECK_EQ(bh_sim_fill(fd, SIM_CLIENT, SIM_MEM, 4096, 0x5a, 70000), 0);
    CHECK_EQ(bh_sim_read(fd, SIM_CLIENT, SIM_MEM, 4096, in, sizeof(in)), 0);
    CHECK(in[0] == 0x5a && in[69999] == 0x5a && in[70000] == out[70000]);
    CHECK(bh_sim_read(fd, SIM_CLIENT, SIM_MEM, SIM_MEM_BYTES - 1, in, 2) < 0);
    CHECK_EQ(errno, EFAULT);
    int uvm = bh_sim_open("/dev/nvidia-uvm");
    uint8_t init[16] = {0};
    CHECK(uvm >= 3);
    CHECK_EQ(bh_sim_ioctl(uvm, UVM_INITIALIZE, init), 0);
    void *at = bh_sim_mmap(uvm, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, &range);
    CHECK(at != (void *)-1);
    CHECK_EQ(sim_held().ranges, 1);
    memset(at, 1, 1 << 20);
    CHECK_EQ(bh_sim_munmap(uvm, at, 1 << 20, range), 0);
    CHECK_EQ(sim_held().ranges, 0);
    close(uvm);
    close(fd);
    CHECK(sim_holds_nothing());
    CHECK(sim_end());
}

struct waiter {
    int fd, rc, error;
    uint64_t fence;
};

static void *wait_main(void *arg)
{
    struct waiter *w = arg;
    w->rc = bh_sim_wait(w->fd, SIM_CLIENT, SIM_CHAN, w->fence);
    w->error = errno;
    return NULL;
}

TEST(a_wait_is_answered_when_the_work_is_done)
{
    uint64_t first, second, done;
    sim_begin();
    int fd = bh_sim_open("/dev/nvidiactl");
    CHECK(sim_set_up(fd, SIM_CLIENT));
    CHECK_EQ(bh_sim_doorbell(fd, SIM_CLIENT, SIM_CHAN, 20000000, &first), 0);
    CHECK_EQ(bh_sim_doorbell(fd, SIM_CLIENT, SIM_CHAN, 20000000, &second), 0);
    CHECK(second > first);
    CHECK_EQ(bh_sim_wait(fd, SIM_CLIENT, SIM_CHAN, second), 0);
    CHECK_EQ(bh_sim_fence(fd, SIM_CLIENT, SIM_CHAN, &done), 0);
    CHECK(done >= second);
    CHECK_EQ(bh_sim_wait(fd, SIM_CLIENT, SIM_CHAN, first), 0);
    CHECK(bh_sim_wait(fd, SIM_CLIENT, 999, first) < 0);
    close(fd);
    CHECK(sim_end());
}

/* As little as a copy of a few bytes; what is behind other work is not done, nor what is long. */
TEST(who_asks_for_little_is_told_that_it_is_done)
{
    enum { LITTLE_NS = 2, TRIES = 50 };
    uint64_t fence = 0, last = 0, done = 0;
    uint32_t told = 0, wrong = 0;
    sim_begin();
    int fd = bh_sim_open("/dev/nvidiactl");
    CHECK(sim_set_up(fd, SIM_CLIENT));
    for (int i = 0; i < TRIES; i++) {
        wrong += bh_sim_ring(fd, SIM_CLIENT, SIM_CHAN, LITTLE_NS, &fence, &done) < 0 || done > fence;
        told += done == fence;
        wrong += bh_sim_wait(fd, SIM_CLIENT, SIM_CHAN, fence) < 0;
    }
    CHECK_EQ(wrong, 0);
    CHECK(told > TRIES / 2);
    CHECK_EQ(bh_sim_ring(fd, SIM_CLIENT, SIM_CHAN, for_ever, &last, &done), 0);
    CHECK_EQ(done, 0);
    CHECK_EQ(bh_sim_ring(fd, SIM_CLIENT, SIM_CHAN, LITTLE_NS, &last, &done), 0);
    CHECK_EQ(done, fence);
    close(fd);
    CHECK(sim_end());
}

TEST(a_wait_ends_with_its_file_or_its_caller)
{
    struct waiter w = {0};
    pthread_t t;
    sim_begin();
    w.fd = bh_sim_open("/dev/nvidiactl");
    CHECK(sim_set_up(w.fd, SIM_CLIENT));
    CHECK_EQ(bh_sim_doorbell(w.fd, SIM_CLIENT, SIM_CHAN, for_ever, &w.fence), 0);
    CHECK_EQ(pthread_create(&t, NULL, wait_main, &w), 0);
    /* Others are answered meanwhile; the file goes under the one who waits. */
    CHECK_EQ(sim_held().files, 1);
    struct timespec step = {.tv_nsec = 30000000};
    (void)nanosleep(&step, NULL);
    close(w.fd);
    (void)pthread_join(t, NULL);
    CHECK_EQ(w.rc, -1);
    CHECK_EQ(w.error, EBADF);
    CHECK(sim_holds_nothing());
    pid_t pid = fork_quiet();
    if (pid == 0) {
        struct waiter own = {.fd = bh_sim_open("/dev/nvidiactl")};
        if (sim_set_up(own.fd, SIM_CLIENT) &&
            bh_sim_doorbell(own.fd, SIM_CLIENT, SIM_CHAN, for_ever, &own.fence) == 0)
            (void)wait_main(&own);
        _exit(1);
    }
    (void)nanosleep(&step, NULL);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(exit_of(pid), -1);
    CHECK(sim_holds_nothing());
    CHECK(sim_end());
}

/* ---- slow calls, limits ---- */

TEST(slow_calls_hold_up_nobody_else)
{
    const struct bh_sim_msg view = {.op = BH_SIM_OP_VIEW}, open = {.op = BH_SIM_OP_OPEN, .a = BH_FILE_CTL};
    static struct {
        struct bh_sim_msg msg;
        struct bh_sim_gpu_view view;
    } in;
    sim_begin();
    CHECK_EQ(order(BH_SIM_OP_BREAK, 0, "calls slow 1000"), 0);
    int a = sim_raw(), b = sim_raw();
    CHECK(send(a, &view, sizeof(view), 0) > 0);
    CHECK(send(b, &open, sizeof(open), 0) > 0);
    /* Whose request is looked at first is open; all are looked at. */
    for (int i = 0; i < 1000 && sim_held().files == 0; i++)
        (void)sched_yield();
    CHECK_EQ(sim_held().files, 1);
    CHECK(recv(a, &in, sizeof(in), MSG_DONTWAIT) < 0);
    CHECK_EQ(errno, EAGAIN);
    close(b); /* gone while its file waits to be handed over */
    CHECK(sim_holds_nothing());
    CHECK_EQ(recv(a, &in, sizeof(in), 0), (ssize_t)sizeof(in));
    CHECK_EQ(in.msg.result, 0);
    CHECK_EQ(order(BH_SIM_OP_BREAK, 0, "mend"), 0);
    CHECK(raw_ask(a, &view, sizeof(view)).result == 0);
    close(a);
    CHECK_EQ(order(BH_SIM_OP_BREAK, 0, "the sound barrier"), EINVAL);
    CHECK_EQ(order(BH_SIM_OP_BREAK, 0, ""), EINVAL);
    char many[601]; /* of words that are understood, and yet too many */
    memset(many, ' ', sizeof(many) - 1);
    memcpy(many, "mend", 4);
    many[sizeof(many) - 1] = '\0';
    CHECK_EQ(order(BH_SIM_OP_BREAK, 0, many), EINVAL);
    CHECK(sim_end());
}

TEST(a_full_table_refuses_and_recovers)
{
    enum { ROOM = 24 };
    int fds[ROOM], n = 0, raws[ROOM], m = 0;
    sim_begin_with(ROOM);
    while (n < ROOM && (fds[n] = bh_sim_open("/dev/nvidiactl")) >= 0)
        n++;
    CHECK_EQ(errno, EMFILE);
    CHECK(n > 10 && n < ROOM);
    CHECK_EQ(sim_held().files, n);
    close(fds[--n]);
    CHECK((fds[n++] = bh_sim_open("/dev/nvidiactl")) >= 3);
    while (n > 0)
        close(fds[--n]);
    CHECK(sim_holds_nothing());
    /* The same with connections: ours and those of the silent ones. */
    const struct bh_sim_msg view = {.op = BH_SIM_OP_HELD};
    for (m = 0; m < ROOM; m++) {
        struct bh_sim_msg got = {0};
        raws[m] = sim_raw();
        got = raw_ask(raws[m], &view, sizeof(view));
        if (got.result == -EMFILE || got.result == -ENOTCONN)
            break;
    }
    CHECK(m > 10 && m < ROOM);
    CHECK(sim_holds_nothing()); /* who was in stays in */
    for (; m >= 0; m--)
        close(raws[m]);
    int again = sim_raw();
    CHECK_EQ(raw_ask(again, &view, sizeof(view)).result, 0);
    close(again);
    CHECK(sim_end());
}

TEST(a_journal_is_a_recording)
{
    struct bh_recording r;
    struct bh_err err;
    static char text[1 << 16];
    char path[100];
    sim_begin();
    CHECK_EQ(order(BH_SIM_OP_JOURNAL, 0, ""), EINVAL); /* there is none */
    CHECK_EQ(order(BH_SIM_OP_JOURNAL, 1, ""), 0);
    int fd = bh_sim_open("/dev/nvidiactl");
    CHECK(sim_set_up(fd, SIM_CLIENT));
    CHECK_EQ(order(BH_SIM_OP_JOURNAL, 0, ""), 0);
    (void)snprintf(path, sizeof(path), "%s/journal.rec", sim_folder);
    FILE *f = fopen(path, "r");
    CHECK(f);
    size_t n = fread(text, 1, sizeof(text), f);
    (void)fclose(f);
    CHECK_EQ(bh_recording_parse("journal.rec", text, n, &r, &err), BH_OK);
    size_t allocs = 0;
    for (size_t i = 0; i < r.calls.n; i++)
        allocs += r.calls.at[i].kind == BH_CALL_ALLOC;
    CHECK_EQ(allocs, 5);
    bh_recording_fini(&r);
    /* One that is under way when the node ends is dropped. */
    CHECK_EQ(order(BH_SIM_OP_JOURNAL, 1, ""), 0);
    CHECK(sim_set_up(fd, SIM_CLIENT + 1));
    close(fd);
    CHECK(sim_end());
}

/* ---- ends ---- */

TEST(stop_ends_it_and_everything_answers_enodev)
{
    uint64_t done;
    sim_begin();
    int fd = bh_sim_open("/dev/nvidiactl");
    CHECK_EQ(order(BH_SIM_OP_STOP, 0, ""), 0);
    CHECK_EQ(sim_wait_end(), 0);
    CHECK(bh_sim_fence(fd, 1, 1, &done) < 0);
    CHECK_EQ(errno, ENODEV);
    CHECK(bh_sim_open("/dev/nvidia0") < 0);
    CHECK_EQ(errno, ENODEV);
    CHECK(sim_raw() < 0);
    sim_begin_again(0);
    close(fd);
    CHECK(sim_end());
}

TEST(one_that_was_killed_is_replaced_under_the_same_name)
{
    uint64_t done;
    struct waiter w = {0};
    pthread_t t;
    sim_begin();
    w.fd = bh_sim_open("/dev/nvidiactl");
    CHECK(sim_set_up(w.fd, SIM_CLIENT));
    CHECK_EQ(bh_sim_doorbell(w.fd, SIM_CLIENT, SIM_CHAN, for_ever, &w.fence), 0);
    CHECK_EQ(pthread_create(&t, NULL, wait_main, &w), 0);
    struct timespec step = {.tv_nsec = 30000000};
    (void)nanosleep(&step, NULL);
    CHECK_EQ(kill(sim_pid, SIGKILL), 0);
    CHECK_EQ(sim_wait_end(), -1);
    (void)pthread_join(t, NULL);
    CHECK_EQ(w.rc, -1);
    CHECK_EQ(w.error, ENODEV);
    CHECK(bh_sim_fence(w.fd, SIM_CLIENT, SIM_CHAN, &done) < 0);
    CHECK_EQ(errno, ENODEV);
    char path[100];
    (void)snprintf(path, sizeof(path), "%s/sysroot/proc/%d", sim_folder, (int)getpid());
    CHECK_EQ(unlink(path), 0); /* whoever starts a node anew clears its tree */
    sim_begin_again(0);
    CHECK(bh_sim_fence(w.fd, SIM_CLIENT, SIM_CHAN, &done) < 0);
    CHECK_EQ(errno, ENODEV); /* a file of the one before */
    close(w.fd);
    int fd = bh_sim_open("/dev/nvidiactl");
    CHECK(fd >= 3 && sim_set_up(fd, SIM_CLIENT));
    close(fd);
    CHECK(sim_end());
}

TEST(a_path_too_long_for_a_socket_is_said)
{
    static struct bh_sim_node node;
    struct bh_err err;
    char longer[200];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    CHECK_EQ(bh_sim_node_make(&node, bh_sim_scenes[0].name, 1, &err), BH_OK);
    struct bh_sim_serve how = {.node = &node, .folder = longer};
    CHECK_EQ(bh_sim_serve(&how, &err), BH_INVALID);
    CHECK(strstr(err.msg, "BULKHEAD_SIM_HOME") != NULL);
    how.folder = "/nowhere/at/all";
    CHECK_EQ(bh_sim_serve(&how, &err), BH_SYSTEM);
}

TEST_MAIN
