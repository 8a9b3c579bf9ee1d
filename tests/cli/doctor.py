# SPDX-License-Identifier: Apache-2.0
"""bulkhead doctor, on this machine as it is and on stand-ins of the driver's library beside a folder of files.

Usage: doctor.py PATH-TO-BULKHEAD SOURCE-ROOT FOLDER-OF-STAND-INS
"""
import json
import os
import pathlib
import re
import subprocess
import sys

import tap
from tap import golden, has, run, same, write

STANDINS = pathlib.Path(sys.argv[3]).resolve()
DAY = ('--now', '2026-06-01')
STATES = {'ok', 'note', 'attention', 'broken', 'unknown', 'not-applicable'}
MODES = ['whole', 'mig', 'gate', 'mps', 'nvlink', 'suspend', 'container', 'vm', 'cvm']
LAYERS = ['silicon', 'driver', 'device nodes', 'fabric', 'kernel boundary', 'containers', 'virtualisation', 'scheduler',
          'MPS', 'host']
KEYS = {'id', 'layer', 'state', 'seen', 'live', 'rules', 'takes', 'why', 'mend', 'details'}
# What stands in files on a node with an H200 under Slurm; nothing is wrong with it.
FILES = {
    'proc/sys/kernel/hostname': 'gpu-01\n',
    'proc/sys/kernel/osrelease': '6.8.0-60-generic\n',
    'proc/sys/kernel/yama/ptrace_scope': '1\n',
    'proc/sys/kernel/io_uring_disabled': '2\n',
    'proc/meminfo': 'MemTotal:       527433728 kB\nMemFree: 1 kB\n',
    'proc/driver/nvidia/version': 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  x\n',
    'proc/driver/nvidia/params': 'RmProfilingAdminOnly: 1\nCreateImexChannel0: 0\nRegistryDwords: ""\n',
    'sys/module/nvidia/version': '580.159.03\n',
    'sys/module/nvidia/taint': 'O\n',
    'sys/module/nvidia_uvm/parameters/uvm_disable_hmm': 'Y\n',
    'sys/module/vfio_pci/x': '',
    'sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts': 'N\n',
    'sys/fs/cgroup/cgroup.controllers': 'cpuset cpu io memory pids\n',
    'sys/kernel/security/lockdown': 'none [integrity] confidentiality\n',
    'sys/devices/system/node/online': '0\n',
    'var/lib/dpkg/status': 'Package: nvidia-container-toolkit\nStatus: install ok installed\nVersion: 1.19.1-1\n\n'
                           'Package: crun\nStatus: install ok installed\nVersion: 1.8.1-1+deb12u1\n',
    'usr/bin/crun': '',
    'usr/sbin/slurmd': '',
    'usr/bin/nvidia-cuda-mps-control': '',
    'usr/bin/nvidia-cuda-mps-server': '',
    'usr/bin/nv-fabricmanager': '',
    'usr/share/nvidia/nvswitch/fabricmanager.cfg': 'FABRIC_MODE=1\n',
    'etc/slurm/slurm.conf': 'GresTypes=gpu\nTaskPlugin=task/affinity,task/cgroup\n',
    'etc/slurm/cgroup.conf': 'ConstrainDevices=yes\n',
    'etc/slurm/gres.conf': 'Name=gpu File=/dev/nvidia0\n',
    'etc/cdi/nvidia.yaml': 'kind: nvidia.com/gpu\ndevices:\n- {name: "0", path: /dev/nvidia0}\n',
    'etc/nvidia-container-runtime/config.toml': 'accept-nvidia-visible-devices-envvar-when-unprivileged = false\n',
    'etc/kubernetes/node-feature-discovery/features.d/gfd': 'nvidia.com/gpu.product=NVIDIA-H200\nnvidia.com/gpu.count=1\n',
}
NODES = {'dev/nvidiactl': 0o660, 'dev/nvidia-uvm': 0o660, 'dev/nvidia0': 0o660}


def node(change=None):
    """A folder that stands for the node; change: {path: text, or None to leave it out}."""
    for path, text in {**FILES, **(change or {})}.items():
        target = pathlib.Path('node', path)
        if text is None:
            target.unlink(missing_ok=True)
        else:
            write(str(target), text)
    for path, mode in NODES.items():
        pathlib.Path(write(f'node/{path}', '')).chmod(mode)
    return os.path.abspath('node')


def doctor(scene, *args, root=None):
    return run('doctor', *DAY, *args, BULKHEAD_NVML=str(STANDINS / f'{scene}.so'), **({'BULKHEAD_SYSROOT': root} if root else {}))


def examined(scene, root=None):
    """{id: check} and the whole document, after it has been found to be of the right shape."""
    r = doctor(scene, '-o', 'json', root=root)
    doc = json.loads(r.out)
    same(r.err, '')
    same(set(doc), {'version', 'simulated', 'root', 'node', 'kernel', 'live', 'checks', 'counts', 'promises'})
    same(doc['version'], 1)
    for c in doc['checks']:
        same(set(c), KEYS)
        assert c['state'] in STATES and c['seen'] and c['layer'] in LAYERS, c
        assert all(re.fullmatch(r'BH-\d{3}', x) for x in c['rules']) and set(c['takes']) <= set(MODES), c
        same((c['why'] is None, c['mend'] is None), (c['state'] in ('ok', 'not-applicable'),) * 2, c)
        assert c['state'] != 'ok' or not c['takes'], c
    same(list(dict.fromkeys(c['layer'] for c in doc['checks'])), LAYERS)
    same(len({c['id'] for c in doc['checks']}), len(doc['checks']))
    same({s: sum(c['state'] == s for c in doc['checks']) for s in STATES}, doc['counts'])
    same([p['mode'] for p in doc['promises']], MODES)
    same(r.rc, 1 if doc['counts']['attention'] or doc['counts']['broken'] else 0)
    return {c['id']: c for c in doc['checks']}, doc


def can(doc):
    return {p['mode']: p['can'] for p in doc['promises']}


def test_this_machine_is_examined_whatever_it_is():
    r = run('doctor', *DAY)
    assert r.rc in (0, 1) and r.out.startswith('node '), repr(r)
    has(r.out, '\nkernel boundary\n')
    has(r.out, 'can keep: ')
    has(r.err, 'next: bulkhead doctor --verbose\n')


def test_no_driver():
    checks, doc = examined('no-such')
    same((checks['silicon.library']['state'], checks['silicon.gpus']['state']), ('broken', 'not-applicable'))
    same(set(can(doc).values()), {'no'})
    r = doctor('no-such')
    same(r.rc, 1)
    has(r.out, "mend: install NVIDIA's data-centre driver")
    has(r.out.splitlines()[-1], 'can keep: nothing; cannot: whole GPU, MIG, ')
    same(r.out.splitlines()[-1].count('(no NVIDIA driver)'), 1)


# Libraries that do not get as far as showing a GPU: each must be said, none may stop the examination.
NEVER_START = ('crash', 'forbidden', 'longsize', 'mismatch', 'shortsize', 'slow', 'uninit', 'unloaded')


def test_every_stand_in_is_examined_and_called_simulated():
    root = node()
    scenes = sorted(STANDINS.glob('*.so'))
    assert scenes, f'no stand-in in {STANDINS}'
    for so in scenes:
        checks, doc = examined(so.stem, root)
        started = checks['silicon.library']['state'] == 'ok'
        same(started, so.stem not in NEVER_START, so.stem)
        same((doc['simulated'], doc['live']), (True, True), so.stem)
        lines = doctor(so.stem, '--verbose', root=root).out.splitlines()
        has(lines[0], 'simulated: no GPU stands behind these lines')
        has(lines[-1], 'simulated: can keep: ')


def test_a_good_node():
    checks, doc = examined('h200', node())
    of_files = [c for c in checks.values() if not c['live'] and c['layer'] != 'kernel boundary']
    same([(c['id'], c['seen']) for c in of_files if c['state'] in ('attention', 'broken')], [])
    same({m: can(doc)[m] for m in ('whole', 'mig', 'mps', 'nvlink', 'suspend')},
         {'whole': 'yes', 'mig': 'yes', 'mps': 'yes', 'nvlink': 'yes', 'suspend': 'yes'})
    same((doc['root'], doc['node'], doc['kernel']), (os.path.abspath('node'), 'gpu-01', '6.8.0-60-generic'))


def test_what_is_spoiled_is_found():
    gfd = 'etc/kubernetes/node-feature-discovery/features.d/gfd'
    for change, check, state, words in (
            ({'etc/slurm/cgroup.conf': 'ConstrainDevices=no\n'}, 'scheduler.slurm', 'attention', 'ConstrainDevices'),
            ({gfd: 'nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB\n'}, 'scheduler.labels', 'attention', 'A100'),
            ({gfd: 'nvidia.com/gpu.count=8\n'}, 'scheduler.labels', 'attention', 'says 8, the silicon 1'),
            ({'proc/driver/nvidia/params': 'RmProfilingAdminOnly: 0\n'}, 'driver.profiling', 'attention', 'everyone'),
            ({'proc/driver/nvidia/params': 'RmProfilingAdminOnly: banana\n'}, 'driver.profiling', 'unknown', 'banana'),
            ({'proc/driver/nvidia/params': 'RegistryDwords: "RMDisableScrubOnFree=0; rmDisableScrubOnFree = 1"\n'}, 'driver.scrub',
             'attention', 'off'),
            ({'proc/sys/kernel/yama/ptrace_scope': '\n'}, 'kernel.ptrace-scope', 'unknown', 'makes no sense'),
            ({'proc/sys/kernel/io_uring_disabled': 'x\n'}, 'kernel.io-uring', 'unknown', 'makes no sense'),
            ({'proc/driver/nvidia/params': 'RegistryDwords: "RMDisableScrubOnFree=1"\n'}, 'driver.scrub', 'attention', 'off'),
            ({'sys/module/nvidia/version': '570.1\n'}, 'driver.match', 'attention', 'kernel 570.1'),
            ({'proc/sys/kernel/yama/ptrace_scope': '3\n'}, 'kernel.ptrace-scope', 'attention', 'not even root'),
            ({'etc/cdi/nvidia.yaml': '/dev/nvidia1'}, 'containers.cdi', 'attention', 'do not name GPU 0'),
            ({'usr/bin/crun': None}, 'containers.runtime', 'note', 'neither crun nor runc'),
            ({'usr/bin/kubelet': ''}, 'scheduler.present', 'attention', 'both')):
        checks, _ = examined('h200', node(change))
        same(checks[check]['state'], state, f'{change}: {checks[check]}')
        has(checks[check]['seen'], words)
        for path in change:  # as it was, for the next
            if path not in FILES:
                pathlib.Path('node', path).unlink()


def test_broken_silicon():
    checks, _ = examined('lost')
    same(checks['silicon.gpus']['state'], 'broken')
    has(checks['silicon.gpus']['seen'], 'GPU 5: lost')
    checks, doc = examined('none')
    same((checks['silicon.gpus']['state'], can(doc)['whole']), ('broken', 'no'))
    checks, _ = examined('mismatch')
    same(checks['driver.match']['state'], 'broken')


def test_how_a_library_fails_is_how_it_is_mended():
    for scene, words in (('slow', 'kernel log'), ('crash', 'kernel log'), ('mismatch', 'reload the driver'), ('forbidden', 'ask again')):
        env = {'BULKHEAD_GPU_TIMEOUT': '1'} if scene == 'slow' else {}
        doc = json.loads(run('doctor', *DAY, '-o', 'json', BULKHEAD_NVML=str(STANDINS / f'{scene}.so'), **env).out)
        has(next(c['mend'] for c in doc['checks'] if c['id'] == 'silicon.library'), words)
    r = run('doctor', *DAY, BULKHEAD_GPU_TIMEOUT='soon')
    same((r.rc, r.out, r.err.count('\n')), (2, '', 1), repr(r))
    has(r.err, 'BULKHEAD_GPU_TIMEOUT')


AMD = {'uevent': 'DRIVER=amdgpu\nPCI_SLOT_NAME=0000:05:00.0\n', 'vendor': '0x1002\n', 'device': '0x74a1\n',
       'product_name': 'AMD Instinct MI300X OAM\n', 'numa_node': '0\n', 'mem_info_vram_total': '206141652992\n'}


def test_a_machine_with_amd_gpus_alone():
    for name, text in AMD.items():
        write(f'amd/sys/class/drm/card1/device/{name}', text)
    checks, doc = examined('no-such', os.path.abspath('amd'))
    same((checks['silicon.amd']['state'], checks['silicon.library']['state'], checks['driver.module']['state']),
         ('note', 'note', 'not-applicable'), f"{checks['silicon.amd']}")
    has(checks['silicon.amd']['seen'], '1, AMD Instinct MI300X OAM: shown and exported; none of the promises below')
    same((set(can(doc).values()), doc['counts']['broken'], {p['because'] for p in doc['promises']}), ({'no'}, 0, {'only AMD GPUs'}))


def test_amd_gpus_beside_nvidias():
    root = node()
    for name, text in AMD.items():
        write(f'node/sys/class/drm/card1/device/{name}', text)
    checks, doc = examined('h200', root)
    same((checks['silicon.amd']['state'], checks['silicon.gpus']['seen'], can(doc)['whole']), ('note', '1, all answer', 'yes'))
    same([c['id'] for c in checks.values() if 'GPU 1' in c['seen']], [])


def test_another_machines_kernel_is_not_asked():
    checks, doc = examined('no-such', node())
    same((doc['live'], checks['kernel.seccomp-notify']['state']), (False, 'unknown'))
    has(checks['kernel.seccomp-notify']['seen'], 'BULKHEAD_SYSROOT')
    same(checks['kernel.cgroup']['state'], 'ok')


def test_text():
    """All but what the kernel and the disk of the machine at hand decide."""
    root = node()
    out = doctor('h200', '--verbose', root=root).out.replace(root, 'ROOT').replace(str(STANDINS), 'STANDINS')
    out = re.sub(r'kernel boundary\n(  .*\n)*', 'kernel boundary\n', out)
    out = re.sub(r'  \S+ +host\.disk .*\n( {13}.*\n)*', '', out)
    golden('doctor.txt', '\n'.join(out.splitlines()[:-2]) + '\n')


def test_a_plain_user():
    if os.getuid() != 0:
        raise tap.Skip('this test gives up root')
    env = tap.environment(BULKHEAD_NVML=str(STANDINS / 'no-such.so'))
    try:
        done = subprocess.run([tap.BIN, 'doctor', *DAY], capture_output=True, env=env, user=65534, group=65534,
                              extra_groups=[], cwd='/', timeout=60, check=False)
    except PermissionError as e:
        raise tap.Skip('a plain user cannot reach the command') from e
    r = tap.Result(done)
    same(r.rc, 1, repr(r))
    has(r.out, 'unknown    kernel.rights              a plain user: what only root may see is unknown below')


def test_wrong_use():
    for args, words in ((['--now', 'soon'], '--now: '), (['x'], 'x'), (['-o', 'sarif'], 'sarif')):
        r = run('doctor', *args)
        same((r.rc, r.out), (2, ''), repr(r))
        has(r.err, words)


def test_no_colour_without_a_terminal():
    assert '\x1b' not in doctor('h200').out
    has(run('doctor', '--color', 'always', BULKHEAD_NVML='no-such.so').out, '\x1b[')
    assert '\x1b' not in run('doctor', BULKHEAD_NVML='no-such.so', NO_COLOR='1').out


tap.main(globals())
