/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - bulkhead-scrub: proves that a card's memory has nothing of whoever had it before.
 *
 *     bulkhead-scrub scrub UUID     takes all memory of the card, plants canaries, overwrites everything, looks at every page
 *     bulkhead-scrub canary UUID    one process fills half of the card with canaries and dies; another looks for them
 *                    [--quick]      2 GiB of them, and twice as much is looked at: what is freed last is given away first
 *
 * One line on standard output: VERDICT BYTES-LOOKED-AT BYTES-IN-ALL WORDS, where the verdict is clean, found or unknown. The
 * canaries of the first are what the looking must find when nothing was overwritten (`--without-overwriting`, for tests).
 * Memory that cannot be obtained (the driver's own, a living process's) is not looked at: the two numbers say so.
 */
#include "scrub/card.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANARY = 0xc5 };
#define OWN_BYTES   (UINT64_C(2) << 30)
#define QUICK_BYTES (UINT64_C(2) << 30)

static int say(const char *verdict, uint64_t looked, uint64_t total, const char *words)
{
    printf("%s %llu %llu %s\n", verdict, (unsigned long long)looked, (unsigned long long)total, words);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* But for what the driver and this very context need. More than that is somebody's, and was not looked at. Whoever asks the driver
 * who is there, and what it keeps for itself, knows it better (node/mech/vacant.h). */
static bool is_nearly_all(const struct bh_scrub_card *c)
{
    return c->pieces.n && c->held_bytes + OWN_BYTES >= c->total_bytes;
}

static int scrub(const char *uuid, bool overwrite)
{
    struct bh_scrub_card card;
    struct bh_err err;
    struct bh_scrub_seen seen = {0};
    char words[200];
    int rc = bh_scrub_open(uuid, &card, &err);
    if (rc == BH_OK) {
        bh_scrub_take(&card, UINT64_MAX);
        rc = bh_scrub_wash(&card, CANARY, overwrite, &seen, &err);
    }
    if (rc < 0)
        return say("unknown", 0, card.total_bytes, err.msg);
    (void)snprintf(words, sizeof(words), "%llu of %llu pages of 2 MiB were not as they were written",
                   (unsigned long long)seen.wrong, (unsigned long long)seen.pages);
    const bool enough = is_nearly_all(&card);
    if (!enough && !seen.wrong)
        (void)snprintf(words, sizeof(words), "only %llu of %llu MiB were to be had: somebody is still there",
                       (unsigned long long)(card.held_bytes >> 20),
                       (unsigned long long)(card.total_bytes >> 20));
    return say(seen.wrong ? "found" : enough ? "clean" : "unknown", card.held_bytes, card.total_bytes, words);
}

/* In a child that ends as a tenant may: without a word to the driver. */
static _Noreturn void plant(const char *uuid, bool quick, int to_parent)
{
    struct bh_scrub_card card;
    struct bh_err err;
    int rc = bh_scrub_open(uuid, &card, &err);
    if (rc == BH_OK) {
        bh_scrub_take(&card, quick ? QUICK_BYTES : card.total_bytes / 2);
        rc = card.pieces.n ? bh_scrub_fill(&card, CANARY, &err) : bh_fail(&err, BH_BUSY, "the card is full");
    }
    const uint64_t planted = rc == BH_OK ? card.held_bytes : 0;
    (void)!write(to_parent, &planted, sizeof(planted));
    (void)kill(getpid(), SIGKILL);
    _exit(1);
}

static uint64_t planted_by_another(const char *uuid, bool quick)
{
    int ends[2];
    uint64_t planted = 0;
    if (pipe(ends) < 0)
        return 0;
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        plant(uuid, quick, ends[1]);
    }
    close(ends[1]);
    if (pid < 0 || read(ends[0], &planted, sizeof(planted)) != (ssize_t)sizeof(planted))
        planted = 0;
    close(ends[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return planted;
}

static int canary(const char *uuid, bool quick)
{
    static struct bh_scrub_card card; /* what it holds is held to the end of the process */
    struct bh_err err;
    struct bh_scrub_seen seen = {0};
    char words[200];
    const uint64_t planted = planted_by_another(uuid, quick);
    int rc = bh_scrub_open(uuid, &card, &err);
    if (rc == BH_OK) {
        bh_scrub_take(&card, quick ? 2 * QUICK_BYTES : UINT64_MAX);
        rc = bh_scrub_search(&card, CANARY, &seen, &err);
    }
    if (rc < 0)
        return say("unknown", 0, card.total_bytes, err.msg);
    (void)snprintf(words, sizeof(words),
                   "%llu MiB of canaries planted by a process that was killed; %llu of %llu pages had one",
                   (unsigned long long)(planted >> 20), (unsigned long long)seen.wrong,
                   (unsigned long long)seen.pages);
    if (planted == 0)
        (void)snprintf(words, sizeof(words), "no canaries could be planted");
    return say(seen.wrong              ? "found"
               : planted && seen.pages ? "clean"
                                       : "unknown",
               card.held_bytes, card.total_bytes, words);
}

int main(int argc, char **argv)
{
    const bool skips = argc == 4 && strcmp(argv[3], "--without-overwriting") == 0;
    if ((argc == 3 || skips) && strcmp(argv[1], "scrub") == 0)
        return scrub(argv[2], !skips);
    const bool quick = argc == 4 && strcmp(argv[3], "--quick") == 0;
    if ((argc == 3 || quick) && strcmp(argv[1], "canary") == 0)
        return canary(argv[2], quick);
    fputs("usage: bulkhead-scrub scrub UUID | canary UUID [--quick]\n", stderr);
    return 2;
}
