/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_load.c - find the vendor's library, its calls, and go through the GPUs.
 *
 * A library that is missing, of another age than the kernel's driver or not allowed to answer gives one
 * sentence with what to do. A single GPU that does not answer is kept, marked, and the others are read.
 */
#include "base/str.h"
#include "base/sysfile.h"
#include "gpu/health.h"
#include "gpu/nvml.h"
#include "gpu/nvswitch.h"
#include "gpu/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "libnvidia-ml.so.1"
enum { NAMES_MAX = 3, DEVICES_MAX = 256, TEXT = 256 };

/* A call and its name lie at the same place in struct bh_nvml_api and struct bh_nvml_names. */
_Static_assert(sizeof(struct bh_nvml_api) == sizeof(struct bh_nvml_names), "a name for each call");
static const struct {
    size_t offset;
    const char *names[NAMES_MAX + 1];
} calls[] = {
#define NVML_CALL(field, params, ...) {offsetof(struct bh_nvml_api, field), {__VA_ARGS__}},
#include "gpu/nvml_calls.def"
#undef NVML_CALL
};

/* A status that has a meaning for people. */
const char *bh_nvml_why(struct bh_arena *a, int status)
{
    switch (status) {
    case NVML_UNINITIALIZED:
        return "the driver library says that it is not initialised";
    case NVML_INVALID_ARGUMENT:
        return "refused by the driver as a wrong argument";
    case NVML_NOT_SUPPORTED:
        return "not supported by this GPU";
    case NVML_NO_PERMISSION:
        return "not permitted; try as root";
    case NVML_NOT_FOUND:
    case NVML_NO_DATA:
        return "the driver has no value";
    case NVML_DRIVER_NOT_LOADED:
        return "the kernel driver is not loaded";
    case NVML_FUNCTION_NOT_FOUND:
    case NVML_ARGUMENT_VERSION:
        return "not supported by this driver";
    case NVML_GPU_IS_LOST:
        return "the GPU is lost";
    case NVML_RESET_REQUIRED:
        return "the GPU needs a reset";
    case NVML_IN_USE:
        return "in use";
    case NVML_INSUFFICIENT_RESOURCES:
        return "the GPU has no room left for it";
    default:
        return bh_arena_printf(a, "the driver answered with error %d", status);
    }
}

bool bh_nvml_lacks(int status)
{
    return status == NVML_NOT_SUPPORTED || status == NVML_INVALID_ARGUMENT || status == NVML_NOT_FOUND;
}

int bh_nvml_hear(const struct bh_nvml *n, int status)
{
    n->heard->lost |= status == NVML_GPU_IS_LOST;
    return status;
}

struct bh_reading bh_nvml_reading(struct bh_arena *a, int status, uint64_t v)
{
    if (status != NVML_OK)
        return (struct bh_reading){0, bh_nvml_why(a, status)};
    return (struct bh_reading){v, NULL};
}

const char *bh_nvml_text(struct bh_arena *a, int status, const char *buf, size_t size)
{
    return status == NVML_OK ? bh_gpu_text(a, buf, size) : NULL;
}

static int fail_start(int status, const char *path, struct bh_err *err)
{
    switch (status) {
    case NVML_DRIVER_NOT_LOADED:
        return bh_fail(
            err, BH_NOT_FOUND,
            "the NVIDIA kernel driver is not loaded; load it with: modprobe nvidia (%.200s is there)", path);
    case NVML_VERSION_MISMATCH:
        return bh_fail(
            err, BH_CONFLICT,
            "the NVIDIA library %.200s and the loaded kernel driver are of different versions; reload the "
            "driver or reboot after its update",
            path);
    case NVML_NO_PERMISSION:
        return bh_fail(err, BH_DENIED,
                       "no permission to ask the NVIDIA driver; run as a user who may open /dev/nvidiactl");
    case NVML_GPU_IS_LOST:
        return bh_fail(err, BH_SYSTEM, "the NVIDIA driver lost a GPU and answers no more; reboot the node");
    default:
        return bh_fail(err, BH_SYSTEM, "the NVIDIA driver library %.200s does not start: error %d", path,
                       status);
    }
}

static void find_calls(struct bh_nvml *n)
{
    for (size_t i = 0; i < BH_COUNT_OF(calls); i++) {
        const char *const *name = calls[i].names;
        void *at = NULL;
        for (; *name && !(at = dlsym(n->library, *name)); name++)
            ;
        memcpy((char *)&n->api + calls[i].offset, &at, sizeof(at));
        memcpy((char *)&n->names + calls[i].offset, at ? name : calls[i].names, sizeof(*name));
    }
    n->simulated = dlsym(n->library, "bulkhead_simulated") != NULL;
    bh_gpu_asking_simulated(n->simulated);
}

/* Nothing was loaded: the driver is not there, or what stands in its place is of no use. */
static int fail_load(const char *path, const char *why, struct bh_err *err)
{
    struct stat st;
    bool is_path = strchr(path, '/') != NULL, is_there = is_path && stat(path, &st) == 0;
    int rc;
    if (is_path ? !is_there && errno != EACCES
                : bh_str_starts(why, path) && strstr(why, strerror(ENOENT)) != NULL)
        rc = bh_fail(
            err, BH_NOT_FOUND,
            "no NVIDIA driver library on this machine: looked for %.200s; install the NVIDIA driver, or "
            "name the library in BULKHEAD_NVML",
            path);
    else if (is_path && access(path, R_OK) < 0 && errno == EACCES)
        rc = bh_fail(err, BH_DENIED, "the NVIDIA driver library %.200s may not be read", path);
    else
        rc = bh_fail(err, BH_SYSTEM,
                     "the NVIDIA driver library %.200s is there and cannot be loaded: %.120s; install the "
                     "driver again",
                     path,
                     bh_str_starts(why, path) ? why + strlen(path) + strspn(why + strlen(path), ": ") : why);
    return bh_gpu_expects_simulated() ? bh_gpu_fail_simulated(rc, err) : rc;
}

/* A path is looked at first: opening a pipe would wait for whoever writes into it. */
static void *load(const char *path, struct bh_err *err)
{
    struct stat st;
    if (strchr(path, '/') && stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        (void)fail_load(path, S_ISDIR(st.st_mode) ? "it is a folder" : "it is no file", err);
        return NULL;
    }
    bh_gpu_asking("dlopen");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        (void)fail_load(path, why ? why : "no reason was given", err);
    }
    return library;
}

static void unload(struct bh_nvml *n)
{
    (void)dlclose(n->library);
    free(n->path);
    free(n->heard);
    free(n);
}

void bh_nvml_close(struct bh_nvml *n)
{
    bh_gpu_asking_of(BH_NO_ID);
    (void)BH_NVML_CALL(n, shutdown, );
    unload(n);
}

int bh_nvml_open(struct bh_nvml **ret, struct bh_err *err)
{
    const char *named = secure_getenv("BULKHEAD_NVML"), *path = named && *named ? named : LIBRARY;
    struct bh_err why = {0};
    void *library = load(path, &why);
    if (!library)
        return bh_fail(err, why.code, "%s", why.msg);
    struct bh_nvml *n = bh_alloc(1, sizeof(*n));
    n->library = library;
    n->path = bh_alloc(strlen(path) + 1, 1); /* the environment may change meanwhile */
    memcpy(n->path, path, strlen(path) + 1);
    n->heard = bh_alloc(1, sizeof(*n->heard));
    find_calls(n);
    int status = NVML_OK, rc = BH_OK;
    if (!n->api.init || !n->api.count || !n->api.handle)
        rc = bh_fail(err, BH_NOT_FOUND,
                     "%.200s is no NVIDIA driver library that can be used: it cannot list GPUs", path);
    else if ((status = BH_NVML_CALL(n, init, )) != NVML_OK)
        rc = fail_start(status, path, err);
    if (rc == BH_OK) {
        *ret = n;
        return BH_OK;
    }
    if (n->simulated)
        rc = bh_gpu_fail_simulated(rc, err);
    unload(n);
    return rc;
}

static int open_library(void **ret_self, struct bh_err *err)
{
    struct bh_nvml *n = NULL;
    int rc = bh_nvml_open(&n, err);
    *ret_self = n;
    return rc;
}

static void close_library(void *self)
{
    bh_nvml_close(self);
}

static void read_system(const struct bh_nvml *n, struct bh_gpu_snapshot *s)
{
    struct bh_arena *a = &s->arena;
    struct nvml_cc_state cc;
    struct bh_nvml_room room;
    char text[TEXT] = {0};
    int cuda = 0, status = BH_NVML_CALL(n, driver_version, text, 80);
    s->driver = bh_nvml_text(a, status, text, sizeof(text));
    memset(text, 0, sizeof(text));
    status = BH_NVML_CALL(n, nvml_version, text, 80);
    s->nvml = bh_nvml_text(a, status, text, sizeof(text));
    if (BH_NVML_CALL(n, cuda_version, &cuda) == NVML_OK && cuda > 0)
        s->cuda = bh_arena_printf(a, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    status = BH_NVML_CALL(n, cc_state, bh_nvml_room_fill(&room));
    status = bh_nvml_room_take(n, n->names.cc_state, status, &room, &cc, sizeof(cc), sizeof(cc));
    s->cc_environment = bh_nvml_reading(a, status, cc.environment);
    s->cc_feature = bh_nvml_reading(a, status, cc.cc_feature);
    s->cc_devtools = bh_nvml_reading(a, status, cc.dev_tools);
}

/* A dead GPU keeps its line and what it is; every reading says why it is missing, and what it held is unknown. */
static int mark_dead(struct bh_gpu_snapshot *s, struct bh_gpu_device *d, nvml_device_t *handle, int status)
{
    const char *why = bh_nvml_why(&s->arena, status);
    *handle = NULL;
    bh_gpu_mark_dead(d, why);
    d->instances.n = d->processes.n = d->up.n = 0;
    d->fabric_health = d->fabric_error = 0;
    d->trouble = status == NVML_GPU_IS_LOST
                     ? "lost: it fell off the bus; drain the node, then reset the GPU or reboot"
                 : status == NVML_NO_PERMISSION
                     ? "no permission to open it; run as a user who may open its /dev/nvidia node"
                     : bh_arena_printf(&s->arena, "does not answer: %s", why);
    return status;
}

static void read_state(const struct bh_nvml *n, nvml_device_t h, struct bh_gpu_snapshot *s,
                       struct bh_gpu_device *d)
{
    bh_nvml_read_device(n, h, s, d);
    bh_nvml_read_memory(n, h, &s->arena, d);
    bh_nvml_read_mig(n, h, s, d);
    bh_nvml_read_links(n, h, s->depth <= BH_GPU_FLEET, &s->arena, d);
    bh_nvml_read_processes(n, h, &s->arena, d);
    d->isolation = (struct bh_reading){0, "NVIDIA's driver has no such setting"};
    d->trouble = n->heard->lost ? NULL : bh_gpu_trouble(&s->arena, d);
}

static void read_users(const struct bh_nvml *n, nvml_device_t h, struct bh_gpu_snapshot *s,
                       struct bh_gpu_device *d)
{
    bh_gpu_mark_dead(d, "it was not asked");
    d->alive = true;
    d->processes_seen = (struct bh_reading){0};
    bh_nvml_read_users(n, h, &s->arena, d);
}

/* Adds GPU `index`; the status of its handle. */
static int read_one(const struct bh_nvml *n, uint32_t index, nvml_device_t *ret, struct bh_gpu_snapshot *s)
{
    struct bh_gpu_device *d = bh_vec_push(&s->devices);
    char uuid[TEXT] = {0};
    *d = (struct bh_gpu_device){.index = index, .alive = true, .minor = -1, .module_id = -1, .numa = -1};
    *ret = NULL;
    n->heard->lost = false;
    bh_gpu_asking_of(index);
    int status = BH_NVML_CALL(n, handle, index, ret);
    /* A lost GPU may still have a handle; the first question shows it. */
    if (status == NVML_OK && *ret) {
        int probe = BH_NVML_CALL(n, uuid, *ret, uuid, 96);
        if (probe == NVML_GPU_IS_LOST || probe == NVML_RESET_REQUIRED || probe == NVML_UNINITIALIZED)
            status = probe;
    }
    if (status == NVML_OK && !*ret)
        status = NVML_NOT_FOUND;
    if (status != NVML_OK)
        return mark_dead(s, d, ret, status);
    d->uuid = bh_nvml_text(&s->arena, NVML_OK, uuid, sizeof(uuid));
    if (s->depth == BH_GPU_USERS)
        read_users(n, *ret, s, d);
    else
        read_state(n, *ret, s, d);
    /* whichever call met it: what the others said is of before */
    return n->heard->lost ? mark_dead(s, d, ret, NVML_GPU_IS_LOST) : NVML_OK;
}

static int take_gpus(const struct bh_nvml *n, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    nvml_device_t handles[DEVICES_MAX] = {0};
    unsigned count = 0;
    int rc, status = BH_NVML_CALL(n, count, &count);
    if (status != NVML_OK)
        return fail_start(status, n->path, err);
    s->simulated = n->simulated;
    s->library = bh_arena_str(&s->arena, n->path);
    if (count > DEVICES_MAX) {
        bh_gpu_note(s, "the driver counts %u GPUs, which cannot be; the first %d are asked for", count,
                    DEVICES_MAX);
        count = DEVICES_MAX;
    }
    read_system(n, s);
    for (unsigned i = 0; i < count; i++) {
        /* A count that lies: there is no such GPU, so there is none to be dead. */
        if (read_one(n, i, &handles[i], s) == NVML_INVALID_ARGUMENT) {
            bh_gpu_note(s, "the driver counts %u GPUs and knows %u", count, i);
            s->devices.n--;
            break;
        }
        /* Nothing more is asked of a library that writes where it should not. */
        rc = bh_nvml_fits(n, err);
        if (rc < 0)
            return rc;
    }
    bh_gpu_asking_of(BH_NO_ID);
    if (s->depth == BH_GPU_ALL)
        bh_nvml_read_paths(n, handles, s);
    else if (s->depth == BH_GPU_FLEET)
        bh_nvml_read_domains(n, handles, s);
    return bh_nvml_fits(n, err);
}

static int take(void *self, struct bh_gpu_snapshot *s, struct bh_err *err)
{
    const struct bh_nvml *n = self;
    int rc = take_gpus(n, s, err);
    if (rc == BH_OK && s->depth != BH_GPU_USERS)
        bh_nvswitch_read(s);
    return rc < 0 && n->simulated ? bh_gpu_fail_simulated(rc, err) : rc;
}

const struct bh_gpu_backend bh_gpu_nvml = {open_library, take, close_library, BH_GPU_ALL};
