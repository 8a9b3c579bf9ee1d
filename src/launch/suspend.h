/* SPDX-License-Identifier: Apache-2.0 */
/* suspend.h - moves the GPU memory of a governed lease to the host, and back. For root; may take as long as that takes. */
#ifndef BH_LAUNCH_SUSPEND_H
#define BH_LAUNCH_SUSPEND_H

#include "gpu/checkpoint.h"

/* lease: by number or name, as the governor knows it. All of its processes that use CUDA, or none. progress may be NULL. */
int bh_suspend(const char *lease, const struct bh_checkpoint_progress *progress,
               struct bh_err *err) BH_MUST_USE;
/* Undoes that, and a pause. Fails where one of its processes still does not run; may be repeated. */
int bh_unsuspend(const char *lease, const struct bh_checkpoint_progress *progress,
                 struct bh_err *err) BH_MUST_USE;

#endif
