/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer_fuzz.c - a hostile daemon: the first byte says which answer it is, the rest is the answer. What is read is shown as the
 * verbs show it.
 */
#include "cli/books_text.h"
#include "cli/describe_text.h"
#include "cli/node_text.h"
#include "cli/work_text.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW_MS = 1000000 };

static union {
    struct bh_a_status status;
    struct bh_a_tenants tenants;
    struct bh_a_tenant tenant;
    struct bh_a_quotas quotas;
    struct bh_a_gpu gpu;
    struct bh_a_gpus gpus;
    struct bh_a_leases leases;
    struct bh_a_lease_detail lease;
    struct bh_a_jobs jobs;
    struct bh_a_job_detail job;
    struct bh_a_why why;
    struct bh_a_diff diff;
    struct bh_a_usage usage;
    struct bh_a_tokens tokens;
    struct bh_a_records records;
    struct bh_a_doctor doctor;
} got;

static struct bh_cli cli;
static struct bh_arena arena;

static void show_status(void)
{
    const struct bh_status_parts p = {.status = &got.status};
    bh_status_text(&cli, &arena, &p);
}
static void show_tenants(void)
{
    bh_tenants_text(&cli, &arena, &got.tenants);
}
static void show_tenant(void)
{
    bh_tenant_text(&cli, &arena, &got.tenant);
}
static void show_quotas(void)
{
    (void)bh_quotas_text(&cli, &arena, &got.quotas, NULL);
}
static void show_gpu(void)
{
    bh_describe_gpu(&cli, &arena, &got.gpu, NULL, 0, NULL, NOW_MS);
}
static void show_gpus(void)
{
    for (size_t i = 0; i < got.gpus.gpus.n; i++)
        (void)bh_say_owners(&arena, &got.gpus.gpus.at[i], NULL);
}
static void show_leases(void)
{
    bh_leases_text(&cli, &arena, &got.leases, NOW_MS, NULL);
}
static void show_lease(void)
{
    bh_describe_lease(&cli, &arena, &got.lease, NOW_MS);
}
static void show_jobs(void)
{
    bh_jobs_text(&cli, &arena, &got.jobs, NOW_MS, NULL);
}
static void show_job(void)
{
    bh_describe_job(&cli, &arena, &got.job, NULL, NULL, 0, NOW_MS);
}
static void show_why(void)
{
    bh_job_why_text(&cli, &arena, "J1", &got.why, NOW_MS);
}
static void show_diff(void)
{
    bh_diff_text(&cli, &arena, &got.diff, "policy.yaml");
}
static void show_usage(void)
{
    struct bh_bill bill;
    struct bh_err err;
    bh_usage_text(&cli, &arena, &got.usage, BH_BILL_BY_USER);
    bh_usage_bill(&got.usage, BH_BILL_BY_BOTH, &bill);
    bh_bill_csv(&bill, &arena, &cli.out);
    if (bh_bill_focus(&bill, "node", &arena, &cli.out, &err) < 0)
        bh_buf_str(&cli.out, err.msg);
    bh_bill_fini(&bill);
}
static void show_tokens(void)
{
    bh_tokens_text(&cli, &arena, &got.tokens, NOW_MS);
}
static void show_nothing(void)
{
}

static const struct {
    const struct bh_answer_shape *shape;
    void (*show)(void);
} answers[] = {{&bh_a_status_shape, show_status},   {&bh_a_tenants_shape, show_tenants},
               {&bh_a_tenant_shape, show_tenant},   {&bh_a_quotas_shape, show_quotas},
               {&bh_a_gpu_shape, show_gpu},         {&bh_a_gpus_shape, show_gpus},
               {&bh_a_leases_shape, show_leases},   {&bh_a_lease_detail_shape, show_lease},
               {&bh_a_jobs_shape, show_jobs},       {&bh_a_job_detail_shape, show_job},
               {&bh_a_why_shape, show_why},         {&bh_a_diff_shape, show_diff},
               {&bh_a_usage_shape, show_usage},     {&bh_a_tokens_shape, show_tokens},
               {&bh_a_records_shape, show_nothing}, {&bh_a_doctor_shape, show_nothing}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const size_t which = data[0] % BH_COUNT_OF(answers);
    cli = (struct bh_cli){.width = 80, .is_terminal = data[0] & 0x80};
    bh_buf_init(&cli.out, 1u << 24);
    if (bh_answer_read(&arena, (const char *)data + 1, size - 1, answers[which].shape, &got, NULL) == BH_OK)
        answers[which].show();
    /* Whatever a daemon says, no control sequence of it reaches the terminal. */
    for (size_t i = 0; i < cli.out.n; i++)
        if ((unsigned char)cli.out.at[i] < ' ' && cli.out.at[i] != '\n')
            abort();
    bh_buf_fini(&cli.out);
    bh_arena_fini(&arena);
    return 0;
}
