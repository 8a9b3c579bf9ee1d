/* SPDX-License-Identifier: Apache-2.0 */
/*
 * home.c - the folders of simulated nodes.
 *
 * A folder is emptied and removed only when it is a node's: its `node` begins with the mark, which is written first
 * and removed last. What is removed is walked by descriptor and never through a link, because a folder may stand
 * where others can write. A lock is an open file description's (F_OFD_SETLK): the daemon inherits it from whoever took
 * the name, it ends with the process however that ends, and asking whether it is held does not take it.
 */
#include "simgpu/home.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/units.h"
#include "simgpu/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char machine_home[] = "/run/bulkhead-sim";
static const char lock_name[] = "lock", node_name[] = "node", mark[] = "simulated yes\n";
enum { NODE_FILE_MAX = 4096, DEPTH_MAX = 32 };

static int fail_errno(struct bh_err *err, const char *path, int error)
{
    if (error == EACCES || error == EPERM || error == EROFS)
        return bh_fail(err, BH_DENIED, "%.200s: %s; set BULKHEAD_SIM_HOME to a folder of yours", path,
                       strerror(error));
    return bh_fail(err, error == ENOENT ? BH_NOT_FOUND : BH_SYSTEM, "%.200s: %s", path, strerror(error));
}

static int format_folder(char ret[BH_SIM_FOLDER_MAX], const char *parent, const char *name,
                         struct bh_err *err)
{
    int n = snprintf(ret, BH_SIM_FOLDER_MAX, "%s/%s", parent, name);
    if (n >= 0 && n < BH_SIM_FOLDER_MAX)
        return BH_OK;
    return bh_fail(
        err, BH_INVALID,
        "'%.200s/%.64s' is too long for a socket's path; set BULKHEAD_SIM_HOME to a shorter folder", parent,
        name);
}

/* ---- where ---- */

/* Nobody else may have made it, or may look into it. */
static int check_private(const char *path, struct bh_err *err)
{
    struct stat st;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return fail_errno(err, path, errno);
    if (lstat(path, &st) < 0)
        return fail_errno(err, path, errno);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return bh_fail(err, BH_DENIED,
                       "'%.200s' is not a folder that only you can use; remove it, or set BULKHEAD_SIM_HOME",
                       path);
    return BH_OK;
}

int bh_sim_home(char ret[BH_SIM_FOLDER_MAX], struct bh_err *err)
{
    const char *named = secure_getenv("BULKHEAD_SIM_HOME"), *run = secure_getenv("XDG_RUNTIME_DIR");
    char mine[64];
    if (named && *named) {
        if (*named != '/')
            return bh_fail(err, BH_INVALID, "BULKHEAD_SIM_HOME must be an absolute path, not '%.100s'",
                           named);
        const char *end = named + strlen(named);
        while (end > named + 1 && end[-1] == '/')
            end--;
        int n = snprintf(ret, BH_SIM_FOLDER_MAX, "%.*s", (int)(end - named), named);
        return n < BH_SIM_FOLDER_MAX ? BH_OK
                                     : bh_fail(err, BH_INVALID, "BULKHEAD_SIM_HOME is longer than %d bytes",
                                               BH_SIM_FOLDER_MAX - 1);
    }
    if (run && *run == '/')
        return format_folder(ret, run, "bulkhead-sim", err);
    if (geteuid() == 0)
        return format_folder(ret, "/run", "bulkhead-sim", err);
    (void)snprintf(mine, sizeof(mine), "bulkhead-sim-%u", (unsigned)geteuid());
    int rc = format_folder(ret, P_tmpdir, mine, err);
    return rc < 0 ? rc : check_private(ret, err);
}

/* ---- what there is ---- */

/* Does a process listen there? */
static bool listens(const char *folder)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s/rm.sock", folder);
    int fd = n > 0 && (size_t)n < sizeof(at.sun_path)
                 ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
                 : -1;
    if (fd < 0)
        return false;
    bool there = connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 || errno == EAGAIN;
    close(fd);
    return there;
}

/*
 * Is the lock held by a process that serves? Only the node's owner can open it, so that nobody else can hold it either;
 * others see whether it is answered.
 */
static bool lock_held(int dir, const char *folder)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = openat(dir, lock_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == EACCES && listens(folder);
    bool held = fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type == F_WRLCK;
    close(fd);
    return held;
}

static void read_line(struct bh_sim_place *p, const char *key, const char *value)
{
    const struct {
        const char *key;
        uint64_t *ret;
    } numbers[] = {{"seed", &p->seed}, {"started", &p->started_s}, {"gpus", &p->gpus}};
    uint64_t pid;
    for (size_t i = 0; i < BH_COUNT_OF(numbers); i++)
        if (bh_str_eq(key, numbers[i].key))
            (void)!bh_uint_parse(value, UINT64_MAX, numbers[i].ret, NULL);
    if (bh_str_eq(key, "pid") && bh_uint_parse(value, INT32_MAX, &pid, NULL) == BH_OK)
        p->pid = (uint32_t)pid;
    if (bh_str_eq(key, "scene"))
        (void)snprintf(p->scene, sizeof(p->scene), "%s", value);
}

/* What `node` says, as a text; 0: nothing. */
static size_t node_text(int dir, char ret[NODE_FILE_MAX + 1])
{
    int fd = openat(dir, node_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, ret, NODE_FILE_MAX) : -1;
    if (fd >= 0)
        close(fd);
    ret[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static bool is_marked(int dir)
{
    char text[NODE_FILE_MAX + 1];
    return node_text(dir, text) && bh_str_starts(text, mark);
}

static void read_node(struct bh_sim_place *p, int dir)
{
    char text[NODE_FILE_MAX + 1];
    (void)node_text(dir, text);
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        char *value = line + strcspn(line, " ");
        if (*value)
            *value++ = '\0';
        read_line(p, line, value);
    }
}

/* false: that is no node's folder. */
static bool read_place(const char *home, const char *name, struct bh_sim_place *ret)
{
    struct stat st;
    *ret = (struct bh_sim_place){0};
    if (!bh_name_valid(name) || format_folder(ret->folder, home, name, NULL) < 0)
        return false;
    int dir = open(ret->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return false;
    bool is = fstat(dir, &st) == 0 && faccessat(dir, lock_name, F_OK, 0) == 0 && is_marked(dir);
    if (is) {
        (void)snprintf(ret->name, sizeof(ret->name), "%.63s", name); /* as long as a valid name gets */
        ret->uid = st.st_uid;
        ret->runs = lock_held(dir, ret->folder);
        read_node(ret, dir);
    }
    close(dir);
    return is;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct bh_sim_place *)a)->name, ((const struct bh_sim_place *)b)->name);
}

static void list_home(const char *home, bh_sim_places *ret)
{
    const size_t before = ret->n;
    DIR *d = opendir(home);
    if (!d)
        return; /* nobody has started a node there */
    for (struct dirent *e; (e = readdir(d));) {
        struct bh_sim_place p;
        bool hidden = !read_place(home, e->d_name, &p);
        for (size_t i = 0; i < before && !hidden; i++)
            hidden = bh_str_eq(ret->at[i].name, p.name);
        if (!hidden)
            *bh_vec_push(ret) = p;
    }
    closedir(d);
    if (ret->n > before)
        qsort(ret->at + before, ret->n - before, sizeof(ret->at[0]), by_name);
}

/* The homes that are looked through; a home that was named is the only one. */
static int homes(char ret[2][BH_SIM_FOLDER_MAX], size_t *ret_n, struct bh_err *err)
{
    const char *named = secure_getenv("BULKHEAD_SIM_HOME");
    int rc = bh_sim_home(ret[0], err);
    *ret_n = 1;
    if (rc == BH_OK && !(named && *named) && !bh_str_eq(ret[0], machine_home))
        (void)snprintf(ret[(*ret_n)++], BH_SIM_FOLDER_MAX, "%s", machine_home);
    return rc;
}

int bh_sim_place_list(bh_sim_places *ret, struct bh_err *err)
{
    char home[2][BH_SIM_FOLDER_MAX];
    size_t n;
    int rc = homes(home, &n, err);
    for (size_t i = 0; rc == BH_OK && i < n; i++)
        list_home(home[i], ret);
    return rc;
}

static int fail_unknown(const char *name, struct bh_err *err)
{
    bh_sim_places all = {0};
    BH_VEC(const char *) names = {0};
    int rc = bh_sim_place_list(&all, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < all.n; i++)
        *bh_vec_push(&names) = all.at[i].name;
    const char *near = bh_str_nearest(name, names.at, names.n);
    if (near)
        rc = bh_fail(err, BH_NOT_FOUND, "no simulated node '%.64s'; did you mean '%s'?", name, near);
    else if (all.n)
        rc = bh_fail(err, BH_NOT_FOUND, "no simulated node '%.64s'; bulkhead sim list shows those there are",
                     name);
    else
        rc = bh_fail(err, BH_NOT_FOUND,
                     "no simulated node '%.64s', nor any other; bulkhead sim start makes one", name);
    bh_vec_fini(&names);
    bh_vec_fini(&all);
    return rc;
}

int bh_sim_place_find(const char *name, struct bh_sim_place *ret, struct bh_err *err)
{
    char home[2][BH_SIM_FOLDER_MAX];
    struct bh_sim_place p;
    size_t n;
    int rc = homes(home, &n, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        if (read_place(home[i], name, &p)) {
            *ret = p;
            return BH_OK;
        }
    return fail_unknown(name, err);
}

/* ---- making and removing ---- */

static bool is_dots(const char *name)
{
    return bh_str_eq(name, ".") || bh_str_eq(name, "..");
}

/* `lock` and `node`, at the top of a node's folder, go last. */
static bool goes_last(const char *name)
{
    return bh_str_eq(name, lock_name) || bh_str_eq(name, node_name);
}

/* Everything below dir but what goes last. */
static int empty_folder(int dir, unsigned depth)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    if (!d) {
        if (copy >= 0)
            close(copy);
        return -1;
    }
    for (struct dirent *e; rc == 0 && (e = readdir(d));) {
        if (is_dots(e->d_name) || (depth == 0 && goes_last(e->d_name)))
            continue;
        if (unlinkat(dir, e->d_name, 0) == 0 || errno == ENOENT)
            continue;
        int below = errno == EISDIR || errno == EPERM
                        ? openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                        : -1;
        rc = below < 0 || depth == DEPTH_MAX ? -1 : empty_folder(below, depth + 1);
        if (below >= 0)
            close(below);
        if (rc == 0)
            rc = unlinkat(dir, e->d_name, AT_REMOVEDIR);
    }
    int error = errno;
    closedir(d);
    errno = error;
    return rc;
}

static int open_folder(const char *folder)
{
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

bool bh_sim_place_runs(const struct bh_sim_place *place)
{
    int dir = open_folder(place->folder);
    if (dir < 0)
        return false;
    bool held = lock_held(dir, place->folder);
    close(dir);
    return held;
}

int bh_sim_place_remove(const struct bh_sim_place *place, struct bh_err *err)
{
    int dir = open_folder(place->folder);
    int rc = dir < 0 ? -1 : empty_folder(dir, 0);
    if (rc == 0 && unlinkat(dir, node_name, 0) < 0 && errno != ENOENT)
        rc = -1;
    if (rc == 0)
        rc = unlinkat(dir, lock_name, 0);
    /* Somebody may have taken the name since the lock went: then the folder is theirs. */
    if (rc == 0 && rmdir(place->folder) < 0 && errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
        rc = -1;
    int error = errno;
    if (dir >= 0)
        close(dir);
    return rc < 0 ? fail_errno(err, place->folder, error) : BH_OK;
}

/* An empty file of that name, as one leaves that was killed while it took the folder. */
static bool is_empty_file(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

/* May it become a node's folder? Only one that is a node's already, or has nothing in it. Else what was found. */
static bool is_ours_to_take(int dir, char ret_found[NAME_MAX + 1])
{
    int copy = is_marked(dir) ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    bool good = true;
    for (struct dirent *e; d && good && (e = readdir(d));) {
        good = is_dots(e->d_name) || (goes_last(e->d_name) && is_empty_file(dir, e->d_name));
        (void)snprintf(ret_found, NAME_MAX + 1, "%s", e->d_name);
    }
    if (d)
        closedir(d);
    else if (copy >= 0)
        close(copy);
    return good;
}

/* Nobody else may be able to change what is in it: what is done there is done with our rights. */
static int check_owned(int dir, const char *folder, struct bh_err *err)
{
    struct stat st;
    if (dir < 0 || fstat(dir, &st) < 0)
        return fail_errno(err, folder, errno);
    if (st.st_uid != geteuid())
        return bh_fail(
            err, BH_DENIED,
            "'%.200s' belongs to uid %u, not to you (uid %u); set BULKHEAD_SIM_HOME to a folder of yours",
            folder, (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & 022)
        return bh_fail(err, BH_DENIED, "others can write into '%.200s'; chmod go-w it", folder);
    return BH_OK;
}

/* A folder of ours that may hold a node, made where it is missing. *ret_dir -1: it went away meanwhile. */
static int open_own(const char *folder, int *ret_dir, struct bh_err *err)
{
    char found[NAME_MAX + 1];
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return fail_errno(err, folder, errno);
    int dir = open_folder(folder);
    *ret_dir = dir;
    if (dir < 0 && errno == ENOENT)
        return BH_OK;
    int rc = check_owned(dir, folder, err);
    if (rc == BH_OK && !is_ours_to_take(dir, found))
        rc = bh_fail(err, BH_CONFLICT,
                     "'%.200s' is no simulated node: '%.60s' is in it; nothing was touched: move it away, or "
                     "use another name",
                     folder, found);
    if (rc < 0 && dir >= 0)
        close(dir);
    return rc;
}

/* The lock in dir: 0 and *ret_lock; 1: somebody holds it; 2: it was removed under us; else -1 and errno. */
static int lock_in(int dir, int *ret_lock)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat a, b;
    int fd = openat(dir, lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno == ENOENT ? 2 : -1;
    int rc = fcntl(fd, F_OFD_SETLK, &l), error = errno;
    if (rc == 0 && fstat(fd, &a) == 0 && fstatat(dir, lock_name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
        a.st_ino == b.st_ino && a.st_dev == b.st_dev) {
        /* Whatever the umask was, and whoever made it: all may look, and only we may lock. */
        (void)fchmod(dir, 0755);
        (void)fchmod(fd, 0600);
        *ret_lock = fd;
        return 0;
    }
    close(fd);
    errno = error;
    if (rc == 0)
        return 2;
    return error == EAGAIN || error == EACCES ? 1 : -1;
}

/*
 * The folder, which is made where it is missing, with its lock held. BH_CONFLICT: somebody holds it, or it is no
 * node's.
 */
static int take_lock(const struct bh_sim_place *p, int *ret_dir, int *ret_lock, struct bh_err *err)
{
    /* Again when the one who had it removed it under us; nobody does so for ever. */
    for (int i = 0; i < 100; i++) {
        int dir, rc = open_own(p->folder, &dir, err);
        if (rc < 0)
            return rc;
        if (dir < 0)
            continue;
        int got = lock_in(dir, ret_lock);
        if (got == 0) {
            *ret_dir = dir;
            return BH_OK;
        }
        rc = got < 0 ? fail_errno(err, p->folder, errno) : BH_OK;
        close(dir);
        if (got == 1)
            return bh_fail(err, BH_CONFLICT,
                           "a simulated node '%s' runs already; give this one another --name, or bulkhead "
                           "sim stop %s",
                           p->name, p->name);
        if (rc < 0)
            return rc;
    }
    return fail_errno(err, p->folder, EBUSY);
}

/* `node` says that this is one, and no more; it never says less on the way there. */
static int write_mark(int dir)
{
    int fd = openat(dir, node_name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return -1;
    bool good = pwrite(fd, mark, sizeof(mark) - 1, 0) == (ssize_t)sizeof(mark) - 1 &&
                ftruncate(fd, sizeof(mark) - 1) == 0;
    return close(fd) == 0 && good ? 0 : -1;
}

static int check_home(const char *home, struct bh_err *err)
{
    if (mkdir(home, 0755) < 0 && errno != EEXIST)
        return fail_errno(err, home, errno);
    int dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = check_owned(dir, home, err);
    if (dir >= 0)
        close(dir);
    return rc;
}

int bh_sim_place_take(const char *name, struct bh_sim_place *ret, int *ret_lock, struct bh_err *err)
{
    char home[BH_SIM_FOLDER_MAX];
    struct bh_sim_place p = {.uid = geteuid()};
    int dir, lock;
    if (!bh_name_valid(name))
        return bh_fail(err, BH_INVALID,
                       "'%.64s' is no name for a node: use lower-case letters, digits and '-', 63 at most",
                       name);
    (void)snprintf(p.name, sizeof(p.name), "%s", name);
    int rc = bh_sim_home(home, err);
    if (rc == BH_OK)
        rc = format_folder(p.folder, home, name, err);
    if (rc == BH_OK)
        rc = check_home(home, err);
    if (rc == BH_OK)
        rc = take_lock(&p, &dir, &lock, err);
    if (rc != BH_OK)
        return rc;
    if (write_mark(dir) < 0 || empty_folder(dir, 0) < 0) {
        rc = fail_errno(err, p.folder, errno);
        close(lock);
    } else {
        *ret = p;
        *ret_lock = lock;
    }
    close(dir);
    return rc;
}

int bh_sim_place_sweep(const struct bh_sim_place *place, struct bh_err *err)
{
    int dir, lock, rc = take_lock(place, &dir, &lock, err);
    if (rc < 0)
        return rc;
    rc = bh_sim_place_remove(place, err);
    close(lock);
    close(dir);
    return rc;
}

/* ---- the stand-in libraries ---- */

/* Places tried, for the message when nothing was there. */
struct search {
    const char *name;
    char *ret;
    size_t size;
    struct bh_buf tried;
};

static bool try_folder(struct search *s, const char *folder)
{
    char path[PATH_MAX], real[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, s->name);
    bh_buf_printf(&s->tried, "%s%s", s->tried.n ? ", " : "", folder);
    if (n < 0 || (size_t)n >= sizeof(path) || !realpath(path, real))
        return false;
    n = snprintf(s->ret, s->size, "%s", real);
    return n >= 0 && (size_t)n < s->size;
}

/* base/lib/<the machine's triplet>/bulkhead/sim */
static bool try_triplets(struct search *s, const char *base)
{
    char lib[PATH_MAX + 8], folder[PATH_MAX + 320];
    bool found = false;
    (void)snprintf(lib, sizeof(lib), "%s/lib", base);
    DIR *d = opendir(lib);
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        (void)snprintf(folder, sizeof(folder), "%s/%s/bulkhead/sim", lib, e->d_name);
        if (*e->d_name != '.' && access(folder, F_OK) == 0)
            found = try_folder(s, folder);
    }
    if (d)
        closedir(d);
    return found;
}

static bool search_all(struct search *s, const char *folder_in_build)
{
    static const char *const installed[] = {"lib/bulkhead/sim", "lib64/bulkhead/sim", "libexec/bulkhead/sim"};
    const char *named = secure_getenv("BULKHEAD_SIM_LIB");
    char base[PATH_MAX], folder[PATH_MAX + 64];
    if (named && *named)
        return try_folder(s, named);
    ssize_t n = readlink("/proc/self/exe", base, sizeof(base) - 1);
    base[n > 0 ? n : 0] = '\0';
    /* bin/bulkhead when installed, src/cli/bulkhead in a build folder: two steps up. */
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(base, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    (void)snprintf(folder, sizeof(folder), "%s/simgpu/%s", base, folder_in_build);
    if (try_folder(s, folder) || try_triplets(s, base))
        return true;
    for (size_t i = 0; i < BH_COUNT_OF(installed); i++) {
        (void)snprintf(folder, sizeof(folder), "%s/%s", base, installed[i]);
        if (try_folder(s, folder))
            return true;
    }
    return false;
}

int bh_sim_library(const char *name, char *ret, size_t size, struct bh_err *err)
{
    struct search s = {.name = name, .ret = ret, .size = size};
    bh_buf_init(&s.tried, (size_t)8 * PATH_MAX);
    int rc = BH_OK;
    if (!search_all(&s, bh_str_starts(name, "libcuda") ? "cuda" : "nvml"))
        rc = bh_fail(err, BH_NOT_FOUND,
                     "no simulated %s: looked in %.300s; build it, or name its folder in BULKHEAD_SIM_LIB",
                     name, bh_buf_text(&s.tried));
    bh_buf_fini(&s.tried);
    return rc;
}

/* Over the mark, with which the text begins as well. */
static int write_node(const char *path, const struct bh_buf *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return -1;
    bool good = write(fd, text->at, text->n) == (ssize_t)text->n;
    return close(fd) == 0 && good ? 0 : -1;
}

static int link_libraries(const struct bh_sim_place *p, struct bh_err *err)
{
    static const char *const names[] = {"libnvidia-ml.so.1", "libcuda.so.1"};
    char folder[BH_SIM_FOLDER_MAX + 8], at[BH_SIM_FOLDER_MAX + 40], to[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%s/lib", p->folder);
    if (mkdir(folder, 0755) < 0)
        return fail_errno(err, folder, errno);
    for (size_t i = 0; i < BH_COUNT_OF(names); i++) {
        int rc = bh_sim_library(names[i], to, sizeof(to), err);
        if (rc < 0)
            return rc;
        (void)snprintf(at, sizeof(at), "%s/%s", folder, names[i]);
        if (symlink(to, at) < 0)
            return fail_errno(err, at, errno);
    }
    return BH_OK;
}

int bh_sim_place_fill(struct bh_sim_place *p, const struct bh_sim_node *node, struct bh_err *err)
{
    char path[BH_SIM_FOLDER_MAX + 16];
    struct bh_buf text;
    int rc = link_libraries(p, err);
    if (rc < 0)
        return rc;
    (void)snprintf(path, sizeof(path), "%s/sysroot", p->folder);
    if (mkdir(path, 0755) < 0)
        return fail_errno(err, path, errno);
    rc = bh_sim_tree_write(node, path, err);
    if (rc < 0)
        return rc;
    (void)snprintf(p->scene, sizeof(p->scene), "%s", node->scene);
    p->seed = node->seed;
    p->gpus = node->n_gpus;
    p->pid = (uint32_t)getpid();
    p->started_s = (uint64_t)time(NULL);
    (void)snprintf(path, sizeof(path), "%s/%s", p->folder, node_name);
    bh_buf_init(&text, NODE_FILE_MAX);
    bh_buf_printf(&text,
                  "%sscene %s\nseed %" PRIu64 "\ngpus %" PRIu64 "\npid %" PRIu32 "\nstarted %" PRIu64 "\n",
                  mark, p->scene, p->seed, p->gpus, p->pid, p->started_s);
    if (write_node(path, &text) < 0)
        rc = fail_errno(err, path, errno);
    bh_buf_fini(&text);
    return rc;
}
