/* SPDX-License-Identifier: Apache-2.0 */
/* who.c - what the kernel says of a process, and the rule. */
#include "node/who.h"

#include "base/str.h"
#include "base/units.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 8192, BEGAN_FIELD = 19 /* of stat, counted from 0 behind the name */ };

static bool slurp(const char *proc, uint32_t pid, const char *file, char text[TEXT_MAX])
{
    char path[512];
    size_t n = 0;
    (void)snprintf(path, sizeof(path), "%.400s/%u/%s", proc, pid, file);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; fd >= 0 && got > 0 && n < TEXT_MAX - 1; n += (size_t)got)
        if ((got = read(fd, text + n, TEXT_MAX - 1 - n)) <= 0)
            break;
    if (fd >= 0)
        close(fd);
    text[n] = '\0';
    return n > 0;
}

/* The number that begins here; *ret_end: what follows it. False: none does. */
static bool number(const char *at, uint64_t *ret, const char **ret_end)
{
    char digits[24];
    const size_t n = strspn(at, "0123456789");
    *ret_end = at + n;
    if (n == 0 || n >= sizeof(digits))
        return false;
    (void)snprintf(digits, sizeof(digits), "%.*s", (int)n, at);
    return bh_uint_parse(digits, UINT64_MAX, ret, NULL) == 0;
}

/* `4711 (a name) S 1 ...`: the name may hold anything. */
static bool read_stat(char *text, struct bh_who *ret)
{
    char *from = strchr(text, '('), *to = strrchr(text, ')');
    const char *at = to, *end;
    if (!from || !to || to < from)
        return false;
    (void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(to - from - 1), from + 1);
    for (int i = 0; at && i <= BEGAN_FIELD; i++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at && number(at, &ret->began, &end);
}

/* Real, effective, saved and of files: the owner of its folder is no sign, for it can hide itself and be root's there. */
static bool read_uids(const char *text, struct bh_who *ret)
{
    const char *at = strstr(text, "\nUid:");
    ret->root = at != NULL;
    if (!at)
        return false;
    at += strlen("\nUid:");
    for (int i = 0; i < 4; i++) {
        uint64_t uid;
        at += strspn(at, " \t");
        if (!number(at, &uid, &at))
            return false;
        if (i == 0)
            ret->uid = (uint32_t)uid;
        ret->root = ret->root && uid == 0;
    }
    return true;
}

/* Each line ends in a path of one hierarchy: `.../bulkhead/L17`, with something below it or not. */
static uint64_t of_group(const char *text, const char *cgroup, char kind)
{
    char part[160];
    uint64_t found;
    const char *end;
    const int n = snprintf(part, sizeof(part), "/%.120s/%c", cgroup, kind);
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        if (number(at + n, &found, &end) && (*end == '/' || *end == '\n' || *end == '\0'))
            return found;
    return 0;
}

static bool is_program_of_ours(const char *proc, uint32_t pid)
{
    char path[512], exe[512];
    (void)snprintf(path, sizeof(path), "%.400s/%u/exe", proc, pid);
    const ssize_t n = readlink(path, exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = '\0';
    const char *name = strrchr(exe, '/');
    return name && (bh_str_starts(name + 1, "bulkhead-") || bh_str_starts(name + 1, "bulkheadd"));
}

bool bh_who_read(const char *proc, uint32_t pid, const char *cgroup, struct bh_who *ret)
{
    char text[TEXT_MAX];
    *ret = (struct bh_who){0};
    if (!slurp(proc, pid, "stat", text) || !read_stat(text, ret) || !slurp(proc, pid, "status", text) ||
        !read_uids(text, ret))
        return false;
    if (slurp(proc, pid, "cgroup", text)) {
        ret->lease = of_group(text, cgroup, 'L');
        ret->server = of_group(text, cgroup, 'M');
    }
    ret->ours = ret->root && !ret->lease && is_program_of_ours(proc, pid);
    return true;
}

enum bh_who_act bh_who_judge(const struct bh_who_case *c)
{
    if (c->here || c->ours)
        return BH_WHO_FINE;
    if (!c->seen_before)
        return BH_WHO_WAIT;
    if (!c->reachable)
        return BH_WHO_LEAVE;
    if (c->of_lease)
        return BH_WHO_STOP;
    return c->root || (c->was_there && !c->given) ? BH_WHO_LEAVE : BH_WHO_STOP;
}
