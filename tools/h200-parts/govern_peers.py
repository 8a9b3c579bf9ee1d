# SPDX-License-Identifier: Apache-2.0
"""The same tenants as others divide a card: the driver's own slices, MPS, and libraries in the tenant that were given by path."""
import contextlib
import functools
import itertools
import os
import pathlib
import subprocess
import tempfile
import time

from govern_shares import CELLS, divided, judge, sliced, ungoverned, wanted
from govern_work import fair


@contextlib.contextmanager
def mps():
    """With MPS on: the environment of a client that may use so many percent of the card's processors."""
    with tempfile.TemporaryDirectory() as d:
        env = {'CUDA_MPS_PIPE_DIRECTORY': os.path.join(d, 'pipe'), 'CUDA_MPS_LOG_DIRECTORY': os.path.join(d, 'log')}
        for path in env.values():
            os.mkdir(path)
        whole = {**os.environ, **env}
        subprocess.run(['nvidia-cuda-mps-control', '-d'], env=whole, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield lambda percent: {**env, 'CUDA_MPS_ACTIVE_THREAD_PERCENTAGE': str(percent)}
        finally:
            subprocess.run(['nvidia-cuda-mps-control'], input='quit\n', text=True, env=whole, check=False, timeout=30,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def hami(path, scratch):
    """HAMi-core: by each launch against a budget. What one is allowed stands in a file that is its own, as each container's is."""
    os.makedirs(os.path.join(tempfile.gettempdir(), 'vgpulock'), exist_ok=True)  # it takes a lock there, and does not make the folder
    files = itertools.count()

    def env(percent):
        return {'LD_PRELOAD': path, 'CUDA_DEVICE_SM_LIMIT': str(percent), 'CUDA_DEVICE_MEMORY_LIMIT': '40g', 'GPU_CORE_UTILIZATION_POLICY': 'force',
                'CUDA_DEVICE_MEMORY_SHARED_CACHE': os.path.join(scratch, f'{next(files)}.cache'), 'LIBCUDA_LOG_LEVEL': '0'}
    yield env


def nvshare(path, scratch):
    """nvshare: the whole card for one at a time, as its scheduler says, which has to lie beside the library. It knows no percentages."""
    scheduler = pathlib.Path(path).with_name('nvshare-scheduler')
    with subprocess.Popen([scheduler], cwd=scratch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        try:
            time.sleep(0.5)  # it makes its socket
            if p.poll() is not None:
                raise RuntimeError(f'{scheduler} ended at once with {p.returncode}')
            yield lambda percent: {'LD_PRELOAD': path}
        finally:
            p.kill()


LIBRARIES, NO_CAPS = {'hami': hami, 'nvshare': nvshare}, {'nvshare'}


@contextlib.contextmanager
def library(name, path):
    """With a library of this kind: the environment of a tenant that may use so many percent. One in which it is not loaded does not begin (Tenant.ready)."""
    with tempfile.TemporaryDirectory() as d:
        yield from LIBRARIES[name](path, d)


def systems(tools):
    """By name: with what it is divided, a context that gives the environment of a tenant."""
    return {'MPS': mps, **{name: functools.partial(library, name, path) for name, path in tools.peers}}


def peers(table, tools):
    """The same tenants with nothing of ours: time slicing as it is, and what else there is."""
    table.begin('peers')
    seconds = 6
    for name, weights, kinds in CELLS:
        if name not in ('70/30 long', '60/30/10 long', '70/30 sync') or not wanted(tools, name):
            continue
        sliced(table, tools, name, weights, kinds)
        for system, context in systems(tools).items():
            row = f'{name}, {system}'
            if table.enough(row, seconds + 15):
                try:
                    with context() as part:
                        g, p = divided(tools, weights, kinds, seconds, ungoverned, env=lambda w, part=part: part(100 * w // sum(weights)))
                    judge(table, row, fair(weights), [g], False, seconds, [p], system=system, judged=False)
                except (RuntimeError, OSError, subprocess.SubprocessError) as e:
                    table.skip(row, str(e)[-120:])
