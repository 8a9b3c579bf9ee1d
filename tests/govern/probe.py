# SPDX-License-Identifier: Apache-2.0
"""$BULKHEAD_PROBE: a command says what it does, and that is shown as its own word; whatever it sends, nobody else is the worse for it.

Usage: probe.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT PATH-TO-STUCK
"""
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import socket
import sys
import time

spec = importlib.util.spec_from_file_location('govern_run', pathlib.Path(__file__).resolve().parent / 'run.py')
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)
from tap import Skip, has, same  # noqa: E402

begin, bulkhead, finish, noise, row, rows, shared, spin, until = (run.begin, run.bulkhead, run.finish, run.noise, run.row, run.rows,
                                                                  run.shared, run.spin, run.until)
TENANT, WORK_US = run.TENANT, run.WORK_US
STUCK = os.path.abspath(sys.argv[4])
SENDTO = {'x86_64': '44', 'aarch64': '206'}

# Says as much as the file `pace` tells it, of each twentieth of a second: also of those that it was kept from its processor.
WRITER = r'''
import os, socket, time
at = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
told = time.monotonic()
while os.path.exists('pace'):
    with open('pace') as f:
        n = f.read().strip()
    spans = (time.monotonic() - told) / 0.05
    told += spans * 0.05
    if n:
        at.sendto(b'done %d\nlatency 412us' % round(int(n) * spans), os.environ['BULKHEAD_PROBE'])
    time.sleep(0.05)
'''
# As fast as it goes, from many processes, of every kind of rubbish.
FLOOD = r'''
import os, socket
to, parent = os.environ['BULKHEAD_PROBE'], os.getpid()
junk = [b'x' * 1024, b'done 99999999999999999999999999\n' * 30, b'\0\xff\n' * 300, b'latency 1\n' * 100, b'done ', b'\n' * 1000, b'', b'\n' * 60000]
for i in range(8):
    if os.fork() == 0:
        at = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        while os.getppid() == parent:
            for piece in junk[i % 3:]:
                at.sendto(piece, to)
            if i == 7 and os.getppid() == parent:
                at = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        os._exit(0)
print('ready', flush=True)
import time
time.sleep(600)
'''


def python(env, code, name, *more):
    """A lease in which that runs, beside more of it."""
    pathlib.Path(f'{name}.py').write_text(code)
    both = ' & '.join([*more, f'exec {sys.executable} -S {name}.py'])
    return begin(env, 'sh', '-c', both, options=('--share', '100', '--name', name))


def own(env, name):
    return row(env, name).get('own', {})


def pace(n):
    pathlib.Path('pace.new').write_text(str(n))
    os.replace('pace.new', 'pace')


def end(*ps):
    for p in ps:
        p.terminate()
        finish(p)


def test_what_a_command_says_is_shown_as_its_own_word():
    with shared() as env:
        pace(10)
        p = python(env, WRITER, 'a')
        # what waited for a warden without a processor comes at once, and looks like more for a moment
        until(lambda: 40000 < (own(env, 'a').get('rateMilliPerSecond') or 0) <= 220000)
        o = own(env, 'a')
        assert 400 <= o['p50Micros'] <= o['p99Micros'] <= 424, o
        same(o['linesIgnored'], 0, o)
        text = bulkhead('shares', **env).out
        for words in ('By their own word, which nothing checks and no share follows:', '(a): own rate ', 'own p50 4', 'own p99 4'):
            has(text, words)
        pace('')  # it falls silent
        until(lambda: [own(env, 'a')[key] for key in ('rateMilliPerSecond', 'p50Micros', 'p99Micros')] == [None, None, None])
        assert 'By their own word' not in bulkhead('shares', **env).out
        pace(5)
        until(lambda: own(env, 'a')['rateMilliPerSecond'])
        os.unlink('pace')
        same(finish(p), (0, '', ''))
        same(os.listdir('run/probe'), [])


def test_a_shell_can_say_it_and_who_has_no_share_is_not_asked():
    with shared() as env:
        if shutil.which('socat'):
            p = begin(env, 'sh', '-c', 'while :; do echo done 3 | socat -u - UNIX-SENDTO:"$BULKHEAD_PROBE"; sleep 0.05; done', options=('--share', '1', '--name', 'a'))
            until(lambda: own(env, 'a').get('rateMilliPerSecond'))
            end(p)
        rc, out, err = finish(begin({**env, 'BULKHEAD_PROBE': 'of somebody else'}, 'sh', '-c', 'echo "probe:$BULKHEAD_PROBE"', options=('--memory', '1GiB')))
        same((rc, out, err), (0, 'probe:\n', ''))


def test_it_is_heard_by_the_next_warden_and_the_next_governor():
    with shared() as env:
        pace(10)
        p = python(env, WRITER, 'a')
        until(lambda: own(env, 'a').get('rateMilliPerSecond'))
        another_warden_hears(env, p, 'a')
        os.kill(run.governor(env), signal.SIGKILL)
        until(lambda: row(env, 'a'))
        until(lambda: own(env, 'a').get('rateMilliPerSecond'))
        os.unlink('pace')
        same(finish(p)[0], 0)
        # a launcher that is killed leaves it there, and nobody can write to it for ever
        pace(10)
        p = python(env, WRITER, 'a')
        until(lambda: own(env, 'a').get('rateMilliPerSecond'))
        p.kill()
        p.communicate(timeout=60)
        left = os.listdir('run/probe')
        same(len(left), 1, left)
        os.unlink('pace')
        until(lambda: not is_held(f'run/probe/{left[0]}'))  # the warden is gone, too
        os.utime(f'run/probe/{left[0]}', (1, 1))
        same(finish(begin(env, 'true'))[0], 0)
        same(os.listdir('run/probe'), [])


def another_warden_hears(env, p, name):
    """It says nothing while its warden is ended: what is heard then is heard by the next one."""
    before, now = pathlib.Path('pace').read_text(), run.warden_of(p)
    pace('')
    until(lambda: not own(env, name).get('rateMilliPerSecond'))
    os.kill(now, signal.SIGKILL)
    until(lambda: run.warden_of(p) not in (None, now))
    pace(before)
    until(lambda: own(env, name).get('rateMilliPerSecond'))


def is_held(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as at:
        try:
            at.connect(path)
        except ConnectionRefusedError:
            return False
    return True


def said(env, name):
    """What a turn of it does by its own word, in percent of alone."""
    for line in noise(env):
        found = re.search(rf'\({name}\) says of itself: .* a turn does (\d+) % of the work that it does alone', line['text'])
        if found:
            return int(found.group(1))
    return None


BY_WHOM = re.compile(r'\(hog\) slowed lease \d+ \(victim\): memory bandwidth \d+ % while it held the card; a turn of victim does \d+ % of the work '
                     r'that it does alone, by its own word')


def slowed(env):
    return [line['text'] for line in noise(env) if 'slowed lease' in line['text'] or 'slowed beyond its turns' in line['text']]


def test_a_turn_that_does_less_work_is_said_and_one_that_has_less_time_is_not():
    with shared() as env:
        pace(10)  # of each unit that it has finished: so of the card's time, whatever processors are doing
        a = begin(env, TENANT, 'spin', '0', WORK_US, os.path.abspath('pace'), options=('--share', '100', '--name', 'victim'))
        same(a.stdout.readline(), b'ready\n')
        until(lambda: row(env, 'victim').get('deliveredPermille', 0) > 300)
        time.sleep(8)  # alone: a look each second
        b = spin(env, '--share', '100', '--name', 'hog')
        # half of the time, and as much in it as ever
        until(lambda: 85 < (said(env, 'victim') or 0) <= 130 and not slowed(env) and row(env, 'victim')['deliveredPermille'] < 700, seconds=120)
        # and now less in it; by whom is told by the counters: everything there uses half of the simulated card's bandwidth
        pace(4)
        until(lambda: (said(env, 'victim') or 100) <= 55 and any(BY_WHOM.search(text) for text in slowed(env)), seconds=120)
        text = '\n'.join(line['text'] for line in noise(env))
        assert '(victim): whether a turn of it' not in text, text
        # and nobody's share followed it
        assert 400 < row(env, 'victim')['targetPermille'] < 600, rows(env)
        end(a, b)


def cpu(pid):
    f = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()
    return (int(f[11]) + int(f[12])) / os.sysconf('SC_CLK_TCK')


def test_a_flood_is_its_senders_own():
    with shared() as env:
        pace(10)
        a, b = python(env, FLOOD, 'flood'), python(env, WRITER, 'quiet')
        same(a.stdout.readline(), b'ready\n')
        until(lambda: own(env, 'flood').get('linesIgnored', 0) > 1000 and own(env, 'quiet').get('rateMilliPerSecond'))
        pids = {'governor': run.governor(env), 'warden': run.warden_of(a)}
        before, began = {who: cpu(pid) for who, pid in pids.items()}, time.monotonic()
        ignored = own(env, 'flood')['linesIgnored']
        time.sleep(4)
        seconds = time.monotonic() - began
        used = {who: (cpu(pid) - before[who]) / seconds for who, pid in pids.items()}
        o = own(env, 'flood')
        # 16 KiB ten times a second, of which the shortest line is one byte, or none and a datagram
        assert o['linesIgnored'] - ignored <= 16384 * 10 * (seconds + 1), (o, ignored)
        assert used['governor'] < 0.3 and used['warden'] < 0.3, used  # sanitizers and all
        same((own(env, 'quiet')['linesIgnored'], own(env, 'quiet')['rateMilliPerSecond'] > 30000), (0, True), own(env, 'quiet'))
        os.unlink('pace')
        same(finish(b), (0, '', ''))
        end(a)
        same(os.listdir('run/probe'), [])


def sends(pid):
    """It is in the middle of the call."""
    return pathlib.Path(f'/proc/{pid}/syscall').read_text().split()[0] == SENDTO[os.uname().machine]


def a_sender_is_stuck(how):
    with shared() as env:
        os.mkdir('mnt')
        pace(10)
        p = python(env, WRITER, 'evil', f'{STUCK} {how} >stuck.out 2>&1 </dev/null')
        said = pathlib.Path('stuck.out')
        until(lambda: said.exists() and said.read_text().endswith('\n'))
        word = said.read_text().strip()
        if word.startswith('cannot'):
            end(p)
            raise Skip(word)
        until(lambda: sends(int(word)))
        # what the rest of the lease says is heard: 200 a second, and more where it had waited
        until(lambda: 0 < (own(env, 'evil').get('rateMilliPerSecond') or 0) < 500000)
        pace(100)
        until(lambda: (own(env, 'evil').get('rateMilliPerSecond') or 0) > 1000000)
        # others come, and look whether it is one that was left behind
        name, = os.listdir('run/probe')
        os.utime(f'run/probe/{name}', (1, 1))
        same(finish(begin(env, 'true'))[0], 0)  # which gives up after a while
        same(os.listdir('run/probe'), [name])
        # its warden can be ended, and the next one hears it again
        another_warden_hears(env, p, 'evil')
        assert sends(int(word))
        for pid in [*run.children(int(word)), int(word)]:  # its file system first: it cannot be ended while that may answer
            os.kill(pid, signal.SIGKILL)
        os.unlink('pace')
        same(finish(p)[0], 0)
        same(os.listdir('run/probe'), [])


def test_a_sender_whose_page_never_comes_holds_up_nobody():
    a_sender_is_stuck('fault')


def test_a_sender_from_a_file_system_of_its_own_holds_up_nobody():
    a_sender_is_stuck('file mnt')


if __name__ == '__main__':
    run.gate.tap.main(globals())
