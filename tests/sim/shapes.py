# SPDX-License-Identifier: Apache-2.0
"""Simulated silicon against the recordings of a real card: the same program, call by call.

The program that was recorded on an H200 (tests/record/paths.c) runs on a simulated one while the resource manager keeps
a journal. Every call must be there, in order, with its sizes, class or command, flags and status. What may differ is
written down here, line by line; anything else fails.

Usage: shapes.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-PATHS PATH-TO-BULKHEAD-RECORD
"""
import difflib
import hashlib
import os
import pathlib
import random
import re
import sys

RECORDER = os.path.abspath(sys.argv.pop(4))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tenants import BIN, OP_JOURNAL, ROOT, TENANT as PATHS, command, node, same, tap  # noqa: E402

KEPT = ROOT / 'data' / 'recordings' / '580.159.04'
# Not calls: the program's own marks (no driver sees them) and the head and foot of a recording. And closes: the manager
# also sees those at the end of a process, a recorder does not; and the vendor's library closes duplicates of its own.
NOT_COMPARED = re.compile(r'(mark|close|bulkhead-recording|driver|gpu|what|end) ')

# The recordings as they came from the card. The stand-in plays one of them, so a recording that lost a call would be played
# and compared without it: what was recorded is held here. A new recording is pinned by whoever read its difference.
AS_RECORDED = {
    'mps-client.rec': '8b9d2661b03c04e64783ac95a1b5ad1d27f1fb09285090dfb336b43e0fb98309',
    'paths.rec': 'b68555b7cab704f45f9c74e9de070defd5f4b904a7a3c1435ef4750e3202fba9',
    'smi-busy.rec': '2ed6cbccffa19a487b460bbaa068801f970776cd103d16023f28613be0de74fc',
    'smi-list.rec': 'd031b3efe8c88a63d8b6b4dd483c7150ec56ea850a2b85f6b7781c19ac433e14',
    'smi-memory.rec': '8224ffd542d594945d88e32102322f7d3e2175aaaa19ab583b99c87ee37128a9',
    'smi-pmon.rec': 'e4018fd793c6932a435f4e9eb223ec4a3f3e990ad1661ae0b1a18cd0371f42d9',
    'smi.rec': '5b5a6335cb5d5b9c2fe09950dfd1fb490f7cac6941032dbcf96c5620c9ca34c8',
    'torch.rec': 'c5938a2a3933a18402dba3639fb61f62bff47ba200a1c5500847ac716554deb6',
}

# Where the two differ, and why that is let be: [recorded lines], [simulated lines].
KNOWN = [
    # The end of the process that imported memory frees one piece earlier than the end of the other process does; the
    # stand-in plays the same end for both.
    (['uvm call 34', 'ctl free 16 #155'], []),
    ([], ['uvm call 34', 'ctl free 16 #155']),
    # Giving back the right to use the card is answered with 0 in the second process and with 63 (in use) in the first.
    (['ctl control 32 command 20800146 on #5 params 0 flags 0 status 63'],
     ['ctl control 32 command 20800146 on #5 params 0 flags 0']),
]


def calls(text):
    return [line for line in text.splitlines() if not NOT_COMPARED.match(line + ' ')]


def differences(recorded, simulated):
    matcher = difflib.SequenceMatcher(None, recorded, simulated, autojunk=False)
    return [(recorded[a:b], simulated[c:d]) for op, a, b, c, d in matcher.get_opcodes() if op != 'equal']


def journal_of(n, *args):
    n.ask(OP_JOURNAL, a=1)
    r = n.run(*args)
    n.ask(OP_JOURNAL, a=0)
    same(r.rc, 0, repr(r))
    return (pathlib.Path(n.folder) / 'journal.rec').read_text(), r


def simulated():
    """What the manager was asked by the recorded program, once for all tests."""
    if not hasattr(simulated, 'text'):
        with node('h200') as n:
            simulated.text, r = journal_of(n, PATHS)
            assert '0 calls failed' in r.out + r.err, repr(r)
    return simulated.text


def with_sum(text):
    """The text with a foot that fits it: how somebody would change a recording who means to."""
    body = text[:text.rindex('end ')].encode()
    total = 0x811c9dc5
    for byte in body:
        total = (total ^ byte) * 0x01000193 & 0xffffffff
    return body.decode() + f'end {body.count(10)} {total:08x}\n'


def test_cuda_asks_and_is_answered_as_on_the_card():
    recorded = calls((KEPT / 'paths.rec').read_text())
    assert len(recorded) > 2000, len(recorded)
    same(differences(recorded, calls(simulated())), KNOWN)


def test_the_recordings_are_those_of_the_card():
    same({p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(KEPT.glob('*.rec'))}, AS_RECORDED)


def test_every_way_to_obtain_memory_was_compared():
    marks = re.findall(r'^mark (\S+)$', (KEPT / 'paths.rec').read_text(), re.M)
    for way in ('alloc-64m', 'alloc-small', 'pitch', 'array', 'array3d', 'vmm', 'pool', 'own-pool', 'managed', 'host',
                'register', 'graph-memory', 'ipc-export', 'ipc-import', 'second-context'):
        assert way in marks, way


def test_a_changed_byte_is_refused():
    text = (KEPT / 'paths.rec').read_bytes()
    rng = random.Random(1)
    for at in [rng.randrange(len(text)) for _ in range(40)]:
        changed = bytearray(text)
        changed[at] ^= 1
        pathlib.Path('changed.rec').write_bytes(changed)
        r = command(RECORDER, 'show', 'changed.rec')
        assert r.rc == 2 and 'changed.rec' in r.err, (at, repr(r))


def test_a_changed_call_is_found_even_with_a_new_sum():
    text = (KEPT / 'paths.rec').read_text()
    lines = text.splitlines(keepends=True)
    rng = random.Random(2)
    numbers = [i for i, line in enumerate(lines) if not NOT_COMPARED.match(line) and re.search(r' \d', line)]
    for i in rng.sample(numbers, 40):
        changed = list(lines)
        at = changed[i].rindex(re.findall(r'\d', changed[i])[-1])
        changed[i] = changed[i][:at] + str((int(changed[i][at]) + 1) % 10) + changed[i][at + 1:]
        assert changed[i] != lines[i]
        assert differences(calls(with_sum(''.join(changed))), calls(simulated())) != KNOWN, lines[i]
    same(with_sum(text), text)


def test_nvml_asks_only_what_nvidia_smi_asks():
    """The NVML stand-in asks the driver for less than the vendor's library does, and for nothing else."""
    def shapes(text):
        return {re.sub(r' times \d+$', '', re.sub(r'#\d+', '#', line)) for line in calls(text)}
    theirs = set().union(*(shapes(p.read_text()) for p in KEPT.glob('smi*.rec')))
    with node('h200') as n:
        ours = shapes(journal_of(n, BIN, 'gpus')[0])
    assert len(ours) >= 6, ours
    same(sorted(ours - theirs), [])


tap.main(globals())
