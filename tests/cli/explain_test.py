# SPDX-License-Identifier: Apache-2.0
"""bulkhead explain: the rule book, line by line and in full."""
import json
import re

import tap
from tap import DAY, has, run, same, write


def test_the_table_has_every_rule_once_in_order():
    r = run('explain')
    same(r.rc, 0, repr(r))
    ids = re.findall(r'^(BH-\d{3})  (?:error|warning|info) ', r.out, re.M)
    same(len(ids), len(r.out.splitlines()))
    same(ids, sorted(set(ids)))


def test_a_rule_in_full():
    r = run('explain', 'BH-020')
    same(r.rc, 0)
    assert r.out.startswith('BH-020 error: '), r.out
    for label in ('when', 'why', 'fix', 'waiver', 'needs', 'refs'):
        assert re.search(rf'^{label} +\S', r.out, re.M), label
    has(r.out, 'cannot be waived')
    has(r.out, '\nfails\n')
    has(r.out, '\npasses\n')
    has(r.out, 'R110')


def test_no_line_is_wider_than_a_hundred_columns_but_examples():
    for rule in json.loads(run('explain', '-o', 'json').out)['rules']:
        text = run('explain', rule['id']).out.split('\nfails\n')[0]
        long = [line for line in text.splitlines() if len(line) > 100]
        same(long, [], rule['id'])


def test_spellings_of_one_rule():
    same({run('explain', s).out for s in ('BH-020', 'bh-20', '20')}, {run('explain', 'BH-020').out})


def test_an_unknown_rule_is_exit_4():
    r = run('explain', 'BH-02O')
    same((r.rc, r.out), (4, ''), repr(r))
    has(r.err, 'did you mean BH-0')
    r = run('explain', 'nonsense-rule')
    same((r.rc, r.out), (4, ''))
    has(r.err, 'bulkhead explain lists them all')


def test_json_is_the_rule_book():
    doc = json.loads(run('explain', '-o', 'json').out)
    same(doc['version'], 1)
    same(len(doc['rules']), len(run('explain').out.splitlines()))
    for rule in doc['rules']:
        assert rule['title'] and rule['condition'] and rule['why'] and rule['fix'], rule['id']
    same([r['id'] for r in json.loads(run('explain', '20', '-o', 'json').out)['rules']], ['BH-020'])


def test_the_examples_do_what_they_say():
    """The failing example of BH-020 is found, the passing one is not."""
    rule, = json.loads(run('explain', '20', '-o', 'json').out)['rules']
    for key, found in (('fails', True), ('passes', False)):
        doc = json.loads(run('lint', '--now', DAY, '-o', 'json', write(f'{key}.yaml', rule[key])).out)
        same('BH-020' in {f['rule'] for f in doc['findings']}, found, key)


if __name__ == '__main__':
    tap.main(globals())
