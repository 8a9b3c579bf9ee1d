/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_tenant.c - a namespace that has to do with GPUs is a tenant.
 *
 * It becomes one by a ResourceQuota that names a GPU resource, by a pod that asks for
 * one, or by a `bulkhead.dev/` label that says so outright. A cluster says nothing
 * about trust, so a tenant is internal unless its Namespace is labelled otherwise.
 *
 * A ResourceQuota with scopes bounds only the pods that match them; it is named in a
 * note and never counts as the tenant's quota. Of a device only `requests.NAME` is enforced.
 *
 * A tenant's network is open where its pods and some NetworkPolicy of the cluster were given,
 * and none closes it. Otherwise the files say nothing about it, and nothing is assumed.
 */
#include "conf/kube_cluster.h"

#include "base/str.h"
#include "base/units.h"
#include "conf/stated.h"

enum {
    RESOURCES_MAX = 256,      /* distinct GPU names in one namespace's quotas */
    COMMENT_LINES_MAX = 1000, /* looked at for one quota */
};

static const struct bh_node *metadata_of(const struct bh_kube_object *o)
{
    const struct bh_node *m = bh_node_get(o->root, "metadata");
    return m && m->kind == BH_NODE_MAP ? m : NULL;
}

/* ---- tenants ---- */

static void read_labels(struct bh_kube *k, const struct bh_kube_object *o, struct bh_tenant *t)
{
    struct bh_kube_place at = bh_kube_place_of(o);
    const struct bh_node *metadata = metadata_of(o), *n = NULL;
    const char *text = bh_kube_annotation(metadata, "bulkhead.dev/trust", &n);

    if (text) {
        int trust = bh_words_find(&bh_words_trust, text);
        if (trust < 0)
            bh_diag_error(k->d, bh_kube_pos(&at, n),
                          "`bulkhead.dev/trust` must be internal, partner or external");
        else
            t->trust = (uint8_t)trust;
    }
    text = bh_kube_annotation(metadata, "bulkhead.dev/domain", NULL);
    if (text && *text)
        t->domain = bh_kube_keep(k, text);
    text = bh_kube_annotation(metadata, "bulkhead.dev/class", &n);
    if (text && *text) {
        t->class_name = bh_kube_keep(k, text);
        t->class_pos = bh_kube_pos(&at, n);
    }
    text = bh_kube_annotation(metadata, "bulkhead.dev/cost-center", NULL);
    if (text && *text)
        t->cost_center = bh_kube_keep(k, text);
}

static void make_tenant(struct bh_kube *k, const char *ns, const struct bh_kube_object *first)
{
    if (bh_map_find(&k->tenants, ns) != BH_MAP_NONE)
        return;
    uint32_t space = bh_map_find(&k->namespaces, ns), quota = bh_map_find(&k->first_quotas, ns);
    const struct bh_kube_object *o = space != BH_MAP_NONE   ? &k->objects.at[space]
                                     : quota != BH_MAP_NONE ? &k->objects.at[quota]
                                                            : first;
    struct bh_kube_place at = bh_kube_place_of(o);
    struct bh_tenant *t = bh_policy_add_tenant(k->p);

    t->source = BH_SOURCE_KUBERNETES;
    t->pos = bh_kube_pos(&at, o->root);
    t->name = bh_kube_keep(k, ns);
    t->object = bh_kube_object_path(k, o);
    t->trust = BH_TRUST_INTERNAL;
    t->class_name = NULL; /* a cluster names none, and silence is no promise */
    t->domain = NULL;
    if (space != BH_MAP_NONE)
        read_labels(k, o, t);
    if (!t->domain)
        t->domain = t->trust == BH_TRUST_INTERNAL ? "internal" : t->name;
    bh_map_add(&k->tenants, t->name, (uint32_t)(k->p->tenants.n - 1));
}

/* The GPU resource that a key of `hard` speaks of, whatever stands before it; NULL: none. */
static const char *quota_resource(const char *key)
{
    const char *name = key;
    if (bh_str_starts(key, "requests."))
        name = key + strlen("requests.");
    else if (bh_str_starts(key, "limits."))
        name = key + strlen("limits.");
    return bh_kube_is_gpu(name) ? name : NULL;
}

static const struct bh_node *quota_hard(const struct bh_kube_object *o)
{
    const struct bh_node *hard = bh_node_path(o->root, "spec", "hard", NULL);
    return hard && hard->kind == BH_NODE_MAP ? hard : NULL;
}

static bool quota_names_gpu(const struct bh_kube_object *o)
{
    const struct bh_node *hard = quota_hard(o);
    if (hard)
        BH_EACH_PAIR (key, value, hard)
            if (bh_node_text(key) && quota_resource(key->u.text))
                return true;
    return false;
}

static bool declares_tenant(const struct bh_kube_object *o)
{
    static const char *const keys[] = {"bulkhead.dev/trust", "bulkhead.dev/domain", "bulkhead.dev/class",
                                       "bulkhead.dev/cost-center"};
    for (size_t i = 0; i < BH_COUNT_OF(keys); i++)
        if (bh_kube_annotation(metadata_of(o), keys[i], NULL))
            return true;
    return false;
}

void bh_kube_name_tenants(struct bh_kube *k)
{
    size_t next_pod = 0;
    for (size_t i = 0; i < k->objects.n; i++) {
        const struct bh_kube_object *o = &k->objects.at[i];
        if (strcmp(o->kind, "Namespace") == 0) {
            if (declares_tenant(o))
                make_tenant(k, o->name, o);
        } else if (strcmp(o->kind, "ResourceQuota") == 0) {
            if (quota_names_gpu(o))
                make_tenant(k, o->ns, o);
        } else if (next_pod < k->pods.n && k->pods.at[next_pod].o == o) {
            if (k->pods.at[next_pod++].asks)
                make_tenant(k, o->ns, o);
        }
    }
}

/* ---- quotas ---- */

static bool is_scoped(const struct bh_node *spec)
{
    const struct bh_node *scopes = bh_node_get(spec, "scopes"),
                         *selector = bh_node_get(spec, "scopeSelector");
    return (scopes && scopes->kind == BH_NODE_SEQ && scopes->n > 0) ||
           (selector && selector->kind == BH_NODE_MAP && selector->n > 0);
}

/* Two quotas over one namespace both hold, so the smaller number is the one that bounds. */
static void add_limit(struct bh_kube *k, struct bh_quota *q, const char *resource, uint64_t milli,
                      struct bh_pos pos)
{
    for (size_t i = 0; i < q->resources.n; i++) {
        struct bh_amount *a = &q->resources.at[i];
        if (strcmp(a->resource, resource) == 0) {
            if (milli < a->milli) {
                a->milli = milli;
                a->pos = pos;
            }
            return;
        }
    }
    if (q->resources.n == RESOURCES_MAX) {
        bh_diag_note_once(k->d, pos, "more than %d GPU resource names in one quota; the rest is passed over",
                          RESOURCES_MAX);
        return;
    }
    *bh_vec_push(&q->resources) = (struct bh_amount){bh_kube_keep(k, resource), milli, pos};
}

static void read_hard(struct bh_kube *k, const struct bh_kube_place *at, const struct bh_node *hard,
                      struct bh_quota *q)
{
    BH_EACH_PAIR (key, value, hard) {
        const char *name = bh_node_text(key), *text = bh_node_text(value);
        struct bh_err err;
        uint64_t milli;
        const char *resource = name ? quota_resource(name) : NULL;
        if (!resource)
            continue;
        if (!text) {
            bh_diag_error(k->d, bh_kube_pos(at, value), "`%.100s` must be a quantity", name);
        } else if (bh_quantity_parse(text, &milli, &err) < 0) {
            bh_diag_error(k->d, bh_kube_pos(at, value), "`%.100s`: %s", name, err.msg);
        } else if (!bh_str_starts(name, "requests.")) {
            /* the API server takes any key, and its quota admission counts devices under this prefix alone */
            bh_diag_note(k->d, bh_kube_pos(at, key),
                         "`%.100s` bounds nothing in Kubernetes, so it does not count as a quota; "
                         "write `requests.%.100s`",
                         name, resource);
        } else {
            add_limit(k, q, resource, milli, bh_kube_pos(at, key));
        }
    }
}

static void state(struct bh_kube *k, struct bh_quota *q, const char *words, struct bh_pos pos)
{
    struct bh_stated st = {.pos = pos};
    if (!words || strnlen(words, BH_KUBE_TEXT_MAX) == BH_KUBE_TEXT_MAX || !bh_stated_read(words, &st))
        return;
    st.words = bh_kube_keep(k, words);
    *bh_vec_push(&q->stated) = st;
}

static bool comment_alone(struct bh_tree *t, uint32_t line)
{
    struct bh_comment c;
    return bh_tree_comment_find(t, line, &c) && c.alone;
}

static uint32_t last_line(const struct bh_node *n)
{
    uint32_t last = n->line;
    if (n->kind != BH_NODE_SCALAR)
        for (const struct bh_node *c = n->u.first; c; c = c->next) {
            uint32_t l = last_line(c);
            last = l > last ? l : last;
        }
    return last;
}

/* Comments directly above the object, within it, and directly below the last of its lines. */
static void read_comments(struct bh_kube *k, const struct bh_kube_object *o, struct bh_quota *q)
{
    uint32_t from = o->root->line, to = last_line(o->root);
    while (from > 1 && o->root->line - from < COMMENT_LINES_MAX && comment_alone(o->tree, from - 1))
        from--;
    while (!o->in_list && to - o->root->line < COMMENT_LINES_MAX && comment_alone(o->tree, to + 1))
        to++;
    for (uint32_t line = from; line <= to && line - from < COMMENT_LINES_MAX; line++) {
        struct bh_comment c;
        if (bh_tree_comment_find(o->tree, line, &c))
            state(k, q, c.text, (struct bh_pos){o->file, line, c.column});
    }
}

/* A description, or any other words about GPUs. What a tool left there (`last-applied-configuration`) is data. */
static bool is_prose(const char *key, const char *text)
{
    if (!text || *text == '{' || *text == '[' || strnlen(text, BH_KUBE_TEXT_MAX) == BH_KUBE_TEXT_MAX)
        return false;
    if (strcmp(key, "description") == 0 || bh_str_ends(key, "/description"))
        return true;
    for (; *text; text++)
        if (bh_to_lower(text[0]) == 'g' && bh_to_lower(text[1]) == 'p' && bh_to_lower(text[2]) == 'u')
            return true;
    return false;
}

static void read_annotations(struct bh_kube *k, const struct bh_kube_object *o, struct bh_quota *q)
{
    const struct bh_kube_place at = bh_kube_place_of(o);
    const struct bh_node *annotations = metadata_of(o) ? bh_node_get(metadata_of(o), "annotations") : NULL;
    if (!annotations || annotations->kind != BH_NODE_MAP)
        return;
    BH_EACH_PAIR (key, value, annotations) {
        const char *name = bh_node_text(key);
        if (name && is_prose(name, bh_node_text(value)))
            state(k, q, bh_node_text(value), bh_kube_pos(&at, value));
    }
}

static void read_quota(struct bh_kube *k, const struct bh_kube_object *o)
{
    static const char *const known[] = {"hard", "scopes", "scopeSelector", NULL};
    struct bh_kube_place at = bh_kube_place_of(o);
    const struct bh_node *spec = bh_kube_child(k, &at, o->root, "spec", BH_NODE_MAP);
    const struct bh_node *hard = spec ? bh_kube_child(k, &at, spec, "hard", BH_NODE_MAP) : NULL;

    if (spec)
        bh_kube_note_unknown(k, &at, spec, known, "ResourceQuota spec");
    if (!hard || !quota_names_gpu(o))
        return;
    if (is_scoped(spec)) {
        bh_diag_note(
            k->d, bh_kube_pos(&at, o->root),
            "ResourceQuota %s/%s has scopes: it bounds only the pods that match them, so it does not count as "
            "the quota of `%s`",
            o->ns, o->name, o->ns);
        return;
    }
    struct bh_quota *q = &k->p->tenants.at[bh_map_find(&k->tenants, o->ns)].quota;
    read_hard(k, &at, hard, q);
    if (q->resources.n == 0)
        return;
    if (!q->pos.line)
        q->pos = bh_kube_pos(&at, o->root);
    q->has_model = true;
    q->model = BH_QUOTA_HARD;
    read_annotations(k, o, q);
    read_comments(k, o, q);
    for (size_t i = 0; i < q->resources.n; i++)
        if (strcmp(q->resources.at[i].resource, "nvidia.com/gpu") == 0) {
            q->has_gpus = true;
            q->gpus_milli = q->resources.at[i].milli;
        }
}

void bh_kube_read_quotas(struct bh_kube *k)
{
    for (size_t i = 0; i < k->objects.n; i++)
        if (strcmp(k->objects.at[i].kind, "ResourceQuota") == 0)
            read_quota(k, &k->objects.at[i]);
}

/* ---- network ---- */

/* An empty selector, or none at all, selects everything. */
static bool selects_all(const struct bh_node *selector)
{
    if (!selector || selector->kind != BH_NODE_MAP)
        return true;
    BH_EACH_PAIR (key, value, selector)
        if (value->kind != BH_NODE_SCALAR && value->n > 0)
            return false;
    return true;
}

static bool peer_is_anyone(const struct bh_node *peer)
{
    const struct bh_node *spaces, *block;
    if (peer->kind != BH_NODE_MAP)
        return false;
    block = bh_node_path(peer, "ipBlock", "cidr", NULL);
    if (bh_str_eq(bh_node_text(block), "0.0.0.0/0") || bh_str_eq(bh_node_text(block), "::/0"))
        return true;
    spaces = bh_node_get(peer, "namespaceSelector");
    return spaces && selects_all(spaces) && selects_all(bh_node_get(peer, "podSelector"));
}

/* Does one ingress rule let every other namespace in? A rule for some ports only does not. */
static bool rule_lets_anyone_in(const struct bh_node *rule)
{
    const struct bh_node *from, *ports;
    if (rule->kind != BH_NODE_MAP)
        return false;
    ports = bh_node_get(rule, "ports");
    if (ports && ports->kind == BH_NODE_SEQ && ports->n > 0)
        return false;
    from = bh_node_get(rule, "from");
    if (!from || from->kind != BH_NODE_SEQ || from->n == 0)
        return true;
    BH_EACH_ITEM (peer, from)
        if (peer_is_anyone(peer))
            return true;
    return false;
}

/* Ingress is meant when policyTypes is not written. */
static bool governs_ingress(const struct bh_node *spec)
{
    const struct bh_node *types = bh_node_get(spec, "policyTypes");
    if (!types || types->kind != BH_NODE_SEQ)
        return true;
    BH_EACH_ITEM (type, types)
        if (bh_str_eq(bh_node_text(type), "Ingress"))
            return true;
    return false;
}

/*
 * Pods that any policy selects are closed except for what policies open. So a policy over all
 * pods of the namespace denies by default, unless a rule of it (or of another one) opens to anyone.
 */
static void read_network_policy(struct bh_kube *k, const struct bh_kube_object *o)
{
    static const char *const known[] = {"podSelector", "policyTypes", "ingress", "egress", NULL};
    struct bh_kube_place at = bh_kube_place_of(o);
    const struct bh_node *spec = bh_kube_child(k, &at, o->root, "spec", BH_NODE_MAP);
    uint32_t tenant = bh_map_find(&k->tenants, o->ns);
    bool open = false;

    if (!spec)
        return;
    bh_kube_note_unknown(k, &at, spec, known, "NetworkPolicy spec");
    bh_kube_child(k, &at, spec, "policyTypes", BH_NODE_SEQ);
    const struct bh_node *selector = bh_kube_child(k, &at, spec, "podSelector", BH_NODE_MAP);
    const struct bh_node *rules = bh_kube_child(k, &at, spec, "ingress", BH_NODE_SEQ);
    if (tenant == BH_MAP_NONE || !selects_all(selector) || !governs_ingress(spec))
        return;
    if (rules)
        BH_EACH_ITEM (rule, rules)
            open = open || rule_lets_anyone_in(rule);

    struct bh_tenant *t = &k->p->tenants.at[tenant];
    if (t->network.policy == BH_NET_OPEN || (t->network.policy == BH_NET_DEFAULT_DENY && !open))
        return; /* opened once is open; denied twice is denied */
    t->network.policy = open ? BH_NET_OPEN : BH_NET_DEFAULT_DENY;
    t->network.pos = bh_kube_pos(&at, o->root);
}

/* Policies of another kind may close what these leave open; what they deny stays denied. */
static void forget_open(struct bh_kube *k)
{
    for (size_t i = 0; i < k->p->tenants.n; i++) {
        struct bh_tenant *t = &k->p->tenants.at[i];
        if (t->network.policy == BH_NET_OPEN) {
            t->network.policy = BH_NET_UNSET;
            t->network.pos = (struct bh_pos){0};
        }
    }
}

void bh_kube_read_network(struct bh_kube *k)
{
    bool any = false;
    for (size_t i = 0; i < k->objects.n; i++)
        if (strcmp(k->objects.at[i].kind, "NetworkPolicy") == 0) {
            read_network_policy(k, &k->objects.at[i]);
            any = true;
        }
    for (size_t i = 0; any && i < k->pods.n; i++) {
        uint32_t tenant = bh_map_find(&k->tenants, k->pods.at[i].o->ns);
        if (tenant != BH_MAP_NONE && k->p->tenants.at[tenant].network.policy == BH_NET_UNSET)
            k->p->tenants.at[tenant].network.policy = BH_NET_OPEN;
    }
    if (k->foreign_network)
        forget_open(k);
}
