/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/save.h"

#include "base/str.h"
#include "cli/paint.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *path, struct bh_err *err)
{
    return bh_fail(err, BH_SYSTEM, "cannot write '%.300s': %s", path, strerrordesc_np(errno));
}

/* fsync tells of a full disk that write did not see. */
static int write_new(const char *path, const char *text, size_t n, struct bh_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return bh_fail(err, BH_CONFLICT, "'%.300s' exists; --force replaces it, --out FILE writes another",
                       path);
    if (fd < 0)
        return fail(path, err);
    size_t done = 0;
    for (ssize_t got; done < n; done += (size_t)got) {
        got = write(fd, text + done, n - done);
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got < 0)
            break;
    }
    int rc = done < n || fsync(fd) < 0 ? fail(path, err) : BH_OK;
    close(fd);
    if (rc < 0)
        unlink(path);
    return rc;
}

int bh_file_save(const char *path, const char *text, size_t n, bool replace, struct bh_err *err)
{
    struct stat st;
    if (!replace)
        return write_new(path, text, n, err);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return bh_fail(err, BH_CONFLICT, "'%.300s' is no regular file", path);
    struct bh_buf beside;
    bh_buf_init(&beside, 8192);
    bh_buf_printf(&beside, "%s.new", path);
    unlink(bh_buf_text(&beside)); /* left by a run that was killed */
    int rc = write_new(bh_buf_text(&beside), text, n, err);
    if (rc >= 0 && rename(bh_buf_text(&beside), path) < 0) {
        rc = fail(path, err);
        unlink(bh_buf_text(&beside));
    }
    bh_buf_fini(&beside);
    return rc;
}

int bh_cli_save(struct bh_cli *cli, const char *path, const struct bh_buf *text, bool replace,
                const char *next, struct bh_err *err)
{
    if (!path || bh_str_eq(path, "-")) {
        bh_buf_add(&cli->out, bh_buf_text(text), text->n);
        return BH_OK;
    }
    int rc = bh_file_save(path, bh_buf_text(text), text->n, replace, err);
    if (rc < 0)
        return rc;
    struct bh_buf word;
    bh_buf_init(&word, 1u << 16);
    bh_text_shell(&word, path);
    bh_buf_str(&cli->hint, "wrote ");
    bh_text_add(&cli->hint, path);
    bh_buf_str(&cli->hint, "\n");
    bh_cli_next(cli, "%s %s", next, bh_buf_text(&word));
    bh_buf_fini(&word);
    return BH_OK;
}
