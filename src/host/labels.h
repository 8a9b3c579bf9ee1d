/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.h - what node feature discovery's files say of a node. Pure: text in, labels out.
 *
 * A line is `key=value`, or `key` for `key=true`; lines with `#` speak to the discovery itself. A line that
 * Kubernetes would refuse as a label is passed over and counted.
 */
#ifndef BH_HOST_LABELS_H
#define BH_HOST_LABELS_H

#include "host/parse.h"

/* Where GPU feature discovery leaves its labels. */
#define BH_LABELS_GFD "/etc/kubernetes/node-feature-discovery/features.d/gfd"

/*
 * The next label of the text at or after *pos; moves *pos behind it and adds the lines passed over to *bad. False:
 * no more. An absent value is the word `true`, which is not in the text.
 */
bool bh_labels_next(const char *text, size_t *pos, struct bh_span *ret_key, struct bh_span *ret_value,
                    size_t *bad);

#endif
