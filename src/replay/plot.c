/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/plot.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>

enum {
    WIDTH = 900,
    HEIGHT = 480,
    LEFT = 74,
    RIGHT = 218,
    TOP = 70,
    BOTTOM = 62,
    LEGEND_STEP = 22,
    TICKS = 7
};
enum { INNER_W = WIDTH - LEFT - RIGHT, INNER_H = HEIGHT - TOP - BOTTOM };

/* Dark enough on white, and apart for the common kinds of colour blindness. */
static const char *const colors[] = {
    "#d1495b", "#30638e", "#4c956c", "#edae49", "#7a5195", "#00798c",
    "#22223b", "#ef8354", "#6c757d", "#b0578d", "#9ab87a", "#5f7fbf",
};
enum { IDEAL_COLOR = 8 };

static const struct span {
    double s;
    const char *text;
} spans[] = {
    {60, "1 min"},    {600, "10 min"},    {3600, "1 h"},        {4 * 3600, "4 h"},
    {86400, "1 day"}, {604800, "1 week"}, {2592000, "30 days"}, {31536000, "1 year"},
};

static void text_of(struct bh_buf *out, const char *s)
{
    for (; *s; s++) {
        const char *as = *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '&' ? "&amp;" : NULL;
        if (as)
            bh_buf_str(out, as);
        else
            bh_buf_add(out, s, 1);
    }
}

static void say(struct bh_buf *out, double x, double y, const char *attributes, const char *s)
{
    bh_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    text_of(out, s);
    bh_buf_str(out, "</text>\n");
}

static double clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

static double along(double v, double min, double max, bool is_span)
{
    v = clamp(v, min, max);
    return is_span ? log(v / min) / log(max / min) : (v - min) / (max - min);
}

static double at_x(const struct bh_plot *p, double v)
{
    return LEFT + INNER_W * along(v, p->x_min, p->x_max, p->x_axis == BH_AXIS_SPAN);
}

static double at_y(const struct bh_plot *p, double v)
{
    return TOP + INNER_H * (1 - along(v, p->y_min, p->y_max, false));
}

/* 1, 2, 2.5 or 5 times a power of ten, so that about TICKS of them fill the range. */
static double step_of(double range)
{
    static const double nice[] = {1, 2, 2.5, 5, 10};
    const double rough = range / TICKS, power = pow(10, floor(log10(rough)));
    for (size_t i = 0; i < BH_COUNT_OF(nice); i++)
        if (power * nice[i] >= rough)
            return power * nice[i];
    return power * 10;
}

/* The multiples of step from min on; a hair below counts as min itself. */
static double tick_at(double min, double step, size_t i)
{
    return (ceil(min / step - 1e-9) + (double)i) * step;
}

static size_t ticks_in(double min, double max, double step)
{
    size_t n = 0;
    while (tick_at(min, step, n) <= max + step * 1e-6)
        n++;
    return n;
}

static const char *number(double v, double step, bool percent, char ret[32])
{
    const int decimals = step >= 1 && fabs(step - floor(step)) < 1e-9 ? 0 : step >= 0.1 ? 1 : 2;
    (void)snprintf(ret, 32, "%.*f%s", decimals, fabs(v) < step / 2 ? 0 : v, percent ? " %" : "");
    return ret;
}

static void x_tick(const struct bh_plot *p, struct bh_buf *out, double v, const char *s)
{
    bh_buf_printf(out, "<path d=\"M%.1f %dv%d\" stroke=\"#e6e8eb\"/>\n", at_x(p, v), TOP, INNER_H);
    bh_buf_printf(out, "<path d=\"M%.1f %dv5\" stroke=\"#5b6470\"/>\n", at_x(p, v), TOP + INNER_H);
    say(out, at_x(p, v), TOP + INNER_H + 20, "text-anchor=\"middle\" fill=\"#3c4550\"", s);
}

static void draw_axes(const struct bh_plot *p, struct bh_buf *out)
{
    char text[32];
    const double dx = step_of(p->x_max - p->x_min), dy = step_of(p->y_max - p->y_min);
    if (p->x_axis == BH_AXIS_SPAN) {
        for (size_t i = 0; i < BH_COUNT_OF(spans); i++)
            if (spans[i].s >= p->x_min && spans[i].s <= p->x_max)
                x_tick(p, out, spans[i].s, spans[i].text);
    } else {
        for (size_t i = 0; i < ticks_in(p->x_min, p->x_max, dx); i++) {
            const double v = tick_at(p->x_min, dx, i);
            x_tick(p, out, v, number(v, dx, p->x_axis == BH_AXIS_PERCENT, text));
        }
    }
    for (size_t i = 0; i < ticks_in(p->y_min, p->y_max, dy); i++) {
        const double v = tick_at(p->y_min, dy, i), y = at_y(p, v);
        bh_buf_printf(out, "<path d=\"M%d %.1fh%d\" stroke=\"#e6e8eb\"/>\n", LEFT, y, INNER_W);
        say(out, LEFT - 9, y + 4, "text-anchor=\"end\" fill=\"#3c4550\"",
            number(v, dy, p->y_axis == BH_AXIS_PERCENT, text));
    }
}

static void draw_frame(const struct bh_plot *p, struct bh_buf *out)
{
    bh_buf_printf(out, "<path d=\"M%d %dv%dh%d\" fill=\"none\" stroke=\"#5b6470\"/>\n", LEFT, TOP, INNER_H,
                  INNER_W);
    say(out, LEFT, 30, "font-size=\"18\" font-weight=\"600\" fill=\"#1c232b\"", p->title);
    say(out, LEFT, 51, "fill=\"#5b6470\"", p->subtitle);
    say(out, LEFT + INNER_W / 2.0, HEIGHT - 16, "text-anchor=\"middle\" fill=\"#1c232b\"", p->x_label);
    bh_buf_printf(out, "<g transform=\"translate(20 %.1f) rotate(-90)\">", TOP + INNER_H / 2.0);
    say(out, 0, 0, "text-anchor=\"middle\" fill=\"#1c232b\"", p->y_label);
    bh_buf_str(out, "</g>\n");
}

static const char *color_of(const struct bh_plot_line *l)
{
    return colors[l->is_dashed ? IDEAL_COLOR : l->color % BH_COUNT_OF(colors)];
}

/* Points that fall on the one before are left out; the first and the last never. */
static void points(const struct bh_plot *p, struct bh_buf *out, const struct bh_plot_line *l)
{
    double last_x = -1, last_y = -1;
    for (size_t i = 0; i < l->n; i++) {
        const double x = at_x(p, l->x[i]), y = at_y(p, l->y[i]);
        if (i && i + 1 < l->n && fabs(x - last_x) < 0.5 && fabs(y - last_y) < 0.5)
            continue;
        bh_buf_printf(out, "%c%.1f %.1f", i ? 'L' : 'M', x, y);
        last_x = x;
        last_y = y;
    }
}

static void draw_line(const struct bh_plot *p, struct bh_buf *out, const struct bh_plot_line *l)
{
    if (l->n == 0)
        return;
    bh_buf_str(out, "<path d=\"");
    points(p, out, l);
    bh_buf_printf(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" stroke-linejoin=\"round\"%s%s/>\n",
                  color_of(l), l->is_faint || l->is_dashed ? "1.2" : "2.2",
                  l->is_faint ? " stroke-opacity=\"0.45\"" : "",
                  l->is_dashed ? " stroke-dasharray=\"5 4\"" : "");
}

/* Each area stands on the sum of those before it. */
static void draw_stack(const struct bh_plot *p, struct bh_buf *out)
{
    const size_t n = p->n_lines ? p->lines[0].n : 0;
    BH_AUTOFREE double *base = bh_alloc(n + 1, sizeof(*base));
    for (size_t k = 0; k < p->n_lines; k++) {
        const struct bh_plot_line *l = &p->lines[k];
        if (l->is_dashed || l->n != n || n == 0)
            continue;
        bh_buf_str(out, "<path d=\"");
        for (size_t i = 0; i < n; i++)
            bh_buf_printf(out, "%c%.1f %.1f", i ? 'L' : 'M', at_x(p, l->x[i]), at_y(p, base[i] + l->y[i]));
        for (size_t i = n; i-- > 0;)
            bh_buf_printf(out, "L%.1f %.1f", at_x(p, l->x[i]), at_y(p, base[i]));
        bh_buf_printf(out,
                      "Z\" fill=\"%s\" fill-opacity=\"0.82\" stroke=\"#ffffff\" stroke-width=\"0.6\"/>\n",
                      color_of(l));
        for (size_t i = 0; i < n; i++)
            base[i] += l->y[i];
    }
}

static void draw_legend(const struct bh_plot *p, struct bh_buf *out)
{
    const double x = LEFT + INNER_W + 20;
    double y = TOP + 8;
    for (size_t i = 0; i < p->n_lines; i++) {
        /* a stack is read from its top */
        const struct bh_plot_line *l = &p->lines[p->kind == BH_PLOT_STACK ? p->n_lines - 1 - i : i];
        if (!l->label)
            continue;
        if (p->kind == BH_PLOT_STACK && !l->is_dashed)
            bh_buf_printf(
                out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"22\" height=\"12\" fill=\"%s\" fill-opacity=\"0.82\"/>\n",
                x, y - 6, color_of(l));
        else
            bh_buf_printf(out, "<path d=\"M%.1f %.1fh22\" stroke=\"%s\" stroke-width=\"%s\"%s/>\n", x, y,
                          color_of(l), l->is_dashed ? "1.2" : "3",
                          l->is_dashed ? " stroke-dasharray=\"5 4\"" : "");
        say(out, x + 30, y + 4, "fill=\"#1c232b\"", l->label);
        y += LEGEND_STEP;
    }
}

void bh_plot_svg(const struct bh_plot *p, struct bh_buf *out)
{
    bh_buf_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
        "font-family=\"'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif\" font-size=\"12.5\" role=\"img\">\n"
        "<title>",
        WIDTH, HEIGHT, WIDTH, HEIGHT);
    text_of(out, p->title);
    bh_buf_printf(out, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", WIDTH, HEIGHT);
    draw_axes(p, out);
    if (p->kind == BH_PLOT_STACK)
        draw_stack(p, out);
    for (size_t i = 0; i < p->n_lines; i++)
        if (p->kind == BH_PLOT_LINES || p->lines[i].is_dashed)
            draw_line(p, out, &p->lines[i]);
    draw_frame(p, out);
    draw_legend(p, out);
    bh_buf_str(out, "</svg>\n");
}
