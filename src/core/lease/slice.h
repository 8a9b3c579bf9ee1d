/* SPDX-License-Identifier: Apache-2.0 */
/* slice.h - the kinds of what a lease is given of a GPU. */
#ifndef BH_CORE_LEASE_SLICE_H
#define BH_CORE_LEASE_SLICE_H

enum bh_slice_kind { BH_SLICE_WHOLE, BH_SLICE_MIG, BH_SLICE_SHARE, BH_SLICE_KINDS };

#endif
