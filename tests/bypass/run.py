# SPDX-License-Identifier: Apache-2.0
"""The bypass suite: programs that go for more video memory than the cap, each in one way, and what came of each.

On simulated silicon:  run.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-BYPASS PATH-TO-BYPASS-STATIC
On a real card:        run.py --real PATH-TO-BULKHEAD [--cap GIB] [--table FILE] [--only NAME ...]

With --real the programs are compiled here by gcc, from this folder and src/, into a scratch folder. What the lease has is
asked of the driver outside of the lease: a helper looks at what the card has free every millisecond, and on a real card
nvidia-smi is asked as well. An attempt is held when that was never more than the cap, or when the lease was stopped. Of one
that was stopped two times are said, both from the first sample above the cap: until no thread of it could run any more, and until
the driver had its memory back. The first is judged on a real card (STOPPED_MS) and not on simulated silicon, where
sanitizers and other tests take their time. A way through that is known is in KNOWN, and is said each time.
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
MIB, GIB = 1 << 20, 1 << 30
REAL, OUTSIDE, ROOT, RAW, SHARE = 1, 2, 4, 8, 32
NOBODY = 65534
# What the driver may count beyond the cap: 2 MiB for each of the processes of a storm. A piece that is asked for is larger.
TOLERANCE = 64 * MIB
STOPPED_MS = 100
BASE = ('units', 'err', 'str', 'mem', 'buf')
STATIC = ('raw', 'raw-short', 'managed', 'fork-storm')

KNOWN = {
    'cuda-pageable': 'memory of the machine that is moved to the card is in no count',
    'outside-proc-mem': 'no filter can tell /proc/PID/mem from another file; Yama or another user can',
}


class Cannot(Exception):
    pass


class Watch:
    """What the card has free, with when."""

    def __init__(self, program, env):
        self.samples, self.stops = [], {}
        self.process = subprocess.Popen([program, 'watch'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        self.fresh()

    def read(self):
        for line in self.process.stdout:
            at, *rest = line.split()
            if rest[0] == 'stopped':
                self.stops[int(rest[1])] = int(at) / 1e9
            else:
                self.samples.append((int(at) / 1e9, int(rest[0])))

    def follow(self, pid):
        """Says when it is stopped."""
        self.stops.pop(pid, None)
        self.process.stdin.write(f'{pid:<7}\n')
        self.process.stdin.flush()

    def fresh(self):
        """A sample taken after now."""
        now, end = time.monotonic(), time.monotonic() + 30
        while not self.samples or self.samples[-1][0] <= now:
            assert self.process.poll() is None and time.monotonic() < end, 'the card is not to be seen'
            time.sleep(0.002)
        return self.samples[-1][1]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()


class Run:
    """One attempt inside of a lease."""

    def __init__(self, argv, env, watch):
        self.lines, self.errors, self.pids, self.watch = [], [], [], watch
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
                                        text=True)
        self.readers = [threading.Thread(target=self.read, args=a, daemon=True)
                        for a in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for t in self.readers:
            t.start()

    def read(self, stream, lines):
        for line in stream:
            lines.append(line.rstrip('\n'))
            if line.startswith('pid ') and not self.pids:  # others are its children
                self.pids.append(int(line.split()[1]))
                self.watch.follow(self.pids[0])

    def ended(self):
        """Nobody is left who could say something: a daemon may outlive the command."""
        return not self.readers[0].is_alive()

    def until_held(self, seconds):
        end = time.monotonic() + seconds
        while 'holding' not in self.lines and not self.ended():
            if time.monotonic() > end:
                return False
            time.sleep(0.002)
        return True

    def finish(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for t in self.readers:
            t.join(timeout=30)
        return self.process.returncode

    def said(self, key):
        return [line[len(key) + 1:] for line in self.lines if line.startswith(key + ' ')]


class Suite:
    def __init__(self, bulkhead, programs, env, cap, real):
        self.bulkhead, self.programs, self.env, self.cap, self.real = bulkhead, programs, env, cap, real
        self.watch = Watch(programs[False], env)
        self.rows = []

    def attempts(self):
        done = subprocess.run([self.programs[False], 'list'], capture_output=True, text=True, check=True, env=self.env)
        for line in done.stdout.splitlines():
            name, flags, what = line.split(' ', 2)
            yield name, int(flags), what, False
            if name in STATIC:
                yield 'static-' + name, int(flags), 'a static program: ' + what, True

    @contextlib.contextmanager
    def outside(self, wanted, folder):
        """Somebody who is not in the lease, of the tenant's user."""
        if not wanted:
            yield []
            return
        at = os.path.join(folder, 'outside')
        p = subprocess.Popen([*self.tenant(False), self.programs[False], 'outside', at], stdout=subprocess.PIPE, env=self.env)
        try:
            assert p.stdout.readline() == b'ready\n', 'the helper outside does not start'
            yield [at]
        finally:
            p.kill()
            p.communicate()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(at)

    @staticmethod
    def tenant(root):
        # Sanitizers look for leaks by ptrace, which the filter refuses.
        quiet = ['env', 'ASAN_OPTIONS=detect_leaks=0']
        return quiet if root else ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups', *quiet]

    def settle(self, base):
        """Gives the gate the time to act, where there is something to act on."""
        late = time.monotonic() + 0.15
        end = time.monotonic() + 3
        while time.monotonic() < end:
            over = base - self.watch.fresh() - self.cap > TOLERANCE
            if not over and time.monotonic() > late:
                return

    def smi(self):
        if not self.real:
            return ''
        ask = ['nvidia-smi', '--format=csv,noheader,nounits']
        out = [subprocess.run([*ask, f'--query-{q}'], capture_output=True, text=True, check=False).stdout.strip()
               for q in ('gpu=memory.used', 'compute-apps=pid,used_memory')]
        return f' (nvidia-smi: {out[0]} MiB used; by process: {out[1].replace(chr(10), "; ") or "none"})'

    def make(self, name, flags, static, folder):
        """(how it ended, bytes beyond the cap, held?)"""
        if not self.programs[static]:
            raise Cannot('there is no static C library here')
        with self.outside(flags & OUTSIDE, folder) as outside:
            base = self.watch.fresh()
            begun = time.monotonic()
            program = self.programs[static]
            share = ['--share', '100'] if flags & SHARE else []
            run = Run([self.bulkhead, 'run', '--memory', f'{self.cap // GIB}GiB', *share, '--stats', '--', *self.tenant(flags & ROOT),
                       program, name.removeprefix('static-'), str(self.cap), *outside], self.env, self.watch)
            came = run.until_held(25 if self.real else 120)
            self.settle(base)
            smi = self.smi()
            now = base - self.watch.fresh() - self.cap
            taken = [(t, base - free - self.cap) for t, free in self.watch.samples if t >= begun]
            rc = run.finish()
        return self.judge(run, came, rc, now, taken, smi)

    def judge(self, run, came, rc, now, taken, smi):
        how = '; '.join(run.said('how')) + smi
        beyond = max([b for _, b in taken], default=0)
        over = [t for t, b in taken if b > TOLERANCE]
        killed = any(' was killed: ' in e for e in run.errors)
        if run.said('bad'):
            return f'FAILED: {run.said("bad")[-1]}', max(beyond, 0), False
        if over and now > TOLERANCE:
            return f'GOT THROUGH: {how}', beyond, False
        if over:
            back = min([t for t, b in taken if t > over[-1]], default=over[-1])
            ms = (back - over[0]) * 1000
            if not killed:
                return f'GOT THROUGH for {ms:.0f} ms: {how}', beyond, False
            stopped = [(self.watch.stops[p] - over[0]) * 1000 for p in run.pids if p in self.watch.stops]
            first = max(stopped[0], 0) if stopped else ms
            text = f'stopped after {first:.0f} ms, its memory back after {ms:.0f} ms: {how or "before it could say more"}'
            if self.real and first > STOPPED_MS:
                return f'TOO LATE: {text}', beyond, False
            return f'detected: {text}', beyond, True
        if run.said('cannot'):
            raise Cannot(run.said('cannot')[-1])
        if killed:
            return 'detected: stopped before it had more than the cap', 0, True
        if rc == 127 and 'how LD_AUDIT names another libcuda' in run.lines and any('by ld.so' in e for e in run.errors):
            raise Cannot('the loader itself ends with that library')
        if not came or rc != 0 or not run.said('how'):
            last = '; '.join([*run.lines[-3:], *run.errors[-3:]])
            return f'FAILED: it ended with {rc} and said: {last}', max(beyond, 0), False
        return f'blocked: {how}', max(beyond, 0), True

    def nothing_left(self, base):
        end = time.monotonic() + 20
        while base - self.watch.fresh() > MIB:
            assert time.monotonic() < end, f'{base - self.watch.fresh()} bytes are left behind'
            time.sleep(0.01)

    def go(self, only):
        n = bad = 0
        folder = tempfile.mkdtemp()
        os.chmod(folder, 0o777)  # the helper outside is the tenant's user
        first = self.watch.fresh()
        for name, flags, what, static in self.attempts():
            if only and name not in only:
                continue
            n += 1
            if flags & REAL and not self.real:
                print(f'ok {n} - {name} # SKIP real only: {what}', flush=True)
                self.rows.append((name, what, f'real only: {what}', ''))
                continue
            try:
                how, beyond, held = self.make(name, flags, static, folder)
                self.nothing_left(first)
            except Cannot as e:
                how, beyond, held = f'cannot be tried here: {e}', 0, None
            except AssertionError as e:
                how, beyond, held = f'FAILED: {e}', 0, False
            self.rows.append((name, what, how, f'{beyond / MIB:.0f} MiB' if beyond > TOLERANCE else '0'))
            mark = f' # SKIP {how}' if held is None else ''
            known = held is False and name in KNOWN
            if known:
                mark = f' # SKIP a known way through: {KNOWN[name]}'
            bad += held is False and not known
            print(f'# {name}: {how} [{self.rows[-1][3]} beyond the cap]')
            print(f'{"not ok" if held is False and not known else "ok"} {n} - {name}{mark}', flush=True)
        shutil.rmtree(folder)
        print(f'1..{n}')
        return bad

    def table(self):
        text = ['| attempt | what | how it ended | beyond the cap, by the driver |', '|---|---|---|---|']
        text += ['| ' + ' | '.join(c.replace('|', '/') for c in row) + ' |' for row in self.rows]
        return '\n'.join(text) + '\n'


def compile_programs(folder):
    src = HERE.parent.parent / 'src'
    common = ['gcc', '-std=c17', '-D_GNU_SOURCE', '-O1', f'-I{src}']
    files = sorted(str(f) for f in HERE.glob('*.c'))
    files += [str(src / 'simgpu' / 'drv.c'), *(str(src / 'base' / f'{b}.c') for b in BASE)]
    normal, static = os.path.join(folder, 'bypass'), os.path.join(folder, 'bypass-static')
    subprocess.run([*common, *files, '-rdynamic', '-o', normal, '-ldl', '-lpthread'], check=True)
    done = subprocess.run([*common, '-DBYPASS_STATIC', '-static', *(f for f in files if not f.endswith('/cuda.c')), '-o', static,
                           '-lpthread'], check=False)
    return {False: normal, True: static if done.returncode == 0 else None}


def on_real_card(args):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        suite = Suite(os.path.abspath(args.real), compile_programs(folder), dict(os.environ), args.cap * GIB, True)
        try:
            bad = suite.go(args.only)
        finally:
            suite.watch.close()
        if args.table:
            pathlib.Path(args.table).write_text(suite.table())
        print(suite.table())
        return 1 if bad else 0


def on_simulated_silicon(bulkhead, normal, static, only):
    if os.geteuid() != 0:
        print('1..0 # SKIP needs root')
        return 0
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        os.mkdir(os.path.join(folder, 'h'))
        # Where the programs were built may not be open to everybody.
        programs = {}
        for key, path in ((False, normal), (True, static)):
            programs[key] = shutil.copy(path, folder) if os.path.isfile(path) else None
            if programs[key]:
                os.chmod(programs[key], 0o755)
        at = os.path.join(folder, 'h', 'lab')
        kept = ('PATH', 'HOME', 'ASAN_OPTIONS', 'UBSAN_OPTIONS', 'LSAN_OPTIONS')
        env = {**{k: v for k, v in os.environ.items() if k in kept}, 'LC_ALL': 'C.UTF-8', 'BULKHEAD_SIM_HOME': folder + '/h'}
        subprocess.run([bulkhead, 'sim', 'start', 'h200'], check=True, env=env, capture_output=True)
        env |= {'BULKHEAD_SIM': at, 'BULKHEAD_RUN_DIR': folder + '/h', 'BULKHEAD_SYSROOT': f'{at}/sysroot', 'BULKHEAD_NVML': f'{at}/lib/libnvidia-ml.so.1',
                'LD_LIBRARY_PATH': f'{at}/lib'}
        try:
            suite = Suite(bulkhead, programs, env, GIB, False)
            try:
                bad = suite.go(only)
            finally:
                suite.watch.close()
            if 'BYPASS_TABLE' in os.environ:
                pathlib.Path(os.environ['BYPASS_TABLE']).write_text(suite.table())
        finally:
            subprocess.run([bulkhead, 'sim', 'stop', '--all'], check=True, env=env, capture_output=True)
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--real', metavar='BULKHEAD')
    parser.add_argument('--cap', type=int, default=10, help='GiB')
    parser.add_argument('--table')
    parser.add_argument('--only', nargs='+', default=[])
    parser.add_argument('paths', nargs='*')
    args = parser.parse_args()
    if args.real:
        sys.exit(on_real_card(args))
    bulkhead, _, normal, static = (os.path.abspath(p) for p in args.paths)
    sys.exit(on_simulated_silicon(bulkhead, normal, static, args.only))


if __name__ == '__main__':
    main()
