/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/plot.h"

#include "base/mem.h"
#include "base/test.h"

static const double xs[] = {0, 50, 100}, ys[] = {10, 20, 15}, zs[] = {1, 2, 3};

static struct bh_plot plot_of(const struct bh_plot_line *lines, size_t n)
{
    return (struct bh_plot){.title = "a < b & c",
                            .subtitle = "below",
                            .x_label = "across, %",
                            .y_label = "up, GPUs",
                            .x_axis = BH_AXIS_PERCENT,
                            .x_max = 100,
                            .y_max = 40,
                            .lines = lines,
                            .n_lines = n};
}

static size_t count(const char *s, const char *part)
{
    size_t n = 0;
    for (const char *at = strstr(s, part); at; at = strstr(at + 1, part))
        n++;
    return n;
}

TEST(lines_axes_and_legend)
{
    const struct bh_plot_line lines[] = {{.label = "first", .n = 3, .x = xs, .y = ys},
                                         {.color = 1, .is_faint = true, .n = 3, .x = xs, .y = zs},
                                         {.label = "bound", .is_dashed = true, .n = 2, .x = xs, .y = zs},
                                         {.label = "none", .n = 0}};
    struct bh_buf out BH_AUTO(bh_buf_fini);
    const struct bh_plot p = plot_of(lines, BH_COUNT_OF(lines));
    bh_buf_init(&out, 1 << 20);
    bh_plot_svg(&p, &out);
    const char *s = bh_buf_text(&out);
    CHECK(strncmp(s, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39) == 0);
    CHECK_EQ(count(s, "a &lt; b &amp; c"), 2); /* the title, for eyes and for readers */
    CHECK_EQ(count(s, ">first<"), 1);
    CHECK_EQ(count(s, ">bound<"), 1);
    CHECK_EQ(count(s, "stroke-opacity=\"0.45\""), 1);
    CHECK_EQ(count(s, ">across, %<"), 1);
    CHECK_EQ(count(s, ">up, GPUs<"), 1);
    CHECK_EQ(count(s, ">100 %<"), 1);
    CHECK_EQ(count(s, ">0<"), 1);
    /* the first line, from corner to corner of the numbers: 74 + 608 * x / 100, 70 + 348 * (1 - y / 40) */
    CHECK_EQ(count(s, "M74.0 331.0L378.0 244.0L682.0 287.5"), 1);
    CHECK(strcmp(s + strlen(s) - 7, "</svg>\n") == 0);
}

TEST(a_stack_stands_on_what_is_below)
{
    const struct bh_plot_line lines[] = {{.label = "low", .n = 2, .x = xs, .y = ys},
                                         {.label = "high", .color = 1, .n = 2, .x = xs, .y = ys}};
    struct bh_buf out BH_AUTO(bh_buf_fini);
    struct bh_plot p = plot_of(lines, 2);
    p.kind = BH_PLOT_STACK;
    bh_buf_init(&out, 1 << 20);
    bh_plot_svg(&p, &out);
    const char *s = bh_buf_text(&out);
    CHECK_EQ(count(s, "M74.0 331.0L378.0 244.0L378.0 418.0L74.0 418.0Z"), 1);
    CHECK_EQ(count(s, "M74.0 244.0L378.0 70.0L378.0 244.0L74.0 331.0Z"), 1);
    CHECK(strstr(s, ">high<") < strstr(s, ">low<")); /* the legend goes down as the stack does */
}

TEST(spans_are_spaced_by_multiples)
{
    const double x[] = {0, 3600, 86400}, y[] = {0, 10, 20};
    const struct bh_plot_line line = {.label = "w", .n = 3, .x = x, .y = y};
    struct bh_buf out BH_AUTO(bh_buf_fini);
    struct bh_plot p = plot_of(&line, 1);
    p.x_axis = BH_AXIS_SPAN;
    p.x_min = 60;
    p.x_max = 86400;
    bh_buf_init(&out, 1 << 20);
    bh_plot_svg(&p, &out);
    const char *s = bh_buf_text(&out);
    CHECK_EQ(count(s, ">1 min<"), 1);
    CHECK_EQ(count(s, ">1 h<"), 1);
    CHECK_EQ(count(s, ">1 day<"), 1);
    CHECK_EQ(count(s, ">1 week<"), 0);
    /* what is shorter stands at the edge; an hour is 0.563 of the way from a minute to a day */
    CHECK_EQ(count(s, "M74.0 418.0L416.3 331.0L682.0 244.0"), 1);
}

TEST_MAIN
