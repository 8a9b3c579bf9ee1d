/* SPDX-License-Identifier: Apache-2.0 */
/*
 * console.c - sends the files of the console.
 *
 * The headers keep a page that shows one tenant's work from being made to show it to others: nothing from elsewhere is loaded,
 * nothing written into a page runs, no other site frames it, no address of it travels with a link.
 */
#include "api/console.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <microhttpd.h>
#include <string.h>

static const struct {
    const char *name, *value;
} headers[] = {
    {"Content-Security-Policy",
     "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    /* Kept by the browser, and asked about each time: a new version is seen at once. */
    {MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache"},
};

const struct bh_console_file *bh_console_find(const char *method, const char *path)
{
    if (!bh_str_eq(method, MHD_HTTP_METHOD_GET) && !bh_str_eq(method, MHD_HTTP_METHOD_HEAD))
        return NULL;
    for (size_t i = 0; i < bh_console_file_count; i++)
        if (bh_str_eq(bh_console_files[i].path, path))
            return &bh_console_files[i];
    return NULL;
}

int bh_console_answer(struct MHD_Connection *mhd, const struct bh_console_file *f)
{
    const char *has = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    const bool same = has && strstr(has, f->etag);
    struct MHD_Response *r = MHD_create_response_from_buffer(
        same ? 0 : f->n, (void *)(uintptr_t)(same ? NULL : f->at), MHD_RESPMEM_PERSISTENT);
    if (!r)
        return BH_SYSTEM;
    for (size_t i = 0; i < BH_COUNT_OF(headers); i++)
        (void)MHD_add_response_header(r, headers[i].name, headers[i].value);
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, f->etag);
    if (!same) {
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, f->type);
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    }
    const enum MHD_Result rc = MHD_queue_response(mhd, same ? 304 : 200, r);
    MHD_destroy_response(r);
    return rc == MHD_YES ? BH_OK : BH_SYSTEM;
}
