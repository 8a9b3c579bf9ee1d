/* SPDX-License-Identifier: Apache-2.0 */
/* pager.c - pages of what a caller may see, out of pages of everything. */
#include "api/pager.h"

void bh_pager_init(struct bh_pager *p, const struct bh_api_req *q)
{
    const struct bh_q_list *in = q->in;
    const uint64_t limit = in->limit ? in->limit : BH_STORE_PAGE;
    /* One more than wanted says that there is more. Who sees some of them looks through larger pages, soon. */
    *p = (struct bh_pager){.q = q,
                           .page = {.after = in->after, .limit = (uint32_t)limit + 1, .newest = in->newest},
                           .limit = limit,
                           .more = true};
    if (p->page.limit > BH_API_LIST_MAX)
        p->page.limit = BH_API_LIST_MAX;
}

void bh_pager_got(struct bh_pager *p, size_t n)
{
    p->more = n == p->page.limit;
    p->page.limit = BH_API_LIST_MAX;
}

bool bh_pager_shows(struct bh_pager *p, uint64_t id, const char *tenant)
{
    p->page.after = id;
    if (p->next || !bh_api_sees(p->q, tenant))
        return false;
    if (p->shown == p->limit) { /* one more than wanted: so there is more */
        p->next = p->last;
        p->more = false;
        return false;
    }
    p->last = id;
    p->shown++;
    return true;
}

int bh_pager_hidden(struct bh_api_core *core, const struct bh_api_req *q, bh_pager_count_fn count,
                    const void *filter, uint64_t *ret, struct bh_err *err)
{
    const struct bh_policy *p = core->view->policy;
    uint64_t n;
    int rc = count(core, filter, NULL, ret, err);
    for (size_t i = 0; rc == 0 && p && i < p->tenants.n; i++) {
        if (!bh_api_sees(q, p->tenants.at[i].name))
            continue;
        rc = count(core, filter, p->tenants.at[i].name, &n, err);
        *ret -= rc == 0 ? n : 0;
    }
    return rc;
}

void bh_pager_close(const struct bh_pager *p, struct bh_json *j, char letter, uint64_t hidden)
{
    bh_json_close(j, ']');
    bh_api_key_id(j, "next", letter, p->next);
    bh_api_key_known(j, "others", bh_api_sees_all(p->q) ? UINT64_MAX : hidden);
    bh_json_close(j, '}');
}
