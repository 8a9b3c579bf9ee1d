# SPDX-License-Identifier: Apache-2.0
"""A guest of QEMU's with a distribution's kernel, cgroups of version 2 and none of version 1, and this machine's files.

The guest has this machine's root to read only, with a layer in its own memory above it: programs, libraries and the build folder are
where they are here, and nothing that is done there stays. It is emulated in full (TCG), so nothing of this machine's processor or
kernel is needed; it is slow.

The kernel's package is unpacked in a folder, not installed (tools/setup guest).
"""
import io
import lzma
import os
import pathlib
import shutil
import struct
import subprocess

QEMU = 'qemu-system-x86_64'
BUSYBOX = '/bin/busybox'
# What it takes to see this machine's files and a disk; and what the networks of leases are made of.
MODULES = ('crc32c_generic', 'virtio_pci', '9pnet_virtio', '9p', 'overlay', 'virtio_blk',
           'bridge', 'veth', 'nf_tables', 'nft_ct', 'nft_masq', 'nft_chain_nat', 'nft_meta_bridge', 'sch_tbf')
INIT = '''\
#!/bin/busybox sh
bad() {
    echo "guest: $*"
    busybox poweroff -f
}
export PATH=/bin
busybox mkdir -p /proc /sys /dev /lower /upper /new
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs dev /dev
while read m; do busybox insmod /modules/$m || bad "no module $m"; done </order
busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=512000 host /lower || bad 'no files of the host'
busybox mount -t tmpfs -o size=90% tmpfs /upper
busybox mkdir /upper/files /upper/work
busybox mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /new || bad 'no overlay'
busybox mkdir -p /new/proc /new/sys /new/dev /new/run /new/scratch
busybox mount -t proc proc /new/proc
busybox mount -t sysfs sysfs /new/sys
busybox mount -t devtmpfs dev /new/dev
busybox mkdir -p /new/dev/pts /new/dev/shm /new/dev/mqueue
busybox mount -t devpts -o ptmxmode=666 devpts /new/dev/pts
busybox mount -t tmpfs tmpfs /new/dev/shm
busybox mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /new/sys/fs/cgroup || bad 'no cgroups of version 2'
busybox mount -t tmpfs -o mode=755 tmpfs /new/run
busybox mount -t tmpfs -o mode=1777 tmpfs /new/scratch
busybox cp /plan.json /new/run/plan.json
exec busybox switch_root /new /bin/sh -c "$(busybox cat /then)"
'''
THEN = '''\
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/scratch PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 BULKHEAD_TEST_PATIENCE=5
/usr/bin/python3 {inside} /run/plan.json
{busybox} poweroff -f
'''


class Absent(Exception):
    """What a guest is made of is not on this machine; says what."""


def kernel(root):
    """The folder with a kernel's package in it."""
    folder = pathlib.Path(os.environ.get('BULKHEAD_GUEST', root / 'build/guest'))
    if not shutil.which(QEMU):
        raise Absent(f'{QEMU} is not installed (tools/setup guest)')
    if not os.access(BUSYBOX, os.X_OK):
        raise Absent('busybox is not installed (tools/setup guest)')
    if not sorted(folder.glob('boot/vmlinuz-*')):
        raise Absent('no kernel for a guest has been fetched (tools/setup guest)')
    return folder


def unpacked(image):
    """The kernel as it is in memory: an emulated processor would take half a minute for this."""
    data = image.read_bytes()
    at = (data[0x1f1] + 1) * 512 + struct.unpack_from('<I', data, 0x248)[0]
    packed = data[at:at + struct.unpack_from('<I', data, 0x24c)[0]]
    if not packed.startswith(b'\xfd7zXZ'):
        return None  # packed in another way: as it is
    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(packed)


def modules(folder, version):
    """Files of MODULES and of those that they need, in the order in which they are put in."""
    top = folder / 'lib/modules' / version
    files = {p.stem: p for p in top.rglob('*.ko')}
    order = []

    def take(name):
        if name in order:
            return
        # A module's section of notes names the ones that it needs: depends=a,b
        found = [w for w in files[name].read_bytes().split(b'\0') if w.startswith(b'depends=')]
        for other in filter(None, found[0][8:].decode().split(',') if found else []):
            take(other.replace('-', '_') if other.replace('-', '_') in files else other)
        order.append(name)
    for name in MODULES:
        take(name)
    return [(n, files[n]) for n in order]


class Archive:
    """What the kernel unpacks at its start (cpio, "newc")."""

    def __init__(self):
        self.out = io.BytesIO()
        self.n = 0

    def add(self, name, mode, data=b''):
        self.n += 1
        name = name.encode() + b'\0'
        head = b'070701' + b''.join(b'%08x' % v for v in (self.n, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0))
        for part in (head + name, data):
            self.out.write(part + b'\0' * (-len(part) % 4))

    def write(self, path):
        self.add('TRAILER!!!', 0)
        pathlib.Path(path).write_bytes(self.out.getvalue())


def first_files(path, folder, version, inside, plan):
    a = Archive()
    for d in ('bin', 'modules'):
        a.add(d, 0o040755)
    a.add('bin/busybox', 0o100755, pathlib.Path(BUSYBOX).read_bytes())
    a.add('init', 0o100755, INIT.encode())
    a.add('then', 0o100644, THEN.format(inside=inside, busybox=BUSYBOX).encode())
    a.add('plan.json', 0o100644, plan.encode())
    order = modules(folder, version)
    for name, file in order:
        a.add(f'modules/{name}.ko', 0o100644, file.read_bytes())
    a.add('order', 0o100644, ''.join(f'{n}.ko\n' for n, _ in order).encode())
    a.write(path)


def start(folder, here, inside, plan):
    """A guest that runs `inside` with `plan`, writes to here/console and here/report, and goes when that has ended."""
    image = sorted(folder.glob('boot/vmlinuz-*'))[-1]
    version = image.name.removeprefix('vmlinuz-')
    data = unpacked(image)
    if data:
        image = here / 'vmlinux'
        image.write_bytes(data)
    first_files(here / 'initrd', folder, version, inside, plan)
    words = [QEMU, '-accel', 'tcg,thread=multi', '-cpu', 'Nehalem', '-machine', 'q35', '-smp', '2', '-m', '2048',
             '-nodefaults', '-display', 'none', '-no-reboot', '-nic', 'none',
             '-serial', f'file:{here}/console', '-serial', f'file:{here}/report',
             '-kernel', str(image), '-initrd', f'{here}/initrd',
             '-append', 'console=ttyS0 quiet panic=1 nokaslr mitigations=off tsc=reliable',
             '-fsdev', 'local,id=root,path=/,security_model=none,readonly=on,multidevs=remap',
             '-device', 'virtio-9p-pci,fsdev=root,mount_tag=host',
             '-blockdev', f'driver=null-co,node-name=disk,size={1 << 26},read-zeroes=on', '-device', 'virtio-blk-pci,drive=disk']
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
