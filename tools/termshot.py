#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A picture of a terminal: termshot.py OUT.svg TITLE [KEEP] < captured output with its colour codes

KEEP: the first so many lines and the last one; what lies between becomes a line of dots. The picture in
README.md is `bulkhead lint examples/start.yaml --fleet examples/start-fleet.yaml --color always`, KEEP 23.
Knows what our commands write: text, UTF-8, and the SGR codes for bold, dim and the sixteen colours.
"""
import html
import re
import sys

COLOURS = ['#1e293b', '#f87171', '#4ade80', '#fbbf24', '#60a5fa', '#c084fc', '#22d3ee', '#e2e8f0']
BRIGHT = ['#94a3b8', '#fca5a5', '#86efac', '#fde047', '#93c5fd', '#d8b4fe', '#67e8f9', '#ffffff']
TEXT, BACKGROUND, BAR = '#e2e8f0', '#0f172a', '#1e293b'
CELL_W, LINE_H, MARGIN, BAR_H, SIZE = 8.0, 19, 16, 34, 13


class Style:
    def __init__(self):
        self.reset()

    def reset(self):
        self.colour, self.bold, self.dim, self.underline = TEXT, False, False, False

    def apply(self, codes):
        for c in (int(x or 0) for x in codes.split(';')):
            if c == 0:
                self.reset()
            elif c in (1, 2, 4):
                setattr(self, {1: 'bold', 2: 'dim', 4: 'underline'}[c], True)
            elif c == 22:
                self.bold = self.dim = False
            elif c == 24:
                self.underline = False
            elif 30 <= c <= 37:
                self.colour = COLOURS[c - 30]
            elif 90 <= c <= 97:
                self.colour = BRIGHT[c - 90]
            elif c == 39:
                self.colour = TEXT

    def attributes(self):
        out = f' fill="{self.colour}"'
        out += ' font-weight="bold"' if self.bold else ''
        out += ' opacity="0.65"' if self.dim else ''
        return out + (' text-decoration="underline"' if self.underline else '')


def draw_line(line, y, style):
    """The <tspan>s of one line, and how wide it is."""
    parts, column = [], 0
    for piece in re.split(r'(\x1b\[[0-9;]*m)', line):
        if piece.startswith('\x1b['):
            style.apply(piece[2:-1])
        elif piece:
            parts.append(f'<tspan x="{MARGIN + column * CELL_W:.1f}"{style.attributes()}>{html.escape(piece)}</tspan>')
            column += len(piece)
    return f'<text y="{y}" xml:space="preserve">{"".join(parts)}</text>' if parts else '', column


def main():
    out, title = sys.argv[1:3]
    lines = sys.stdin.read().rstrip('\n').split('\n')
    if len(sys.argv) > 3 and len(lines) > int(sys.argv[3]) + 1:
        lines = lines[:int(sys.argv[3])] + ['    ...', lines[-1]]
    style, body, width = Style(), [], 60
    for i, line in enumerate(lines):
        text, columns = draw_line(line, BAR_H + MARGIN + (i + 1) * LINE_H - 5, style)
        body.append(text)
        width = max(width, columns)
    w, h = int(width * CELL_W + 2 * MARGIN), BAR_H + 2 * MARGIN + len(lines) * LINE_H
    with open(out, 'w', encoding='utf-8') as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" '
                f'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="{SIZE}">\n'
                f'<title>{html.escape(title)}</title>\n'
                f'<rect width="{w}" height="{h}" rx="8" fill="{BACKGROUND}"/>\n'
                f'<path d="M0 {BAR_H} V8 a8 8 0 0 1 8 -8 H{w - 8} a8 8 0 0 1 8 8 V{BAR_H} z" fill="{BAR}"/>\n'
                f'<text x="{MARGIN}" y="22" fill="#94a3b8">{html.escape(title)}</text>\n'
                + '\n'.join(b for b in body if b) + '\n</svg>\n')


if __name__ == '__main__':
    main()
