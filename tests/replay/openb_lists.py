# SPDX-License-Identifier: Apache-2.0
"""The published openb lists, where somebody has them: FGD as published, and `bulkhead` never below it.

BH_TEST_OPENB names a folder with openb_node_list_gpu_node.csv, openb_pod_list_*.csv and expected_table.csv (the
experiment's own table of results); without it that part is skipped. The drawn lists are looked at in any case.

Usage: openb_lists.py PATH-TO-BULKHEAD SOURCE-ROOT
"""
import csv
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import run, same  # noqa: E402

FOLDER = pathlib.Path(os.environ.get('BH_TEST_OPENB', ''))
SEEDS = '42-51'
PER_CENT_OFF = 0.5  # of the published mean
EQUAL = 0.01        # below what the table prints
# A list of which a third names a model: the published FGD loses seven points there, `bulkhead` must not.
THIRD = {'nodes': 1213, 'spec': 33, 'least': 91.5, 'above_fgd': 4.0}


def means(*args):
    r = run('replay', *args, '-p', 'fgd,bulkhead', '-o', 'json')
    same(r.rc, 0, repr(r))
    return {m['policy']: m['allocated_pct_at_100'] for m in json.loads(r.out)['means']}


def published():
    with open(FOLDER / 'expected_table.csv', encoding='utf-8') as f:
        return {row['workload']: float(row['alloc@100_mean']) for row in csv.DictReader(f) if row['policy'].endswith('FGD')}


def test_lists_that_were_published():
    if not os.environ.get('BH_TEST_OPENB'):
        raise tap.Skip('BH_TEST_OPENB names no folder with the lists')
    table, seen = published(), 0
    for pods in sorted(FOLDER.glob('openb_pod_list_*.csv')):
        name = pods.stem.removeprefix('openb_pod_list_')
        got = means('--nodes', str(FOLDER / 'openb_node_list_gpu_node.csv'), '--pods', str(pods), '-s', SEEDS)
        print(f"# {name}: fgd {got['fgd']:.2f}, published {table[name]:.2f}, bulkhead {got['bulkhead']:.2f}")
        assert abs(got['fgd'] - table[name]) <= PER_CENT_OFF, (name, got, table[name])
        assert got['bulkhead'] >= got['fgd'] - EQUAL, (name, got)
        if name == 'gpuspec33':
            assert got['bulkhead'] >= 93, got
        seen += 1
    assert seen, f'no list in {FOLDER}'


def test_a_drawn_list_of_which_a_third_names_a_model():
    got = means('--synth', f"openb,nodes={THIRD['nodes']},spec={THIRD['spec']}", '-s', '1-3')
    print(f"# drawn: fgd {got['fgd']:.2f}, bulkhead {got['bulkhead']:.2f}")
    assert got['bulkhead'] >= THIRD['least'], got
    assert got['bulkhead'] >= got['fgd'] + THIRD['above_fgd'], got


if __name__ == '__main__':
    tap.main(globals())
