# SPDX-License-Identifier: Apache-2.0
"""One table says which metrics there are; documents, alerts and the dashboard are held against it. No daemon is needed.

BH_TEST_REGENERATE=1 writes the table of docs/metrics.md anew. Usage: table.py BULKHEAD SOURCE-ROOT
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import BIN, ROOT, Skip, environment, same  # noqa: E402

RULES = ROOT / 'packaging/prometheus/bulkhead.rules.yml'
RULES_TEST = ROOT / 'tests/metrics/rules_test.yml'
DASHBOARD = ROOT / 'packaging/grafana/bulkhead.json'
DOC = ROOT / 'docs/metrics.md'
RUNBOOKS = ROOT / 'docs/runbooks.md'
BEGIN, END = '<!-- metrics: the table begins -->\n', '<!-- metrics: the table ends -->\n'

FAMILY = re.compile(r'FAMILY\(\s*(\w+),\s*"(\w+)",\s*(\w+),\s*"(\w*)",\s*(\w+),\s*(\w+),\s*(\d+),\s*(\d+),\s*("[^"]*"|CARD),\s*"((?:[^"]|"\s*")*)"\)')
SUFFIXES = {'COUNTER': ['_total'], 'INFO': ['_info'], 'HISTOGRAM': ['_bucket', '_count', '_sum'], 'SUMMARY': ['_count', '_sum']}
SEEN_BY = {'PUBLIC': 'all', 'NODE': 'who sees all', 'OWNER': 'who sees all, and the tenant whose it is',
           'TENANT': 'all; neighbours as `_others`'}


def families():
    text = (ROOT / 'src/metrics/families.def').read_text()
    card = re.search(r'#define CARD\s+"([^"]*)"', text).group(1)
    found = [{'id': i, 'name': n, 'type': t, 'unit': u, 'scope': s, 'sum': a == 'SUM', 'cap': int(c),
              'labels': (card if la == 'CARD' else la.strip('"')).split(), 'help': re.sub(r'"\s*"', '', h)}
             for i, n, t, u, s, a, _, c, la, h in FAMILY.findall(text)]
    same(len(found), len(re.findall(r'^FAMILY\(', text, re.M)), 'lines of the table that can be read')
    return found


def sample_names():
    """Every name that a sample can have, with the labels it may have."""
    names = {}
    for f in families():
        labels = {la.strip('*') for la in f['labels']}
        for suffix in SUFFIXES.get(f['type'], ['']):
            names[f['name'] + suffix] = labels | ({'le'} if suffix == '_bucket' else set())
    return names


def metrics_in(expr):
    """Names of ours in an expression, with the labels that are asked of them."""
    found = []
    for m in re.finditer(r'\b(bulkhead_\w+|DCGM_\w+)\b(\{[^}]*\})?', expr):
        found.append((m.group(1), set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', m.group(2) or ''))))
    return found


def check_expr(expr, where):
    names = sample_names()
    found = metrics_in(expr)
    for name, labels in found:
        assert name in names, f'{where}: there is no metric {name}'
        unknown = labels - names[name] - {'instance', 'job'}
        assert not unknown, f'{where}: {name} has no label {unknown}'
    return {name for name, _ in found}


def rules():
    """Alert by alert: name, expression, the rest as text."""
    blocks = re.split(r'^      - alert: ', RULES.read_text(), flags=re.M)[1:]
    out = {}
    for b in blocks:
        name, rest = b.split('\n', 1)
        expr = re.search(r'^        expr: (\|\n(?:          .*\n)+|.*\n)', rest, re.M).group(1)
        out[name] = (expr, rest)
    return out


def the_table():
    rows = ['| metric | type | labels | shown to | at most | what |', '|---|---|---|---|---|---|']
    for f in families():
        labels = ' '.join(f'`{la.strip("*")}`' for la in f['labels']) or '–'
        rows.append(f'| `{f["name"]}` | {f["type"].lower()} | {labels} | {SEEN_BY[f["scope"]]} | {f["cap"]} | {f["help"]} |')
    return '\n'.join(rows) + '\n'


def test_document():
    text = DOC.read_text()
    head, _, rest = text.partition(BEGIN)
    old, _, tail = rest.partition(END)
    if os.environ.get('BH_TEST_REGENERATE') == '1':
        DOC.write_text(head + BEGIN + '\n' + the_table() + '\n' + END + tail)
        return
    same(old.strip(), the_table().strip(), 'docs/metrics.md: BH_TEST_REGENERATE=1 writes it anew')
    for name, _ in metrics_in(' '.join(re.findall(r'`([^`]*)`', head + tail))):
        told = name.rstrip('_') in sample_names() or name in ('DCGM_FI_DEV_XID_ERRORS', 'DCGM_')
        assert told, f'docs/metrics.md speaks of {name}'


def test_alerts():
    known, runbooks, tested = sample_names(), RUNBOOKS.read_text(), RULES_TEST.read_text()
    sections = set(re.findall(r'^## (\w+)$', runbooks, re.M))
    same(set(rules()), sections, 'alerts and their runbooks')
    for name, (expr, rest) in rules().items():
        used = check_expr(expr, name)
        assert used or 'up{' in expr, f'{name} asks for nothing of ours'
        assert f'runbook_url: "docs/runbooks.md#{name.lower()}"' in rest, f'{name}: its runbook'
        assert re.search(r'severity: (critical|warning|info)\}', rest) and 'summary:' in rest and 'description:' in rest, name
        assert f'- name: {name}\n' in tested, f'{name} has no test in tests/metrics/rules_test.yml'
        for part in ('**Means**', '**Look**', '**Do**'):
            assert part in runbooks.split(f'## {name}\n')[1].split('\n## ')[0], f'{name}: its runbook has no {part}'
    assert known


def test_commands_in_the_runbooks():
    """What a runbook tells one to type is there to be typed."""
    verbs = set(re.findall(r'`bulkhead ([a-z-]+)', RUNBOOKS.read_text()))
    assert len(verbs) > 5, verbs
    for verb in verbs:
        done = subprocess.run([BIN, 'help', verb], capture_output=True, check=False, env=environment(), timeout=60)
        same(done.returncode, 0, f'bulkhead {verb}')


def test_dashboard():
    board = json.loads(DASHBOARD.read_text())
    panels = [p for p in board['panels'] if p['type'] != 'row']
    used = set()
    for p in panels:
        assert p['targets'] and p['title'], p
        for t in p['targets']:
            used |= check_expr(t['expr'].replace('$instance', 'x').replace('$tenant', 'x'), p['title'])
            for la in re.findall(r'\{\{(\w+)\}\}', t['legendFormat']):
                assert la in {'instance'} | set().union(*(sample_names()[n] for n, _ in metrics_in(t['expr']))), (p['title'], la)
    for v in board['templating']['list']:
        check_expr(v.get('query', ''), 'templating')
    assert len(used) > 25, used
    same(len({p['id'] for p in board['panels']}), len(board['panels']), 'ids of panels')


def test_a_name_that_is_not_there_is_found():
    for expr in ('sum(bulkhead_nothing)', 'bulkhead_slices{colour="red"}', 'bulkhead_scrubs', 'rate(DCGM_FI_DEV_NOTHING[5m])'):
        try:
            check_expr(expr, 'planted')
        except AssertionError:
            continue
        raise AssertionError(f'{expr} was let through')


def promtool(*args):
    program = shutil.which('promtool')
    if not program:
        raise Skip('promtool is not installed (tools/setup test)')
    return subprocess.run([program, *args], capture_output=True, text=True, check=False, timeout=60)


def test_promtool_check_rules():
    done = promtool('check', 'rules', str(RULES))
    same(done.returncode, 0, done.stdout + done.stderr)


def test_promtool_test_rules():
    done = promtool('test', 'rules', str(RULES_TEST))
    same(done.returncode, 0, done.stdout + done.stderr)


def test_each_alert_is_really_tested():
    """Where a rule never fires, or fires for who is well, the test of its alert fails: each alone with its own test."""
    head, *blocks = re.split(r'^  - name: ', RULES_TEST.read_text(), flags=re.M)
    tests = {b.split('\n', 1)[0]: b for b in blocks}
    files = {}
    for name in rules():
        for i, other in enumerate(('vector(0) > 1', 'label_replace(vector(1), "instance", "good", "", "")')):
            rule, test = f'{name}-{i}.yml', f'{name}-{i}_test.yml'
            pathlib.Path(rule).write_text(f'groups: [{{name: g, rules: [{{alert: {name}, expr: {json.dumps(other)}}}]}}]\n')
            pathlib.Path(test).write_text(head.replace('../../packaging/prometheus/bulkhead.rules.yml', rule) +
                                          '  - name: ' + tests[name])
            files[test] = (name, other)
    done = promtool('test', 'rules', *files)
    told = re.split(r'^Unit Testing:  ', done.stdout + done.stderr, flags=re.M)[1:]
    same(len(told), len(files))
    # What passed says so below its name; what failed says so on the other stream.
    passed = [files[t.split('\n', 1)[0].strip()] for t in told if 'SUCCESS' in t]
    same(passed, [], 'tests that hold of a broken rule')


if __name__ == '__main__':
    tap.main(globals())
