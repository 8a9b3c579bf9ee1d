/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_links.c - NVLinks, how each pair of GPUs reaches the other, and the NVLink domains that follow.
 *
 * Two GPUs are in one domain when the driver says that peer access over NVLink works between them. Where it
 * does not say, links straight between them, or to the same switch, decide.
 */
#include "base/str.h"
#include "gpu/nvml.h"

static uint8_t remote_of(int status, unsigned type)
{
    if (status != NVML_OK)
        return BH_LINK_OTHER;
    return type == NVML_REMOTE_GPU      ? BH_LINK_GPU
           : type == NVML_REMOTE_SWITCH ? BH_LINK_SWITCH
                                        : BH_LINK_OTHER;
}

void bh_nvml_read_links(const struct bh_nvml *n, nvml_device_t h, bool far, struct bh_arena *a,
                        struct bh_gpu_device *d)
{
    int first = NVML_OK;
    for (unsigned i = 0; i < NVML_LINKS_MAX; i++) {
        unsigned up = 0, type = 0;
        int status = BH_NVML_CALL(n, link_state, h, i, &up);
        if (i == 0)
            first = status;
        if (status == NVML_INVALID_ARGUMENT || status == NVML_FUNCTION_NOT_FOUND || first != NVML_OK)
            break; /* past the last link, or a GPU that has none */
        if (status != NVML_OK || up != 1)
            continue;
        struct bh_gpu_link *l = bh_vec_push(&d->up);
        struct nvml_pci_info pci;
        struct bh_nvml_room room;
        *l = (struct bh_gpu_link){.link = i, .remote = BH_LINK_OTHER};
        if (!far)
            continue;
        status = BH_NVML_CALL(n, link_type, h, i, &type);
        l->remote = remote_of(status, type);
        status = BH_NVML_FILL(n, link_pci, &room, &pci, sizeof(pci), h, i);
        l->remote_pci = bh_nvml_pci(a, status, &pci);
    }
    d->links = bh_nvml_reading(a, first, d->up.n);
}

static const char *ancestor_words(unsigned level)
{
    static const char *const words[] = {"one board",       "one PCIe switch", "several PCIe switches",
                                        "one host bridge", "one NUMA node",   "across sockets"};
    return level % 10 == 0 && level / 10 < BH_COUNT_OF(words) ? words[level / 10] : NULL;
}

static struct bh_reading peer(const struct bh_nvml *n, nvml_device_t a, nvml_device_t b, unsigned what,
                              struct bh_arena *arena)
{
    unsigned answer = 0;
    int status = BH_NVML_CALL(n, p2p, a, b, what, &answer);
    return bh_nvml_reading(arena, status, answer == 0);
}

static uint32_t direct_links(const struct bh_gpu_device *a, const struct bh_gpu_device *b)
{
    uint32_t n = 0;
    for (size_t i = 0; b->pci && i < a->up.n; i++)
        n += a->up.at[i].remote == BH_LINK_GPU && bh_str_eq(a->up.at[i].remote_pci, b->pci);
    return n;
}

static bool share_switch(const struct bh_gpu_device *a, const struct bh_gpu_device *b)
{
    for (size_t i = 0; i < a->up.n; i++)
        for (size_t k = 0; k < b->up.n; k++)
            if (a->up.at[i].remote == BH_LINK_SWITCH && b->up.at[k].remote == BH_LINK_SWITCH &&
                a->up.at[i].remote_pci && bh_str_eq(a->up.at[i].remote_pci, b->up.at[k].remote_pci))
                return true;
    return false;
}

static bool joined(const struct bh_gpu_snapshot *s, const struct bh_gpu_path *p)
{
    const struct bh_gpu_device *a = &s->devices.at[p->a], *b = &s->devices.at[p->b];
    if (!a->up.n || !b->up.n)
        return false;
    if (!p->nvlink.why)
        return p->nvlink.v == 1;
    return p->n_direct || share_switch(a, b);
}

static uint32_t *each_alone(const struct bh_gpu_snapshot *s)
{
    uint32_t *root = bh_alloc(s->devices.n + 1, sizeof(*root));
    for (uint32_t i = 0; i < s->devices.n; i++)
        root[i] = i;
    return root;
}

static void unite(const struct bh_gpu_snapshot *s, const struct bh_gpu_path *p, uint32_t *root)
{
    const uint32_t from = root[p->b], to = root[p->a];
    if (from == to || !joined(s, p))
        return;
    for (size_t i = 0; i < s->devices.n; i++)
        if (root[i] == from)
            root[i] = to;
}

/* Numbers the domains in the order of their first GPU. Takes root. */
static void name_domains(struct bh_gpu_snapshot *s, uint32_t *root)
{
    uint32_t named = 0;
    for (uint32_t i = 0; i < s->devices.n; i++) {
        struct bh_gpu_device *d = &s->devices.at[i];
        if (!d->up.n)
            continue;
        for (uint32_t k = 0; k < i && !d->domain; k++)
            if (root[k] == root[i])
                d->domain = s->devices.at[k].domain;
        if (!d->domain)
            d->domain = bh_arena_printf(&s->arena, "nvl-%u", named++);
    }
    free(root);
}

void bh_nvml_read_domains(const struct bh_nvml *n, const nvml_device_t *handles, struct bh_gpu_snapshot *s)
{
    uint32_t *root = each_alone(s);
    for (uint32_t a = 0; a < s->devices.n; a++)
        for (uint32_t b = a + 1; b < s->devices.n; b++) {
            const struct bh_gpu_device *one = &s->devices.at[a], *other = &s->devices.at[b];
            if (!handles[a] || !handles[b] || !one->up.n || !other->up.n || root[a] == root[b])
                continue;
            const struct bh_gpu_path p = {.a = a,
                                          .b = b,
                                          .n_direct = direct_links(one, other),
                                          .nvlink =
                                              peer(n, handles[a], handles[b], NVML_P2P_NVLINK, &s->arena)};
            unite(s, &p, root);
        }
    name_domains(s, root);
}

void bh_nvml_read_paths(const struct bh_nvml *n, const nvml_device_t *handles, struct bh_gpu_snapshot *s)
{
    uint32_t *root = each_alone(s);
    for (uint32_t a = 0; a < s->devices.n; a++)
        for (uint32_t b = a + 1; b < s->devices.n; b++) {
            if (!handles[a] || !handles[b])
                continue;
            struct bh_gpu_path *p = bh_vec_push(&s->paths);
            unsigned level = 0;
            *p = (struct bh_gpu_path){
                .a = a, .b = b, .n_direct = direct_links(&s->devices.at[a], &s->devices.at[b])};
            if (BH_NVML_CALL(n, ancestor, handles[a], handles[b], &level) == NVML_OK)
                p->ancestor = ancestor_words(level);
            p->read = peer(n, handles[a], handles[b], NVML_P2P_READ, &s->arena);
            p->write = peer(n, handles[a], handles[b], NVML_P2P_WRITE, &s->arena);
            p->nvlink = peer(n, handles[a], handles[b], NVML_P2P_NVLINK, &s->arena);
            unite(s, p, root);
        }
    name_domains(s, root);
}
