/* SPDX-License-Identifier: Apache-2.0 */
/* audit_show.c - filters over records, and their text. */
#include "store/audit_show.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>

#define NS_PER_MS INT64_C(1000000)

static bool is_actor(const char *pattern, const struct bh_audit_record *r)
{
    char uid[16];
    (void)snprintf(uid, sizeof(uid), "%" PRIu32, r->is.uid);
    return bh_str_glob(pattern, r->is.sub ? r->is.sub : "") || (r->is.has_uid && bh_str_eq(pattern, uid));
}

bool bh_audit_matches(const struct bh_audit_filter *f, const struct bh_audit_record *r)
{
    return (!f->tenant || bh_str_eq(f->tenant, r->is.tenant)) &&
           (!f->event || bh_str_glob(f->event, bh_audit_names[r->is.event])) &&
           (!f->actor || is_actor(f->actor, r)) && r->utc_ns / NS_PER_MS >= f->since_ms;
}

/* ---- text ---- */

static void add_safe(struct bh_buf *out, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        const size_t len = bh_utf8_len(s);
        const bool control = *s < 0x20 || *s == 0x7f || (*s == 0xc2 && s[1] < 0xa0);
        if (len && !control)
            bh_buf_add(out, (const char *)s, len);
        else
            bh_buf_str(out, "?");
        s += len ? len : 1;
    }
}

/* Before and the text after it; nothing when there is none. */
static void add_part(struct bh_buf *out, const char *before, const char *text)
{
    if (!text || !*text)
        return;
    bh_buf_str(out, before);
    add_safe(out, text);
}

static void add_who(struct bh_buf *out, const struct bh_audit_event *e)
{
    bh_buf_str(out, "  ");
    add_safe(out, e->sub && *e->sub ? e->sub : "nobody");
    if (e->has_uid)
        bh_buf_printf(out, " (uid %" PRIu32 ")", e->uid);
    add_part(out, " by ", e->idp);
    add_part(out, "/", e->authn);
    add_part(out, " from ", e->src_addr);
}

void bh_audit_line_add(struct bh_buf *out, const struct bh_audit_record *r)
{
    const struct bh_audit_event *e = &r->is;
    char time[BH_AUDIT_TIME_MAX] = "";
    (void)bh_audit_time_format(r->utc_ns, time);
    bh_buf_printf(out, "%.10s %.12sZ  #%" PRIu64 "  %s  %s", time, time + 11, r->seq,
                  bh_audit_names[e->event], bh_audit_outcomes[e->outcome]);
    add_who(out, e);
    add_part(out, "  tenant ", e->tenant);
    add_part(out, "  ", e->object_type);
    add_part(out, " ", e->object_id);
    add_part(out, "  was ", e->before);
    add_part(out, "  is ", e->after);
    add_part(out, "  asked: ", e->action);
    for (size_t i = 0; i < e->n_rule_ids; i++)
        add_part(out, i ? "," : "  ", e->rule_ids[i]);
    add_part(out, "  ", e->reason);
    bh_buf_str(out, "\n");
}
