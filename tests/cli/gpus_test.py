# SPDX-License-Identifier: Apache-2.0
"""bulkhead gpus and bulkhead fleet, through the real driver code, against stand-ins for the vendor's library."""
import json
import os
import pathlib
import sys

import tap
from tap import GOOD, has, run, same, write

STANDINS = pathlib.Path(sys.argv[3])
# An empty folder stands for the machine, so that nothing of the one that runs the test is seen.
# Those that give no GPUs at all: gpus_trouble.py has them.
BROKEN = ('mismatch', 'unloaded', 'uninit', 'longsize', 'shortsize', 'slow', 'crash', 'forbidden')
EFI = 'sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c'


def machine():
    write('m/proc/sys/kernel/hostname', 'gpu-01\n')
    write('m/proc/sys/kernel/osrelease', '6.8.0-60-generic\n')
    write('m/proc/driver/nvidia/params', 'RmProfilingAdminOnly: 1\nResmanDebugLevel: 4294967295\nRegistryDwords: "A=1"\n')
    write('m/sys/module/nvidia/version', '580.159.03\n')
    write('m/sys/kernel/security/lockdown', '[none] integrity confidentiality\n')
    write('m/sys/fs/cgroup/cgroup.controllers', 'cpu\n')
    write('m/var/lib/dpkg/status', 'Package: nvidia-container-toolkit\nStatus: install ok installed\nVersion: 1.19.1-1\n')
    pathlib.Path(write(f'm/{EFI}', '')).write_bytes(b'\x06\0\0\0\x01')
    for pid, name in ((101, 'python3'), (202, 'trtllm'), (303, 'train')):
        write(f'm/proc/{pid}/comm', name + '\n')
    return os.path.abspath('m')


def scene(name, *args, root=None, **env):
    return run(*args, BULKHEAD_NVML=str(STANDINS / f'{name}.so'), BULKHEAD_SYSROOT=root or os.path.abspath('none'), **env)


def gpus(name, root=None):
    r = scene(name, 'gpus', '-o', 'json', root=root)
    same((r.rc, r.err), (0, ''), repr(r))
    return json.loads(r.out)


def test_every_scene_is_shown_and_called_simulated():
    for so in sorted(STANDINS.glob('*.so')):
        for args in (['gpus'], ['gpus', '--tree'], ['gpus', '-o', 'json'], ['fleet', 'export']):
            if so.stem in BROKEN:
                continue
            r = scene(so.stem, *args)
            same((r.rc, r.err), (0, ''), f'{so.stem} {args} {r!r}')
            if 'json' in args:
                same(json.loads(r.out)['simulated'], True)
            else:
                has(r.out.splitlines()[0], 'simulated')


def test_no_driver_is_one_line_and_exit_4():
    for args in (['gpus'], ['gpus', '--tree'], ['gpus', '-o', 'json'], ['fleet', 'export']):
        r = scene('missing', *args)
        same((r.rc, r.out, r.err.count('\n')), (4, '', 1), repr(r))
        has(r.err, 'no NVIDIA driver library on this machine: looked for ')
        has(r.err, 'install the NVIDIA driver, or name the library in BULKHEAD_NVML')


def test_eight_h100():
    root = machine()
    r = scene('h100x8', 'gpus', root=root)
    lines = r.out.splitlines()
    same(lines[1], 'driver 580.159.03, CUDA 13.0, 8 GPUs')
    same([x.split()[0] for x in lines[3:11]], list('01234567'))
    has(lines[3], 'H100-80GB-SXM')
    has(lines[3], '101(')
    has(lines[6], 'warn')
    has(r.out, 'GPU 3: 2 uncorrected memory errors since the driver was loaded; drain and reset it\n')
    tree = scene('h100x8', 'gpus', '--tree', root=root).out
    has(tree, '  NUMA node 0\n    PCI 0000:18:00.0  GPU 0  H100-80GB-SXM')
    has(tree, '      NVLink nvl-0: 18 links to switches\n')
    has(tree, 'NVLink domain nvl-0: GPU 0 1 2 3 4 5 6 7\n')
    doc = gpus('h100x8', root)
    same((doc['version'], len(doc['gpus']), len(doc['paths'])), (1, 8, 28))
    same([p['pid'] for p in doc['gpus'][0]['processes']], [101, 202, 303])
    same(doc['gpus'][0]['processes'][0]['name'], 'python3')


def test_mig_slices():
    doc = gpus('a100mig')
    slices = [(i['profile'], i['start'], i['uuid'] is not None) for i in doc['gpus'][0]['instances']]
    same(slices, [('1g.5gb', 0, True), ('1g.5gb', 1, False), ('3g.20gb', 4, True), ('3g.20gb', 4, True)])
    out = scene('a100mig', 'gpus').out
    has(out, '0:8 ')
    has(out, 'unused')
    has(scene('a100mig', 'fleet', 'export').out, 'mig: {enabled: true, instances: [1g.5gb@0, 1g.5gb@1, 3g.20gb@4]}')


def test_sixty_four_and_none():
    same(len(gpus('many')['gpus']), 64)
    same(len(scene('many', 'gpus').out.splitlines()), 3 + 64)
    doc = gpus('none')
    same((doc['gpus'], doc['paths']), ([], []))
    has(scene('none', 'gpus').out, ', 0 GPUs\n')
    has(scene('none', 'fleet', 'export').out, '    gpus: []\n')


def test_a_lost_gpu_and_a_bare_library():
    r = scene('lost', 'gpus')
    has(r.out, 'GPU 5: lost: it fell off the bus; drain the node, then reset the GPU or reboot\n')
    same([g['alive'] for g in gpus('lost')['gpus']], [True] * 5 + [False] * 2 + [True])
    text = scene('lost', 'fleet', 'export').out
    has(text, '# GPU 5 is left out: lost')
    same(text.count('- {index:'), 6)
    g = gpus('bare')['gpus'][0]
    same((g['totalBytes'], g['unknown']['totalBytes']), (None, 'not supported by this driver'))


def test_export_is_a_fleet_file():
    root = machine()
    write('p.yaml', GOOD.replace('model: H200', 'model: H100'))
    for name in ('h100x8', 'h200', 'a100mig', 'none', 'many', 'lost', 'bare', 'odd', 'liar', 'denied'):
        for where in (root, None):
            r = scene(name, 'fleet', 'export', '--out', f'{name}.yaml', '--force', root=where)
            same((r.rc, r.out), (0, ''), repr(r))
            has(r.err, f'wrote {name}.yaml\n')
            lint = run('lint', '-o', 'json', 'p.yaml', '--fleet', f'{name}.yaml')
            assert lint.rc in (0, 1), f'{name}: {lint!r}\n{pathlib.Path(name + ".yaml").read_text()}'


def test_export_says_what_it_knows_and_why_not_the_rest():
    text = scene('h200', 'fleet', 'export', root=machine()).out
    for line in ('# kernel 6.8.0-60-generic, lockdown none, cgroup v2', 'bulkhead: 1', '  - name: gpu-01',
                 '    driver: 580.159.03', '    toolkit: 1.19.1', '    secureBoot: true', '    ecc: true',
                 '      RmProfilingAdminOnly: 1', '      RegistryDwords: "A=1"',
                 '    # iommu: not known: no /sys/kernel/iommu_groups to be seen',
                 '      - {index: 0, uuid: GPU-00000000-0000-4000-8000-000000000000, model: H200-141GB, '
                 'fabric: abababababababababababababababab.7, mig: {enabled: false}}'):
        assert line in text.splitlines(), f'{line}\n{text}'
    assert 'ResmanDebugLevel' not in text and '\n    acs:' not in text and '\n    iommu:' not in text
    write('m/proc/sys/kernel/hostname', 'gpu 01\n')
    text = scene('h200', 'fleet', 'export', root=os.path.abspath('m')).out
    has(text, '  - name: gpu-01\n')
    has(text, "    # name: not the host's own, which a fleet file does not take; --name sets it\n")
    has(scene('h100x8', 'fleet', 'export', '--name', 'n1').out, 'fabric: n1-nvl-0')


def test_a_name_is_one_that_lint_takes():
    for name in ('a b', 'x' * 201, '', 'k\u00f6ln', 'a\nb'):
        r = scene('h100x8', 'fleet', 'export', '--name', name)
        same((r.rc, r.out, r.err.count('\n')), (2, '', 1), repr(r))
        has(r.err, '--name takes up to 200 letters, digits, `.`, `_` and `-`, as a fleet file does, not ')
    write('p.yaml', GOOD.replace('model: H200', 'model: H100'))
    same(scene('h100x8', 'fleet', 'export', '--name', 'x' * 200, '--out', 'long.yaml').rc, 0)
    lint = run('lint', '-o', 'json', 'p.yaml', '--fleet', 'long.yaml')
    assert lint.rc in (0, 1), repr(lint)


def test_a_gpu_nobody_looked_at_has_no_iommu():
    root = machine()
    write('m/sys/kernel/iommu_groups/7/type', 'DMA\n')
    for i in range(8):
        write(f'm/sys/bus/pci/devices/0000:{0x18 + i:02x}:00.0/iommu_group', '')
    has(scene('h100x8', 'fleet', 'export', root=root).out, '\n    iommu: true\n')
    for name in ('lost', 'none'):
        text = scene(name, 'fleet', 'export', root=root).out
        has(text, '    # iommu: not known: ')
        assert '\n    iommu:' not in text and '\n    acs:' not in text, text


def test_wrong_use():
    write('f.yaml', 'mine\n')
    r = scene('h200', 'fleet', 'export', '--out', 'f.yaml')
    same((r.rc, pathlib.Path('f.yaml').read_text()), (5, 'mine\n'), repr(r))
    for args, words in ((['fleet'], 'needs export'), (['fleet', 'import'], "fleet has no 'import'; there is export")):
        r = run(*args)
        same((r.rc, r.out), (2, ''), repr(r))
        has(r.err, words)


tap.main(globals())
