/* SPDX-License-Identifier: Apache-2.0 */
/* rm.c - the manager itself and its open files: where a call comes in, and where everything ends. */
#include "simgpu/rm/rm.h"

#include "simgpu/rm/state.h"

#include <errno.h>
#include <stdio.h>

struct bh_sim_rm *bh_sim_rm_new(const struct bh_sim_node *node)
{
    struct bh_sim_rm *rm = bh_alloc(1, sizeof(*rm));
    rm->node = *node;
    (void)snprintf(rm->driver, sizeof(rm->driver), "%s", node->driver);
    bh_simrm_classes_init(rm);
    bh_simrm_commands_init(rm);
    bh_simrm_places_init(rm);
    return rm;
}

/* Those whose keys tenants choose, in part or whole. */
void bh_sim_rm_salt(struct bh_sim_rm *rm, uint64_t salt)
{
    struct bh_idmap *const hostile[] = {&rm->client_handles, &rm->object_handles, &rm->account_keys,
                                        &rm->chunk_keys};
    for (size_t i = 0; i < BH_COUNT_OF(hostile); i++)
        hostile[i]->seed = bh_idmap_mix(salt + i);
}

void bh_sim_rm_free(struct bh_sim_rm *rm)
{
    if (!rm)
        return;
    rm->journal = NULL;
    for (size_t i = 0; i < rm->files.n; i++)
        if (rm->files.at[i])
            bh_sim_rm_close(rm, rm->files.at[i]->id);
    bh_simrm_scrub(rm);
    bh_simrm_places_fini(rm);
    struct bh_idmap *maps[] = {&rm->file_ids,  &rm->client_handles, &rm->object_handles, &rm->account_keys,
                               &rm->range_ids, &rm->chunk_keys,     &rm->classes,        &rm->commands};
    for (size_t i = 0; i < BH_COUNT_OF(maps); i++)
        bh_idmap_fini(maps[i]);
    bh_vec_fini(&rm->files);
    bh_vec_fini(&rm->clients);
    bh_vec_fini(&rm->objects);
    bh_vec_fini(&rm->accounts);
    bh_vec_fini(&rm->ranges);
    bh_vec_fini(&rm->chunks);
    bh_vec_fini(&rm->free_files);
    bh_vec_fini(&rm->free_clients);
    bh_vec_fini(&rm->free_objects);
    bh_vec_fini(&rm->free_accounts);
    bh_vec_fini(&rm->free_ranges);
    bh_vec_fini(&rm->free_chunks);
    bh_vec_fini(&rm->journal_pids);
    bh_objects_fini(&rm->journal_objects);
    free(rm);
}

struct sim_file *bh_simrm_file(const struct bh_sim_rm *rm, uint32_t file)
{
    uint32_t slot = bh_idmap_find(&rm->file_ids, file);
    return slot == BH_IDMAP_NONE ? NULL : rm->files.at[slot];
}

/* The card a file of this kind and minor is about, in *ret_gpu; a negative errno where there is no such file. */
static int file_gpu(const struct bh_sim_rm *rm, enum bh_call_file kind, uint32_t minor, uint32_t *ret_gpu)
{
    *ret_gpu = SIM_NONE;
    if (kind == BH_FILE_CTL || kind == BH_FILE_UVM || kind == BH_FILE_UVM_TOOLS || kind == BH_FILE_CAP)
        return 0;
    for (uint32_t g = 0; kind == BH_FILE_GPU && g < rm->node.n_gpus; g++) {
        if (rm->node.gpus[g].minor != minor)
            continue;
        *ret_gpu = g;
        return rm->gpus[g].lost ? -EIO : 0;
    }
    return -ENODEV;
}

int64_t bh_sim_rm_open(struct bh_sim_rm *rm, enum bh_call_file kind, uint32_t gpu,
                       const struct bh_sim_caller *who)
{
    uint32_t index;
    int rc = file_gpu(rm, kind, gpu, &index);
    if (rc < 0)
        return rc;
    if (SIM_LIVE(rm, files) >= SIM_FILES_MAX)
        return -ENFILE;
    struct sim_file *f = bh_alloc(1, sizeof(*f));
    *f = (struct sim_file){
        .kind = kind, .gpu = index, .minor = gpu, .pid = who->pid, .uid = who->uid, .start = who->start};
    do /* numbers are used again only after four billion opens, and never while one is open */
        f->id = ++rm->last_file;
    while (f->id == 0 || bh_simrm_file(rm, f->id));
    SIM_PUT(rm, files, f);
    (void)bh_idmap_add(&rm->file_ids, f->id, f->slot);
    bh_simrm_journal_file(rm, f, who->pid, BH_CALL_OPEN, NULL);
    return f->id;
}

void bh_sim_rm_close(struct bh_sim_rm *rm, uint32_t file)
{
    struct sim_file *f = bh_simrm_file(rm, file);
    if (!f)
        return;
    bh_simrm_journal_file(rm, f, f->pid, BH_CALL_CLOSE, NULL);
    while (f->clients)
        bh_simrm_client_free(rm, f->clients);
    bh_simrm_uvm_close(rm, f);
    (void)bh_idmap_remove(&rm->file_ids, f->id);
    SIM_DROP(rm, files, f);
}

int bh_sim_rm_ioctl(struct bh_sim_rm *rm, uint32_t file, const struct bh_sim_caller *who, uint32_t cmd,
                    void *arg, size_t n_arg, void *params, size_t n_params)
{
    struct sim_call c = {.rm = rm, .file = bh_simrm_file(rm, file), .who = who};
    int rc = -EINVAL;
    if (!c.file)
        return -EBADF;
    c.params = params;
    c.n_params = params ? n_params : 0;
    if (c.file->kind == BH_FILE_UVM)
        rc = bh_simrm_uvm(&c, cmd, arg, arg ? n_arg : 0);
    else if ((c.file->kind == BH_FILE_CTL || c.file->kind == BH_FILE_GPU) && arg && n_arg == RM_IOC_SIZE(cmd))
        rc = bh_simrm_escape(&c, RM_IOC_NUMBER(cmd), arg, n_arg);
    bh_simrm_journal_ioctl(&c, cmd, arg, arg ? n_arg : 0, rc);
    return rc;
}

struct bh_sim_held bh_sim_rm_held(const struct bh_sim_rm *rm)
{
    struct bh_sim_held h = {
        .files = SIM_LIVE(rm, files),
        .clients = SIM_LIVE(rm, clients),
        .objects = SIM_LIVE(rm, objects),
        .ranges = SIM_LIVE(rm, ranges),
        /* what was left in memory that nobody has is not held */
        .chunks = SIM_LIVE(rm, chunks) - rm->n_residue,
    };
    for (uint32_t g = 0; g < rm->node.n_gpus; g++) {
        for (size_t i = 0; i <= BH_SIM_GIS_MAX; i++) {
            const struct sim_place *p = i ? &rm->gpus[g].gis[i - 1] : &rm->gpus[g].whole;
            h.bytes += p->memory.total_bytes - p->memory.free_bytes;
            h.groups += p->n_groups;
            h.channels += p->n_channels;
        }
    }
    return h;
}
