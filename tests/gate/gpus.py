# SPDX-License-Identifier: Apache-2.0
"""Leases over several GPUs: each GPU has its own cap, and no lease is another one's trouble.

Usage: gpus.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT
"""
import contextlib
import json
import os
import pathlib
import re
import socket
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import CONTEXT_MAX, GIB, QUIET, TENANT, bulkhead, finish, gated, lines, node, start, tap, until  # noqa: E402
from tap import has, same  # noqa: E402

MIB = 1 << 20
MSG = struct.Struct('<IiIIIIQQQQQ')  # struct bh_sim_msg
OP_MIG, OP_HELD = 14, 16  # enum bh_sim_op
MIG_MODE, MIG_GI_CREATE, MIG_CI_CREATE = 0, 1, 4
ORDER = struct.Struct('<IIIiIIIi')  # struct bh_sim_mig_order
A100_3G = (9, 3)  # profile and slices of 3g.40gb


def ask(env, op, body=b'', a=0):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(env['BULKHEAD_SIM'] + '/rm.sock')
        s.send(MSG.pack(op, 0, 0, 0, len(body), 0, a, 0, 0, 0, 0) + body)
        reply = s.recv(1 << 17)
    same(MSG.unpack(reply[:MSG.size])[1], 0, 'the manager refused')
    return reply[MSG.size:]


def mig(env, verb, gpu, profile=0, gi=0):
    done = ORDER.unpack(ask(env, OP_MIG, ORDER.pack(verb, gpu, profile, -1, gi, 0, 0, 0)))
    same(done[7], 0, 'NVML status')
    return done[4] if verb == MIG_GI_CREATE else done[5]


def uuids(env):
    """Of the MIG instances, as the node shows them to its users."""
    r = bulkhead('gpus', '-o', 'json', **env)
    return [i['uuid'] for g in json.loads(r.out)['gpus'] for i in g.get('instances', [])]


def empty(env):
    until(lambda: not any(struct.unpack('<8Q', ask(env, OP_HELD))))


def on(gpu, *words):
    return (*QUIET, TENANT, '--device', str(gpu), *words)


@contextlib.contextmanager
def running(env, *command, ready=1, **kw):
    """A lease that is left alone until the end, when it is killed; it must have said `ready` so many times."""
    p = start(env, *command, start_new_session=True, **kw)
    try:
        for _ in range(ready):
            same(p.stdout.readline(), b'ready\n', 'ready')
        yield p
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(p.pid, 9)
        finish(p)


def filled(r, cap):
    """What a tenant that filled a GPU found: no more than the cap, and nearly all of it."""
    said = lines(r.out)
    has(said['error'], 'CUDA_ERROR_OUT_OF_MEMORY')
    assert cap - CONTEXT_MAX - GIB <= int(said['taken']) <= cap, repr(r)
    return int(said['got'])


def test_the_cap_is_each_gpus_own():
    with node('h100x8') as env:
        for gpu in (0, 3, 7):
            filled(gated(env, *on(gpu, 'fill', 'plain')), 10 * GIB)
        # all eight at once in one lease: a cap on each of them, none on their sum
        script = ' & '.join(f'{TENANT} --device {g} fill plain 100GiB 1' for g in range(8))
        r = gated({**env, 'ASAN_OPTIONS': 'detect_leaks=0'}, 'sh', '-c', f'{script} & wait', cap='5GiB', options=['--stats'])
        same(r.rc, 0, repr(r))
        same([int(n) // GIB for n in re.findall(r'^got (\d+)$', r.out, re.M)], [4] * 8, repr(r))
        has(r.err, 'of 5 GiB')
        has(r.err, '0 killed')
        empty(env)


def test_memory_on_one_gpu_leaves_the_others_alone():
    with node('h100x8') as env:
        # 8 GiB are held on GPU 2 by a process of the lease; another of it has all of 10 GiB on GPU 5, and 1 GiB on 2
        script = f'{TENANT} --device 2 hold 8GiB 1000 & read -r x; {TENANT} --device 5 fill plain; {TENANT} --device 2 fill plain'
        p = start({**env, 'ASAN_OPTIONS': 'detect_leaks=0'}, 'sh', '-c', script, start_new_session=True)
        try:
            same(p.stdout.readline(), b'ready\n')
            p.stdin.write(b'\n')
            p.stdin.flush()
            text = ''
            while text.count('error') < 2:
                text += p.stdout.readline().decode()
        finally:
            os.killpg(p.pid, 9)
            finish(p)
        same([int(n) // GIB for n in re.findall(r'^got (\d+)$', text, re.M)], [9, 0], text)
        empty(env)


def test_visible_devices_choose_whose_cap_it_is():
    with node('h100x8') as env:
        with running(env, *on(3, 'hold', '9GiB', '1000')):
            # by the environment the same GPU is number 0; another lease has another cap
            said = lines(gated({**env, 'CUDA_VISIBLE_DEVICES': '3'}, *on(0, 'fill', 'plain')).out)
            same(int(said['got']), 9 * GIB)
        # in one lease GPU 3 is one GPU, however it is named
        script = f'{TENANT} --device 3 hold 8GiB 1000 & read -r x; CUDA_VISIBLE_DEVICES=3 {TENANT} fill plain; kill $!'
        p = start({**env, 'ASAN_OPTIONS': 'detect_leaks=0'}, 'sh', '-c', script)
        same(p.stdout.readline(), b'ready\n')
        out = finish(p, b'\n')[1]
        same(int(lines(out)['got']) // GIB, 0, out)
        empty(env)


def test_leases_on_the_same_gpus_do_not_share_a_cap():
    with node('h100x8') as env:
        one = {**env, 'CUDA_VISIBLE_DEVICES': '1,2'}
        two = {**env, 'CUDA_VISIBLE_DEVICES': '2,3'}
        with running(one, *on(1, 'fill', 'plain', '100GiB', '1000'), ready=0) as p:
            text = ''
            while 'error' not in text:
                text += p.stdout.readline().decode()
            same(int(lines(text)['got']), 9 * GIB, text)
            # GPU 2 is full for the first lease only
            filled(gated(two, *on(0, 'fill', 'plain')), 10 * GIB)
            filled(gated(two, *on(1, 'fill', 'async'), cap='20GiB'), 20 * GIB)
        empty(env)


def test_a_fault_in_one_lease_leaves_the_others_running():
    with node('h100x8') as env:
        with running(env, *on(0, 'churn', '100000000', '1')) as calm:
            for _ in range(3):
                r = gated(env, *on(0, 'fault'))
                same(r.rc, 0, repr(r))
                same(lines(r.out)['first'], '700 CUDA_ERROR_ILLEGAL_ADDRESS')
            # a second process of the lease that faulted goes on too
            r = gated(env, 'sh', '-c', f'{" ".join(on(0, "fault"))}; {" ".join(on(0, "churn", "200", "3"))}')
            same((r.rc, int(lines(r.out)['wrong'])), (0, 0), repr(r))
            assert calm.poll() is None, 'the other lease ended'
            r = gated(env, *on(0, 'churn', '300', '2'))
            same((r.rc, int(lines(r.out)['wrong'])), (0, 0), repr(r))
        empty(env)


def test_memory_of_two_processes_counts_once():
    with node('h100x8') as env:
        r = gated(env, *QUIET, TENANT, 'ipc', options=['--stats'])
        same((r.rc, lines(r.out)['handle'], lines(r.out)['descriptor']), (0, 'child 0 answer yes', 'child 0 answer yes'), repr(r))
        has(r.err, '0 refused for memory')
        empty(env)


def test_memory_is_lent_within_a_lease_and_not_to_another():
    with node('h100x8') as env:
        p = start(env, *QUIET, TENANT, 'share', '6GiB', options=['--stats'])
        word, handle = p.stdout.readline().decode().split()
        same(word, 'shared')
        r = gated(env, *QUIET, TENANT, 'borrow', handle, 'plain', options=['--stats'])
        assert r.rc > 0 and 'found' not in r.out, repr(r)
        has(r.err, 'cuIpcOpenMemHandle')
        has(r.err, '0 killed')
        rc, out, err = finish(p, b'')
        same((rc, lines(out)['answer']), (0, 'no'), err)
        has(err, '0 killed')
        # in one lease it counts once, and it counts: 3 GiB are left beside it and two contexts
        script = (f'mkfifo hold; {TENANT} share 6GiB < hold > said & exec 5> hold; '
                  f'until read -r word handle < said; do sleep 0.01; done; {TENANT} borrow $handle plain; exec 5>&-; wait')
        p = start({**env, 'ASAN_OPTIONS': 'detect_leaks=0'}, 'sh', '-c', script)
        rc, out, err = finish(p)
        same((rc, lines(out)['found'], int(lines(out)['got']) // GIB), (0, 'yes', 2), f'{out} {err}')
        has(pathlib.Path('said').read_text(), 'answer yes')
        empty(env)


def cut(env, gpu):
    for _ in range(2):
        mig(env, MIG_CI_CREATE, gpu, A100_3G[1], mig(env, MIG_GI_CREATE, gpu, A100_3G[0]))


def test_in_a_mig_instance_the_cap_holds_by_count():
    with node('a100x8') as env:
        mig(env, MIG_MODE, 6, 1)
        cut(env, 6)
        first, second = uuids(env)
        inside = {**env, 'CUDA_VISIBLE_DEVICES': first}
        r = gated(inside, *QUIET, TENANT, 'fill', 'plain', options=['--stats'])
        filled(r, 10 * GIB)
        has(r.err, '0 killed')
        # both instances are one GPU to the cap of a lease: what is held in one counts in the other
        script = (f'CUDA_VISIBLE_DEVICES={first} {TENANT} hold 7GiB 1000 & read -r x; '
                  f'CUDA_VISIBLE_DEVICES={second} {TENANT} fill plain; kill $!')
        p = start({**env, 'ASAN_OPTIONS': 'detect_leaks=0'}, 'sh', '-c', script)
        same(p.stdout.readline(), b'ready\n')
        out = finish(p, b'\n')[1]
        same(int(lines(out)['got']) // GIB, 1, out)
        # and a GPU that is not cut is not touched by it
        filled(gated({**env, 'CUDA_VISIBLE_DEVICES': '0'}, *QUIET, TENANT, 'fill', 'plain'), 10 * GIB)
        empty(env)


def test_where_every_gpu_is_cut_it_is_held_or_refused_in_words():
    with node('mig') as env:
        cut(env, 0)
        r = gated({**env, 'CUDA_VISIBLE_DEVICES': uuids(env)[0]}, *QUIET, TENANT, 'fill', 'plain')
        if r.rc == 1 and not r.out:  # the self-test finds no GPU to try it on
            same(r.err.count('\n'), 1, repr(r))
            has(r.err, 'cut into MIG instances')
        else:
            filled(r, 10 * GIB)
        empty(env)


if __name__ == '__main__':
    tap.main({k: v for k, v in globals().items() if k.startswith('test_')})
