/* SPDX-License-Identifier: Apache-2.0 */
/*
 * governor_at.h - where the governor's socket is, who listens there, and since when.
 */
#ifndef BH_LAUNCH_GOVERNOR_AT_H
#define BH_LAUNCH_GOVERNOR_AT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

/* Of a file in the run folder. */
int bh_governor_path(const char *name, char *ret, size_t size, struct bh_err *err) BH_MUST_USE;
int bh_governor_address(struct sockaddr_un *ret, struct bh_err *err) BH_MUST_USE;
/* As bh_governor_connect(), by then (bh_warden_now_ms()). */
int bh_governor_connect_until(int64_t until_ms, int *ret_fd, struct bh_err *err) BH_MUST_USE;
int bh_governor_no_answer(struct bh_err *err);

struct bh_governor_socket {
    bool is_there; /* also of a governor that was killed; one that ends takes it away */
    bool
        is_young; /* made a moment ago; where the clock was set meanwhile that is not known, and taken for old */
};
struct bh_governor_socket bh_governor_look(void);

#endif
