# SPDX-License-Identifier: Apache-2.0
"""Debian's podman for tests: all that it keeps lies in the current folder, and its containers have this machine's programs."""
import os
import pathlib
import subprocess

from tap import Result, environment

CDI = '/var/run/cdi'
# podman raises these otherwise, which not every machine lets even root do.
LIMITS = ('--ulimit=nofile=1024:1024', '--ulimit=nproc=1024:1024')
QUIET = ('-e', 'ASAN_OPTIONS=detect_leaks=0')


def words(*args, runtime='runc'):
    return ['podman', '--storage-driver=vfs', f'--root={os.path.abspath("ps")}', f'--runroot={os.path.abspath("pr")}',
            '--cgroup-manager=cgroupfs', f'--runtime={runtime}', *args]


def podman(*args, runtime='runc'):
    return Result(subprocess.run(words(*args, runtime=runtime), stdin=subprocess.DEVNULL, capture_output=True, check=False,
                                 timeout=120, env=environment()))


def run_words(*command, device=None, options=()):
    """A container whose programs are this machine's: no image is needed."""
    root = pathlib.Path('root')
    shared = [d for d in ('usr', 'bin', 'lib', 'lib64') if os.path.isdir(f'/{d}')]
    for d in (*shared, 'proc', 'dev', 'sys', 'tmp', 'run', 'etc'):
        (root / d).mkdir(parents=True, exist_ok=True)
    more = [w for d in shared for w in ('-v', f'/{d}:/{d}:ro')]
    if device:
        more += ['--device', f'bulkhead.dev/lease=L{device}']
    return ['run', '--rm', '--network=none', *LIMITS, *QUIET, *more, *options, '--rootfs', str(root.resolve()), *command]


def run(*command, device=None, runtime='runc', options=()):
    return podman(*run_words(*command, device=device, options=options), runtime=runtime)


def why_not():
    """Why podman cannot run any container here; '': it can."""
    r = run('true')
    return '' if r.rc == 0 else f'podman cannot run a container here: {(r.out + r.err).strip()[-300:]}'
