/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topic.h - what a call is about: the row of an interface table it belongs to.
 *
 * All allocations of class 40 are one topic whatever their size, and so are all controls of one command.
 */
#ifndef BH_RECORD_TOPIC_H
#define BH_RECORD_TOPIC_H

#include "record/record.h"

struct bh_topic {
    uint8_t kind, file; /* file: only where it tells topics apart (open, close, map, UVM calls) */
    uint32_t key;       /* class, command, function or number */
};

bool bh_call_has_topic(const struct bh_call *call); /* marks and processes have none */
struct bh_topic bh_topic_of(const struct bh_call *call);
int bh_topic_cmp(const struct bh_topic *a, const struct bh_topic *b);
/* `class 40`, `control 20801303`, `uvm call 37`, `open ctl` ... */
void bh_topic_write(struct bh_buf *out, const struct bh_topic *t);

/* For people: how often each topic occurs, by section; section NULL: all of them. False: no such section. */
bool bh_recording_summary(struct bh_buf *out, const struct bh_recording *r, const char *section);

#endif
