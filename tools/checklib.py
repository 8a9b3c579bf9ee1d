# SPDX-License-Identifier: Apache-2.0
"""What the checks share: they report TAP, and each proves that it can fail.

A check is a function from a root folder to a list of violations, one string each.
A plant is a small tree with one violation in it; run() checks the real tree first and
then that every plant is refused for the stated reason.
"""
import pathlib
import re
import sys
import tempfile


def strip_c(text):
    """C source with comments and literals blanked out, line structure kept."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(m):
        return re.sub(r'[^\n]', ' ', m.group())
    return token.sub(blank, text)


def sources(root, *suffixes):
    """Every file below root/src with one of the suffixes, sorted, as paths."""
    return sorted(p for p in (root / 'src').rglob('*') if p.suffix in suffixes and p.is_file())


def write_tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Tap:
    def __init__(self):
        self.n = 0
        self.bad = 0

    def result(self, ok, name, details=()):
        self.n += 1
        self.bad += not ok
        for line in details:
            print(f'# {line}')
        print(f'{"ok" if ok else "not ok"} {self.n} - {name}')

    def finish(self):
        print(f'1..{self.n}')
        sys.exit(1 if self.bad else 0)


def run(title, check, root, plants, base=None, good=None):
    """plants: (name, files, a part of the violation expected). base: files every plant stands on.
    good: a tree of look-alikes in which nothing may be found."""
    tap = Tap()
    found = check(pathlib.Path(root))
    tap.result(not found, title, found)
    if good:
        with tempfile.TemporaryDirectory() as tmp:
            write_tree(pathlib.Path(tmp), {**(base or {}), **good})
            found = check(pathlib.Path(tmp))
            tap.result(not found, 'allows what only looks like a violation', found)
    for name, files, expected in plants:
        with tempfile.TemporaryDirectory() as tmp:
            planted = pathlib.Path(tmp)
            write_tree(planted, {**(base or {}), **files})
            got = check(planted)
            tap.result(len(got) == 1 and expected in got[0], f'refuses: {name}',
                       () if len(got) == 1 and expected in got[0] else [f'expected one with: {expected}', *got])
    tap.finish()
