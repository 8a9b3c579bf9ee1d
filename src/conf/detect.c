/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/detect.h"

#include "base/str.h"

static bool has(const struct bh_node *map, const char *key)
{
    return bh_node_get(map, key) != NULL;
}

static bool has_any(const struct bh_node *map, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (has(map, keys[i]))
            return true;
    return false;
}

/* The device plugin's configuration file, as it stands inside a ConfigMap or alone. */
static bool is_plugin_config(const struct bh_node *doc)
{
    static const char *const keys[] = {"sharing", "flags", "resources"};
    return bh_str_eq(bh_node_text(bh_node_get(doc, "version")), "v1") &&
           has_any(doc, keys, BH_COUNT_OF(keys));
}

static enum bh_file_kind kind_of(const struct bh_node *doc)
{
    static const char *const declared[] = {"tenants", "pools"};
    bool declares = has_any(doc, declared, BH_COUNT_OF(declared));
    if (doc->kind != BH_NODE_MAP)
        return BH_FILE_UNKNOWN;
    if (has(doc, "apiVersion") && has(doc, "kind"))
        return BH_FILE_KUBERNETES;
    if (has(doc, "bulkhead"))
        return has(doc, "nodes") && !declares ? BH_FILE_FLEET : BH_FILE_POLICY;
    if (is_plugin_config(doc) || has(doc, "mig-configs"))
        return BH_FILE_KUBERNETES;
    return declares ? BH_FILE_POLICY : BH_FILE_UNKNOWN;
}

enum bh_file_kind bh_detect_tree(const struct bh_tree *t)
{
    for (size_t i = 0; i < t->docs.n; i++) {
        enum bh_file_kind kind = kind_of(t->docs.at[i]);
        if (kind != BH_FILE_UNKNOWN)
            return kind;
    }
    return BH_FILE_UNKNOWN;
}

/* `Key=` at the start of a line, for keys that only Slurm's files have. Letter case does not matter there. */
static bool slurm_line(const char *line, size_t n)
{
    static const char *const keys[] = {
        "clustername",
        "controlmachine",
        "slurmctldhost",
        "nodename",
        "partitionname",
        "grestypes",
        "autodetect",
        "name",
        "accountingstorageenforce",
        "accountingstoragetype",
        "prioritytype",
        "preempttype",
        "preemptmode",
        "schedulertype",
        "selecttype",
        "selecttypeparameters",
        "taskplugin",
        "proctracktype",
        "slurmuser",
        "constraindevices",
        "constraincores",
        "constrainramspace",
        "cgroupplugin",
        "include",
    };
    const char *equals = memchr(line, '=', n);
    for (size_t k = 0; equals && k < BH_COUNT_OF(keys); k++) {
        size_t i = 0, key_n = (size_t)(equals - line);
        while (i < key_n && keys[k][i] && bh_to_lower(line[i]) == keys[k][i])
            i++;
        if (i == key_n && !keys[k][i])
            return true;
    }
    return false;
}

bool bh_detect_slurm(const char *text, size_t n)
{
    const char *end = text + n;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop)
            stop = end;
        if (slurm_line(text, (size_t)(stop - text)))
            return true;
        text = stop < end ? stop + 1 : end;
    }
    return false;
}
