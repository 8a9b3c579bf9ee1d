# SPDX-License-Identifier: Apache-2.0
"""bulkhead replay: the real command on drawn traces, from words to tables, JSON and charts.

Usage: replay_cli.py PATH-TO-BULKHEAD SOURCE-ROOT
"""
import json
import os
import pathlib
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import has, run, same, write  # noqa: E402

PLACE = ('fgd', 'bestfit', 'packing', 'dotprod', 'clustering', 'random', 'bulkhead')
TIMED = ('fifo', 'edf', 'srtf', 'las', 'bulkhead')
OPENB = 'openb,nodes=60,seed=5,spec=20'
NODES = 'sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,8,G2\n'
PODS = 'name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np0,1000,1024,1,500,\n'
JOBS = 'user,num_gpu,submit_time,duration,expect_time_list,best_effort\nu,1,0,5,9,0\n'


def replay(*args):
    r = run('replay', *args)
    same(r.rc, 0, repr(r))
    return r


def as_json(*args):
    r = replay(*args, '-o', 'json')
    same(r.err, '')
    return json.loads(r.out)


def test_one_policy_and_seed_is_one_object():
    doc = as_json('--synth', OPENB, '--policy', 'fgd', '--seed', '42')
    for key in ('policy', 'seed', 'allocated_pct_at_100', 'fragment_ratio_at_100', 'placed', 'failed',
                'decisions_per_s', 'p50_us', 'p99_us', 'digest'):
        assert key in doc, key
    same((doc['version'], doc['policy'], doc['seed'], doc['nodes']), (1, 'fgd', 42, 60))
    assert 70 < doc['allocated_pct_at_100'] <= 100, doc
    assert 0 < doc['fragment_ratio_at_100'] <= 100, doc
    same(len(doc['digest']), 16)


def test_the_same_seed_gives_the_same_places():
    for policy in PLACE:
        once = as_json('--synth', OPENB, '-p', policy, '-s', '7')
        same(as_json('--synth', OPENB, '-p', policy, '-s', '7')['digest'], once['digest'], policy)
        same(as_json('--synth', OPENB, '-p', policy, '-s', '7', '--full-scan')['digest'], once['digest'], policy)
        assert as_json('--synth', OPENB, '-p', policy, '-s', '8')['digest'] != once['digest'], policy


def test_several_make_a_table():
    doc = as_json('--synth', OPENB, '-p', 'random,fgd', '-s', '1-3,9')
    same([(r['policy'], r['seed']) for r in doc['runs']],
         [(p, s) for p in ('fgd', 'random') for s in (1, 2, 3, 9)])
    same([(m['policy'], m['seeds']) for m in doc['means']], [('fgd', 4), ('random', 4)])
    fgd = [r['allocated_pct_at_100'] for r in doc['runs'] if r['policy'] == 'fgd']
    assert abs(sum(fgd) / 4 - doc['means'][0]['allocated_pct_at_100']) < 0.001
    r = replay('--synth', OPENB, '-p', 'random,fgd', '-s', '1,2')
    same([line.split()[:2] for line in r.out.splitlines()[3:]], [['fgd', '2'], ['random', '2']])
    same(len(r.err.splitlines()), 4)
    has(r.err, 'replay: fgd, seed 1: ')


def test_all_policies_by_default():
    same([r['policy'] for r in as_json('--synth', 'openb,nodes=5')['runs']], list(PLACE))
    same([r['policy'] for r in as_json('--synth', 'chronus,jobs=50')['runs']], list(TIMED))


def test_what_was_saved_replays_the_same():
    drawn = as_json('--synth', OPENB, '-p', 'bulkhead', '--save', 'o')
    read = as_json('--nodes', 'o/nodes.csv', '--pods', 'o/pods.csv', '-p', 'bulkhead')
    same(read['digest'], drawn['digest'])
    drawn = as_json('--synth', 'chronus,jobs=300', '--save', 'c')
    read = as_json('c/jobs.csv', '--gpus', '96')
    same([r['digest'] for r in read['runs']], [r['digest'] for r in drawn['runs']])
    drawn = as_json('--synth', 'gavel,jobs=300,tenants=4', '--save', 'g')
    files = sorted(os.listdir('g'))
    same(files, [f'vc{i:02}.trace' for i in range(4)])
    read = as_json('--gpus', '50', *[f'g/{f}' for f in files])
    same([r['wait_mean_s'] for r in read['runs']], [r['wait_mean_s'] for r in drawn['runs']])


def test_jobs_over_time():
    doc = as_json('--synth', 'chronus,jobs=400', '--restart', '2m', '--shares', 'demand')
    same((doc['gpus'], doc['restart_s'], doc['shares']), (96, 120, 'demand'))
    for r in doc['runs']:
        same(r['jobs'], 400)
        same(sum(t['missed'] for t in r['tenants']), r['missed'])
        assert r['wait_p50_s'] <= r['wait_p99_s'] <= r['wait_max_s']
        assert 0 < r['utilisation_pct'] <= 100
        assert r['stops'] == 0 if r['policy'] == 'fifo' else r['stops'] > 0, r['policy']
    r = replay('--synth', 'chronus,jobs=400')
    has(r.out, 'MISSED DEADLINES')
    same([line.split()[0] for line in r.out.splitlines()[3:]], list(TIMED))


def example(name):
    return str(pathlib.Path(sys.argv[2]).resolve() / 'examples' / name)


def test_a_policy_and_a_fleet():
    ground = ['--policy-file', example('classes.yaml'), '--fleet', example('classes-fleet.yaml')]
    trace = ['--synth', 'chronus,jobs=300,tenants=6,load=60']
    doc = as_json(*ground, *trace)
    same([r['policy'] for r in doc['runs']], list(TIMED))
    same(doc['shares'], 'policy')
    for r in doc['runs']:
        tenants = {t['tenant']: t for t in r['tenants']}
        same(set(tenants), {'frontier', 'acme', 'globex', 'initech', 'lab', 'nightly'})
        same((tenants['frontier']['promised_gpus'], tenants['frontier']['largest_job']), (16, 16))
        same((tenants['lab']['usable_gpus'], tenants['lab']['largest_job']), (4, 4))
        same(r['jobs'] + r['too_large'], 300)
        same(sum(t['jobs'] for t in r['tenants']), r['jobs'])
    ours = doc['runs'][-1]
    same(as_json(*ground, *trace, '-p', 'bulkhead')['runs'][0]['digest'], ours['digest'])
    # A hard partition never has more than it was promised, whatever waits and whatever is idle.
    def hours(r):
        return sum(t['used_gpu_h'] for t in r['tenants']) / (r['utilisation_pct'] / 100 * doc['gpus'])
    hard = ('acme', 'globex', 'initech')
    for t in ours['tenants']:
        assert t['tenant'] not in hard or t['used_gpu_h'] <= 2 * hours(ours) * 1.01, t
    assert any(t['used_gpu_h'] > 2 * hours(r) * 1.01 for r in doc['runs'][:4] for t in r['tenants'] if t['tenant'] in hard)
    r = replay(*ground, *trace, '-p', 'bulkhead')
    has(r.err, 'tenants of the trace are not in the policy')
    rows = [line.split() for line in r.out.splitlines()]
    same([row[:2] for row in rows if row and row[0] in ('frontier', 'lab')], [['frontier', 'bulkhead'], ['lab', 'bulkhead']])
    has(r.out, 'MEAN WAIT')


def test_a_policy_and_a_fleet_that_are_wrong():
    policy, fleet = example('classes.yaml'), example('classes-fleet.yaml')
    write('j.csv', JOBS)
    write('bad.yaml', 'bulkhead: 1\ntenants:\n  - {name: a, qouta: {}}\n')
    for args, words in ((['--policy-file', policy], '--policy-file and --fleet go together'),
                        (['--fleet', fleet], '--policy-file and --fleet go together'),
                        (['--policy-file', policy, '--fleet', fleet, '-g', '8'], '--gpus is not for a policy and a fleet'),
                        (['--policy-file', 'bad.yaml', '--fleet', fleet], 'bad.yaml:3:'),
                        (['--policy-file', fleet, '--fleet', fleet], 'a second fleet file'),
                        (['--policy-file', example('slurm'), '--fleet', fleet], 'is no policy file')):
        r = run('replay', *args, 'j.csv')
        same((r.rc, r.out), (2, ''), repr((args, r)))
        has(r.err, words)
    r = run('replay', '--synth', 'openb,nodes=5', '--policy-file', policy, '--fleet', fleet)
    same((r.rc, r.out), (2, ''), repr(r))
    has(r.err, '--policy-file is not for placing pods')


def test_charts_are_drawings():
    for args, names in ((['--synth', OPENB, '-p', 'fgd,random', '-s', '1,2'], ['allocation.svg', 'fragments.svg']),
                        (['--synth', 'gavel,jobs=200', '-p', 'fifo,las'], ['shares-fifo.svg', 'shares-las.svg', 'waits.svg'])):
        r = replay(*args, '--plot', 'charts')
        has(r.err, 'charts are in charts\n')
        for name in names:
            svg = xml.etree.ElementTree.parse(f'charts/{name}').getroot()
            same(svg.tag, '{http://www.w3.org/2000/svg}svg')
            texts = [t.text for t in svg.iter('{http://www.w3.org/2000/svg}text')]
            assert len(texts) > 12, texts
        first = [pathlib.Path(f'charts/{name}').read_bytes() for name in names]
        replay(*args, '--plot', 'charts')
        same([pathlib.Path(f'charts/{name}').read_bytes() for name in names], first)


def test_a_trace_of_one_job():
    write('j.csv', JOBS)
    for policy in as_json('j.csv', '--plot', 'charts')['runs']:
        same((policy['jobs'], policy['missed'], policy['wait_max_s'], policy['makespan_s']), (1, 0, 0, 300))
    same(len(os.listdir('charts')), 1 + len(TIMED))
    for name in os.listdir('charts'):
        text = pathlib.Path(f'charts/{name}').read_text()
        assert 'nan' not in text and 'inf' not in text, name


def test_files_that_are_wrong_say_where():
    write('n.csv', NODES)
    write('p.csv', PODS)
    replay('--nodes', 'n.csv', '--pods', 'p.csv', '-p', 'fgd')
    cases = (
        ('n.csv', NODES + 'n1,64000,x,8,G2\n', 'n.csv:3:10: memory_mib needs a whole number from 0 to '),
        ('n.csv', 'sn,cpu_milli\n', "n.csv:1:1: needs a row of names with a column 'memory_mib'"),
        ('n.csv', '', 'n.csv:1:1: needs a row of names'),
        ('p.csv', PODS + 'p1,1,1,1,2000,\n', 'p.csv:3:10: gpu_milli needs a whole number from 0 to 1000, is \'2000\''),
        ('p.csv', PODS + 'p1,1,1,1\n', 'p.csv:3:9: needs a cell for gpu_milli, the row ends here'),
    )
    for name, text, words in cases:
        write('n.csv', NODES)
        write('p.csv', PODS)
        write(name, text)
        r = run('replay', '--nodes', 'n.csv', '--pods', 'p.csv')
        same((r.rc, r.out, len(r.err.splitlines())), (2, '', 1), repr(r))
        has(r.err, words)
    write('j.csv', JOBS + 'u,1,0,5,soon,0\n')
    r = run('replay', 'j.csv')
    same((r.rc, r.out), (2, ''), repr(r))
    has(r.err, "j.csv:3:9: expect_time_list needs a whole number from 0 to ")
    write('empty.csv', JOBS.replace('u,1,', 'u,0,'))
    r = run('replay', 'empty.csv')
    same((r.rc, r.out), (2, ''), repr(r))
    has(r.err, 'needs a job that asks for a GPU')
    r = run('replay', 'nowhere.csv')
    same((r.rc, r.out), (4, ''), repr(r))


def test_words_that_do_not_go_together():
    write('n.csv', NODES)
    write('p.csv', PODS)
    write('j.csv', JOBS)
    pods = ['--nodes', 'n.csv', '--pods', 'p.csv']
    for args, words in (([], 'needs one of --nodes with --pods'), (['--nodes', 'n.csv'], '--nodes and --pods go together'),
                        ([*pods, 'j.csv'], 'needs one of'), ([*pods, '-p', 'edf'], "--policy 'edf' is not for placing pods"),
                        (['j.csv', '-p', 'fgd'], "--policy 'fgd' is not for jobs over time"),
                        ([*pods, '-p', 'fdg'], "did you mean 'fgd'?"), ([*pods, '--gpus', '4'], '--gpus is not for placing pods'),
                        (['j.csv', '--seed', '4'], '--seed is not for jobs over time'),
                        ([*pods, '--seed', '5-4'], '--seed needs numbers'), ([*pods, '--seed', 'x'], '--seed needs numbers'),
                        ([*pods, '--seed', '0-1000'], 'at most 1000 seeds'), (['j.csv', '--gpus', '0'], 'at least 1'),
                        (['j.csv', '--gpus', 'all'], '--gpus'), (['j.csv', '--restart', '10h'], 'less than nine hours'),
                        ([*pods, '--save', 'x'], '--save is for a trace that --synth draws'),
                        (['--synth', 'opemb'], "--synth: 'opemb' is no shape"),
                        (['--synth', 'openb,nodez=4'], "did you mean 'nodes'?")):
        r = run('replay', *args)
        same((r.rc, r.out), (2, ''), repr((args, r)))
        has(r.err, words)


def test_a_folder_that_cannot_be_written():
    write('file', '')
    r = run('replay', '--synth', 'openb,nodes=5', '-p', 'fgd', '--plot', 'file/below')
    same(r.rc, 70, repr(r))
    has(r.err, 'file/below')


if __name__ == '__main__':
    tap.main(globals())
