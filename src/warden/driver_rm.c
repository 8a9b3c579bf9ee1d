/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_rm.c - the driver's own count of video memory, over the resource manager's calls.
 *
 * The calls are those of the vendor's own tool (data/recordings, smi-memory), less what only it needs: a client, the
 * cards that were found, each attached and opened, a device and a subdevice on each, and then one control a question.
 */
#include "warden/driver_rm.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sysfile.h"
#include "base/units.h"
#include "gpu/abi/rm.h"
#include "warden/driver_busy.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum {
    FIRST_DEVICE = 0x0b000001, /* names of our own objects; the client's is given by the driver */
    FIRST_SUBDEVICE = 0x0b000101,
    FIRST_BUSY = 0x0b000201, /* BH_BUSY_NAMES for each GPU */
};
static const uint32_t no_card = UINT32_MAX;

struct counter {
    struct bh_driver_files files;
    int ctl;
    int cards[RM_CARDS]; /* open files, by number of the GPU; -1: there is none */
    uint32_t minors[RM_CARDS];
    uint32_t client;
    size_t n_gpus; /* the highest number, and one */
    struct rm_pid_info info;
    struct bh_busy *busy[RM_CARDS]; /* NULL: nobody watches */
};

int bh_rm_control(const struct bh_rm *rm, uint32_t object, uint32_t command, void *params, uint32_t n)
{
    struct rm_control a = {.client = rm->client,
                           .object = object,
                           .command = command,
                           .params = (uintptr_t)params,
                           .params_size = n};
    if (rm->files.ioctl(rm->ctl, RM_IOC(RM_CONTROL, sizeof(a)), &a) < 0)
        return -errno;
    return (int)a.status;
}

int bh_rm_alloc(const struct bh_rm *rm, uint32_t parent, uint32_t *object, uint32_t class, void *params)
{
    struct rm_alloc a = {.client = rm->client,
                         .parent = parent,
                         .object = *object,
                         .class = class,
                         .params = (uintptr_t)params};
    if (rm->files.ioctl(rm->ctl, RM_IOC(RM_ALLOC, sizeof(a)), &a) < 0)
        return -errno;
    *object = a.object;
    return (int)a.status;
}

static struct bh_rm rm_of(const struct counter *c)
{
    return (struct bh_rm){c->files, c->ctl, c->client};
}

static int control(const struct counter *c, uint32_t object, uint32_t command, void *params, uint32_t n)
{
    const struct bh_rm rm = rm_of(c);
    return bh_rm_control(&rm, object, command, params, n);
}

static int alloc(const struct counter *c, uint32_t parent, uint32_t *object, uint32_t class, void *params)
{
    const struct bh_rm rm = rm_of(c);
    return bh_rm_alloc(&rm, parent, object, class, params);
}

/* rc: a status, or a negative errno. */
static int failed(int rc, const char *what, struct bh_err *err)
{
    if (rc < 0)
        return bh_fail(err, BH_SYSTEM, "the driver's count of memory cannot be read: %s: %s", what,
                       strerror(-rc));
    return bh_fail(err, BH_SYSTEM, "the driver's count of memory cannot be read: %s: status 0x%x", what,
                   (unsigned)rc);
}

static int open_card(struct counter *c, uint32_t gpu, uint32_t minor, struct bh_err *err)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
    c->minors[gpu] = minor;
    c->cards[gpu] = c->files.open(path);
    if (c->cards[gpu] < 0 && errno == EIO)
        return BH_OK; /* a card that is lost: nobody can open it, so nobody has anything there */
    if (c->cards[gpu] < 0 ||
        c->files.ioctl(c->cards[gpu], RM_IOC(RM_REGISTER_FD, sizeof(c->ctl)), &c->ctl) < 0)
        return failed(-errno, path, err);
    return BH_OK;
}

static int add_gpu(struct counter *c, uint32_t id, uint32_t minor, struct bh_err *err)
{
    struct rm_id_info info = {.id = id};
    struct rm_attach_ids attach;
    struct rm_device_params device = {0};
    uint32_t number = 0;
    int rc = control(c, c->client, RM_CTRL_ID_INFO, &info, sizeof(info));
    if (rc != RM_OK)
        return failed(rc, "which number a card has", err);
    if (info.device >= RM_CARDS || c->cards[info.device] >= 0)
        return failed(RM_INVALID_DEVICE, "a card's number", err);
    rc = open_card(c, info.device, minor, err);
    if (rc < 0 || c->cards[info.device] < 0)
        return rc;
    memset(&attach, 0xff, sizeof(attach));
    attach.ids[0] = id;
    rc = control(c, c->client, RM_CTRL_ATTACH_IDS, &attach, sizeof(attach));
    if (rc != RM_OK)
        return failed(rc, "attaching a card", err);
    uint32_t object = FIRST_DEVICE + info.device, below = FIRST_SUBDEVICE + info.device;
    device.device = info.device;
    rc = alloc(c, c->client, &object, RM_CLASS_DEVICE, &device);
    if (rc == RM_OK)
        rc = alloc(c, object, &below, RM_CLASS_SUBDEVICE, &number);
    if (rc != RM_OK)
        return failed(rc, "a device of our own", err);
    if (c->n_gpus <= info.device)
        c->n_gpus = info.device + 1;
    return BH_OK;
}

static int add_gpus(struct counter *c, struct bh_err *err)
{
    struct rm_card cards[RM_CARDS];
    struct rm_probed_ids probed;
    memset(cards, 0, sizeof(cards));
    memset(&probed, 0xff, sizeof(probed));
    if (c->files.ioctl(c->ctl, RM_IOC(RM_CARD_INFO, sizeof(cards)), cards) < 0)
        return failed(-errno, "which cards there are", err);
    int rc = control(c, c->client, RM_CTRL_PROBED_IDS, &probed, sizeof(probed));
    if (rc != RM_OK)
        return failed(rc, "which cards were found", err);
    rc = BH_OK;
    for (size_t i = 0; i < RM_CARDS && rc == BH_OK; i++)
        for (size_t k = 0; probed.ids[i] != no_card && k < RM_CARDS && rc == BH_OK; k++)
            if (cards[k].valid && cards[k].id == probed.ids[i])
                rc = add_gpu(c, probed.ids[i], cards[k].minor, err);
    if (rc == BH_OK && c->n_gpus == 0)
        rc = bh_fail(err, BH_NOT_FOUND,
                     "the driver is loaded and has no GPU; bulkhead doctor looks for the reason");
    return rc;
}

int bh_driver_rm_open(const struct bh_driver_files *files, void **ret_self, size_t *ret_gpus,
                      struct bh_err *err)
{
    struct counter *c = bh_alloc(1, sizeof(*c));
    c->files = *files;
    for (size_t i = 0; i < RM_CARDS; i++)
        c->cards[i] = -1;
    c->ctl = files->open("/dev/nvidiactl");
    int rc = c->ctl < 0 ? failed(-errno, "/dev/nvidiactl", err) : BH_OK;
    int status = rc == BH_OK ? alloc(c, 0, &c->client, RM_CLASS_CLIENT, NULL) : 0;
    if (status != RM_OK)
        rc = failed(status, "a client of our own", err);
    if (rc == BH_OK)
        rc = add_gpus(c, err);
    if (rc < 0) {
        bh_driver_rm_close(c);
        return rc;
    }
    *ret_self = c;
    *ret_gpus = c->n_gpus;
    return BH_OK;
}

void bh_driver_rm_close(void *self)
{
    struct counter *c = self;
    for (size_t i = 0; i < RM_CARDS; i++) {
        bh_busy_free(c->busy[i]);
        if (c->cards[i] >= 0)
            close(c->cards[i]);
    }
    if (c->ctl >= 0)
        close(c->ctl); /* frees the client and what is below it */
    free(c);
}

bool bh_driver_rm_counts(const void *self, uint32_t gpu)
{
    const struct counter *c = self;
    return gpu < c->n_gpus && c->cards[gpu] >= 0;
}

bool bh_driver_rm_names(const void *self, uint32_t gpu, struct bh_driver_rm_names *ret)
{
    const struct counter *c = self;
    if (!bh_driver_rm_counts(self, gpu))
        return false;
    *ret = (struct bh_driver_rm_names){c->ctl, c->client, FIRST_DEVICE + gpu};
    return true;
}

/* What up to a call's worth of processes have on one GPU. Memory of several of them counts with its owner. */
static int count_some(struct counter *c, uint32_t gpu, const uint32_t *pids, size_t n, uint64_t *bytes)
{
    memset(&c->info, 0, sizeof(c->info));
    c->info.count = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        c->info.at[i].pid = pids[i];
    int rc = control(c, FIRST_SUBDEVICE + gpu, RM_CTRL_GPU_GET_PID_INFO, &c->info, sizeof(c->info));
    if (rc != RM_OK)
        return rc;
    for (size_t i = 0; i < n; i++)
        if (c->info.at[i].result == RM_OK)
            *bytes += c->info.at[i].own + c->info.at[i].shared_owned;
    return RM_OK;
}

int bh_driver_rm_count(void *self, const uint32_t *pids, size_t n_pids, uint64_t *bytes, size_t n_gpus,
                       struct bh_err *err)
{
    struct counter *c = self;
    const size_t most = BH_COUNT_OF(c->info.at);
    for (uint32_t gpu = 0; gpu < n_gpus; gpu++) {
        bytes[gpu] = 0;
        for (size_t at = 0; gpu < c->n_gpus && c->cards[gpu] >= 0 && at < n_pids; at += most) {
            const size_t n = n_pids - at < most ? n_pids - at : most;
            int rc = count_some(c, gpu, pids + at, n, &bytes[gpu]);
            if (rc == RM_GPU_IS_LOST)
                break; /* with all that was on it */
            if (rc != RM_OK)
                return failed(rc, "what processes hold", err);
        }
    }
    return BH_OK;
}

/* ---- second names ---- */

/* Instances exist: their folders are beside this one. */
static bool is_partitioned(const struct counter *c, uint32_t gpu)
{
    char path[64], real[BH_SYSPATH_MAX];
    bool found = false;
    (void)snprintf(path, sizeof(path), "/proc/driver/nvidia/capabilities/gpu%u/mig", c->minors[gpu]);
    DIR *d = bh_syspath(real, path) ? opendir(real) : NULL;
    for (const struct dirent *e; d && !found && (e = readdir(d));)
        found = bh_str_starts(e->d_name, "gi");
    if (d)
        (void)closedir(d);
    return found;
}

uint32_t bh_driver_rm_hold(void *self, uint32_t gpu, uint32_t name, uint32_t client, uint32_t object)
{
    struct counter *c = self;
    struct rm_dup d = {.client = c->client,
                       .parent = FIRST_DEVICE + gpu,
                       .object = name,
                       .source_client = client,
                       .source_object = object};
    if (!bh_driver_rm_counts(self, gpu))
        return RM_INVALID_DEVICE;
    if (c->files.ioctl(c->ctl, RM_IOC(RM_DUP_OBJECT, sizeof(d)), &d) < 0)
        return RM_INVALID_STATE;
    return d.status == RM_INSUFFICIENT_PERMISSIONS && is_partitioned(c, gpu) ? RM_NOT_SUPPORTED : d.status;
}

uint32_t bh_driver_rm_let_go(void *self, uint32_t name)
{
    struct counter *c = self;
    struct rm_free f = {.client = c->client, .object = name};
    return c->files.ioctl(c->ctl, RM_IOC(RM_FREE, sizeof(f)), &f) < 0 ? RM_INVALID_STATE : f.status;
}

int bh_driver_rm_held(void *self, uint32_t gpu, struct bh_driver_held *ret)
{
    struct counter *c = self;
    c->info.count = 1;
    memset(&c->info.at[0], 0, sizeof(c->info.at[0]));
    c->info.at[0].pid = (uint32_t)getpid();
    if (control(c, FIRST_SUBDEVICE + gpu, RM_CTRL_GPU_GET_PID_INFO, &c->info, sizeof(c->info)) != RM_OK ||
        c->info.at[0].result != RM_OK)
        return BH_SYSTEM;
    ret->alone = c->info.at[0].own;
    ret->shared = c->info.at[0].shared_owned + c->info.at[0].shared_duped;
    return BH_OK;
}

uint32_t bh_driver_rm_client(const void *self)
{
    const struct counter *c = self;
    return c->client;
}

/* ---- who runs when ---- */

static bool is_gone(int rc)
{
    return rc == RM_INVALID_CHANNEL || rc == RM_INVALID_CLIENT || rc == RM_INVALID_OBJECT ||
           rc == RM_INVALID_OBJECT_HANDLE || rc == RM_OBJECT_NOT_FOUND;
}

/* Up to a call's worth. The card's own way of stopping: scheduling alone does not stop what runs already. */
static int set_some(const struct counter *c, uint32_t gpu, const struct bh_driver_channel *at, size_t n,
                    bool running)
{
    struct rm_disable_channels d = {.disable = !running, .count = (uint32_t)n};
    for (size_t i = 0; i < n; i++) {
        d.clients[i] = at[i].client;
        d.channels[i] = at[i].channel;
    }
    return control(c, FIRST_SUBDEVICE + gpu, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d));
}

int bh_driver_rm_set_running(void *self, uint32_t gpu, const struct bh_driver_channel *at, size_t n,
                             bool running)
{
    const size_t most = BH_COUNT_OF(((struct rm_disable_channels *)NULL)->channels);
    int worst = RM_OK;
    if (!bh_driver_rm_counts(self, gpu))
        return RM_INVALID_DEVICE;
    for (size_t from = 0; from < n; from += most) {
        const size_t some = n - from < most ? n - from : most;
        int rc = set_some(self, gpu, at + from, some, running);
        if (rc < 0 || rc == RM_GPU_IS_LOST)
            return rc;
        if (rc == RM_OK)
            continue;
        /* One name that is gone fails all in a call, so the others are told each by itself. */
        for (size_t i = 0; i < some; i++) {
            rc = set_some(self, gpu, at + from + i, 1, running);
            if (rc != RM_OK && !is_gone(rc))
                worst = rc;
        }
    }
    return worst;
}

int bh_driver_rm_watch_busy(void *self, uint32_t gpu, struct bh_err *err)
{
    struct counter *c = self;
    if (!bh_driver_rm_counts(self, gpu))
        return bh_fail(err, BH_NOT_FOUND, "there is no GPU %u", gpu);
    if (c->busy[gpu]) { /* and nobody may have looked for long */
        uint64_t now_ns;
        (void)bh_busy_read(c->busy[gpu], NULL, 0, &now_ns);
        return BH_OK;
    }
    if (is_partitioned(c, gpu))
        return bh_fail(
            err, BH_REFUSED,
            "GPU %u is cut into instances, which have the card at the same time, so turns on it say "
            "nothing",
            gpu);
    const struct bh_rm rm = rm_of(c);
    return bh_busy_new(&rm, FIRST_SUBDEVICE + gpu, FIRST_BUSY + gpu * BH_BUSY_NAMES, &c->busy[gpu], err);
}

size_t bh_driver_rm_busy(void *self, uint32_t gpu, struct bh_driver_busy *ret, size_t max,
                         uint64_t *ret_now_ns)
{
    struct counter *c = self;
    return gpu < RM_CARDS && c->busy[gpu] ? bh_busy_read(c->busy[gpu], ret, max, ret_now_ns) : 0;
}

void bh_driver_rm_ask_seldom(void *self, uint32_t gpu, bool seldom)
{
    struct counter *c = self;
    if (gpu < RM_CARDS && c->busy[gpu])
        bh_busy_ask_seldom(c->busy[gpu], seldom);
}

uint32_t bh_driver_rm_unused(void *self, uint32_t gpu)
{
    const struct counter *c = self;
    return gpu < RM_CARDS && c->busy[gpu] ? bh_busy_unused(c->busy[gpu]) : 0;
}

int bh_driver_rm_known(const char *version, struct bh_err *err)
{
    static const struct {
        uint32_t branch;
        const char *recorded;
    } branches[] = {
#define BRANCH(number, recorded) {number, recorded},
#include "warden/driver_branch.def"
#undef BRANCH
    };
    char head[8] = {0};
    uint64_t branch;
    size_t n = 0;
    while (n < sizeof(head) - 1 && bh_is_digit(version[n])) {
        head[n] = version[n];
        n++;
    }
    if (bh_uint_parse(head, UINT32_MAX, &branch, NULL) == BH_OK)
        for (size_t i = 0; i < BH_COUNT_OF(branches); i++)
            if (branches[i].branch == branch)
                return BH_OK;
    return bh_fail(
        err, BH_REFUSED,
        "the calls of driver %.31s are not known (known: branch %u, recorded from %s), so no memory cap can "
        "be held here; whole GPUs and MIG instances work without it",
        version, branches[0].branch, branches[0].recorded);
}
