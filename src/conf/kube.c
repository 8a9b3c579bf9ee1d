/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube.c - Kubernetes manifests to the model: gathering documents, and the tools of the other parts.
 *
 * Every document of every file belongs to one cluster. What it cannot use is passed
 * over: kinds that never concern a GPU quietly, any other kind or field with one note,
 * which says so when pods in it ask for GPUs.
 */
#include "conf/kube_cluster.h"

#include "base/str.h"
#include "base/units.h"

#include <limits.h>

/*
 * Kinds by their API group (`core` has no name in manifests): Knative has a Service and Kyverno a
 * ClusterPolicy too. A document without an apiVersion is taken by its kind alone.
 */
struct kind {
    const char *name;
    const char *groups[3];
};

/* Kinds that are read. */
static const struct kind read_kinds[] = {
    {"ClusterPolicy", {"nvidia.com"}},
    {"ConfigMap", {"core"}},
    {"CronJob", {"batch"}},
    {"DaemonSet", {"apps", "extensions"}},
    {"Deployment", {"apps", "extensions"}},
    {"Job", {"batch"}},
    {"Namespace", {"core"}},
    {"NetworkPolicy", {"networking.k8s.io", "extensions"}},
    {"Node", {"core"}},
    {"Pod", {"core"}},
    {"PriorityClass", {"scheduling.k8s.io"}},
    {"ReplicaSet", {"apps", "extensions"}},
    {"ReplicationController", {"core"}},
    {"ResourceQuota", {"core"}},
    {"RuntimeClass", {"node.k8s.io"}},
    {"StatefulSet", {"apps"}},
};

/* Kinds that say nothing about GPUs: passed over without a word. */
static const struct kind quiet_kinds[] = {
    {"APIService", {"apiregistration.k8s.io"}},
    {"CSIDriver", {"storage.k8s.io"}},
    {"CSINode", {"storage.k8s.io"}},
    {"Certificate", {"cert-manager.io"}},
    {"ClusterIssuer", {"cert-manager.io"}},
    {"ClusterRole", {"rbac.authorization.k8s.io"}},
    {"ClusterRoleBinding", {"rbac.authorization.k8s.io"}},
    {"ControllerRevision", {"apps"}},
    {"CustomResourceDefinition", {"apiextensions.k8s.io"}},
    {"EndpointSlice", {"discovery.k8s.io"}},
    {"Endpoints", {"core"}},
    {"Event", {"core", "events.k8s.io"}},
    {"Gateway", {"gateway.networking.k8s.io", "networking.istio.io"}},
    {"HTTPRoute", {"gateway.networking.k8s.io"}},
    {"HorizontalPodAutoscaler", {"autoscaling"}},
    {"Ingress", {"networking.k8s.io", "extensions"}},
    {"IngressClass", {"networking.k8s.io"}},
    {"Issuer", {"cert-manager.io"}},
    {"Kustomization", {"kustomize.config.k8s.io", "kustomize.toolkit.fluxcd.io"}},
    {"Lease", {"coordination.k8s.io"}},
    {"LimitRange", {"core"}},
    {"MutatingWebhookConfiguration", {"admissionregistration.k8s.io"}},
    {"PersistentVolume", {"core"}},
    {"PersistentVolumeClaim", {"core"}},
    {"PodDisruptionBudget", {"policy"}},
    {"PodMonitor", {"monitoring.coreos.com"}},
    {"PrometheusRule", {"monitoring.coreos.com"}},
    {"Role", {"rbac.authorization.k8s.io"}},
    {"RoleBinding", {"rbac.authorization.k8s.io"}},
    {"Secret", {"core"}},
    {"Service", {"core"}},
    {"ServiceAccount", {"core"}},
    {"ServiceMonitor", {"monitoring.coreos.com"}},
    {"StorageClass", {"storage.k8s.io"}},
    {"ValidatingAdmissionPolicy", {"admissionregistration.k8s.io"}},
    {"ValidatingAdmissionPolicyBinding", {"admissionregistration.k8s.io"}},
    {"ValidatingWebhookConfiguration", {"admissionregistration.k8s.io"}},
    {"VolumeAttachment", {"storage.k8s.io"}},
    {"VolumeSnapshotClass", {"snapshot.storage.k8s.io"}},
};

static const char *const cluster_kinds[] = {"Namespace", "Node", "PriorityClass", "RuntimeClass",
                                            "ClusterPolicy"};

static bool among(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

/* Is it this group's, by its apiVersion `group/v1` or, of the core, `v1`? */
static bool in_group(const char *api, const char *group)
{
    size_t n = strlen(group);
    if (strcmp(group, "core") == 0)
        return !strchr(api, '/');
    return strncmp(api, group, n) == 0 && api[n] == '/';
}

/* api NULL: not written. */
static bool is_kind(const struct kind *list, size_t n, const char *name, const char *api)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) != 0)
            continue;
        for (size_t g = 0; api && g < BH_COUNT_OF(list[i].groups) && list[i].groups[g]; g++)
            if (in_group(api, list[i].groups[g]))
                return true;
        return !api;
    }
    return false;
}

struct bh_kube *bh_kube_new(struct bh_policy *p, struct bh_diags *d)
{
    struct bh_kube *k = bh_alloc(1, sizeof(*k));
    k->p = p;
    k->d = d;
    k->top_priority = INT64_MIN;
    k->default_priority = BH_NONE;
    return k;
}

void bh_kube_free(struct bh_kube *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->inner.n; i++) {
        bh_tree_fini(k->inner.at[i]);
        free(k->inner.at[i]);
    }
    bh_vec_fini(&k->inner);
    bh_vec_fini(&k->objects);
    bh_vec_fini(&k->configs);
    bh_vec_fini(&k->files);
    bh_vec_fini(&k->pods);
    bh_vec_fini(&k->choices);
    bh_map_fini(&k->choice_by_config);
    for (size_t i = 0; i < k->pins.n; i++)
        bh_vec_fini(&k->pins.at[i].nodes);
    bh_vec_fini(&k->pins);
    bh_vec_fini(&k->nodes);
    bh_map_fini(&k->plugin_choices);
    bh_vec_fini(&k->plugin_asked);
    bh_vec_fini(&k->passed);
    bh_map_fini(&k->passed_by_name);
    bh_map_fini(&k->namespaces);
    bh_map_fini(&k->priority_classes);
    bh_map_fini(&k->runtime_classes);
    bh_map_fini(&k->first_quotas);
    bh_map_fini(&k->tenants);
    bh_map_fini(&k->pool_names);
    bh_map_fini(&k->exposed);
    bh_map_fini(&k->implied);
    bh_arena_fini(&k->arena);
    free(k);
}

/* ---- tools ---- */

static const char *keep_cut(struct bh_arena *a, const char *s, size_t max)
{
    return bh_arena_strn(a, s, strnlen(s, max));
}

const char *bh_kube_keep(struct bh_kube *k, const char *s)
{
    return keep_cut(&k->p->arena, s, BH_KUBE_TEXT_MAX);
}

struct bh_kube_place bh_kube_place_of(const struct bh_kube_object *o)
{
    return (struct bh_kube_place){.file = o->file};
}

struct bh_pos bh_kube_pos(const struct bh_kube_place *at, const struct bh_node *n)
{
    if (at->fixed.line)
        return at->fixed;
    return (struct bh_pos){at->file, n->line + at->add_line, n->column + at->add_column};
}

const char *bh_kube_object_path(struct bh_kube *k, const struct bh_kube_object *o)
{
    if (among(o->kind, cluster_kinds, BH_COUNT_OF(cluster_kinds)))
        return bh_arena_printf(&k->p->arena, "%s/%s", o->kind, o->name);
    return bh_arena_printf(&k->p->arena, "%s/%s/%s", o->kind, o->ns, o->name);
}

const struct bh_node *bh_kube_child(struct bh_kube *k, const struct bh_kube_place *at,
                                    const struct bh_node *map, const char *key, enum bh_node_kind want)
{
    static const char *const kind_text[] = {"a single value", "a list", "a map"};
    const struct bh_node *n = map && map->kind == BH_NODE_MAP ? bh_node_get(map, key) : NULL;
    if (!n || (n->kind == BH_NODE_SCALAR && bh_node_is_null(n)))
        return NULL;
    if (n->kind != want) {
        bh_diag_error(k->d, bh_kube_pos(at, n), "`%s` must be %s, not %s", key, kind_text[want],
                      kind_text[n->kind]);
        return NULL;
    }
    return n;
}

void bh_kube_note_unknown(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *map,
                          const char *const *known, const char *where)
{
    BH_EACH_PAIR (key, value, map) {
        const char *text = bh_node_text(key);
        size_t i = 0;
        while (text && known[i] && strcmp(text, known[i]) != 0)
            i++;
        if (!text || !known[i])
            bh_diag_note_once(k->d, bh_kube_pos(at, key),
                              "`%.100s` in a %s is not understood and is passed over",
                              text ? text : "(no name)", where);
    }
}

bool bh_kube_number(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *n,
                    const char *what, uint64_t max, uint64_t *ret)
{
    struct bh_err err;
    if (n->kind == BH_NODE_SCALAR && bh_uint_parse(n->u.text, max, ret, &err) == 0)
        return true;
    bh_diag_error(k->d, bh_kube_pos(at, n), "`%.100s`: %.200s", what,
                  n->kind == BH_NODE_SCALAR ? err.msg : "a whole number is needed");
    return false;
}

bool bh_kube_uint(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *map,
                  const char *key, uint64_t max, uint64_t *ret)
{
    const struct bh_node *n = bh_kube_child(k, at, map, key, BH_NODE_SCALAR);
    return !n || bh_kube_number(k, at, n, key, max, ret);
}

/* What bears a GPU vendor's domain but is a network card, or an amount of memory or cores. */
static const char *const not_devices[] = {
    "*rdma*", "*mlnx*", "*hostdev*", "*sriov*", "*roce*", "*resibp*", "*gpumem*", "*gpucores*", "*priority*",
};

bool bh_kube_is_gpu(const char *resource)
{
    static const char *const vendors[] = {"nvidia.com/", "amd.com/gpu", "gpu.intel.com/", "habana.ai/gaudi"};
    if (strnlen(resource, BH_KUBE_NAME_MAX + 1) > BH_KUBE_NAME_MAX)
        return false;
    for (size_t i = 0; i < BH_COUNT_OF(vendors); i++) {
        if (!bh_str_starts(resource, vendors[i]))
            continue;
        for (size_t j = 0; j < BH_COUNT_OF(not_devices); j++)
            if (bh_str_glob(not_devices[j], resource))
                return false;
        return true;
    }
    return false;
}

bool bh_kube_is_mig(const char *resource)
{
    return bh_str_starts(resource, "nvidia.com/mig-");
}

const char *bh_kube_annotation(const struct bh_node *metadata, const char *key,
                               const struct bh_node **ret_node)
{
    static const char *const places[] = {"labels", "annotations"};
    for (size_t i = 0; metadata && i < BH_COUNT_OF(places); i++) {
        const struct bh_node *map = bh_node_get(metadata, places[i]);
        const struct bh_node *n = map && map->kind == BH_NODE_MAP ? bh_node_get(map, key) : NULL;
        const char *text = bh_node_text(n);
        if (text) {
            if (ret_node)
                *ret_node = n;
            return text;
        }
    }
    return NULL;
}

const char *bh_kube_line(struct bh_tree *t, uint32_t line, size_t *ret_n)
{
    bh_tree_comment(t, 1); /* makes the table of lines */
    if (!t->line_at || line == 0 || line > t->n_lines)
        return NULL;
    const char *at = t->text + t->line_at[line - 1];
    size_t left = t->n_text - t->line_at[line - 1];
    const char *end = memchr(at, '\n', left);
    *ret_n = end ? (size_t)(end - at) : left;
    return at;
}

/* ---- gathering ---- */

static void add_items(struct bh_kube *k, struct bh_tree *t, const struct bh_node *items, uint32_t file);

/* Kinds are gathered and named at the end, once each, with the worst that any object of the kind makes. */
static void pass_over(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *root,
                      const char *kind, const char *api)
{
    int n_group = api && strchr(api, '/') ? (int)strcspn(api, "/") : 0;
    const char *name = bh_arena_printf(&k->arena, "`%.100s`%s%.*s", kind, n_group ? " of " : "",
                                       n_group < 100 ? n_group : 100, api ? api : "");
    uint32_t i = bh_map_add(&k->passed_by_name, name, (uint32_t)k->passed.n);
    if (i == BH_MAP_NONE) {
        i = (uint32_t)k->passed.n;
        *bh_vec_push(&k->passed) = (struct bh_kube_passed){.name = name, .pos = bh_kube_pos(at, root)};
    }
    bh_kube_look_inside(root, &k->passed.at[i].asks, &k->passed.at[i].privileged);
    if (bh_str_ends(kind, "NetworkPolicy"))
        k->foreign_network = true;
}

static void name_passed(struct bh_kube *k)
{
    for (size_t i = 0; i < k->passed.n; i++) {
        const struct bh_kube_passed *p = &k->passed.at[i];
        bh_diag_note(k->d, p->pos, "kind %s is not understood and is passed over%s", p->name,
                     p->asks && p->privileged
                         ? "; it makes privileged pods that ask for GPUs, which are not judged"
                     : p->asks       ? "; it makes pods that ask for GPUs, which are not judged"
                     : p->privileged ? "; it makes privileged pods, which are not judged"
                                     : "");
    }
}

static void add_object(struct bh_kube *k, struct bh_tree *t, const struct bh_node *root, uint32_t file,
                       bool in_list)
{
    const struct bh_kube_place at = {.file = file};
    const char *kind = bh_node_text(bh_node_get(root, "kind"));
    const char *api = bh_node_text(bh_node_get(root, "apiVersion"));
    size_t n_kind = kind ? strnlen(kind, BH_KUBE_NAME_MAX + 1) : 0;

    if (!kind || n_kind > BH_KUBE_NAME_MAX) {
        bh_diag_note(k->d, bh_kube_pos(&at, root), "a document without a `kind` is passed over");
        return;
    }
    if (strcmp(kind, "List") == 0 || (bh_str_ends(kind, "List") && bh_node_get(root, "items"))) {
        const struct bh_node *items = bh_kube_child(k, &at, root, "items", BH_NODE_SEQ);
        if (items)
            add_items(k, t, items, file);
        return;
    }
    if (is_kind(quiet_kinds, BH_COUNT_OF(quiet_kinds), kind, api))
        return;
    if (!is_kind(read_kinds, BH_COUNT_OF(read_kinds), kind, api)) {
        pass_over(k, &at, root, kind, api);
        return;
    }

    const struct bh_node *metadata = bh_kube_child(k, &at, root, "metadata", BH_NODE_MAP);
    const char *name = metadata ? bh_node_text(bh_node_get(metadata, "name")) : NULL;
    const char *ns = metadata ? bh_node_text(bh_node_get(metadata, "namespace")) : NULL;
    if (!name && metadata)
        name = bh_node_text(bh_node_get(metadata, "generateName"));
    if (!name || !*name)
        bh_diag_note(k->d, bh_kube_pos(&at, root),
                     "a %s without `metadata.name`; it is called `unnamed` here", kind);
    *bh_vec_push(&k->objects) = (struct bh_kube_object){
        .root = root,
        .tree = t,
        .kind = kind,
        .file = file,
        .in_list = in_list,
        .name = name && *name ? keep_cut(&k->arena, name, BH_KUBE_NAME_MAX) : "unnamed",
        .ns = ns && *ns ? keep_cut(&k->arena, ns, BH_KUBE_NAME_MAX) : "default",
    };
}

static void add_items(struct bh_kube *k, struct bh_tree *t, const struct bh_node *items, uint32_t file)
{
    const struct bh_kube_place at = {.file = file};
    BH_EACH_ITEM (item, items) {
        if (item->kind == BH_NODE_MAP)
            add_object(k, t, item, file, true);
        else
            bh_diag_error(k->d, bh_kube_pos(&at, item), "an item of a list must be an object");
    }
}

/* A device-plugin or mig-parted file as the tools themselves read it: no kind, no metadata. */
static bool is_bare_config(const struct bh_node *root)
{
    return !bh_node_get(root, "kind") &&
           (bh_node_get(root, "sharing") || bh_node_get(root, "flags") || bh_node_get(root, "mig-configs"));
}

void bh_kube_add(struct bh_kube *k, struct bh_tree *t, uint32_t file)
{
    for (size_t i = 0; i < t->docs.n; i++) {
        const struct bh_node *root = t->docs.at[i];
        const struct bh_kube_place at = {.file = file};
        if (root->kind != BH_NODE_MAP)
            bh_diag_note(k->d, bh_kube_pos(&at, root), "a document that is no object is passed over");
        else if (is_bare_config(root))
            *bh_vec_push(&k->configs) = (struct bh_kube_config){.root = root, .place = at};
        else
            add_object(k, t, root, file, false);
    }
}

void bh_kube_name(struct bh_kube *k, uint32_t file, const char *path)
{
    *bh_vec_push(&k->files) = (struct bh_kube_file){file, bh_arena_str(&k->arena, path)};
}

/* ---- classes ---- */

static bool value_parse(const char *s, int64_t *ret)
{
    uint64_t v;
    bool negative = *s == '-';
    if (bh_uint_parse(s + negative, INT32_MAX, &v, NULL) < 0)
        return false;
    *ret = negative ? -(int64_t)v : (int64_t)v;
    return true;
}

int64_t bh_kube_priority_value(const struct bh_kube_object *priority_class)
{
    const char *text = bh_node_text(bh_node_get(priority_class->root, "value"));
    int64_t value;
    return text && value_parse(text, &value) ? value : 0;
}

static void read_priority_class(struct bh_kube *k, uint32_t index)
{
    static const char *const known[] = {"apiVersion",    "kind",        "metadata",         "value",
                                        "globalDefault", "description", "preemptionPolicy", NULL};
    const struct bh_kube_object *o = &k->objects.at[index];
    struct bh_kube_place at = bh_kube_place_of(o);
    const struct bh_node *n = bh_kube_child(k, &at, o->root, "value", BH_NODE_SCALAR);
    int64_t value = 0;

    bh_kube_note_unknown(k, &at, o->root, known, "PriorityClass");
    if (n && !value_parse(n->u.text, &value))
        bh_diag_error(k->d, bh_kube_pos(&at, n), "`value` must be a whole number");
    if (!bh_str_starts(o->name, "system-") && value > k->top_priority)
        k->top_priority = value;
    if (bh_node_bool(bh_node_get(o->root, "globalDefault")) == 1)
        k->default_priority = index;
    bh_map_add(&k->priority_classes, o->name, index);
}

static void index_objects(struct bh_kube *k)
{
    static const char *const runtime_known[] = {"apiVersion", "kind",       "metadata", "handler",
                                                "overhead",   "scheduling", NULL};
    for (size_t i = 0; i < k->objects.n; i++) {
        const struct bh_kube_object *o = &k->objects.at[i];
        struct bh_kube_place at = bh_kube_place_of(o);
        if (strcmp(o->kind, "Namespace") == 0) {
            bh_map_add(&k->namespaces, o->name, (uint32_t)i);
        } else if (strcmp(o->kind, "PriorityClass") == 0) {
            read_priority_class(k, (uint32_t)i);
        } else if (strcmp(o->kind, "RuntimeClass") == 0) {
            bh_kube_note_unknown(k, &at, o->root, runtime_known, "RuntimeClass");
            bh_map_add(&k->runtime_classes, o->name, (uint32_t)i);
        } else if (strcmp(o->kind, "Node") == 0) {
            *bh_vec_push(&k->nodes) = (uint32_t)i;
        } else if (strcmp(o->kind, "ResourceQuota") == 0) {
            bh_map_add(&k->first_quotas, o->ns, (uint32_t)i);
        }
    }
}

void bh_kube_finish(struct bh_kube *k)
{
    name_passed(k);
    index_objects(k);
    bh_kube_find_configs(k);
    bh_kube_read_configs(k);
    bh_kube_find_pods(k);
    bh_kube_name_tenants(k);
    bh_kube_read_quotas(k);
    bh_kube_read_pods(k);
    bh_kube_place_pods(k);
    bh_kube_read_network(k);
}
