/* SPDX-License-Identifier: Apache-2.0 */
/* answer_fixture.h - canned answers of a daemon, and their text, for the tests of what verbs show. */
#ifndef BH_CLI_ANSWER_FIXTURE_H
#define BH_CLI_ANSWER_FIXTURE_H

#include "base/test.h"
#include "cli/answer.h"
#include "cli/table.h"

enum { NOW_MS = 10000000 };

static struct bh_arena arena;
static struct bh_cli cli;

static inline void begin(bool is_terminal)
{
    bh_buf_fini(&cli.out);
    cli = (struct bh_cli){.is_terminal = is_terminal, .width = 80};
    bh_buf_init(&cli.out, 1u << 20);
}

static inline const char *shown(void)
{
    return bh_buf_text(&cli.out);
}

/* The canned text is of that shape: where it is not, the test is wrong. */
static inline void must_read(const char *text, const struct bh_answer_shape *shape, void *ret)
{
    struct bh_err err;
    if (bh_answer_read(&arena, text, strlen(text), shape, ret, &err) < 0) {
        printf("# %s\n", err.msg);
        abort();
    }
}

#define FIX_LEASE(id, job, state, more)                                                                           \
    "{\"id\": \"" id "\", \"job\": \"" job                                                                        \
    "\", \"tenant\": \"red\", \"user\": \"ada\", \"pool\": \"dev\", \"state\": \"" state                          \
    "\", \"cause\": \"ready\", \"why\": \"set up\", \"mechanism\": \"timeslice\", \"stack\": \"timeslice 50%\", " \
    "\"tier\": \"process\", \"paused\": false, \"created_ms\": 1000, \"state_ms\": 9880000, \"until_ms\": null, " \
    "\"live\": " more "}"
#define FIX_LIVE "{\"state\": \"running\", \"compute_ppm\": 480000, \"memory_mib\": 4242, \"refused\": 1}"

#define FIX_JOB(id, state, name, why, end, status)                                                                     \
    "{\"id\": \"" id "\", \"tenant\": \"red\", \"user\": \"ada\", \"name\": " name                                     \
    ", \"pool\": \"dev\", \"state\": \"" state "\", \"why\": " why ", \"end\": " end ", \"status\": " status           \
    ", \"signal\": null, \"gpus\": 1, \"milli\": 500, "                                                                \
    "\"memory_mib\": 20480, \"profile\": null, \"tier\": \"process\", \"priority\": \"normal\", \"can_pause\": true, " \
    "\"can_suspend\": false, \"can_requeue\": true, \"firm\": false, \"order\": 0, \"duration_ms\": 7500000, "         \
    "\"deadline_ms\": null, \"submit_ms\": 9000000, \"state_ms\": 9880000}"

#define FIX_GPU                                                                                                             \
    "{\"index\": 0, \"uuid\": \"GPU-0\", \"model\": \"H100\", \"pci\": \"18:00.0\", \"pool\": \"dev\", \"state\": \"ok\", " \
    "\"reason\": null, \"health\": null, \"layout\": \"shared\", \"memory_mib\": 81920, \"used_mib\": 4242, "               \
    "\"util_percent\": 77, \"temperature_c\": 55, \"power_mw\": 300000, \"slices\": [{\"kind\": \"share\", \"key\": null, " \
    "\"state\": \"owned\", \"milli\": 500, \"memory_mib\": 40960, \"lease\": \"L1\", \"tenant\": \"red\", \"since_ms\": "   \
    "9880000, \"why\": null}, {\"kind\": \"share\", \"key\": \"b\", \"state\": \"quarantined\", \"milli\": 500, "           \
    "\"memory_mib\": 40960, \"lease\": null, \"tenant\": null, \"since_ms\": 1000, \"why\": \"the canary was there\"}], "   \
    "\"others\": null}"

#define FIX_WHY                                                                                                             \
    "{\"tier\": \"no room\", \"sentence\": \"it needs 1 GPU, and none is free\", \"starts\": false, \"need_milli\": 1000, " \
    "\"free_milli\": 0, \"ahead\": 2, \"until_ms\": 13600000, \"holders\": [{\"job\": \"J1\", \"tenant\": \"red\", "        \
    "\"milli\": 500, \"end_ms\": 13600000}, {\"job\": \"J2\", \"tenant\": \"red\", \"milli\": 500, \"end_ms\": null}], "    \
    "\"others\": {\"jobs\": 1, \"milli\": 2000}, \"remedies\": [{\"kind\": \"wait\", \"sentence\": \"wait\", \"tenant\": "  \
    "null, \"touches_others\": false, \"milli\": 0, \"at_ms\": 13600000}, {\"kind\": \"free\", \"sentence\": \"end J1\", "  \
    "\"tenant\": \"red\", \"touches_others\": false, \"milli\": 500, \"at_ms\": null}]}"

#define FIX_LEASE_DETAIL                                                                                                                   \
    "{\"lease\": " FIX_LEASE(                                                                                                              \
        "L1", "J1", "active",                                                                                                              \
        FIX_LIVE) ", \"stays_shared\": \"SMs, in turns; host kernel\", \"slices\": [{\"gpu\": \"GPU-0\", \"kind\": \"share\", "            \
                  "\"key\": null, \"milli\": 500, \"memory_mib\": 40960, \"proved_clean\": true}], \"history\": [{\"at_ms\": 1000, "       \
                  "\"from\": null, \"to\": \"requested\", \"cause\": null, \"why\": null}, {\"at_ms\": 2000, \"from\": \"requested\", "    \
                  "\"to\": \"admitted\", \"cause\": \"admit\", \"why\": \"within its quota\"}, {\"at_ms\": 9000, \"from\": \"admitted\", " \
                  "\"to\": \"active\", \"cause\": \"ready\", \"why\": null}], \"scrubs\": [{\"at_ms\": 3000, \"gpu\": \"GPU-0\", "         \
                  "\"verdict\": \"clean\", \"method\": \"overwrite\", \"probed_bytes\": 1073741824, \"total_bytes\": 2147483648, "         \
                  "\"words\": null}]}"

#endif
