/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - the two helpers that stand outside of the lease: one counts, one lends. */
#include "bypass.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { EVERY_US = 1000, SAY_ANYWAY = 20 };

/* `NANOSECONDS FREE-BYTES` at each change, and now and then without one. */
int bp_watch(void)
{
    struct rm r;
    uint64_t last = UINT64_MAX, now;
    rm_must_open(&r);
    for (unsigned i = 0;; i++) {
        struct timespec t;
        if (rm_free_bytes(&r, &now) != RM_OK)
            bp_bad("the driver does not tell what is free");
        if (now != last || i % SAY_ANYWAY == 0) {
            (void)clock_gettime(CLOCK_MONOTONIC, &t);
            char line[64];
            int n = snprintf(line, sizeof(line), "%llu %llu\n",
                             (unsigned long long)t.tv_sec * 1000000000ULL + (unsigned long long)t.tv_nsec,
                             (unsigned long long)now);
            if (write(STDOUT_FILENO, line, (size_t)n) != n)
                return 0;
        }
        last = now;
        (void)usleep(EVERY_US);
    }
}

/* A control file with a client and a device made here, and a word of memory, for whoever asks. */
int bp_serve_outside(const char *at)
{
    static volatile uint64_t word = 0x6f757473696465;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct rm r;
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    rm_must_open(&r);
    if (strlen(at) >= sizeof(to.sun_path))
        bp_bad("the socket's name is too long");
    memcpy(to.sun_path, at, strlen(at));
    if (s < 0 || bind(s, (const struct sockaddr *)&to, sizeof(to)) < 0 || chmod(at, 0666) < 0 ||
        listen(s, 16) < 0)
        bp_bad("listening: %s", strerror(errno));
    (void)!write(STDOUT_FILENO, "ready\n", 6);
    for (;;) {
        const struct bp_outside answer = {
            .pid = getpid(), .client = r.client, .device = r.device, .fd = r.ctl, .word = (uintptr_t)&word};
        int c = accept(s, NULL, NULL);
        if (c < 0)
            return 0;
        (void)bp_send_fd(c, r.ctl, &answer, sizeof(answer));
        close(c);
    }
}
