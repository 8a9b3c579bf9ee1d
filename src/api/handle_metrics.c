/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_metrics.c - GET /metrics: what the other side measured and what the API knows of itself, for who asks.
 *
 * Who sees every tenant gets everything. A tenant gets itself; its neighbours are one row without a name where they can be
 * added up, and what is the node's is not there (metrics/families.def).
 */
#include "api/handle.h"

#include <stdio.h>

static bool sees(void *arg, const char *tenant)
{
    return bh_api_sees(arg, tenant);
}

static void add_own(const struct bh_api_core *core, struct bh_metrics *m)
{
    char code[16];
    for (int i = 0; i < BH_API_STATUSES; i++) {
        if (!core->answers[i])
            continue;
        (void)snprintf(code, sizeof(code), "%d", i);
        bh_metrics_add(m, BH_METRIC_HTTP, NULL, (int64_t)core->answers[i], BH_LABELS(code));
    }
    if (!core->limit)
        return;
    bh_metrics_add(m, BH_METRIC_STREAMS, NULL, core->limit->streams, BH_NO_LABELS);
    bh_metrics_add(m, BH_METRIC_CONNECTIONS, NULL, core->limit->connections, BH_NO_LABELS);
}

int bh_h_metrics(struct bh_api_core *core, struct bh_api_req *q)
{
    BH_AUTO(bh_metrics_fini) struct bh_metrics m = {0};
    const enum bh_metrics_format format = bh_metrics_format(q->accept);
    const struct bh_metrics_view view = {.all = bh_api_sees_all(q), .sees = sees, .arg = q};
    core->ops->metrics(core->ops->self, &m);
    add_own(core, &m);
    bh_metrics_write(&m, &view, format, &q->out);
    q->type = bh_metrics_content_type(format);
    return 0;
}
