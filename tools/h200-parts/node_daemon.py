# SPDX-License-Identifier: Apache-2.0
"""A daemon with folders of its own, on the cards that are here: started, killed, asked."""
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

from table import run

TRAIN = pathlib.Path(__file__).resolve().parent / 'inside_train.py'


class Over(Exception):
    """Something did not come in its time, or is not as it has to be for what follows."""


def until(what, seconds, told=lambda: ''):
    """What it found, once it is something."""
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > end:
            raise Over(f'waited {seconds} s in vain for {told() or what.__name__}')
        time.sleep(0.1)


class Work:
    """What a tenant of inside_train.py wrote so far."""

    def __init__(self, text):
        self.text, self.points, self.have, self.over, self.ended = text, [], {}, '', False
        for line in text.splitlines():
            key, _, rest = line.partition(' ')
            words = rest.split(' ', 1)
            if key in ('at', 'end') and len(words) == 2:
                self.points.append((int(words[0]) / 1e3, int(words[1])))
                self.ended = self.ended or key == 'end'
            elif key == 'have' and len(words) == 2:
                self.have[words[0]] = words[1]
            elif key == 'over':
                self.over = rest

    def steps(self):
        return self.points[-1][1] if self.points else 0

    def rate(self, start=0.0, stop=1e12):
        """Steps a second between two times of day."""
        inside = [p for p in self.points if start <= p[0] <= stop]
        if len(inside) < 2 or inside[-1][0] <= inside[0][0]:
            return 0.0
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])

    def longest_gap(self):
        return max((b[0] - a[0] for a, b in zip(self.points, self.points[1:])), default=0.0)


class Daemon:
    def __init__(self, bulkhead, program, home, more=None):
        self.bulkhead, self.program, self.home = os.path.abspath(bulkhead), os.path.abspath(program), home
        self.state, self.run, self.log_file = f'{home}/state', f'{home}/run', f'{home}/daemon.log'
        self.env = {**os.environ, 'BULKHEAD_STATE_DIR': self.state, 'BULKHEAD_RUN_DIR': self.run,
                    'BULKHEAD_CGROUP': f'bulkhead-node-{os.getpid()}', **(more or {})}
        self.process, self.policy = None, None

    # ---- the process ----

    def start(self, seconds=60):
        with open(self.log_file, 'ab') as log:
            self.process = subprocess.Popen([self.program, '--policy', self.policy], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.env, start_new_session=True)
        began = time.monotonic()
        until(self.answers, seconds, lambda: 'the daemon')
        return time.monotonic() - began

    def answers(self):
        if self.process.poll() is not None:
            raise Over(f'the daemon ended with {self.process.returncode}')
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.ask('GET', '/v1/health')[0] == 200
        return False

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def end(self, number=signal.SIGTERM):
        if self.alive():
            self.process.send_signal(number)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def renew(self):
        """Ends it and puts its state aside: the next one begins with nothing, also not with what is quarantined or cordoned."""
        self.end()
        n = len(list(pathlib.Path(self.home).glob('state.*')))
        for folder in (self.state, self.run):
            with contextlib.suppress(OSError):
                os.rename(folder, f'{folder}.{n}')
        self.policy = None

    def left(self):
        """Processes that still name its folder: (pid, name)."""
        found = []
        for p in pathlib.Path('/proc').iterdir():
            with contextlib.suppress(OSError):
                if p.name.isdigit() and int(p.name) != os.getpid() and f'{self.home}/'.encode() in (p / 'environ').read_bytes() + \
                        (p / 'cmdline').read_bytes():
                    found.append((int(p.name), (p / 'comm').read_text(encoding='utf-8').strip()))
        return found

    def forget(self):
        """Its cgroups, which are empty by now, go as well."""
        for at in sorted(pathlib.Path('/sys/fs/cgroup').glob(f'**/{self.env["BULKHEAD_CGROUP"]}')):
            for folder in (*(x for x in at.iterdir() if x.is_dir()), at):
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def log(self, n=15):
        with contextlib.suppress(OSError):
            return pathlib.Path(self.log_file).read_text(encoding='utf-8', errors='replace').splitlines()[-n:]
        return []

    # ---- asking ----

    def ask(self, method, where, body=None):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(20)
        with contextlib.closing(s):
            s.connect(f'{self.run}/api.sock')
            data = b'' if body is None else json.dumps(body).encode()
            s.sendall(f'{method} {where} HTTP/1.1\r\nHost: bulkhead\r\nContent-Length: {len(data)}\r\n\r\n'.encode() + data)
            r = http.client.HTTPResponse(s, method=method)
            r.begin()
            return r.status, r.read().decode(errors='replace')

    def get(self, where):
        status, text = self.ask('GET', where)
        if status != 200:
            raise Over(f'{where}: {status} {text[:300]}')
        return json.loads(text)

    def command(self, *words, timeout=30):
        """What somebody sees who types it: (status, stdout, stderr)."""
        return run(self.bulkhead, *words, timeout=timeout, env=self.env, cwd=self.home)

    def shown(self, *words):
        """The same as text, with the line that was typed; for the record."""
        rc, out, err = self.command(*words)
        return f'$ bulkhead {" ".join(map(str, words))}\n{out}{err}' + (f'(status {rc})\n' if rc else '')

    # ---- work ----

    def submit(self, tenant, pool, *how, seconds=5.0, **inside):
        """A job that trains: its id."""
        words = [w for k, v in inside.items() for w in (f'--{k}', str(v))]
        rc, out, err = self.command('submit', '-t', tenant, '-p', pool, *how, '--', sys.executable, '-u', TRAIN, str(seconds), *words)
        if rc:
            raise Over(f'submit: {err.strip()[:300]}')
        return out.strip()

    def job(self, job):
        return self.get(f'/v1/jobs/{job}')

    def state_of(self, job):
        return self.job(job)['job']['state']

    def wait(self, job, state, seconds):
        until(lambda: self.state_of(job) == state, seconds, lambda: f'{job} to be {state}; it is {self.state_of(job)}')
        return self.job(job)['job']

    def work(self, job):
        """Of the newest attempt; one that has not begun has written nothing."""
        status, text = self.ask('GET', f'/v1/jobs/{job}/logs?stream=out')
        return Work(text if status == 200 else '')

    def training(self, job, seconds, steps=1):
        """Once it has trained so far."""
        def look():
            w = self.work(job)
            if w.steps() < steps and self.state_of(job) == 'ended':
                raise Over(f'{job} ended before it trained: {self.last_words(job)}')
            return w if w.steps() >= steps else None
        return until(look, seconds, lambda: f'{job} to train; {self.state_of(job)}, {self.last_words(job)}')

    def last_words(self, job):
        j = self.job(job)['job']
        _, text = self.ask('GET', f'/v1/jobs/{job}/logs?stream=err')
        return f'{j.get("why") or ""} {" | ".join(text.strip().splitlines()[-3:])[-300:]}'.strip()

    def leases_of(self, job):
        return self.job(job)['leases']

    def why(self, job):
        """The sentence of `bulkhead why`."""
        _, out, err = self.command('why', job)
        lines = [line.split(None, 1)[1] for line in out.splitlines() if line.strip().startswith('why ')]
        return lines[0] if lines else (out + err).strip()[:200]

    def busy(self):
        live = [x for x in self.get('/v1/leases?state=live')['leases'] if x['state'] != 'quarantined']
        return [x['id'] for x in live] + [j['id'] for s in ('waiting', 'running') for j in self.get(f'/v1/jobs?state={s}')['jobs']]

    def clear(self, seconds=25):
        """Everything that runs or waits is ended, and what it had is proved clean."""
        for s in ('waiting', 'running'):
            for j in self.get(f'/v1/jobs?state={s}')['jobs']:
                self.command('cancel', j['id'])
        until(lambda: not self.busy(), seconds, lambda: f'{self.busy()} to be over')

    def kept_back(self):
        """What nobody can be given now, with the reasons."""
        held = [f'{x["id"]} is quarantined: {x.get("why") or ""}' for x in self.get('/v1/leases?state=live')['leases'] if x['state'] == 'quarantined']
        return held + [f'GPU {x.get("index")} is {x["state"]}: {x.get("reason") or ""}' for x in self.get('/v1/gpus')['gpus'] if x['state'] != 'ok']

    def lease(self, lease):
        """All of it: lease, grants, history, scrubs."""
        return self.get(f'/v1/leases/{lease}')
