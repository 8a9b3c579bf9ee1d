# SPDX-License-Identifier: Apache-2.0
"""bulkhead lint: verdicts, formats, and what happens when something is in the way."""
import json
import os
import re
import subprocess

import tap
from tap import BAD, DAY, FLEET, GOOD, has, run, same, write

QUOTA = '''\
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpu, namespace: team-a}
spec: {hard: {requests.nvidia.com/gpu: "4"}}
'''
TIME_SLICING = '''\
apiVersion: v1
kind: ConfigMap
metadata: {name: time-slicing-config, namespace: gpu-operator}
data:
  any: |-
    version: v1
    sharing:
      timeSlicing:
        renameByDefault: false
        failRequestsGreaterThanOne: false
        resources:
          - {name: nvidia.com/gpu, replicas: 4}
'''


def lint(*args, **more):
    return run('lint', '--now', DAY, *args, **more)


def as_json(r):
    return json.loads(r.out)


def test_an_error_is_exit_1_and_reads_like_a_compiler():
    r = lint(write('p.yaml', BAD))
    same(r.rc, 1, repr(r))
    has(r.out, 'p.yaml:3:5: error BH-020 tenant:acme\n')
    has(r.out, '    fix: ')
    has(r.out, 'Not checkable from these files (-o json says why):\n')
    assert re.search(r'^\d+ errors?, \d+ warnings?, \d+ infos?, 0 waived in p\.yaml$', r.out, re.M), r.out
    has(r.err, 'next: bulkhead explain BH-')


def test_the_text_is_golden():
    tap.golden('lint.txt', lint(write('p.yaml', BAD)).out)


def test_the_json_is_golden():
    tap.golden('lint.json', lint('-o', 'json', write('p.yaml', BAD)).out)


def test_no_error_is_exit_0():
    r = lint(write('p.yaml', GOOD), '--fleet', write('f.yaml', FLEET))
    same(r.rc, 0, repr(r))
    has(r.out, '0 errors, ')
    same(r.err, 'next: bulkhead plan p.yaml --fleet f.yaml\n')


def test_the_source_line_is_shown_with_a_caret():
    r = lint(write('p.yaml', BAD))
    assert re.search(r'^ +\d+ \| .*\n +\| +\^$', r.out, re.M), r.out


def test_json_has_the_keys_of_the_specification_in_order():
    r = lint('-o', 'json', write('p.yaml', BAD))
    same(r.rc, 1)
    doc = as_json(r)
    same(list(doc)[:8], ['version', 'policy', 'errors', 'warnings', 'infos', 'waived', 'findings', 'unchecked'])
    same((doc['version'], doc['policy']), (1, 'p.yaml'))
    for f in doc['findings']:
        same(list(f)[:9], ['rule', 'severity', 'subject', 'line', 'column', 'message', 'fix', 'refs', 'waived'])
    found = [f for f in doc['findings'] if f['rule'] == 'BH-020']
    same([(f['severity'], f['subject'], f['line'], f['column']) for f in found], [('error', 'tenant:acme', 3, 5)])
    same(found[0]['refs'][:2], ['R110', '003'])
    for word, n in (('error', 'errors'), ('warning', 'warnings'), ('info', 'infos')):
        same(doc[n], sum(f['severity'] == word and not f['waived'] for f in doc['findings']), n)
    assert doc['unchecked'] and all(list(u) == ['rule', 'reason'] and u['reason'] for u in doc['unchecked'])
    found_ids = {f['rule'] for f in doc['findings']}
    has({u['rule'] for u in doc['unchecked']}, 'BH-007')
    same(found_ids & {'BH-007'}, set())


def test_the_same_files_give_the_same_bytes():
    write('p.yaml', BAD)
    for form in ('text', 'json', 'sarif'):
        same(lint('-o', form, 'p.yaml').out, lint('-o', form, 'p.yaml').out, form)


def test_several_policies_are_summed():
    one, two = as_json(lint('-o', 'json', write('a.yaml', BAD))), as_json(lint('-o', 'json', write('b.yaml', GOOD)))
    both = as_json(lint('-o', 'json', 'a.yaml', 'b.yaml'))
    same(both['policy'], 'a.yaml')
    same(both['files'], ['a.yaml', 'b.yaml'])
    for key in ('errors', 'warnings', 'infos'):
        same(both[key], one[key] + two[key], key)
    same(len(both['findings']), len(one['findings']) + len(two['findings']))
    same({f['file'] for f in both['findings']}, {f['file'] for f in one['findings'] + two['findings']})


def check_result(rules, result):
    same(rules[result['ruleIndex']]['id'], result['ruleId'])
    assert result['level'] in ('error', 'warning', 'note')
    assert result['message']['text']
    for location in result['locations'] + result.get('relatedLocations', []):
        place = location['physicalLocation']
        assert re.fullmatch(r"[A-Za-z0-9/._~%:-]+", place['artifactLocation']['uri']), place
        if 'region' in place:
            assert place['region']['startLine'] >= 1 and place['region']['startColumn'] >= 1
    assert re.fullmatch('[0-9a-f]{16}', result['partialFingerprints']['bulkheadFinding/v1'])


def test_sarif_is_what_code_hosts_read():
    doc = as_json(lint('-o', 'sarif', write('a b/p.yaml', BAD)))
    same(list(doc), ['$schema', 'version', 'runs'])
    same(doc['version'], '2.1.0')
    one, = doc['runs']
    driver = one['tool']['driver']
    same(driver['name'], 'Bulkhead')
    rules = driver['rules']
    same([r['id'] for r in rules], sorted({r['id'] for r in rules}))
    for r in rules:
        assert re.fullmatch('[A-Za-z0-9]+', r['name']), r['name']
        assert r['shortDescription']['text'] and r['fullDescription']['text'] and r['help']['text'], r['id']
        assert r['help']['markdown'] and r['defaultConfiguration']['level'] in ('error', 'warning', 'note')
        assert len(r['properties']['tags']) == len(set(r['properties']['tags'])), r['id']
    assert one['results']
    for result in one['results']:
        check_result(rules, result)
    hard, = [r for r in one['results'] if r['ruleId'] == 'BH-020']
    same(hard['locations'][0]['physicalLocation']['artifactLocation']['uri'], 'a%20b/p.yaml')
    same(hard['locations'][0]['logicalLocations'][0]['fullyQualifiedName'], 'tenant:acme')
    same(one['columnKind'], 'unicodeCodePoints')
    call, = one['invocations']
    same(call['executionSuccessful'], True)
    ids = {n['associatedRule']['id'] for n in call['toolExecutionNotifications'] if 'associatedRule' in n}
    has(ids, 'BH-007')
    marks = [r['partialFingerprints']['bulkheadFinding/v1'] for r in one['results']]
    same(len(marks), len(set(marks)))


def waiver(expires):
    return ('waivers:\n  - {rule: BH-082, scope: "tenant:acme", approver: jane@example.org, reason: x, '
            f'expires: {expires}}}\n')


def test_a_waived_finding_is_counted_and_suppressed():
    text = BAD.replace('    costCenter: cc-1\n', '')
    plain = as_json(lint('-o', 'json', write('a.yaml', text)))
    waived = as_json(lint('-o', 'json', write('b.yaml', text + waiver('2026-12-31'))))
    same(waived['waived'], plain['waived'] + 1)
    same(waived['warnings'], plain['warnings'] - 1)
    f, = [f for f in waived['findings'] if f['waived']]
    same((f['rule'], f['waivedBy']), ('BH-082', 'jane@example.org'))
    results = as_json(lint('-o', 'sarif', 'b.yaml'))['runs'][0]['results']
    same([r['ruleId'] for r in results if 'suppressions' in r], ['BH-082'])
    has(lint('b.yaml').out, 'BH-082 tenant:acme [waived by jane@example.org]')


def test_an_expired_waiver_waives_nothing():
    write('p.yaml', BAD.replace('    costCenter: cc-1\n', '') + waiver('2026-05-31'))
    same(as_json(lint('-o', 'json', 'p.yaml'))['waived'], 0)
    same(as_json(run('lint', '--now', '2026-05-31', '-o', 'json', 'p.yaml'))['waived'], 1)


def test_mistakes_are_all_named_on_standard_error_whatever_the_format():
    write('p.yaml', 'bulkhead: 1\ntenats: []\ntenants:\n  - name: A_B\n')
    for form in ('text', 'json', 'sarif'):
        r = lint('-o', form, 'p.yaml')
        same((r.rc, r.out), (2, ''), form)
        has(r.err, 'p.yaml:2:1: ')
        has(r.err, 'tenants')
        has(r.err, 'p.yaml:4:')


def test_broken_yaml_has_a_place():
    r = lint(write('p.yaml', 'bulkhead: 1\ntenants: [\n'))
    same((r.rc, r.out), (2, ''))
    assert re.search(r'^p\.yaml:\d+:\d+: ', r.err, re.M), r.err


def test_paths_that_cannot_be_read():
    for args in (['nowhere.yaml'], [write('p.yaml', GOOD), '--fleet', 'nowhere.yaml']):
        r = lint(*args)
        same((r.rc, r.out), (2, ''), repr(r))
        has(r.err, 'nowhere.yaml')
    os.mkdir('empty')
    same(lint('empty').rc, 2)
    r = lint(write('fleet.yaml', FLEET))
    same(r.rc, 2)
    has(r.err, 'nothing to judge')


def test_a_folder_is_one_cluster():
    write('m/quota.yaml', QUOTA)
    write('m/plugin.yaml', TIME_SLICING)
    write('m/README.txt', 'not judged')
    doc = as_json(lint('-o', 'json', 'm'))
    ids = {f['rule'] for f in doc['findings']}
    for rule in ('BH-034', 'BH-037', 'BH-038'):
        has(ids, rule)
    assert any(f.get('object', '').startswith('ConfigMap/') for f in doc['findings']), doc
    same(sorted(doc['files']), ['m/plugin.yaml', 'm/quota.yaml'])


def test_a_broken_file_does_not_hide_the_rest_of_its_folder():
    write('m/quota.yaml', QUOTA)
    write('m/plugin.yaml', TIME_SLICING)
    write('m/chart/templates/x.yaml', 'kind: Pod\nmetadata:\n  name: {{ .Release.Name }}-x\n')
    write('m/nginx.conf', 'http { server { listen 80; } }\n')
    r = lint('m')
    same(r.rc, 2, repr(r))
    has(r.err, 'run `helm template` first')
    has(r.err, '1 mistake; the rest of the folder was judged')
    has(r.out, 'BH-034')
    has(r.out, 'nginx.conf:1:1: note: passed over')
    same(lint('m/quota.yaml', 'm/chart/templates/x.yaml').out, '')


def test_standard_input():
    doc = as_json(lint('-o', 'json', '-', stdin=BAD))
    has({f['rule'] for f in doc['findings']}, 'BH-020')
    r = lint('-', stdin=BAD)
    same(r.rc, 1)
    has(r.out, ':3:5: error BH-020 tenant:acme')
    uris = {loc['physicalLocation']['artifactLocation']['uri']
            for res in as_json(lint('-o', 'sarif', '-', stdin=BAD))['runs'][0]['results'] for loc in res['locations']}
    same(uris, {'stdin'})


def test_notes_go_to_standard_error_beside_data():
    write('m.yaml', 'apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: x}\n---\n' + QUOTA)
    r = lint('-o', 'json', 'm.yaml')
    has(r.err, 'Widget')
    has(json.dumps(as_json(r)['notes']), 'Widget')
    has(lint('m.yaml').out, 'note: ')


def test_colour_only_where_asked():
    write('p.yaml', BAD)
    assert '\x1b' not in lint('p.yaml').out
    painted = lint('--color=always', 'p.yaml', NO_COLOR='1')
    has(painted.out, '\x1b[')
    same(re.sub('\x1b\\[[0-9;]*m', '', painted.out), lint('--color', 'never', 'p.yaml').out)


def test_a_full_disk_is_exit_70():
    write('p.yaml', BAD)
    for form in ('text', 'json', 'sarif'):
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([tap.BIN, 'lint', '-o', form, 'p.yaml'], stdout=full, stderr=subprocess.PIPE,
                                  env=tap.environment(), check=False)
        same(done.returncode, 70)
        has(done.stderr.decode(), 'standard output: No space left')


def test_a_closed_pipe_ends_quietly():
    write('p.yaml', BAD)
    read, out = os.pipe()
    os.close(read)
    done = subprocess.run([tap.BIN, 'lint', 'p.yaml'], stdout=out, stderr=subprocess.PIPE, env=tap.environment(),
                          check=False)
    os.close(out)
    same(done.returncode, 1)
    assert b'rror' not in done.stderr and b'pipe' not in done.stderr, done.stderr


def test_a_closed_standard_output_is_an_error():
    write('p.yaml', BAD)
    done = subprocess.run(['sh', '-c', '"$0" lint p.yaml >&-', tap.BIN], capture_output=True, env=tap.environment(),
                          check=False)
    same(done.returncode, 70)


def test_now_must_be_a_date():
    r = run('lint', '--now', 'tomorrow', write('p.yaml', GOOD))
    same((r.rc, r.out), (2, ''))
    has(r.err, '--now')


def test_a_terminal_is_not_at_the_mercy_of_a_file():
    write('m.yaml', 'apiVersion: v1\nkind: "Wid\\e[2Jget"\nmetadata: {name: x}\n---\n' + QUOTA)
    r = lint('m.yaml')
    assert '\x1b' not in r.out and '\x1b' not in r.err


if __name__ == '__main__':
    tap.main(globals())
