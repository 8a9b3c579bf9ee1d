# SPDX-License-Identifier: Apache-2.0
"""bulkhead why and what-if: a scenario in, a reason and a change that holds good out.

Usage: why_test.py PATH-TO-BULKHEAD SOURCE-ROOT
"""
import json

import tap
from tap import has, run, same, write

SCENARIO = '''\
bulkhead: 1
now: 1h
nodes:
  - {name: a, model: H200, gpus: 8, count: 2, rack: r1, link: l1}
  - {name: b, model: H200, gpus: 8, count: 2, rack: r1, link: l2}
queues:
  - {name: research, deserved: 16}
  - {name: serving, deserved: 8, limit: 16}
jobs:
  - {name: big-1, queue: research, gpus: 8, runtime: 3h}
  - {name: spread-1, queue: research, gpus: 4, firm: true}
  - {name: spread-2, queue: serving, gpus: 4, submitted: 10m}
  - {name: big-2, queue: research, gpus: 8, submitted: 20m, runtime: 4h}
  - {name: train, queue: research, gpus: 8, members: 2, within: link, submitted: 30m}
  - {name: api, queue: serving, gpus: 8, members: 2, submitted: 40m, firm: true}
  - {name: odd, queue: research, gpus: 1, model: B200, submitted: 40m}
  - {name: done, queue: research, gpus: 1, runtime: 10m}
  - {name: later, queue: research, gpus: 1, submitted: 2h}
'''


def why(job, *args):
    write('s.yaml', SCENARIO)
    return run('why', job, '-s', 's.yaml', *args)


def what_if(*changes):
    write('s.yaml', SCENARIO)
    r = run('what-if', *changes, '-s', 's.yaml', '-o', 'json')
    same(r.rc, 0, repr(r))
    return json.loads(r.out)


def test_each_waits_for_its_own_reason():
    for job, tier, change in (('train', 'no room', 'wait 3h 20m'), ('api', 'over quota', 'raise the limit of serving'),
                              ('odd', 'misconfigured', 'add 1 node with 1 B200')):
        r = why(job)
        same((r.rc, r.err), (1, ''), repr(r))
        has(r.out, f'{job}  {tier}\n')
        has(r.out, change)
    r = why('big-1')
    same((r.rc, r.out), (0, 'big-1  not waiting\n  why      it runs\n'), repr(r))


def test_json_says_who_holds_what():
    doc = json.loads(why('train', '-o', 'json').out)
    same((doc['version'], doc['job'], doc['tier'], doc['need_milli']), (1, 'train', 'no room', 16000))
    same([(h['job'], h['milli']) for h in doc['holders']], [('big-2', 8000)])
    same([c['kind'] for c in doc['change']], ['wait'])
    same(doc['least'], True)


def test_the_named_change_is_one_that_what_if_takes():
    same(what_if('wait 3h')['starts'], [])
    same(what_if('wait 200m')['starts'], ['train'])
    same(what_if('end big-2')['starts'], ['train'])
    same(what_if('add 16 H200 in l2')['starts'], ['train'])
    same(what_if('add 8 H200')['starts'], [])


HEAD = 'bulkhead: 1\nnow: 1h\nnodes:\n  - {name: a, model: H200, gpus: 8, cpu: 64, rack: r, link: l}\nqueues:\n'


def of(queues, jobs, head=HEAD):
    return head + ''.join(f'  - {{{q}}}\n' for q in queues) + 'jobs:\n' + ''.join(f'  - {{{j}}}\n' for j in jobs)


def ask(text, job):
    write('t.yaml', text)
    r = run('why', job, '-s', 't.yaml', '-o', 'json')
    same((r.rc, r.err), (1, ''), repr(r))
    return json.loads(r.out)


def test_what_refuses_it_is_said():
    doc = ask(of(['name: q, deserved: 8', 'name: r, deserved: 8'],
                 ['name: k, queue: q, gpus: 1, tenant: red, firm: true',
                  'name: j, queue: r, gpus: 4, tenant: blue, alone: true, submitted: 10m']), 'j')
    same((doc['tier'], doc['withheld_by'], doc['withheld_milli'], doc['free_milli']),
         ('free and not for it', 'isolation', 7000, 0))
    same([h['job'] for h in doc['holders']], ['k'])
    doc = ask(of(['name: q, deserved: 8'],
                 ['name: k, queue: q, gpus: 1, cpu: 64, firm: true', 'name: j, queue: q, gpus: 1, cpu: 32, submitted: 10m']), 'j')
    same((doc['tier'], doc['withheld_by'], doc['withheld_milli']), ('free and not for it', 'processors', 7000))
    has(doc['why'], 'a member needs 32 processors, and 0 are left there (a)')


def test_a_node_to_add_is_said_in_full():
    for job, each in (('gpus: 1, cpu: 96', {'cpu_milli_each': 96000}), ('gpus: 9', {'gpus_each': 9}),
                      ('gpus: 8, members: 2, within: link', {'gpus_each': 8, 'domain': 'l'}),
                      ('gpus: 8, members: 3, within: link, cpu: 70', {'cpu_milli_each': 70000}),
                      ('gpus: 0, cpu: 65', {'gpus_each': 0, 'cpu_milli_each': 65000})):
        doc = ask(of(['name: q, deserved: 8'], [f'name: j, queue: q, {job}']), 'j')
        for name, value in each.items():
            same(doc['change'][0].get(name), value, doc)
        # The same words start it.
        r = run('what-if', *[c['what_if'] for c in doc['change']], '-s', 't.yaml', '-o', 'json')
        same((r.rc, r.err), (0, ''), repr(r))
        same(json.loads(r.out)['starts'], ['j'], doc)


def test_what_is_kept_for_others_is_thought_of():
    doc = ask(of(['name: org, limit: 8', 'name: a, parent: org, guarantee: 6', 'name: b, parent: org, deserved: 2'],
                 ['name: j, queue: b, gpus: 4']), 'j')
    same([c['kind'] for c in doc['change']], ['quota', 'add'], doc)
    r = run('what-if', 'limit org to 10', doc['change'][1]['what_if'], '-s', 't.yaml', '-o', 'json')
    same(json.loads(r.out)['starts'], ['j'], repr(r))


def test_what_cannot_be_is_refused_with_its_place():
    for text, place, words in (
            (of(['name: q, guarantee: 8, limit: 4', 'name: r'], ['name: j, queue: r, gpus: 1']), '6:5', 'more than the limit'),
            (of(['name: q'], ['name: j, queue: q, gpus: 1'],
                HEAD.replace('queues', '  - {name: b, model: H200, gpus: 8, rack: s, link: l}\nqueues')), '5:5', 'two racks'),
            (of(['name: q'], ['name: j, queue: q, gpus: 1, members: 4096, memory: 16777215TiB']), '8:5', 'more than')):
        write('t.yaml', text)
        for args in (('why', 'j'), ('what-if', 'wait 1h')):
            r = run(*args, '-s', 't.yaml')
            same((r.rc, r.out), (2, ''), repr(r))
            has(r.err, f't.yaml:{place}: ')
            has(r.err, words)


def test_a_change_can_take_away():
    doc = what_if('cordon b-0', 'wait 5h')
    same((doc['starts'], doc['prevents']), ([], ['train']))
    write('s.yaml', SCENARIO)
    r = run('what-if', 'cordon b-0', 'wait 5h', '-s', 's.yaml')
    same((r.rc, r.err), (0, ''), repr(r))
    has(r.out, 'if       cordon b-0\nthen     wait 5h 0m\nstarts   nothing\nprevents train\n')


def test_quotas():
    same(what_if('limit serving to 20', 'raise serving to 20', 'add 8 H200')['starts'], ['api'])
    same(what_if('raise serving to 20')['starts'], [])


def test_what_is_not_there():
    for args, rc, words in ((['why', 'nobody', '-s', 's.yaml'], 4, "there is no job 'nobody'"),
                            (['why', 'done', '-s', 's.yaml'], 4, 'it has ended'),
                            (['why', 'later', '-s', 's.yaml'], 4, 'not there yet'),
                            (['why', 'train'], 2, 'needs --scenario'),
                            (['why', 'train', '-s', 'nowhere.yaml'], 4, 'nowhere.yaml'),
                            (['what-if', 'add 8 X1', '-s', 's.yaml'], 4, "model 'X1'"),
                            (['what-if', 'add 8 H200 in r9', '-s', 's.yaml'], 4, "no rack 'r9'"),
                            (['what-if', 'raise nobody to 8', '-s', 's.yaml'], 4, "no queue 'nobody'"),
                            (['what-if', 'cordon c-0', '-s', 's.yaml'], 4, "no node 'c-0'"),
                            (['what-if', 'end done', '-s', 's.yaml'], 4, "no job 'done' now"),
                            (['what-if', 'burn it', '-s', 's.yaml'], 2, "'burn it' is no change"),
                            (['what-if', '', '-s', 's.yaml'], 2, 'is no change'),
                            (['what-if', 'add many H200', '-s', 's.yaml'], 2, 'many')):
        write('s.yaml', SCENARIO)
        r = run(*args)
        same((r.rc, r.out), (rc, ''), repr((args, r)))
        has(r.err, words)


def test_a_file_that_is_wrong_says_where():
    for text, words in ((SCENARIO.replace('within: link', 'within: room'), 's.yaml:14:5: `within` of job'),
                        (SCENARIO.replace('queue: serving, gpus: 4', 'queue: servin, gpus: 4'), 's.yaml:12:5: job'),
                        (SCENARIO.replace('deserved: 16', 'deserves: 16'), 's.yaml:7:22: '),
                        ('jobs: [', 's.yaml:')):
        write('s.yaml', text)
        r = run('why', 'train', '-s', 's.yaml')
        same((r.rc, r.out), (2, ''), repr(r))
        has(r.err, words)


if __name__ == '__main__':
    tap.main(globals())
