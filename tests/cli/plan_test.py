# SPDX-License-Identifier: Apache-2.0
"""bulkhead plan: what is chosen, what is refused, and what is impossible."""
import json
import pathlib

import tap
from tap import BAD, FLEET, GOOD, has, run, same, write

# A hard promise on a GPU model that has no partitions, for two customers who distrust each other.
IMPOSSIBLE = '''\
bulkhead: 1
tenants:
  - name: acme
    trust: external
    class: serving
    operatorUntrusted: true
    quota: {model: hard, gpus: 0.25}
    slo: {kind: hard, metric: p99, target: 50ms}
pools: []
'''
OLD_FLEET = '''\
bulkhead: 1
nodes:
  - name: gpu-01
    gpus:
      - {index: 0, model: T4}
'''


def plan(*args):
    return run('plan', *args)


def test_a_kept_promise_is_exit_0():
    r = plan(write('p.yaml', GOOD))
    same(r.rc, 0, repr(r))
    for words in ('tenant team-a (', '  choose ', '  stays shared ', '  bounded by ',
                  '1 tenant: 1 can be kept, 0 cannot, in p.yaml\n'):
        has(r.out, words)
    has(r.out, 'No fleet given')
    has(r.err, 'next: bulkhead ')


# One outsider, alone on his pool.
ALONE = '''\
bulkhead: 1
tenants:
  - {name: acme, trust: external, quota: {gpus: 2}, costCenter: cc-1, storage: {quota: 1TiB},
     network: {policy: default-deny, rdma: none}}
pools:
  - {name: dev, match: {model: A100-80GB}, mechanism: MECHANISM, tier: container, caps: {memory: 18GiB, compute: 25%}, tenants: [acme]}
'''


def test_what_lint_lets_pass_and_the_planner_does_not():
    """BH-003 is about time slices alone, and its text says who refuses the rest."""
    for mechanism, found in (('timeslice, replicas: 4', True), ('mps', False), ('fractional, backing: gate', False)):
        path = write('p.yaml', ALONE.replace('MECHANISM', mechanism))
        same('BH-003' in run('lint', path).out, found, mechanism)
        out = ' '.join(plan(path).out.split())
        has(out, 'choose mig x')
        has(out, 'BH-003 For external tenants MIG is the minimum: fractional on gate in container')
        has(out, 'mps in container')
    said = ' '.join(run('explain', 'BH-003').out.split())
    has(said, 'The rule speaks of time-slicing alone')
    has(said, '`bulkhead plan` refuses those as well')


def test_cheaper_choices_name_the_rule_that_refused_them():
    r = plan(write('p.yaml', BAD), '--fleet', write('f.yaml', FLEET))
    same(r.rc, 0, repr(r))
    has(r.out, 'BH-020')
    assert 'No fleet given' not in r.out


def test_json_is_versioned_and_whole():
    r = plan('-o', 'json', write('p.yaml', BAD), '--fleet', write('f.yaml', FLEET))
    doc = json.loads(r.out)
    same(list(doc), ['version', 'policy', 'fleet', 'kept', 'impossible', 'tenants'])
    same((doc['version'], doc['policy'], doc['fleet'], doc['kept'], doc['impossible']), (1, 'p.yaml', 'f.yaml', 1, 0))
    t, = doc['tenants']
    same((t['tenant'], t['line'], t['possible']), ('acme', 3, True))
    assert t['mechanism'] in ('whole', 'mig', 'mig-vgpu') and t['shared'] and t['boundedBy'] and t['why'], t
    assert t['rejected'] and all(x['rule'].startswith('BH-') and x['reason'] for x in t['rejected']), t


def test_what_nothing_keeps_is_exit_1_and_loud():
    r = plan(write('p.yaml', IMPOSSIBLE), '--fleet', write('f.yaml', OLD_FLEET))
    same(r.rc, 1, repr(r))
    has(r.out, 'CANNOT KEEP')
    has(r.out, 'would keep it')
    doc = json.loads(plan('-o', 'json', 'p.yaml', '--fleet', 'f.yaml').out)
    same((doc['impossible'], doc['tenants'][0]['possible']), (1, False))
    assert doc['tenants'][0]['needed']


# More than two GPUs are guaranteed on two, and one tenant is owed instances by name.
CAPACITY = '''\
bulkhead: 1
tenants:
  - {name: big, class: training, quota: {model: hard, gpus: 64}}
  - {name: cut, class: serving, quota: {model: hard, resources: {"nvidia.com/mig-3g.40gb": 2}}}
'''
TWO_GPUS = '''\
bulkhead: 1
nodes:
  - name: gpu-01
    gpus:
      - {index: 0, model: H100}
      - {index: 1, model: H100}
'''


def test_guarantees_are_counted_against_the_fleet():
    r = plan('-o', 'json', write('p.yaml', CAPACITY), '--fleet', write('f.yaml', TWO_GPUS))
    same(r.rc, 1, repr(r))
    big, cut = json.loads(r.out)['tenants']
    has(big['needed'], '62 more H100-80GB-SXM GPUs (64 guaranteed, 2 of 2 still free)')
    same([x['rule'] for x in big['rejected'] if x['reason'].endswith('still free.')][:1], [None])
    same((cut['profile'], cut['units'], cut['costPpm']), ('3g.40gb', 2, 500000))
    has(plan('p.yaml').out, 'the guarantee is 64 whole GPUs')


def test_a_choice_outside_the_class_says_how_to_declare_it():
    r = plan(write('p.yaml', '''\
bulkhead: 1
tenants:
  - {name: clinic, class: research, regulated: [hipaa], quota: {model: hard, gpus: 1}}
'''), '--fleet', write('f.yaml', OLD_FLEET))
    same(r.rc, 0, repr(r))
    has(r.out, 'BH-046')
    has(' '.join(r.out.split()), '`classes: [{name: research-own, mechanism: [whole], quota: hard, tier: [container]}]`')


def test_the_same_policy_gives_the_same_bytes():
    write('p.yaml', BAD)
    same(plan('p.yaml').out, plan('p.yaml').out)


def test_only_a_policy_can_be_planned():
    r = plan(write('q.yaml', 'apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: g, namespace: a}\n'
                   'spec: {hard: {requests.nvidia.com/gpu: "4"}}\n'))
    same((r.rc, r.out), (2, ''), repr(r))
    has(r.err, 'no policy file')
    same(plan('nowhere.yaml').rc, 2)
    same(plan().rc, 2)
    same(plan('a', 'b').rc, 2)


def test_a_fleet_that_came_with_the_folder_is_named():
    root = pathlib.Path(__file__).resolve().parents[2]
    for name in ('classes.yaml', 'classes-fleet.yaml'):
        write(f'site/{name}', (root / 'examples' / name).read_text())
    r = plan('site', '-o', 'json')
    same(json.loads(r.out)['fleet'], 'site/classes-fleet.yaml')
    assert 'No fleet given' not in plan('site').out


if __name__ == '__main__':
    tap.main(globals())
