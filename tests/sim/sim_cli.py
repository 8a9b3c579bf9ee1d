# SPDX-License-Identifier: Apache-2.0
"""bulkhead sim, and the other commands on simulated nodes: the real binary, server, libraries and driver code.

Usage: sim_cli.py PATH-TO-BULKHEAD SOURCE-ROOT [FOLDER-WITH-BOTH-LIBRARIES]
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import BIN, GOOD, Result, Skip, environment, has, same, write  # noqa: E402

LIBS = {'BULKHEAD_SIM_LIB': os.path.abspath(sys.argv[3])} if len(sys.argv) > 3 else {}
NOBODY = 65534


def sim(*args, **env):
    """Run bulkhead with this test's own home of nodes."""
    done = subprocess.run([BIN, *args], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120,
                          env=environment(**{'BULKHEAD_SIM_HOME': os.path.abspath('h'), **LIBS, **env}))
    return Result(done)


def good(*args, **env):
    r = sim(*args, **env)
    same(r.rc, 0, repr(r))
    return r


def on(name, *args, **env):
    """A bulkhead command on a node."""
    return sim('sim', 'run', name, '--', BIN, *args, **env)


def nodes():
    doc = json.loads(good('sim', 'list', '-o', 'json').out)
    same((doc['version'], doc['simulated']), (1, True))
    return {n['name']: n for n in doc['nodes']}


@contextlib.contextmanager
def home():
    """An empty home; whatever the test did, nothing may be left behind."""
    os.mkdir('h')
    os.chmod('.', 0o755)
    try:
        yield
    finally:
        r = sim('sim', 'stop', '--all')
    same(r.rc, 0, repr(r))
    same(os.listdir('h'), [], 'left behind')


def dies(name):
    """kill -9, and wait until the lock says so."""
    os.kill(nodes()[name]['pid'], signal.SIGKILL)
    for _ in range(500):
        if nodes()[name]['state'] == 'died':
            return
        time.sleep(0.01)
    raise AssertionError('still running')


def refused(rc, words, *args, **env):
    r = sim(*args, **env)
    same((r.rc, r.out, r.err.count('\n')), (rc, '', 1), repr(r))
    for w in words if isinstance(words, tuple) else (words,):
        has(r.err, w)


def scenes():
    return [s['name'] for s in json.loads(good('sim', 'scenes', '-o', 'json').out)['scenes']]


# What is wrong with a scene, and where it must be seen: the doctor's checks with a part of what they say, and the rules
# of lint that speak of the node. A scene that is not here is healthy.
JUDGED = {
    'mig': ({'silicon.mig': ('attention', 'GPUs 0, 1, 2, 3')}, set()),
    'partly-mig': ({'silicon.mig': ('attention', 'GPU 7')}, set()),
    'two-domains': ({'fabric.domains': ('note', 'GPUs 4, 5, 6, 7'), 'fabric.manager': ('note', 'no partitions')}, set()),
    'none': ({'silicon.gpus': ('broken', 'no GPU')}, set()),
    'drifted': ({'scheduler.labels': ('attention', 'NVIDIA-L40S'), 'silicon.mig': ('attention', 'GPUs 0, 1')}, {'BH-043'}),
    'dead': ({'silicon.gpus': ('broken', '7 of 8 answer; GPU 5: lost'), 'scheduler.labels': ('attention', 'says 8, the silicon 7'),
              'virtual.iommu': ('unknown', 'GPU 5'), 'virtual.groups': ('unknown', 'GPU 5'), 'virtual.acs': ('unknown', 'GPU 5')},
             {'BH-043'}),
    'failing': ({}, set()),  # allocations fail, which only a tenant sees
    'old-driver': ({'driver.advisories': ('attention', '535.183.01'), 'driver.branch': ('attention', '535.183.01'),
                    'host.memory': ('note', 'cannot park')}, {'BH-053'}),
}
BAD = ('attention', 'broken', 'unknown')


def examined(name, **env):
    """{id: check} of the doctor, and the whole; simulated must be said, and this machine's own kernel be asked."""
    r = on(name, 'doctor', '-o', 'json', '--now', '2026-06-01', **env)
    doc = json.loads(r.out)
    same((doc['simulated'], doc['live'], r.err), (True, True, ''), repr(r))
    same(r.rc, 1 if doc['counts']['attention'] or doc['counts']['broken'] else 0)
    return {c['id']: c for c in doc['checks']}, doc


def judged(checks, told, about):
    """Each fault is told, and nothing else is; what the machine at hand decides is left out."""
    for check, (state, words) in told.items():
        same(checks[check]['state'], state, f'{about}: {checks[check]}')
        has(checks[check]['seen'], words)
    faults = {c['id'] for c in checks.values() if c['state'] in BAD and not c['live'] and c['id'] != 'kernel.cgroup'}
    same(faults, {c for c, (state, _) in told.items() if state in BAD}, about)


def gpus_show(scene, doc):
    gpus = doc['gpus']
    same([g['index'] for g in gpus if not g['alive']], [5] if scene == 'dead' else [], scene)
    if scene in ('mig', 'drifted'):
        same([bool(g['migEnabled']) for g in gpus], [True] * (4 if scene == 'mig' else 2) + [False] * (0 if scene == 'mig' else 2))
    if scene in ('two-domains', 'h200x8'):
        same(len({g['domain'] for g in gpus}), 2 if scene == 'two-domains' else 1, scene)
    if scene == 'old-driver':
        same(doc['driver'], '535.183.01')


def test_every_scene_is_a_machine_that_the_other_commands_see():
    write('p.yaml', GOOD.replace('model: H200', 'model: H100'))
    with home():
        for scene in scenes():
            r = good('sim', 'start', scene, '--name', 'n')
            has(r.out, f'simulated node n: {scene}, ')
            n_gpus = nodes()['n']['gpus']
            has(r.out, f' {n_gpus} GPU')
            doc = on('n', 'gpus', '-o', 'json')
            same(doc.rc, 0, f'{scene} {doc!r}')
            doc = json.loads(doc.out)
            same((doc['simulated'], len(doc['gpus'])), (True, n_gpus), scene)
            for args in (['gpus'], ['gpus', '--tree'], ['fleet', 'export']):
                r = on('n', *args)
                same(r.rc, 0, f'{scene} {args} {r!r}')
                has(r.out.splitlines()[0], 'simulated')
            write(f'{scene}.yaml', r.out)
            same(r.out.count('- {index:'), sum(g['alive'] for g in doc['gpus']), scene)
            lint = sim('lint', '-o', 'json', '--now', '2026-06-01', 'p.yaml', '--fleet', f'{scene}.yaml')
            assert lint.rc in (0, 1), f'{scene} {lint!r}'
            told, rules = JUDGED.get(scene, ({}, set()))
            spoken = {f['rule'] for f in json.loads(lint.out)['findings'] if f['subject'].startswith('node:')}
            same(spoken, rules, scene)
            gpus_show(scene, doc)
            judged(examined('n')[0], told, scene)
            has(good('sim', 'stop', 'n').out, 'stopped simulated node n\n')
            same(os.listdir('h'), [], scene)


# How a call of the library that fails is judged: never as good, and never as "there is none".
BLIND = (('3 in nvmlDeviceGetTotalEccErrors', 'silicon.memory'), ('4 in nvmlDeviceGetMigMode', 'silicon.mig'),
         ('999 in nvmlDeviceGetMigMode', 'silicon.mig'), ('999 in nvmlDeviceGetNvLinkState', 'fabric.links'),
         ('999 in nvmlDeviceGetNvLinkState', 'fabric.domains'), ('999 in nvmlDeviceGetGpuFabricInfoV', 'fabric.state'),
         ('999 in nvmlDeviceGetPciInfo_v3', 'virtual.iommu'), ('999 in nvmlDeviceGetPciInfo_v3', 'virtual.groups'),
         ('999 in nvmlDeviceGetPciInfo_v3', 'virtual.acs'), ('999 in nvmlSystemGetConfComputeState', 'virtual.confidential'))


def test_what_the_driver_does_not_say_is_unknown_to_the_doctor():
    with home():
        good('sim', 'start', 'h100x8')
        for words, check in BLIND:
            good('sim', 'break', 'lab', 'library', 'fail', *words.split())
            same(examined('lab')[0][check]['state'], 'unknown', f'{words}: {check}')
        good('sim', 'break', 'lab', 'mend')
        judged(examined('lab')[0], {}, 'mended')


def test_what_is_broken_while_the_node_runs_is_seen_by_the_doctor():
    with home():
        good('sim', 'start', 'h100x8')
        for words, check, state, seen in (('gpu 2 throttle power', 'silicon.throttle', 'note', 'GPU 2 at the power cap'),
                                          ('gpu 2 throttle hot', 'silicon.throttle', 'attention', 'slowed down: power cap, too hot'),
                                          ('gpu 1 ecc 2', 'silicon.memory', 'attention', 'GPU 1'),
                                          ('gpu 4 link 3 down', 'fabric.links', 'attention', 'GPU 4'),
                                          ('scrub off', 'driver.scrub', 'attention', 'RMDisableScrubOnFree is set')):
            good('sim', 'break', 'lab', *words.split())
            c = examined('lab')[0][check]
            same(c['state'], state, f'{words}: {c}')
            has(c['seen'], seen)
        good('sim', 'break', 'lab', 'mend')
        judged(examined('lab')[0], {}, 'mended')
        refused(2, 'no function of the library', 'sim', 'break', 'lab', 'library', 'fail', '999', 'in', 'nosuch')


def test_a_node_that_fails_is_still_called_simulated():
    """With no library that could say so: by its environment, and by its files."""
    with home():
        good('sim', 'start', 'h100x8')
        good('sim', 'break', 'lab', 'library', 'fail', '9', 'in', 'nvmlInitWithFlags')
        good('sim', 'break', 'lab', 'library', 'fail', '9')
        root = os.path.abspath('h/lab/sysroot')
        checks, _ = examined('lab')
        same(checks['silicon.library']['state'], 'broken')
        lines = on('lab', 'doctor').out.splitlines()
        has(lines[0], 'simulated: no GPU stands behind these lines')
        has(lines[-1], 'simulated: can keep: ')
        for env in ({'BULKHEAD_SYSROOT': root}, {'BULKHEAD_SIM': os.path.abspath('h/lab')}):
            r = sim('doctor', '-o', 'json', BULKHEAD_NVML='no-such.so', **env)
            doc = json.loads(r.out)
            same((doc['simulated'], doc['live']), (True, True), f'{env} {r!r}')


def test_a_slow_node_is_waited_for_only_so_long():
    with home():
        good('sim', 'start', 'a30x4')
        good('sim', 'break', 'lab', 'calls', 'slow', '5000')
        r = on('lab', 'gpus', BULKHEAD_GPU_TIMEOUT='1')
        same((r.rc, r.out, r.err.count('\n')), (7, '', 1), repr(r))
        # Those who look after the node are not held up, and mending it is at once.
        good('sim', 'break', 'lab', 'mend')
        same(on('lab', 'gpus').rc, 0)


def test_any_model_of_the_catalogue():
    with home():
        has(good('sim', 'start', 'A30-24GBx3').out, ', 3 GPUs, seed 1\n')
        models = [g['model'] for g in json.loads(on('lab', 'gpus', '-o', 'json').out)['gpus']]
        assert len(models) == 3 and set(models) == {models[0]} and models[0].startswith('A30'), models


def test_start_says_what_was_made_and_what_comes_next():
    with home():
        r = good('sim', 'start')
        has(r.out, 'simulated node lab: ')
        has(r.out, f'in {os.path.abspath("h/lab")}\n')
        has(r.err, 'next: bulkhead sim run lab -- bulkhead gpus\n')
        has(r.err, 'next: eval "$(bulkhead sim env lab)"\n')
        folder = pathlib.Path('h/lab')
        same(folder.stat().st_mode & 0o777, 0o755)
        same((folder / 'rm.sock').stat().st_mode & 0o777, 0o666)
        for name in ('libnvidia-ml.so.1', 'libcuda.so.1'):
            assert (folder / 'lib' / name).resolve().is_file(), name
        has((folder / 'sysroot/proc/driver/nvidia/version').read_text(), 'NVRM version')
        has((folder / 'node').read_text(), 'simulated yes\n')
        same((folder / 'log').read_text(), '')


def test_list_says_whose_and_since_when():
    with home():
        has(good('sim', 'list').out, 'no simulated nodes\n')
        good('sim', 'start', 'a30x4', '--name', 'b', '--seed', '9')
        good('sim', 'start', '--name', 'a')
        same(list(nodes()), ['a', 'b'])
        b = nodes()['b']
        same((b['scene'], b['gpus'], b['seed'], b['state'], b['uid']), ('a30x4', 4, 9, 'running', os.geteuid()))
        assert re.fullmatch(r'20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ', b['since']), b
        lines = good('sim', 'list').out.splitlines()
        same(lines[0], '2 simulated nodes')
        same(lines[1].split(), ['NAME', 'SCENE', 'GPUS', 'SEED', 'STATE', 'OWNER', 'SINCE', 'FOLDER'])
        same(lines[3].split()[:7], ['b', 'a30x4', '4', '9', 'running', b['owner'], b['since']])


def test_the_same_seed_is_the_same_machine():
    with home():
        for name, seed in (('a', '5'), ('b', '5'), ('c', '6')):
            good('sim', 'start', 'a30x4', '--name', name, '--seed', seed)
        uuids = {n: [g['uuid'] for g in json.loads(on(n, 'gpus', '-o', 'json').out)['gpus']] for n in 'abc'}
        same(uuids['a'], uuids['b'])
        assert not set(uuids['a']) & set(uuids['c']), uuids


def test_env_is_for_a_shell():
    with home():
        good('sim', 'start', 'a30x4')
        r = good('sim', 'env', 'lab', LD_LIBRARY_PATH='/opt/one')
        has(r.out.splitlines()[0], '# simulated node lab')
        script = f'eval "$("{BIN}" sim env lab)"; echo "$BULKHEAD_SIM $BULKHEAD_NVML $BULKHEAD_SYSROOT $LD_LIBRARY_PATH"; "{BIN}" gpus'
        done = subprocess.run(['sh', '-ec', script], capture_output=True, check=False, text=True, timeout=60,
                              env=environment(BULKHEAD_SIM_HOME=os.path.abspath('h'), LD_LIBRARY_PATH='/opt/one'))
        same(done.returncode, 0, done.stderr)
        at = os.path.abspath('h/lab')
        same(done.stdout.splitlines()[0], f'{at} {at}/lib/libnvidia-ml.so.1 {at}/sysroot {at}/lib:/opt/one')
        has(done.stdout, 'simulated')
        has(done.stdout, '4 GPUs\n')


def test_run_is_the_command_and_nothing_more():
    with home():
        good('sim', 'start')
        same(sim('sim', 'run', 'lab', '--', 'sh', '-c', 'exit 42').rc, 42)
        r = good('sim', 'run', 'lab', '--', 'printf', '%s|', 'a b', '--name', '-o')
        same((r.out, r.err), ('a b|--name|-o|', ''))
        # SIGPIPE as a shell starts it
        same(sim('sim', 'run', 'lab', '--', 'sh', '-c', 'kill -PIPE $$').rc, -signal.SIGPIPE)
        refused(4, "'no-such-command'", 'sim', 'run', 'lab', '--', 'no-such-command')
        refused(2, 'NAME -- COMMAND', 'sim', 'run', 'lab')
        refused(2, "behind '--'", 'sim', 'run', 'lab', 'ls', '--all')


def test_break_and_mend():
    with home():
        good('sim', 'start', 'h100x8')
        r = good('sim', 'break', 'lab', 'gpu', '3', 'lost')
        same(r.out, 'simulated node lab: gpu 3 lost\n')
        has(r.err, 'next: bulkhead sim break lab mend\n')
        same([g['alive'] for g in json.loads(on('lab', 'gpus', '-o', 'json').out)['gpus']], [True] * 3 + [False] + [True] * 4)
        has(on('lab', 'gpus').out, 'GPU 3: lost')
        good('sim', 'break', 'lab', 'mend')
        same([g['alive'] for g in json.loads(on('lab', 'gpus', '-o', 'json').out)['gpus']], [True] * 8)
        refused(2, 'no GPU 8', 'sim', 'break', 'lab', 'gpu', '8', 'lost')
        r = sim('sim', 'break', 'lab', 'the', 'bank')
        same((r.rc, r.out), (2, ''), repr(r))
        refused(2, 'gpu 0 lost', 'sim', 'break', 'lab')
        refused(2, '511', 'sim', 'break', 'lab', 'x' * 600)


def test_a_server_that_was_killed():
    with home():
        good('sim', 'start', 'a30x4', '--seed', '3')
        env = {'BULKHEAD_SIM': os.path.abspath('h/lab'), 'BULKHEAD_SYSROOT': os.path.abspath('h/lab/sysroot'),
               'BULKHEAD_NVML': os.path.abspath('h/lab/lib/libnvidia-ml.so.1')}
        good('gpus', **env)
        dies('lab')
        r = sim('gpus', **env)
        assert r.rc in (4, 70) and r.out == '' and r.err.count('\n') == 1, repr(r)
        r = good('sim', 'list')
        has(r.out, ' died ')
        has(r.err, 'next: bulkhead sim stop lab')
        for args in (['env', 'lab'], ['run', 'lab', '--', 'true'], ['break', 'lab', 'mend']):
            refused(4, ('died', 'bulkhead sim start --name lab a30x4', 'bulkhead sim stop lab'), 'sim', *args)
        good('sim', 'start', 'h200')
        same(nodes()['lab']['scene'], 'h200')
        good('gpus', **env)
        dies('lab')
        same(good('sim', 'stop', 'lab').out, 'removed simulated node lab, which had died\n')
        same(os.listdir('h'), [])


def test_names_are_one_node_each():
    with home():
        good('sim', 'start')
        refused(5, ("'lab' runs already", '--name', 'bulkhead sim stop lab'), 'sim', 'start', 'a30x4')
        for name in ('', 'Lab', 'a/b', '..', 'x' * 64, '-x', 'a_b'):
            refused(2, 'no name for a node', 'sim', 'start', f'--name={name}')
        refused(4, "did you mean 'lab'?", 'sim', 'env', 'lob')
        refused(4, 'bulkhead sim list', 'sim', 'stop', 'something-else')
        same(list(nodes()), ['lab'])
        good('sim', 'stop', 'lab')
        refused(4, 'bulkhead sim start makes one', 'sim', 'stop', 'lab')


def test_what_is_no_node_is_left_alone():
    with home():
        write('h/lab/junk/deep/file', 'x')
        write('h/lab/lock', '')
        write('h/notes.txt', 'mine')
        write('h/other/file', 'mine')
        same(nodes(), {})
        refused(5, ('is no simulated node', 'another name'), 'sim', 'start')
        good('sim', 'stop', '--all')
        same(sorted(os.listdir('h/lab')), ['junk', 'lock'])
        assert os.path.exists('h/lab/junk/deep/file')
        shutil.rmtree('h/lab')
        os.mkdir('h/lab')  # an empty one is no hindrance
        good('sim', 'start')
        same(list(nodes()), ['lab'])
        good('sim', 'stop', '--all')
        same(sorted(os.listdir('h')), ['notes.txt', 'other'])
        os.remove('h/notes.txt')
        shutil.rmtree('h/other')


def test_slips_are_one_line():
    with home():
        for words, args in (("did you mean 'start'?", ['strt']), ('there are start, stop, list', ['frobnicate']),
                            ('one word too many', ['start', 'h200', 'h200']), ('takes no --all', ['start', '--all']),
                            ('takes no --name', ['list', '--name', 'x']), ('NAME or --all', ['stop']),
                            ('NAME or --all', ['stop', 'lab', '--all']), ('sim env needs NAME', ['env']),
                            ('--seed', ['start', '--seed', 'x']), ('--seed', ['start', '--seed', '-1']),
                            ('--seed', ['start', '--seed', '99999999999999999999'])):
            refused(2, words, 'sim', *args)
        refused(4, "'mig'", 'sim', 'start', 'mgi')
        r = sim('sim')
        same((r.rc, r.out), (2, ''), repr(r))
        same(os.listdir('h'), [])


def test_a_library_that_is_not_there():
    with home():
        os.mkdir('empty')
        refused(4, ('libnvidia-ml.so.1', os.path.abspath('empty'), 'BULKHEAD_SIM_LIB'), 'sim', 'start',
                BULKHEAD_SIM_LIB=os.path.abspath('empty'))
        same(os.listdir('h'), [])


def test_a_home_that_cannot_be_used():
    for where, rc, words in (('relative', 2, 'absolute'), ('/dev/null', 70, '/dev/null'),
                             ('/proc/no/such', 4, '/proc/no/such'), ('/' + 'x' * 200, 2, 'BULKHEAD_SIM_HOME')):
        r = sim('sim', 'start', BULKHEAD_SIM_HOME=where)
        same((r.rc, r.out, r.err.count('\n')), (rc, '', 1), repr(r))
        has(r.err, words)


def test_in_the_foreground():
    with home():
        p = subprocess.Popen([BIN, 'sim', 'start', '--foreground'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             env=environment(BULKHEAD_SIM_HOME=os.path.abspath('h'), **LIBS))
        try:
            has(p.stdout.readline().decode(), 'simulated node lab: ')
            same(nodes()['lab']['pid'], p.pid)
            same(on('lab', 'gpus').rc, 0)
            p.send_signal(signal.SIGINT)
            same(p.wait(timeout=30), 0)
        finally:
            p.kill()
            p.wait()
        same(os.listdir('h'), [])


def test_somebody_else_is_a_tenant_and_no_owner():
    if os.geteuid() != 0:
        raise Skip('needs root to become somebody else')

    def other(*args):
        done = subprocess.run([BIN, *args], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60,
                              env=environment(BULKHEAD_SIM_HOME=os.path.abspath('h'), **LIBS), user=NOBODY, group=NOBODY)
        return Result(done)

    with home():
        good('sim', 'start', 'a30x4')
        try:
            r = other('sim', 'list')
        except PermissionError as e:
            raise Skip(f'somebody else cannot run the command here: {e}') from e
        same(r.rc, 0, repr(r))
        has(r.out, ' running ')
        has(other('sim', 'run', 'lab', '--', BIN, 'gpus').out, '4 GPUs\n')
        for args in (['stop', 'lab'], ['break', 'lab', 'gpu', '0', 'lost']):
            r = other('sim', *args)
            same((r.rc, r.out, r.err.count('\n')), (3, '', 1), repr(r))
            has(r.err, 'not yours')
        r = other('sim', 'start', '--name', 'theirs')
        same((r.rc, r.out), (3, ''), repr(r))
        has(r.err, 'BULKHEAD_SIM_HOME')
        same(other('sim', 'stop', '--all').out, 'no simulated node of yours to stop\n')
        same(nodes()['lab']['state'], 'running')


if __name__ == '__main__':
    tap.main(globals())
