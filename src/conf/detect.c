/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/detect.h"

#include "base/str.h"

#include <strings.h>

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

/* A GRES that is a GPU, or a share of one: `Name=` alone could stand in anybody's file. */
static bool is_gres(const char *value, const char *end)
{
    static const char *const names[] = {"gpu", "shard", "mps"};
    for (size_t i = 0; i < BH_COUNT_OF(names); i++) {
        size_t n = strlen(names[i]);
        if ((size_t)(end - value) >= n && strncasecmp(value, names[i], n) == 0 &&
            (value + n == end || bh_is_space(value[n]) || value[n] == ','))
            return true;
    }
    return false;
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && bh_is_space(*p))
        p++;
    return p;
}

/* `Key=` or `Key =` at the start of a line, for keys that only Slurm's files have. Letter case does not matter there. */
static bool slurm_line(const char *line, const char *end)
{
    static const char *const keys[] = {
        "clustername",
        "controlmachine",
        "slurmctldhost",
        "nodename",
        "partitionname",
        "grestypes",
        "autodetect",
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
        "constrainswapspace",
        "cgroupautomount",
        "cgroupmountpoint",
        "cgroupplugin",
        "include",
    };
    const char *key = line, *stop = key;
    while (stop < end && (bh_is_alpha(*stop) || *stop == '_'))
        stop++;
    const char *equals = skip_blanks(stop, end);
    if (equals == end || *equals != '=')
        return false;
    size_t n = (size_t)(stop - key);
    for (size_t k = 0; k < BH_COUNT_OF(keys); k++)
        if (strlen(keys[k]) == n && strncasecmp(key, keys[k], n) == 0)
            return true;
    return n == 4 && strncasecmp(key, "name", n) == 0 && is_gres(skip_blanks(equals + 1, end), end);
}

bool bh_detect_slurm(const char *text, size_t n)
{
    const char *end = text + n;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop)
            stop = end;
        if (slurm_line(text, stop))
            return true;
        text = stop < end ? stop + 1 : end;
    }
    return false;
}
