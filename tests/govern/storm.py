# SPDX-License-Identifier: Apache-2.0
"""Governor, wardens and launchers are killed with SIGKILL at moments picked at random: at the end nobody is paused.

The real binaries on simulated silicon. A command that was left paused would never end; each that is not killed itself must
end, with its work done. What is killed is found as a child of launchers that were started here.

Usage: storm.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT
"""
import contextlib
import importlib.util
import os
import pathlib
import random
import signal
import sys
import time

spec = importlib.util.spec_from_file_location('govern_run', pathlib.Path(__file__).resolve().parent / 'run.py')
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)
gate = run.gate
from tap import same  # noqa: E402

ROUNDS = 4
FOLLOWERS = 3  # wardens of one lease within ten seconds


def kill(pid):
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pid)


class Storm:
    def __init__(self, env, dice):
        self.env, self.dice = env, dice
        # One whose governor dies while it starts is not started.
        self.ours = [run.spin(env, *self.words(n)) for n in range(4)]
        self.wardens = {p.pid: 0 for p in self.ours}
        self.killed = set()  # launchers
        self.governors = self.followed = 0

    def words(self, n):
        kind = self.dice.choice((('--share', '300'), ('--cap', '30%'), ('--latency', ), ('--share', '50', '--floor', '10%')))
        return (*kind, '--name', f't{n}')

    def alive(self):
        return [p for p in self.ours if p.poll() is None]

    def governor(self):
        """One that is dying must not be taken for the one that serves: who is the last may leave its socket."""
        pid = run.governor(self.env)
        self.governors += kill(pid)
        if pid:
            gate.gone(pid)

    def warden(self):
        p = self.dice.choice(self.alive() or self.ours)
        if p.poll() is None and self.wardens[p.pid] < FOLLOWERS:
            self.wardens[p.pid] += kill(run.warden_of(p))
            self.followed += 1

    def launcher(self):
        """One of the four."""
        if self.alive() and not self.killed:
            p = self.dice.choice(self.alive())
            p.kill()
            self.killed.add(p.pid)

    def operator(self):
        gate.bulkhead(self.dice.choice(('pause', 'resume')), f't{self.dice.randrange(4)}', **self.env)

    def blow(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.alive():
            time.sleep(self.dice.random() * 0.2)
            with contextlib.suppress(FileNotFoundError):
                self.dice.choices((self.governor, self.warden, self.operator, self.launcher), (4, 3, 4, 1))[0]()


def test_nobody_is_left_paused():
    with run.shared() as env:
        governors = followed = 0
        for seed in range(ROUNDS):
            storm = Storm(env, random.Random(seed))
            storm.blow(3.5)
            run.until(lambda: run.governor(env) or not storm.alive())  # the last one that was killed left its socket
            # What an operator paused stays so until somebody resumes it, or a governor dies.
            for n in range(4):
                gate.bulkhead('resume', f't{n}', **env)
            for p in storm.ours:
                rc, out, err = gate.finish(p)
                if p.pid in storm.killed:
                    same(rc, -signal.SIGKILL, err)
                    continue
                assert rc == 0 and int(gate.lines(out)['units']) > 0, (seed, rc, out, err)
            governors += storm.governors
            followed += storm.followed
            print(f'# round {seed}: {storm.governors} governors, {storm.followed} wardens, {len(storm.killed)} launchers died')
        assert governors >= ROUNDS and followed >= ROUNDS, (governors, followed)


def test_all_at_once():
    """The governor, a warden and a launcher in one instant, while two are paused; the rest goes on and ends."""
    with run.shared() as env:
        ours = [run.spin(env, '--share', '100', '--name', f't{n}') for n in range(4)]
        run.until(lambda: len(run.rows(env)) == 4)
        for name in ('t0', 't1'):
            run.order(env, 'pause', name)
        for pid in (run.governor(env), run.warden_of(ours[0]), ours[1].pid):
            os.kill(pid, signal.SIGKILL)
        for p in ours:
            rc, _, err = gate.finish(p)
            same(rc, -signal.SIGKILL if p is ours[1] else 0, err)


def test_shares_after_the_storm():
    with run.shared() as env:
        a, b = run.spin(env, '--share', '300', '--name', 'a'), run.spin(env, '--share', '100', '--name', 'b')
        run.until(lambda: {'a', 'b'} <= run.rows(env).keys())
        for _ in range(2):
            kill(run.warden_of(a))
            kill(run.governor(env))
            kill(run.warden_of(b))
            run.until(lambda: run.governor(env) and {'a', 'b'} <= run.rows(env).keys())
        assert 0.5 < run.part(a, b) < 0.92
        run.rate(a), run.rate(b)


if __name__ == '__main__':
    gate.tap.main(globals())
