/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_container.c - what the containers of a pod ask for, may do, and can reach.
 *
 * Containers run side by side, so their requests add up; init containers run one after
 * another before them, so the largest counts. A volume counts as reached even where no
 * container mounts it: a debug container may do so later.
 */
#include "conf/kube_cluster.h"

#include "base/str.h"
#include "base/units.h"

enum { ASKS_MAX = 64 /* distinct GPU resource names of a pod */, ENV_TEXT_MAX = 256 };

static const char *const lists[] = {"containers", "initContainers", "ephemeralContainers"};
enum { N_LISTS = BH_COUNT_OF(lists), LIST_INIT = 1 };

/* The list of containers as found by the first look; anything else was an error then. */
static const struct bh_node *list_of(const struct bh_kube_pod *pod, size_t list)
{
    const struct bh_node *n = bh_node_get(pod->spec, lists[list]);
    return n && n->kind == BH_NODE_SEQ ? n : NULL;
}

/* Limits before requests: of a device both must be equal, and one may be left out. */
static const struct bh_node *amounts_of(const struct bh_node *container, size_t which)
{
    static const char *const keys[] = {"limits", "requests"};
    const struct bh_node *n = bh_node_path(container, "resources", keys[which], NULL);
    return n && n->kind == BH_NODE_MAP ? n : NULL;
}

static bool container_asks(const struct bh_node *c)
{
    for (size_t which = 0; which < 2; which++) {
        const struct bh_node *amounts = amounts_of(c, which);
        if (amounts)
            BH_EACH_PAIR (key, value, amounts)
                if (bh_node_text(key) && bh_kube_is_gpu(key->u.text))
                    return true;
    }
    return false;
}

/* SYS_ADMIN makes device nodes and mounts at will: privileged in all but name. */
static bool is_privileged(const struct bh_node *c)
{
    static const char *const caps[] = {"SYS_ADMIN", "CAP_SYS_ADMIN", "ALL"};
    const struct bh_node *context = bh_node_get(c, "securityContext");
    const struct bh_node *add = bh_node_path(context, "capabilities", "add", NULL);
    if (bh_node_bool(bh_node_get(context, "privileged")) == 1)
        return true;
    if (add && add->kind == BH_NODE_SEQ)
        BH_EACH_ITEM (cap, add)
            for (size_t i = 0; i < BH_COUNT_OF(caps); i++)
                if (bh_str_eq(bh_node_text(cap), caps[i]))
                    return true;
    return false;
}

static void check_shape(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *c)
{
    const struct bh_node *resources = bh_kube_child(k, at, c, "resources", BH_NODE_MAP);
    bh_kube_child(k, at, resources, "limits", BH_NODE_MAP);
    bh_kube_child(k, at, resources, "requests", BH_NODE_MAP);
    bh_kube_child(k, at, c, "securityContext", BH_NODE_MAP);
    bh_kube_child(k, at, c, "env", BH_NODE_SEQ);
    bh_kube_child(k, at, c, "volumeMounts", BH_NODE_SEQ);
}

bool bh_kube_containers_ask(struct bh_kube *k, const struct bh_kube_pod *pod)
{
    bool asks = false;
    for (size_t i = 0; i < N_LISTS; i++) {
        const struct bh_node *list = bh_kube_child(k, &pod->at, pod->spec, lists[i], BH_NODE_SEQ);
        if (!list)
            continue;
        BH_EACH_ITEM (c, list) {
            if (c->kind != BH_NODE_MAP) {
                bh_diag_error(k->d, bh_kube_pos(&pod->at, c), "a container must be a map");
                continue;
            }
            check_shape(k, &pod->at, c);
            asks = asks || container_asks(c);
        }
    }
    return asks;
}

/* Any list of containers, however deep: what makes pods of another kind still calls it so. */
void bh_kube_look_inside(const struct bh_node *n, bool *ret_asks, bool *ret_privileged)
{
    if (n->kind == BH_NODE_SCALAR)
        return;
    for (size_t i = 0; n->kind == BH_NODE_MAP && i < N_LISTS; i++) {
        const struct bh_node *list = bh_node_get(n, lists[i]);
        if (list && list->kind == BH_NODE_SEQ)
            BH_EACH_ITEM (c, list) {
                *ret_asks = *ret_asks || container_asks(c);
                *ret_privileged = *ret_privileged || is_privileged(c);
            }
    }
    for (const struct bh_node *c = n->u.first; c; c = c->next)
        bh_kube_look_inside(c, ret_asks, ret_privileged);
}

/* ---- requests ---- */

struct ask {
    const char *resource;
    uint64_t together, at_start; /* of containers side by side; of the largest init container */
    struct bh_pos pos;
};

struct asks {
    struct ask at[ASKS_MAX];
    size_t n;
};

static struct ask *ask_for(struct asks *a, const char *resource, struct bh_pos pos)
{
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->at[i].resource, resource) == 0)
            return &a->at[i];
    if (a->n == ASKS_MAX)
        return NULL;
    a->at[a->n] = (struct ask){.resource = resource, .pos = pos};
    return &a->at[a->n++];
}

/* An init container that never ends is a sidecar and runs beside the others. */
static bool runs_beside(const struct bh_node *c, size_t list)
{
    return list != LIST_INIT || bh_str_eq(bh_node_text(bh_node_get(c, "restartPolicy")), "Always");
}

static void add_amount(struct bh_kube *k, const struct bh_kube_place *at, struct asks *asks,
                       const struct bh_node *key, const struct bh_node *value, bool beside)
{
    const char *text = bh_node_text(value);
    struct bh_err err;
    uint64_t milli;
    if (!text || bh_quantity_parse(text, &milli, &err) < 0) {
        bh_diag_error(k->d, bh_kube_pos(at, value), "`%s`: %.200s", key->u.text,
                      text ? err.msg : "a quantity is needed");
        return;
    }
    if (milli % 1000)
        bh_diag_note(k->d, bh_kube_pos(at, value),
                     "`%s` comes in whole numbers; Kubernetes refuses %.40s of it", key->u.text, text);
    struct ask *a = ask_for(asks, key->u.text, bh_kube_pos(at, key));
    if (!a) {
        bh_diag_note_once(k->d, bh_kube_pos(at, key),
                          "more than %d GPU resource names in one pod; the rest is passed "
                          "over",
                          ASKS_MAX);
    } else if (!beside) {
        a->at_start = milli > a->at_start ? milli : a->at_start;
    } else if (__builtin_add_overflow(a->together, milli, &a->together)) {
        a->together = UINT64_MAX;
    }
}

static void add_amounts(struct bh_kube *k, const struct bh_kube_place *at, struct asks *asks,
                        const struct bh_node *c, bool beside)
{
    const struct bh_node *limits = amounts_of(c, 0), *requests = amounts_of(c, 1);
    if (limits)
        BH_EACH_PAIR (key, value, limits)
            if (bh_kube_is_gpu(key->u.text))
                add_amount(k, at, asks, key, value, beside);
    if (!requests)
        return;
    BH_EACH_PAIR (key, value, requests) {
        if (!bh_kube_is_gpu(key->u.text))
            continue;
        const struct bh_node *limit = limits ? bh_node_get(limits, key->u.text) : NULL;
        if (!limit)
            add_amount(k, at, asks, key, value, beside);
        else if (!bh_str_eq(bh_node_text(limit), bh_node_text(value)))
            bh_diag_note(k->d, bh_kube_pos(at, value),
                         "the request and the limit of `%s` differ; Kubernetes refuses "
                         "the pod",
                         key->u.text);
    }
}

static void keep_asks(struct bh_kube *k, const struct asks *asks, struct bh_workload *w)
{
    for (size_t i = 0; i < asks->n; i++) {
        const struct ask *a = &asks->at[i];
        uint64_t milli = a->together > a->at_start ? a->together : a->at_start;
        if (milli == 0)
            continue;
        *bh_vec_push(&w->requests) = (struct bh_amount){bh_kube_keep(k, a->resource), milli, a->pos};
        if (!bh_kube_is_mig(a->resource) && __builtin_add_overflow(w->gpus_milli, milli, &w->gpus_milli))
            w->gpus_milli = UINT64_MAX;
    }
}

/* ---- what it may do ---- */

static const char *keep_env(struct bh_kube *k, const char *s)
{
    return bh_arena_strn(&k->p->arena, s, strnlen(s, ENV_TEXT_MAX));
}

static void read_env(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *c,
                     struct bh_workload *w)
{
    const struct bh_node *env = bh_node_get(c, "env");
    if (!env || env->kind != BH_NODE_SEQ)
        return;
    BH_EACH_ITEM (e, env) {
        const char *name = bh_node_text(bh_node_get(e, "name")),
                   *value = bh_node_text(bh_node_get(e, "value"));
        if (name && *name)
            *bh_vec_push(&w->env) =
                (struct bh_keyed){keep_env(k, name), value ? keep_env(k, value) : "", bh_kube_pos(at, e)};
    }
}

static void read_container(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *c,
                           struct bh_workload *w)
{
    static const char *const known[] = {
        "args",
        "command",
        "env",
        "envFrom",
        "image",
        "imagePullPolicy",
        "lifecycle",
        "livenessProbe",
        "name",
        "ports",
        "readinessProbe",
        "resizePolicy",
        "resources",
        "restartPolicy",
        "securityContext",
        "startupProbe",
        "stdin",
        "stdinOnce",
        "targetContainerName",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "tty",
        "volumeDevices",
        "volumeMounts",
        "workingDir",
        NULL,
    };
    bh_kube_note_unknown(k, at, c, known, "container");
    w->privileged = w->privileged || is_privileged(c);
    read_env(k, at, c, w);
}

static void take_image(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *c,
                       struct bh_workload *w)
{
    const struct bh_node *n = bh_node_get(c, "image");
    const char *text = bh_node_text(n);
    if (text && *text)
        w->image = (struct bh_text){bh_kube_keep(k, text), bh_kube_pos(at, n)};
}

void bh_kube_read_containers(struct bh_kube *k, const struct bh_kube_pod *pod, struct bh_workload *w)
{
    struct asks asks = {.n = 0};
    bool has_gpu_image = false;
    for (size_t i = 0; i < N_LISTS; i++) {
        const struct bh_node *list = list_of(pod, i);
        if (!list)
            continue;
        BH_EACH_ITEM (c, list) {
            if (c->kind != BH_NODE_MAP)
                continue;
            read_container(k, &pod->at, c, w);
            add_amounts(k, &pod->at, &asks, c, runs_beside(c, i));
            /* the image of the first container with a GPU, or of the first one when none has */
            bool gpu = container_asks(c);
            if (!w->image.s || (gpu && !has_gpu_image))
                take_image(k, &pod->at, c, w);
            has_gpu_image = has_gpu_image || gpu;
        }
    }
    keep_asks(k, &asks, w);
}

/* ---- what it can reach ---- */

/* A path of the host through which GPUs or another pool's MPS daemon can be reached. */
static bool reaches_gpu(const char *path)
{
    static const char *const patterns[] = {
        "/",
        "/dev",
        "/dev/",
        "/dev/nvidia*",
        "/dev/dri*",
        "/dev/vfio*",
        "/tmp/nvidia-mps*",
        "/run/nvidia",
        "/run/nvidia/",
        "/run/nvidia/mps*",
        "/var/run/nvidia",
        "/var/run/nvidia/",
        "/var/run/nvidia/mps*",
        "/proc/driver/nvidia*",
    };
    for (size_t i = 0; i < BH_COUNT_OF(patterns); i++)
        if (bh_str_glob(patterns[i], path))
            return true;
    return false;
}

static const struct bh_node *host_path(const struct bh_node *volume)
{
    const struct bh_node *n = bh_node_path(volume, "hostPath", "path", NULL);
    return n && n->kind == BH_NODE_SCALAR && n->n > 0 && n->n <= BH_KUBE_TEXT_MAX ? n : NULL;
}

void bh_kube_look_at_volumes(struct bh_kube *k, struct bh_kube_pod *pod)
{
    const struct bh_node *volumes = bh_kube_child(k, &pod->at, pod->spec, "volumes", BH_NODE_SEQ);
    if (!volumes)
        return;
    BH_EACH_ITEM (v, volumes) {
        const struct bh_node *path = host_path(v);
        if (!path || !reaches_gpu(path->u.text))
            continue;
        pod->reaches = true;
        /* the whole of / or /dev is for many things; only a path of the GPU's own says what it is for */
        pod->aims = pod->aims || strlen(path->u.text) > strlen("/dev/");
    }
}

void bh_kube_read_volumes(struct bh_kube *k, const struct bh_kube_pod *pod, struct bh_workload *w)
{
    const struct bh_node *volumes = bh_node_get(pod->spec, "volumes");
    if (!volumes || volumes->kind != BH_NODE_SEQ)
        return;
    BH_EACH_ITEM (v, volumes) {
        const struct bh_node *path = host_path(v);
        if (!path)
            continue;
        struct bh_text text = {bh_kube_keep(k, path->u.text), bh_kube_pos(&pod->at, path)};
        *bh_vec_push(&w->mounts) = text;
        if (reaches_gpu(text.s))
            *bh_vec_push(&w->devices) = text;
    }
}
