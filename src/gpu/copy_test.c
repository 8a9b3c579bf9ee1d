/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/copy.h"

#include "base/test.h"

/* A text of its own at every place that can hold one, so that a place that is passed over shows. */
static char pool[512][8];
static size_t n_pool;

static const char *next(void)
{
    (void)snprintf(pool[n_pool], sizeof(pool[0]), "t%zu", n_pool);
    return pool[n_pool++];
}

static void fill_readings(struct bh_reading *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        r[i] = (struct bh_reading){0, next()};
}

static void build(struct bh_gpu_snapshot *s)
{
    *s = (struct bh_gpu_snapshot){.simulated = true,
                                  .library = next(),
                                  .driver = next(),
                                  .nvml = next(),
                                  .cuda = next(),
                                  .amdgpu = next()};
    s->cc_environment = s->cc_feature = s->cc_devtools = (struct bh_reading){0, next()};
    for (uint32_t i = 0; i < 2; i++) {
        struct bh_gpu_device *d = bh_vec_push(&s->devices);
        *d = (struct bh_gpu_device){.index = i,
                                    .alive = true,
                                    .numa = 3,
                                    .trouble = next(),
                                    .name = next(),
                                    .uuid = next(),
                                    .serial = next(),
                                    .pci = next(),
                                    .vbios = next(),
                                    .gsp = next(),
                                    .inforom = next(),
                                    .fabric_key = next(),
                                    .domain = next(),
                                    .compute_partition = next(),
                                    .memory_partition = next(),
                                    .compute_partitions = next(),
                                    .memory_partitions = next()};
        struct bh_reading one[3];
        fill_readings(one, 3);
        d->total_bytes = one[0];
        d->isolation = one[1];
        d->processes_seen = one[2];
        d->used_bytes = (struct bh_reading){77, NULL};
        *bh_vec_push(&d->instances) =
            (struct bh_gpu_instance){.gi = 4, .profile = next(), .uuid = next(), .ci_cap = {0, next()}};
        *bh_vec_push(&d->processes) = (struct bh_gpu_process){
            .pid = 9, .kind = next(), .name = next(), .user = next(), .memory_percent = {0, next()}};
        *bh_vec_push(&d->up) = (struct bh_gpu_link){.link = 5, .remote_pci = next()};
    }
    *bh_vec_push(&s->paths) = (struct bh_gpu_path){.b = 1, .ancestor = next(), .nvlink = {0, next()}};
    *bh_vec_push(&s->switches) = (struct bh_gpu_switch){.pci = next(), .bios = next()};
    *bh_vec_push(&s->notes) = next();
}

static bool same(const struct bh_gpu_snapshot *a, const struct bh_gpu_snapshot *b)
{
    const struct bh_gpu_device *x = &a->devices.at[1], *y = &b->devices.at[1];
    return strcmp(a->library, b->library) == 0 && strcmp(a->amdgpu, b->amdgpu) == 0 &&
           strcmp(a->cc_devtools.why, b->cc_devtools.why) == 0 && a->simulated == b->simulated &&
           a->devices.n == b->devices.n && x->index == y->index && x->numa == y->numa &&
           strcmp(x->trouble, y->trouble) == 0 && strcmp(x->memory_partitions, y->memory_partitions) == 0 &&
           strcmp(x->total_bytes.why, y->total_bytes.why) == 0 && x->used_bytes.v == y->used_bytes.v &&
           !x->used_bytes.why && strcmp(x->processes_seen.why, y->processes_seen.why) == 0 &&
           x->instances.at[0].gi == y->instances.at[0].gi &&
           strcmp(x->instances.at[0].uuid, y->instances.at[0].uuid) == 0 &&
           strcmp(x->instances.at[0].ci_cap.why, y->instances.at[0].ci_cap.why) == 0 &&
           strcmp(x->processes.at[0].user, y->processes.at[0].user) == 0 &&
           strcmp(x->processes.at[0].memory_percent.why, y->processes.at[0].memory_percent.why) == 0 &&
           strcmp(x->up.at[0].remote_pci, y->up.at[0].remote_pci) == 0 &&
           strcmp(a->paths.at[0].nvlink.why, b->paths.at[0].nvlink.why) == 0 &&
           strcmp(a->switches.at[0].pci, b->switches.at[0].pci) == 0 &&
           strcmp(a->switches.at[0].bios, b->switches.at[0].bios) == 0 &&
           strcmp(a->notes.at[0], b->notes.at[0]) == 0;
}

/* Does any word of these bytes point into the pool? Then a text was not copied. */
static bool points_back(const void *at, size_t n)
{
    for (size_t i = 0; i + sizeof(void *) <= n; i += sizeof(void *)) {
        const char *p;
        memcpy(&p, (const char *)at + i, sizeof(p));
        if (p >= pool[0] && p < pool[0] + sizeof(pool))
            return true;
    }
    return false;
}

TEST(into_one_room_and_back_to_the_heap)
{
    static _Alignas(16) char memory[1 << 16];
    struct bh_gpu_snapshot s, in_room, back;
    struct bh_gpu_room room = {memory, sizeof(memory)};
    build(&s);
    CHECK(bh_gpu_snapshot_copy(&in_room, &s, &room));
    CHECK(same(&s, &in_room) && in_room.arena.head == NULL);
    CHECK((char *)in_room.devices.at >= memory && (char *)in_room.devices.at < memory + sizeof(memory));
    CHECK(!points_back(&in_room, sizeof(in_room)) && !points_back(memory, sizeof(memory)));
    CHECK(bh_gpu_snapshot_copy(&back, &in_room, NULL));
    memset(memory, 0xdd, sizeof(memory)); /* the copy stands by itself */
    CHECK(same(&s, &back));
    bh_gpu_snapshot_fini(&back);
    bh_gpu_snapshot_fini(&s);
}

TEST(a_room_that_is_too_small_says_so)
{
    static _Alignas(16) char memory[1 << 16];
    struct bh_gpu_snapshot s, out;
    n_pool = 0;
    build(&s);
    bool fits = false;
    for (size_t n = 0; n <= sizeof(memory) && !fits; n += 16) {
        struct bh_gpu_room room = {memory, n};
        fits = bh_gpu_snapshot_copy(&out, &s, &room);
        if (n == 0)
            CHECK(!fits);
    }
    CHECK(fits && same(&s, &out));
    bh_gpu_snapshot_fini(&s);
}

TEST(a_dead_gpu_says_so_everywhere)
{
    struct bh_gpu_device d = {.alive = true, .used_bytes = {5, NULL}};
    bh_gpu_mark_dead(&d, "gone");
    CHECK(!d.alive && d.used_bytes.v == 0);
    CHECK_STR(d.total_bytes.why, "gone");
    CHECK_STR(d.used_bytes.why, "gone");
    CHECK_STR(d.isolation.why, "gone");
    CHECK_STR(d.processes_seen.why, "gone");
    CHECK(!d.instances.at && !d.trouble && !d.memory_partitions);
}

TEST_MAIN
