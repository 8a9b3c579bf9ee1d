/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm_fixture.h - tenants that do anything, drawn from a string of bytes.
 *
 * One step is one call by one of four processes, mostly with names that exist and sizes that are near the truth, now
 * and then with bytes that are neither. The property test draws from a seed, the fuzzer from its input.
 */
#ifndef BH_SIMGPU_RM_STORM_FIXTURE_H
#define BH_SIMGPU_RM_STORM_FIXTURE_H

#include "base/choice.h"
#include "simgpu/rm/rm_fixture.h"
#include "simgpu/rm/state.h"

enum { STORM_NAMES = 64, STORM_FILES = 10 };

struct storm_name {
    uint32_t file, client, handle, class;
};

struct storm {
    struct bh_sim_rm *rm;
    struct bh_choice *c;
    struct bh_sim_caller who;
    uint32_t files[STORM_FILES], n_files;
    struct storm_name names[STORM_NAMES];
    uint64_t ranges[STORM_NAMES], now_ns;
    uint32_t n_names, n_ranges;
};

/* Two cards, one of them cut; little memory, so that it runs out. */
static inline void storm_init(struct storm *s, struct bh_choice *c)
{
    struct bh_sim_node n = fx_node("A30-24GB", 2);
    n.gpus[0].total_bytes = 768 * BH_MIB;
    n.gpus[1].mig = true;
    *s = (struct storm){.rm = bh_sim_rm_new(&n), .c = c};
    for (int i = 0; i < 3; i++) {
        struct bh_sim_mig_order o = {.verb = BH_SIM_MIG_GI_CREATE, .gpu = 1, .start = -1};
        o.profile_id = bh_catalog_find("A30-24GB")->profiles[0].gi_profile_id;
        if (bh_sim_rm_mig(s->rm, &fx_admin, &o) == 0) {
            o.verb = BH_SIM_MIG_CI_CREATE;
            o.profile_id = 1;
            (void)bh_sim_rm_mig(s->rm, &fx_admin, &o);
        }
    }
}

static inline uint32_t storm_pick(struct storm *s, uint32_t n)
{
    return bh_choose(s->c, n);
}

/* Mostly one of this class (0: any), if there is one. */
static inline struct storm_name storm_name(struct storm *s, uint32_t class)
{
    struct storm_name wild = {storm_pick(s, 8), storm_pick(s, 256), storm_pick(s, 256), 0};
    if (!s->n_names || storm_pick(s, 24) == 0)
        return wild;
    uint32_t from = storm_pick(s, s->n_names);
    for (uint32_t i = 0; class && i < s->n_names; i++)
        if (s->names[(from + i) % s->n_names].class == class)
            return s->names[(from + i) % s->n_names];
    return s->names[from];
}

static inline uint32_t storm_file(struct storm *s)
{
    return s->n_files ? s->files[storm_pick(s, s->n_files)] : 1;
}

static inline void storm_keep(struct storm *s, uint32_t file, uint32_t client, uint32_t handle,
                              uint32_t class)
{
    uint32_t i = s->n_names < STORM_NAMES ? s->n_names++ : storm_pick(s, STORM_NAMES);
    s->names[i] = (struct storm_name){file, client, handle, class};
}

/* Forgets the names of what is gone. */
static inline void storm_prune(struct storm *s)
{
    for (uint32_t i = 0; i < s->n_names;) {
        struct storm_name n = s->names[i];
        struct sim_client *client = bh_simrm_client_any(s->rm, n.client);
        bool there = client && bh_simrm_object(s->rm, client, n.handle);
        if (there)
            i++;
        else
            s->names[i] = s->names[--s->n_names];
    }
}

static inline void storm_close(struct storm *s)
{
    if (!s->n_files)
        return;
    uint32_t i = storm_pick(s, s->n_files);
    bh_sim_rm_close(s->rm, s->files[i]);
    s->files[i] = s->files[--s->n_files];
    storm_prune(s);
}

/* A client with a device and a subdevice; on the cut card mostly with an instance. */
static inline void storm_client(struct storm *s, uint32_t file)
{
    uint32_t gpu[14] = {storm_pick(s, 2)}, zero = 0, partition[4] = {0, 0, 1 + storm_pick(s, 4)};
    uint32_t client = 0, device = 0, subdevice = 0, h = 0;
    if (fx_alloc(s->rm, file, &s->who, 0, 0, &client, RM_CLASS_CLIENT, NULL, 0) != RM_OK)
        return;
    storm_keep(s, file, client, client, RM_CLASS_CLIENT);
    if (fx_alloc(s->rm, file, &s->who, client, client, &device, RM_CLASS_DEVICE, gpu, 56) != RM_OK)
        return;
    storm_keep(s, file, client, device, RM_CLASS_DEVICE);
    if (fx_alloc(s->rm, file, &s->who, client, device, &subdevice, RM_CLASS_SUBDEVICE, &zero, 4) != RM_OK)
        return;
    storm_keep(s, file, client, subdevice, RM_CLASS_SUBDEVICE);
    if (fx_alloc(s->rm, file, &s->who, client, subdevice, &h, RM_CLASS_SMC_PARTITION, partition, 16) == RM_OK)
        storm_keep(s, file, client, h, RM_CLASS_SMC_PARTITION);
}

static inline void storm_open(struct storm *s)
{
    static const uint8_t kinds[] = {BH_FILE_CTL, BH_FILE_CTL, BH_FILE_UVM,  BH_FILE_UVM,
                                    BH_FILE_GPU, BH_FILE_CAP, BH_FILE_OTHER};
    if (s->n_files == STORM_FILES)
        storm_close(s);
    int64_t id = bh_sim_rm_open(s->rm, kinds[storm_pick(s, sizeof(kinds))], storm_pick(s, 3), &s->who);
    if (id <= 0)
        return;
    uint32_t file = (uint32_t)id;
    uint64_t init[2] = {0};
    s->files[s->n_files++] = file;
    (void)bh_sim_rm_ioctl(s->rm, file, &s->who, UVM_INITIALIZE, init, sizeof(init), NULL, 0);
    storm_client(s, file);
}

static inline void storm_alloc(struct storm *s)
{
    static const struct {
        uint16_t class, parent, params;
    } wants[] = {{0x40, 0x80, 128},   {0x40, 0x80, 128},    {0x40, 0x80, 128},    {0x3f, 0x2080, 128},
                 {0x90f1, 0x80, 48},  {0xa06c, 0x80, 20},   {0xa06c, 0x80, 20},   {0xc86f, 0xa06c, 0},
                 {0xc86f, 0xa06c, 0}, {0xc86f, 0x80, 8},    {0x9067, 0xa06c, 12}, {0xcbc0, 0xc86f, 0},
                 {0x5, 0, 0},         {0x3e, 0, 128},       {0x80, 0x41, 56},     {0x2080, 0x80, 4},
                 {0x41, 0, 0},        {0xc637, 0x2080, 16}, {0xc638, 0x2080, 16}, {0x1234, 0, 0},
                 {0xc561, 0x2080, 0}, {0x70, 0, 16}};
    uint32_t i = storm_pick(s, BH_COUNT_OF(wants)), class = wants[i].class;
    struct storm_name at = storm_name(s, wants[i].parent);
    uint32_t handle = storm_pick(s, 4) ? 0 : storm_pick(s, 256);
    struct rm_memory_params p = {.owner = storm_pick(s, 4),
                                 .flags = storm_pick(s, 4), /* where others have a card and an instance */

                                 .size = (uint64_t)storm_pick(s, 256) << storm_pick(s, 22)};
    p.attr = storm_pick(s, 8) ? 0 : 1u << 25;
    uint32_t n = storm_pick(s, 32) ? wants[i].params : storm_pick(s, sizeof(p));
    if (fx_alloc(s->rm, at.file, &s->who, at.client, at.handle, &handle, class, &p, n) == RM_OK)
        storm_keep(s, at.file, class == 0x41 ? handle : at.client, handle, class);
}

static inline void storm_control(struct storm *s)
{
    static const struct {
        uint32_t command, n, on;
    } commands[] = {{0x20801303, 1028, 0x2080},
                    {0x2080018d, 3812, 0x2080},
                    {0x2080018e, 14408, 0x2080},
                    {0x2080110b, 536, 0x2080},
                    {0x2080110b, 536, 0x2080},
                    {0xa06c0101, 3, 0xa06c},
                    {0xa06c0101, 3, 0xa06c},
                    {0xa06c0103, 8, 0xa06c},
                    {0xa06c0104, 8, 0xa06c},
                    {0xa06c0107, 4, 0xa06c},
                    {0xa06c0105, 8, 0xa06c},
                    {0x201, 128, 0x41},
                    {0x205, 32, 0x41},
                    {0x20800110, 132, 0x2080},
                    {0x2080014a, 268, 0x2080},
                    {0xa06f0103, 3, 0xc86f},
                    {0x77, 4, 0}};
    static uint8_t p[14408];
    uint32_t i = storm_pick(s, BH_COUNT_OF(commands)), n = commands[i].n;
    struct storm_name at = storm_name(s, commands[i].on), other = storm_name(s, RM_CLASS_CHANNEL_HOPPER);
    memset(p, (int)storm_pick(s, 3), sizeof(p));
    if (commands[i].command == RM_CTRL_FIFO_DISABLE_CHANNELS) {
        struct rm_disable_channels d = {.disable = (uint8_t)storm_pick(s, 2), .count = storm_pick(s, 3)};
        d.clients[0] = d.clients[1] = other.client;
        d.channels[0] = d.channels[1] = other.handle;
        memcpy(p, &d, sizeof(d));
    } else if (storm_pick(s, 4) == 0) {
        n = storm_pick(s, 32) ? n : storm_pick(s, sizeof(p));
        for (uint32_t j = 0; j < 16; j++)
            p[j] = (uint8_t)storm_pick(s, 256);
    }
    (void)fx_control(s->rm, at.file, &s->who, at.client, at.handle, commands[i].command, p, n);
}

static inline void storm_dup(struct storm *s)
{
    struct storm_name to = storm_name(s, RM_CLASS_DEVICE), from = storm_name(s, RM_CLASS_MEMORY_LOCAL);
    uint32_t handle = 0;
    if (fx_dup(s->rm, to.file, &s->who, to.client, to.handle, &handle, from.client, from.handle) == RM_OK)
        storm_keep(s, to.file, to.client, handle, from.class);
    uint32_t share[6] = {from.client, from.handle, to.client, 0, storm_pick(s, 9), 0};
    (void)bh_sim_rm_ioctl(s->rm, from.file, &s->who, RM_IOC(RM_SHARE, 24), share, 24, NULL, 0);
}

static inline void storm_heap(struct storm *s)
{
    struct storm_name at = storm_name(s, storm_pick(s, 2) ? RM_CLASS_DEVICE : RM_CLASS_MEMORY_LOCAL);
    struct rm_vid_heap h = {.client = at.client,
                            .parent = at.handle,
                            .function = 2 + storm_pick(s, 4),
                            .size = (uint64_t)storm_pick(s, 256) << storm_pick(s, 22)};
    h.memory = h.function == RM_HEAP_FREE ? at.handle : 0;
    if (bh_sim_rm_ioctl(s->rm, at.file, &s->who, RM_IOC(RM_VID_HEAP_CONTROL, sizeof(h)), &h, sizeof(h), NULL,
                        0) == 0 &&
        h.status == RM_OK && h.function == RM_HEAP_ALLOC_SIZE)
        storm_keep(s, at.file, at.client, h.memory, RM_CLASS_MEMORY_LOCAL);
}

static inline void storm_uvm(struct storm *s)
{
    static const uint32_t numbers[] = {
        UVM_REGISTER_GPU, UVM_REGISTER_GPU, UVM_CREATE_EXTERNAL_RANGE, UVM_MAP_EXTERNAL,
        UVM_MAP_EXTERNAL, UVM_FREE,         UVM_UNREGISTER_GPU,        5};
    static uint8_t a[9264];
    uint32_t number = numbers[storm_pick(s, BH_COUNT_OF(numbers))], file = storm_file(s);
    struct storm_name at =
        storm_name(s, number == UVM_MAP_EXTERNAL ? RM_CLASS_MEMORY_LOCAL : RM_CLASS_CLIENT);
    memset(a, 0, sizeof(a));
    if (number == UVM_REGISTER_GPU || number == UVM_UNREGISTER_GPU) {
        a[15] = (uint8_t)storm_pick(s, 4);
        memcpy(a + 28, &at.client, 4);
    } else {
        a[2] = (uint8_t)storm_pick(s, 4);
        a[10] = (uint8_t)(1 + storm_pick(s, 64));
        memcpy(a + 9252, &at.client, 4);
        memcpy(a + 9256, &at.handle, 4);
    }
    (void)bh_sim_rm_ioctl(s->rm, file, &s->who, number, a, storm_pick(s, 32) ? sizeof(a) : storm_pick(s, 64),
                          NULL, 0);
}

static inline void storm_range(struct storm *s)
{
    uint32_t file = storm_file(s);
    uint64_t range = s->n_ranges ? s->ranges[storm_pick(s, s->n_ranges)] : 1;
    struct bh_sim_map map = {.prot = 3, .flags = 1};
    switch (storm_pick(s, 4)) {
    case 0:
        map.length = (uint64_t)storm_pick(s, 256) << storm_pick(s, 24);
        if (bh_sim_rm_map(s->rm, file, &s->who, &map, &range) == 0)
            s->ranges[s->n_ranges < STORM_NAMES ? s->n_ranges++ : storm_pick(s, STORM_NAMES)] = range;
        break;
    case 1:
        (void)bh_sim_rm_unmap(s->rm, file, range);
        break;
    default:
        (void)bh_sim_rm_touch(s->rm, file, range, storm_pick(s, 3));
    }
}

static inline void storm_work(struct storm *s)
{
    struct storm_name at = storm_name(s, RM_CLASS_CHANNEL_HOPPER);
    uint64_t v;
    (void)bh_sim_rm_submit(s->rm, at.file, at.client, at.handle,
                           (uint64_t)storm_pick(s, 256) << storm_pick(s, 64), &v);
    (void)bh_sim_rm_fence(s->rm, at.file, at.client, at.handle, &v);
    s->now_ns += (uint64_t)storm_pick(s, 256) << storm_pick(s, 24);
    bh_sim_rm_advance(s->rm, s->now_ns);
    uint64_t next = bh_sim_rm_next(s->rm);
    if (next < s->now_ns)
        abort(); /* it is done already */
}

static inline void storm_bytes(struct storm *s)
{
    struct storm_name at = storm_name(s, RM_CLASS_MEMORY_LOCAL);
    char b[300];
    uint64_t offset = (uint64_t)storm_pick(s, 256) << storm_pick(s, 14);
    memset(b, 7, sizeof(b));
    (void)bh_sim_rm_write(s->rm, at.file, at.client, at.handle, offset, b, storm_pick(s, sizeof(b)));
    (void)bh_sim_rm_fill(s->rm, at.file, at.client, at.handle, 0, (uint8_t)storm_pick(s, 2),
                         (uint64_t)storm_pick(s, 64) << 14);
    (void)bh_sim_rm_read(s->rm, at.file, at.client, at.handle, offset, b, sizeof(b));
}

static inline void storm_mig(struct storm *s)
{
    static const uint8_t sizes[] = {0, 1, 2, 4};
    struct bh_sim_mig_order o = {.verb = storm_pick(s, 7),
                                 .gpu = storm_pick(s, 3),
                                 .start = (int32_t)storm_pick(s, 5) - 1,
                                 .gi = storm_pick(s, 6),
                                 .ci = storm_pick(s, 4)};
    o.profile_id = storm_pick(s, 2) ? bh_catalog_find("A30-24GB")->profiles[storm_pick(s, 5)].gi_profile_id
                                    : sizes[storm_pick(s, sizeof(sizes))];
    (void)bh_sim_rm_mig(s->rm, &s->who, &o);
}

static inline void storm_break(struct storm *s)
{
    static const char *const words[] = {"gpu 0 lost",  "mend",         "mend",
                                        "mend",        "scrub off",    "gpu 1 xid 79",
                                        "gpu 0 ecc 1", "gpu 0 hot 95", "calls fail 51 every 9",
                                        "nonsense"};
    struct bh_sim_gpu_view v;
    struct bh_sim_event e[4];
    (void)!bh_sim_rm_break(s->rm, words[storm_pick(s, BH_COUNT_OF(words))], NULL);
    (void)bh_sim_rm_view_gpu(s->rm, storm_pick(s, 3), &v);
    (void)bh_sim_rm_events(s->rm, storm_pick(s, 16), e, BH_COUNT_OF(e));
}

/* Bytes that mean nothing, in blocks of exactly their size. */
static inline void storm_raw(struct storm *s)
{
    static const uint8_t numbers[] = {0x27, 0x28, 0x29, 0x2a, 0x2b, 0x34, 0x35, 0x4a, 0x4e, 0x4f, 0x57, 0x58,
                                      200,  201,  206,  207,  209,  210,  211,  212,  213,  214,  217,  218};
    static const uint16_t sizes[] = {4, 8, 16, 20, 24, 28, 32, 48, 56, 64, 72, 184};
    size_t n = storm_pick(s, 8) ? sizes[storm_pick(s, BH_COUNT_OF(sizes))] : storm_pick(s, 512),
           m = storm_pick(s, 200);
    struct storm_name at = storm_name(s, 0);
    uint8_t *arg = bh_alloc(n, 1), *params = bh_alloc(m, 1);
    for (size_t i = 0; i < n; i++)
        arg[i] = (uint8_t)(storm_pick(s, 4) ? 0 : storm_pick(s, 256));
    for (size_t i = 0; i < m && i < 16; i++)
        params[i] = (uint8_t)storm_pick(s, 256);
    if (n >= 12 && storm_pick(s, 2)) {
        memcpy(arg, &at.client, 4);
        memcpy(arg + 4, &at.handle, 4);
    }
    uint32_t number = storm_pick(s, 8) ? numbers[storm_pick(s, sizeof(numbers))] : storm_pick(s, 256);
    (void)bh_sim_rm_ioctl(s->rm, storm_pick(s, 2) ? at.file : storm_file(s), &s->who, RM_IOC(number, n), arg,
                          n, params, m);
    free(arg);
    free(params);
}

/* Seldom a root or a device: with them goes all the rest. */
static inline void storm_free(struct storm *s)
{
    struct storm_name at = storm_name(s, 0);
    bool large = at.class == RM_CLASS_CLIENT || at.class == RM_CLASS_DEVICE || at.class == RM_CLASS_SUBDEVICE;
    if (large && storm_pick(s, 8))
        at = storm_name(s, RM_CLASS_MEMORY_LOCAL);
    (void)fx_free(s->rm, at.file, &s->who, at.client, at.handle);
    storm_prune(s);
}

static inline void storm_step(struct storm *s)
{
    static void (*const acts[])(struct storm *) = {
        storm_open,  storm_open,    storm_alloc,   storm_alloc,   storm_alloc, storm_alloc, storm_alloc,
        storm_alloc, storm_alloc,   storm_alloc,   storm_alloc,   storm_alloc, storm_free,  storm_free,
        storm_close, storm_control, storm_control, storm_control, storm_dup,   storm_dup,   storm_heap,
        storm_uvm,   storm_uvm,     storm_uvm,     storm_range,   storm_range, storm_work,  storm_work,
        storm_bytes, storm_bytes,   storm_mig,     storm_break,   storm_raw,   storm_raw};
    uint32_t pid = storm_pick(s, 4);
    s->who = (struct bh_sim_caller){
        .pid = 100 + pid, .uid = pid / 2, .start = 1 + pid, .admin = storm_pick(s, 8) == 0};
    acts[storm_pick(s, BH_COUNT_OF(acts))](s);
}

/* All files closed: whatever happened, nothing is left. */
static inline bool storm_end(struct storm *s)
{
    for (uint32_t id = 1; bh_sim_rm_held(s->rm).files; id++)
        bh_sim_rm_close(s->rm, id);
    bool clean = fx_nothing_held(s->rm) && !bh_sim_rm_check(s->rm);
    bh_sim_rm_free(s->rm);
    return clean;
}

#endif
