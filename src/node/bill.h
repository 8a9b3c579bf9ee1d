/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bill.h - bills over so many intervals that nobody else is to wait for them, added up in a process of their own.
 *
 * A child of the daemon must not touch the store (worker.h): its copy of SQLite believes to have locks that it has not. So it becomes
 * this program anew, opens the file to read as anybody may, and adds up one moment of it with the same code; the sums come back as
 * bytes and are put into words where all answers are (docs/adr/0015). A few at a time and one of a caller, in the order in which they
 * were asked for; some more wait, and others are told that it is busy. The store's log cannot be begun anew while somebody reads: where
 * it has become long the next one waits until nobody does, lest callers that take turns make it grow for ever.
 */
#ifndef BH_NODE_BILL_H
#define BH_NODE_BILL_H

#include "node/daemon.h"

enum {
    BH_BILL_AT_ONCE = 2,
    BH_BILL_MOST = 32,            /* with those that wait for their turn */
    BH_BILL_OF_ONE = 4,           /* likewise, of one caller */
    BH_BILL_JOINED = 256,         /* that wait for the same one */
    BH_BILL_MS = 240000,          /* for one of them */
    BH_BILL_MEMORY = 256 << 20,   /* of the books, and of what is sorted; the rest of that is on disk ... */
    BH_BILL_DISK = 1 << 30,       /* ... in a file that is so large at most */
    BH_BILL_BYTES_MAX = 64 << 20, /* of a question, and of what comes back */
    BH_BILL_LOG = 32 << 20,       /* of the store's log; where it is longer, none begins beside another */
};

/* Of api/ops.h. */
int bh_ops_bill(void *self, const struct bh_api_caller *by, const struct bh_store_bill_ask *what,
                uint64_t ticket, struct bh_err *err);
uint64_t bh_ops_bill_gone(void *self, uint64_t ticket);
/* Now and then: those that wait for the log. */
void bh_bill_tick(struct bh_daemon *d);
/* Ends all; nobody is answered. */
void bh_bill_fini(struct bh_daemon *d);

/* In the child (bill_child.c), once it is this program anew: `bulkheadd --bill STORE`, with the question in BH_WORKER_WITH_FD, where the
 * bill goes too. Returns the exit status. */
#define BH_BILL_WORD "--bill"
int bh_bill_child(const char *store);

#endif
