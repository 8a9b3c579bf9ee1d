/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_top.c - `bulkhead top`: what goes on, as it does.
 *
 * One thread: a look at the daemon every second, keys in between. A daemon that is gone is said, what was known stays there,
 * dimmed and dated, and it is asked again.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/cli.h"
#include "tui/paint.h"
#include "tui/top_fetch.h"

#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { OPT_READONLY, OPT_ONCE, OPT_ASCII, OPT_EVERY, OPT_SIZE };
enum {
    EVERY_MS = 1000,
    EVERY_LEAST_MS = 200,
    EVERY_MOST_MS = 3600000,
    TEXT_MAX = 1 << 22,
    ROWS = 24,
    COLS = 80,
    MOST = 1000
};

static const struct bh_opt opts[] = {
    [OPT_READONLY] = {"readonly", 'r', BH_OPT_FLAG, NULL, NULL, "change nothing: no pause, no cancel"},
    [OPT_ONCE] = {"once", '1', BH_OPT_FLAG, NULL, NULL, "print one screen and end"},
    [OPT_ASCII] = {"ascii", 0, BH_OPT_FLAG, NULL, NULL, "draw with letters only"},
    [OPT_EVERY] = {"every", 'n', BH_OPT_TEXT, "TIME", NULL, "look so often, such as 5s (default: 1s)"},
    [OPT_SIZE] = {"size", 0, BH_OPT_TEXT, "COLSxROWS", NULL, "with --once: of this size (default: 80x24)"},
    {0},
};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
    (void)number;
    ended = 1;
}

static uint64_t ticks_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct session {
    struct bh_top_source source;
    struct bh_top_data data;
    struct bh_top_state state;
    struct bh_buf text;
    uint64_t every_ms, shown_ms; /* the last answer came then */
};

static void look(struct session *t)
{
    struct bh_err err;
    if (bh_top_fetch(&t->source, &t->data, &err) == BH_OK) {
        t->shown_ms = ticks_ms();
        if (t->state.away)
            t->state.message[0] = '\0';
        t->state.away = false;
        return;
    }
    t->state.away = true;
    (void)snprintf(t->state.message, sizeof(t->state.message), "%.190s", err.msg);
}

/* A text over the list: what another verb prints. */
static void read_verb(struct session *t, const char *verb)
{
    const char *const argv[] = {"bulkhead", verb, t->state.asked, "--color", "never", NULL};
    struct bh_err err;
    t->text.n = 0;
    if (bh_top_read(argv, &t->text, &err) < 0)
        bh_buf_printf(&t->text, "%s\n", err.msg);
    if (!t->text.n)
        bh_buf_str(&t->text, "nothing was written\n");
    (void)snprintf(t->state.title, sizeof(t->state.title), "bulkhead %s %.40s", verb, t->state.asked);
    t->state.text_at = 0;
    t->state.mode = BH_TOP_READING;
}

static void grant(struct session *t, enum bh_top_wish wish)
{
    static const char *const verbs[BH_TOP_WISHES] = {
        [BH_TOP_DESCRIBE] = "describe", [BH_TOP_WHY] = "why", [BH_TOP_LOGS] = "logs"};
    struct bh_err err;
    if (wish == BH_TOP_NOTHING || wish == BH_TOP_QUIT)
        return;
    if (verbs[wish]) {
        read_verb(t, verbs[wish]);
        return;
    }
    if (wish != BH_TOP_REFRESH) {
        const int rc = bh_top_do(&t->source, wish, t->state.asked, &err);
        (void)snprintf(t->state.message, sizeof(t->state.message), "%.40s%s%.140s", t->state.asked,
                       rc < 0 ? ": " : ": done", rc < 0 ? err.msg : "");
    }
    if (!t->state.frozen)
        look(t);
}

static void draw(struct session *t, struct bh_screen *s)
{
    const uint64_t age_ms = t->data.here && !t->state.frozen ? ticks_ms() - t->shown_ms : 0;
    bh_top_draw(&t->data, &t->state, age_ms > t->every_ms ? age_ms - t->every_ms : 0, s);
}

static void on_terminal(struct session *t)
{
    uint64_t next_ms = 0;
    enum bh_top_wish wish = BH_TOP_NOTHING;
    while (!ended && wish != BH_TOP_QUIT) {
        const uint64_t now_ms = ticks_ms();
        struct bh_screen s;
        unsigned rows, cols;
        if (now_ms >= next_ms) {
            if (!t->state.frozen)
                look(t);
            next_ms = ticks_ms() + t->every_ms;
        }
        bh_paint_size(&rows, &cols);
        bh_screen_init(&s, rows, cols);
        draw(t, &s);
        bh_paint_show(&s);
        bh_screen_fini(&s);
        const uint64_t after_ms = ticks_ms();
        const uint32_t key = bh_paint_key(next_ms > after_ms ? (int)(next_ms - after_ms) : 0);
        wish = key ? bh_top_key(&t->state, &t->data, key, rows) : BH_TOP_NOTHING;
        grant(t, wish);
    }
}

/* ---- the words of the command line ---- */

static int read_size(const struct bh_cli *cli, unsigned *rows, unsigned *cols, struct bh_err *err)
{
    const char *word = cli->value[OPT_SIZE];
    struct winsize w = {0};
    uint64_t x = COLS, y = ROWS;
    if (word) {
        char first[16] = {0};
        const char *mark = strchr(word, 'x');
        if (mark && (size_t)(mark - word) < sizeof(first))
            memcpy(first, word, (size_t)(mark - word));
        if (!mark || bh_uint_parse(first, MOST, &x, NULL) < 0 ||
            bh_uint_parse(mark + 1, MOST, &y, NULL) < 0 || !x || !y)
            return bh_fail(err, BH_USAGE, "--size: '%.40s' is not a size such as 80x24", word);
    } else if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row && w.ws_col) {
        x = w.ws_col;
        y = w.ws_row;
    }
    *cols = (unsigned)x;
    *rows = (unsigned)y;
    return BH_OK;
}

static int read_words(const struct bh_cli *cli, struct session *t, unsigned *rows, unsigned *cols,
                      struct bh_err *err)
{
    const char *every = cli->value[OPT_EVERY];
    t->every_ms = EVERY_MS;
    if (every && (bh_duration_parse(every, &t->every_ms, NULL) < 0 || t->every_ms < EVERY_LEAST_MS ||
                  t->every_ms > EVERY_MOST_MS))
        return bh_fail(err, BH_USAGE, "--every: '%.40s' is not a time from 200ms to 1h", every);
    if (cli->value[OPT_SIZE] && !cli->value[OPT_ONCE])
        return bh_fail(err, BH_USAGE, "--size goes with --once: a terminal has its own");
    if (!cli->value[OPT_ONCE] && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
        return bh_fail(err, BH_USAGE, "this is no terminal: bulkhead top --once prints one screen");
    t->state.readonly = cli->value[OPT_READONLY] != NULL;
    (void)setlocale(LC_CTYPE, "");
    t->state.ascii = cli->value[OPT_ASCII] || !bh_str_eq(nl_langinfo(CODESET), "UTF-8");
    return read_size(cli, rows, cols, err);
}

static int once(struct bh_cli *cli, struct session *t, unsigned rows, unsigned cols, struct bh_err *err)
{
    struct bh_screen s;
    const int rc = bh_top_fetch(&t->source, &t->data, err);
    if (rc < 0)
        return rc;
    t->shown_ms = ticks_ms();
    bh_screen_init(&s, rows, cols);
    draw(t, &s);
    bh_screen_text(&s, cli->paint_out, &cli->out);
    bh_screen_fini(&s);
    return BH_OK;
}

static int run(struct bh_cli *cli)
{
    static struct session t;
    const struct sigaction end = {.sa_handler = on_signal};
    struct bh_err err;
    unsigned rows = 0, cols = 0;
    bh_buf_init(&t.text, TEXT_MAX);
    t.state.text = &t.text;
    int rc = bh_top_source_init(&t.source, &err);
    if (rc == BH_OK)
        rc = read_words(cli, &t, &rows, &cols, &err);
    if (rc == BH_OK && cli->value[OPT_ONCE])
        rc = once(cli, &t, rows, cols, &err);
    else if (rc == BH_OK) {
        (void)sigaction(SIGTERM, &end, NULL);
        (void)sigaction(SIGINT, &end, NULL);
        (void)sigaction(SIGHUP, &end, NULL);
        if (bh_paint_begin(cli->paint_out)) {
            on_terminal(&t);
            bh_paint_end();
        } else
            rc = bh_fail(&err, BH_USAGE,
                         "this terminal (TERM) is not known: bulkhead top --once prints one screen");
    }
    bh_top_source_fini(&t.source);
    bh_top_data_fini(&t.data);
    bh_buf_fini(&t.text);
    return rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_top = {
    .name = "top",
    .summary = "what goes on, as it does: GPUs, slices, tenants, and who waits for what",
    .operands = "",
    .examples = "bulkhead top                     q leaves, ? tells of the keys\n"
                "bulkhead top --readonly          on a screen that others can reach\n"
                "bulkhead top --once --ascii      one screen as text\n",
    .text = "Who sees one tenant in other commands sees that tenant here. Where the daemon does not answer,\n"
            "what was known stays, dimmed and dated, and it is asked again. NO_COLOR and --color never do\n"
            "without colours.\n",
    .opts = opts,
    .run = run,
};
