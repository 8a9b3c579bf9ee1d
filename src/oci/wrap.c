/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/wrap.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "host/bundle_files.h"
#include "host/bundle_spec.h"
#include "oci/bundle.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Options before the verb that have no value behind them; all others of runc, crun and kata have one. */
static const char *const bare[] = {"--debug", "--systemd-cgroup", "--version", "-v", "--help", "-h"};

static bool is_bare(const char *word)
{
    for (size_t i = 0; i < BH_COUNT_OF(bare); i++)
        if (bh_str_eq(word, bare[i]))
            return true;
    return strchr(word, '=') != NULL;
}

const char *bh_wrap_bundle(int argc, char **argv)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-')
        i += is_bare(argv[i]) ? 1 : 2;
    if (i >= argc || !(bh_str_eq(argv[i], "create") || bh_str_eq(argv[i], "run")))
        return NULL;
    for (i++; i < argc; i++) {
        if ((bh_str_eq(argv[i], "--bundle") || bh_str_eq(argv[i], "-b")) && i + 1 < argc)
            return argv[i + 1];
        if (bh_str_starts(argv[i], "--bundle="))
            return argv[i] + strlen("--bundle=");
        if (bh_str_starts(argv[i], "-b="))
            return argv[i] + strlen("-b=");
    }
    return ".";
}

static int put(const char *bundle, const struct bh_buf *text, mode_t mode, struct bh_err *err)
{
    int fd;
    int rc = bh_folder_open(bundle, 0, &fd, err);
    if (rc < 0)
        return rc;
    rc = bh_file_put(fd, "config.json", text->at, text->n, mode, err);
    close(fd);
    return rc;
}

int bh_wrap_bundle_patch(const char *bundle, struct bh_err *err)
{
    BH_AUTOFREE char *config = NULL, *profile = NULL;
    struct bh_spec spec;
    struct bh_buf out;
    size_t n, n_profile;
    mode_t mode;
    int rc = bh_oci_read_config(bundle, &config, &n, &mode, err);
    rc = rc < 0 ? rc : bh_spec_read(config, n, &spec, err);
    if (rc < 0 || !*spec.profile)
        return rc;
    rc = bh_oci_read_file(spec.profile, BH_SPEC_MAX, &profile, &n_profile, err);
    if (rc < 0)
        return bh_wrap(err, rc, "the lease's profile is not there (has it ended?)");
    if (memchr(profile, '\0', n_profile))
        return bh_fail(err, BH_INVALID, "%.300s is no seccomp profile", spec.profile);
    bh_buf_init(&out, 2 * (size_t)BH_SPEC_MAX);
    rc = bh_spec_put_seccomp(config, n, &spec, profile, &out, err);
    rc = rc < 0 ? rc : put(bundle, &out, mode, err);
    bh_buf_fini(&out);
    return rc;
}

int bh_wrap_become(const char *runtime, char **argv, struct bh_err *err)
{
    static const char *const known[] = {"runc", "crun"};
    if (runtime) {
        (void)execvp(runtime, argv);
        return bh_fail(err, errno == ENOENT ? BH_NOT_FOUND : BH_SYSTEM, "the runtime %.200s: %s", runtime,
                       strerror(errno));
    }
    for (size_t i = 0; i < BH_COUNT_OF(known); i++)
        (void)execvp(known[i], argv);
    return bh_fail(err, BH_NOT_FOUND,
                   "neither runc nor crun is installed; name a runtime with --bulkhead-runtime=PROGRAM");
}
