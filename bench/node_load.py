# SPDX-License-Identifier: Apache-2.0
"""What the daemon costs with much to do, beside what it costs with nothing: printed by `make bench`.

1,000 live leases (parts of 64 simulated H100, the work is `sleep`), 10,000 jobs that wait, 200 API clients. Real keepers and
cgroups, but without the gate: a governor takes 128 leases (core/govern), and a thousand wardens are not what is measured here.
$BH_LOAD_LEASES, $BH_LOAD_JOBS and $BH_LOAD_CLIENTS make it smaller; $BH_LOAD_BUILT (the src folder of another build) has the keepers and the rest:
a thousand of them with AddressSanitizer, beside a daemon that has it too, do not fit into a small machine. The machine's own load, and what a virtual one lost to others while reads were timed, are printed beside the numbers: they
are worth as much as those are low. A mark says which are past their bounds; timings fail nothing here.

What is in the numbers: reads are timed by the client, with its own Python and with the wait for a processor that it shares with
keepers, tenants and the simulated driver. Idle CPU is the daemon's with all children that it waited for, so with every look at
the cards. The process that listens to the driver's events is on a line of its own: the simulated library asks each of its cards
over a socket several times a second, where the vendor's sleeps in the kernel. A restart is from kill -9 to the first answer of
the API, asked for every few milliseconds.

Usage: node_load.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT
"""
import http.client
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import socket
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'tests' / 'node'))
import lab  # noqa: E402

LEASES = int(os.environ.get('BH_LOAD_LEASES', '1000'))
JOBS = int(os.environ.get('BH_LOAD_JOBS', '10000'))
CLIENTS = int(os.environ.get('BH_LOAD_CLIENTS', '200'))
GRANTS = 200
READERS = 4  # processes that the clients are spread over
READ_S = 20
SCRAPES = 50
IDLE_S = 60
FIRST_UID = 50000
GROUP = 50000
# Of a node with all of it.
BOUNDS = {'idle CPU, % of a core': 0.5, 'read p99, ms': 5, 'grant p99, ms': 20, 'memory, MiB': 64, 'restart, s': 1}
ROUTES = ('/v1/status', '/v1/jobs?limit=50&newest=true', '/v1/quota', '/v1/leases?limit=50', '/v1/gpus/3', '/v1/jobs/J7',
          '/v1/tenants', '/v1/usage')
NETWORK = 'network: {policy: default-deny, rdma: none}, storage: {quota: 1TiB}, costCenter: cc-1'
POLICY = f'''\
bulkhead: 1
tenants:
  - {{name: crowd, class: research, quota: {{model: fairshare, gpus: 62, max: 62, weight: 100, borrow: true}}, {NETWORK}}}
  - {{name: express, class: research, quota: {{model: fairshare, gpus: 2, max: 2, weight: 100, borrow: true}}, {NETWORK}}}
pools:
  - {{name: crowd, match: {{gpus: {list(range(62))}}}, mechanism: fractional, backing: gate, tier: process, tenants: [crowd],
     caps: {{memory: 4GiB, compute: 6%}}}}
  - {{name: express, match: {{gpus: [62, 63]}}, mechanism: fractional, backing: gate, tier: process, tenants: [express],
     caps: {{memory: 4GiB, compute: 6%}}}}
roles:
  - {{subject: "user:root", role: operator}}
  - {{subject: "group:{GROUP}", role: viewer}}
'''


# Beside the daemon stands a keeper that leaves the gate out of its spec; all else is the real one's.
KEEPER = '''#!/bin/sh
for spec; do :; done
sed -e 's/"gate": true/"gate": false/' -e '/"capBytes"/d; /"view"/d; /"share": {/,/},/d' "$spec" > "${spec%/*}/open.json"
exec REAL --report "${spec%/*}/open.json"
'''


def other_keeper(n):
    built = pathlib.Path(os.environ.get('BH_LOAD_BUILT', pathlib.Path(lab.DAEMON).parent.parent))
    for name in ('node', 'keeper'):
        os.makedirs(f'other/{name}')
    for name in ('scrub', 'warden', 'governor', 'oci', 'store'):
        os.symlink(built / name, f'other/{name}')
    shutil.copy(lab.DAEMON, 'other/node/bulkheadd')
    lab.write('other/keeper/bulkhead-keeper', KEEPER.replace('REAL', str(built / 'keeper/bulkhead-keeper')))
    os.chmod('other/keeper/bulkhead-keeper', 0o755)
    n.program = os.path.abspath('other/node/bulkheadd')


def p(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * q))] if ordered else float('nan')


class Line:
    """One open connection, as one user."""

    def __init__(self, path, uid=0):
        self.path, self.uid, self.lost = path, uid, 0
        self.open()

    def open(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        if self.uid:
            os.setgroups([GROUP])
            os.setegid(GROUP)
            os.seteuid(self.uid)
        try:
            self.connect(self.path)
        finally:
            if self.uid:
                os.seteuid(0)
                os.setegid(0)

    def connect(self, path):
        while True:
            try:
                return self.sock.connect(path)
            except BlockingIOError:  # more at once than are let in
                time.sleep(0.01)

    def ask(self, method, where, body=None):
        data = b'' if body is None else json.dumps(body).encode()
        began = time.monotonic()
        head = f'{method} {where} HTTP/1.1\r\nHost: b\r\nContent-Length: {len(data)}\r\n\r\n'.encode()
        try:
            self.sock.sendall(head + data)
        except BrokenPipeError:  # it was closed between two requests
            self.lost += 1
            self.open()
            self.sock.sendall(head + data)
        r = http.client.HTTPResponse(self.sock, method=method)
        r.begin()
        text = r.read()
        return r.status, text, time.monotonic() - began


def reader(path, first, count, seconds, pipe):
    lines = [Line(path, FIRST_UID + first + i) for i in range(count)]
    took, bad = [], 0
    end = time.monotonic() + seconds
    k = 0
    while time.monotonic() < end:
        status, _, s = lines[k % count].ask('GET', ROUTES[k % len(ROUTES)])
        took.append(s)
        bad += status != 200
        k += 1
        time.sleep(max(0, 1 / count - s))  # each client about once a second
    pipe.send((took, bad))


def reads(n, during=lambda: None):
    path = f'{n.run}/api.sock'
    ends, workers = [], []
    for i in range(READERS):
        mine, theirs = multiprocessing.Pipe()
        share = CLIENTS // READERS
        w = multiprocessing.Process(target=reader, args=(path, i * share, share, READ_S, theirs))
        w.start()
        ends.append(mine)
        workers.append(w)
    result = during()
    took, bad = [], 0
    for e, w in zip(ends, workers):
        t, b = e.recv()
        took += t
        bad += b
        w.join()
    return took, bad, result


def grants(n):
    """From the request to the commit that makes slices its own, as the store has both; and what the caller waited for."""
    line = Line(f'{n.run}/api.sock')
    waited, ids = [], []
    for _ in range(GRANTS):
        status, text, s = line.ask('POST', '/v1/jobs', {'tenant': 'express', 'argv': ['true'], 'milli': 60, 'memory_mib': 1024})
        if status == 201:
            waited.append(s * 1000)
            ids.append(int(json.loads(text)['id'][1:]))
        time.sleep(READ_S / GRANTS / 2)
    lab.until(lambda: not n.rows("SELECT id FROM jobs WHERE tenant = 'express' AND state <> 'ended'"), 600)
    rows = n.rows("SELECT h.at_ms - j.submit_ms ms FROM jobs j JOIN leases l ON l.job = j.id JOIN lease_history h ON h.lease = l.id "
                  "WHERE j.id BETWEEN ? AND ? AND j.tenant = 'express' AND h.new = 'preparing'", min(ids), max(ids))
    return [r['ms'] for r in rows], waited


def cpu_s(pid):
    f = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return sum(int(x) for x in f[11:15]) / os.sysconf('SC_CLK_TCK')  # with children that were waited for


def listener_s(pid):
    """Of the children that are there all the time."""
    mine = []
    for f in pathlib.Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = f.read_text().rpartition(')')[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            mine.append(sum(int(x) for x in fields[11:13]) / os.sysconf('SC_CLK_TCK'))
    return max(mine, default=0)


def restart(n):
    """From kill -9 until it answers."""
    n.kill()
    began = time.monotonic()
    n.spawn()
    while not n.answers():
        assert time.monotonic() < began + 120, n.log()[-2000:]
        time.sleep(0.005)
    return time.monotonic() - began


def processors():
    """Of all time of this machine's processors: in all, and taken by others on the same hardware."""
    fields = [int(x) for x in pathlib.Path('/proc/stat').read_text().split('\n', 1)[0].split()[1:9]]
    return sum(fields), fields[7]


def rss_mib(pid):
    text = pathlib.Path(f'/proc/{pid}/status').read_text()
    return {k: int(text.partition(k + ':')[2].split()[0]) / 1024 for k in ('VmRSS', 'RssAnon', 'RssShmem', 'VmHWM')}


def scrapes(n):
    """GET /metrics as an operator: everything there is."""
    line = Line(f'{n.run}/api.sock')
    took = []
    for _ in range(SCRAPES):
        began = time.monotonic()
        status, text, _ = line.ask('GET', '/metrics')
        took.append((time.monotonic() - began) * 1000)
        assert status == 200, text
        time.sleep(0.2)
    return p(took, 0.5), p(took, 0.99), len(text) / 1024


def measure(n, title):
    out = {}
    time.sleep(35)  # nobody has asked anything for a while
    began, heard = cpu_s(n.process.pid), listener_s(n.process.pid)
    time.sleep(IDLE_S)
    out['idle CPU, % of a core'] = (cpu_s(n.process.pid) - began) / IDLE_S * 100
    out['its listener, simulated, %'] = (listener_s(n.process.pid) - heard) / IDLE_S * 100
    before = processors()
    took, bad, (granted, waited) = reads(n, lambda: grants(n))
    whole, stolen = (b - a for a, b in zip(before, processors()))
    out['reads'] = len(took)
    out['reads that failed'] = bad
    out['read p50, ms'] = p(took, 0.5) * 1000
    out['read p99, ms'] = p(took, 0.99) * 1000
    out['grants'] = len(granted)
    out['grant p50, ms'] = p(granted, 0.5)
    out['grant p99, ms'] = p(granted, 0.99)
    out['submit answered p99, ms'] = p(waited, 0.99)
    out['scrape p50, ms'], out['scrape p99, ms'], out['scrape, KiB'] = scrapes(n)
    memory = rss_mib(n.process.pid)
    out['memory, MiB'] = memory['VmRSS']
    out['of it anonymous, MiB'] = memory['RssAnon']
    out['restart, s'] = restart(n)
    out['load of the machine'] = os.getloadavg()[0]
    out['stolen from it, %'] = stolen / whole * 100
    print(f'# {title}: measured', flush=True)
    return out


def fill(n):
    line = Line(f'{n.run}/api.sock')
    made = 0
    began = time.monotonic()
    while made < LEASES + JOBS:
        status, text, _ = line.ask('POST', '/v1/jobs', {'tenant': 'crowd', 'argv': ['sleep', '100000'], 'milli': 55, 'memory_mib': 4096})
        if status == 429:
            time.sleep(0.2)
            continue
        assert status == 201, text
        made += 1
        if made == LEASES:
            lab.until(lambda: n.rows("SELECT count(*) n FROM leases WHERE state = 'active'")[0]['n'] >= LEASES, 900,
                      lambda: n.rows('SELECT state, why, count(*) FROM jobs GROUP BY state, why'))
            print(f'# {LEASES} leases are active after {time.monotonic() - began:.0f} s', flush=True)
            # No room for more: what comes now waits.
            for i in range(62):
                assert line.ask('POST', f'/v1/gpus/{i}/cordon', {})[0] == 200
    print(f'# {JOBS} jobs wait after {time.monotonic() - began:.0f} s', flush=True)


def main():
    if os.geteuid() != 0:
        print('# needs root')
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        n = lab.Node('many', POLICY)
        other_keeper(n)
        try:
            n.start()
            empty = measure(n, 'empty')
            fill(n)
            full = measure(n, 'full')
        except BaseException:
            print(n.log()[-4000:])
            raise
        finally:
            n.stop()
            os.chdir('/')
    print(f'{"":28}{"empty":>12}{"full":>12}{"bound":>10}   {LEASES} leases, {JOBS} waiting, {CLIENTS} clients')
    for k, v in empty.items():
        bound = BOUNDS.get(k)
        past = '' if bound is None or full[k] <= bound else '   past its bound'
        print(f'{k:28}{v:12.2f}{full[k]:12.2f}{"" if bound is None else f"{bound:g}":>10}{past}')


if __name__ == '__main__':
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
