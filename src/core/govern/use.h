/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use.h - how much of the time that a process has the card it works, from two things that are known.
 *
 * A process that nobody else is in the way of keeps the card while it rests, so the card's record of turns does not
 * tell work from rest. The driver samples the engine, every 150 or 200 ms: how busy it was since the sample before, all
 * processes together. (It names one, too, but which is chance: nothing is made of that.) So a sample tells about one
 * process only where that one had the card all the while, but for visits of such as are known to use little. Of the
 * others it tells whether what is believed of them can be true: what they had, by what is believed of each, must come to
 * what was used. Where it does not, nothing is believed any more, and whoever had much of the card is in doubt until it
 * is seen alone (the controller gives it a turn for that), or until the card is seen to be full while several have it: then
 * none of them rests for long, and who is believed to is believed no longer. Where several came into doubt at once, two or
 * more of them were seen and they explain the sum if the others are like them, those are taken to be: to look at each would
 * cost all of them much, to find out that everybody leaves the same gaps. And where those who take turns leave some of the card
 * empty, one of them comes into doubt now and then though the sum is explained, or nearly so: in a crowd the one that had the card when it
 * was empty.
 */
#ifndef BH_CORE_GOVERN_USE_H
#define BH_CORE_GOVERN_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BH_USE_PROCESSES = 256,
    BH_USE_MARKS = 64,
    BH_USE_TIMED = 8,   /* samples between two questions whose times are looked at */
    BH_USE_LIGHT = 200, /* permille: who uses less takes no turns */
    BH_USE_FULL = 850,  /* permille; measured: a busy process comes to this, so it counts as all */
};
#define BH_USE_UNKNOWN UINT32_MAX
/* So much of the time held may be missing or too much before what is believed is given up. */
enum { BH_USE_OFF = 150 };

/* What the record of turns says of a process, since ever. */
struct bh_use_turns {
    uint32_t pid;
    uint64_t ns;
    uint64_t long_ns;  /* of that, in turns so long that it may have rested in them */
    uint64_t heard_ns; /* when it last had the card */
    uint64_t turns;    /* how often it was given it */
};
struct bh_use_look {
    uint64_t now_ns;
    bool held;
    uint64_t from_ns;              /* since when whoever has the card does */
    const struct bh_use_turns *at; /* each once; what is beyond BH_USE_PROCESSES is not looked at */
    size_t n;
};
/* How busy the engine was, all processes together. Times that are none of the last second on the clock of the turns are those of another
 * clock, and nothing is made of them. */
struct bh_use_sample {
    uint64_t from_ns, to_ns;
    uint32_t permille;
};
/* What the driver's samples since the last ones say. */
struct bh_use_samples {
    uint32_t n;
    uint32_t sum, mean, last; /* permille */
    uint32_t n_timed;
    struct bh_use_sample at[BH_USE_TIMED]; /* the newest of them, oldest first */
};
/* In any order. */
void bh_use_samples_add(struct bh_use_samples *to, uint64_t at_ns, uint32_t permille);
/* All are there, and the last of those before is of then: each is of the time since the one before it. */
void bh_use_samples_follow(struct bh_use_samples *s, uint64_t before_ns);

/* Sums over samples, in permille; what is old fades: of what one had of each, of that squared, and of that times what was used. */
struct bh_use_blamed {
    int64_t had, had2, both;
};

struct bh_use_line {
    uint32_t pid;
    uint64_t had_ns, long_ns;        /* when it was last looked */
    uint64_t marks_ns[BH_USE_MARKS]; /* had_ns at each mark */
    uint64_t marks_long_ns[BH_USE_MARKS];
    uint64_t taken_ns, taken_long_ns; /* at the last sample */
    uint64_t time_ns;                 /* of the window that is compared */
    uint64_t row_ns, row_long_ns;     /* of the samples in a row; in long turns */
    bool known, doubt, seen;          /* seen: alone, once, and not at work all the time */
    bool by_sum;                      /* its doubt came so, as that of all who may be the reason */
    uint32_t permille, rough;         /* rough: as it was seen, smoothed */
    uint32_t beside, besides; /* permille it was seen to have beside busy ones, and how often it was */
    bool visited;             /* when it was seen alone, by such as use little */
    uint32_t theirs;          /* samples in a row that may have been of those who visited it */
    bool refuted;             /* lately: what is learnt since then stays until other rules tell */
    uint64_t refuted_ns;
    uint64_t doubt_at_ns;
    uint64_t reviewed_ns; /* when it was last given up only because some of the card was empty; 0: never */
    bool was_known;       /* until then */
    uint64_t had_then_us; /* of the window by which somebody came into doubt last */
    struct bh_use_blamed blame;
};

/* The newest samples in a row that are of a full card, or of one that is not; of how much time, and how much of that was used. */
struct bh_use_row {
    bool full;
    uint32_t samples;
    uint64_t ns, used_ns;
};

/* For so long those who take turns left that much of the card empty; when that is looked into. */
struct bh_use_empty {
    uint64_t ns, due_ns;
};

/* Samples, each held against who had the card in its time (use_blame.c). */
struct bh_use_blame {
    uint64_t empty_ns; /* for so long something is missing */
    uint64_t next_ns;  /* nobody is blamed before that, */
    uint64_t wait_ns;  /* which was so long after the last one */
    uint32_t samples;
    int64_t weight, used, used2; /* of all samples, as the sums of each line are */
};

struct bh_use {
    struct bh_use_line at[BH_USE_PROCESSES];
    size_t n;
    uint64_t turns, taken_turns;    /* of all: each is a change, and takes its time */
    uint64_t mark_ns[BH_USE_MARKS]; /* 0: none yet */
    uint64_t mark_turns[BH_USE_MARKS];
    uint32_t mark; /* the newest */
    bool asked;
    uint64_t asked_ns, asked_before_ns;
    /* Permille of the card that nobody used: of a second or so; by the last answer that had samples, and of how long that was. */
    struct {
        uint32_t permille, last;
        uint64_t at_ns, span_ns;
    } unused;
    uint32_t fruitless; /* asks without a sample, in a row */
    bool seen_long;     /* a turn in which one may well rest, since the last ask */
    bool seldom;        /* bh_use_ask_seldom() */
    bool begun;
    uint64_t taken_ns;
    /* The window that is compared; what is old fades. In microseconds. */
    uint32_t samples;
    uint64_t used_us, low_us, high_us, likely_us, held_us;
    uint32_t unlikely; /* samples in a row: more was used than is likely */
    struct bh_use_row row;
    struct bh_use_empty much, some;
    struct bh_use_blame blame;
    uint64_t renewed_ns; /* when those were last looked into as soon as may be */
    /* Permille of their time that those worked who came into doubt because too little was used, in all; 0: nobody did. */
    uint32_t doubted;
    uint64_t doubted_ns;   /* since when they are */
    uint64_t used_then_us; /* by all, of the window by which they are */
};

void bh_use_init(struct bh_use *u);
/* Several compete, and nothing would follow from finding out who rests: only who is alone is worth a question now, and a sample
 * now and then. No sums are compared meanwhile, so nobody comes into doubt. */
void bh_use_ask_seldom(struct bh_use *u, bool seldom);
/* Is it so long since the last mark that there should be another? */
bool bh_use_wants_mark(const struct bh_use *u, uint64_t now_ns);
/* At every reading of the record, and in between where that is read late. */
void bh_use_watch(struct bh_use *u, const struct bh_use_look *look);
/* Should the driver be asked now? It costs: seldom, but often while somebody is alone of whom it would tell something, and
 * for three seconds after some came into doubt by the sum; twice a second while something is missing. */
bool bh_use_is_due(const struct bh_use *u, const struct bh_use_look *look);
/* It was asked; this is new. */
void bh_use_take(struct bh_use *u, const struct bh_use_look *look, const struct bh_use_samples *s);
/* How much of its time on the card it works when nobody is in its way, or BH_USE_UNKNOWN. */
uint32_t bh_use_permille(const struct bh_use *u, uint32_t pid);
/* Is there reason to think that it is not as believed? */
bool bh_use_doubt(const struct bh_use *u, uint32_t pid);
/* How much of the card nobody used of late, whoever had it: permille, and 1 at least; 0: not known. */
uint32_t bh_use_unused(const struct bh_use *u, uint64_t now_ns);

#endif
