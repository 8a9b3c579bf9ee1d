/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_nvidia.c - NVIDIA's kernel driver.
 *
 * Which file a descriptor is says its device number, not its name: a tenant may have made the node itself.
 */
#include "warden/driver.h"

#include "base/str.h"
#include "base/sysfile.h"
#include "base/units.h"
#include "warden/driver_rm.h"
#include "warden/maps.h"
#include "warden/peek.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

enum { MAJOR = 195, MINOR_CTL = 255, MINOR_MODESET = 254, DEVICES_MAX = 64 << 10 };

/* Two majors are given out when the modules are loaded. 0: not known yet. */
static struct {
    unsigned uvm, caps;
} majors;

/* The number before ` name` at the end of a line, or 0. */
static unsigned major_of(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        const char *from = at;
        char digits[12] = {0};
        uint64_t major;
        if ((at[n] != '\n' && at[n] != '\0') || at == text || at[-1] != ' ')
            continue;
        while (from > text && from[-1] != '\n')
            from--;
        while (*from == ' ')
            from++;
        for (size_t i = 0; i + 1 < sizeof(digits) && bh_is_digit(from[i]); i++)
            digits[i] = from[i];
        if (bh_uint_parse(digits, UINT32_MAX, &major, NULL) == BH_OK)
            return (unsigned)major;
    }
    return 0;
}

static void find_majors(void)
{
    char *text;
    if (bh_sysfile_read("/proc/devices", DEVICES_MAX, &text, NULL, NULL) < 0)
        return;
    majors.uvm = major_of(text, "nvidia-uvm");
    majors.caps = major_of(text, "nvidia-caps");
    free(text);
}

static struct bh_driver_file which(const struct bh_peek *seen)
{
    struct bh_driver_file f = {.kind = BH_FILE_OTHER};
    const unsigned at = seen->dev_major, number = seen->dev_minor;
    if (!S_ISCHR(seen->mode))
        return f;
    if (at == MAJOR) {
        f.kind = number == MINOR_CTL ? BH_FILE_CTL : number == MINOR_MODESET ? BH_FILE_MODESET : BH_FILE_GPU;
        f.gpu = f.kind == BH_FILE_GPU ? number : 0;
        return f;
    }
    if (majors.uvm == 0)
        find_majors();
    if (majors.uvm && at == majors.uvm)
        f.kind = number == 0 ? BH_FILE_UVM : BH_FILE_UVM_TOOLS;
    else if (majors.caps && at == majors.caps)
        f.kind = BH_FILE_CAP;
    return f;
}

static bool may_be(const struct bh_peek *seen)
{
    return which(seen).kind != BH_FILE_OTHER;
}

static struct bh_driver_file identify(int fd)
{
    struct bh_peek seen;
    bh_peek_own(fd, &seen);
    return which(&seen);
}

static int issue(int fd, uint32_t cmd, void *arg)
{
    return ioctl(fd, cmd, arg);
}

static int open_file(const char *path)
{
    return open(path, O_RDWR | O_CLOEXEC);
}

static int open_counter(void **ret_self, size_t *ret_gpus, struct bh_err *err)
{
    static const struct bh_driver_files files = {.open = open_file, .ioctl = issue};
    return bh_driver_rm_open(&files, ret_self, ret_gpus, err);
}

static int64_t mapped(uint32_t pid, const int *files, size_t n)
{
    enum { MOST = 16 }; /* one file for each time a process set up the driver; more have the same inode */
    struct stat at[MOST];
    size_t known = 0;
    for (size_t i = 0; i < n && known < MOST; i++)
        known += fstat(files[i], &at[known]) == 0;
    return bh_maps_bytes(pid, at, known, "/nvidia-uvm");
}

/* `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build`: the first word with digits and
 * two dots. */
static bool version_in(const char *line, char version[32])
{
    for (const char *at = line; *at; at++) {
        size_t n = 0, dots = 0;
        if (!bh_is_digit(*at) || (at > line && at[-1] != ' '))
            continue;
        for (; bh_is_digit(at[n]) || at[n] == '.'; n++)
            dots += at[n] == '.';
        if (dots == 0 || n >= 32 || (at[n] != ' ' && at[n] != '\0'))
            continue;
        memcpy(version, at, n);
        version[n] = '\0';
        return true;
    }
    return false;
}

static int check(char version[32], struct bh_err *err)
{
    char line[256];
    if (bh_sysfile_line("/sys/module/nvidia/version", version, 32, NULL) < 0 &&
        (bh_sysfile_line("/proc/driver/nvidia/version", line, sizeof(line), NULL) < 0 ||
         !version_in(line, version)))
        return bh_fail(
            err, BH_NOT_FOUND,
            "no NVIDIA driver is loaded (there is no /sys/module/nvidia/version), so there is nothing of a GPU to "
            "hold; load it, or start the command without bulkhead run");
    return bh_driver_rm_known(version, err);
}

const struct bh_driver bh_driver_nvidia = {
    .name = "NVIDIA",
    .may_be = may_be,
    .identify = identify,
    .ioctl = issue,
    .count = bh_driver_rm_count,
    .counts = bh_driver_rm_counts,
    .hold = bh_driver_rm_hold,
    .let_go = bh_driver_rm_let_go,
    .held = bh_driver_rm_held,
    .client = bh_driver_rm_client,
    .set_running = bh_driver_rm_set_running,
    .watch_busy = bh_driver_rm_watch_busy,
    .busy = bh_driver_rm_busy,
    .ask_seldom = bh_driver_rm_ask_seldom,
    .unused = bh_driver_rm_unused,
    .mapped = mapped,
    .maps_in_mmap = true,
    .open = open_counter,
    .close = bh_driver_rm_close,
    .check = check,
};

const struct bh_driver *bh_driver_here(void)
{
    const char *sim = secure_getenv("BULKHEAD_SIM");
    return sim && *sim ? &bh_driver_simulated : &bh_driver_nvidia;
}
