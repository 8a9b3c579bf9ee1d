# SPDX-License-Identifier: Apache-2.0
"""Pause, suspend, what governing costs, who slows whom, and what is left after everything was killed."""
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import card
from card import GIB
from govern_work import SETTLE, Governor, Tenant, end_all, paired, percentile, rates_within, shares, solo, together
from table import last, middle, run

HOLDER = pathlib.Path(__file__).resolve().parent / 'inside_holder.py'


def interrupted(table, tools, name, kind, times):
    """Paused so many times by the governor: how soon it stands still by what its kernels write in the middle of their work, and
    whether what comes of it is what it has to be."""
    t = Tenant(tools, kind, 4 + times // 70, ['--share', 100], 2000, 'held').ready()
    governor = Governor()
    t.go()
    time.sleep(1)
    paused, resumed = [], []
    for _ in range(times):
        paused.append(governor.order(Governor.PAUSE, 'held'))
        time.sleep(0.004)
        resumed.append(governor.order(Governor.RESUME, 'held'))
        time.sleep(0.004)
    to_the_end = t.p.poll() is None
    t.finish(60)
    still, again, late = [], [], 0
    for (sent, told), (woken, _) in zip(paused, resumed):
        gap = [(a, b) for a, b in t.gaps if sent <= a < woken < b]
        still += [(a - sent) / 1e6 for a, _ in gap]
        again += [(b - woken) / 1e6 for _, b in gap]
        late += sum(a > told for a, _ in gap)
    seen, wrong, compared = len(still), t.rest.get('wrong', '?'), t.rest.get('compared', '0')
    # one that is between two kernels just then, or whose results are being looked at, is not seen to stop
    ok = to_the_end and seen >= 0.9 * times and max(still) <= 2 and late == 0 and wrong == '0' and compared != '0'
    text = f'still {middle(still):.2f} ms after the order, p99 {percentile(still, 99):.2f}, at most {max(still):.2f}; goes on after {middle(again):.2f}, at most {max(again):.2f}' if seen else 'never seen still'
    table.row(name, f'{text}; {seen} of {times} seen, {late} after the answer; {wrong} of {compared} results differ', 'still within 2 ms, none differ', ok,
              still=still, again=again, paused=paused, resumed=resumed, gaps=t.gaps, rest=t.rest)


def by_hand(table, tools, kind):
    """Paused for two seconds in the middle of six: a third of the work is missing, no more and no less."""
    name = f'pause by hand, {kind}'
    t = Tenant(tools, kind, 6, ['--share', 100], None, 'held').ready()
    t.go()
    time.sleep(2)
    began = time.monotonic()
    rc1, _, err1 = run(tools.bulkhead, 'pause', 'held', timeout=20)
    took = time.monotonic() - began
    time.sleep(2)
    rc2, _, err2 = run(tools.bulkhead, 'resume', 'held', timeout=20)
    held = time.monotonic() - began
    t.finish(30)
    rate = solo(tools, kind)['rate']
    missing = 6 - t.points[-1][1] / rate if t.points else 0
    table.row(name, f'held {held:.3f} s by the clock, {missing:.3f} s of work missing; the command took {1e3 * took:.1f} ms {last(err1 + err2)}',
              'the same within 0.15 s', rc1 == 0 and rc2 == 0 and abs(missing - held) < 0.15, points=t.points, held=held, missing=missing)


def pause(table, tools):
    table.begin('pause')
    for kind in ('long', 'graph', 'persistent'):
        if tools.only in f'pause by hand, {kind}' and table.enough(f'pause by hand, {kind}', 25):
            try:
                by_hand(table, tools, kind)
            except RuntimeError as e:
                table.row(f'pause by hand, {kind}', e, 'runs', False)
    times = 50 if tools.short else 1000
    for kind, what in (('check', 'kernels'), ('check-graph', 'graphs'), ('check-whole', 'one kernel')):
        name = f'{what} paused {times:,} times'
        if tools.only in name and table.enough(name, 40):
            try:
                interrupted(table, tools, name, kind, times)
            except (RuntimeError, OSError) as e:
                table.row(name, e, 'runs', False)
    name = 'results of work below a cap'
    if tools.only in name and table.enough(name, 95):
        seconds = 6 if tools.short else 80
        t = Tenant(tools, 'check', seconds, ['--cap', '50%'], 2000, 'check').ready()
        t.go()
        time.sleep(seconds - 1)
        row = shares(tools).get('check', {})
        t.finish(30)
        units, pauses = t.points[-1][1] if t.points else 0, row.get('pauses', 0)
        table.row(name, f'{units} units of 2 ms, paused {pauses} times, {t.rest.get("wrong", "?")} of {t.rest.get("compared", "0")} results differ',
                  'none differ, 1,000 pauses' if not tools.short else 'none differ',
                  t.rest.get('wrong') == '0' and pauses >= (1000 if not tools.short else 50), row=row, units=units, rest=t.rest)


def plain_copy(size):
    """Bytes a second between card and host with nothing of ours: into new pages, into pages that were there, pinned."""
    code = f'''
import torch, time
x = torch.empty({size}, dtype=torch.uint8, device="cuda"); x.fill_(7); torch.cuda.synchronize()
def t(f):
    b = time.perf_counter(); r = f(); torch.cuda.synchronize(); return time.perf_counter() - b, r
a, h = t(lambda: x.cpu())
b, _ = t(lambda: x.copy_(h))
p = torch.empty(min({size}, 4 << 30), dtype=torch.uint8, pin_memory=True)
c, _ = t(lambda: p.copy_(x[:p.numel()]))
d, _ = t(lambda: x[:p.numel()].copy_(p))
print({size} / a, {size} / b, p.numel() / c, p.numel() / d)
'''
    rc, out, err = run(sys.executable, '-c', code, timeout=200)
    return [float(v) for v in out.split()] if rc == 0 else [0, 0, 0, 0]


def suspend(table, tools):
    table.begin('suspend')
    for gib in ([2] if tools.short else [10, 60]):
        name = f'PyTorch with {gib} GiB'
        if not table.enough(name, 60 + gib):
            continue
        p = subprocess.Popen([tools.bulkhead, 'run', '--memory', f'{gib + 4}GiB', '--share', '100', '--name', 'holder', '--', sys.executable,
                              str(HOLDER), str(gib)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        with card.limit(300, p):
            line = p.stdout.readline()
            if not line.startswith('ready'):
                table.row(name, last(p.stderr.read()), 'starts', False)
                continue
            nvml = card.Nvml()
            before = nvml.memory()
            began = time.monotonic()
            rc1, out1, err1 = run(tools.bulkhead, 'suspend', 'holder', timeout=200)
            down = time.monotonic() - began
            after = nvml.memory()
            freed, fill = before.used - after.used, after.free // GIB - 4  # a lease and a context take some
            rc, _, err = run(tools.bulkhead, 'run', '--memory', f'{fill + 3}GiB', '--share', '100', '--name', 'other', '--', sys.executable, '-c', f'import torch; '
                             f'x = [torch.full((1 << 30,), 9, dtype=torch.uint8, device="cuda") for _ in range({fill})]; torch.cuda.synchronize()', timeout=100)
            began = time.monotonic()
            rc2, _, err2 = run(tools.bulkhead, 'resume', 'holder', timeout=200)
            up = time.monotonic() - began
            out, _ = p.communicate('check\n')
        ok = rc1 == rc2 == rc == 0 and 'intact' in out and freed > gib * GIB * 0.95 and fill * GIB > before.free
        table.row(name, f'out {down:.2f} s ({gib * GIB / down / 1e9:.1f} GB/s), back {up:.2f} s ({gib * GIB / up / 1e9:.1f} GB/s), freed {freed / GIB:.1f} GiB; '
                  f'meanwhile another filled {fill} GiB, of {before.free / GIB:.1f} that were free before; {out.strip()} {last(err1 + err2 + err)}',
                  'checksum intact, its memory used by another meanwhile', ok, down=down, up=up, freed=freed, gib=gib, fill=fill, free=before.free)
        if table.enough('plain copy', 30 + gib):
            new, there, pin_down, pin_up = plain_copy(gib * GIB)
            table.row(f'plain copy of {gib} GiB', f'to new pages {new / 1e9:.1f} GB/s, back {there / 1e9:.1f} GB/s; pinned {pin_down / 1e9:.1f} and {pin_up / 1e9:.1f} GB/s',
                      new=new, there=there, pin_down=pin_down, pin_up=pin_up)


def cpu_of_pid(pid, others=False):
    """Seconds of processor time that it had so far, by the scheduler's own count: stat has hundredths of a second. others: of its threads but the first, for
    the governor the one that asks for counters."""
    return sum(int((t / 'schedstat').read_text(encoding='utf-8').split()[0]) for t in pathlib.Path(f'/proc/{pid}/task').iterdir()
               if not others or t.name != str(pid)) / 1e9


def cpu_of(names, others=False):
    """The same of all processes of these names."""
    total = {}
    for at in pathlib.Path('/proc').iterdir():
        if at.name.isdigit():
            try:
                if (at / 'comm').read_text(encoding='utf-8').strip() in names:
                    total[int(at.name)] = cpu_of_pid(at.name, others)
            except OSError:
                continue
    return total


def modes_of(said):
    return sorted({r.get('mode') for r in said.values()})


def no_governor(seconds):
    """The one before has ended: the next has another wish. False: it has not."""
    end = time.monotonic() + seconds
    while processes('bulkhead-govern') and time.monotonic() < end:
        time.sleep(0.1)
    return not processes('bulkhead-govern')


def eight(table, tools, name, kind, patience=0, env=None):
    """What eight tenants cost. patience: how long to wait until they share by slices; a tenant that was once seen to leave its slices takes turns for 20 s, then 40."""
    whose = {'governor': ('bulkhead-govern',), 'wardens': ('bulkhead-warden',)}
    before = 8 if env else 2  # by slices alone counters are first asked for after five seconds, and their library is opened for that, once
    no_governor(10)
    ts = [Tenant(tools, kind, 10 + before + patience, ['--share', 10 + i], None, f'o{i}', env).ready() for i in range(8)]
    for t in ts:
        t.go()
    time.sleep(before)
    began, since, changes = time.monotonic(), time.monotonic(), []
    while time.monotonic() < began + patience and time.monotonic() < since + 3:
        now = modes_of(shares(tools))
        if not changes or changes[-1][1] != now:
            changes.append((round(time.monotonic() - began, 1), now))
        since = since if now == ['slices'] else time.monotonic()
        time.sleep(0.25)
    a, at, counters = {w: cpu_of(n) for w, n in whose.items()}, time.monotonic(), sum(cpu_of(whose['governor'], True).values())
    time.sleep(6)
    b, seconds = {w: cpu_of(n) for w, n in whose.items()}, time.monotonic() - at
    counters = 100 * (sum(cpu_of(whose['governor'], True).values()) - counters) / seconds
    said = shares(tools)
    for t in ts:
        t.end() if patience else t.finish(30)
    used = {w: 100 * sum(b[w][p] - a[w][p] for p in b[w] if p in a[w]) / seconds for w in whose}
    modes = modes_of(said)
    bound = 1.0 if env or modes == ['slices'] else 10.0
    table.row(name, f'governor {used["governor"]:.2f} % of a core (of it {counters:.2f} % asking for counters), eight wardens {used["wardens"]:.2f} %; mode {modes}, '
              f'{sum(r.get("pauses", 0) for r in said.values())} pauses{f", modes {changes}" if changes else ""}',
              f'governor at most {bound:g} %', used['governor'] <= bound and len(a['governor']) == 1 and a['governor'].keys() == b['governor'].keys() and len(said) == len(ts),
              before=a, after=b, seconds=seconds, counters=counters, said=said, changes=changes,
              delivered=None if patience else [t.rate() for t in ts])  # who is ended says nothing of what it did


# Those that always have more in their queue fill their slices, and are waited for until they have shared by them for three seconds; the last two are asked not to be paused.
EIGHT = [(f'eight tenants, {kind}', kind, 0, None) for kind in ('long', 'torch', 'sync')] + \
        [(f'eight tenants that fill their slices, {kind}', kind, 50, None) for kind in ('persistent', 'graph', 'short')] + \
        [(f'eight tenants by slices alone, {kind}', kind, 0, {'BULKHEAD_GOVERN': 'slices'}) for kind in ('long', 'sync')]


# The governor stopped every other time. Warden and launcher take one for lost that says nothing for a second; while it is at work its questions that come
# every five seconds have to come, too.
STOPPED, AT_WORK = (0.55, 0.75), (5.0, 6.0)
STOPPED_TIMES = 16


def state_of(pid):
    return pathlib.Path(f'/proc/{pid}/stat').read_text(encoding='utf-8').rsplit(')', 1)[1].split()[0]


def stop_and_go(pids, seed):
    """Stops and continues them: when each time began, at work first; and whether they used no processor in any that they were stopped for."""
    at, lengths, still, idle = [], random.Random(seed), True, None
    try:
        for i in range(2 * STOPPED_TIMES):
            at.append(time.monotonic())
            for pid in pids:
                os.kill(pid, signal.SIGSTOP if i % 2 else signal.SIGCONT)
            if i % 2:
                time.sleep(0.02)  # one in the middle of a call stops when it comes back from it
                idle = [cpu_of_pid(pid) for pid in pids]
                still = still and all(state_of(pid) == 'T' for pid in pids)
            time.sleep(lengths.uniform(*(STOPPED if i % 2 else AT_WORK)))
            still = still and (not i % 2 or idle == [cpu_of_pid(pid) for pid in pids])
        at.append(time.monotonic())
    finally:
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)
    return at, still


# name, kind and unit of the eight, whether somebody is planted who takes of the card while the governor is at work
BY_SLICES = [(f'eight tenants by slices alone, the governor stopped now and then, {what}', kind, unit, planted) for what, kind, unit, planted in
             (('launches of 1 ms', 'long', (1000, 1), False), ('launches of 0.25 ms', 'long', (250, 1), False),
              ('one kernel that does not end', 'persistent', (250, 20), False), ('a loss planted', 'long', (1000, 1), True))]
PLANTED_US, CHANGES_US = 1000, 320  # a kernel every 50 ms or round, and what the card takes to change there and back


def of_the_card(table, tools, name, kind, unit, planted):
    """What eight tenants by slices get done while the governor is at work, against while it is stopped. planted: somebody takes of the card whenever it is at
    work, who is found or else nothing would be."""
    no_governor(10)
    seconds = 11 + int(STOPPED_TIMES * (STOPPED[1] + AT_WORK[1]))
    ts = [Tenant(tools, kind, seconds, ['--share', 100], unit, f'o{i}', {'BULKHEAD_GOVERN': 'slices'}).ready() for i in range(8)]
    thief = [Tenant(tools, 'seldom', seconds, None, PLANTED_US, 'thief').ready()] if planted else []
    for t in ts + thief:
        t.go()
    began = time.monotonic()
    time.sleep(8)
    governors = processes('bulkhead-govern')
    at, still = stop_and_go(governors + [t.p.pid for t in thief], name)
    same, said = processes('bulkhead-govern') == governors, shares(tools)
    for t in ts + thief:
        t.finish(30)
    edge, at = sum(row['sliceMicros'] for row in said.values()) / 1e6, [a - began for a in at]
    rates = rates_within(ts, at, edge)
    ratio, error = paired(rates)
    met = same and still and len(governors) == 1 and len(said) == 8
    text = f'x{ratio:.4f} (standard error {error:.4f}) of what they do while it is stopped'
    raw = {'rates': rates, 'same': same, 'still': still, 'said': said, 'at': at, 'edge': edge, 'points': [t.points for t in ts]}
    if not thief:
        table.row(name, text, 'loses at most 0.5 %, by two such errors', met and ratio - 2 * error >= 0.995, **raw)
        return
    awake = seconds - sum(b - a for a, b in zip(at[1::2], at[2::2]))
    taken = len(thief[0].took) * (PLANTED_US + CHANGES_US) / 1e6 / awake
    table.row(name, f'{text}; {100 * taken:.2f} % were taken, by its own count of kernels and what changes for them cost', 'half of what was taken is seen, by two such errors',
              met and taken >= 0.005 and 1 - (ratio + 2 * error) >= taken / 2, taken=taken, **raw)


def governed_or_not(table, tools, name, count, unit, times):
    """So many tenants with nothing of ours, and governed, one after the other. Of one that may lose nothing; of several it is stated."""
    alone, seconds, settle = solo(tools, 'long', unit)['rate'], 8 if count > 1 else 4, SETTLE if count > 1 else 1.0
    rates, modes = {'native': [], 'governed': []}, set()
    for _ in range(times):
        for way, how in (('native', None), ('governed', ['--share', 100])):
            no_governor(10)
            ts = [Tenant(tools, 'long', seconds, how, unit, f'o{i}').ready() for i in range(count)]
            for t in ts:
                t.go()
            time.sleep(seconds - 1)
            modes |= set(modes_of(shares(tools))) if how else set()
            rates[way].append(sum(t.finish(30).rate(settle) for t in ts))
    native, governed = middle(rates['native']), middle(rates['governed'])
    table.row(name, f'x{governed / native:.4f} of what is done with nothing of ours; {100 * governed / alone:.1f} % of one alone, against {100 * native / alone:.1f} %; mode {sorted(modes)}',
              'loses at most 0.5 %' if count == 1 else '', governed >= 0.995 * native if count == 1 else None, rates=rates, alone=alone, modes=sorted(modes))


def overhead(table, tools):
    table.begin('overhead')
    for name, kind, patience, env in EIGHT:
        if tools.only in name and table.enough(name, 36 + patience):
            eight(table, tools, name, kind, patience, env)
    for name, kind, unit, planted in BY_SLICES:
        if tools.only in name and table.enough(name, 30 + STOPPED_TIMES * (STOPPED[1] + AT_WORK[1])):
            try:
                of_the_card(table, tools, name, kind, unit, planted)
            except OSError as e:  # it was taken for lost, and another came
                end_all()
                table.row(name, e, 'the same governor all the time', False)
    for name, count, unit in (('one tenant, governed or not', 1, None), ('eight tenants, governed or not', 8, 1000)):
        if tools.only in name and table.enough(name, 30 + 4 * count):
            governed_or_not(table, tools, name, count, unit, 2 if count > 1 or tools.short else 3)


# What each hog is told by, by the kind of its work (PyTorch multiplies matrices as hot as a card gets): its key in `uses`, the words of the report, and the counters without which nobody can tell.
HOGS = {
    'bandwidth': ('memory bandwidth', 'memoryBandwidthPermille', ('memory bandwidth',), ('DRAM_BW_UTIL',)),
    'pcie': ('PCIe', 'pciePermille', ('PCIe',), ('PCIE_RX_PER_SEC', 'PCIE_TX_PER_SEC')),
    'torch': ('power', 'powerPermille', ('power', 'clocks lowered'), ('nvmlDeviceGetPowerUsage', 'nvmlDeviceGetEnforcedPowerLimit')),
}
HIGH, APART = 400, 50  # permille: from here on a resource counts as the hog's, and by so much more than the victim's


def named(said, kind):
    """Does the report name the hog by its resource, or say which counter is missing? What it says, and whether that will do."""
    resource, key, words, counters = HOGS[kind]
    lines = [line['text'] for line in said.get('noise', [])]
    rows = {row['name']: row for row in said.get('shares', [])}
    levels = {who: rows.get(who, {}).get('uses', {}).get(key) for who in ('hog', 'victim')}
    missing = [line for line in lines if 'because missing' in line and any(c in line for c in counters)]
    about = [line for line in lines if f'lease {rows.get("hog", {}).get("lease")} ' in line.split(';')[0] and 'cannot be told' not in line
             and any(w in line for w in words)]
    if levels['hog'] is None:
        return (missing or ['not named'])[0], bool(missing), levels
    ok = bool(about) and levels['hog'] >= HIGH and levels['hog'] > (levels['victim'] or 0) + APART
    return (about or [f'{resource} {levels}, and no line about it'])[-1], ok, levels


def culprits(table, tools):
    """The victim alone for a few seconds, then a hog beside it: what was seen without it tells most. Nothing of the card is changed."""
    table.begin('culprits')
    for kind, (resource, *_) in HOGS.items():
        name = f'{resource} hog'
        if tools.only not in name or not table.enough(name, 40):
            continue
        ts = [Tenant(tools, 'graph', 28 if kind == 'torch' else 18, ['--share', 50], None, 'victim').ready()]
        try:
            ts[0].go()
            began = time.monotonic()
            time.sleep(6)  # one look a second while it is alone
            ts.append(Tenant(tools, kind, 11, ['--share', 50], None, 'hog').ready())
            ts[1].go()
            met = time.monotonic() - began
            time.sleep(8)
            _, out, _ = run(tools.bulkhead, 'shares', '-o', 'json', timeout=10)
            _, text, _ = run(tools.bulkhead, 'shares', timeout=10)
            for t in ts:
                t.finish(30)
        finally:
            for t in ts:
                t.end()
        try:
            said = json.loads(out)
        except ValueError:
            said = {}
        words, ok, levels = named(said, kind)
        # Both by the victim's own word: it tells its units to $BULKHEAD_PROBE.
        told = [int(m.group(1)) for m in (re.search(r'\(victim\) says of itself: .* a turn does (\d+) %', line['text']) for line in said.get('noise', [])) if m]
        slowed = ts[0].rate(met + 3, met + 7) / max(ts[0].rate(1, 5), 1e-9)
        table.row(name, f'{words} [its level {levels["hog"]}, the victim\'s {levels["victim"]}, of 1000; the victim at {100 * slowed:.0f} % of its rate alone; '
                  f'by its own word a turn of it does {told[0] if told else "?"} % of the work that it does alone]',
                  'the hog is named by its resource, or the counter that is missing', ok, said=said, levels=levels, victim=slowed, told=told, text=text)


def processes(name):
    return list(cpu_of((name,)))


def launcher_of(warden):
    try:
        return int(pathlib.Path(f'/proc/{warden}/stat').read_text(encoding='utf-8').rsplit(')', 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


def storm(table, tools):
    """kill -9 of governors, wardens and launchers at random; at the end whoever is left runs at full speed. A lease that loses four wardens
    in 10 s is given up and no longer held: that is not what is asked here, so none loses more than two."""
    table.begin('storm')
    seconds, rng, killed, modes, bereft = min(60 if not tools.short else 15, int(table.left()) - 30), random.Random(1), {}, set(), {}
    keep = Tenant(tools, 'long', seconds + 12, ['--share', 50], 2000, 'stays').ready()
    keep.go()
    end, others, started, lost = time.monotonic() + seconds, [], 0, []
    while time.monotonic() < end:
        others = [t for t in others if t.p.poll() is None]
        if len(others) < 3:
            t = Tenant(tools, rng.choice(('long', 'sync', 'graph')), 20, rng.choice((['--share', 30], ['--cap', '30%'])), None, f's{started + len(lost)}')
            try:
                t.ready().go()
                others.append(t)
                started += 1
            except RuntimeError as e:  # who helps it was killed as it began
                lost.append(str(e))
                t.end()
        time.sleep(rng.random() * 1.2)
        modes |= {row.get('mode') for row in shares(tools).values()}
        what = rng.choice(('bulkhead-govern', 'bulkhead-warden', 'launcher'))
        pids = processes(what) if what != 'launcher' else [t.p.pid for t in others]
        if what == 'bulkhead-warden':
            pids = [pid for pid in pids if sum(at > time.monotonic() - 11 for at in bereft.get(launcher_of(pid), ())) < 2]
        if pids:
            pid = rng.choice(pids)
            if what == 'bulkhead-warden':
                bereft.setdefault(launcher_of(pid), []).append(time.monotonic())
            try:
                os.kill(pid, signal.SIGKILL)
                killed[what] = killed.get(what, 0) + 1
            except OSError:
                pass
    for t in others:
        t.end()
    time.sleep(4)
    said = shares(tools)
    keep.finish(40)
    told = keep.p.stderr.read()
    rate = keep.rate(seconds + 5) / solo(tools, 'long', 2000)['rate']
    met = len(killed) == 3 and started > max(3, len(lost)) and 'turns' in modes and set(said) == {'stays'}
    table.row('killed at random', f'{killed} beside {started} others ({len(lost)} did not start), modes {sorted(m for m in modes if m)}; then there is {sorted(said)}, and runs at {100 * rate:.1f} % of its rate alone',
              'all three kinds killed, some in turns; at least 98 %', met and rate >= 0.98, killed=killed, started=started, lost=lost, modes=sorted(m for m in modes if m), said=said, told=told, wardens=[len(at) for at in bereft.values()], points=keep.points)
