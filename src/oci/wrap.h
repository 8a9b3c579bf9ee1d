/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap.h - bulkhead-oci as a container engine's runtime: the real one, with the lease's seccomp profile put into the bundle first.
 *
 * Whatever an engine asks of a runtime is passed on unchanged. Only where it makes a container (create, run) whose bundle has
 * the device of a lease, config.json gets the lease's profile. A container without a lease is not touched.
 */
#ifndef BH_OCI_WRAP_H
#define BH_OCI_WRAP_H

#include "base/err.h"

/* Which bundle a runtime's command line makes a container of; NULL: it makes none. `.` where it names none. */
const char *bh_wrap_bundle(int argc, char **argv);
/* Puts the profile into that bundle. */
int bh_wrap_bundle_patch(const char *bundle, struct bh_err *err) BH_MUST_USE;
/* Becomes the real runtime; comes back only to say why it cannot. runtime: its program, NULL: runc or crun, as installed. */
int bh_wrap_become(const char *runtime, char **argv, struct bh_err *err) BH_MUST_USE;

#endif
