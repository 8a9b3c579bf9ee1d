# SPDX-License-Identifier: Apache-2.0
"""Bars and lines as SVG, readable on light and on dark ground."""
import html

STYLE = '''<style>
text{font:12px sans-serif;fill:#1f2328}.dim{fill:#59636e}.head{font-weight:bold}
.bar{fill:#4c8dd6}.other{fill:#d29922}.bad{fill:#cf222e}
.line{stroke:#cf222e;stroke-width:1.5;stroke-dasharray:4 3}.axis{stroke:#8c959f;stroke-width:1}
.s0{stroke:#4c8dd6;fill:none;stroke-width:1.8}.s1{stroke:#d29922;fill:none;stroke-width:1.8}.s2{stroke:#3fb950;fill:none;stroke-width:1.8}.s3{stroke:#a371f7;fill:none;stroke-width:1.8}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}.bar{fill:#388bfd}.line{stroke:#ff7b72}.bad{fill:#ff7b72}}
</style>'''
LEFT, WIDTH, ROW = 290, 420, 20


class Drawing:
    def __init__(self):
        self.parts, self.y = [], 8

    def text(self, x, words, kind='', anchor='start'):
        self.parts.append(f'<text x="{x:.1f}" y="{self.y + 14:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(str(words))}</text>')

    def bar(self, share, kind, start=0.0):
        width = max(0.5, share * WIDTH)
        self.parts.append(f'<rect x="{LEFT + start * WIDTH:.1f}" y="{self.y + 4}" width="{width:.1f}" height="{ROW - 7}" rx="2" class="{kind}"/>')

    def mark(self, share, rows, kind):
        x = LEFT + share * WIDTH
        self.parts.append(f'<line x1="{x:.1f}" y1="{self.y}" x2="{x:.1f}" y2="{self.y + rows * ROW}" class="{kind}"/>')

    def lines(self, series, height, x_most, y_most, x_name, y_name):
        """series: [(name, [(x, y)])]; the names stand at the right."""
        left, width, top = 60, LEFT + WIDTH - 60, self.y + 10
        self.parts.append(f'<path d="M{left},{top} V{top + height} H{left + width}" class="axis" fill="none"/>')
        for share in (0, 0.25, 0.5, 0.75, 1):
            self.y = top + height * (1 - share) - 10
            self.text(left - 6, f'{y_most * share:g}', 'dim', 'end')
        for i, (name, points) in enumerate(series):
            at = ' '.join(f'{left + width * x / x_most:.1f},{top + height * (1 - min(y, y_most) / y_most):.1f}' for x, y in points)
            self.parts.append(f'<polyline points="{at}" class="s{i % 4}"/>')
            self.y = top + 18 * i
            self.parts.append(f'<line x1="{left + width + 10}" y1="{self.y + 10}" x2="{left + width + 30}" y2="{self.y + 10}" class="s{i % 4}"/>')
            self.text(left + width + 36, name)
        self.y = top + height + 2
        for share in (0, 0.25, 0.5, 0.75, 1):
            self.text(left + width * share, f'{x_most * share:g}', 'dim', 'middle')
        self.next()
        self.text(left + width / 2, x_name, 'dim', 'middle')
        self.text(left, y_name, 'dim')
        self.next(1.4)

    def next(self, rows=1.0):
        self.y += int(rows * ROW)

    def save(self, path, title):
        width, height = LEFT + WIDTH + 210, self.y + 10
        head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
        path.write_text(f'{head}<title>{html.escape(title)}</title>{STYLE}\n' + '\n'.join(self.parts) + '\n</svg>\n', encoding='utf-8')
        print(path)
