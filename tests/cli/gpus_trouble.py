# SPDX-License-Identifier: Apache-2.0
"""bulkhead gpus and fleet where something is wrong: each trouble is one line. Also GPUs of AMD, and labels."""
import json
import os
import pathlib
import re
import sys

import tap
from tap import GOOD, has, run, same, write

STANDINS = pathlib.Path(sys.argv[3])
ALL = (['gpus'], ['gpus', '--tree'], ['gpus', '-o', 'json'], ['fleet', 'export'])


def scene(name, *args, root='none', **env):
    return run(*args, BULKHEAD_NVML=str(STANDINS / f'{name}.so'), BULKHEAD_SYSROOT=os.path.abspath(root), **env)


def refused(library, rc, words, **env):
    """Every command that reads GPUs gives this one line and this exit status."""
    for args in ALL:
        r = run(*args, BULKHEAD_NVML=library, BULKHEAD_SYSROOT=os.path.abspath('none'), **env)
        same((r.rc, r.out, r.err.count('\n')), (rc, '', 1), f'{args} {r!r}')
        assert re.search(words, r.err), f'{words}\n{r!r}'


def test_libraries_that_cannot_be_used():
    for name, rc, words in (
            ('missing', 4, 'no NVIDIA driver library on this machine: looked for .*missing.so; install the NVIDIA driver, or'),
            ('unloaded', 4, 'simulated: the NVIDIA kernel driver is not loaded; load it with: modprobe nvidia'),
            ('mismatch', 5, 'and the loaded kernel driver are of different versions; reload the driver or reboot'),
            ('forbidden', 3, 'no permission to ask the NVIDIA driver; run as a user who may open /dev/nvidiactl'),
            ('uninit', 70, 'does not start: error 1'),
            ('longsize', 5, 'has another interface than it should: nvmlDeviceGetPciInfo_v3 writes more than 68 bytes'),
            ('shortsize', 5, 'has another interface than it should: nvmlDeviceGetPciInfo_v3 writes less than 68 bytes')):
        refused(str(STANDINS / f'{name}.so'), rc, words)
    refused('libc.so.6', 4, 'libc.so.6 is no NVIDIA driver library that can be used: it cannot list GPUs')


def test_simulated_is_said_of_failures_too():
    for name in ('unloaded', 'mismatch', 'forbidden', 'uninit', 'longsize', 'crash'):
        refused(str(STANDINS / f'{name}.so'), {'unloaded': 4, 'mismatch': 5, 'forbidden': 3, 'longsize': 5}.get(name, 70),
                '(^|: )simulated: ')
    refused(str(STANDINS / 'h200.so'), 4, 'simulated: the NVIDIA kernel driver is not loaded', STANDIN_FAIL='count:9')
    refused(str(STANDINS / 'missing.so'), 4, 'simulated: no NVIDIA driver library', BULKHEAD_SIM='/nowhere')


def test_what_stands_in_the_librarys_place():
    refused(os.path.abspath('.'), 70, 'is there and cannot be loaded: it is a folder; install the driver again')
    refused(os.path.abspath(write('t.so', 'INPUT( x )')), 70, 'is there and cannot be loaded: ')
    os.mkfifo('p.so')
    refused(os.path.abspath('p.so'), 70, 'is there and cannot be loaded: it is no file')


def test_tenants_are_seen_when_slices_cannot_be_listed():
    for pid in (101, 202, 303):
        write(f'm/proc/{pid}/comm', 'work\n')
    has(scene('a100mig', 'gpus', root='m').out, ' unused  -\n')
    for fail in ('mig_max:999', 'mig_handle:999', 'mig_mode:999'):
        r = scene('a100mig', 'gpus', root='m', STANDIN_FAIL=fail)
        same((r.rc, r.err), (0, ''), repr(r))
        own = next(x for x in r.out.splitlines() if x.startswith('0 '))
        assert all(f'{pid}(' in own for pid in (101, 202, 303)), r.out
        assert 'unused' not in r.out, r.out
        doc = json.loads(scene('a100mig', 'gpus', '-o', 'json', root='m', STANDIN_FAIL=fail).out)
        same(doc['gpus'][0]['unknown']['instanceCount'], 'the driver answered with error 999')


def test_a_driver_that_hangs_is_given_up():
    refused(str(STANDINS / 'slow.so'), 7, 'simulated: the driver has not answered for 1 s; it was asked for nvmlDeviceGetTemperature of '
            r'GPU 2 \(BULKHEAD_GPU_TIMEOUT sets how long to wait\)', BULKHEAD_GPU_TIMEOUT='1')
    refused(str(STANDINS / 'h200.so'), 2, "BULKHEAD_GPU_TIMEOUT takes seconds from 1 to 3600, not 'soon'",
            BULKHEAD_GPU_TIMEOUT='soon')


def test_a_library_that_crashes_takes_nothing_with_it():
    refused(str(STANDINS / 'crash.so'), 70,
            r"the driver's library crashed \(signal 9\); it was asked for nvmlDeviceGetTemperature of GPU 2")


def test_a_dead_gpu_and_one_that_may_not_be_opened():
    for name, line in (('lost', 'GPU 5: lost: it fell off the bus; drain the node, then reset the GPU or reboot'),
                       ('denied', 'GPU 1: no permission to open it; run as a user who may open its /dev/nvidia node')):
        r = scene(name, 'gpus')
        same((r.rc, r.err), (0, ''), repr(r))
        same(r.out.splitlines().count(line), 1, r.out)


def test_none_and_many():
    r = scene('none', 'gpus')
    same((r.rc, r.out.splitlines()[1:]), (0, ['driver 580.159.03, CUDA 13.0, 0 GPUs']), repr(r))
    lines = scene('many', 'gpus').out.splitlines()
    same((lines[1], len(lines)), ('driver 580.159.03, CUDA 13.0, 64 GPUs', 3 + 64))


def test_how_busy_processes_keep_a_gpu():
    for pid in (101, 202, 303):
        write(f'm/proc/{pid}/comm', 'work\n')
    doc = json.loads(scene('h100x8', 'gpus', '-o', 'json', root='m').out)
    first, _, third = doc['gpus'][0]['processes']
    same((first['smPercent'], first['memoryPercent']), (35, 12))
    same((third['smPercent'], third['unknown']['smPercent']), (None, 'the driver has no value'))
    assert re.search(r'101\(\S+\) 1.0G 35%, 202\(', scene('h100x8', 'gpus', root='m').out)
    doc = json.loads(scene('a100mig', 'gpus', '-o', 'json', root='m').out)
    same(doc['gpus'][0]['processes'][0]['unknown']['smPercent'], 'the driver does not measure it while MIG is on')


def amd(root, number, bus, links):
    files = {'uevent': f'DRIVER=amdgpu\nPCI_SLOT_NAME=0000:{bus}:00.0\n', 'vendor': '0x1002', 'device': '0x74a1',
             'unique_id': f'1f8b2c3d4e5f60{bus}', 'product_name': 'AMD Instinct MI300X', 'numa_node': '1',
             'mem_info_vram_total': '206141652992', 'mem_info_vram_used': '1073741824', 'gpu_busy_percent': '42',
             'current_compute_partition': 'SPX', 'available_compute_partition': 'SPX, DPX, QPX, CPX',
             'current_memory_partition': 'NPS1', 'available_memory_partition': 'NPS1, NPS4', 'enforce_isolation': '0',
             'xgmi_hive_info/xgmi_hive_id': '8675309', 'xgmi_hive_info/node1/uevent': 'PCI_SLOT_NAME=0000:05:00.0\n',
             'xgmi_hive_info/node2/uevent': 'PCI_SLOT_NAME=0000:26:00.0\n', 'xgmi_num_links': links}
    for name, text in files.items():
        write(f'{root}/sys/class/drm/card{number}/device/{name}', text + '\n')


def test_amd_alone():
    amd('m', 1, '05', '00 04')
    amd('m', 2, '26', '04 00')
    r = scene('missing', 'gpus', root='m')
    same((r.rc, r.err), (0, ''), repr(r))
    has(r.out.splitlines()[0], 'simulated: no GPU stands behind these lines, but ')
    same(r.out.splitlines()[1], 'amdgpu of the kernel, 2 GPUs')
    has(r.out, '0    AMD Instinct MI300X  1.0/191.9   42%   05:00.0  1     ok      ?\n')
    tree = scene('missing', 'gpus', '--tree', root='m').out
    has(tree, '      xGMI xgmi-8675309: 4 links to GPUs\n'
              '      partition compute SPX (of SPX, DPX, QPX, CPX), memory NPS1 (of NPS1, NPS4), isolation off\n')
    has(tree, 'xGMI domain xgmi-8675309: GPU 0 1\n')
    doc = json.loads(scene('missing', 'gpus', '-o', 'json', root='m').out)
    same((doc['confidential']['enabled'], doc['confidential']['unknown']['enabled'], doc['gpus'][0]['fabricHealth']),
         (None, 'no NVIDIA driver was asked', None))
    same((doc['gpus'][1]['vendor'], doc['gpus'][1]['uuid'], doc['paths'][0]['directLinks']), ('amd', 'GPU-1f8b2c3d4e5f6026', 4))


def test_two_makers_on_one_machine_and_their_fleet_file():
    amd('m', 1, '05', '00 00')
    r = scene('h200', 'gpus', root='m')
    same(r.out.splitlines()[1], 'driver 580.159.03, CUDA 13.0, amdgpu of the kernel, 2 GPUs')
    r = scene('h200', 'fleet', 'export', '--name', 'n1', '--out', 'f.yaml', root='m')
    same(r.rc, 0, repr(r))
    text = pathlib.Path('f.yaml').read_text()
    has(text, '      - {index: 1, uuid: GPU-1f8b2c3d4e5f6005, model: "AMD Instinct MI300X", numa: 1, fabric: n1-xgmi-8675309}\n')
    has(text, '    # GPU 1: compute partition SPX, memory partition NPS1, isolation off: not judged\n')
    write('p.yaml', GOOD)
    lint = run('lint', 'p.yaml', '--fleet', 'f.yaml')
    assert lint.rc in (0, 1) and 'f.yaml:' not in lint.err, repr(lint)


def test_labels_that_differ_from_the_silicon_are_found():
    gfd = 'm/etc/kubernetes/node-feature-discovery/features.d/gfd'
    write(gfd, '# +expiry-time=2030-01-01T00:00:00Z\nnvidia.com/gpu.count=8\nnvidia.com/gpu.product=NVIDIA-A30\n'
          'nvidia.com/gpu.product=NVIDIA-H200\nnvidia.com/mig.capable\nno label: here\n')
    r = scene('h200', 'fleet', 'export', '--name', 'n1', '--out', 'f.yaml', root='m')
    same(r.rc, 0, repr(r))
    text = pathlib.Path('f.yaml').read_text()
    has(text, '    labels:\n      nvidia.com/gpu.count: 8\n      nvidia.com/gpu.product: NVIDIA-H200\n'
              '      nvidia.com/mig.capable: "true"\n')
    has(text, '    # labels: 1 line of /etc/kubernetes/node-feature-discovery/features.d/gfd left out: no label\n')
    write('p.yaml', GOOD)
    has(run('lint', 'p.yaml', '--fleet', 'f.yaml').out, 'Discovery drift on n1: label nvidia.com/gpu.count=8, observed 1.')
    write(gfd, 'nvidia.com/gpu.count=1\nnvidia.com/gpu.product=NVIDIA-H200\n')
    same(scene('h200', 'fleet', 'export', '--out', 'f.yaml', '--force', root='m').rc, 0)
    assert 'drift' not in run('lint', 'p.yaml', '--fleet', 'f.yaml').out
    has(scene('h200', 'fleet', 'export').out, '    # labels: not known: no labels of GPU feature discovery on this machine; '
        'add them by hand\n')


tap.main(globals())
