# SPDX-License-Identifier: Apache-2.0
"""bulkhead init: options, questions on a terminal, and what it must never do."""
import itertools
import json
import os
import pathlib
import pty
import select
import subprocess
import time

import tap
from tap import DAY, has, run, same, write

ALL = ['--who', 'internal', '--runs', 'research', '--model', 'H200', '--promise', 'none']


def init(*args, **more):
    return run('init', *args, **more)


def test_options_write_a_policy_that_keeps_every_rule():
    r = init('--who', 'external', '--runs', 'training,serving,research,batch', '--model', 'H200', '--nodes', '8',
             '--gpus', '8', '--promise', 'hard')
    same((r.rc, r.out), (0, ''), repr(r))
    has(r.err, 'wrote policy.yaml\nnext: bulkhead lint policy.yaml\n')
    verdict = run('lint', '--now', DAY, 'policy.yaml')
    same(verdict.rc, 0, repr(verdict))
    has(pathlib.Path('policy.yaml').read_text(), '\nbulkhead: 1')


def test_every_answer_gives_a_policy_without_errors():
    answers = itertools.product(('internal', 'partner', 'external'), ('training', 'serving', 'research', 'batch'),
                                ('none', 'soft', 'hard'), ('H200', 'L40S'))
    for who, runs, promise, model in answers:
        r = init('--who', who, '--runs', runs, '--model', model, '--nodes', '4', '--promise', promise,
                 '--out', 'p.yaml', '--force')
        same(r.rc, 0, repr(r))
        verdict = run('lint', '--now', DAY, '-o', 'json', 'p.yaml')
        same(verdict.rc, 0, f'{who} {runs} {promise} {model}\n{verdict}')


def test_the_starter_can_be_planned():
    init('--who', 'external', '--runs', 'serving', '--model', 'H200', '--nodes', '2', '--promise', 'hard')
    r = run('plan', '-o', 'json', 'policy.yaml')
    same(r.rc, 0, repr(r))
    same(json.loads(r.out)['impossible'], 0)


def test_regulated_tenants_say_so():
    r = init('--who', 'external', '--runs', 'serving', '--model', 'H200', '--nodes', '4', '--promise', 'hard',
             '--regulated', 'hipaa,pci', '--out', '-')
    same(r.rc, 0, repr(r))
    has(r.out, 'hipaa')
    has(r.out, 'pci')
    same(run('lint', '--now', DAY, '-', stdin=r.out).rc, 0)


def test_the_same_answers_give_the_same_bytes():
    same(init(*ALL, '--out', '-').out, init(*ALL, '--out', '-').out)


def test_standard_output_leaves_no_file():
    r = init(*ALL, '--out', '-')
    same(r.rc, 0)
    has(r.out, '\nbulkhead: 1')
    same(os.listdir(), [])


def test_a_file_is_never_overwritten_without_force():
    write('policy.yaml', 'mine\n')
    r = init(*ALL)
    same((r.rc, r.out), (5, ''), repr(r))
    has(r.err, '--force')
    same(pathlib.Path('policy.yaml').read_text(), 'mine\n')
    same(init(*ALL, '--force').rc, 0)
    has(pathlib.Path('policy.yaml').read_text(), '\nbulkhead: 1')
    same(os.listdir(), ['policy.yaml'])


def test_places_that_cannot_be_written():
    same(init(*ALL, '--out', 'no/such/folder.yaml').rc, 70)
    os.mkdir('d')
    same(init(*ALL, '--out', 'd').rc, 5)
    same(init(*ALL, '--out', 'd', '--force').rc, 5)


def test_without_a_terminal_nothing_is_guessed():
    for more in ([], ['--no-input']):
        r = init('--who', 'internal', *more)
        same((r.rc, r.out), (2, ''), repr(r))
        has(r.err, '--runs, --model, --promise')
    same(os.listdir(), [])


def test_wrong_answers_are_refused():
    for args, words in ((['--who', 'extern'], "did you mean 'external'?"),
                        (['--runs', 'training,servng'], "did you mean 'serving'?"),
                        (['--runs', ''], '--runs'),
                        (['--promise', 'maybe'], 'none, soft, hard'),
                        (['--nodes', '0'], '--nodes'),
                        (['--gpus', '-1'], '--gpus'),
                        (['--gpus', '1e9'], '--gpus'),
                        (['--model', 'a\nb: c'], 'model name'),
                        (['--model', ''], 'model name'),
                        (['--regulated', 'gdpr'], 'iso27001')):
        r = init(*ALL, *args)
        same((r.rc, r.out), (2, ''), repr(r))
        has(r.err, words)
    same(os.listdir(), [])


def on_terminal(typed, *args):
    """Run init on a terminal, typing each line once a question waits; returns the status and all that was shown."""
    try:
        master, slave = pty.openpty()
    except OSError as e:
        raise tap.Skip(f'no terminal to be had here: {e}') from e
    child = subprocess.Popen([tap.BIN, 'init', *args], stdin=slave, stdout=slave, stderr=slave, close_fds=True,
                             env=tap.environment(NO_COLOR='1'))
    os.close(slave)
    shown, lines, asked, end = b'', list(typed), 0, time.monotonic() + 30
    while time.monotonic() < end:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            part = os.read(master, 4096)
        except OSError:  # the terminal is gone with its last process
            part = b''
        if not part:
            break
        shown += part
        if shown.count(b'] ') > asked and shown.endswith(b'] ') and lines:
            asked = shown.count(b'] ')
            os.write(master, lines.pop(0))
    os.close(master)
    return child.wait(timeout=30), shown.decode()


def test_four_questions_on_a_terminal():
    rc, shown = on_terminal([b'external\n', b'serving\n', b'H200 2x8\n', b'hard\n'])
    same(rc, 0, shown)
    for words in ('1/4 Who', '2/4 What', '3/4 On which', '4/4 What were', 'next: bulkhead lint policy.yaml'):
        has(shown, words)
    asked = pathlib.Path('policy.yaml').read_text()
    given = init('--who', 'external', '--runs', 'serving', '--model', 'H200', '--nodes', '2', '--gpus', '8',
                 '--promise', 'hard', '--out', '-').out
    same(asked, given)


def test_enter_takes_the_default_and_a_slip_is_asked_again():
    rc, shown = on_terminal([b'\n', b'reserch\n', b'research\n', b'\n', b'\n'])
    same(rc, 0, shown)
    has(shown, "did you mean 'research'?")
    same(shown.count('2/4 What'), 2)


def test_an_option_is_not_asked():
    rc, shown = on_terminal([b'none\n'], '--who', 'internal', '--runs', 'batch', '--model', 'A100')
    same(rc, 0, shown)
    has(shown, '1/1 What were they promised?')
    assert 'Who shares' not in shown


def test_the_end_of_the_input_writes_nothing():
    rc, shown = on_terminal([b'external\n', b'\x04'])
    same(rc, 2, shown)
    has(shown, 'nothing was written')
    same(os.listdir(), [])


def test_no_input_asks_nothing_even_on_a_terminal():
    rc, shown = on_terminal([], '--no-input')
    same(rc, 2, shown)
    assert '1/4' not in shown


def test_an_existing_file_is_said_before_the_questions():
    write('policy.yaml', 'mine\n')
    rc, shown = on_terminal([])
    same(rc, 5, shown)
    assert '1/4' not in shown


if __name__ == '__main__':
    tap.main(globals())
