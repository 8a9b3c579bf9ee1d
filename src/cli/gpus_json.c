/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/gpus_json.h"

#include "base/json.h"
#include "gpu/health.h"

struct named {
    const char *key;
    struct bh_reading r;
    bool is_bool;
};

/* The values, then under `unknown` why some are missing. */
static void readings(struct bh_json *j, const struct named *at, size_t n)
{
    size_t missing = 0;
    for (size_t i = 0; i < n; i++) {
        missing += at[i].r.why != NULL;
        if (at[i].r.why)
            bh_json_key_str(j, at[i].key, NULL);
        else if (at[i].is_bool)
            bh_json_key_bool(j, at[i].key, at[i].r.v != 0);
        else
            bh_json_key_u64(j, at[i].key, at[i].r.v);
    }
    if (!missing)
        return;
    bh_json_key(j, "unknown");
    bh_json_open(j, '{');
    for (size_t i = 0; i < n; i++)
        if (at[i].r.why)
            bh_json_key_str(j, at[i].key, at[i].r.why);
    bh_json_close(j, '}');
}

static void id(struct bh_json *j, const char *key, int64_t v)
{
    if (v < 0)
        bh_json_key_str(j, key, NULL);
    else
        bh_json_key_u64(j, key, (uint64_t)v);
}

static int64_t id_of(uint32_t v)
{
    return v == BH_NO_ID ? -1 : (int64_t)v;
}

static void write_instance(struct bh_json *j, const struct bh_gpu_instance *i)
{
    const struct named table[] = {
        {"start", i->start, false},
        {"size", i->size, false},
        {"totalBytes", i->total_bytes, false},
        {"usedBytes", i->used_bytes, false},
        {"multiprocessors", i->sm, false},
        {"profileId", i->gi_profile_id, false},
        {"giCapability", i->gi_cap, false},
        {"ciCapability", i->ci_cap, false},
    };
    bh_json_open(j, '{');
    bh_json_key_str(j, "uuid", i->uuid);
    bh_json_key_str(j, "profile", i->profile);
    bh_json_key_u64(j, "gpuInstance", i->gi);
    id(j, "computeInstance", id_of(i->ci));
    readings(j, table, BH_COUNT_OF(table));
    bh_json_close(j, '}');
}

static void write_process(struct bh_json *j, const struct bh_gpu_process *p)
{
    bh_json_open_flat(j, '{');
    bh_json_key_u64(j, "pid", p->pid);
    bh_json_key_str(j, "kind", p->kind);
    bh_json_key_str(j, "name", p->name);
    bh_json_key_str(j, "user", p->user);
    id(j, "gpuInstance", id_of(p->gi));
    id(j, "computeInstance", id_of(p->ci));
    const struct named table[] = {{"memoryBytes", p->memory_bytes, false},
                                  {"smPercent", p->sm_percent, false},
                                  {"memoryPercent", p->memory_percent, false}};
    readings(j, table, BH_COUNT_OF(table));
    bh_json_close(j, '}');
}

static void write_link(struct bh_json *j, const struct bh_gpu_link *l)
{
    static const char *const words[] = {"gpu", "switch", "other"};
    bh_json_open_flat(j, '{');
    bh_json_key_u64(j, "link", l->link);
    bh_json_key_str(j, "remote", words[l->remote]);
    bh_json_key_str(j, "remotePci", l->remote_pci);
    bh_json_close(j, '}');
}

static void write_readings(struct bh_json *j, const struct bh_gpu_device *d)
{
    const struct named table[] = {
        {"totalBytes", d->total_bytes, false},
        {"usedBytes", d->used_bytes, false},
        {"freeBytes", d->free_bytes, false},
        {"reservedBytes", d->reserved_bytes, false},
        {"migEnabled", d->mig_mode, true},
        {"migPending", d->mig_pending, true},
        {"eccEnabled", d->ecc_mode, true},
        {"eccPending", d->ecc_pending, true},
        {"eccCorrected", d->ecc_corrected, false},
        {"eccUncorrected", d->ecc_uncorrected, false},
        {"eccUncorrectedSinceLoad", d->ecc_uncorrected_now, false},
        {"remappedRows", d->remapped_rows, false},
        {"remapPending", d->remap_pending, true},
        {"remapFailed", d->remap_failed, true},
        {"temperatureC", d->temperature_c, false},
        {"powerMilliwatt", d->power_mw, false},
        {"powerLimitMilliwatt", d->power_limit_mw, false},
        {"smMHz", d->sm_mhz, false},
        {"memoryMHz", d->memory_mhz, false},
        {"utilPercent", d->util_percent, false},
        {"memoryUtilPercent", d->memory_util_percent, false},
        {"throttleBits", d->throttle, false},
        {"linksUp", d->links, false},
        {"fabricState", d->fabric_state, false},
        {"isolationEnforced", d->isolation, true},
        {"isolationWipesMemory", {d->isolation.v == BH_ISOLATION_ON, d->isolation.why}, true},
        {"instanceCount", d->instances_seen, false},
        {"processCount", d->processes_seen, false},
    };
    readings(j, table, BH_COUNT_OF(table));
}

static void write_lists(struct bh_json *j, const struct bh_gpu_device *d)
{
    bh_json_key(j, "instances");
    bh_json_open(j, '[');
    for (size_t i = 0; i < d->instances.n; i++)
        write_instance(j, &d->instances.at[i]);
    bh_json_close(j, ']');
    bh_json_key(j, "processes");
    bh_json_open(j, '[');
    for (size_t i = 0; i < d->processes.n; i++)
        write_process(j, &d->processes.at[i]);
    bh_json_close(j, ']');
    bh_json_key(j, "links");
    bh_json_open(j, '[');
    for (size_t i = 0; i < d->up.n; i++)
        write_link(j, &d->up.at[i]);
    bh_json_close(j, ']');
}

static void write_device(struct bh_json *j, const struct bh_gpu_device *d)
{
    struct bh_buf slow;
    bh_buf_init(&slow, 512);
    bh_throttle_words(&slow, d->throttle.v);
    bh_json_open(j, '{');
    bh_json_key_u64(j, "index", d->index);
    bh_json_key_str(j, "vendor", d->vendor == BH_GPU_AMD ? "amd" : "nvidia");
    bh_json_key_bool(j, "alive", d->alive);
    bh_json_key_str(j, "trouble", d->trouble);
    bh_json_key_str(j, "uuid", d->uuid);
    bh_json_key_str(j, "name", d->name);
    bh_json_key_str(j, "model", d->model ? d->model->name : NULL);
    bh_json_key_str(j, "serial", d->serial);
    bh_json_key_str(j, "pci", d->pci);
    id(j, "numa", d->numa);
    id(j, "minor", d->minor);
    id(j, "moduleId", d->module_id);
    bh_json_key_str(j, "vbios", d->vbios);
    bh_json_key_str(j, "gsp", d->gsp);
    bh_json_key_str(j, "inforom", d->inforom);
    bh_json_key_str(j, "domain", d->domain);
    bh_json_key_str(j, "fabric", d->fabric_key);
    id(j, "fabricHealth", d->fabric_health ? (int64_t)d->fabric_health : -1); /* no bit set says nothing */
    bh_json_key_str(j, "computePartition", d->compute_partition);
    bh_json_key_str(j, "computePartitions", d->compute_partitions);
    bh_json_key_str(j, "memoryPartition", d->memory_partition);
    bh_json_key_str(j, "memoryPartitions", d->memory_partitions);
    bh_json_key_str(j, "throttle", d->throttle.why ? NULL : bh_buf_text(&slow));
    write_readings(j, d);
    write_lists(j, d);
    bh_json_close(j, '}');
    bh_buf_fini(&slow);
}

static void write_path(struct bh_json *j, const struct bh_gpu_snapshot *s, const struct bh_gpu_path *p)
{
    const struct named table[] = {
        {"read", p->read, true}, {"write", p->write, true}, {"nvlink", p->nvlink, true}};
    bh_json_open_flat(j, '{');
    bh_json_key_u64(j, "a", s->devices.at[p->a].index);
    bh_json_key_u64(j, "b", s->devices.at[p->b].index);
    bh_json_key_str(j, "ancestor", p->ancestor);
    bh_json_key_u64(j, "directLinks", p->n_direct);
    readings(j, table, BH_COUNT_OF(table));
    bh_json_close(j, '}');
}

static void write_confidential(struct bh_json *j, const struct bh_gpu_snapshot *s)
{
    const struct named table[] = {{"environment", s->cc_environment, false},
                                  {"enabled", s->cc_feature, true},
                                  {"devtools", s->cc_devtools, true}};
    bh_json_key(j, "confidential");
    bh_json_open(j, '{');
    readings(j, table, BH_COUNT_OF(table));
    bh_json_close(j, '}');
}

void bh_gpus_json(struct bh_buf *out, const struct bh_gpu_snapshot *s)
{
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_bool(&j, "simulated", s->simulated);
    bh_json_key_str(&j, "library", s->library);
    bh_json_key_str(&j, "driver", s->driver);
    bh_json_key_str(&j, "nvml", s->nvml);
    bh_json_key_str(&j, "cuda", s->cuda);
    bh_json_key_str(&j, "amdgpu", s->amdgpu);
    write_confidential(&j, s);
    bh_json_key(&j, "gpus");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < s->devices.n; i++)
        write_device(&j, &s->devices.at[i]);
    bh_json_close(&j, ']');
    bh_json_key(&j, "paths");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < s->paths.n; i++)
        write_path(&j, s, &s->paths.at[i]);
    bh_json_close(&j, ']');
    bh_json_key(&j, "switches");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < s->switches.n; i++) {
        bh_json_open_flat(&j, '{');
        bh_json_key_str(&j, "pci", s->switches.at[i].pci);
        bh_json_key_str(&j, "firmware", s->switches.at[i].bios);
        bh_json_close(&j, '}');
    }
    bh_json_close(&j, ']');
    bh_json_key(&j, "notes");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < s->notes.n; i++)
        bh_json_str(&j, s->notes.at[i]);
    bh_json_close(&j, ']');
    bh_json_close(&j, '}');
}
