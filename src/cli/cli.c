/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool bh_cli_wants(const struct bh_cli *cli, size_t opt, const char *format)
{
    return cli->value[opt] && bh_str_eq(cli->value[opt], format);
}

void bh_cli_error(const struct bh_cli *cli, const char *text, struct bh_buf *out)
{
    bh_paint_add(out, cli->paint_err, BH_PAINT_RED, "bulkhead:");
    bh_buf_str(out, " ");
    bh_text_add(out, text);
    bh_buf_str(out, "\n");
}

int bh_cli_fail(const struct bh_cli *cli, const struct bh_err *err)
{
    struct bh_buf line;
    bh_buf_init(&line, 4096);
    bh_cli_error(cli, err->msg, &line);
    fprintf(stderr, "%s", bh_buf_text(&line));
    bh_buf_fini(&line);
    return bh_code_exit(err->code);
}

void bh_cli_next(struct bh_cli *cli, const char *fmt, ...)
{
    struct bh_buf *b = &cli->hint;
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(text))
        return; /* a command cut short would be a wrong command */
    bh_paint_add(b, cli->paint_err, BH_PAINT_BOLD, "next:");
    bh_buf_printf(b, " %s\n", text);
}

int bh_cli_flush(struct bh_cli *cli, int fd, struct bh_err *err)
{
    if (cli->out.full)
        return bh_fail(err, BH_TOO_LARGE, "the output is larger than %zu MiB", cli->out.max >> 20);
    for (size_t done = 0; done < cli->out.n;) {
        ssize_t n = write(fd, cli->out.at + done, cli->out.n - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno == EPIPE)
            return BH_OK;
        else if (errno != EINTR)
            return bh_fail(err, BH_SYSTEM, "standard output: %s", strerrordesc_np(errno));
    }
    return BH_OK;
}
