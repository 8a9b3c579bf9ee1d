/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/gavel.h"

#include "base/str.h"
#include "replay/table.h"

#include <inttypes.h>
#include <string.h>

enum { TYPE, COMMAND, STEPS_OPTION, NEEDS_DATA, STEPS, ARRIVAL, GPUS, CELLS };
#define MICRO     UINT64_C(1000000)
#define STEPS_MAX UINT64_C(5000000000) /* at the slowest rate still a time below BH_JOB_TIME_MAX / 4 */

/*
 * Steps in a million seconds. Differences between the steps of jobs of one type are multiples of its rate, to one part
 * in ten thousand; for Recommendation, slower than a step a second, the shortest job (20 minutes) gives it to 0.2 %.
 */
static const struct rate {
    const char *type;
    uint64_t micro;
} rates[] = {
    {"A3C", 8233025},
    {"CycleGAN", 4918495},
    {"LM (batch size 5)", 167122838},
    {"LM (batch size 10)", 143360326},
    {"LM (batch size 20)", 107950816},
    {"LM (batch size 40)", 71723083},
    {"LM (batch size 80)", 43903699},
    {"Recommendation (batch size 512)", 331700},
    {"Recommendation (batch size 1024)", 481700},
    {"Recommendation (batch size 2048)", 567500},
    {"Recommendation (batch size 4096)", 624200},
    {"Recommendation (batch size 8192)", 605900},
    {"ResNet-18 (batch size 16)", 77317291},
    {"ResNet-18 (batch size 32)", 65805535},
    {"ResNet-18 (batch size 64)", 48884136},
    {"ResNet-18 (batch size 128)", 30287519},
    {"ResNet-18 (batch size 256)", 16987367},
    {"ResNet-50 (batch size 16)", 17374401},
    {"ResNet-50 (batch size 32)", 9920604},
    {"ResNet-50 (batch size 64)", 5457595},
    {"ResNet-50 (batch size 128)", 2845980},
    {"Transformer (batch size 16)", 12845651},
    {"Transformer (batch size 32)", 12475272},
    {"Transformer (batch size 64)", 9568016},
    {"Transformer (batch size 128)", 5771210},
    {"Transformer (batch size 256)", 1707030},
};

static int find_rate(const struct bh_table *t, uint64_t *ret_micro, struct bh_err *err)
{
    const char *types[BH_COUNT_OF(rates)];
    char name[BH_TABLE_CELL_BYTES + 1];
    struct bh_cell c;
    int rc = bh_table_name(t, TYPE, "job type", &c, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < BH_COUNT_OF(rates); i++) {
        types[i] = rates[i].type;
        if (bh_cell_eq(c, types[i])) {
            *ret_micro = rates[i].micro;
            return BH_OK;
        }
    }
    memcpy(name, c.at, c.n);
    name[c.n] = '\0';
    const char *near = bh_str_nearest(name, types, BH_COUNT_OF(rates));
    return bh_table_fail(t, TYPE, err, "job type needs one whose rate is known (%s), is '%.60s'",
                         near ? near : "`A3C`, `CycleGAN`, `LM (batch size 5)` ...", name);
}

static int read_job(struct bh_jobs *j, const struct bh_table *t, uint32_t tenant, struct bh_err *err)
{
    uint64_t rate = 0, steps = 0, gpus = 0, arrival = 0;
    if (t->n_cells != CELLS)
        return bh_table_fail(t, t->n_cells, err, "needs %d cells between tabs, has %" PRIu32, CELLS,
                             t->n_cells);
    int rc = find_rate(t, &rate, err);
    if (rc == BH_OK)
        rc = bh_table_uint(t, STEPS, "steps", 1, STEPS_MAX, &steps, err);
    if (rc == BH_OK)
        rc = bh_table_seconds(t, ARRIVAL, "arrival", BH_JOB_TIME_MAX / 4, &arrival, err);
    if (rc == BH_OK)
        rc = bh_table_uint(t, GPUS, "GPUs", 0, BH_JOB_GPUS_MAX, &gpus, err);
    if (rc < 0)
        return rc;
    const uint64_t seconds = (steps * MICRO + rate / 2) / rate;
    return bh_jobs_add(j, t,
                       &(struct bh_job){
                           .tenant = tenant,
                           .gpus = (uint32_t)gpus,
                           .submit_s = arrival,
                           .duration_s = seconds ? seconds : 1,
                           .deadline_s = BH_JOB_NO_DEADLINE,
                       },
                       err);
}

int bh_gavel_read(struct bh_jobs *j, struct bh_table *t, const char *tenant, size_t tenant_n,
                  struct bh_err *err)
{
    int index = bh_jobs_tenant(j, tenant, tenant_n), rc = 1;
    if (index < 0)
        return bh_fail(err, BH_INVALID, "%.120s:1:1: needs at most %d files, one for each tenant", t->file,
                       BH_JOB_TENANTS);
    while (rc >= 0 && (rc = bh_table_next(t, err)) > 0)
        rc = read_job(j, t, (uint32_t)index, err);
    return rc;
}

void bh_gavel_write(const struct bh_jobs *j, uint32_t tenant, struct bh_buf *out)
{
    const struct rate *r = &rates[0];
    for (size_t i = 0; i < j->at.n; i++) {
        const struct bh_job *x = &j->at.at[i];
        if (x->tenant == tenant)
            bh_buf_printf(out, "%s\ttrain\t--steps\t0\t%" PRIu64 "\t%" PRIu64 ".000000\t%" PRIu32 "\n",
                          r->type, (x->duration_s * r->micro + MICRO / 2) / MICRO, x->submit_s, x->gpus);
    }
}
