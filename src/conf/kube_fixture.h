/* SPDX-License-Identifier: Apache-2.0 */
/* kube_fixture.h - for the tests of the Kubernetes reader: texts in, the model and what was said out. */
#ifndef BH_CONF_KUBE_FIXTURE_H
#define BH_CONF_KUBE_FIXTURE_H

#include "base/test.h"
#include "conf/read.h"

enum { FILES_MAX = 4 };

static struct bh_policy policy;
static struct bh_diags diags;
static struct bh_tree trees[FILES_MAX];
static size_t n_files;

static inline void forget(void)
{
    for (size_t i = 0; i < n_files; i++)
        bh_tree_fini(&trees[i]);
    bh_policy_fini(&policy);
    bh_diags_fini(&diags);
    policy = (struct bh_policy){0};
    n_files = 0;
}

/* Read the texts as the files of one cluster. False: one of them is not YAML. */
static inline bool load(const char *const *texts, size_t n, const char *path)
{
    struct bh_tree_error why;
    forget();
    bh_policy_init(&policy, BH_SOURCE_KUBERNETES);
    struct bh_kube *k = bh_kube_new(&policy, &diags);
    for (size_t i = 0; i < n; i++) {
        if (bh_tree_parse(&trees[i], texts[i], strlen(texts[i]), &why) < 0) {
            printf("# %u:%u: %s\n", why.line, why.column, why.message);
            bh_kube_free(k);
            return false;
        }
        n_files = i + 1;
        bh_kube_add(k, &trees[i], (uint32_t)i);
    }
    if (path)
        bh_kube_name(k, 0, path);
    bh_kube_finish(k);
    bh_kube_free(k);
    return true;
}

static inline bool read1(const char *text)
{
    return load(&text, 1, NULL);
}

static inline const struct bh_diag *diag_with(const char *words)
{
    for (size_t i = 0; i < diags.at.n; i++)
        if (strstr(diags.at.at[i].message, words))
            return &diags.at.at[i];
    return NULL;
}

static inline bool is_at(struct bh_pos pos, uint32_t line, uint32_t column)
{
    if (pos.line == line && pos.column == column)
        return true;
    printf("# at %u:%u, not at %u:%u\n", pos.line, pos.column, line, column);
    return false;
}

static inline const struct bh_tenant *tenant(const char *name)
{
    for (size_t i = 0; i < policy.tenants.n; i++)
        if (strcmp(policy.tenants.at[i].name, name) == 0)
            return &policy.tenants.at[i];
    return NULL;
}

static inline const struct bh_pool *pool(const char *name)
{
    for (size_t i = 0; i < policy.pools.n; i++)
        if (strcmp(policy.pools.at[i].name, name) == 0)
            return &policy.pools.at[i];
    return NULL;
}

static inline const struct bh_workload *workload(const char *name)
{
    for (size_t i = 0; i < policy.workloads.n; i++)
        if (strcmp(policy.workloads.at[i].name, name) == 0)
            return &policy.workloads.at[i];
    return NULL;
}

/* The operator's own example of what not to do: whole names for shares, and no word against asking for two. */
static const char time_slicing[] = "apiVersion: v1\n"                            /* 1 */
                                   "kind: ConfigMap\n"                           /* 2 */
                                   "metadata:\n"                                 /* 3 */
                                   "  name: time-slicing-config\n"               /* 4 */
                                   "  namespace: gpu-operator\n"                 /* 5 */
                                   "data:\n"                                     /* 6 */
                                   "  any: |-\n"                                 /* 7 */
                                   "    version: v1\n"                           /* 8 */
                                   "    flags:\n"                                /* 9 */
                                   "      migStrategy: none\n"                   /* 10 */
                                   "    sharing:\n"                              /* 11 */
                                   "      timeSlicing:\n"                        /* 12 */
                                   "        renameByDefault: false\n"            /* 13 */
                                   "        failRequestsGreaterThanOne: false\n" /* 14 */
                                   "        resources:\n"                        /* 15 */
                                   "          - name: nvidia.com/gpu\n"          /* 16 */
                                   "            replicas: 4\n";                  /* 17 */

#define POD(spec) "kind: Pod\nmetadata: {name: p, namespace: t}\nspec: {containers: [" spec "]}\n"
#define GPU       "resources: {limits: {nvidia.com/gpu: 1}}"

/* Every field of a pod that is understood. */
static const char full_pod[] =
    "apiVersion: apps/v1\n"                                          /* 1 */
    "kind: Deployment\n"                                             /* 2 */
    "metadata: {name: web, namespace: team-a}\n"                     /* 3 */
    "spec:\n"                                                        /* 4 */
    "  replicas: 3\n"                                                /* 5 */
    "  template:\n"                                                  /* 6 */
    "    metadata: {labels: {app: web}}\n"                           /* 7 */
    "    spec:\n"                                                    /* 8 */
    "      hostPID: true\n"                                          /* 9 */
    "      hostIPC: true\n"                                          /* 10 */
    "      hostNetwork: true\n"                                      /* 11 */
    "      runtimeClassName: nvidia-kata\n"                          /* 12 */
    "      priorityClassName: gold\n"                                /* 13 */
    "      schedulerName: default-scheduler\n"                       /* 14 */
    "      nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}\n"    /* 15 */
    "      affinity: {nodeAffinity: {}}\n"                           /* 16 */
    "      tolerations: [{key: nvidia.com/gpu, operator: Exists}]\n" /* 17 */
    "      volumes:\n"                                               /* 18 */
    "      - {name: data, hostPath: {path: /data}}\n"                /* 19 */
    "      - {name: mps, hostPath: {path: /tmp/nvidia-mps}}\n"       /* 20 */
    "      - {name: tmp, emptyDir: {}}\n"                            /* 21 */
    "      initContainers:\n"                                        /* 22 */
    "      - {name: i, image: init:1, resources: {limits: {nvidia.com/gpu: 4}}}\n"
    "      containers:\n"                                               /* 24 */
    "      - {name: log, image: log:1}\n"                               /* 25 */
    "      - name: a\n"                                                 /* 26 */
    "        image: web:1\n"                                            /* 27 */
    "        env:\n"                                                    /* 28 */
    "        - {name: CUDA_MEMSET_ON_ALLOC, value: \"1\"}\n"            /* 29 */
    "        - {name: NODE, valueFrom: {fieldRef: {fieldPath: x}}}\n"   /* 30 */
    "        securityContext: {capabilities: {add: [SYS_ADMIN]}}\n"     /* 31 */
    "        volumeMounts: [{name: mps, mountPath: /tmp/nvidia-mps}]\n" /* 32 */
    "        resources:\n"                                              /* 33 */
    "          limits: {cpu: 1, nvidia.com/gpu: 1}\n"                   /* 34 */
    "          requests: {nvidia.com/gpu: 1}\n"                         /* 35 */
    "      - {name: b, image: b:1, resources: {requests: {nvidia.com/gpu: 2, nvidia.com/mig-1g.18gb: 1}}}\n"
    "---\n"
    "kind: RuntimeClass\nmetadata: {name: nvidia-kata}\nhandler: kata-qemu-nvidia-gpu\n"
    "---\n"
    "kind: PriorityClass\nmetadata: {name: gold}\nvalue: 2000000\n";

#endif
