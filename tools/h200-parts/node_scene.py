# SPDX-License-Identifier: Apache-2.0
"""The scene of a node with one card: whole, shared by time, shared by MPS; one refused, one preempted, one waiting; a daemon that is killed.

Each part leaves the card empty for the next one, however it ended.
"""
import contextlib
import json
import os
import pathlib
import signal
import threading
import time

from card import GIB, MIB, settle
from node_daemon import Over, until
from table import gib

TENANT = '  - {name: %s, class: %s, costCenter: cc-%d, quota: %s,\n     network: {policy: default-deny, rdma: none}, storage: {quota: 1TiB}}\n'
FAIR = '{model: fairshare, gpus: %s, max: 1, weight: 100, borrow: true}'
REST = '''roles:
  - {subject: "user:root", role: operator}
prices: {gpuHour: 2.50, memoryGiBHour: 0.02, currency: EUR, borrowed: 60%}
audit: {enabled: true, retention: 365d}
waivers:
  - {rule: BH-071, scope: "node:*", approver: operator@example.org, expires: 2099-12-31, reason: "the card is lent as it is: how its driver was loaded is not ours"}
'''
# One whole card: it is promised to chat, and lent to train while chat does not want it.
WHOLE = 'bulkhead: 1\ntenants:\n' + TENANT % ('chat', 'serving', 100, FAIR % 1) + TENANT % ('train', 'training', 200, FAIR % 0) + '''pools:
  - {name: cards, match: {gpus: [0]}, mechanism: whole, tier: process, tenants: [chat, train]}
''' + REST
# The same card in parts: half, a quarter and a quarter are promised, nightly has what is left. Three pools have it, one after the other.
CAPS = 'caps: {memory: 20GiB, compute: 50%}'
PARTS = 'bulkhead: 1\ntenants:\n' + ''.join(TENANT % t for t in (
    ('lab', 'research', 300, FAIR % 0.5), ('edge', 'research', 300, FAIR % 0.25), ('train', 'training', 200, FAIR % 0.25),
    ('nightly', 'batch', 300, FAIR % 0))) + f'''pools:
  - {{name: shares, match: {{gpus: [0]}}, mechanism: fractional, backing: gate, tier: process, tenants: [lab, edge, train, nightly],
     {CAPS}}}
  - {{name: turns, match: {{gpus: [0]}}, mechanism: timeslice, replicas: 4, tier: process, tenants: [lab, edge], {CAPS}}}
  - {{name: mps, match: {{gpus: [0]}}, mechanism: mps, tier: process, tenants: [lab], {CAPS}}}
''' + REST
CAP_GIB, OVER_GIB = 20, 24
# What PyTorch and a CUDA context take beside what was asked for is inside the cap; what a scrub cannot have is the driver's own.
COVERED, ADOPTED_GAP_S = 0.97, 1.0
OFF, SETTLE_S = 0.07, 1.0  # how far a part may be from its target, and how long a new division takes
START_S = 60  # until a tenant trains: Python, PyTorch and a context, on a machine that has not read them yet


def lease_of(pid):
    """The lease whose cgroup a process is in, or ''."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f'/proc/{pid}/cgroup').read_text(encoding='utf-8').splitlines():
            for part in line.split('/'):
                if part[:1] == 'L' and part[1:].isdigit():
                    return part
    return ''


class Watch:
    """Ten times a second, by the driver: what each lease's processes have in memory, at most."""

    def __init__(self, nvml, mps=False):
        self.nvml, self.mps, self.most, self.pids, self.stop, self.error = nvml, mps, {}, set(), threading.Event(), ''

    def look(self):
        sums = {}
        for pid, n in {**self.nvml.held(), **(self.nvml.held(mps=True) if self.mps else {})}.items():
            self.pids.add(pid)
            name = lease_of(pid)
            sums[name] = sums.get(name, 0) + n
        for name, n in sums.items():
            self.most[name] = max(self.most.get(name, 0), n)

    def run(self):
        while not self.stop.wait(0.1):
            try:
                self.look()
            except (RuntimeError, OSError) as e:
                self.error = str(e)

    def __enter__(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(5)


def trained(t, d, name, job_id, status=0):
    """A row for what a tenant got done, and how it ended: what it wrote is whole only then."""
    job = d.wait(job_id, 'ended', 40)
    w = d.work(job_id)
    loss = f'loss {w.have.get("first-loss")} to {w.have.get("last-loss")}'
    falls = float(w.have.get('last-loss', 'inf')) < float(w.have.get('first-loss', 0))
    t.row(name, f'{w.steps()} steps, {w.rate():.1f}/s, {loss}; ended: {job["end"]} {job["status"]}', f'to the end, loss falls, status {status}',
          w.ended and falls and job['end'] == 'exited' and job['status'] == status, steps=w.steps(), rate=w.rate(), have=w.have)
    return w


def one_lease(d, job):
    return d.leases_of(job)[-1]['id']


def scrub_row(t, d, name, lease):
    """How its memory was proved clean, by the daemon's record."""
    s = (d.lease(lease)['scrubs'] or [{}])[-1]
    probed, total = s.get('probed_bytes', 0), s.get('total_bytes', 0)
    ratio = probed / total if total else 0.0
    t.row(name, f'{s.get("verdict")}: {probed >> 20} of {total >> 20} MiB probed ({100 * ratio:.2f} %)', f'clean, {100 * COVERED:.0f} % or more',
          s.get('verdict') == 'clean' and ratio >= COVERED, scrub=s)


def empty(t, g, name):
    """The card has nobody, and no more memory in use than before."""
    more = settle(g.nvml, g.before, 5)
    t.row(name, f'{len(g.nvml.held())} processes, {more >> 20:+d} MiB', 'nobody, as before', not g.nvml.held() and abs(more) <= 64 * MIB,
          used=g.nvml.memory().used, before=g.before)


def whole(t, d, g):
    """One tenant has the card to the end; the next one waits, and gets it clean."""
    first = d.submit('chat', 'cards', '-n', 'answers', seconds=g.seconds(6), hold=40, status=3)
    second = d.submit('train', 'cards', '--can', 'requeue', '-n', 'run', seconds=g.seconds(4))
    d.training(first, START_S)
    g.keep('whole', d.shown(), d.shown('leases'), d.shown('why', second))
    state = d.state_of(second)
    t.row('whole: the second waits, and why', d.why(second)[:110], 'waiting', state == 'waiting')
    t.row('whole: on the card', gib(sum(g.nvml.held().values())), '40 GiB and its model', sum(g.nvml.held().values()) >= 40 * GIB)
    w = trained(t, d, 'whole: the first trains', first, 3)
    g.alone = w.rate(w.points[0][0] + 1) if w.points else 0.0
    lease = one_lease(d, first)
    until(lambda: d.lease(lease)['lease']['state'] in ('released', 'quarantined'), 40, lambda: f'{lease} to be released')
    scrub_row(t, d, 'whole: between them', lease)
    d.training(second, START_S)
    steps = {s['to']: s['at_ms'] for s in d.lease(lease)['history']}
    begun = {s['to']: s['at_ms'] for s in d.lease(one_lease(d, second))['history']}
    t.row('whole: the second begins after the scrub', f'{begun["active"] - steps["released"]} ms after it; the scrub took '
          f'{steps["released"] - steps["scrubbing"]} ms', 'not before', begun['preparing'] >= steps['released'] >= steps['scrubbing'],
          scrub_ms=steps['released'] - steps['scrubbing'])
    trained(t, d, 'whole: the second trains', second)
    until(lambda: not d.busy(), 30, lambda: 'the second to be cleared')
    scrub_row(t, d, 'whole: after the second', one_lease(d, second))
    empty(t, g, 'whole: the card after')
    g.keep('whole', d.shown('describe', lease), d.shown('describe', first), d.shown('describe', second))


def said_of(d, leases):
    """What `bulkhead shares` says of each of these leases now."""
    rc, out, _ = d.command('shares', '-o', 'json')
    rows = {r['name']: r for r in json.loads(out)['shares']} if rc == 0 else {}
    return {x: rows[x] for x in leases if x in rows}


def mean(said, lease, key):
    seen = [s[lease][key] for s in said if lease in s and s[lease].get(key) is not None]
    return sum(seen) / len(seen) / 1000 if seen else None


def beside_alone(g, rate):
    return f'{rate:.1f} steps/s, ' + (f'{100 * rate / g.alone:.1f} % of alone' if g.alone else 'alone not measured')


def share_rows(t, d, g, jobs, seconds, label):
    """While all of them train: steps a second of each beside the rate alone, and what the governor says it had."""
    start, said = time.time(), []
    leases = {who: one_lease(d, job) for who, job in jobs.items()}
    while time.time() - start < seconds:
        time.sleep(0.5)
        said.append(said_of(d, leases.values()))
    stop = time.time()
    g.keep(label, d.shown('shares'), d.shown('leases'))
    for who, job in jobs.items():
        rate = d.work(job).rate(start + SETTLE_S, stop)
        part = rate / g.alone if g.alone else 0.0
        late = said[len(said) // 2:]
        target, had = mean(late, leases[who], 'targetPermille'), mean(late, leases[who], 'deliveredPermille')
        known = target is not None and had is not None
        t.row(f'{label}: {who} while {len(jobs)} train', f'{beside_alone(g, rate)}; `shares` says '
              + (f'{100 * had:.1f} of {100 * target:.1f} %' if known else 'nothing'), f'its target within {100 * OFF:.0f} points, if the rate alone is known',
              rate > 0 and known and (not g.alone or abs(part - target) <= OFF), rate=rate, alone=g.alone, part=part, said=said)


def shares(t, d, g):
    """Half, a quarter and a quarter of the card by time, with caps; one too many, one that makes room, one that waits."""
    rc, _, err = d.command('submit', '-t', 'lab', '-p', 'shares', '-g', '0.25', '-m', '60GiB', '--', 'true')
    t.row('shares: 60 GiB of a pool that gives 20', err.strip()[:160], 'refused', rc == 1 and '20' in err, text=err)
    with Watch(g.nvml) as watch:
        jobs = {'lab': d.submit('lab', 'shares', '-g', '0.5', '-m', f'{CAP_GIB}GiB', '-n', 'half', seconds=g.seconds(26), hold=8, over=OVER_GIB),
                'edge': d.submit('edge', 'shares', '-g', '0.25', '-m', f'{CAP_GIB}GiB', '-n', 'quarter', seconds=g.seconds(26), hold=4),
                'nightly': d.submit('nightly', 'shares', '-g', '0.25', '-m', f'{CAP_GIB}GiB', '--can', 'requeue', '-n', 'reports', seconds=60, hold=4)}
        for job in jobs.values():
            d.training(job, START_S)
        share_rows(t, d, g, jobs, g.seconds(6), 'shares')
        # Its quarter is promised to train; nightly has it on loan.
        jobs['train'] = d.submit('train', 'shares', '-g', '0.25', '-m', f'{CAP_GIB}GiB', '--firm', '-n', 'firm', seconds=g.seconds(5), hold=4)
        asked = time.monotonic()
        d.wait(jobs['nightly'], 'waiting', 30)
        gone = d.lease(d.leases_of(jobs['nightly'])[0]['id'])['history']
        reasons = [f'{s.get("cause")}: {s.get("why") or ""}' for s in gone if s['to'] == 'draining']
        t.row('shares: nightly makes room for train', f'{jobs["nightly"]} waits again after {time.monotonic() - asked:.1f} s; its lease ended: '
              f'{"".join(reasons)[:80]}', 'requeued', bool(reasons), history=gone)
        t.row('shares: it waits, and why', d.why(jobs['nightly'])[:120], 'a reason', bool(d.why(jobs['nightly'])))
        g.keep('shares', d.shown('ps'), d.shown('why', jobs['nightly']), d.shown('describe', jobs['nightly']), d.shown('quota'))
        d.training(jobs['train'], START_S)
        now = {who: jobs[who] for who in ('lab', 'edge', 'train') if d.state_of(jobs[who]) == 'running'}
        share_rows(t, d, g, now, g.seconds(4), 'firm')
        for who in ('train', 'lab', 'edge'):
            trained(t, d, f'shares: {who} trains', jobs[who])
        over = d.work(jobs['lab']).over
        t.row(f'shares: lab asks for {OVER_GIB} GiB more', over[:120], 'refused, and goes on', 'refused' in over, over=over)
        d.training(jobs['nightly'], START_S)
        t.row('shares: nightly runs again', f'attempt {len(d.leases_of(jobs["nightly"]))}, {d.work(jobs["nightly"]).steps()} steps', 'its second',
              len(d.leases_of(jobs['nightly'])) == 2)
        d.command('cancel', jobs['nightly'], '--reason', 'seen enough')
        until(lambda: not d.busy(), 30, lambda: f'{d.busy()} to be over')
    held = {who: watch.most.get(one_lease(d, job), 0) for who, job in jobs.items()}
    t.row('shares: most that each had, by the driver', ', '.join(f'{who} {gib(n)}' for who, n in held.items()), f'at most {CAP_GIB} GiB each',
          all(n <= CAP_GIB * GIB for n in held.values()), held=held, error=watch.error)
    g.keep('shares', *(d.shown('describe', one_lease(d, j)) for j in jobs.values()))
    empty(t, g, 'shares: the card after')


def killed(t, d, g):
    """Time slices under a daemon that is killed: the work goes on, the next daemon knows it."""
    jobs = {who: d.submit(who, 'turns', '-g', part, '-m', f'{CAP_GIB}GiB', '-n', 'turns', seconds=g.seconds(13), hold=2)
            for who, part in (('lab', '0.5'), ('edge', '0.25'))}
    for job in jobs.values():
        d.training(job, START_S)
    share_rows(t, d, g, jobs, g.seconds(4), 'turns')
    before = {who: (d.work(job).steps(), one_lease(d, job)) for who, job in jobs.items()}
    d.end(signal.SIGKILL)
    down = time.monotonic()
    time.sleep(1.5)
    began = d.start()
    t.row('killed: the daemon answers again', f'{time.monotonic() - down:.1f} s without one, {began:.2f} s to start', '', None, start_s=began)
    for who, job in jobs.items():
        w, lease = trained(t, d, f'killed: {who} trains', job), one_lease(d, job)
        t.row(f'killed: {who} goes on', f'{before[who][0]} steps before, {w.steps()} at the end; the longest gap {w.longest_gap():.2f} s; '
              f'{len(d.leases_of(job))} attempt', f'the same lease, no gap of {ADOPTED_GAP_S:g} s',
              w.steps() > before[who][0] and lease == before[who][1] and len(d.leases_of(job)) == 1 and w.longest_gap() < ADOPTED_GAP_S)
    until(lambda: not d.busy(), 30, lambda: f'{d.busy()} to be over')
    for who, job in jobs.items():
        usage_row(t, d, f'killed: seconds charged to {who}', one_lease(d, job))
    verify_row(t, d, 'killed: the audit log')
    g.keep('killed', *(d.shown('describe', one_lease(d, j)) for j in jobs.values()))
    empty(t, g, 'killed: the card after')


def usage_row(t, d, name, lease):
    """What was charged, against the times of the lease's own history."""
    at = {s['to']: s['at_ms'] for s in d.lease(lease)['history']}
    ran = at['scrubbing'] - at['active']
    rows = [r for r in d.get('/v1/usage/records')['records'] if str(r['lease']).lstrip('L') == lease[1:]]
    charged = sum(r['to_ms'] - r['from_ms'] for r in rows)
    t.row(name, f'{charged / 1e3:.3f} s in {len(rows)} intervals', f'{ran / 1e3:.3f} s', charged == ran, records=rows)


def verify_row(t, d, name):
    rc, out, err = d.command('audit', 'verify', f'{d.state}/bulkhead.db')
    t.row(name, (out + err).strip().splitlines()[-1][:120] if (out + err).strip() else rc, 'verified', rc == 0, text=out + err)


def servers():
    """MPS's own processes on this machine."""
    found = []
    for p in pathlib.Path('/proc').iterdir():
        with contextlib.suppress(OSError):
            words = (p / 'cmdline').read_bytes().split(b'\0') if p.name.isdigit() else []
            if any(os.path.basename(w).startswith((b'nvidia-cuda-mps', b'mps-control')) for w in words[:2]):
                found.append(int(p.name))
    return found


def mps(t, d, g):
    """Two clients of one tenant through one server."""
    with Watch(g.nvml, mps=True) as watch:
        jobs = {'half': d.submit('lab', 'mps', '-g', '0.5', '-m', f'{CAP_GIB}GiB', '-n', 'half', seconds=g.seconds(9), hold=8, over=OVER_GIB),
                'quarter': d.submit('lab', 'mps', '-g', '0.25', '-m', '10GiB', '--can', 'requeue', '-n', 'quarter',
                                    seconds=g.seconds(9), hold=2, over=9)}
        for job in jobs.values():
            d.training(job, START_S)
        start = time.time()
        t.row('mps: processes of the server', f'{servers()}', 'some', bool(servers()))
        g.keep('mps', d.shown('leases'), d.shown())
        time.sleep(g.seconds(3))
        stop = time.time()
        for name, job in jobs.items():
            w = d.work(job)
            t.row(f'mps: {name} while both train', f'{beside_alone(g, w.rate(start, stop))}; '
                  f'it sees {w.have.get("processors", "?")} processors', 'trains', w.rate(start, stop) > 0, rate=w.rate(start, stop), have=w.have)
        for name, job in jobs.items():
            w = trained(t, d, f'mps: {name} trains', job)
            t.row(f'mps: {name} asks for more than its limit', w.over[:120], 'refused, and goes on', g.judged('refused' in w.over), over=w.over)
        until(lambda: not d.busy(), 30, lambda: f'{d.busy()} to be over')
    t.row('mps: most that each had, by the driver', ', '.join(f'{k or "the server"} {gib(n)}' for k, n in watch.most.items()), '', None,
          held=watch.most, error=watch.error)
    with contextlib.suppress(Over):
        until(lambda: not servers(), 15)
    t.row('mps: the server after', f'{servers()}', 'gone', not servers())
    g.keep('mps', *(d.shown('describe', one_lease(d, j)) for j in jobs.values()))
    empty(t, g, 'mps: the card after')


def books(t, d, g):
    """What is left: nothing of the work, and all of the books."""
    until(lambda: not d.busy(), 20, lambda: f'{d.busy()} to be over')
    quotas = d.get('/v1/quota')['quotas']
    t.row('books: quota in use', {q['tenant']: q['used_milli'] for q in quotas}, 'none', not any(q['used_milli'] or q['waiting_jobs'] for q in quotas))
    rc, out, _ = d.command('usage', '-o', 'json')
    rows = json.loads(out).get('usage', []) if rc == 0 else []
    tenants = {r.get('tenant') for r in rows}
    t.row('books: usage', f'rows of {sorted(map(str, tenants))}', 'every tenant', tenants >= {'chat', 'train', 'lab', 'edge', 'nightly'}, rows=rows)
    states = [x for x in d.get('/v1/leases?state=live')['leases']]
    t.row('books: leases that hold something', len(states), '0', not states)
    verify_row(t, d, 'books: the audit log')
    empty(t, g, 'books: the card')
    g.keep('books', d.shown(), d.shown('gpus'), d.shown('ps', '--all'), d.shown('leases', '--all'), d.shown('usage'), d.shown('usage', '--by', 'mechanism'),
           d.shown('quota'), d.shown('audit', 'verify', f'{d.state}/bulkhead.db'))
    g.keep('audit', d.shown('audit', 'show', f'{d.state}/bulkhead.db'))
    g.keep('usage', d.shown('usage', '--raw'))
    g.keep('doctor', d.shown('doctor'))
