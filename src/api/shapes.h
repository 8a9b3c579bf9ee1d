/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.h - what callers send, as tables: the queries and bodies of the routes. */
#ifndef BH_API_SHAPES_H
#define BH_API_SHAPES_H

#include "api/body.h"

extern const struct bh_api_shape bh_shape_jobs, bh_shape_leases, bh_shape_log, bh_shape_usage,
    bh_shape_records, bh_shape_audit, bh_shape_version, bh_shape_reason, bh_shape_submit, bh_shape_whatif,
    bh_shape_policy, bh_shape_apply, bh_shape_token, bh_shape_backup;

#endif
