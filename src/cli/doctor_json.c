/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_json.c - the examination for programs: every check, whether it applies or not. */
#include "base/json.h"
#include "cli/doctor.h"

static void write_rules(struct bh_json *j, const struct bh_check *c)
{
    bh_json_key(j, "rules");
    bh_json_open_flat(j, '[');
    for (size_t i = 0; i < BH_CHECK_RULES_MAX && c->rules[i]; i++)
        bh_json_str(j, c->rules[i]);
    bh_json_close(j, ']');
}

static void write_modes(struct bh_json *j, const char *key, uint32_t modes)
{
    bh_json_key(j, key);
    bh_json_open_flat(j, '[');
    for (size_t m = 0; m < BH_N_MODES; m++)
        if (modes >> m & 1)
            bh_json_str(j, bh_mode_word(m));
    bh_json_close(j, ']');
}

static void write_check(struct bh_json *j, const struct bh_doctor *d, const char *layer,
                        const struct bh_check_result *r)
{
    bool said = r->state != BH_CHECK_OK && r->state != BH_CHECK_NONE;
    bh_json_open(j, '{');
    bh_json_key_str(j, "id", r->check->id);
    bh_json_key_str(j, "layer", layer);
    bh_json_key_str(j, "state", bh_check_state_str(r->state));
    bh_json_key_str(j, "seen", r->seen);
    bh_json_key_bool(j, "live", r->check->needs_live);
    write_rules(j, r->check);
    write_modes(j, "takes", r->takes);
    bh_json_key_str(j, "why", said ? r->check->why : NULL);
    bh_json_key_str(j, "mend", !said ? NULL : r->mend ? r->mend : r->check->mend);
    bh_json_key(j, "details");
    bh_json_open(j, '[');
    for (uint32_t i = 0; i < r->n_details; i++)
        bh_json_str(j, d->details.at[r->first_detail + i]);
    bh_json_close(j, ']');
    bh_json_close(j, '}');
}

static void write_promises(struct bh_json *j, const struct bh_doctor *d)
{
    static const char *const words[] = {[BH_CAN] = "yes", [BH_CANNOT] = "no", [BH_CAN_UNKNOWN] = "unknown"};
    struct bh_promise p[BH_N_MODES];
    bh_doctor_promises(d, p);
    bh_json_key(j, "promises");
    bh_json_open(j, '[');
    for (size_t m = 0; m < BH_N_MODES; m++) {
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "mode", bh_mode_word(m));
        bh_json_key_str(j, "can", words[p[m].can]);
        bh_json_key_str(j, "check", p[m].by ? p[m].by->check->id : NULL);
        bh_json_key_str(j, "because", !p[m].by ? NULL : p[m].by->because ? p[m].by->because : p[m].by->seen);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

void bh_doctor_json(struct bh_buf *out, const struct bh_doctor *d)
{
    struct bh_json j;
    const struct bh_check_result *r = d->results.at;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_bool(&j, "simulated", bh_doctor_simulated(d) != NULL);
    bh_json_key_str(&j, "root", d->f->platform->root);
    bh_json_key_str(&j, "node", d->f->platform->hostname.text);
    bh_json_key_str(&j, "kernel", d->f->platform->kernel.text);
    bh_json_key_bool(&j, "live", !d->f->probes->skipped);
    bh_json_key(&j, "checks");
    bh_json_open(&j, '[');
    for (const struct bh_doctor_layer *l = bh_doctor_layers; l->name; l++)
        for (const struct bh_check *c = l->checks; c->id; c++)
            write_check(&j, d, l->name, r++);
    bh_json_close(&j, ']');
    bh_json_key(&j, "counts");
    bh_json_open_flat(&j, '{');
    for (unsigned s = 0; s < BH_N_CHECK_STATES; s++)
        bh_json_key_u64(&j, bh_check_state_str(s), bh_doctor_count(d, (enum bh_check_state)s));
    bh_json_close(&j, '}');
    write_promises(&j, d);
    bh_json_close(&j, '}');
}
