/* SPDX-License-Identifier: Apache-2.0 */
/*
 * escape.h - what the card says of a seat, against what is written down of it.
 *
 * Channels can be paused and resumed by whoever knows their names, and be made where nobody is told of them. So who should
 * run and had nothing of the card is resumed again, and who should not and had some is paused again; if that does not help
 * there is a channel that nobody can name, and the lease has to end.
 */
#ifndef BH_GOVERNOR_ESCAPE_H
#define BH_GOVERNOR_ESCAPE_H

#include "governor/state.h"

#define BH_ESCAPE_LOOK_NS UINT64_C(1000000000)
enum {
    BH_ESCAPE_SETTLED_US = 30000, /* a sample from before that may be of the time before the pause */
    BH_ESCAPE_END_US = 1000000,
    BH_ESCAPE_PART = 20, /* less than this part of the time is nobody's fault */
};

/*
 * What it had since the last step (or BH_GOVERN_NO_SAMPLE), and whether it was to pause meanwhile. Marks it unsure where it had
 * the card all the same. True: so it was for BH_ESCAPE_END_US, with every name paused again and again.
 */
bool bh_escape_watch(struct bh_seat *s, bool to_pause, uint64_t gpu_ns, uint32_t elapsed_us);
/* Once a second: marks it unsure where it is to run and had nothing. */
void bh_escape_look(struct bh_seat *s, bool to_run, uint64_t now_ns);

#endif
