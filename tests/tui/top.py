# SPDX-License-Identifier: Apache-2.0
"""`bulkhead top` in a real terminal (tmux), on the real daemon with simulated silicon, against golden screens.

Usage: top.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT
What changes from run to run (times, ages, names of cards and hosts, numbers of the driver) is masked on both sides.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'node'))
import lab  # noqa: E402
from lab import BIN, LARGE, NOBODY, Skip, environment, has, node, policy, same, until  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parent / 'golden'
MASKS = [(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ', 'YYYY-MM-DD HH:MM:SSZ'),
         (r'(?m)^bulkhead \S+', 'bulkhead NODE'),
         (r'[▁▂▃▄▅▆▇█]+ *', '~ '),
         (r' +\d+%', ' N%'), (r' +\d+\.\d/79G', ' N/79G'),
         (r' +\d+[smh]( \d+[sm])?(?= )', ' AGE'),
         (r'(?m) +$', '')]


def masked(text):
    for pattern, by in MASKS:
        text = re.sub(pattern, by, text)
    return text.rstrip('\n') + '\n'


class Terminal:
    """A tmux of its own, with one window that runs the command."""
    count = 0

    def __init__(self, n, cols, rows, *words, env=None, user=None):
        if not shutil.which('tmux'):
            raise Skip('no tmux')
        Terminal.count += 1
        self.socket = f'bh-top-{os.getpid()}-{Terminal.count}'
        self.env = {**n.env, 'TERM': 'xterm', 'LANG': 'C.UTF-8', 'TMUX_TMPDIR': n.here, **(env or {})}
        command = ' '.join([BIN, 'top', *words])
        if user is not None:
            command = f'setpriv --reuid={user} --regid={user} --clear-groups {command}'
        self.tmux('-f', '/dev/null', 'new-session', '-d', '-x', str(cols), '-y', str(rows),
                  f'{command} 2>{n.here}/top.err; echo "ended with $?"; sleep 600')

    def tmux(self, *words):
        done = subprocess.run(['tmux', '-u', '-L', self.socket, *words], capture_output=True, text=True, check=False, timeout=60,
                              env=self.env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def screen(self, *words):
        return self.tmux('capture-pane', '-p', *words)

    def press(self, *keys):
        self.tmux('send-keys', *keys)

    def shows(self, *parts, seconds=60):
        def there():
            text = self.screen()
            return all(p in text for p in parts)
        until(there, seconds, lambda: f'{parts} not in\n{self.screen()}')
        return self.screen()

    def golden(self, name, *parts):
        """The screen with these parts is the one that was kept."""
        text = masked(self.shows(*parts))
        path = GOLDEN / f'{name}.txt'
        if os.environ.get('BH_TEST_REGENERATE'):
            GOLDEN.mkdir(exist_ok=True)
            path.write_text(text)
        same(text, path.read_text(), name)

    def close(self):
        with contextlib.suppress(AssertionError):
            self.tmux('kill-server')


@contextlib.contextmanager
def terminal(*args, **kw):
    t = Terminal(*args, **kw)
    try:
        yield t
    finally:
        t.close()


def work(n):
    """Two run, four hold the rest, one waits."""
    jobs = [n.submit('chat', 'sleep', '600', name='chat-bot'), n.submit('chat', 'sleep', '600'),
            n.submit('lab', 'sleep', '600', milli=250, memory_mib=10240, uid=NOBODY),
            n.submit('train', 'sleep', '600'), n.submit('train', 'sleep', '600')]
    for j in jobs:
        n.active(j)
    jobs.append(n.submit('nightly', 'sleep', '600', name='nightly', can_requeue=True))
    until(lambda: n.state_of(jobs[-1]) == 'waiting', 90)
    return jobs


def by_keys(n, t, jobs):
    t.press('2')
    t.golden('gpus-80x24', '[2 GPUs 8]')
    t.press('3')
    t.golden('slices-80x24', '[3 Slices 5]', 'L3')
    t.press('4')
    t.golden('tenants-80x24', '[4 Tenants 4]', 'nightly')
    t.press('1')
    t.press('/')
    t.press('nightly')
    t.shows('/nightly_', '[1 Work 1]')
    t.press('Enter')
    t.press('w')
    t.shows('bulkhead why J6')
    t.press('Escape')
    t.shows('[1 Work 1]')
    t.press('Escape')
    t.press('s')
    t.shows('[1 Work 6]', 'by JOB')
    t.press('Enter')
    has(t.shows('bulkhead describe J1', 'chat-bot'), 'EscBack')
    t.press('q')
    t.press('F1')
    t.golden('help-80x24', 'Help', 'Freeze')
    t.press('Escape')
    # a command is asked back, and done
    t.press('G')
    t.press('c')
    t.shows('Cancel J6? y or n')
    t.press('n')
    same(n.state_of(jobs[-1]), 'waiting')
    t.press('c')
    t.shows('Cancel J6? y or n')
    t.press('y')
    n.wait(jobs[-1])
    t.shows('[1 Work 5]')


def test_small_and_wide_and_a_daemon_that_goes():
    with node(LARGE, policy(share='20GiB')) as n:
        jobs = work(n)
        with terminal(n, 80, 24) as t:
            t.golden('work-80x24', 'SIMULATED', '[1 Work 6]', 'J6')
            t.tmux('resize-window', '-x', '200', '-y', '60')
            t.golden('work-200x60', 'OF ITS QUOTA', 'J6')
            t.tmux('resize-window', '-x', '80', '-y', '24')
            until(lambda: t.screen().startswith('bulkhead ') and 'OF ITS QUOTA' not in t.screen(), 90, t.screen)
            by_keys(n, t, jobs)
            # colours are there, and the daemon's absence is said
            has(t.screen('-e'), '\x1b[36m')
            n.kill()
            t.shows('daemon away, as of', 'J1')
            n.start()
            until(lambda: 'away' not in t.screen(), 90, t.screen)
            t.press('q')
            t.shows('ended with 0')
        check_quiet_ways(n)
        for j in jobs:
            n.post(f'/v1/jobs/{j}/cancel')
        n.quiet()


def check_quiet_ways(n):
    """Read-only, without colours, of one tenant, and without a terminal."""
    with terminal(n, 80, 24, '--readonly', '--ascii', env={'NO_COLOR': '1'}, user=NOBODY) as t:
        text = t.shows('[1 Work 1]', 'lab')
        assert not re.search(r'chat|train|nightly', text), text
        assert not re.search('\x1b\\[3[0-7]m', t.screen('-e')), 'colours'
        t.press('c')
        t.shows('nothing is changed: this is --readonly')
        t.press('F10')
        t.shows('ended with 0')
    done = subprocess.run([BIN, 'top', '--once', '--size', '100x30', '--ascii'], capture_output=True, text=True, check=False,
                          timeout=60, env=n.env)
    same((done.returncode, len(done.stdout.splitlines())), (0, 30), done.stderr)
    has(done.stdout, 'SIMULATED')
    done = subprocess.run([BIN, 'top'], capture_output=True, text=True, check=False, timeout=60, env=n.env)
    same(done.returncode, 2)
    has(done.stderr, '--once')


def test_no_daemon():
    if os.geteuid() != 0:
        raise Skip('needs root')
    env = environment(BULKHEAD_RUN_DIR=f'{os.getcwd()}/run')
    done = subprocess.run([BIN, 'top', '--once'], capture_output=True, text=True, check=False, timeout=60, env=env)
    same(done.returncode, 4, done.stderr)
    for words in (['--size', '80x24'], ['--once', '--size', '80'], ['--once', '--every', '1ms']):
        same(subprocess.run([BIN, 'top', *words], capture_output=True, check=False, timeout=60, env=env).returncode, 2, words)


if __name__ == '__main__':
    lab.tap.main(globals())
