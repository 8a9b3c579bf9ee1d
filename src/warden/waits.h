/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits.h - what a thread of the warden waits for, as far as the kernel tells.
 *
 * Some waits can only be a tenant's doing: a page that it fills in itself, by userfaultfd or a file system of its own. Others
 * happen to anybody: a page that comes from a disk, and the lock that a fork holds.
 */
#ifndef BH_WARDEN_WAITS_H
#define BH_WARDEN_WAITS_H

#include "warden/maps.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum bh_waits {
    BH_WAITS_NOT,      /* it runs, or would if there were a processor; or no tenant has to do with it */
    BH_WAITS_TENANT,   /* for a page that a process fills in */
    BH_WAITS_PAGE,     /* for a page; whose, bh_waits_page says */
    BH_WAITS_OTHERWISE /* a lock, something else, or the kernel does not tell */
};

/* A thread of this process. */
enum bh_waits bh_waits_for(pid_t tid);
/* The same of a state (of /proc/PID/stat) and of the kernel's function (wchan; "0": it does not tell). */
enum bh_waits bh_waits_told(char state, const char *function);

/*
 * The page that such a thread waits for, while it reads or writes a process's memory. A file may be one of a file
 * system that a process serves: what a program passes to its driver it has written itself just before, so the kernel
 * needs no file for it. May wait itself, for as long as that process likes.
 */
enum bh_waits_page { BH_PAGE_UNKNOWN, BH_PAGE_SERVED, BH_PAGE_INNOCENT };
enum bh_waits_page bh_waits_page(pid_t tid, uint32_t whose);
enum bh_waits_page bh_waits_page_at(uint32_t whose, uint64_t at); /* the one at this address of its */
/* The same of a file, by the kind of the file system that it is on, as a list of mounts has it; false: it is on none of these. */
bool bh_waits_mounted(const char *mountinfo, const struct bh_maps_file *f, enum bh_waits_page *ret);

/* What stands at the begin of a file of /proc; "": not to be had. */
void bh_waits_head(const char *path, char *text, size_t size);

#endif
