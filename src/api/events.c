/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - the ring of changes, and their text for Server-Sent Events. */
#include "api/events.h"

#include "base/json.h"
#include "base/str.h"
#include "base/units.h"

#include <stdio.h>

enum { ONE_MAX = 512 }; /* bytes that one event takes at most */

static const struct {
    const char *word;
    char letter; /* before the id; 0: none */
} kinds[BH_API_KINDS] = {
    [BH_API_KIND_JOB] = {"job", 'J'},     [BH_API_KIND_LEASE] = {"lease", 'L'},
    [BH_API_KIND_GPU] = {"gpu", 0},       [BH_API_KIND_POLICY] = {"policy", 0},
    [BH_API_KIND_HEALTH] = {"health", 0},
};

void bh_events_init(struct bh_events *e, uint32_t size, uint64_t boot)
{
    *e = (struct bh_events){.ring = bh_alloc(size, sizeof(*e->ring)), .size = size, .boot = boot, .next = 1};
}

void bh_events_fini(struct bh_events *e)
{
    free(e->ring);
    *e = (struct bh_events){.ring = NULL};
}

void bh_events_add(struct bh_events *e, enum bh_api_kind kind, uint64_t id, const char *tenant,
                   const char *state)
{
    struct bh_event *v = &e->ring[e->next++ % e->size];
    *v = (struct bh_event){.id = id, .kind = (uint8_t)kind};
    (void)snprintf(v->tenant, sizeof(v->tenant), "%s", tenant ? tenant : "");
    (void)snprintf(v->state, sizeof(v->state), "%s", state ? state : "");
}

static uint64_t oldest(const struct bh_events *e)
{
    return e->next > e->size ? e->next - e->size : 1;
}

struct bh_cursor bh_cursor_at(const struct bh_events *e, const char *last_id)
{
    const struct bh_cursor lost = {.next = e->next, .reset = true};
    uint64_t boot, n;
    char text[48];
    if (!last_id)
        return (struct bh_cursor){.next = e->next};
    const char *dash = strchr(last_id, '-');
    if (!dash || (size_t)(dash - last_id) >= sizeof(text))
        return lost;
    (void)snprintf(text, sizeof(text), "%.*s", (int)(dash - last_id), last_id);
    if (bh_uint_parse(text, UINT64_MAX, &boot, NULL) < 0 ||
        bh_uint_parse(dash + 1, UINT64_MAX - 1, &n, NULL) < 0)
        return lost;
    if (boot != e->boot || n + 1 < oldest(e) || n >= e->next)
        return lost;
    return (struct bh_cursor){.next = n + 1};
}

bool bh_cursor_is_lost(const struct bh_events *e, const struct bh_cursor *c)
{
    return c->next < oldest(e);
}

static void say(struct bh_buf *out, uint64_t boot, uint64_t n, const struct bh_event *v)
{
    struct bh_json j;
    char id[24];
    bh_buf_printf(out, "id: %llu-%llu\nevent: %s\ndata: ", (unsigned long long)boot, (unsigned long long)n,
                  kinds[v->kind].word);
    bh_json_init(&j, out);
    bh_json_open_flat(&j, '{');
    (void)snprintf(id, sizeof(id), "%.1s%llu", &kinds[v->kind].letter, (unsigned long long)v->id);
    bh_json_key_str(&j, "id", id);
    if (v->tenant[0])
        bh_json_key_str(&j, "tenant", v->tenant);
    if (v->state[0])
        bh_json_key_str(&j, "state", v->state);
    bh_json_close(&j, '}'); /* ends its line */
    bh_buf_str(out, "\n");
}

bool bh_cursor_read(const struct bh_events *e, struct bh_cursor *c, const struct bh_api_caller *by,
                    struct bh_buf *out, size_t max)
{
    const uint32_t every = (UINT32_C(1) << BH_N_role) - 1;
    const size_t before = out->n;
    if (c->reset) {
        bh_buf_printf(out, "id: %llu-%llu\nevent: reset\ndata: {}\n\n", (unsigned long long)e->boot,
                      (unsigned long long)(c->next - 1));
        c->reset = false;
    }
    for (; c->next < e->next && out->n - before + ONE_MAX <= max; c->next++) {
        const struct bh_event *v = &e->ring[c->next % e->size];
        if (bh_api_may(by, every, v->tenant[0] ? v->tenant : NULL))
            say(out, e->boot, c->next, v);
    }
    return out->n > before;
}
