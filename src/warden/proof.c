/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.c - second names for memory that is being freed, and what the driver says of them.
 *
 * The driver tells a process's memory apart: what it alone has, and what it shares. Nobody can take a name for what is in
 * the warden's client, so what the warden alone has stays so, and "shared" can only become "alone". Where nothing is
 * shared at all (the usual case) one question answers for everything. Else each piece is asked about by taking a third
 * name for it: what is "alone" shrinks only if the piece was the warden's alone.
 */
#include "warden/proof.h"

#include "base/units.h"
#include "gpu/abi/rm.h"

#include <string.h>

enum {
    FIRST_NAME = 0x0b100000,
    N_NAMES = 1 << 20,
    PROBE_NAME = FIRST_NAME + N_NAMES, /* the third name; there is one at a time */
    NAME_TRIES = 4,
    LOOKS = 8,
    FRESH_MAX = 32,
};
#define FRESH_BYTES (64 * BH_MIB)
/* The files of the two clients in the ledger: the warden's own numbers start at 1. */
#define NO_FILE (UINT64_C(1) << 63)

void bh_proof_init(struct bh_proof *p, const struct bh_driver *driver, void *self, struct bh_ledger *ledger)
{
    *p = (struct bh_proof){.driver = driver, .self = self, .ledger = ledger};
}

void bh_proof_fini(struct bh_proof *p)
{
    bh_vec_fini(&p->pieces);
    bh_vec_fini(&p->fresh);
    bh_vec_fini(&p->kept);
}

void bh_proof_adopt(struct bh_proof *p)
{
    /* The names went with the client of the warden that died. */
    bh_ledger_drop(p->ledger, BH_PROOF_FRESH, BH_PROOF_FRESH);
}

/* ---- taking a name ---- */

/* Nobody but the client itself can let others have its memory; this is the client's own file. */
static void share(const struct bh_proof *p, int fd, uint32_t client)
{
    struct rm_share s = {.client = client,
                         .object = client,
                         .target = p->driver->client(p->self),
                         .rights = RM_RIGHT_DUP,
                         .type = RM_SHARE_CLIENT,
                         .action = RM_SHARE_ADD};
    (void)p->driver->ioctl(fd, RM_IOC(RM_SHARE, sizeof(s)), &s);
}

static uint32_t next_name(struct bh_proof *p)
{
    p->last_name = (p->last_name + 1) % N_NAMES;
    return FIRST_NAME + p->last_name;
}

/* A tenant may have taken back what was shared a moment ago, and the driver may have the name already. */
static uint32_t hold(struct bh_proof *p, int fd, const struct bh_ledger_piece *piece, uint32_t *ret_name)
{
    uint32_t status = RM_INVALID_STATE;
    for (int i = 0; i < NAME_TRIES; i++) {
        *ret_name = next_name(p);
        status = p->driver->hold(p->self, piece->gpu, *ret_name, piece->client, piece->object);
        if (status == RM_INSUFFICIENT_PERMISSIONS)
            share(p, fd, piece->client);
        else if (status != RM_INSERT_DUPLICATE_NAME)
            break;
    }
    return status;
}

/* There is no such memory, or nobody can have it any more: nothing to prove. */
static bool is_nothing(uint32_t status)
{
    static const uint32_t nothing[] = {RM_OBJECT_NOT_FOUND, RM_INVALID_OBJECT_HANDLE, RM_INVALID_CLIENT,
                                       RM_GPU_IS_LOST,      RM_NOT_SUPPORTED,         RM_INVALID_DEVICE};
    for (size_t i = 0; i < BH_COUNT_OF(nothing); i++)
        if (status == nothing[i])
            return true;
    return false;
}

static void charge(struct bh_proof *p, uint32_t client, uint32_t name, uint32_t gpu, uint32_t source_client,
                   uint32_t source)
{
    const struct bh_ledger_object o = {.client = client, .parent = client, .object = name, .gpu = gpu};
    (void)bh_ledger_client(p->ledger, client, NO_FILE | client, client);
    bh_ledger_dup(p->ledger, &o, source_client, source);
}

static void pin(struct bh_proof *p, int fd, const struct bh_ledger_piece *piece)
{
    uint32_t name;
    const uint32_t status = hold(p, fd, piece, &name);
    if (status == RM_NOT_SUPPORTED)
        p->cannot[piece->gpu] = true;
    if (is_nothing(status))
        return;
    charge(p, BH_PROOF_FRESH, name, piece->gpu, piece->client, piece->object);
    *bh_vec_push(&p->fresh) = (struct bh_proof_pin){name, piece->gpu, status == RM_OK, piece->bytes};
}

/* One name is enough, and two of ours for one piece would each take the other for somebody else's. */
static bool is_pinned(const struct bh_ledger_pieces *pieces, size_t i)
{
    for (size_t k = 0; pieces->at[i].names > 1 && k < i; k++)
        if (pieces->at[k].block == pieces->at[i].block)
            return true;
    return false;
}

static void pin_all(struct bh_proof *p, int fd)
{
    for (size_t i = 0; i < p->pieces.n; i++)
        if (p->pieces.at[i].gpu != UINT32_MAX && !is_pinned(&p->pieces, i))
            pin(p, fd, &p->pieces.at[i]);
}

bool bh_proof_before(struct bh_proof *p, int fd, uint32_t client, uint32_t object)
{
    p->mark = p->fresh.n;
    p->pieces.n = 0;
    bh_ledger_pieces_below(p->ledger, client, object, &p->pieces);
    const bool one = p->pieces.n == 1 && p->pieces.at[0].object == object;
    /* Where it has another name, it will be looked at when that one goes. */
    if (!one || p->pieces.at[0].names == 1)
        pin_all(p, fd);
    return one;
}

void bh_proof_before_close(struct bh_proof *p, int fd, uint64_t file)
{
    p->pieces.n = 0;
    bh_ledger_pieces_of_file(p->ledger, file, &p->pieces);
    pin_all(p, fd);
}

bool bh_proof_holds(struct bh_proof *p, uint64_t file)
{
    p->pieces.n = 0;
    bh_ledger_pieces_of_file(p->ledger, file, &p->pieces);
    return p->pieces.n > 0;
}

/* ---- giving it up ---- */

static void let_go(struct bh_proof *p, uint32_t client, const struct bh_proof_pin *pin)
{
    if (pin->held)
        (void)p->driver->let_go(p->self, pin->name);
    bh_ledger_drop(p->ledger, client, pin->name);
}

void bh_proof_cancel(struct bh_proof *p)
{
    while (p->fresh.n > p->mark)
        let_go(p, BH_PROOF_FRESH, &p->fresh.at[--p->fresh.n]);
}

static uint64_t sum_on(const struct bh_proof_pins *pins, uint32_t gpu)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < pins->n; i++)
        sum += pins->at[i].gpu == gpu ? pins->at[i].bytes : 0;
    return sum;
}

/* One question for all: is nothing of what is held here shared? */
static bool all_alone(const struct bh_proof *p, uint32_t gpu)
{
    struct bh_driver_held held;
    return p->driver->held(p->self, gpu, &held) == BH_OK && held.shared == 0 &&
           held.alone >= sum_on(&p->fresh, gpu) + sum_on(&p->kept, gpu);
}

static bool alone(const struct bh_proof *p, const struct bh_proof_pin *pin)
{
    struct bh_driver_held before, after;
    const uint32_t own = p->driver->client(p->self);
    if (p->driver->held(p->self, pin->gpu, &before) < 0 ||
        p->driver->hold(p->self, pin->gpu, PROBE_NAME, own, pin->name) != RM_OK)
        return false;
    const bool known = p->driver->held(p->self, pin->gpu, &after) == BH_OK;
    (void)p->driver->let_go(p->self, PROBE_NAME);
    return known && after.alone < before.alone;
}

static void take_out(struct bh_proof_pins *pins, size_t i)
{
    pins->at[i] = pins->at[--pins->n];
}

static void let_go_of_all_on(struct bh_proof *p, uint32_t client, struct bh_proof_pins *pins, uint32_t gpu)
{
    for (size_t i = pins->n; i-- > 0;)
        if (pins->at[i].gpu == gpu) {
            let_go(p, client, &pins->at[i]);
            take_out(pins, i);
        }
}

static void keep(struct bh_proof *p, const struct bh_proof_pin *pin)
{
    charge(p, BH_PROOF_KEPT, pin->name, pin->gpu, BH_PROOF_FRESH, pin->name);
    bh_ledger_drop(p->ledger, BH_PROOF_FRESH, pin->name);
    if (pin->held)
        *bh_vec_push(&p->kept) = *pin;
}

/* What can never be proved is kept from the beginning. */
static void keep_unheld(struct bh_proof *p)
{
    for (size_t i = p->fresh.n; i-- > 0;) {
        const struct bh_proof_pin pin = p->fresh.at[i];
        if (pin.held)
            continue;
        take_out(&p->fresh, i);
        keep(p, &pin);
    }
}

bool bh_proof_is_due(const struct bh_proof *p)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->fresh.n; i++)
        bytes += p->fresh.at[i].bytes;
    return p->fresh.n >= FRESH_MAX || bytes >= FRESH_BYTES;
}

bool bh_proof_settle(struct bh_proof *p)
{
    const bool any = p->fresh.n > 0;
    keep_unheld(p);
    while (p->fresh.n) {
        const struct bh_proof_pin last = p->fresh.at[p->fresh.n - 1];
        if (all_alone(p, last.gpu)) {
            let_go_of_all_on(p, BH_PROOF_FRESH, &p->fresh, last.gpu);
            let_go_of_all_on(p, BH_PROOF_KEPT, &p->kept, last.gpu);
            continue;
        }
        p->fresh.n--;
        if (alone(p, &last))
            let_go(p, BH_PROOF_FRESH, &last);
        else
            keep(p, &last);
    }
    return any;
}

/* Is any of what was kept the warden's alone by now? One question instead of one for each. */
static bool any_alone(const struct bh_proof *p, uint32_t gpu)
{
    struct bh_driver_held held;
    return p->driver->held(p->self, gpu, &held) == BH_OK && held.alone > sum_on(&p->fresh, gpu);
}

/* True: it went. */
static bool look_at(struct bh_proof *p, size_t i)
{
    if (!alone(p, &p->kept.at[i]))
        return false;
    let_go(p, BH_PROOF_KEPT, &p->kept.at[i]);
    take_out(&p->kept, i);
    return true;
}

void bh_proof_look_again(struct bh_proof *p)
{
    if (p->kept.n == 0 || !any_alone(p, p->kept.at[p->next_look % p->kept.n].gpu)) {
        p->next_look++; /* the next one may be on another GPU */
        return;
    }
    for (size_t looks = p->kept.n < LOOKS ? p->kept.n : LOOKS; looks > 0; looks--) {
        p->next_look = p->next_look < p->kept.n ? p->next_look : 0;
        if (!look_at(p, p->next_look))
            p->next_look++;
    }
}

void bh_proof_look_at_all(struct bh_proof *p, uint32_t gpu)
{
    for (size_t i = p->kept.n; i-- > 0 && any_alone(p, gpu);)
        if (p->kept.at[i].gpu == gpu)
            (void)look_at(p, i);
}

bool bh_proof_is_memory(struct bh_proof *p, int fd, const struct bh_ledger_piece *piece)
{
    struct bh_driver_held before, after;
    uint32_t name;
    if (p->driver->held(p->self, piece->gpu, &before) < 0 || hold(p, fd, piece, &name) != RM_OK)
        return false;
    const bool known = p->driver->held(p->self, piece->gpu, &after) == BH_OK;
    (void)p->driver->let_go(p->self, name);
    return known && after.alone + after.shared > before.alone + before.shared;
}

bool bh_proof_is_own(uint32_t client)
{
    return client == BH_PROOF_FRESH || client == BH_PROOF_KEPT;
}
