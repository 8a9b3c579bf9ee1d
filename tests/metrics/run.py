# SPDX-License-Identifier: Apache-2.0
"""The real daemon, scraped: numbers are what the books say, a tenant sees itself, and what goes wrong raises its alert in Prometheus.

Debian's Prometheus and its promtool, with the rules that are shipped; only how long an alert waits is shortened. Only the silicon is
simulated. Usage: run.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT NODE-FAULTS TENANT
"""
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'node'))
import lab  # noqa: E402
from lab import NOBODY, FrailNode, Node, Skip, environment, has, same, until, write  # noqa: E402

FAULTS, TENANT = (os.path.abspath(a) for a in sys.argv[6:8])
RULES = lab.tap.ROOT / 'packaging/prometheus/bulkhead.rules.yml'
OPEN = {'Accept': 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5'}
HOUR_MS = 3600 * 1000
QUIET = ['ASAN_OPTIONS=detect_leaks=0']  # sanitizers look for leaks by ptrace, which the filter refuses


def neighbour(name):
    """A test file of the daemon's, for what it makes."""
    spec = importlib.util.spec_from_file_location('node_' + name, pathlib.Path(lab.__file__).parent / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- reading ----

LINE = re.compile(r'^(\w+)(?:\{(.*)\})? (-?[0-9.]+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def samples(text):
    """{(name, frozenset of labels): value}; a line that is none, and a series that comes twice, fail."""
    out = {}
    for line in text.splitlines():
        if line.startswith('#'):
            continue
        m = LINE.match(line)
        assert m, f'no sample: {line!r}'
        key = (m.group(1), frozenset(LABEL.findall(m.group(2) or '')))
        assert key not in out, f'twice: {line}'
        out[key] = float(m.group(3))
    return out


def scrape(n, **kw):
    r = n.get('/metrics', **kw)
    same(r.status, 200, repr(r))
    return samples(r.body.decode())


def value(found, name, **labels):
    """Of the one series that has these labels."""
    hits = [v for (k, ls), v in found.items() if k == name and set(labels.items()) <= set(ls)]
    same(len(hits), 1, f'{name}{labels}: {sorted(map(str, (k for k in found if k[0] == name)))}')
    return hits[0]


def total(found, name, **labels):
    return sum(v for (k, ls), v in found.items() if k == name and set(labels.items()) <= set(ls))


# ---- Prometheus ----

class Door(threading.Thread):
    """TCP to the daemon's unix socket, byte for byte, so that a scraper reaches it with a token."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                c, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(self.path)
        except OSError:
            c.close()
            return
        threading.Thread(target=self.pump, args=(s, c), daemon=True).start()
        self.pump(c, s)

    @staticmethod
    def pump(a, b):
        with contextlib.suppress(OSError):
            while True:
                data = a.recv(65536)
                if not data:
                    break
                b.sendall(data)
        for s in (a, b):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as s:
        return s.getsockname()[1]


class Prometheus:
    def __init__(self, n, tokens):
        program = shutil.which('prometheus')
        if not program:
            raise Skip('prometheus is not installed (tools/setup test)')
        self.door = Door(f'{n.run}/api.sock')
        self.port = free_port()
        # An alert need not wait here, and a day has not passed when the test is over.
        write('prom/rules.yml', re.sub(r'for: \w+', 'for: 0s', RULES.read_text()))
        jobs = []
        for job, token in tokens.items():
            write(f'prom/{job}.token', token)
            jobs.append(f'  - job_name: {job}\n    authorization: {{credentials_file: {job}.token}}\n'
                        f'    static_configs: [{{targets: ["127.0.0.1:{self.door.port}"]}}]\n')
        write('prom/prometheus.yml', 'global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n'
              'rule_files: [rules.yml]\nscrape_configs:\n' + ''.join(jobs))
        with open('prom/log', 'wb') as log:
            self.process = subprocess.Popen(
                [program, '--config.file=prom/prometheus.yml', '--storage.tsdb.path=prom/data',
                 f'--web.listen-address=127.0.0.1:{self.port}'], stdout=log, stderr=log, env=environment())
        until(self.is_ready, 60, self.log)

    def log(self):
        return pathlib.Path('prom/log').read_text(errors='replace')[-3000:]

    def ask(self, path, **query):
        url = f'http://127.0.0.1:{self.port}{path}' + ('?' + urllib.parse.urlencode(query) if query else '')
        with urllib.request.urlopen(url, timeout=10) as r:
            return json.loads(r.read())['data']

    def is_ready(self):
        assert self.process.poll() is None, self.log()
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f'http://127.0.0.1:{self.port}/-/ready', timeout=5) as r:
                return r.status == 200
        return False

    def query(self, expr):
        return [(r['metric'], float(r['value'][1])) for r in self.ask('/api/v1/query', query=expr)['result']]

    def firing(self):
        return {a['labels']['alertname'] for a in self.ask('/api/v1/alerts')['alerts'] if a['state'] == 'firing'}

    def fires(self, *names, seconds=60, meanwhile=lambda: None):
        def all_fire():
            meanwhile()
            return set(names) <= self.firing()
        until(all_fire, seconds, lambda: f'{names} did not fire, but {self.firing()}')

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.door.close()


@contextlib.contextmanager
def running(n):
    try:
        yield n
        assert 'ERROR: AddressSanitizer' not in n.log() and 'runtime error' not in n.log(), n.log()[-6000:]
    except BaseException:
        if pathlib.Path('daemon.log').exists():
            print('# ' + n.log()[-4000:].replace('\n', '\n# '))
        raise
    finally:
        n.stop()


def token(n, role, **more):
    r = n.post('/v1/tokens', {'role': role, **more})
    assert r.ok, repr(r)
    return r.json['token']


def booked(n):
    """A program with memory on a card: the driver books it on the lease, and the governor tells of its share. On a machine with too
    much to do the gate may take it for a tenant that makes it wait, and end it: then another one."""
    for _ in range(6):
        job = n.submit('lab', TENANT, 'hold', '64MiB', '600', milli=250, memory_mib=1024, env=QUIET)
        found = []

        def seen():
            lease = n.leases_of(job)
            now = scrape(n)
            found[:] = [total(now, 'bulkhead_lease_memory_used_bytes', lease=lease[0]) >= 64 << 20 if lease else False,
                        any(k[0] == 'bulkhead_lease_share_target_ratio' and ('lease', lease[0]) in k[1] for k in now) if lease else False]
            return all(found) or n.state_of(job) == 'ended'
        until(seen, 90, lambda: (found, n.job(job)))
        if all(found):
            n.post(f'/v1/jobs/{job}/cancel')
            return
    raise AssertionError(n.job(job))


# ---- tests ----

def check_metrics(text):
    """promtool has nothing to say, but for the label modelName, which is DCGM's own."""
    program = shutil.which('promtool')
    if not program:
        raise Skip('promtool is not installed (tools/setup test)')
    done = subprocess.run([program, 'check', 'metrics'], input=text, capture_output=True, text=True, check=False, timeout=60)
    said = [x for x in (done.stdout + done.stderr).splitlines() if not re.match(r"DCGM_\w+ label names should be written in 'snake_case'", x)]
    same(said, [])
    assert done.returncode in (0, 3), done


def ledger(n):
    return {(r['tenant'], r['mechanism']): r['v'] / 1e6 for r in n.rows(
        'SELECT tenant, mechanism, sum(milli * (to_ms - from_ms)) v FROM usage WHERE to_ms IS NOT NULL GROUP BY 1, 2')}


def test_numbers_are_the_books():
    with lab.node() as n:
        held = n.submit('lab', 'sleep', '600', milli=250, memory_mib=1024)
        for j in [n.submit('chat', 'sleep', '1'), n.submit('train', 'sleep', '1', gpus=2), n.submit('chat', 'true')]:
            n.wait(j)
        lease = n.active(held)
        n.submit('chat', 'sleep', '600')
        n.submit('chat', 'sleep', '600')
        late = n.submit('chat', 'sleep', '600')  # over its quota
        until(lambda: total(scrape(n), 'bulkhead_tenant_waiting_jobs', tenant='chat', reason='over quota') == 1, 60,
              lambda: [k for k in scrape(n).items() if 'jobs' in k[0][0] or k[0][0] == 'bulkhead_slices'])
        # What the others had is scrubbed.
        until(lambda: value(scrape(n), 'bulkhead_slices', kind='whole', state='free') == 8 - 2, 60)
        found = scrape(n)
        same(value(found, 'bulkhead_build_info', simulated='true'), 1)
        same((value(found, 'bulkhead_node_gpus'), value(found, 'bulkhead_tenant_quota_gpus', tenant='chat')), (8, 2))
        same((value(found, 'bulkhead_tenant_granted_gpus', tenant='lab'), value(found, 'bulkhead_lease_granted_gpus', lease=lease)),
             (0.25, 0.25))
        same(value(found, 'bulkhead_lease_memory_limit_bytes', lease=lease), 1 << 30)
        same(value(found, 'bulkhead_tenant_queue_wait_seconds_count', tenant='train'), 1)
        same(total(found, 'bulkhead_scrubs_total', kind='whole', verdict='clean'), 4)
        assert value(found, 'bulkhead_tenant_oldest_wait_seconds', tenant='chat') > 0, late
        booked(n)
        check_metrics(n.get('/metrics').body.decode())
        open_text = n.get('/metrics', headers=OPEN).body.decode()
        assert open_text.endswith('\n# EOF\n')
        assert {k[0] for k in samples(open_text)} == {k[0] for k in scrape(n)}
        # The tenant's own scrape: itself, and nobody else's name.
        mine = n.get('/metrics', uid=NOBODY).body.decode()
        for name in ('chat', 'train', 'nightly', 'audit', 'http_requests'):
            assert name not in mine, name
        has(mine, 'bulkhead_tenant_granted_gpus{tenant="_others"} 2\n')
        own = {f'L{r["id"]}' for r in n.rows("SELECT id FROM leases WHERE tenant = 'lab'")}
        shown = set(re.findall(r'lease="(\w+)"', mine))
        assert lease in shown and shown <= own, (shown, own)
        restart(n)


COUNTED = re.compile(r'bulkhead_(tenant_(gpu_seconds|memory_mebibyte|queue_wait|preemptions)|gpu_granted_seconds|scrubs|audit_records)')


def counted(n):
    """Counters that are made from the books."""
    found = {k: v for k, v in scrape(n).items() if COUNTED.match(k[0])}
    assert len(found) > 20, found
    return found


def never_falls(before, after):
    for k, v in before.items():
        assert after.get(k, -1) >= v, f'{k} fell from {v} to {after.get(k)}'


def restart(n):
    """Counters of the books go on where they were, and come to what the ledger has when all is over."""
    before = counted(n)
    n.again()
    never_falls(before, counted(n))
    for j in n.get('/v1/jobs?state=running').json['jobs'] + n.get('/v1/jobs?state=waiting').json['jobs']:
        n.post(f'/v1/jobs/{j["id"]}/cancel')
    n.quiet()
    same({(dict(k[1])['tenant'], dict(k[1])['mechanism']): v for k, v in scrape(n).items()
          if k[0] == 'bulkhead_tenant_gpu_seconds_total'}, ledger(n))
    same(round(total(scrape(n), 'bulkhead_gpu_granted_seconds_total') * 1e6), round(sum(ledger(n).values()) * 1e6))


def test_counters_outlive_what_is_dropped():
    """History goes, the daemon is started anew, and no counter falls or counts anything twice."""
    with lab.node() as n:
        for j in [n.submit('chat', 'sleep', '1'), n.submit('train', 'true', gpus=2), n.submit('lab', 'true', milli=250, memory_mib=1024)]:
            n.wait(j)
        n.quiet()
        before = counted(n)
        same(total(before, 'bulkhead_tenant_queue_wait_seconds_count'), 3)
        n.policy = write('policy.yaml', lab.policy() + 'audit: {history: 1s}\n')
        assert n.post('/v1/policy/apply', {'text': lab.policy() + 'audit: {history: 1s}\n'}).ok
        n.again()
        until(lambda: not n.rows('SELECT id FROM jobs'), 60)
        same(n.rows('SELECT id FROM usage UNION ALL SELECT id FROM scrubs WHERE lease IS NOT NULL'), [], 'what is left')
        kept = {k: v for k, v in before.items() if k[0] != 'bulkhead_audit_records_total'}
        never_falls(before, counted(n))
        for _ in range(2):
            n.again()
            after = counted(n)
            never_falls(before, after)
            same({k: after[k] for k in kept}, kept)


CUT = """\
bulkhead: 1
tenants:
  - {name: train, class: training, costCenter: cc-2, quota: {model: hard, gpus: 2}, network: {policy: default-deny, rdma: none}, storage: {quota: 1TiB}}
pools:
  - {name: cut, match: {gpus: [0, 1]}, mechanism: mig, tier: process, tenants: [train], profiles: [1g.10gb, 3g.40gb]}
roles:
  - {subject: "user:root", role: operator}
"""


def test_what_cut_cards_have_left():
    """Compute beside memory that is all given away is nobody's: not idle, and no fragment of anything. Nor is a crumb of compute."""
    with lab.node('mig', CUT) as n:
        def left():
            found = scrape(n)
            return {'idle': value(found, 'bulkhead_node_idle_gpus'), 'fragmented': value(found, 'bulkhead_node_fragmented_gpus'),
                    **{why: value(found, 'bulkhead_node_stranded_gpus', why=why) for why in ('memory', 'compute', 'cordoned', 'failed')}}
        none = {'fragmented': 0, 'memory': 0, 'compute': 0, 'cordoned': 0, 'failed': 0}
        same(left(), {**none, 'idle': 4})
        halves = [n.submit('train', 'sleep', '600', pool='cut', profile='3g.40gb') for _ in range(4)]
        for j in halves:
            n.active(j)
        late = n.submit('train', 'sleep', '600', pool='cut', profile='1g.10gb')
        until(lambda: total(scrape(n), 'bulkhead_tenant_waiting_jobs', tenant='train') == 1, 60)
        same(left(), {**none, 'idle': 2, 'memory': 0.288})
        # A half goes: the one that waits has its place, and the rest of that card can be given away.
        n.post(f'/v1/jobs/{halves[0]}/cancel')
        n.active(late)
        until(lambda: left()['memory'] == 0.144, 60, left)
        now = left()
        same(now, {**none, 'idle': now['idle'], 'fragmented': round(now['idle'] - 2, 3), 'memory': 0.144})
        assert 2.3 < now['idle'] < 2.6, now
        for j in [*halves[1:], late]:
            n.post(f'/v1/jobs/{j}/cancel')
        n.quiet()


def starve(n, p):
    """Borrowers that are slow to go while somebody waits for what is his."""
    deaf = ('sh', '-c', 'trap "" TERM; while :; do sleep 1; done')
    for _ in range(3):
        n.active(n.submit('nightly', *deaf, can_requeue=True))
    n.submit('train', 'sleep', '600', gpus=2)
    p.fires('BulkheadTenantStarving')


def greedy(n):
    """A lease whose work asks again and again for more than it has."""
    loop = f'i=0; while [ $i -lt 120 ]; do {TENANT} hold 1GiB 0; i=$((i + 1)); done'
    return n.submit('lab', '/bin/sh', '-c', loop, milli=250, memory_mib=64, env=QUIET)


def test_gate_refusals():
    """Counted when the lease is over, and the alert is raised then. On a machine with too much to do the gate may take the program for one
    that makes it wait, and end it early: then another; where that happens each time, nothing was tested and that is said."""
    with lab.node() as n:
        p = Prometheus(n, {'bulkhead': token(n, 'viewer', subject='service:prometheus')})
        try:
            n.wait(n.submit('lab', 'true', milli=250, memory_mib=64))  # an increase has a beginning
            until(lambda: p.query('bulkhead_tenant_gate_refusals_total{tenant="lab",kind="memory"}'), 60, p.log)
            for _ in range(3):
                job = greedy(n)
                n.wait(job)
                n.quiet()
                counted_now = total(scrape(n), 'bulkhead_tenant_gate_refusals_total', tenant='lab', kind='memory')
                if counted_now > 100:
                    p.fires('BulkheadGateRefusals')
                    return
                has(n.job(job)['job']['why'] or '', 'kept the warden waiting')
        finally:
            p.stop()
    raise Skip('this machine is too busy for the gate: BulkheadGateRefusals was not tested')


def test_alerts_fire():
    """Each fault is made on the real daemon, and its alert is raised by the real Prometheus."""
    with running(FrailNode(FAULTS, lab.LARGE)) as n:
        neighbour('run').other_scrubber(n)
        n.start()
        p = Prometheus(n, {'bulkhead': token(n, 'viewer', subject='service:prometheus'),
                           'tenant': token(n, 'tenant-user', subject='service:lab', tenant='lab')})
        try:
            n.wait(n.submit('chat', 'true'))
            until(lambda: len(p.query('up == 1')) == 2, 40, p.log)
            until(lambda: p.query('bulkhead_scrubs_total{job="bulkhead",kind="whole",verdict="clean"} > 0'), 90)
            same(p.query('count(bulkhead_tenant_leases{job="tenant",tenant!~"lab|_others"})'), [], 'names in a tenant\'s scrape')
            same(p.firing() - {'BulkheadDiskNearlyFull'}, set(), 'nothing is wrong yet')
            assert n.post('/v1/gpus/7/cordon', {'reason': 'a test'}).ok
            write('skip', '')
            dirty = n.submit('chat', 'true')
            until(lambda: n.leases_of(dirty), 60, n.log)
            n.wait_lease(n.leases_of(dirty)[0], 'quarantined')
            os.unlink('skip')
            p.fires('BulkheadGpuCordoned', 'BulkheadSliceQuarantined', 'BulkheadScrubFailed')
            n.broken('gpu', '6', 'lost')
            for link in range(18):
                n.broken('gpu', '5', 'link', str(link), 'down')
            starve(n, p)
            p.fires('BulkheadGpuFailed', 'BulkheadFabricMismatch')
            # Something waits, and the day goes on.
            n.submit('chat', 'sleep', '600', gpus=2)
            n.set_faults(passed_ms=5 * HOUR_MS)
            p.fires('BulkheadQueueWaitTooLong')
            if n.small:
                with open(f'{n.state}/ballast', 'wb') as f:
                    f.write(b'\0' * (os.statvfs(n.state).f_bavail * os.statvfs(n.state).f_frsize - (1 << 20)))
                p.fires('BulkheadDiskNearlyFull')
                os.unlink(f'{n.state}/ballast')
            # A record that is not signed yet, and then no disk to sign it on.
            assert n.post('/v1/gpus/4/cordon', {'reason': 'a test'}).ok
            n.set_faults(passed_ms=6 * HOUR_MS, permille=1000)
            p.fires('BulkheadStoreFailing', 'BulkheadAuditFailing', 'BulkheadAuditLag',
                    meanwhile=lambda: n.post('/v1/jobs', {'tenant': 'chat', 'argv': ['true'], 'gpus': 2}))  # each is something to write
            n.set_faults(passed_ms=6 * HOUR_MS)
            n.kill()
            p.fires('BulkheadNodeDown')
        finally:
            p.stop()


def test_a_driver_that_refuses_everything():
    """Looks go on and bring nothing: what is known grows old, for as long as that lasts, and the alert is raised."""
    with running(FrailNode(FAULTS)) as n:
        n.start()

        def age():
            return value(scrape(n), 'bulkhead_silicon_age_seconds')
        until(lambda: total(scrape(n), 'DCGM_FI_DEV_GPU_TEMP') > 0, 60)
        n.broken('calls', 'fail', '999', 'every', '1')
        until(lambda: not total(scrape(n), 'DCGM_FI_DEV_GPU_TEMP'), 60)  # a look came back with nothing
        until(lambda: age() > 12, 60, age)  # and so did the next ones: there is one every five seconds
        has(json.dumps(n.get('/v1/doctor').json), 'the driver refuses every reading of every GPU')
        n.set_faults(passed_ms=240 * 1000)
        p = Prometheus(n, {'bulkhead': token(n, 'viewer', subject='service:prometheus')})
        try:
            p.fires('BulkheadSiliconStale')
            assert age() > 240 + 12, 'a look that brings nothing makes it young again'
        finally:
            p.stop()
        n.broken('mend')
        until(lambda: age() < 12, 60, age)


def test_an_old_driver_that_clears_nothing():
    """No policy holds on such a machine, so none is in force; the daemon serves, and says what is wrong."""
    with running(Node('old-driver')) as n:
        n.broken('scrub', 'off')
        n.program = os.path.abspath(write('bare', f'#!/bin/sh\nexec {lab.DAEMON}\n'))
        os.chmod(n.program, 0o755)
        n.start()
        p = Prometheus(n, {'bulkhead': token(n, 'viewer', subject='service:prometheus')})
        try:
            p.fires('BulkheadSharingRefused', 'BulkheadAdvisoryOpen')
        finally:
            p.stop()


if __name__ == '__main__':
    lab.tap.main(globals())
