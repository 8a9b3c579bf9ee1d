# SPDX-License-Identifier: Apache-2.0
"""Each way to obtain memory, by 1, 2 and 64 processes at once: what they hold by the driver's count, against the cap."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import card
from card import GIB, MIB
from table import gib, last

INSIDE = pathlib.Path(__file__).resolve().parent / 'inside_race.py'
# Refused is CUDA error 2. A mapping that is refused is no status of the driver: CUDA makes `unknown` (999) of it.
ASKED = ('plain', 'small', 'pitch', 'vmm', 'vmm-released', 'async', 'pool', 'array', 'array3d', 'graph', 'managed', 'contexts')
# Not asked for by an allocation: how such a call ends is the driver's own affair, only what is held is judged.
OTHERS = ('module', 'heap', 'stack', 'ipc', 'import', 'external')
# What takes long comes last: the time may be up.
CROWDED = ('mixed', 'managed', 'vmm-released', 'async', 'array', 'graph', 'vmm', 'pool', 'pitch', 'array3d', 'module', 'import', 'external', 'ipc',
           'plain', 'heap', 'stack', 'small', 'contexts')
CONTEXT_MANAGED = 2 * MIB  # what a context maps of managed memory for itself: charged, and in no process's count
AHEAD_PIECE, AHEAD_MOST = 128 * MIB, 640 * MIB
ORPHANED = ('import', 'external')  # who exported it has ended: such memory is in no process's count
NEAR = 2 * GIB  # a path that stopped further below the cap than this did not reach it
LEDGER_SLACK = 2 * MIB


def jobs_for(path, n):
    """Pairs of path and limit. Managed memory never adds up to more than the card has free, whatever the gate does."""
    each = 30 * GIB if n == 1 else 50 * GIB if n == 2 else 20 * GIB
    managed = 30 * GIB if n == 1 else max(1, 96 // n) * GIB
    paths = [path] * n if path != 'mixed' else [(ASKED + ('heap', 'stack'))[i % (len(ASKED) + 2)] for i in range(n)]
    return [(p, managed if p == 'managed' else each) for p in paths]


def peak_of(text):
    """What `--stats` says the ledger's peak was, about."""
    m = re.search(r'peak ([\d.]+) ([MGT])iB', text)
    return int(float(m[1]) * {'M': MIB, 'G': GIB, 'T': GIB << 10}[m[2]]) if m else None


class Race:
    """Tenants in one lease (or, with another prefix, in none) that ask for more than there is, all at once."""

    def __init__(self, nvml, prefix, tenant, jobs, env=None, timeout=100):
        self.results, self.started, self.warden, self.err, self.rc, self.inside = [], 0, {}, '', None, None
        self.counted = self.counted_card = self.mapped = self.start_seconds = self.drivers = 0
        args = [str(x) for pair in jobs for x in pair]
        before = nvml.memory().used
        began = time.monotonic()
        with card.Watch(nvml) as self.watch:
            p = subprocess.Popen([*map(str, prefix), sys.executable, '-I', '-S', str(INSIDE), str(tenant), *args],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
                                 start_new_session=True)
            with card.limit(timeout, p):
                self.drive(p)
        self.seconds = time.monotonic() - began
        self.left = card.settle(nvml, before)

    def drive(self, p):
        try:
            self.started = int((p.stdout.readline() + ' 0').split()[1])
            self.start_seconds = time.monotonic() - self.watch.began
            time.sleep(0.1)
            self.drivers = max(0, self.watch.used_now - self.watch.now - CONTEXT_MANAGED * self.started)
            p.stdin.write('\n')
            p.stdin.flush()
            said = json.loads(p.stdout.readline())
            self.results, self.inside = said['results'], said['card']
            p.stdout.readline()
            time.sleep(0.15)  # what is held is looked at a hundred times more
            self.counted, self.counted_card, self.mapped = self.watch.now, self.watch.used_now, card.managed_mapped()
            self.warden = card.warden_of(p.pid)
            self.watch.release()
            p.stdin.write('\n')
            p.stdin.flush()
            self.results = json.loads(p.stdout.readline() or 'null') or self.results
        except (BrokenPipeError, ValueError, IndexError) as e:
            self.err = f'{type(e).__name__}: {e} '
        _, err = p.communicate()
        self.err += err
        self.rc = p.returncode

    def got(self):
        return sum(int(r.get('got', 0)) for r in self.results)

    def errors(self):
        return sorted({r.get('error', r.get('stderr') or 'none') for r in self.results})


def ledger(table, race, path, n, cap):
    """While all is held: what the gate has charged, as the lease itself is shown it, and what others count. That is the driver, for the
    processes, and for managed memory, which it counts for nobody, the kernel's list of what they have mapped. Memory without a
    process is in the card's own count alone, beside what the driver keeps for itself."""
    if not race.inside or abs(race.inside['total'] - cap) > 64 * MIB:
        return
    of_card = path in ORPHANED
    used, counted = race.inside['used'], race.counted_card - race.drivers if of_card else race.counted + race.mapped
    slack = LEDGER_SLACK * max(n, race.watch.raw()['processes'])
    how = 'the card' if of_card else f'driver {race.counted / MIB:.2f} + {race.mapped / MIB:.2f} mapped'
    table.row(f'  ledger, {n} x {path}', f'{used / MIB:.2f} MiB, {how}: {counted / MIB:.2f} MiB, apart {(used - counted) / MIB:+.2f} MiB',
              f'at most {slack / MIB:.0f} MiB', abs(used - counted) <= slack)


def judge(table, race, path, n, cap):
    w, managed = race.watch, path in ('managed', 'mixed')
    # Managed memory is in no process's count, only in the card's; that has what the driver keeps for itself for each context, too,
    # which is known from before anybody asked for anything, and what it takes ahead for managed memory in pieces of 128 MiB: without any
    # gate 128 to 640 MiB lay there beside what 27 processes had.
    of_card = w.card - race.drivers
    held = max(w.held, of_card) if managed else w.held
    # By what was counted and mapped at one moment, while all was held.
    ahead = max(0, race.counted_card - race.drivers - race.counted - race.mapped) if managed else 0
    spare = ahead if ahead % AHEAD_PIECE == 0 and ahead <= AHEAD_MOST else 0
    beyond = max(0, w.held - cap, of_card - spare - cap if managed else 0)
    peak = peak_of(race.err)
    reached = path in OTHERS or held > cap - NEAR
    # With little managed memory for each of many, some get all that they ask for.
    refused = path in OTHERS + ('mixed',) or (any if path == 'managed' else all)(e.startswith(('2 ', '999 ')) for e in race.errors())
    started = race.started == n
    ok = race.rc == 0 and beyond == 0 and reached and refused and started and not w.error
    taken = f' ({ahead // MIB} MiB taken ahead)' if ahead else ''
    seen = f'beyond {beyond}, held {gib(held)}{taken}, got {gib(race.got())}, {race.started} started, {", ".join(race.errors())[:40]}'
    table.row(f'cap {cap // GIB} GiB, {n} x {path}', seen, 'beyond 0', ok, path=path, processes=n, cap=cap, beyond=beyond, held=held,
              drivers=race.drivers, ahead=ahead, got=race.got(), started=race.started, rc=race.rc, ledger_peak=peak, inside=race.inside,
              counted=race.counted, counted_card=race.counted_card, mapped=race.mapped, left=race.left, seconds=round(race.seconds, 2), start_seconds=round(race.start_seconds, 2), errors=race.errors(),
              warden_kib=race.warden, stderr=race.err[-300:], results=race.results, watch=w.raw())
    if not ok:
        print(f'#     exit {race.rc}: {last(race.err, 200)}')
    ledger(table, race, path, n, cap)
    if n >= 64 and race.warden:
        table.row(f'  warden, {n} processes', f'{race.warden.get("VmRSS", 0)} KiB, at most {race.warden.get("VmHWM", 0)} KiB',
                  'under 3072 KiB', race.warden.get('VmHWM', 1 << 30) < 3072, warden_kib=race.warden)


def run(table, tools, short=False):
    table.begin('matrix')
    crowd = 8 if short else 64
    plan = [(path, n) for n in (1, 2) for path in ASKED + OTHERS] + [(path, crowd) for path in CROWDED]
    longest = {}
    for path, n in plan:
        # The driver itself makes about a hundred contexts, which have 51 GiB.
        cap = 10 * GIB if n == 1 else 40 * GIB if path == 'contexts' else 60 * GIB
        if tools.only not in f'{n} x {path}':
            continue
        if not table.enough(f'cap {cap // GIB} GiB, {n} x {path}', longest.get(n, {1: 4, 2: 5}.get(n, 25)) + 5):
            continue
        # Tenants ask for no more managed memory than they are shown as free: the card is what they are to see.
        view = ['--view', 'card' if path == 'managed' else 'slice'] if tools.has_view else []
        prefix = [tools.bulkhead, 'run', '--memory', f'{cap // GIB}GiB', '--stats', *view, '--']
        race = Race(tools.nvml, prefix, tools.tenant, jobs_for(path, n), timeout=max(20, min(240, table.left())))
        longest[n] = max(longest.get(n, 0), race.seconds)
        judge(table, race, path, n, cap)


def peers(table, tools, peers_given):
    """The same under a library in the tenant, as its makers have it used. Stated as seen."""
    table.begin('peers')
    cap = 10 * GIB
    for name, path in peers_given:
        env = {**os.environ, 'LD_PRELOAD': path, 'CUDA_DEVICE_MEMORY_LIMIT': '10g', 'CUDA_DEVICE_MEMORY_LIMIT_0': '10g',
               'CUDA_MEM_LIMIT_0': '10g', 'CUDA_DEVICE_MEMORY_SHARED_CACHE': os.path.join(tools.scratch, f'{name}.cache')}
        cases = [(p, 1, []) for p in ASKED + OTHERS] + [(p, 2, []) for p in ('plain', 'small', 'async')]
        cases += [('plain', 1, ['env', '-u', 'LD_PRELOAD'])]
        for case, n, prefix in cases:
            label = f'{name}, {n} x {case}' + (', LD_PRELOAD cleared' if prefix else '')
            if not table.enough(label, 25):
                continue
            race = Race(tools.nvml, prefix, tools.tenant, jobs_for(case, n), env=env, timeout=30)
            held = max(race.watch.held, race.watch.card) if case == 'managed' else race.watch.held
            table.row(label, f'beyond {gib(max(0, held - cap))}, held {gib(held)}, got {gib(race.got())}, {", ".join(race.errors())[:40]}',
                      '', None, peer=name, path=case, processes=n, cap=cap, beyond=max(0, held - cap), held=held, got=race.got(),
                      rc=race.rc, errors=race.errors(), stderr=race.err[-300:], results=race.results, watch=race.watch.raw(),
                      cleared=bool(prefix))
