/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_cluster.h - what the parts of the Kubernetes reader share. Private to src/conf/kube*.c.
 *
 * Documents are only gathered while files are added; everything is decided in
 * bh_kube_finish, because a quota in one file is judged against what a ConfigMap in
 * another exposes. The order there: classes and namespaces are indexed, configurations
 * become pools, quotas and pods name the tenants, pods become workloads.
 *
 * Text that came from a file is cut to BH_KUBE_TEXT_MAX when it is kept: an alias can
 * repeat one long scalar many times, and the model must stay linear in the file's size.
 */
#ifndef BH_CONF_KUBE_CLUSTER_H
#define BH_CONF_KUBE_CLUSTER_H

#include "base/map.h"
#include "conf/read.h"

enum {
    BH_KUBE_NAME_MAX = 253, /* what Kubernetes allows */
    BH_KUBE_TEXT_MAX = 1024,
    BH_KUBE_DATA_MAX = 1 << 20,  /* one ConfigMap value; the API server's own limit */
    BH_KUBE_INNER_MAX = 64 << 20 /* of all texts inside ConfigMaps together */
};

/* Where a node's own line and column are in the file: they differ for a text inside a ConfigMap. */
struct bh_kube_place {
    uint32_t file, add_line, add_column;
    struct bh_pos
        fixed; /* line not 0: the text's lines are not the file's lines, so everything stands here */
};

struct bh_kube_object {
    const struct bh_node *root;
    struct bh_tree *tree;
    const char *kind, *name, *ns; /* ns: `default` when not written */
    uint32_t file;
    bool in_list; /* comments after it may belong to the next item */
};

/* A device-plugin or mig-parted configuration, wherever it stood. */
struct bh_kube_config {
    const struct bh_node *root;
    struct bh_kube_place place;
    struct bh_pos pos; /* of the data key; of a bare file: unset */
    const char *name;  /* what its pools are called after */
    const char *key;   /* of the data; NULL: a bare file */
    const char *
        map; /* the ConfigMap or ClusterPolicy it stands in, one pointer for all its keys; NULL: a bare file */
    bool idle;          /* nodes choose others of the same ConfigMap */
    const char *object; /* `ConfigMap/gpu-operator/time-slicing-config#any` */
};

struct bh_kube_file {
    uint32_t file;
    const char *path;
};

/* A mig-parted configuration that a node (or the operator's default) asks for. */
struct bh_kube_choice {
    const char *config;
    struct bh_pos pos; /* of the first one that asks */
    uint64_t models;   /* bit i: a node with model i of the catalogue asks for it */
    bool any_model;    /* one asks whose model is not known */
    bool known;        /* some file has it */
};

/* Where a workload's pods may run: nodes in ascending order, none when they may run anywhere. */
struct bh_kube_pin {
    BH_VEC(const char *) nodes; /* borrowed from the documents */
    struct bh_pos pos;
};

/* A pod, or the template of what makes pods. */
struct bh_kube_pod {
    const struct bh_kube_object *o;
    struct bh_kube_place at;
    const struct bh_node *spec;     /* of the pod */
    const struct bh_node *metadata; /* of the template; NULL: none, or a bare Pod, which has its object's */
    const struct bh_node *top;      /* spec of what decides how many there are; NULL for a bare Pod */
    bool asks;                      /* for a GPU, by request or by a volume that aims at one */
    bool reaches, aims;             /* a volume holds a GPU's device nodes; it was made for nothing else */
};

/* A kind that is not understood, and whether pods that matter are made by it. */
struct bh_kube_passed {
    const char *name; /* `Service` of serving.knative.dev */
    struct bh_pos pos;
    bool asks, privileged;
};

struct bh_kube {
    struct bh_policy *p;
    struct bh_diags *d;
    struct bh_arena arena; /* names that only the reader needs */
    BH_VEC(struct bh_kube_object) objects;
    BH_VEC(struct bh_kube_config) configs;
    BH_VEC(struct bh_kube_file) files;
    BH_VEC(struct bh_tree *) inner;  /* trees of the texts inside ConfigMaps */
    BH_VEC(struct bh_kube_pod) pods; /* in the order of their objects */
    BH_VEC(struct bh_kube_choice) choices;
    struct bh_map choice_by_config;
    struct bh_map plugin_choices; /* keys of device-plugin ConfigMaps that nodes ask for -> plugin_asked */
    bh_text_vec plugin_asked;
    BH_VEC(uint32_t) nodes;          /* the Node objects */
    BH_VEC(struct bh_kube_pin) pins; /* one for each workload of the policy */
    size_t pin_work, pinned;         /* labels looked at to find out where pods may run; names found */
    size_t inner_bytes;
    struct bh_map namespaces, priority_classes, runtime_classes; /* name -> object */
    struct bh_map first_quotas;                                  /* namespace -> its first ResourceQuota */
    struct bh_map tenants;                                       /* namespace -> tenant */
    struct bh_map pool_names, exposed;                           /* pool name, resource name -> pool */
    struct bh_map implied;     /* `cluster`, `mig` -> the pool that only pods speak of */
    int64_t top_priority;      /* highest value of a PriorityClass of the users' own */
    uint32_t default_priority; /* the PriorityClass with globalDefault, or BH_NONE */
    uint8_t strategy;          /* enum bh_strategy, the first one stated */
    BH_VEC(struct bh_kube_passed) passed;
    struct bh_map passed_by_name;
    bool foreign_network; /* a network policy of a kind that is not understood was seen */
};

/* ---- kube.c: the small tools of all parts ---- */
struct bh_kube_place bh_kube_place_of(const struct bh_kube_object *o);
struct bh_pos bh_kube_pos(const struct bh_kube_place *at, const struct bh_node *n);
const char *bh_kube_keep(struct bh_kube *k, const char *s); /* a copy in the policy's arena */
const char *bh_kube_object_path(struct bh_kube *k,
                                const struct bh_kube_object *o); /* `Deployment/team-a/web` */
/* A map's value, NULL when absent or null; an error when it is of another kind than wanted. */
const struct bh_node *bh_kube_child(struct bh_kube *k, const struct bh_kube_place *at,
                                    const struct bh_node *map, const char *key, enum bh_node_kind want);
/* Name once each key of `map` that is not among known (NULL-terminated). where: `Pod spec`. */
void bh_kube_note_unknown(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *map,
                          const char *const *known, const char *where);
/* A whole number from 0 to max; an error and false when it is something else. */
bool bh_kube_number(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *n,
                    const char *what, uint64_t max, uint64_t *ret);
/* The same of map[key]. *ret stays when absent. */
bool bh_kube_uint(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *map,
                  const char *key, uint64_t max, uint64_t *ret);
int64_t bh_kube_priority_value(const struct bh_kube_object *priority_class); /* 0 when not a number */
bool bh_kube_is_gpu(const char *resource); /* a device that computes, by its resource name */
bool bh_kube_is_mig(const char *resource); /* `nvidia.com/mig-...` */
const char *bh_kube_annotation(const struct bh_node *metadata, const char *key,
                               const struct bh_node **ret_node);
/* A line of the outer file, without its end. NULL: there is none. */
const char *bh_kube_line(struct bh_tree *t, uint32_t line, size_t *ret_n);

/* ---- kube_tenant.c: namespaces, quotas, network ---- */
void bh_kube_name_tenants(struct bh_kube *k);
void bh_kube_read_quotas(struct bh_kube *k);
void bh_kube_read_network(struct bh_kube *k);

/* ---- kube_plugin.c: device plugin and operator configuration; mig-parted ---- */
void bh_kube_find_configs(struct bh_kube *k);
void bh_kube_read_configs(struct bh_kube *k);
struct bh_pool *bh_kube_add_pool(struct bh_kube *k, const char *name, const char *object, struct bh_pos pos);
void bh_kube_expose(struct bh_kube *k, uint32_t pool, const char *resource, struct bh_pos pos);

/* ---- kube_mig.c ---- */
void bh_kube_choose_mig(struct bh_kube *k, const char *config, const char *product,
                        struct bh_pos pos); /* product NULL: unknown */
void bh_kube_read_mig(struct bh_kube *k, const struct bh_kube_config *c);
void bh_kube_note_unknown_layouts(struct bh_kube *k); /* asked for, and no file has them */

/* ---- kube_pin.c: which nodes a pod is bound to ---- */
void bh_kube_read_pin(struct bh_kube *k, const struct bh_kube_pod *pod, struct bh_kube_pin *ret);

/* ---- kube_place.c: which pool a workload uses ---- */
void bh_kube_place_pods(struct bh_kube *k);

/* ---- kube_pod.c, kube_container.c: pods and what makes them ---- */
bool bh_kube_makes_pods(const char *kind);
void bh_kube_find_pods(struct bh_kube *k);
void bh_kube_read_pods(struct bh_kube *k);
/* Does any container want a GPU? Says what is wrong with their shape, once. */
bool bh_kube_containers_ask(struct bh_kube *k, const struct bh_kube_pod *pod);
void bh_kube_look_at_volumes(struct bh_kube *k, struct bh_kube_pod *pod); /* fills reaches and aims */
void bh_kube_look_inside(const struct bh_node *n, bool *ret_asks, bool *ret_privileged);
void bh_kube_read_containers(struct bh_kube *k, const struct bh_kube_pod *pod, struct bh_workload *w);
void bh_kube_read_volumes(struct bh_kube *k, const struct bh_kube_pod *pod, struct bh_workload *w);

#endif
