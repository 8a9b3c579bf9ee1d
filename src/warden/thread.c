/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c - a tenant's thread from outside: its state, its processor time, the call it waits in. */
#include "warden/thread.h"

#include "warden/waits.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Of /proc/PID/stat, after the name in parentheses. */
    STATE_FIELD = 1,
    FLAGS_FIELD = 7,
    CPU_FIELD = 12, /* in user mode, and then in the kernel's */
    STARTED_FIELD = 20,
    UNIT_NS = 10000000, /* the kernel's unit of these two, cut off */
    EXITING_FLAG = 4    /* PF_EXITING */
};

/* NULL: it has none. */
static const char *field_of(const char *line, int field)
{
    /* The name may hold anything, a parenthesis too. */
    const char *at = strrchr(line, ')');
    for (int i = 0; at && i < field; i++)
        at = strchr(at + 1, ' ');
    return at ? at + 1 : NULL;
}

static uint64_t number_at(const char *at)
{
    uint64_t number = 0;
    for (; at && *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    return number;
}

enum stage { LIVES, ENDS, GONE };

/* ENDS: also one that has ended and is still waited for. */
static enum stage stage_of(uint32_t pid, const char *tid)
{
    char path[64], line[1024];
    (void)snprintf(path, sizeof(path), "/proc/%u/task/%.16s/stat", pid, tid);
    bh_waits_head(path, line, sizeof(line));
    const char *flags = field_of(line, FLAGS_FIELD);
    return !flags ? GONE : number_at(flags) & EXITING_FLAG ? ENDS : LIVES;
}

/* Mostly the first that is not the first one lives. All are looked at where it does not: behind those that a tenant lets wait for
 * their end another could map what nobody sees. */
uint32_t bh_thread_living(uint32_t pid)
{
    char path[32], first[16];
    uint32_t living = 0;
    (void)snprintf(first, sizeof(first), "%u", pid);
    if (stage_of(pid, first) != ENDS)
        return pid;
    (void)snprintf(path, sizeof(path), "/proc/%u/task", pid);
    DIR *tasks = opendir(path);
    for (const struct dirent *e; tasks && !living && (e = readdir(tasks));)
        if (e->d_name[0] != '.' && stage_of(pid, e->d_name) == LIVES)
            living = (uint32_t)number_at(e->d_name);
    if (tasks)
        (void)closedir(tasks);
    return living;
}

uint64_t bh_thread_started(uint32_t pid)
{
    char path[32], line[1024];
    (void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    bh_waits_head(path, line, sizeof(line));
    return number_at(field_of(line, STARTED_FIELD));
}

void bh_thread_look(uint32_t pid, uint32_t tid, struct bh_thread_seen *ret)
{
    char path[48], line[1024];
    (void)snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
    errno = 0;
    bh_waits_head(path, line, sizeof(line));
    const bool told = line[0] || errno == ENOENT || errno == ESRCH;
    const char *state = field_of(line, STATE_FIELD);
    *ret = (struct bh_thread_seen){.state = !told ? '?' : state && !strchr("ZXx", *state) ? *state : '\0'};
    const uint64_t user = number_at(field_of(line, CPU_FIELD));
    const uint64_t units = user + number_at(field_of(line, CPU_FIELD + 1));
    ret->user_ns = user * UNIT_NS;
    (void)snprintf(path, sizeof(path), "/proc/%u/task/%u/schedstat", pid, tid);
    bh_waits_head(path, line, sizeof(line));
    ret->cpu_ns = ret->most_ns = number_at(line);
    if (ret->cpu_ns == 0) { /* a kernel without it */
        ret->cpu_ns = units * UNIT_NS;
        ret->most_ns = (units + 2) * UNIT_NS; /* each of the two was cut off */
    }
}

enum bh_thread_in bh_thread_in(uint32_t pid, uint32_t tid, long call)
{
    char path[48], line[256];
    (void)snprintf(path, sizeof(path), "/proc/%u/task/%u/syscall", pid, tid);
    bh_waits_head(path, line, sizeof(line)); /* `running`, or a number: -1 for none */
    if (line[0] == '\0')
        return BH_THREAD_UNTOLD;
    const bool is_number = line[0] >= '0' && line[0] <= '9';
    return line[0] == '-' || (is_number && number_at(line) != (uint64_t)call) ? BH_THREAD_ELSEWHERE
                                                                              : BH_THREAD_MAY_BE_IN;
}
