/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - bulkhead-record: records what a program asks the NVIDIA driver for, shows recordings, compares
 * them.
 *
 * A program of its own, needing nothing but libc, so that it can be carried to a machine with a new driver.
 */
#include "base/str.h"
#include "base/sysfile.h"
#include "record/compare.h"
#include "record/record.h"
#include "record/topic.h"
#include "record/trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char USAGE[] =
    "usage: bulkhead-record run -o FILE [--what TEXT] [--driver VERSION] [--gpu NAME] [--dev FOLDER]\n"
    "                       [--] COMMAND...\n"
    "       bulkhead-record show FILE [--section NAME]\n"
    "       bulkhead-record diff OLD NEW\n"
    "\n"
    "run   runs COMMAND and writes to FILE which calls it made to the NVIDIA driver, as shapes: numbers,\n"
    "      sizes, classes, flags and statuses, never contents. Waits for COMMAND and for all\n"
    "      processes it started, also those that outlive it; ends with COMMAND's status. A process made\n"
    "      with CLONE_UNTRACED cannot be followed: its opens, closes, ioctls and mappings of files\n"
    "      fail with ENOSYS.\n"
    "      --driver and --gpu say what this machine's files do not; --dev is where device files are (/dev).\n"
    "show  says what a recording holds, by section.\n"
    "diff  says what NEW does otherwise than OLD, by section. Ends with 0: nothing, 1: something.\n";

struct options {
    const char *out, *what, *driver, *gpu, *dev, *section;
    char **rest; /* the words that belong to no option; rest[n_rest] is NULL */
    int n_rest;
};

static int parse_options(int argc, char **argv, bool run, struct options *ret, struct bh_err *err)
{
    const struct {
        const char *name, **to;
        bool run;
    } known[] = {
        {"-o", &ret->out, true},    {"--what", &ret->what, true}, {"--driver", &ret->driver, true},
        {"--gpu", &ret->gpu, true}, {"--dev", &ret->dev, true},   {"--section", &ret->section, false},
    };
    int i = 0, n = 0;
    for (; i < argc; i++) {
        size_t k = 0;
        while (k < BH_COUNT_OF(known) && (known[k].run != run || strcmp(argv[i], known[k].name) != 0))
            k++;
        if (k < BH_COUNT_OF(known)) {
            if (++i == argc)
                return bh_fail(err, BH_USAGE, "%s needs a value", known[k].name);
            *known[k].to = argv[i];
            continue;
        }
        bool end = strcmp(argv[i], "--") == 0;
        if (end && run) {
            i++;
            break;
        }
        if (argv[i][0] == '-' && argv[i][1])
            return bh_fail(err, BH_USAGE, "no option %.60s here; see bulkhead-record --help", argv[i]);
        if (run)
            break;
        argv[n++] = argv[i];
    }
    ret->rest = run ? argv + i : argv;
    ret->n_rest = run ? argc - i : n;
    return BH_OK;
}

static int fail_file(const char *path, struct bh_err *err)
{
    enum bh_code code = errno == ENOENT ? BH_NOT_FOUND : errno == EACCES ? BH_DENIED : BH_SYSTEM;
    return bh_fail(err, code, "%.300s: %s", path, strerror(errno));
}

static int write_whole(const char *path, const struct bh_buf *text, struct bh_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return fail_file(path, err);
    for (size_t at = 0; at < text->n;) {
        ssize_t n = write(fd, text->at + at, text->n - at);
        if (n < 0 && errno != EINTR) {
            int rc = fail_file(path, err);
            close(fd);
            return rc;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    return close(fd) == 0 ? BH_OK : fail_file(path, err);
}

/* The model as the first GPU's file gives it: `Model: NVIDIA H200`. */
static void gpu_name(char *buf, size_t size)
{
    static const char FOLDER[] = "/proc/driver/nvidia/gpus";
    char path[BH_SYSPATH_MAX];
    DIR *d = bh_syspath(path, FOLDER) ? opendir(path) : NULL;
    for (struct dirent *e; d && !*buf && (e = readdir(d));) {
        BH_AUTOFREE char *text = NULL;
        snprintf(path, sizeof(path), "%s/%s/information", FOLDER, e->d_name);
        if (e->d_name[0] == '.' || bh_sysfile_read(path, 1 << 16, &text, NULL, NULL) < 0)
            continue;
        const char *at = strstr(text, "Model:");
        if (at)
            snprintf(buf, size, "%.*s", (int)strcspn(at + 6, "\n"), at + 6);
    }
    if (d)
        closedir(d);
}

static int cmd_run(int argc, char **argv, int *ret_exit, struct bh_err *err)
{
    struct options o = {.dev = "/dev"};
    struct bh_recording rec;
    struct bh_buf text;
    char driver[BH_RECORDING_TEXT_MAX] = "", gpu[BH_RECORDING_TEXT_MAX] = "";
    int rc = parse_options(argc, argv, true, &o, err);
    if (rc < 0)
        return rc;
    if (!o.out || !o.n_rest)
        return bh_fail(err, BH_USAGE, "run needs -o FILE and a command; see bulkhead-record --help");
    if (bh_sysfile_line("/sys/module/nvidia/version", driver, sizeof(driver), NULL) < 0)
        driver[0] = '\0';
    gpu_name(gpu, sizeof(gpu));
    rc = bh_record_run(o.dev, o.rest, &rec, ret_exit, err);
    if (rc == BH_OK) {
        rec.driver = bh_recording_text(&rec.arena, o.driver ? o.driver : driver);
        rec.gpu = bh_recording_text(&rec.arena, o.gpu ? o.gpu : gpu);
        rec.what = bh_recording_text(&rec.arena, o.what ? o.what : o.rest[0]);
        bh_buf_init(&text, BH_RECORDING_BYTES_MAX);
        bh_recording_write(&text, &rec);
        rc = text.full
                 ? bh_fail(err, BH_TOO_LARGE, "%.300s: more than %d bytes", o.out, BH_RECORDING_BYTES_MAX)
                 : write_whole(o.out, &text, err);
        bh_buf_fini(&text);
    }
    bh_recording_fini(&rec);
    return rc;
}

static int read_whole(const char *path, struct bh_recording *ret, struct bh_err *err)
{
    FILE *f = fopen(path, "re");
    BH_AUTOFREE char *text = NULL;
    size_t n = 0, cap = 0, room, got;
    *ret = (struct bh_recording){0};
    if (!f)
        return fail_file(path, err);
    do {
        text = bh_grow_(text, &cap, n + 1, 1);
        room = cap - n;
        got = fread(text + n, 1, room, f);
        n += got;
    } while (got == room && n <= BH_RECORDING_BYTES_MAX);
    int rc = ferror(f) ? fail_file(path, err) : BH_OK;
    fclose(f);
    return rc == BH_OK ? bh_recording_parse(path, text, n, ret, err) : rc;
}

/* To standard output; what a pipe that was closed did not take is no success. */
static int say(const struct bh_buf *text, struct bh_err *err)
{
    if (text->full)
        return bh_fail(err, BH_TOO_LARGE, "the answer is longer than %d bytes", BH_RECORDING_BYTES_MAX);
    if (fputs(bh_buf_text(text), stdout) == EOF || fflush(stdout) == EOF)
        return bh_fail(err, BH_SYSTEM, "writing the answer: %s", strerror(errno));
    return BH_OK;
}

static int cmd_show(int argc, char **argv, int *ret_exit, struct bh_err *err)
{
    struct options o = {0};
    struct bh_recording rec;
    struct bh_buf text;
    int rc = parse_options(argc, argv, false, &o, err);
    if (rc < 0)
        return rc;
    if (o.n_rest != 1)
        return bh_fail(err, BH_USAGE, "show needs one FILE; see bulkhead-record --help");
    rc = read_whole(o.rest[0], &rec, err);
    if (rc < 0)
        return rc;
    bh_buf_init(&text, BH_RECORDING_BYTES_MAX);
    if (bh_recording_summary(&text, &rec, o.section))
        rc = say(&text, err);
    else
        rc = bh_fail(err, BH_NOT_FOUND, "%.200s: no section \"%.100s\"", o.rest[0], o.section);
    bh_buf_fini(&text);
    bh_recording_fini(&rec);
    *ret_exit = 0;
    return rc;
}

static int cmd_diff(int argc, char **argv, int *ret_exit, struct bh_err *err)
{
    struct options o = {0};
    struct bh_recording old = {0}, new = {0};
    int rc = parse_options(argc, argv, false, &o, err);
    if (rc < 0)
        return rc;
    if (o.n_rest != 2 || o.section)
        return bh_fail(err, BH_USAGE, "diff needs OLD and NEW; see bulkhead-record --help");
    rc = read_whole(o.rest[0], &old, err);
    if (rc == BH_OK)
        rc = read_whole(o.rest[1], &new, err);
    if (rc == BH_OK) {
        struct bh_comparison c;
        struct bh_buf text;
        bh_buf_init(&text, BH_RECORDING_BYTES_MAX);
        bh_recording_compare(&old, &new, &c);
        if (!c.changes.n)
            bh_buf_printf(&text, "the same %zu lines of calls\n", old.calls.n);
        else
            bh_buf_printf(&text, "old: %s, driver %s\nnew: %s, driver %s\n", old.gpu, old.driver, new.gpu,
                          new.driver);
        bh_comparison_write(&text, &c);
        rc = say(&text, err);
        *ret_exit = c.changes.n != 0;
        bh_buf_fini(&text);
        bh_comparison_fini(&c);
    }
    bh_recording_fini(&old);
    bh_recording_fini(&new);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*fn)(int argc, char **argv, int *ret_exit, struct bh_err *err);
    } VERBS[] = {{"run", cmd_run}, {"show", cmd_show}, {"diff", cmd_diff}};
    struct bh_err err;
    int result = 0;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(USAGE, stdout);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < BH_COUNT_OF(VERBS); i++) {
        if (strcmp(argv[1], VERBS[i].name) != 0)
            continue;
        int rc = VERBS[i].fn(argc - 2, argv + 2, &result, &err);
        if (rc < 0)
            fprintf(stderr, "bulkhead-record: %s\n", err.msg);
        return rc < 0 ? bh_code_exit(rc) : result;
    }
    fputs(USAGE, stderr);
    return bh_code_exit(BH_USAGE);
}
