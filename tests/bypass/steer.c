/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steer.c - more of the card's time: a neighbour paused, one's own pause or slice undone.
 *
 * The driver itself lets anybody do all of it. What it says to a name that is not there is told apart from a refusal.
 */
#include "bypass.h"

static int set_running(struct rm *r, uint32_t client, uint32_t channel, bool running)
{
    struct rm_disable_channels d = {.disable = !running, .count = 1};
    d.clients[0] = client;
    d.channels[0] = channel;
    return rm_control(r, r->subdevice, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d));
}

static uint32_t must_make_group(struct rm *r)
{
    uint8_t params[20] = {0};
    uint32_t group = rm_name(r);
    params[12] = 1; /* engine: the first graphics one */
    const int rc = rm_alloc(r, r->device, &group, RM_CLASS_CHANNEL_GROUP, params);
    if (rc != RM_OK)
        bp_cannot("no channel group: %s", bp_result(rc));
    return group;
}

/* Among names of one's own as well: all of a call is looked at. */
static int pause_neighbour(void)
{
    struct bp_outside o;
    struct rm r;
    struct rm_disable_channels d = {.disable = 1, .count = 2};
    int fd;
    bp_ask_outside(&o, &fd);
    rm_must_open(&r);
    bp_expect("pausing a channel of a client outside", set_running(&r, o.client, 1, false),
              RM_INSUFFICIENT_PERMISSIONS);
    bp_expect("resuming it", set_running(&r, o.client, 1, true), RM_INSUFFICIENT_PERMISSIONS);
    d.clients[0] = r.client;
    d.clients[1] = o.client;
    d.channels[0] = d.channels[1] = 1;
    bp_expect("between names of its own",
              rm_control(&r, r.subdevice, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d)),
              RM_INSUFFICIENT_PERMISSIONS);
    d.count = COUNT(d.clients) + 1;
    bp_expect("more names than there is room for",
              rm_control(&r, r.subdevice, RM_CTRL_FIFO_DISABLE_CHANNELS, &d, sizeof(d)), RM_INVALID_ARGUMENT);
    return bp_hold();
}

static int resume_self(void)
{
    struct rm r;
    rm_must_open(&r);
    bp_expect("resuming a channel of its own", set_running(&r, r.client, 1, true),
              RM_INSUFFICIENT_PERMISSIONS);
    bp_expect("pausing it", set_running(&r, r.client, 1, false), RM_INSUFFICIENT_PERMISSIONS);
    return bp_hold();
}

/* The vendor's library asks once for each context and must not fail: the answer is yes, and nothing is done. */
static int set_own_slice(void)
{
    struct rm r;
    uint64_t slice = 100000, before = 0, after = 0;
    uint32_t level = 2;
    rm_must_open(&r);
    const uint32_t group = must_make_group(&r);
    int rc = rm_control(&r, group, RM_CTRL_GROUP_GET_TIMESLICE, &before, sizeof(before));
    if (rc != RM_OK)
        bp_cannot("its slice cannot be read: %s", bp_result(rc));
    bp_expect("a slice of 100 ms, asked for once",
              rm_control(&r, group, RM_CTRL_GROUP_SET_TIMESLICE, &slice, sizeof(slice)), RM_OK);
    rc = rm_control(&r, group, RM_CTRL_GROUP_GET_TIMESLICE, &after, sizeof(after));
    if (rc != RM_OK || after == slice)
        bp_bad("it has the slice that it asked for");
    bp_expect("and again", rm_control(&r, group, RM_CTRL_GROUP_SET_TIMESLICE, &slice, sizeof(slice)),
              RM_INSUFFICIENT_PERMISSIONS);
    bp_expect("to come more often",
              rm_control(&r, group, RM_CTRL_GROUP_SET_INTERLEAVE, &level, sizeof(level)),
              RM_INSUFFICIENT_PERMISSIONS);
    return bp_hold();
}

const struct bp_attempt bp_steer[] = {
    {"pause-neighbour", pause_neighbour, BP_RAW | BP_OUTSIDE,
     "pausing a channel of somebody else by its name"},
    {"resume-self", resume_self, BP_RAW | BP_SHARE,
     "resuming its own channels in a lease whose share is held"},
    {"set-own-slice", set_own_slice, BP_RAW | BP_SHARE, "a longer slice in a lease whose share is held"},
    {0},
};
