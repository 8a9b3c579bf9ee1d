# SPDX-License-Identifier: Apache-2.0
"""Inside a lease: starts tenants, lets them go at once, says what each got, and holds on until told.

Usage: inside_race.py TENANT PATH LIMIT [PATH LIMIT ...]   one tenant for each pair

Says `ready N`, goes at a line on its input, then one JSON line (what each got, and what the vendor's library says in here of the card)
and `held`; a line on its input ends it.
"""
import ctypes
import json
import subprocess
import sys
import time


def until(p, word):
    """Lines up to that one; without it: the process has ended."""
    lines = []
    for line in p.stdout:
        if line.strip() == word:
            return lines, True
        lines.append(line.strip())
    return lines, False


def card():
    """Inside a lease that shows its slice, `used` is what the gate has charged."""
    try:
        nvml, device, memory = ctypes.CDLL('libnvidia-ml.so.1'), ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
        if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) \
                or nvml.nvmlDeviceGetMemoryInfo(device, memory):
            return None
        return {'total': memory[0], 'used': memory[2]}
    except (OSError, AttributeError):
        return None


def main():
    tenant, jobs = sys.argv[1], list(zip(sys.argv[2::2], sys.argv[3::2]))
    ps = [subprocess.Popen([tenant, 'fill', path, limit, 'wait'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True) for path, limit in jobs]
    started = [until(p, 'ready')[1] for p in ps]
    print('ready', sum(started), flush=True)
    sys.stdin.readline()
    for p, on in zip(ps, started):
        if on:
            p.stdin.write('x')
            p.stdin.flush()
    results = []
    for p, on, (path, _) in zip(ps, started, jobs):
        lines, held = until(p, 'held') if on else ([], False)
        said = dict(line.split(' ', 1) for line in lines if ' ' in line)
        results.append({'path': path, 'started': on, 'held': held, 'pid': p.pid, **said})
    time.sleep(0.3)  # the gate has counted since
    print(json.dumps({'results': results, 'card': card()}))
    print('held', flush=True)
    sys.stdin.readline()
    for p in ps:
        p.stdin.close()
    for p, r in zip(ps, results):
        r['rc'], r['stderr'] = p.wait(), p.stderr.read().strip()[-200:]
    print(json.dumps(results), flush=True)


main()
