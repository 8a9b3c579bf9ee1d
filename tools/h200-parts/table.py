# SPDX-License-Identifier: Apache-2.0
"""Rows of a run: printed as they come, kept as JSON, counted at the end."""
import json
import os
import pathlib
import statistics
import subprocess
import time

from card import GIB


class Table:
    def __init__(self, folder, seconds, build=''):
        """build: what is measured, such as a commit; every row says it."""
        self.build = {'build': build} if build else {}
        self.folder, self.part, self.rows, self.counts = folder, '', {}, {'passed': 0, 'failed': 0, 'not run': 0}
        self.end = time.monotonic() + seconds

    def begin(self, part):
        self.part = part
        self.rows[part] = []
        print(f'== {part}', flush=True)

    def again(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()

    def row(self, name, seen, want='', ok=None, **raw):
        """ok None: stated as seen, not judged."""
        self.rows[self.part].append({'name': name, 'seen': str(seen), 'want': str(want), 'ok': ok, **self.build, **raw})
        if ok is not None:
            self.counts['passed' if ok else 'failed'] += 1
        word = {None: '    ', True: 'ok  ', False: 'FAIL'}[ok]
        print(f'{word}  {name:<44} {seen!s:<76} {want}', flush=True)
        self.save()
        return ok

    def skip(self, name, why):
        self.rows[self.part].append({'name': name, 'seen': why, 'want': '', 'ok': None, 'skipped': True})
        self.counts['not run'] += 1
        print(f'--    {name:<44} not run: {why}', flush=True)
        self.save()

    def enough(self, name, seconds):
        """Is there time left for a row that may take so long? If not, it is told."""
        if self.left() >= seconds:
            return True
        self.skip(name, 'the time is up')
        return False

    def save(self):
        if self.folder:
            at = pathlib.Path(self.folder, f'{self.part}.json')
            at.write_text(json.dumps(self.rows[self.part], indent=0) + '\n', encoding='utf-8')

    def close(self):
        c = self.counts
        print(f'{c["passed"]} passed, {c["failed"]} failed' + (f', {c["not run"]} not run' if c['not run'] else ''))
        return c['failed']


def run(*args, timeout=120, **kw):
    """Runs to the end: (status, stdout, stderr). Past its time it is ended with everything that it started."""
    p = subprocess.Popen(list(map(str, args)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         start_new_session=True, **kw)
    try:
        out, err = p.communicate(timeout=timeout)
        return p.returncode, out, err
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9)
        out, err = p.communicate()
        return 124, out, f'{err}\nended after {timeout} s'


def words(text):
    """`key value` lines of the test tenant."""
    return dict(line.split(' ', 1) for line in text.splitlines() if ' ' in line)


def last(text, n=90):
    lines = [s for s in text.strip().splitlines() if s]
    return lines[-1][-n:] if lines else ''


def gib(n):
    return f'{n / GIB:.2f} GiB'


def middle(values):
    return statistics.median(values)


def spread(values):
    """Half the distance between the quartiles, as a share of the median: how far one run is from the next."""
    if len(values) < 4:
        return (max(values) - min(values)) / 2 / max(middle(values), 1e-12)
    q = statistics.quantiles(values, n=4)
    return (q[2] - q[0]) / 2 / max(middle(values), 1e-12)
