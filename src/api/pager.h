/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pager.h - lists of which a caller may see some rows: page after page of the store, until enough of its own were shown.
 *
 *     for (bh_pager_init(&p, q); p.more;) {
 *         ...rows of &p.page...
 *         bh_pager_got(&p, rows.n);
 *         for each row: if (bh_pager_shows(&p, id, tenant)) ...write it...
 *     }
 *     p.next is where the caller goes on
 */
#ifndef BH_API_PAGER_H
#define BH_API_PAGER_H

#include "api/handle.h"

struct bh_pager {
    const struct bh_api_req *q;
    struct bh_store_page page;
    uint64_t limit, shown; /* rows */
    uint64_t last,
        next; /* ids: of the last row that was shown; to go on after it, 0: there is nothing more */
    bool more;
};
void bh_pager_init(struct bh_pager *p,
                   const struct bh_api_req *q); /* of a query that is a struct bh_q_list */
void bh_pager_got(struct bh_pager *p, size_t n);
bool bh_pager_shows(struct bh_pager *p, uint64_t id, const char *tenant);

/* How many there are that the caller may not see: those of all, less those of the tenants that it sees. */
typedef int (*bh_pager_count_fn)(struct bh_api_core *core, const void *filter, const char *tenant,
                                 uint64_t *ret, struct bh_err *err);
int bh_pager_hidden(struct bh_api_core *core, const struct bh_api_req *q, bh_pager_count_fn count,
                    const void *filter, uint64_t *ret, struct bh_err *err) BH_MUST_USE;
/* The end of such a list: the rows' bracket, where to go on, how many others there are. */
void bh_pager_close(const struct bh_pager *p, struct bh_json *j, char letter, uint64_t hidden);

#endif
