/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_pin.c - which nodes a pod is bound to.
 *
 * By spec.nodeName, by a nodeSelector, or by the required node affinity, the first of them that
 * says it. A host name needs nothing else; other labels are held against the Node documents among
 * the files, and without any they bind to nothing that has a name. What a pod only prefers,
 * tolerations and the scheduling of a RuntimeClass are not looked at.
 *
 * The answer may name more nodes than the scheduler would use, never fewer.
 */
#include "conf/kube_cluster.h"

#include "base/str.h"

/* Of the whole cluster: names that pods are bound to, and labels compared to find them. */
enum { PINNED_MAX = 1 << 20, WORK_MAX = 1 << 26 };

static const char host_label[] = "kubernetes.io/hostname";

/* Names as Kubernetes has them: what else stands there could read as a pattern. */
static bool is_node_name(const char *s)
{
    size_t n = 0;
    for (; s[n] && n <= BH_KUBE_NAME_MAX; n++)
        if (!bh_is_alpha(s[n]) && !bh_is_digit(s[n]) && s[n] != '-' && s[n] != '.')
            return false;
    return n > 0 && n <= BH_KUBE_NAME_MAX;
}

/* False: it cannot be said where the pod runs. */
static bool pin_add(struct bh_kube *k, struct bh_kube_pin *pin, const char *node)
{
    if (!node || !is_node_name(node) || k->pinned == PINNED_MAX)
        return false;
    *bh_vec_push(&pin->nodes) = node;
    k->pinned++;
    return true;
}

/* ---- labels ---- */

static const struct bh_node *labels_of(const struct bh_kube_object *node)
{
    const struct bh_node *labels = bh_node_path(node->root, "metadata", "labels", NULL);
    return labels && labels->kind == BH_NODE_MAP ? labels : NULL;
}

/* A label's value; NULL: the node has none of that name. Every node has its host name. */
static const char *label(struct bh_kube *k, const struct bh_kube_object *node, const char *key)
{
    const struct bh_node *labels = labels_of(node);
    const char *value = labels ? bh_node_text(bh_node_get(labels, key)) : NULL;
    k->pin_work += labels ? labels->n + 1 : 1;
    return !value && strcmp(key, host_label) == 0 ? node->name : value;
}

static bool selector_matches(struct bh_kube *k, const struct bh_kube_object *node,
                             const struct bh_node *selector)
{
    BH_EACH_PAIR (key, value, selector)
        if (!bh_str_eq(label(k, node, key->u.text), bh_node_text(value)))
            return false;
    return true;
}

static bool among(const struct bh_node *values, const char *text)
{
    if (values && values->kind == BH_NODE_SEQ && text)
        BH_EACH_ITEM (v, values)
            if (bh_str_eq(bh_node_text(v), text))
                return true;
    return false;
}

/* One `{key, operator, values}`. An operator that compares numbers matches everything: more nodes, never fewer. */
static bool expression_matches(const struct bh_node *e, const char *value)
{
    const char *op = bh_node_text(bh_node_get(e, "operator"));
    const struct bh_node *values = bh_node_get(e, "values");
    if (bh_str_eq(op, "In"))
        return among(values, value);
    if (bh_str_eq(op, "NotIn"))
        return !among(values, value);
    if (bh_str_eq(op, "Exists"))
        return value != NULL;
    if (bh_str_eq(op, "DoesNotExist"))
        return value == NULL;
    return true;
}

static const struct bh_node *list_of(const struct bh_node *map, const char *key)
{
    const struct bh_node *n = bh_node_get(map, key);
    return n && n->kind == BH_NODE_SEQ ? n : NULL;
}

static bool term_matches(struct bh_kube *k, const struct bh_kube_object *node, const struct bh_node *term)
{
    const struct bh_node *labels = list_of(term, "matchExpressions"), *fields = list_of(term, "matchFields");
    if (labels)
        BH_EACH_ITEM (e, labels) {
            const char *key = bh_node_text(bh_node_get(e, "key"));
            if (key && !expression_matches(e, label(k, node, key)))
                return false;
        }
    if (fields)
        BH_EACH_ITEM (e, fields)
            if (!expression_matches(e, node->name))
                return false;
    return true;
}

/* ---- where a pod may run ---- */

static bool has_room(const struct bh_kube *k)
{
    return k->nodes.n > 0 && k->pin_work < WORK_MAX;
}

static bool pin_by_selector(struct bh_kube *k, const struct bh_node *selector, struct bh_kube_pin *pin)
{
    const char *host = bh_node_text(bh_node_get(selector, host_label));
    if (host)
        return pin_add(k, pin, host);
    for (size_t i = 0; i < k->nodes.n; i++) {
        const struct bh_kube_object *node = &k->objects.at[k->nodes.at[i]];
        if (!has_room(k) || (selector_matches(k, node, selector) && !pin_add(k, pin, node->name)))
            return false;
    }
    return pin->nodes.n > 0;
}

/* The host names that one term asks for by name; NULL: it names none. */
static const struct bh_node *names_in(const struct bh_node *term)
{
    static const struct {
        const char *list, *key;
    } ways[] = {{"matchFields", "metadata.name"}, {"matchExpressions", host_label}};
    for (size_t i = 0; i < BH_COUNT_OF(ways); i++) {
        const struct bh_node *list = list_of(term, ways[i].list);
        if (list)
            BH_EACH_ITEM (e, list)
                if (bh_str_eq(bh_node_text(bh_node_get(e, "key")), ways[i].key) &&
                    bh_str_eq(bh_node_text(bh_node_get(e, "operator")), "In"))
                    return list_of(e, "values");
    }
    return NULL;
}

static bool pin_by_term(struct bh_kube *k, const struct bh_node *term, struct bh_kube_pin *pin)
{
    const struct bh_node *names = names_in(term);
    if (names) {
        BH_EACH_ITEM (name, names)
            if (!pin_add(k, pin, bh_node_text(name)))
                return false;
        return names->n > 0;
    }
    bool any = false;
    for (size_t i = 0; i < k->nodes.n; i++) {
        const struct bh_kube_object *node = &k->objects.at[k->nodes.at[i]];
        bool matches = term_matches(k, node, term);
        if (!has_room(k) || (matches && !pin_add(k, pin, node->name)))
            return false;
        any = any || matches;
    }
    return any;
}

/* Terms are alternatives: the pod runs on a node of any of them. */
static bool pin_by_affinity(struct bh_kube *k, const struct bh_node *affinity, struct bh_kube_pin *pin)
{
    const struct bh_node *terms =
        bh_node_path(affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
                     "nodeSelectorTerms", NULL);
    if (!terms || terms->kind != BH_NODE_SEQ || terms->n == 0)
        return false;
    BH_EACH_ITEM (term, terms)
        if (term->kind != BH_NODE_MAP || !pin_by_term(k, term, pin))
            return false;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_nodes(struct bh_kube_pin *pin)
{
    size_t n = 0;
    qsort(pin->nodes.at, pin->nodes.n, sizeof(pin->nodes.at[0]), by_name);
    for (size_t i = 0; i < pin->nodes.n; i++)
        if (n == 0 || strcmp(pin->nodes.at[n - 1], pin->nodes.at[i]) != 0)
            pin->nodes.at[n++] = pin->nodes.at[i];
    pin->nodes.n = n;
}

void bh_kube_read_pin(struct bh_kube *k, const struct bh_kube_pod *pod, struct bh_kube_pin *ret)
{
    const struct bh_node *name = bh_kube_child(k, &pod->at, pod->spec, "nodeName", BH_NODE_SCALAR);
    const struct bh_node *selector = bh_kube_child(k, &pod->at, pod->spec, "nodeSelector", BH_NODE_MAP);
    const struct bh_node *affinity = bh_kube_child(k, &pod->at, pod->spec, "affinity", BH_NODE_MAP);

    *ret = (struct bh_kube_pin){0};
    if (name && pin_add(k, ret, bh_node_text(name))) {
        ret->pos = bh_kube_pos(&pod->at, name);
    } else if (selector && selector->n > 0 && pin_by_selector(k, selector, ret)) {
        ret->pos = bh_kube_pos(&pod->at, selector);
    } else {
        ret->nodes.n = 0;
        if (affinity && pin_by_affinity(k, affinity, ret))
            ret->pos = bh_kube_pos(&pod->at, affinity);
        else
            ret->nodes.n = 0;
    }
    if (ret->nodes.n)
        sort_nodes(ret);
    if (k->pinned == PINNED_MAX || k->pin_work >= WORK_MAX)
        bh_diag_note_once(
            k->d, bh_kube_pos(&pod->at, pod->spec),
            "too many pods are bound to too many nodes; from here on they count as bound to none");
}
