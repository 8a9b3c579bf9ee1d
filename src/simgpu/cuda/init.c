/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init.c - the library comes up: which GPUs the process sees, and the recorded start on the first of them.
 *
 * After a fork the child has nothing of this, as with the vendor's library: every call answers that the library is
 * not initialised, and initialising it again does not help.
 */
#include "simgpu/cuda/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Whoever shows what this library says can tell that it is simulated. */
extern const int bulkhead_simulated;
const int bulkhead_simulated = 1;

/* From the recording, at build time. */
extern const char bh_cu_recording_text[];
extern const size_t bh_cu_recording_size;

struct bh_cu cu = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static struct bh_recording recording;
static bool parsed;

const struct bh_recording *bh_cu_recording(void)
{
    return &recording;
}

/*
 * Where the first context begins in `start`: a second one begins with the same call, and the last such call before
 * the first video memory is it.
 */
static size_t context_begins(size_t first, size_t n, size_t second)
{
    size_t at = first;
    for (size_t i = first; i < first + n; i++) {
        const struct bh_call *c = &recording.calls.at[i];
        if (c->kind == BH_CALL_ALLOC && c->what == RM_CLASS_MEMORY_LOCAL)
            break;
        if (c->kind == BH_CALL_CONTROL && c->what == recording.calls.at[second].what)
            at = i;
    }
    return at;
}

int bh_cu_stretch(enum bh_cu_stretch stretch, size_t *ret_first, size_t *ret_n)
{
    static const char *const marks[] = {
        [BH_CU_STRETCH_PROCESS] = "start",
        [BH_CU_STRETCH_FIRST] = "start",
        [BH_CU_STRETCH_FIRST_END] = "end",
        [BH_CU_STRETCH_NEXT] = "second-context",
        [BH_CU_STRETCH_NEXT_END] = "second-context-end",
    };
    size_t first, n, second, n_second;
    if (!bh_recording_section(&recording, marks[stretch], &first, &n) || n == 0 ||
        !bh_recording_section(&recording, marks[BH_CU_STRETCH_NEXT], &second, &n_second) || n_second == 0)
        return CUDA_ERROR_UNKNOWN;
    const size_t cut = context_begins(first, n, second);
    *ret_first = stretch == BH_CU_STRETCH_FIRST ? cut : first;
    *ret_n = stretch == BH_CU_STRETCH_FIRST     ? first + n - cut
             : stretch == BH_CU_STRETCH_PROCESS ? cut - first
                                                : n;
    return CUDA_SUCCESS;
}

uint64_t bh_cu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void after_fork(void)
{
    cu.forked = cu.forked || cu.ready;
}

int bh_cu_enter(void)
{
    return cu.ready && !cu.forked ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

int bh_cu_device(CUdevice device, struct bh_cu_device **ret)
{
    int rc = bh_cu_enter();
    if (rc)
        return rc;
    if (device < 0 || (uint32_t)device >= cu.n_devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *ret = &cu.devices[device];
    return CUDA_SUCCESS;
}

int bh_cu_device_start(struct bh_cu_device *d)
{
    size_t first, n;
    int rc = CUDA_SUCCESS;
    pthread_mutex_lock(&d->lock);
    if (!d->started) {
        rc = bh_cu_stretch(BH_CU_STRETCH_PROCESS, &first, &n);
        rc = rc ? rc : bh_play_calls(&d->play, &recording, first, n);
        d->started = rc == CUDA_SUCCESS;
        if (rc) {
            struct bh_play again = {.gpu = d->play.gpu, .gi = d->gi, .ci = d->ci, .ampere = d->ampere};
            bh_play_fini(&d->play);
            memcpy(again.uuid, d->uuid, sizeof(again.uuid));
            d->play = again;
        }
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}

/* --- which GPUs --- */

static uint8_t hex(char c)
{
    return (uint8_t)(c >= '0' && c <= '9'   ? c - '0'
                     : c >= 'a' && c <= 'f' ? c - 'a' + 10
                     : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                            : 0);
}

/* The 16 bytes of `GPU-xxxxxxxx-xxxx-...` or `MIG-...`. */
void bh_cu_uuid(const char *text, uint8_t ret[16])
{
    const char *p = strchr(text, '-');
    for (size_t n = 0; p && *p && n < 32; p++)
        if (*p != '-') {
            ret[n / 2] = (uint8_t)(n % 2 ? ret[n / 2] << 4 | hex(*p) : hex(*p));
            n++;
        }
}

static void device_add(const struct bh_sim_gpu_view *v, const struct bh_sim_gi_view *gi,
                       const struct bh_sim_ci_view *ci)
{
    struct bh_cu_device *d = &cu.devices[cu.n_devices++];
    *d = (struct bh_cu_device){
        .gpu = v->index,
        .gi = gi ? gi->id : UINT32_MAX,
        .ci = ci ? ci->id : UINT32_MAX,
        .sm = v->sm,
        .sm_mhz = v->sm_mhz,
        .memory_mhz = v->memory_mhz,
        .ecc = v->ecc_on,
        .switch_group = v->switch_group,
        .links = v->links,
        .ampere = v->model[0] == 'A',
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    if (ci)
        snprintf(d->name, sizeof(d->name), "%s MIG %ug.%ugb", v->name, ci->slices,
                 (unsigned)((gi->total_bytes + BH_GIB / 2) / BH_GIB));
    else
        snprintf(d->name, sizeof(d->name), "%s", v->name);
    snprintf(d->pci, sizeof(d->pci), "%s", v->pci);
    bh_cu_uuid(ci ? ci->uuid : v->uuid, d->uuid);
    d->play = (struct bh_play){.gpu = v->minor, .gi = d->gi, .ci = d->ci, .ampere = d->ampere};
    bh_cu_uuid(v->uuid, d->play.uuid);
}

/* A GPU that this process may not open is not there. The only one is not tried: starting on it opens it anyway. */
static bool may_use(const struct bh_sim_gpu_view *v, uint32_t n)
{
    char path[32];
    if (v->lost || n == 1)
        return !v->lost;
    snprintf(path, sizeof(path), "/dev/nvidia%u", v->minor);
    int fd = bh_sim_open(path);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/*
 * One word of CUDA_VISIBLE_DEVICES, or NULL for whatever is there, on one GPU: an index, the start of a UUID, or a
 * MIG instance's UUID. In MIG mode a GPU stands for its first instance.
 */
static bool device_match(const struct bh_sim_gpu_view *v, const char *word)
{
    uint64_t index;
    const bool number = word && bh_uint_parse(word, BH_SIM_GPUS_MAX, &index, NULL) == 0;
    const bool gpu = !word || (number ? index == v->index
                                      : strncmp(word, "GPU-", 4) == 0 && strlen(word) > 4 &&
                                            strncmp(v->uuid, word, strlen(word)) == 0);
    if (!v->mig_on && gpu) {
        device_add(v, NULL, NULL);
        return true;
    }
    for (uint32_t g = 0; v->mig_on && g < v->n_gis; g++)
        for (uint32_t c = 0; c < v->gis[g].n_cis; c++)
            if (gpu || (word && strcmp(v->gis[g].cis[c].uuid, word) == 0)) {
                device_add(v, &v->gis[g], &v->gis[g].cis[c]);
                return true;
            }
    return false;
}

/* As the vendor's: the first word that names nothing ends the list, and so does a MIG instance. */
static void devices_find(uint32_t n, const struct bh_sim_gpu_view *views)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    bool found = true;
    for (uint32_t i = 0; !list && i < n && cu.n_devices < BH_SIM_GPUS_MAX; i++)
        if (may_use(&views[i], n) && device_match(&views[i], NULL) &&
            cu.devices[cu.n_devices - 1].gi != UINT32_MAX)
            break;
    while (list && *list && found && cu.n_devices < BH_SIM_GPUS_MAX) {
        char word[64];
        const size_t len = strcspn(list, ",");
        snprintf(word, sizeof(word), "%.*s", (int)len, list);
        list += len + (list[len] == ',');
        found = false;
        for (uint32_t i = 0; i < n && !found; i++)
            found = may_use(&views[i], n) && device_match(&views[i], word);
        if (found && cu.devices[cu.n_devices - 1].gi != UINT32_MAX)
            break;
    }
}

static int start(void)
{
    struct bh_sim_node_view node;
    if (!parsed && bh_recording_parse("the recording in libcuda", bh_cu_recording_text, bh_cu_recording_size,
                                      &recording, NULL) < 0)
        return CUDA_ERROR_UNKNOWN;
    parsed = true;
    if (bh_sim_hello(&node) < 0 || node.n_gpus == 0)
        return CUDA_ERROR_NO_DEVICE;
    BH_AUTOFREE struct bh_sim_gpu_view *views = bh_alloc(node.n_gpus, sizeof(*views));
    for (uint32_t i = 0; i < node.n_gpus; i++)
        if (bh_sim_view(i, &views[i]) < 0)
            views[i].lost = 1;
    if (!cu.devices)
        cu.devices = bh_alloc(BH_SIM_GPUS_MAX, sizeof(*cu.devices));
    cu.n_devices = 0;
    cu.cuda_version = node.cuda;
    devices_find(node.n_gpus, views);
    return cu.n_devices ? bh_cu_device_start(&cu.devices[0]) : CUDA_ERROR_NO_DEVICE;
}

int cuInit(unsigned flags)
{
    static bool watching;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (cu.forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&starting);
    int rc = cu.ready ? CUDA_SUCCESS : start();
    if (!watching && rc == CUDA_SUCCESS)
        watching = pthread_atfork(NULL, NULL, after_fork) == 0;
    const bool first = rc == CUDA_SUCCESS && !cu.ready;
    cu.ready = rc == CUDA_SUCCESS;
    if (first)
        bh_cu_keeper_start();
    pthread_mutex_unlock(&starting);
    return rc;
}

int cuDriverGetVersion(int *ret)
{
    struct bh_sim_node_view node;
    if (!ret)
        return CUDA_ERROR_INVALID_VALUE;
    if (cu.cuda_version == 0 && bh_sim_hello(&node) == 0)
        cu.cuda_version = node.cuda;
    *ret = cu.cuda_version ? (int)cu.cuda_version : BH_CU_DRIVER_VERSION;
    return CUDA_SUCCESS;
}

int cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags, int *ret_found)
{
    int found = CU_PROC_NOT_FOUND;
    (void)flags; /* the streams of a thread are the context's here */
    if (!name || !ret)
        return CUDA_ERROR_INVALID_VALUE;
    *ret = bh_cu_proc_find(name, version, &found);
    if (ret_found)
        *ret_found = found;
    return found == CU_PROC_FOUND || ret_found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

int cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, ret, version, flags, NULL);
}

int cuGetExportTable(const void **ret, const CUuuid *which)
{
    (void)ret;
    (void)which;
    return CUDA_ERROR_NOT_SUPPORTED;
}
