# SPDX-License-Identifier: Apache-2.0
"""The test tenant on simulated nodes: every verb, on every kind of card it must run on.

The tenant loads libcuda.so.1 as it would on a real machine. Afterwards a node holds nothing of it.

Usage: tenants.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT [FOLDER-WITH-BOTH-LIBRARIES]
"""
import contextlib
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import BIN, ROOT, Result, environment, has, same  # noqa: E402

TENANT = os.path.abspath(sys.argv[3])
LIBS = {'BULKHEAD_SIM_LIB': os.path.abspath(sys.argv[4])} if len(sys.argv) > 4 else {}
MIB, GIB = 1 << 20, 1 << 30
CUDA_OUT_OF_MEMORY = 2
# struct bh_sim_msg, and the numbers of enum bh_sim_op that are used here
MSG = struct.Struct('<IiIIIIQQQQQ')
OP_OPEN, OP_WAIT, OP_MIG, OP_HELD, OP_JOURNAL = 1, 8, 14, 16, 17
HELD = ('files', 'clients', 'objects', 'bytes', 'groups', 'channels', 'ranges', 'chunks')
MIG_GI_CREATE, MIG_CI_CREATE = 1, 4


def command(*args, timeout=120, **env):
    done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=timeout,
                          env=environment(BULKHEAD_SIM_HOME=os.path.abspath('h'), **{**LIBS, **env}))
    return Result(done)


class Node:
    def __init__(self, scene):
        self.scene = scene
        r = command(BIN, 'sim', 'start', scene, '--name', 'n')
        same(r.rc, 0, repr(r))
        self.folder = os.path.abspath('h/n')

    def run(self, *args, **env):
        return command(BIN, 'sim', 'run', 'n', '--', *args, **env)

    def tenant(self, *args, rc=0, **env):
        """What it says, as {key: rest of the line}."""
        r = self.run(TENANT, *map(str, args), **env)
        same(r.rc, rc, f'{self.scene} {args} {r!r}')
        return dict((line + ' ').split(' ', 1) for line in r.out.splitlines())

    def ask(self, op, body=b'', a=0):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(self.folder + '/rm.sock')
            s.send(MSG.pack(op, 0, 0, 0, len(body), 0, a, 0, 0, 0, 0) + body)
            reply = s.recv(1 << 17)
        same(MSG.unpack(reply[:MSG.size])[1], 0, 'the manager refused')
        return reply[MSG.size:]

    def held(self):
        return dict(zip(HELD, struct.unpack('<8Q', self.ask(OP_HELD))))

    def mig(self, verb, gpu, profile=0, gi=0):
        """The instance that was made."""
        order = struct.Struct('<IIIiIIIi')
        done = order.unpack(self.ask(OP_MIG, order.pack(verb, gpu, profile, -1, gi, 0, 0, 0)))
        same(done[7], 0, 'NVML status')
        return done[4] if verb == MIG_GI_CREATE else done[5]

    def gpus(self):
        r = self.run(BIN, 'gpus', '-o', 'json')
        same(r.rc, 0, repr(r))
        return json.loads(r.out)['gpus']

    def empty(self):
        """Closing is seen a moment after a process is gone."""
        for _ in range(200):
            held = self.held()
            if not any(held.values()):
                return
            time.sleep(0.02)
        raise AssertionError(f'{self.scene}: left behind: {held}')


@contextlib.contextmanager
def node(scene):
    os.mkdir('h')
    try:
        n = Node(scene)
        yield n
        n.empty()
    finally:
        r = command(BIN, 'sim', 'stop', '--all')
    same(r.rc, 0, repr(r))
    os.rmdir('h')


# Scene, and which of its GPUs: not always the first.
WHOLE = (('h200', 0), ('a30x4', 3), ('a100x8', 5))
# What a piece is in each way to fill a card. The last one of them may not fit; nothing else may be missing.
PIECES = {'plain': GIB, 'pitch': GIB, 'vmm': GIB, 'vmm-released': GIB, 'async': GIB, 'pool': GIB, 'array': 256 * MIB,
          'array3d': 256 * MIB, 'graph': GIB}


def every(scenes=WHOLE):
    for scene, gpu in scenes:
        with node(scene) as n:
            yield n, gpu


def test_info_agrees_with_the_other_library():
    for n, gpu in every():
        said, seen = n.tenant('--device', gpu, 'info'), n.gpus()[gpu]
        same(int(said['devices']), len(n.gpus()))
        same((said['name'].strip(), said['pci'].strip()), (seen['name'], seen['pci']))
        same('GPU-' + said['uuid'].strip(), seen['uuid'].replace('-', '').replace('GPU', 'GPU-', 1))
        assert int(said['free']) < int(said['total']), said


def test_memory_in_every_form_ends_where_the_card_does():
    for n, gpu in every():
        for path, piece in PIECES.items():
            said = n.tenant('--device', gpu, 'fill', path)
            left = int(said['free']) - int(said['got'])
            same(int(said['error'].split()[0]), CUDA_OUT_OF_MEMORY, f'{n.scene} {path} {said}')
            # a pool takes whole parts, and sets some aside before the first
            assert 0 <= left < piece + 64 * MIB, f'{n.scene} {path} {said}'
            same(int(said['taken']) // MIB, int(said['got']) // MIB, f'{n.scene} {path}')
            n.empty()


def test_managed_memory_counts_where_it_is_used():
    for n, gpu in every():
        said = n.tenant('--device', gpu, 'fill', 'managed', '8GiB')
        same((int(said['got']), int(said['taken'])), (8 * GIB, 8 * GIB), n.scene)


def test_contexts_end_where_the_card_does():
    with node('a30x4') as n:
        said = n.tenant('fill', 'contexts')
        same(int(said['error'].split()[0]), CUDA_OUT_OF_MEMORY, said)
        each = int(said['taken']) / int(said['pieces'])
        assert 400 * MIB < each < 700 * MIB, said


def test_churn_finds_its_contents_unchanged():
    for n, gpu in every():
        said = n.tenant('--device', gpu, 'churn', 400, 11)
        same((said['wrong'].strip(), said['allocs']), ('0', said['frees']), n.scene)
        assert int(said['allocs']) > 20 and int(said['launches']) > 20, said


def test_spin_graph_ipc_and_fault():
    for n, gpu in every():
        device = ('--device', gpu)
        assert int(n.tenant(*device, 'spin', 1, 2000)['units']) > 0
        graph = n.tenant(*device, 'graph')
        same((graph['kernels'], graph['capture']), ('ok ', 'ok '))
        same(graph['memory'].split(), ['kept', str(256 * MIB), 'back', str(256 * MIB)])
        if gpu == 0:  # the tenant's child takes the first GPU
            ipc = n.tenant('ipc')
            same((ipc['handle'], ipc['descriptor']), ('child 0 answer yes ', 'child 0 answer yes '))
        fault = n.tenant(*device, 'fault')
        same((fault['first'], fault['second']), ('700 CUDA_ERROR_ILLEGAL_ADDRESS ',) * 2)


def test_nothing_is_found_in_memory_that_somebody_else_had():
    for n, gpu in every((('h200', 0), ('a30x4', 1))):
        n.tenant('--device', gpu, 'residue', 'plant', '512MiB')
        said = n.tenant('--device', gpu, 'residue', 'scan', '512MiB')
        same((said['canaries'].strip(), said['others'].strip()), ('0', '0'), n.scene)


def test_residue_is_found_where_nothing_is_scrubbed():
    """The scan above can fail: a card that does not scrub is caught."""
    with node('h200') as n:
        r = command(BIN, 'sim', 'break', 'n', 'scrub', 'off')
        same(r.rc, 0, repr(r))
        n.tenant('residue', 'plant', '64MiB')
        said = n.tenant('residue', 'scan', '64MiB', rc=1)
        assert int(said['canaries']) > 0, said
        r = command(BIN, 'sim', 'break', 'n', 'mend')
        same(r.rc, 0, repr(r))


def test_mig_instances_are_cards_of_their_own():
    with open(ROOT / 'data/gpu_catalog.json', encoding='utf-8') as f:
        models = {m['model']: m for m in json.load(f)['models']}
    with node('mig') as n:
        r = n.run(TENANT, 'info')  # MIG is on and nothing is cut: there is no device
        same(r.rc, 1, repr(r))
        has(r.err, 'CUDA_ERROR_NO_DEVICE')
        model = models[n.gpus()[0]['model']]
        profile = next(p for p in model['profiles'] if p['name'].startswith('3g.') and '+' not in p['name'])
        for _ in range(2):
            gi = n.mig(MIG_GI_CREATE, 0, profile['gi_profile_id'])
            n.mig(MIG_CI_CREATE, 0, 3, gi)
        instances = n.gpus()[0]['instances']
        same(len(instances), 2)
        uuids = [i['uuid'] for i in instances]
        for uuid in uuids:
            said = n.tenant('info', CUDA_VISIBLE_DEVICES=uuid)
            same(said['devices'].strip(), '1')
            has(said['name'], 'MIG 3g.')
            assert int(said['total']) < n.gpus()[0]['totalBytes'] * 0.6, said
            same(int(n.tenant('fill', 'plain', CUDA_VISIBLE_DEVICES=uuid)['error'].split()[0]), CUDA_OUT_OF_MEMORY)
            same(n.tenant('churn', 200, 5, CUDA_VISIBLE_DEVICES=uuid)['wrong'].strip(), '0')
        same(n.tenant('info', CUDA_VISIBLE_DEVICES='0')['uuid'], n.tenant('info', CUDA_VISIBLE_DEVICES=uuids[0])['uuid'])
        one = subprocess.Popen([BIN, 'sim', 'run', 'n', '--', TENANT, 'hold', '10GiB'], stdout=subprocess.PIPE,
                               env=environment(BULKHEAD_SIM_HOME=os.path.abspath('h'), CUDA_VISIBLE_DEVICES=uuids[0], **LIBS))
        try:
            same(one.stdout.readline(), b'ready\n')
            a, b = (int(n.tenant('info', CUDA_VISIBLE_DEVICES=u)['free']) for u in uuids)
            assert b - a > 10 * GIB, (a, b)  # one's memory is none of the other's
        finally:
            one.kill()
            one.wait()


def test_visible_devices_choose_and_hide():
    with node('a30x4') as n:
        uuid = n.gpus()[2]['uuid']
        for words, count, first in (('2,0', 2, 2), (uuid, 1, 2), (uuid[:12], 1, 2), ('1,9,0', 1, 1), ('3', 1, 3)):
            said = n.tenant('info', CUDA_VISIBLE_DEVICES=words)
            same((int(said['devices']), said['pci'].strip()), (count, n.gpus()[first]['pci']), words)
        for words in ('', '-1', 'GPU-', 'none', '99'):
            r = n.run(TENANT, 'info', CUDA_VISIBLE_DEVICES=words)
            same(r.rc, 1, repr(r))
            has(r.err, 'CUDA_ERROR_NO_DEVICE')


if __name__ == '__main__':
    tap.main(globals())
