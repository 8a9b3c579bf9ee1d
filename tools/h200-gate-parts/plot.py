# SPDX-License-Identifier: Apache-2.0
"""Two drawings from the results: what each path held against the cap, and what things cost with the gate against without."""
import html
import json
import pathlib

GIB = 1 << 30
# Readable on light and on dark ground.
STYLE = '''<style>
text{font:12px sans-serif;fill:#1f2328}.dim{fill:#59636e}.head{font-weight:bold}
.bar{fill:#4c8dd6}.other{fill:#d29922}.bad{fill:#cf222e}
.line{stroke:#cf222e;stroke-width:1.5;stroke-dasharray:4 3}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}.bar{fill:#388bfd}.line{stroke:#ff7b72}.bad{fill:#ff7b72}}
</style>'''
LEFT, WIDTH, ROW = 250, 420, 20


class Drawing:
    def __init__(self):
        self.parts, self.y = [], 8

    def text(self, x, words, kind='', anchor='start'):
        self.parts.append(f'<text x="{x}" y="{self.y + 14}" class="{kind}" text-anchor="{anchor}">{html.escape(str(words))}</text>')

    def bar(self, share, kind):
        width = max(0.5, share * WIDTH)
        self.parts.append(f'<rect x="{LEFT}" y="{self.y + 4}" width="{width:.1f}" height="{ROW - 7}" rx="2" class="{kind}"/>')

    def mark(self, share, rows, kind):
        x = LEFT + share * WIDTH
        self.parts.append(f'<line x1="{x:.1f}" y1="{self.y}" x2="{x:.1f}" y2="{self.y + rows * ROW}" class="{kind}"/>')

    def next(self, rows=1.0):
        self.y += int(rows * ROW)

    def save(self, path, title):
        width, height = LEFT + WIDTH + 210, self.y + 10
        head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
        path.write_text(f'{head}<title>{html.escape(title)}</title>{STYLE}\n' + '\n'.join(self.parts) + '\n</svg>\n', encoding='utf-8')
        print(path)


def load(folder, part):
    at = pathlib.Path(folder, f'{part}.json')
    return json.loads(at.read_text(encoding='utf-8')) if at.exists() else []


def held(folder):
    rows = [r for r in load(folder, 'matrix') + load(folder, 'peers') if 'beyond' in r]
    groups = {}
    for r in rows:
        key = (r.get('peer', 'bulkhead'), r['processes'], r['cap'])
        groups.setdefault(key, []).append(r)
    d = Drawing()
    for (who, n, cap), rs in groups.items():
        most = max(cap * 1.1, *[r['held'] for r in rs])
        d.text(8, f'{who}: cap {cap // GIB} GiB, {n} process{"es" if n > 1 else " at a time"}', 'head')
        d.next(1.2)
        d.mark(cap / most, len(rs), 'line')
        for r in rs:
            d.text(LEFT - 8, r['path'] + (', cleared' if r.get('cleared') else ''), anchor='end')
            d.bar(r['held'] / most, 'bad' if r['beyond'] else 'bar')
            d.text(LEFT + WIDTH + 8, f'{r["held"] / GIB:.2f} GiB' + (f', {r["beyond"] / GIB:.2f} beyond' if r['beyond'] else ''), 'dim')
            d.next()
        d.next(0.6)
    if groups:
        d.save(pathlib.Path(folder, 'held.svg'), 'memory held by the driver\'s count, against the cap')


def costs(folder):
    rows = [r for part in ('cost', 'crowd', 'loops') for r in load(folder, part) if 'measure' in r]
    d, seen = Drawing(), []
    for r in rows:
        if r['measure'] in seen:
            continue
        seen.append(r['measure'])
        modes = [x for x in rows if x['measure'] == r['measure']]
        native = next((x['median'] for x in modes if x['mode'] == 'native'), None)
        most = max(x['median'] for x in modes) * 1.05
        d.text(8, f'{r["measure"]} ({r["unit"]})', 'head')
        d.next(1.2)
        for x in modes:
            d.text(LEFT - 8, x['mode'], anchor='end')
            d.bar(x['median'] / most, 'bar' if x['mode'] == 'native' else 'other')
            against = '' if not native or x['mode'] == 'native' else f'  x{x["median"] / native:.4f}'
            d.text(LEFT + WIDTH + 8, f'{x["median"]:.3f}{against}', 'dim')
            d.next()
        d.next(0.6)
    if seen:
        d.save(pathlib.Path(folder, 'cost.svg'), 'what the gate costs')


def draw(folder):
    held(folder)
    costs(folder)
    return 0
