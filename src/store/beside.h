/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beside.h - what waits for a disk, in a thread of its own, while the thread that asked for it serves others.
 *
 * Whoever calls bh_beside_run() goes on when it is done, as if it had been an ordinary call; so what is written in order
 * still happens in order. Meanwhile the caller's thread runs what bh_beside_meanwhile() named: something that touches
 * nothing of what is under way. One piece of work at a time, and one thread that asks for it.
 *
 * The thread takes no signal and starts no process. A child that is forked has none of it, and must not ask it for anything.
 */
#ifndef BH_STORE_BESIDE_H
#define BH_STORE_BESIDE_H

#include "base/err.h"

struct bh_beside;
typedef void (*bh_beside_work)(void *arg);
/* Returns when `until` is readable, or sooner if there is nothing it could do. */
typedef void (*bh_beside_serve)(void *arg, int until);

int bh_beside_start(struct bh_beside **ret, struct bh_err *err) BH_MUST_USE;
void bh_beside_stop(struct bh_beside *take_b); /* NULL is fine; nothing may be under way */
void bh_beside_meanwhile(struct bh_beside *b, bh_beside_serve serve, void *arg);
/* b NULL, or something is under way (it was called from what runs meanwhile): in the caller's thread. */
void bh_beside_run(struct bh_beside *b, bh_beside_work work, void *arg);

#endif
