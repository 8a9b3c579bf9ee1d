/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_pod.c - pods, and what makes them, become workloads.
 *
 * A workload is one pod as the scheduler sees it: `requests` and `gpus_milli` are of one pod,
 * whatever the replica count (which is in `pods`), because replicas come and go independently. The
 * exception is `gpus_milli` of an indexed Job of several pods: its members wait for each other, so their GPUs are one
 * request and it needs a gang. A single pod gets all of its GPUs or none: it is its own gang.
 *
 * MIG slices are in `requests` but not in `gpus_milli`, which counts whole devices (or their replicas).
 */
#include "conf/kube_cluster.h"

#include "base/str.h"

enum { PODS_MAX = 1 << 20, PRIORITY_HIGH_FROM = 1000000 };

static const struct maker {
    const char *kind;
    const char *outer,
        *inner; /* from the object's spec to the pod's metadata and spec; NULL: it is the pod's */
} makers[] = {
    {"Pod", NULL, NULL},
    {"Deployment", NULL, "template"},
    {"ReplicaSet", NULL, "template"},
    {"ReplicationController", NULL, "template"},
    {"StatefulSet", NULL, "template"},
    {"DaemonSet", NULL, "template"},
    {"Job", NULL, "template"},
    {"CronJob", "jobTemplate", "template"},
};

static const struct maker *maker_of(const char *kind)
{
    for (size_t i = 0; i < BH_COUNT_OF(makers); i++)
        if (strcmp(makers[i].kind, kind) == 0)
            return &makers[i];
    return NULL;
}

bool bh_kube_makes_pods(const char *kind)
{
    return maker_of(kind) != NULL;
}

/* ---- finding ---- */

/* The operator's own pods reach for devices because that is their work; they are no tenant's. */
static bool is_platform(const char *ns)
{
    static const char *const patterns[] = {"kube-system",          "gpu-operator",  "nvidia-gpu-operator",
                                           "nvidia-device-plugin", "nvidia-system", "openshift-*"};
    for (size_t i = 0; i < BH_COUNT_OF(patterns); i++)
        if (bh_str_glob(patterns[i], ns))
            return true;
    return false;
}

/* What pods an object makes; false when it is not in a shape that could be read, which is said. */
static bool pod_find(struct bh_kube *k, const struct bh_kube_object *o, struct bh_kube_pod *pod)
{
    const struct maker *m = maker_of(o->kind);
    const struct bh_node *holder = o->root;

    *pod = (struct bh_kube_pod){.o = o, .at = bh_kube_place_of(o)};
    if (m->inner) {
        pod->top = bh_kube_child(k, &pod->at, holder, "spec", BH_NODE_MAP);
        if (pod->top && m->outer) {
            holder = bh_kube_child(k, &pod->at, pod->top, m->outer, BH_NODE_MAP);
            pod->top = bh_kube_child(k, &pod->at, holder, "spec", BH_NODE_MAP);
        }
        holder = bh_kube_child(k, &pod->at, pod->top, m->inner, BH_NODE_MAP);
    }
    pod->spec = bh_kube_child(k, &pod->at, holder, "spec", BH_NODE_MAP);
    /* an object's own metadata was looked at when it was added */
    pod->metadata = m->inner ? bh_kube_child(k, &pod->at, holder, "metadata", BH_NODE_MAP) : NULL;
    return pod->spec != NULL;
}

void bh_kube_find_pods(struct bh_kube *k)
{
    for (size_t i = 0; i < k->objects.n; i++) {
        const struct bh_kube_object *o = &k->objects.at[i];
        struct bh_kube_pod pod;
        if (!bh_kube_makes_pods(o->kind) || !pod_find(k, o, &pod))
            continue;
        bh_kube_look_at_volumes(k, &pod);
        pod.asks = bh_kube_containers_ask(k, &pod) || (pod.aims && !is_platform(o->ns));
        *bh_vec_push(&k->pods) = pod;
    }
}

/* ---- priority ---- */

/* Is `word` one of the words of a name like `gpu-low-prio`? */
static bool has_word(const char *name, const char *word)
{
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, "-._");
        if (n == strlen(word) && strncmp(p, word, n) == 0)
            return strncmp(p + n, "-latency", 8) != 0; /* low latency is the opposite of low priority */
        p += n + (p[n] != '\0');
    }
    return false;
}

/* Numbers mean something only beside each other, so names and the extremes decide. */
static enum bh_priority priority_of(const struct bh_kube *k, const char *name, int64_t value)
{
    if (bh_str_starts(name, "system-"))
        return BH_PRIORITY_CRITICAL;
    if (value < 0 || has_word(name, "low"))
        return BH_PRIORITY_LOW;
    if (has_word(name, "high") || has_word(name, "critical"))
        return BH_PRIORITY_HIGH;
    return value >= PRIORITY_HIGH_FROM && value == k->top_priority ? BH_PRIORITY_HIGH : BH_PRIORITY_NORMAL;
}

static void read_priority(struct bh_kube *k, const struct bh_kube_pod *pod, struct bh_workload *w)
{
    const struct bh_node *n = bh_kube_child(k, &pod->at, pod->spec, "priorityClassName", BH_NODE_SCALAR);
    bool named = n && *n->u.text;
    uint32_t index = named ? bh_map_find(&k->priority_classes, n->u.text) : k->default_priority;
    const char *name = named ? n->u.text : "";
    int64_t value = 0;

    if (!named && index == BH_NONE)
        return;
    if (index != BH_MAP_NONE) {
        name = k->objects.at[index].name;
        value = bh_kube_priority_value(&k->objects.at[index]);
    }
    w->has_priority = true;
    w->priority = (uint8_t)priority_of(k, name, value);
}

/* ---- tier ---- */

static enum bh_tier tier_of(const char *handler)
{
    static const struct {
        const char *pattern;
        enum bh_tier tier;
    } table[] = {
        {"kata*-snp*", BH_TIER_CVM},  {"kata*-tdx*", BH_TIER_CVM}, {"kata*-cc*", BH_TIER_CVM},
        {"kata*-coco*", BH_TIER_CVM}, {"kata*", BH_TIER_VM},       {"gvisor*", BH_TIER_SANDBOX},
        {"runsc*", BH_TIER_SANDBOX},
    };
    for (size_t i = 0; i < BH_COUNT_OF(table); i++)
        if (bh_str_glob(table[i].pattern, handler))
            return table[i].tier;
    return BH_TIER_CONTAINER;
}

static void read_tier(struct bh_kube *k, const struct bh_kube_pod *pod, struct bh_workload *w)
{
    const struct bh_node *n = bh_kube_child(k, &pod->at, pod->spec, "runtimeClassName", BH_NODE_SCALAR);
    if (!n || n->n == 0 || n->n > BH_KUBE_NAME_MAX)
        return;
    uint32_t index = bh_map_find(&k->runtime_classes, n->u.text);
    const char *handler =
        index == BH_MAP_NONE ? NULL : bh_node_text(bh_node_get(k->objects.at[index].root, "handler"));
    w->has_tier = true;
    w->tier = (uint8_t)tier_of(handler && strnlen(handler, BH_KUBE_NAME_MAX) < BH_KUBE_NAME_MAX ? handler
                                                                                                : n->u.text);
}

/* ---- gangs ---- */

static bool is_gang_scheduled(struct bh_kube *k, const struct bh_kube_pod *pod)
{
    static const char *const schedulers[] = {"volcano", "kai-scheduler", "runai-scheduler"};
    static const char *const keys[] = {
        "scheduling.k8s.io/group-name",
        "scheduling.volcano.sh/group-name",
        "scheduling.x-k8s.io/pod-group",
        "pod-group.scheduling.sigs.k8s.io",
        "pod-group.scheduling.sigs.k8s.io/name",
        "kai.scheduler/queue",
        "kueue.x-k8s.io/queue-name",
        "kueue.x-k8s.io/pod-group-name",
        "yunikorn.apache.org/task-group-name",
    };
    const struct bh_node *own = bh_node_get(pod->o->root, "metadata");
    const struct bh_node *n = bh_kube_child(k, &pod->at, pod->spec, "schedulerName", BH_NODE_SCALAR);
    for (size_t i = 0; n && i < BH_COUNT_OF(schedulers); i++)
        if (strcmp(n->u.text, schedulers[i]) == 0)
            return true;
    for (size_t i = 0; i < BH_COUNT_OF(keys); i++)
        if (bh_kube_annotation(own, keys[i], NULL) || bh_kube_annotation(pod->metadata, keys[i], NULL))
            return true;
    return false;
}

/* How many pods must run together for any of them to get on. */
static uint64_t members_of(struct bh_kube *k, const struct bh_kube_pod *pod, struct bh_workload *w)
{
    uint64_t members = 1;
    const struct bh_node *n = pod->top ? bh_node_get(pod->top, "parallelism") : NULL;
    if (!n || !bh_kube_uint(k, &pod->at, pod->top, "parallelism", PODS_MAX, &members))
        return 1;
    if (!bh_str_eq(bh_node_text(bh_node_get(pod->top, "completionMode")), "Indexed") || members < 2)
        return 1;
    w->gang_pos = bh_kube_pos(&pod->at, n);
    return members;
}

static void read_gang(struct bh_kube *k, const struct bh_kube_pod *pod, struct bh_workload *w)
{
    uint64_t members = members_of(k, pod, w);
    w->gang = members == 1 || is_gang_scheduled(k, pod);
    if (__builtin_mul_overflow(w->gpus_milli, members, &w->gpus_milli))
        w->gpus_milli = UINT64_MAX;
}

/* How many pods of it run side by side. What belongs to another object is counted there. */
static uint64_t pods_at_once(struct bh_kube *k, const struct bh_kube_pod *pod)
{
    uint64_t n = 1, completions = PODS_MAX;
    if (bh_node_path(pod->o->root, "metadata", "ownerReferences", NULL) ||
        strcmp(pod->o->kind, "DaemonSet") == 0)
        return 0;
    if (!pod->top)
        return 1;
    bool job = bh_str_ends(pod->o->kind, "Job");
    if (!bh_kube_uint(k, &pod->at, pod->top, job ? "parallelism" : "replicas", PODS_MAX, &n) ||
        (job && !bh_kube_uint(k, &pod->at, pod->top, "completions", PODS_MAX, &completions)))
        return 0;
    return n < completions ? n : completions;
}

/* ---- the whole ---- */

static const char *const top_known[] = {
    "replicas",
    "selector",
    "template",
    "strategy",
    "minReadySeconds",
    "revisionHistoryLimit",
    "paused",
    "progressDeadlineSeconds",
    "serviceName",
    "podManagementPolicy",
    "updateStrategy",
    "volumeClaimTemplates",
    "persistentVolumeClaimRetentionPolicy",
    "ordinals",
    "parallelism",
    "completions",
    "completionMode",
    "backoffLimit",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
    "suspend",
    "manualSelector",
    "podFailurePolicy",
    "podReplacementPolicy",
    "successPolicy",
    "managedBy",
    NULL,
};

/* resourceClaims is not among them: what a claim allocates is not read, and that is worth a note. */
static const char *const spec_known[] = {
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "containers",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "ephemeralContainers",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostname",
    "imagePullSecrets",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
    NULL,
};

static void read_pod(struct bh_kube *k, const struct bh_kube_pod *pod)
{
    const struct bh_kube_object *o = pod->o;
    const struct bh_node *ns = bh_node_path(o->root, "metadata", "namespace", NULL);
    struct bh_workload *w = bh_policy_add_workload(k->p);

    w->source = BH_SOURCE_KUBERNETES;
    w->pos = bh_kube_pos(&pod->at, o->root);
    w->name = bh_kube_keep(k, o->name);
    w->object = bh_kube_object_path(k, o);
    w->tenant_name = (struct bh_text){bh_kube_keep(k, o->ns), bh_kube_pos(&pod->at, ns ? ns : o->root)};
    w->checkpointable = BH_FACT_UNKNOWN;
    if (pod->top)
        bh_kube_note_unknown(k, &pod->at, pod->top, top_known, "workload spec");
    bh_kube_note_unknown(k, &pod->at, pod->spec, spec_known, "pod spec");
    bh_kube_child(k, &pod->at, pod->spec, "tolerations", BH_NODE_SEQ); /* only its shape is looked at */
    w->host_pid = bh_node_bool(bh_node_get(pod->spec, "hostPID")) == 1;
    w->host_ipc = bh_node_bool(bh_node_get(pod->spec, "hostIPC")) == 1;
    w->host_network = bh_node_bool(bh_node_get(pod->spec, "hostNetwork")) == 1;
    bh_kube_read_containers(k, pod, w);
    bh_kube_read_volumes(k, pod, w);
    read_priority(k, pod, w);
    read_tier(k, pod, w);
    read_gang(k, pod, w);
    w->pods = pods_at_once(k, pod);
    bh_kube_read_pin(k, pod, bh_vec_push(&k->pins));
}

/* A tenant's pod that wants no GPU and cannot get at one is somebody else's concern. */
void bh_kube_read_pods(struct bh_kube *k)
{
    for (size_t i = 0; i < k->pods.n; i++) {
        const struct bh_kube_pod *pod = &k->pods.at[i];
        if ((pod->asks || pod->reaches) && bh_map_find(&k->tenants, pod->o->ns) != BH_MAP_NONE)
            read_pod(k, pod);
    }
}
