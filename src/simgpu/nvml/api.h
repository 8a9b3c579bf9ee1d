/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - what the files of the stand-in library share: how a call begins and ends, handles, the driver's client.
 *
 * Every exported function starts with one of the bh_nv_enter calls, which takes the library's one lock, asks the node
 * how it stands and answers what the vendor's library would before it looks at anything: not initialised, a NULL, a
 * lost GPU, a call that was broken on purpose. The lock is given back when the struct goes out of scope.
 */
#ifndef BH_SIMGPU_NVML_API_H
#define BH_SIMGPU_NVML_API_H

#include "base/mem.h"
#include "core/model/catalog.h"
#include "gpu/abi/nvml.h"
#include "simgpu/view.h"

#include <stdbool.h>

/* A function of the interface, with its own prototype. Nothing else is exported. */
#define EXPORTED __attribute__((visibility("default")))
#define API(name, ...)              \
    EXPORTED int name(__VA_ARGS__); \
    int name(__VA_ARGS__)

enum { BH_NV_GPUS = 64, BH_NV_GIS = 32, BH_NV_CIS = 8, BH_NV_NO_ID = UINT32_MAX };

/* Which handles a function takes. */
enum bh_nv_kind { BH_NV_WHOLE = 1, BH_NV_SLICE = 2, BH_NV_EITHER = 3 };

struct bh_nv_call {
    int status; /* NVML_OK: the rest may be used */
    const struct bh_sim_node_view *node;
    const struct bh_sim_gpu_view *gpu;
    const struct bh_sim_gi_view *gi; /* NULL: the whole GPU */
    const struct bh_sim_ci_view *ci;
    const struct bh_gpu_model *model; /* NULL: not in the catalogue */
};

void bh_nv_leave(struct bh_nv_call *c);
#define BH_NV_CALL BH_AUTO(bh_nv_leave) struct bh_nv_call
/* arguments_ok: no pointer is NULL. function: the caller's name, for calls that are broken on purpose. */
struct bh_nv_call bh_nv_enter_(const char *function, bool arguments_ok);
struct bh_nv_call bh_nv_enter_device_(const char *function, nvml_device_t device, unsigned kinds,
                                      bool arguments_ok);
struct bh_nv_call bh_nv_enter_gi_(const char *function, nvml_gpu_instance_t gi, bool arguments_ok);
struct bh_nv_call bh_nv_enter_ci_(const char *function, nvml_compute_instance_t ci, bool arguments_ok);

/* What follows from arguments_ok is said here, where whoever reads a caller, or analyses it, sees it. */
static inline struct bh_nv_call bh_nv_checked_(struct bh_nv_call c, bool arguments_ok)
{
    if (!arguments_ok && c.status == NVML_OK)
        c.status = NVML_INVALID_ARGUMENT;
    return c;
}
#define bh_nv_enter(function, ok)            bh_nv_checked_(bh_nv_enter_(function, ok), ok)
#define bh_nv_enter_gi(function, handle, ok) bh_nv_checked_(bh_nv_enter_gi_(function, handle, ok), ok)
#define bh_nv_enter_ci(function, handle, ok) bh_nv_checked_(bh_nv_enter_ci_(function, handle, ok), ok)
#define bh_nv_enter_device(function, handle, kinds, ok) \
    bh_nv_checked_(bh_nv_enter_device_(function, handle, kinds, ok), ok)

/* Within a call: the view anew, after a change; or of a second GPU. The status of it. */
int bh_nv_refresh(struct bh_nv_call *c);
int bh_nv_peer(nvml_device_t device, const struct bh_sim_gpu_view **ret);
int bh_nv_peer_at(uint32_t gpu, const struct bh_sim_gpu_view **ret);

/* Handles are places in tables: the same GPU or instance has the same one as long as the library is loaded. */
nvml_device_t bh_nv_device(uint32_t gpu);
nvml_device_t bh_nv_slice(uint32_t gpu, uint32_t gi, uint32_t ci);
nvml_gpu_instance_t bh_nv_gi(uint32_t gpu, uint32_t gi);
nvml_compute_instance_t bh_nv_ci(uint32_t gpu, uint32_t gi, uint32_t ci);

/* Text into the caller's buffer, or NVML_INSUFFICIENT_SIZE. */
int bh_nv_say(char *buf, unsigned size, const char *text);
/* A number, or NVML_NOT_SUPPORTED where the card has none. */
int bh_nv_number(struct bh_nv_call *c, uint32_t value, unsigned *ret);
void bh_nv_pci(const char *address, uint32_t device_id, struct nvml_pci_info *ret);

/* client.c: a control call of the kernel driver on one GPU; gi BH_NV_NO_ID: on all of it. An NVML status. */
int bh_nv_control(uint32_t gpu, uint32_t gi, uint32_t command, void *params, uint32_t n_params);
/* Asks for the card's load (power, clocks, temperature, use) to be brought up to date, as the vendor's library does before
 * it reads any of it; who does not get it has none of them. The call's status. */
int bh_nv_poll(struct bh_nv_call *c);
void bh_nv_client_close(void);
int bh_nv_status_of_errno(int error);

/* What only the driver's library says of models and profiles: gen_facts.py writes the tables from the catalogue. */
struct bh_nv_profile_fact {
    const char *model;
    uint8_t id, nvml_enum, copy, decoder, encoder, jpeg, ofa; /* engines: 0 where they are not published */
};
struct bh_nv_model_fact {
    const char *model;
    uint8_t capability;
};
extern const struct bh_nv_profile_fact bh_nv_profile_facts[];
extern const struct bh_nv_model_fact bh_nv_model_facts[];
extern const size_t bh_nv_profile_fact_count, bh_nv_model_fact_count;

/* profile.c: a profile of the model with what only the driver's library says of it. */
struct bh_nv_profile {
    const struct bh_mig_profile *catalog;
    uint32_t nvml_enum, copy, decoder, encoder, jpeg, ofa;
};
bool bh_nv_profile_by_enum(const struct bh_gpu_model *m, uint32_t nvml_enum, struct bh_nv_profile *ret);
bool bh_nv_profile_by_id(const struct bh_gpu_model *m, uint32_t id, struct bh_nv_profile *ret);
uint64_t bh_nv_profile_mib(const struct bh_nv_call *c, const struct bh_mig_profile *p);
uint32_t bh_nv_profile_sm(const struct bh_nv_call *c, const struct bh_mig_profile *p);
/* Compute capability, tens and ones: 90; 0: not known. */
uint32_t bh_nv_capability(const struct bh_gpu_model *m);

/* mig.c: one order to the node; and whether the caller may look at the cut at all. */
int bh_nv_mig(struct bh_nv_call *c, struct bh_sim_mig_order *order);
int bh_nv_may_see_cut(struct bh_nv_call *c);

#endif
