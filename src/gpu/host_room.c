/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/host_room.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sysfile.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

enum { FILE_MAX = 64 * 1024, NUMBER = 24, PATH = 512 };

/* The number that follows a key at the start of a line. */
static bool number_after(const char *text, const char *key, uint64_t *ret)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        char digits[NUMBER];
        line += *line == '\n';
        if (!bh_str_starts(line, key))
            continue;
        const char *at = line + strlen(key);
        at += strspn(at, " \t");
        const size_t n = strspn(at, "0123456789");
        if (n == 0 || n >= sizeof(digits))
            return false;
        (void)snprintf(digits, sizeof(digits), "%.*s", (int)n, at);
        return bh_uint_parse(digits, UINT64_MAX, ret, NULL) == 0;
    }
    return false;
}

bool bh_host_available(uint64_t *ret_bytes)
{
    BH_AUTOFREE char *text = NULL;
    uint64_t kib;
    if (bh_sysfile_read("/proc/meminfo", FILE_MAX, &text, NULL, NULL) < 0 ||
        !number_after(text, "MemAvailable:", &kib) || kib > UINT64_MAX / 1024)
        return false;
    *ret_bytes = kib * 1024;
    return true;
}

static bool number_of(const char *group, const char *name, uint64_t *ret)
{
    char path[PATH], line[NUMBER];
    (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, name);
    return bh_sysfile_line(path, line, sizeof(line), NULL) == 0 &&
           bh_uint_parse(line, UINT64_MAX, ret, NULL) == 0;
}

/* `max` is no number, so that a group without a limit has none here. */
static bool room_of(const char *group, uint64_t *ret)
{
    BH_AUTOFREE char *stat = NULL;
    char path[PATH];
    uint64_t limit, used, cache = 0;
    if (!number_of(group, "memory.max", &limit) || !number_of(group, "memory.current", &used))
        return false;
    (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.stat", group);
    if (bh_sysfile_read(path, FILE_MAX, &stat, NULL, NULL) == 0)
        (void)number_after(stat, "inactive_file", &cache);
    used -= cache < used ? cache : used;
    *ret = limit > used ? limit - used : 0;
    return true;
}

void bh_host_group_read(uint32_t pid, struct bh_host_group *ret)
{
    BH_AUTOFREE char *text = NULL;
    char path[sizeof(ret->path)];
    uint64_t room;
    *ret = (struct bh_host_group){.room = UINT64_MAX};
    (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/cgroup", pid);
    if (bh_sysfile_read(path, FILE_MAX, &text, NULL, NULL) < 0)
        return;
    const char *at = bh_str_starts(text, "0::") ? text : strstr(text, "\n0::");
    if (!at)
        return;
    at = strchr(at, '/');
    const size_t n = at ? strcspn(at, "\n") : 0;
    if (n == 0 || n >= sizeof(path))
        return;
    (void)snprintf(path, sizeof(path), "%.*s", (int)n, at);
    for (bool more = true; more;) {
        if (room_of(path, &room) && room < ret->room) {
            ret->room = room;
            (void)snprintf(ret->path, sizeof(ret->path), "%s", path);
        }
        char *slash = strrchr(path, '/');
        more = slash != NULL;
        if (slash)
            *slash = '\0';
    }
}
