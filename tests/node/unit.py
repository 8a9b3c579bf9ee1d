# SPDX-License-Identifier: Apache-2.0
"""The service unit: nothing in it keeps the GPUs from the daemon, or is handed down to tenants without their policy saying so.

Usage: unit.py BULKHEAD SOURCE-ROOT
"""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import ROOT, Skip, same  # noqa: E402

UNIT = ROOT / 'packaging' / 'bulkheadd.service'
# Each with what it would break. All of them pass to whatever the daemon starts, tenants' work included.
NEVER = {
    # A list of devices: what is not on it cannot be opened, and the driver's nodes come and go.
    'DeviceAllow': 'GPUs', 'DevicePolicy': 'GPUs', 'PrivateDevices': 'GPUs',
    'ProtectClock': 'GPUs: it implies DeviceAllow=char-rtc, which is a list (systemd before 253)',
    # Seccomp filters.
    'LockPersonality': 'tenants', 'RestrictRealtime': 'tenants', 'RestrictAddressFamilies': 'tenants', 'RestrictNamespaces': 'containers',
    'RestrictSUIDSGID': 'tenants', 'SystemCallArchitectures': 'tenants', 'SystemCallFilter': 'tenants', 'MemoryDenyWriteExecute': 'tenants',
    'ProtectHostname': 'containers, which set the name of their own', 'ProtectKernelLogs': 'the driver\'s errors in the kernel\'s log',
    'ProtectKernelModules': 'nvidia-modprobe', 'ProtectKernelTunables': 'containers', 'ProtectControlGroups': 'the cgroups of leases',
    'CapabilityBoundingSet': 'containers', 'NoExecPaths': 'tenants',
    # Namespaces of mounts, users and the network.
    'ProtectSystem': 'tenants', 'ProtectHome': 'tenants', 'PrivateTmp': 'tenants', 'PrivateUsers': 'tenants', 'PrivateNetwork': 'tenants',
    'ProtectProc': 'who is on the cards', 'ReadOnlyPaths': 'tenants', 'InaccessiblePaths': 'tenants',
    # Limits of all tenants together.
    'MemoryMax': 'tenants', 'CPUQuota': 'tenants',
}
MUST = {'Type': 'notify', 'KillMode': 'process', 'Delegate': 'yes', 'TasksMax': 'infinity', 'NoNewPrivileges': 'no',
        'RuntimeDirectoryPreserve': 'yes', 'Restart': 'always'}


def settings():
    lines = [x.strip() for x in UNIT.read_text().splitlines()]
    return dict(x.split('=', 1) for x in lines if '=' in x and not x.startswith('#'))


def test_nothing_is_handed_down():
    found = {k: NEVER[k] for k in settings() if k in NEVER}
    same(found, {}, 'settings that break something')


def test_what_work_relies_on():
    have = settings()
    same({k: have.get(k) for k in MUST}, MUST)


def test_systemd_reads_it():
    if not shutil.which('systemd-analyze'):
        raise Skip('systemd-analyze is not installed')
    text = UNIT.read_text().replace('/usr/sbin/bulkheadd', '/bin/true')
    pathlib.Path('bulkheadd.service').write_text(text)
    done = subprocess.run(['systemd-analyze', 'verify', '--man=no', './bulkheadd.service'], capture_output=True, text=True,
                          check=False, timeout=60)
    mine = [x for x in (done.stdout + done.stderr).splitlines() if 'bulkheadd.service' in x]
    same(mine, [], 'what systemd says of it')


if __name__ == '__main__':
    tap.main(globals())
