# SPDX-License-Identifier: Apache-2.0
"""Keepers, wardens, work and whoever starts them are killed at random: what is on disk is right, and nobody is left.

Usage: storm.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT PATH-TO-KEEPER PATH-TO-ASK
BH_STORM_ROUNDS (200) and BH_STORM_SEED say how long and which; the seed is printed.
"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from keeping import (GIB, KEEPER, TENANT, alive, cgroups, doing, environment, in_cgroup, kill, name_of, place, same, tap, until)  # noqa: E402

ROUNDS = int(os.environ.get('BH_STORM_ROUNDS', '200'))
SEED = int(os.environ.get('BH_STORM_SEED', str(random.SystemRandom().getrandbits(32))))

# What to run, and how it ends when nobody does anything: its exit status.
WORKS = [
    (('sh', '-c', 'exit 7'), 7),
    (('sh', '-c', 'sleep 0.3; exit 8'), 8),
    (('sh', '-c', '(setsid sleep 100 &) ; sleep 0.2; exit 9'), 9),
    (('sh', '-c', 'for i in 1 2 3 4 5; do sleep 100 & done; sleep 0.2; exit 10'), 10),
    ((TENANT, 'fill', 'plain'), 0),
]
KILLED = ('nobody', 'warden', 'keeper', 'work', 'starter', 'stop', 'keeper and warden', 'warden twice')


class Round:
    def __init__(self, p, dice):
        self.argv, self.status = dice.choice(WORKS)
        self.victim = dice.choice(KILLED)
        self.delay = dice.choice((0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4)) * dice.random()
        more = {'share': {'weight': 10, 'name': 'x'}} if dice.random() < 0.2 else {}
        self.lease = p.lease(*self.argv, **more)
        self.seen = set()  # everybody that was ever there

    def note(self):
        keeper, below = self.lease.pids()
        self.seen |= {keeper, *below} - {0} | in_cgroup(self.lease.cgroup)
        self.seen = {s for s in self.seen if name_of(s) != 'bulkhead-govern'}  # outlives a lease, as it should
        return keeper, [c for c in below if name_of(c) == 'bulkhead-warden']

    def begin(self):
        starter = subprocess.Popen(self.lease.command('start', KEEPER), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=environment(**self.lease.place.env))
        if self.victim == 'starter':
            time.sleep(self.delay / 10)
            starter.kill()
        starter.wait(60)
        time.sleep(self.delay)

    def strike(self):
        keeper, wardens = self.note()
        if 'keeper' in self.victim and keeper:
            kill(keeper)
        for w in wardens if 'warden' in self.victim else []:
            kill(w)
        if self.victim == 'warden twice':
            time.sleep(0.05)
            for w in self.note()[1]:
                kill(w)
        if self.victim == 'work':
            for pid in in_cgroup(self.lease.cgroup):
                kill(pid)
        if self.victim == 'stop':
            self.lease.ask('stop', 100)
        self.note()

    def settle(self):
        until(lambda: self.note() and self.lease.look()['found'] != 'lives')
        found = self.lease.look()['found']
        # What a daemon does with a lease that has no keeper
        r = self.lease.empty()
        same(r.rc, 0, repr(r))
        for name in ('lock', 'sock'):
            pathlib.Path(f'r/{self.lease.number}.{name}').unlink(missing_ok=True)
        until(lambda: not any(alive(s) for s in self.seen))
        same(in_cgroup(self.lease.cgroup), set())
        self.judge(found)

    def judge(self, found):
        e = self.lease.record()
        if found != 'ended':
            same(e, None)
            assert self.victim in ('keeper', 'keeper and warden', 'starter'), found
            same(found == 'lost', os.path.exists(f'{self.lease.folder}/begun'))
            return
        same(e['lease'], self.lease.number)
        killed = (e['how'], e.get('signal')) == ('killed', signal.SIGKILL)
        if self.victim == 'work':
            assert killed or e.get('status', 0) == self.status or 'status' in e, e
        elif self.victim == 'stop':
            assert e.get('stopped') or e.get('status', 0) == self.status, e
        elif e['how'] == 'notBegun':
            assert 'warden' in self.victim, e  # it died before it was ready: said, not hidden
        elif self.argv[0] != TENANT or 'warden' not in self.victim:
            same((e['how'], e.get('status', 0)), ('exited', self.status), self.lease.text('err') + str(e))
        if self.argv[0] == TENANT and e.get('counted'):
            assert e.get('peakBytes', 0) <= 10 * GIB, e


def test_nobody_is_left_and_nothing_is_wrong():
    print(f'# seed {SEED}, {ROUNDS} rounds')
    dice = random.Random(SEED)
    counts = {}
    with place() as p:
        for n in range(ROUNDS):
            r = Round(p, dice)
            try:
                r.begin()
                r.strike()
                r.settle()
            except Exception:
                print(f'# round {n}: {r.victim} after {r.delay:.3f} s, {r.argv}, lease {r.lease.number}: '
                      + (r.lease.text('keeper.log') + str(r.lease.record())).replace('\n', ' | '))
                for line in (line for pid in sorted(r.seen) for line in doing(pid)):
                    print(f'# {line}')
                raise
            key = (r.victim, r.lease.look()['found'])
            counts[key] = counts.get(key, 0) + 1
        same(cgroups(), [])
    for (victim, found), n in sorted(counts.items()):
        print(f'# {victim}: {found} {n}')


if __name__ == '__main__':
    tap.main(globals())
