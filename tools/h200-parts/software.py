# SPDX-License-Identifier: Apache-2.0
"""Unmodified software below a cap: it runs, it respects the cap by the driver's count, it is told when there is no more and goes on."""
import os
import pathlib
import subprocess
import sys
import threading
import time

import card
from card import GIB, MIB
from table import gib, last, run as run_to_end, words

INSIDE = pathlib.Path(__file__).resolve().parent / 'inside_software.py'
CAP = 10 * GIB
AT_ONCE = 3  # leases at a time; each has its own cap and is counted by itself
CASES = (('PyTorch, eager', 'eager', {}), ('PyTorch, compiled', 'compiled', {}), ('PyTorch, CUDA graphs', 'graphs', {}),
         ('PyTorch, PYTORCH_CUDA_ALLOC_CONF expandable', 'expandable', {'PYTORCH_CUDA_ALLOC_CONF': 'expandable_segments:True'}),
         ('PyTorch, PYTORCH_ALLOC_CONF expandable', 'expandable', {'PYTORCH_ALLOC_CONF': 'expandable_segments:True'}),
         ('PyTorch, matrix products (cuBLAS)', 'blas_torch', {}), ('cuBLAS by itself', 'cublas', {}), ('CuPy', 'cupy', {}),
         ('JAX', 'jax', {}), ('Triton', 'triton', {}), ('PyTorch, DataLoader, 4 workers, pinned', 'loader', {}),
         ('PyTorch, a tensor in another process', 'sharing', {}))


class Case:
    def __init__(self, tools, watch, label, case, env):
        self.label, self.case = label, case
        view = ['--view', 'slice'] if tools.has_view else []
        cache = os.path.join(tools.scratch, f'cache-{case}')
        self.p = subprocess.Popen([tools.bulkhead, 'run', '--memory', '10GiB', '--stats', *view, '--', sys.executable, str(INSIDE), case],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                  env={**os.environ, 'TORCHINDUCTOR_CACHE_DIR': cache, 'TRITON_CACHE_DIR': cache + '-triton', **env})
        watch.lease(label, self.p.pid)
        self.warden = {}

    def finish(self):
        began = time.monotonic()
        with card.limit(150, self.p):
            reader = threading.Thread(target=self.look)
            reader.start()
            self.out, self.err = self.p.communicate()
            reader.join()
        self.seconds = time.monotonic() - began

    def look(self):
        while self.p.poll() is None:
            self.warden = card.warden_of(self.p.pid) or self.warden
            time.sleep(0.1)


def judge(table, watch, c):
    said, held = words(c.out), watch.leases.get(c.label, 0)
    if 'skip' in said:
        table.skip(c.label, said['skip'])
        return
    wrong = [line for line in c.out.splitlines() if line in ('right False', 'again False', 'child yes')]
    good = c.p.returncode == 0 and c.out.rstrip().endswith('end') and said.get('big') == 'no' and not wrong
    ok = good and 0 < held <= CAP
    table.row(c.label, f'exit {c.p.returncode}, held {gib(held)}, 20 GiB {said.get("big")}, filled {gib(int(said.get("filled", 0)))}, '
              f'{"right" if good else "WRONG"}', 'runs, at most 10 GiB, goes on', ok, case=c.case, held=held, cap=CAP,
              seconds=round(c.seconds, 1), warden_kib=c.warden, stdout=c.out[-2000:], stderr=c.err[-600:])
    if not ok:
        print(f'#     {last(c.err, 300)}')
        for line in c.err.strip().splitlines()[-6:]:
            print(f'#     {line[-200:]}')
    if c.warden:
        table.row(f'  warden, {c.label}', f'at most {c.warden["VmHWM"]} KiB', 'under 3072 KiB', c.warden['VmHWM'] < 3072)


def frameworks(table, tools):
    todo, results = list(CASES), []
    lock = threading.Lock()
    with card.Watch(tools.nvml) as watch:
        def work():
            while True:
                with lock:
                    if not todo:
                        return
                    label, case, env = todo.pop(0)
                    if table.left() < 60:
                        results.append((label, None))
                        continue
                c = Case(tools, watch, label, case, env)
                c.finish()
                with lock:
                    results.append((label, c))
        threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    for label, c in results:
        if c is None:
            table.skip(label, 'the time is up')
        else:
            judge(table, watch, c)
    table.row('  by the driver, all leases', f'{watch.samples} samples at {watch.raw()["hertz"]} a second; of no lease: '
              f'{gib(watch.leases.get(None, 0))}', '', None, watch=watch.raw(), leases={str(k): v for k, v in watch.leases.items()})
    return {label: words(c.out) for label, c in results if c}


def view(table, tools, said):
    """What programs inside are told of the card."""
    if not tools.has_view:
        table.skip('the view', 'this bulkhead has no --view')
        return
    info = said.get('PyTorch, eager', {}).get('info', '').split()
    if len(info) == 2:
        table.row('torch.cuda.mem_get_info', f'free {gib(int(info[0]))} of {gib(int(info[1]))}', 'of 10 GiB',
                  abs(int(info[1]) - CAP) <= 64 * MIB and int(info[0]) <= CAP, info=info)
    else:
        table.skip('torch.cuda.mem_get_info', 'PyTorch did not say')
    # Somebody else is on the card, and must not be seen.
    other = subprocess.Popen([tools.tenant, 'hold', '3GiB', '60'], stdout=subprocess.PIPE, text=True, start_new_session=True)
    other.stdout.readline()
    script = (f'"{tools.tenant}" hold 1GiB 30 & p=$!; sleep 2; '
              'echo total $(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits -i 0); '
              'echo used $(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -i 0); '
              'echo apps $(nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits -i 0 | tr "\\n" ";"); '
              'nvidia-smi > /dev/null; echo plain $?; echo own $p; kill $p; wait')
    rc, out, err = run_to_end(tools.bulkhead, 'run', '--memory', '10GiB', '--view', 'slice', '--', 'sh', '-c', script, timeout=60)
    other.kill()
    other.wait()
    w = words(out)
    apps = [a.split(',')[0].strip() for a in w.get('apps', '').split(';') if a.strip()]
    table.row('nvidia-smi inside', f'total {w.get("total")} MiB, used {w.get("used")} MiB, processes {apps}, own {w.get("own")}',
              '10240 MiB, 1 to 2 GiB used, its own process alone',
              rc == 0 and w.get('total', '').isdigit() and abs(int(w['total']) - 10240) <= 64 and w.get('used', '').isdigit()
              and 1024 <= int(w['used']) <= 2048 and apps == [w.get('own')] and w.get('plain') == '0', stdout=out, stderr=err[-300:])


def run(table, tools, short=False):
    table.begin('software')
    said = frameworks(table, tools)
    view(table, tools, said)
