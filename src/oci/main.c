/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - bulkhead-oci: what container engines call. As a hook it refuses a container that its lease would not hold; as a
 * runtime (`podman run --runtime bulkhead-oci`) it adds the lease's seccomp profile and becomes the real one.
 */
#include "base/str.h"
#include "oci/hook.h"
#include "oci/wrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int say(const struct bh_err *err)
{
    (void)fprintf(stderr, "bulkhead: %s\n", err->msg);
    return bh_code_exit(err->code);
}

static int hook(int argc, char **argv)
{
    struct bh_err err = {0};
    struct bh_hook h;
    int rc = bh_hook_options(argc, argv, &h, &err);
    rc = rc < 0 ? rc : bh_hook_run(&h, STDIN_FILENO, &err);
    return rc < 0 ? say(&err) : 0;
}

/* Takes our own option off the command line (podman: --runtime-flag bulkhead-runtime=PROGRAM). */
static const char *take_runtime(int *argc, char **argv)
{
    static const char option[] = "--bulkhead-runtime=";
    const char *found = secure_getenv("BULKHEAD_OCI_RUNTIME");
    int n = 0;
    for (int i = 0; i < *argc; i++)
        if (i > 0 && bh_str_starts(argv[i], option))
            found = argv[i] + sizeof(option) - 1;
        else
            argv[n++] = argv[i];
    argv[n] = NULL;
    *argc = n;
    return found && *found ? found : NULL;
}

static int runtime(int argc, char **argv)
{
    struct bh_err err = {0};
    const char *real = take_runtime(&argc, argv);
    const char *bundle = bh_wrap_bundle(argc, argv);
    int rc = bundle ? bh_wrap_bundle_patch(bundle, &err) : BH_OK;
    rc = rc < 0 ? rc : bh_wrap_become(real, argv, &err);
    return rc < 0 ? say(&err) : 0;
}

int main(int argc, char **argv)
{
    return argc > 1 && bh_str_eq(argv[1], "hook") ? hook(argc - 2, argv + 2) : runtime(argc, argv);
}
