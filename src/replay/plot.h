/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.h - a chart as SVG text: lines, or areas one upon the other, with axes, units, a title and a legend.
 *
 * For people: light ground, colours that stay apart for colour-blind eyes, no script, no font that must be loaded. The
 * same numbers give the same bytes.
 */
#ifndef BH_REPLAY_PLOT_H
#define BH_REPLAY_PLOT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bh_plot_kind { BH_PLOT_LINES, BH_PLOT_STACK };
enum bh_plot_axis {
    BH_AXIS_PLAIN,
    BH_AXIS_PERCENT,
    BH_AXIS_SPAN /* seconds from a minute up, each step a multiple: 1 min, 10 min, 1 h ... */
};

struct bh_plot_line {
    const char *label; /* NULL: not in the legend */
    uint32_t color;    /* lines of one thing share one */
    bool is_faint;     /* one of several that belong together */
    bool is_dashed;    /* no measurement: a bound or an ideal */
    size_t n;
    const double *x, *y; /* a stack: all lines have the same x */
};

struct bh_plot {
    const char *title, *subtitle;
    const char *x_label, *y_label; /* with units */
    uint8_t kind;                  /* enum bh_plot_kind */
    uint8_t x_axis, y_axis;        /* enum bh_plot_axis */
    double x_min, x_max, y_min, y_max;
    const struct bh_plot_line *lines;
    size_t n_lines;
};

void bh_plot_svg(const struct bh_plot *p, struct bh_buf *out);

#endif
