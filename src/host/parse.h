/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.h - what the kernel's and the distribution's small files say. Pure: text in, facts out.
 *
 * Each takes bytes from a file that may be cut, of another format or hostile, and either knows or does not.
 */
#ifndef BH_HOST_PARSE_H
#define BH_HOST_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A fact that may be unknown. */
enum bh_known { BH_KNOWN_NOT, BH_KNOWN_NO, BH_KNOWN_YES };

/* A run of bytes inside the text that was given; n 0: nothing. */
struct bh_span {
    const char *at;
    size_t n;
};

/* Without the blanks around it. */
struct bh_span bh_span_trim(const char *at, size_t n);
/*
 * The next `Key: value` line of /proc/driver/nvidia/params at or after *pos, quotes around the value taken
 * off; moves *pos behind it. False: no more.
 */
bool bh_params_next(const char *text, size_t *pos, struct bh_span *ret_key, struct bh_span *ret_value);
/* The word in brackets of `none [integrity] confidentiality`. */
struct bh_span bh_lockdown_word(const char *text);
/* The EFI variable SecureBoot: four bytes of attributes, then 0 or 1. */
enum bh_known bh_secure_boot(const uint8_t *bytes, size_t n);
/* The version of an installed package in dpkg's status file, without epoch and Debian's own part. */
struct bh_span bh_dpkg_version(const char *text, const char *package);
/* The driver's version in /proc/driver/nvidia/version. */
struct bh_span bh_driver_version(const char *text);
/*
 * Does this PCI port send peer traffic up to the IOMMU? Configuration space in, at least 64 bytes. *ret_port:
 * is it a port that has to (a root port or a switch's downstream port)? Unknown where the extended part
 * cannot be read.
 */
enum bh_known bh_acs_redirects(const uint8_t *config, size_t n, bool *ret_port);

#endif
