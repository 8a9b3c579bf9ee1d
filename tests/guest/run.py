# SPDX-License-Identifier: Apache-2.0
"""Leases on cgroups of version 2, in a guest: machines that this is built on have those of version 1, and their kernels hold on to them.

One guest is started; the tests that it runs are given on as ours. What it is and why it can be slow: machine.py.

Usage: run.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT NODE-FAULTS TENANT BULKHEAD-OCI MAKER TEST-HOST-CGROUP
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import machine

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = int(os.environ.get('BULKHEAD_GUEST_SECONDS', '900'))
# Of the walls around a container, those that cgroups are.
WALLS = ('another_leases_device', 'the_limits', 'raising_a_limit', 'the_rate_of_a_disk', 'crun_takes_the_same_bundle')


def plan(words):
    bulkhead, root, daemon, check, audit, faults, tenant, oci, maker, unit = (os.path.abspath(w) for w in words)
    tests = HERE.parent
    return {'cgroup': [unit],
            'lease': [sys.executable, f'{tests}/guest/lease.py', bulkhead, root, daemon, check, audit, faults, tenant],
            'container': [sys.executable, f'{tests}/container/run.py', bulkhead, root, tenant, oci, maker, *WALLS]}


class Report:
    """Lines of the guest, as they come, made into ours."""

    def __init__(self, names):
        self.n = self.bad = 0
        self.left = list(names)  # programs that have not ended
        self.at = 0

    def tell(self, ok, text):
        self.n += 1
        self.bad += not ok
        print(f'{"ok" if ok else "not ok"} {self.n} - {text}', flush=True)

    def take(self, path):
        """All whole lines since the last time."""
        text = path.read_bytes() if path.exists() else b''
        new, self.at = text[self.at:text.rfind(b'\n') + 1], text.rfind(b'\n') + 1
        for line in new.decode(errors='replace').splitlines():
            self.take_line(*line.rstrip('\r').split('\t'))

    def take_line(self, name, first, *more):
        test = re.match(r'(ok|not ok) \d+ - (.*)', first)
        if not name or (name in self.left and first == ''):
            print('#', name, *filter(None, (first, *more)), flush=True)
        if name and first == '' and name in self.left:
            self.left.remove(name)
            if more[0] != '0':
                self.tell(False, f'{name} ends well')
        elif name and test:
            self.tell(test[1] == 'ok', f'{name}: {test[2]}')
        elif name:
            print(f'# {name}: {first}', flush=True)


def guest(folder, here, programs):
    report = Report(programs)
    process = machine.start(folder, here, HERE / 'inside.py', json.dumps(programs))
    end = time.monotonic() + LIMIT
    try:
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.2)
            report.take(here / 'report')
        late = process.poll() is None
    finally:
        process.kill()
        _, said = process.communicate()
    report.take(here / 'report')
    for line in said.decode(errors='replace').splitlines():
        print(f'# qemu: {line}')
    if report.left:
        console = here / 'console'
        for line in console.read_text(errors='replace').splitlines()[-40:] if console.exists() else ():
            print(f'# console: {line}')
        report.tell(False, f'the guest ran {", ".join(report.left)} to the end' + (f' within {LIMIT} s' if late else ''))
    return report


def main():
    programs = plan(sys.argv[1:11])
    only = sys.argv[11:]
    try:
        folder = machine.kernel(pathlib.Path(sys.argv[2]))
    except machine.Absent as e:
        print(f'1..0 # SKIP {e}')
        return 0
    qemu = subprocess.run([machine.QEMU, '--version'], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    print(f'# {qemu}, TCG, 2 processors, 2 GiB', flush=True)
    with tempfile.TemporaryDirectory() as here:
        report = guest(folder, pathlib.Path(here), {k: v for k, v in programs.items() if not only or k in only})
    print(f'1..{report.n}')
    return 1 if report.bad else 0


if __name__ == '__main__':
    sys.exit(main())
