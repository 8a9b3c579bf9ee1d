# SPDX-License-Identifier: Apache-2.0
"""The command as a citizen of a shell: help, completion, manual pages, typing slips, status."""
import json
import re
import shutil
import subprocess

import tap
from tap import BAD, FLEET, ROOT, has, run, same, write


def verbs():
    text = run('help').out.split('Commands\n')[1].split('\n\n')[0]
    return [line.split()[0] for line in text.splitlines()]


def options_of(text):
    """Option names of help's Options section."""
    return sorted(set(re.findall(r'^ +(?:-\w, )? *--([a-z-]+)', text.split('\nOptions\n')[1], re.M)))


def test_every_verb_has_help_with_examples_first():
    same(verbs(), ['lint', 'plan', 'explain', 'init', 'policy', 'top', 'tenants', 'quota', 'usage', 'gpus', 'leases', 'run', 'submit', 'ps', 'logs', 'cancel', 'why', 'what-if', 'describe', 'adopt', 'shares', 'pause', 'resume', 'suspend', 'doctor', 'fleet', 'cordon', 'drain', 'upgrade', 'token', 'audit', 'backup', 'sim', 'replay', 'completion', 'help', 'version'])
    for verb in verbs():
        r = run('help', verb)
        same((r.rc, r.err), (0, ''), verb)
        same(run(verb, '--help').out, r.out)
        same(run(verb, '-h').out, r.out)
        assert r.out.startswith(f'bulkhead {verb} - '), r.out
        assert r.out.index('Examples\n') < r.out.index('Usage\n') < r.out.index('Options\n')
        assert max(map(len, r.out.splitlines())) <= 100, verb


def test_general_help():
    r = run('--help')
    same((r.rc, r.err), (0, ''))
    same(run('help').out, r.out)
    has(r.out, 'bulkhead init')


def test_a_slip_gets_the_right_word_and_exit_2():
    for args, words in ((['lnt', 'x'], "did you mean 'lint'?"), (['help', 'plam'], "did you mean 'plan'?"),
                        (['lint', '--flet', 'x'], "did you mean '--fleet'?"),
                        (['lint', '-o', 'jsn', 'x'], "did you mean 'json'?"),
                        (['frobnicate'], 'bulkhead help lists them'), (['--colour'], "did you mean '--color'?"),
                        (['lint'], 'needs FILE'), (['-o', 'json', 'lint', 'x'], 'does not go before a command'),
                        (['completion', 'fish'], 'bash and zsh')):
        r = run(*args)
        same((r.rc, r.out), (2, ''), repr(r))
        has(r.err, words)


def test_status_alone():
    r = run(BULKHEAD_RUN_DIR='.')
    same(r.rc, 0)
    has(r.out, 'bulkhead ')
    has(r.out, 'daemon   none answers here')
    has(r.out, 'none in this folder')
    has(r.err, 'next: bulkhead init\n')


def test_status_finds_policies_and_fleets():
    write('b.yaml', BAD)
    write('a b.yaml', BAD)
    write('fleet.yaml', FLEET)
    write('other.yaml', 'kind: Pod\n')
    write('c.txt', BAD)
    doc = json.loads(run('-o', 'json', BULKHEAD_RUN_DIR='.').out)
    same((doc['version'], doc['daemon']), (1, False))
    same((doc['policies'], doc['fleets']), (['a b.yaml', 'b.yaml'], ['fleet.yaml']))
    same(doc['next'], "bulkhead lint 'a b.yaml' --fleet fleet.yaml")
    has(run(BULKHEAD_RUN_DIR='.').err, "next: bulkhead lint 'a b.yaml' --fleet fleet.yaml\nnext: bulkheadd --policy 'a b.yaml'\n")


def test_version():
    project = re.search(r"version: '([^']+)'", (ROOT / 'meson.build').read_text()).group(1)
    for args in (['version'], ['--version'], ['-V']):
        r = run(*args)
        same((r.rc, r.out.splitlines()[0]), (0, f'bulkhead {project}'))
    doc = json.loads(run('version', '-o', 'json').out)
    same((doc['version'], doc['bulkhead']), (1, project))
    assert doc['rules'] > 60 and doc['models'] > 5


COMPLETE = r'''
source "$1" || exit 3
COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
_bulkhead
printf '%s\n' "${COMPREPLY[@]}"
'''


def complete(*words):
    write('completion.bash', run('completion', 'bash').out)
    done = subprocess.run(['bash', '--norc', '-c', COMPLETE, 'bash', 'completion.bash', *words], capture_output=True,
                          text=True, check=False)
    same((done.returncode, done.stderr), (0, ''))
    return done.stdout.split()


def test_bash_completion():
    write('completion.bash', run('completion', 'bash').out)
    same(subprocess.run(['bash', '-n', 'completion.bash'], check=False).returncode, 0)
    same(complete('bulkhead', 'li'), ['lint'])
    same(complete('bulkhead', ''), verbs())
    same(complete('bulkhead', 'lint', '-o', ''), ['text', 'json', 'sarif'])
    same(complete('bulkhead', 'plan', '--output', 'j'), ['json'])
    same(complete('bulkhead', 'lint', '--color', '=', 'n'), ['never'])
    same(complete('bulkhead', 'lint', '--color', '='), ['auto', 'always', 'never'])
    same(complete('bulkhead', 'lint', '--fl'), ['--fleet'])
    same(complete('bulkhead', 'init', '--runs', 'training,se'), ['training,serving'])
    same(complete('bulkhead', 'explain', 'BH-02')[:1], ['BH-020'])
    same(complete('bulkhead', 'completion', ''), ['bash', 'zsh'])
    same(complete('bulkhead', '-o', ''), ['text', 'json'])
    write('pol.yaml', BAD)
    same(complete('bulkhead', 'lint', 'pol'), ['pol.yaml'])
    same(complete('bulkhead', 'lint', '--fleet', 'pol'), ['pol.yaml'])
    same(complete('bulkhead', 'version', ''), [])


def test_zsh_completion():
    text = run('completion', 'zsh').out
    assert text.startswith('#compdef bulkhead\n')
    for verb in verbs():
        has(text, f"'{verb}:")
    if shutil.which('zsh'):
        write('_bulkhead', text)
        same(subprocess.run(['zsh', '-n', '_bulkhead'], check=False).returncode, 0)
        script = 'autoload -Uz compinit && compinit -u -d dump && source ./_bulkhead && print $_comps[bulkhead]'
        done = subprocess.run(['zsh', '-fc', script], capture_output=True, text=True, check=False)
        same((done.stdout.strip(), done.stderr), ('_bulkhead', ''))


def options_in(page):
    section = page.split('\n# OPTIONS\n')[1].split('\n# ')[0]
    return sorted(re.findall(r'^(?:\*-\w\*, )?\*--([a-z-]+)\*', section, re.M))


def test_manual_pages_name_the_same_options():
    pages = ROOT / 'docs' / 'man'
    for verb in ('lint', 'plan', 'explain', 'init', 'gpus', 'fleet', 'replay', 'audit', 'tenants', 'quota', 'usage', 'leases', 'submit', 'ps', 'logs', 'cancel', 'describe', 'cordon',
                 'drain', 'upgrade', 'token', 'backup', 'policy', 'run', 'why'):
        page = (pages / f'bulkhead-{verb}.1.scd').read_text()
        same(options_in(page), options_of(run('help', verb).out), verb)
        has(page, f'*bulkhead {verb}*')
    page = (pages / 'bulkhead.1.scd').read_text()
    same(options_in(page), options_of(run('help').out))
    same(re.findall(r'^\*([a-z-]+)\*', page.split('\n# COMMANDS\n')[1].split('\n# ')[0], re.M), verbs())


def test_manual_pages_are_good_scdoc():
    if not shutil.which('scdoc'):
        return
    for page in sorted((ROOT / 'docs' / 'man').glob('*.scd')):
        done = subprocess.run(['scdoc'], input=page.read_bytes(), capture_output=True, check=False)
        same((done.returncode, done.stderr), (0, b''), page.name)


def test_examples_in_help_are_real_commands():
    """Every option and verb that an example of the help uses exists."""
    for verb in verbs():
        known = options_of(run('help', verb).out)
        for line in run('help', verb).out.split('Examples\n')[1].split('\n\n')[0].splitlines():
            call = line[line.index('bulkhead '):].split('   ')[0].split()
            has(verbs(), call[1].rstrip(')'))
            for word in call[:call.index('--')] if '--' in call else call:  # what follows is somebody else's command
                if word.startswith('--') and call[1] == verb:
                    has(known, word[2:])


if __name__ == '__main__':
    tap.main(globals())
