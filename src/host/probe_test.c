/* SPDX-License-Identifier: Apache-2.0 */
/* Answers differ from machine to machine, their meaning does not. Our own filters stand for a container's. */
#include "host/probe.h"

#include "base/mem.h"
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct bh_probes here;

TEST(an_errno_is_read_as_absent_or_denied)
{
    CHECK_EQ(bh_probe_state_of(0), BH_PROBE_WORKS);
    CHECK_EQ(bh_probe_state_of(ENOSYS), BH_PROBE_ABSENT);
    CHECK_EQ(bh_probe_state_of(EINVAL), BH_PROBE_ABSENT);
    CHECK_EQ(bh_probe_state_of(EOPNOTSUPP), BH_PROBE_ABSENT);
    CHECK_EQ(bh_probe_state_of(EPERM), BH_PROBE_DENIED);
    CHECK_EQ(bh_probe_state_of(EACCES), BH_PROBE_DENIED);
    CHECK_EQ(bh_probe_state_of(EBUSY), BH_PROBE_FAILED);
}

static bool is_sound(const struct bh_probe *p)
{
    return p->state != BH_PROBE_SKIPPED && p->state == bh_probe_state_of(p->error) &&
           (p->state == BH_PROBE_WORKS || p->value == 0);
}

TEST(every_question_gets_an_answer_that_agrees_with_its_errno)
{
    bh_probes_run(&here);
    CHECK(!here.skipped);
    CHECK_EQ(here.is_root, geteuid() == 0);
    const struct bh_probe *const all[] = {&here.notify, &here.listen, &here.pidfd,    &here.vm_read,
                                          &here.memfd,  &here.userns, &here.landlock, &here.bpf_device};
    for (size_t i = 0; i < BH_COUNT_OF(all); i++)
        CHECK(is_sound(all[i]));
    CHECK(here.pidfd.state != BH_PROBE_WORKS || is_sound(&here.getfd));
    CHECK(here.listen.state != BH_PROBE_WORKS || here.getfd.state != BH_PROBE_WORKS || is_sound(&here.sync));
    CHECK(here.notify.state != BH_PROBE_WORKS || here.notify.value >= 80);
    CHECK(here.landlock.state != BH_PROBE_WORKS || here.landlock.value >= 1);
}

TEST(nothing_outlives_the_call)
{
    int nnp = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), before = dup(STDOUT_FILENO);
    CHECK(before >= 0);
    close(before);
    bh_probes_run(&here);
    int after = dup(STDOUT_FILENO);
    close(after);
    CHECK_EQ(after, before);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
    CHECK_EQ(errno, ECHILD);
    CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), nnp);
}

/* The probes' system calls fail with `error`; all others pass. */
static int refuse(int error)
{
    static const int calls[] = {
        SYS_seccomp, SYS_pidfd_open, SYS_process_vm_readv, SYS_memfd_create, SYS_landlock_create_ruleset,
        SYS_bpf,     SYS_unshare};
    struct sock_filter f[2 * BH_COUNT_OF(calls) + 2];
    size_t n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < BH_COUNT_OF(calls); i++) {
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* The probes as a process behind such a filter sees them; false: no filter can be installed here. */
static bool behind_filter(int error, struct bh_probes *ret)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        struct bh_probes p;
        if (refuse(error) < 0)
            _exit(1);
        bh_probes_run(&p);
        _exit(write(ends[1], &p, sizeof(p)) != (ssize_t)sizeof(p));
    }
    close(ends[1]);
    ssize_t n = read(ends[0], ret, sizeof(*ret));
    close(ends[0]);
    (void)waitpid(child, NULL, 0);
    return n == (ssize_t)sizeof(*ret);
}

static void check_filtered(int error, enum bh_probe_state want)
{
    struct bh_probes p;
    if (!behind_filter(error, &p)) {
        /* a machine that lets no filter be installed says so itself */
        CHECK(here.listen.state != BH_PROBE_WORKS);
        return;
    }
    CHECK(p.is_filtered);
    const struct bh_probe *const all[] = {&p.notify, &p.listen, &p.pidfd,    &p.vm_read,
                                          &p.memfd,  &p.userns, &p.landlock, &p.bpf_device};
    for (size_t i = 0; i < BH_COUNT_OF(all); i++) {
        CHECK_EQ(all[i]->state, want);
        CHECK_EQ(all[i]->error, error);
    }
    CHECK_EQ(p.getfd.state, BH_PROBE_SKIPPED);
    CHECK_EQ(p.sync.state, BH_PROBE_SKIPPED);
}

TEST(a_filter_that_denies_is_not_taken_for_a_kernel_without_it)
{
    check_filtered(EPERM, BH_PROBE_DENIED);
}

TEST(a_filter_that_hides_them_looks_like_an_old_kernel)
{
    check_filtered(ENOSYS, BH_PROBE_ABSENT);
}

TEST_MAIN
