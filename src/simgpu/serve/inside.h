/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - what the parts of the server know of each other. Not for anybody else. */
#ifndef BH_SIMGPU_SERVE_INSIDE_H
#define BH_SIMGPU_SERVE_INSIDE_H

#include "base/mem.h"
#include "simgpu/rm/rm.h"
#include "simgpu/wire.h"

#include <sys/types.h>

struct bh_sim_server;

/* What epoll hands back. */
struct bh_sim_watch {
    void (*on)(struct bh_sim_server *s, struct bh_sim_watch *w, uint32_t events);
    int fd;
};

/* An open device file: our end of the pair whose other end the caller holds. */
struct bh_sim_file {
    struct bh_sim_watch watch;
    uint32_t id;     /* the manager's */
    uint64_t cookie; /* of the caller's end: how it is known again */
    uint32_t pid;    /* who opened it */
    struct bh_sim_file *next;
};

struct bh_sim_conn {
    struct bh_sim_watch watch;
    struct bh_sim_caller who;          /* whoever sent the request that is looked at */
    uint32_t linked;                   /* the pid that is shown because of this connection; 0: none */
    struct bh_sim_conn *prev, *next;   /* among all connections */
    struct bh_sim_conn *dprev, *dnext; /* among those whose reply is put off */
    struct bh_sim_msg *reply;          /* put off: header and body; NULL: none */
    int reply_fd;                      /* to go with it, or -1 */
    uint64_t due_ns;                   /* not before */
    bool waiting;                      /* for this: */
    uint32_t wait_file, wait_client, wait_channel;
    uint64_t wait_fence;
};

struct bh_sim_shown {
    uint32_t pid, count;
};

enum { BH_SIM_FILE_BUCKETS = 4096 };

struct bh_sim_server {
    struct bh_sim_rm *rm;
    const struct bh_sim_node *node;
    const char *folder;
    uint32_t owner;
    uint64_t start_ns;
    int ep, ep_gone, proc_dir; /* ep_gone: those of whom only a hang-up is awaited */
    struct bh_sim_watch listener, timer, signals, gone;
    bool listening; /* false: paused until listen_again_ns, the machine is out of descriptors */
    uint64_t listen_again_ns;
    size_t max_fds, n_conns, n_files, n_held; /* n_held: descriptors in replies that are put off */
    struct bh_sim_conn *conns, *deferred;
    /* Those who are put off are walked through when one of them may be answered by now: */
    bool stirred;    /* something happened that may end a wait other than its work's end */
    bool waits;      /* somebody waits for a fence */
    uint64_t due_ns; /* the first of the others */
    struct bh_sim_file *buckets[BH_SIM_FILE_BUCKETS];
    BH_VEC(struct bh_sim_shown) shown;
    bool journaling;
    struct bh_recording journal;
    bool stop;
    /* one request at a time is looked at */
    struct {
        struct bh_sim_msg msg;
        unsigned char body[BH_SIM_BODY_MAX];
    } in;
};

/* A request, and its reply in the same place. */
struct bh_sim_request {
    struct bh_sim_msg *msg;
    unsigned char *body;
    struct bh_sim_file *file; /* whose descriptor came along; NULL: none, or not one of ours */
    uint32_t n_body;          /* the request's; msg->n_body is the reply's */
    int reply_fd;
    bool defer; /* out: the reply waits for a fence */
    bool slow;  /* out: the reply waits as long as calls were made slow */
};

void bh_sim_go_on(struct bh_sim_server *s); /* serve.c: to the time it is now */

/* ops.c: msg->result and the body become the reply's. */
void bh_sim_request_answer(struct bh_sim_server *s, struct bh_sim_conn *c, struct bh_sim_request *r);
void bh_sim_journal_end(struct bh_sim_server *s);

/* files.c */
struct bh_sim_file *bh_sim_file_find(struct bh_sim_server *s, int fd); /* or NULL */
/* A new file for c: returns the caller's end, or a negative errno. */
int bh_sim_file_add(struct bh_sim_server *s, const struct bh_sim_caller *who, uint32_t kind, uint32_t minor);
/*
 * Sees to everything that was hung up by now. What was closed before a request was sent is closed before it is
 * answered.
 */
void bh_sim_reap(struct bh_sim_server *s);
void bh_sim_files_close_all(struct bh_sim_server *s);
void bh_sim_pid_show(struct bh_sim_server *s, uint32_t pid); /* counted */
void bh_sim_pid_hide(struct bh_sim_server *s, uint32_t pid);
/* Is there room for n more descriptors? The last few are kept for those who may stop the node. */
bool bh_sim_has_room(const struct bh_sim_server *s, const struct bh_sim_caller *who, size_t n);

#endif
