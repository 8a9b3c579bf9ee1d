/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/file.h"

#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_READ = 64 << 10, FOLDERS_MAX = 4096 };

static void close_fd(const int *fd)
{
    if (*fd > STDERR_FILENO)
        (void)close(*fd);
}

/* strerror() is not for threads, and its own buffer may be the message's. */
static int fail_errno(struct bh_err *err, const char *path, const char *verb)
{
    enum bh_code code = errno == ENOENT ? BH_NOT_FOUND : errno == EACCES ? BH_DENIED : BH_SYSTEM;
    return bh_fail(err, code, "cannot %s '%.300s': %s", verb, path, strerrordesc_np(errno));
}

/* A regular file's size is known: one read takes it all, and one more sees its end. */
static size_t first_room(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= 0)
        return (size_t)st.st_size + 2;
    return FIRST_READ;
}

int bh_file_read(const char *path, size_t max, char **ret_text, size_t *ret_n, struct bh_err *err)
{
    bool standard = strcmp(path, "-") == 0;
    BH_AUTO(close_fd) int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return fail_errno(err, path, "open");
    size_t cap = 0, want = first_room(fd), n = 0;
    BH_AUTOFREE char *text = NULL;
    for (;;) {
        if (want > max + 2)
            want = max + 2;
        text = bh_grow_(text, &cap, want, 1);
        ssize_t got = read(fd, text + n, cap - n - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(err, standard ? "standard input" : path, "read");
        n += (size_t)got;
        if (n > max)
            return bh_fail(err, BH_TOO_LARGE, "'%.300s' is larger than %zu MiB", path, max >> 20);
        if (got == 0)
            break;
        if (cap - n < 2)
            want = cap * 2;
    }
    text[n] = '\0';
    *ret_n = n;
    *ret_text = bh_steal(&text);
    return BH_OK;
}

bool bh_file_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

struct lister {
    struct bh_arena *a;
    bh_listed_vec *out;
    BH_VEC(struct stat) seen; /* folders: links may lead back to one */
};

static int by_name(const struct dirent **x, const struct dirent **y)
{
    return strcmp((*x)->d_name, (*y)->d_name);
}

static int not_hidden(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static bool readable_suffix(const char *name)
{
    return bh_str_ends(name, ".yaml") || bh_str_ends(name, ".yml") || bh_str_ends(name, ".json") ||
           bh_str_ends(name, ".conf");
}

static bool first_visit(struct lister *l, const struct stat *st)
{
    for (size_t i = 0; i < l->seen.n; i++)
        if (l->seen.at[i].st_dev == st->st_dev && l->seen.at[i].st_ino == st->st_ino)
            return false;
    *bh_vec_push(&l->seen) = *st;
    return true;
}

static int list_folder(struct lister *l, const char *folder, struct bh_err *err);

static int list_entry(struct lister *l, const char *folder, const char *name, struct bh_err *err)
{
    struct stat st;
    const char *path = bh_arena_printf(l->a, "%s%s%s", folder, bh_str_ends(folder, "/") ? "" : "/", name);
    bool there = stat(path, &st) == 0;
    if (!there && errno != ENOENT && errno != ELOOP)
        return fail_errno(err, path, "read");
    /* a FIFO would be waited for, so it is not even opened */
    const char *odd = !there ? "a link to nowhere" : S_ISREG(st.st_mode) ? NULL : "no regular file";
    if (readable_suffix(name) && (!there || !S_ISDIR(st.st_mode)))
        *bh_vec_push(l->out) = (struct bh_listed){path, odd};
    if (!there)
        return BH_OK;
    if (!S_ISDIR(st.st_mode) || !first_visit(l, &st))
        return BH_OK;
    if (l->seen.n > FOLDERS_MAX)
        return bh_fail(err, BH_TOO_LARGE, "more than %d folders, the last one '%.300s'", FOLDERS_MAX, path);
    return list_folder(l, path, err);
}

static int list_folder(struct lister *l, const char *folder, struct bh_err *err)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, not_hidden, by_name), rc = BH_OK;
    if (n < 0)
        return fail_errno(err, folder, "list");
    for (int i = 0; i < n; i++) {
        if (rc == BH_OK)
            rc = list_entry(l, folder, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

int bh_file_list(struct bh_arena *a, const char *folder, bh_listed_vec *ret, struct bh_err *err)
{
    struct lister l = {.a = a, .out = ret};
    struct stat st;
    if (stat(folder, &st) < 0)
        return fail_errno(err, folder, "open");
    (void)first_visit(&l, &st);
    int rc = list_folder(&l, folder, err);
    bh_vec_fini(&l.seen);
    return rc;
}
