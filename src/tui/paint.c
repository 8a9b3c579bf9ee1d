/* SPDX-License-Identifier: Apache-2.0 */
/* paint.c - cells onto the terminal by ncurses, which sends only what changed: that is what makes it bearable over ssh. */
#include "tui/paint.h"

#include "base/mem.h"
#include "tui/top.h"

#include <curses.h>
#include <locale.h>

static const struct {
    short color;          /* -1: the terminal's own */
    attr_t with, without; /* attributes with colours, and where there are none */
} looks[BH_STYLES] = {
    [BH_STYLE_PLAIN] = {-1, A_NORMAL, A_NORMAL},
    [BH_STYLE_HEAD] = {COLOR_CYAN, A_NORMAL, A_UNDERLINE},
    [BH_STYLE_TITLE] = {-1, A_BOLD, A_BOLD},
    [BH_STYLE_DIM] = {-1, A_DIM, A_DIM},
    [BH_STYLE_GOOD] = {COLOR_GREEN, A_NORMAL, A_NORMAL},
    [BH_STYLE_WARN] = {COLOR_YELLOW, A_NORMAL, A_BOLD},
    [BH_STYLE_BAD] = {COLOR_RED, A_BOLD, A_BOLD},
    [BH_STYLE_MARK] = {-1, A_REVERSE, A_REVERSE},
    [BH_STYLE_KEY] = {COLOR_CYAN, A_BOLD, A_BOLD},
    [BH_STYLE_ACCENT] = {COLOR_CYAN, A_BOLD, A_BOLD},
};

static bool colors;

bool bh_paint_begin(bool color)
{
    (void)setlocale(LC_CTYPE, "");
    if (!newterm(NULL, stdout, stdin))
        return false;
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    (void)set_escdelay(25);
    colors = color && has_colors() && start_color() == OK;
    if (colors) {
        (void)use_default_colors();
        for (int i = 0; i < BH_STYLES; i++)
            (void)init_pair((short)(i + 1), looks[i].color, -1);
    }
    return true;
}

void bh_paint_end(void)
{
    (void)endwin();
}

void bh_paint_size(unsigned *ret_rows, unsigned *ret_cols)
{
    int rows, cols;
    getmaxyx(stdscr, rows, cols);
    *ret_rows = rows > 0 ? (unsigned)rows : 1;
    *ret_cols = cols > 0 ? (unsigned)cols : 1;
}

void bh_paint_show(const struct bh_screen *s)
{
    (void)erase();
    for (unsigned row = 0; row < s->rows; row++) {
        for (unsigned col = 0; col < s->cols; col++) {
            const struct bh_cell_at *c = &s->cells[(size_t)row * s->cols + col];
            if (!c->s[0] && c->style == BH_STYLE_PLAIN)
                continue;
            const attr_t attributes = colors ? looks[c->style].with : looks[c->style].without;
            (void)attr_set(attributes, colors ? (short)(c->style + 1) : 0, NULL);
            (void)mvaddstr((int)row, (int)col, c->s[0] ? c->s : " ");
        }
    }
    (void)refresh();
}

uint32_t bh_paint_key(int wait_ms)
{
    static const struct {
        int from;
        uint32_t to;
    } keys[] = {{KEY_UP, BH_KEY_UP},
                {KEY_DOWN, BH_KEY_DOWN},
                {KEY_LEFT, BH_KEY_LEFT},
                {KEY_RIGHT, BH_KEY_RIGHT},
                {KEY_PPAGE, BH_KEY_PAGE_UP},
                {KEY_NPAGE, BH_KEY_PAGE_DOWN},
                {KEY_HOME, BH_KEY_HOME},
                {KEY_END, BH_KEY_END},
                {KEY_ENTER, BH_KEY_ENTER},
                {'\r', BH_KEY_ENTER},
                {'\n', BH_KEY_ENTER},
                {27, BH_KEY_ESCAPE},
                {KEY_BACKSPACE, BH_KEY_BACKSPACE},
                {127, BH_KEY_BACKSPACE},
                {8, BH_KEY_BACKSPACE}};
    timeout(wait_ms);
    const int c = getch();
    if (c == KEY_RESIZE)
        (void)clear(); /* what the terminal made of the old lines is not ours to know: all is sent anew */
    if (c == ERR || c == KEY_RESIZE)
        return 0;
    for (size_t i = 0; i < BH_COUNT_OF(keys); i++) {
        if (keys[i].from == c)
            return keys[i].to;
    }
    if (c >= KEY_F(1) && c <= KEY_F(10))
        return BH_KEY_F1 + (uint32_t)(c - KEY_F(1));
    return c > 0 && c < 0x80 ? (uint32_t)c : 0;
}
