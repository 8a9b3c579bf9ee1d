/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advisory.h - which version of which component is known to be unsafe.
 *
 * Generated from data/advisories.json. A version is safe when it is at or above
 * `fixed` on its own branch. A driver branch that a newer bulletin no longer
 * lists is unpatched, not clean. A branch newer than every bulletin is not known
 * to be unsafe, which is not the same as known to be safe.
 */
#ifndef BH_CORE_MODEL_ADVISORY_H
#define BH_CORE_MODEL_ADVISORY_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BH_VERSION_FIELDS = 6 };

/*
 * `580.159.03`, `v1.17.8`, `25.3.2-rc.1`: dotted numbers; missing ones are 0. A `-suffix` or `~suffix` sorts before
 * its release, except a packager's revision (`1.17.8-1`) or build (`+k8s`), which is the release.
 */
struct bh_version {
    uint32_t field[BH_VERSION_FIELDS];
    uint8_t n;
    bool prerelease;
    uint32_t pre_number; /* the last number of the suffix: -rc.3 -> 3 */
};
int bh_version_parse(const char *s, struct bh_version *ret, struct bh_err *err) BH_MUST_USE;
int bh_version_compare(const struct bh_version *a, const struct bh_version *b); /* <0, 0, >0 */
/* `580` accepts every 580.x, `580.159` every 580.159.x; `580.159.03` only itself. Both must parse, else false. */
bool bh_version_accepts(const char *accepted, const char *version);

struct bh_advisory {
    const char
        *component; /* `nvidia-driver`, `nvidia-container-toolkit`, `gpu-operator`, `vgpu-manager-kvm`, ... */
    const char *branch; /* `580`; NULL: one line of versions */
    const char *fixed;
    const char *cves;      /* `CVE-2025-23266 CVE-2025-23267` */
    const char *worst_cve; /* the one with the highest score */
    uint16_t cvss_tenths;
    uint16_t bulletin;
    int32_t published_day;
};

/* What is open against one version of one component. */
struct bh_exposure {
    const struct bh_advisory *worst;  /* highest score among those not fixed; NULL: none */
    const struct bh_advisory *oldest; /* fix available for longest; NULL: none */
    size_t n_open;
    bool unpatched_branch; /* the branch gets no more fixes: a newer bulletin does not list it */
    /*
     * The lowest version that has every published fix: of its own branch, or of the next one still supported
     * that gets them. NULL: no bulletin says.
     */
    const char *fix_version;
};
size_t bh_advisory_count(void);
const struct bh_advisory *bh_advisory_at(size_t i);
/*
 * Fails only when the version cannot be read. Bulletins published after `day` do not count yet. Nothing is open
 * against a component no bulletin names, nor against firmware whose fixed version depends on the platform.
 */
int bh_advisory_check(const char *component, const char *version, int32_t day, struct bh_exposure *ret,
                      struct bh_err *err) BH_MUST_USE;

#endif
