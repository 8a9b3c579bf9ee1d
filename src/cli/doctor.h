/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h - every layer of a GPU node against what tenants can be promised on it.
 *
 * Three steps that do not mix: facts are gathered (doctor_gather.c), judged by small pure functions that
 * stand in tables (doctor_<layer>.c), and shown (doctor_text.c, doctor_json.c). A judgement says what was
 * seen, which ways of sharing it takes away, why that matters and how to mend it. What could not be seen is
 * unknown, never good.
 */
#ifndef BH_CLI_DOCTOR_H
#define BH_CLI_DOCTOR_H

#include "base/arena.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "gpu/gpu.h"
#include "host/platform.h"
#include "host/probe.h"
#include "host/probe_files.h"

enum bh_check_state {
    BH_CHECK_OK,
    BH_CHECK_NOTE, /* weaker than it could be, or an option that is not there: nothing has to be mended */
    BH_CHECK_ATTENTION, /* a rule or a promise suffers */
    BH_CHECK_BROKEN,    /* a part that everything needs does not work */
    BH_CHECK_UNKNOWN,   /* could not be looked at */
    BH_CHECK_NONE,      /* does not apply to this node */
    BH_N_CHECK_STATES,
};

/* What may be promised on a node; a check that fails takes some of them away. */
enum bh_mode {
    BH_MODE_WHOLE = 1 << 0,
    BH_MODE_MIG = 1 << 1,
    BH_MODE_GATE = 1 << 2,
    BH_MODE_MPS = 1 << 3,
    BH_MODE_NVLINK = 1 << 4,
    BH_MODE_SUSPEND = 1 << 5,
    BH_MODE_CONTAINER = 1 << 6,
    BH_MODE_VM = 1 << 7,
    BH_MODE_CVM = 1 << 8,
    BH_MODE_ALL = (1 << 9) - 1,
};
enum { BH_N_MODES = 9, BH_CHECK_RULES_MAX = 2 };

struct bh_doctor_facts {
    const struct bh_gpu_snapshot *gpus; /* NVIDIA's; NULL: the driver gave none */
    struct bh_err gpus_err;             /* why */
    const struct bh_gpu_snapshot *amd;  /* AMD's, of which nothing is promised; NULL: none seen */
    struct bh_err amd_err;              /* why */
    const char *stand_in; /* what is simulated where no simulated GPU says so itself; NULL: nothing */
    const struct bh_platform *platform;
    const struct bh_node *node;
    const struct bh_probes *probes;
    int32_t day; /* bulletins published later do not count */
};

struct bh_check_result {
    const struct bh_check *check;
    uint8_t state;                    /* enum bh_check_state */
    uint32_t takes;                   /* enum bh_mode bits; where the state is unknown: which may be taken */
    const char *seen;                 /* one line */
    const char *because;              /* the same in a few words, for the last line; NULL: seen will do */
    const char *mend;                 /* in place of the table's; NULL: that one */
    uint32_t first_detail, n_details; /* of bh_doctor.details */
};

struct bh_doctor {
    const struct bh_doctor_facts *f;
    struct bh_arena arena; /* owns every text made here */
    BH_VEC(struct bh_check_result) results;
    BH_VEC(const char *) details;
};

struct bh_check {
    const char *id;                        /* `kernel.seccomp-notify`; NULL ends a table */
    const char *rules[BH_CHECK_RULES_MAX]; /* `BH-057`; NULL: no rule asks for it */
    uint32_t modes;                        /* what it may take away */
    bool needs_gpu;                        /* nothing to look at without a GPU that answers */
    bool needs_live;                       /* asks the running kernel */
    struct bh_check_result (*judge)(struct bh_doctor *d);
    const char *why, *mend; /* shown when something is to be said */
};

struct bh_doctor_layer {
    const char *name;
    const struct bh_check *checks;
};
extern const struct bh_doctor_layer bh_doctor_layers[]; /* from the silicon up; a NULL name ends it */
extern const struct bh_check bh_checks_silicon[], bh_checks_driver[], bh_checks_devices[], bh_checks_fabric[],
    bh_checks_kernel[], bh_checks_containers[], bh_checks_virtual[], bh_checks_scheduler[], bh_checks_mps[],
    bh_checks_host[];

enum bh_can { BH_CAN, BH_CANNOT, BH_CAN_UNKNOWN };
struct bh_promise {
    uint8_t can;                      /* enum bh_can */
    const struct bh_check_result *by; /* the first that takes it away, or may; NULL: it can be kept */
};

const char *bh_check_state_str(unsigned state); /* `ok`, `attention`, `not-applicable` ... */
const char *bh_mode_str(size_t mode);           /* by its bit: `whole GPU` */
const char *bh_mode_word(size_t mode);          /* the same for programs: `whole` */

void bh_doctor_judge(struct bh_doctor *d, const struct bh_doctor_facts *f); /* d is zeroed */
void bh_doctor_fini(struct bh_doctor *d);
void bh_doctor_promises(const struct bh_doctor *d, struct bh_promise ret[BH_N_MODES]);
size_t bh_doctor_count(const struct bh_doctor *d, enum bh_check_state state);
int bh_doctor_exit(const struct bh_doctor *d);

/* Facts of this machine, or of the one BULKHEAD_SYSROOT stands for. */
struct bh_doctor_gathered {
    struct bh_doctor_facts facts;
    struct bh_gpu_snapshot gpus, amd;
    struct bh_platform platform;
    struct bh_node node;
    struct bh_probes probes;
};
void bh_doctor_gather(struct bh_doctor_gathered *ret, int32_t day);
void bh_doctor_gathered_fini(struct bh_doctor_gathered *g);

void bh_doctor_text(struct bh_cli *cli, const struct bh_doctor *d, bool verbose);
void bh_doctor_json(struct bh_buf *out, const struct bh_doctor *d);

/* ---- for the judges ---- */

struct bh_check_result bh_saw(struct bh_doctor *d, enum bh_check_state state, uint32_t takes, const char *fmt,
                              ...) BH_PRINTF(4, 5);
/* A line that only --verbose shows; belongs to the check that is being judged. */
void bh_doctor_detail(struct bh_doctor *d, const char *fmt, ...) BH_PRINTF(2, 3);
/* `GPU 3`, `GPUs 3, 5`: the living ones the question says yes to; *ret_n how many. */
typedef bool bh_gpu_question(const struct bh_doctor *d, const struct bh_gpu_device *g);
const char *bh_doctor_gpus(struct bh_doctor *d, bh_gpu_question *asks, size_t *ret_n);
/* What stands in for a machine, as words; NULL: nothing does, it is real. */
const char *bh_doctor_simulated(const struct bh_doctor *d);
/* Only AMD's GPUs are here, and no driver of NVIDIA's is missed. */
bool bh_doctor_amd_alone(const struct bh_doctor *d);
/* The GPU does not have it: an answer. */
bool bh_reading_lacks(struct bh_reading r);
/* No answer, and not because it does not have it: a gap, which must not be taken for "no". */
bool bh_reading_blind(struct bh_reading r);
/* A module parameter of the driver, or NULL. */
const char *bh_doctor_param(const struct bh_doctor *d, const char *key);
/* The largest of the living GPUs' memories, 0: unknown. */
uint64_t bh_doctor_largest(const struct bh_doctor *d);
/* What the bulletins say about a version, as one judgement; BH-052 and BH-053. */
struct bh_check_result bh_doctor_advisories(struct bh_doctor *d, const char *component, const char *version);
/* Is version a at or above b? False when either cannot be read. */
bool bh_doctor_at_least(const char *a, const char *b);

#endif
