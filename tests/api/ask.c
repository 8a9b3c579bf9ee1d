/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.c - the client library as a program: ask SOCKET METHOD PATH [BODY [KEY]], or ask SOCKET events N.
 *
 * Prints `CODE STATUS` and then the body, or the words of the failure.
 */
#include "base/str.h"
#include "base/units.h"
#include "client/client.h"

#include <stdio.h>
#include <string.h>

static bool show(void *ctx, const struct bh_client_event *e)
{
    uint64_t *left = ctx;
    (void)printf("%s %s", e->kind, e->data);
    (void)printf("\n");
    (void)fflush(stdout);
    return --*left > 0;
}

int main(int argc, char **argv)
{
    struct bh_client_reply r;
    struct bh_client c;
    struct bh_err err = {0};
    uint64_t n = 0;
    if (argc < 4 || bh_client_init_at(&c, argv[1], &err) < 0)
        return 2;
    bh_client_reply_init(&r);
    int rc;
    if (bh_str_eq(argv[2], "events")) {
        if (bh_uint_parse(argv[3], 1000, &n, &err) < 0)
            return 2;
        rc = bh_client_events(&c, NULL, show, &n, &err);
    } else {
        const struct bh_client_ask ask = {.method = argv[2],
                                          .path = argv[3],
                                          .body = argc > 4 ? argv[4] : NULL,
                                          .n = argc > 4 ? strlen(argv[4]) : 0,
                                          .key = argc > 5 ? argv[5] : NULL};
        rc = bh_client_ask(&c, &ask, &r, &err);
        (void)printf("%s %d\n%s", bh_code_str(rc), r.status, rc < 0 ? err.msg : bh_buf_text(&r.body));
    }
    bh_client_reply_fini(&r);
    bh_client_fini(&c);
    return bh_code_exit(rc);
}
