# SPDX-License-Identifier: Apache-2.0
"""A tenant that wants more of the card than its lease was given, and one that takes from others: neither gets it.

The real command, warden, governor and filter on simulated silicon; the tenant (steal.c) makes the driver's calls itself. What it
got is what it finished, of 500 pieces a second. The margins are wide, for nothing here is about speed.

Usage: steal.py PATH-TO-BULKHEAD SOURCE-ROOT PATH-TO-TENANT PATH-TO-STEAL
"""
import importlib.util
import os
import pathlib
import signal
import sys
import time

spec = importlib.util.spec_from_file_location('govern_run', pathlib.Path(__file__).resolve().parent / 'run.py')
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)
from tap import has, same  # noqa: E402

STEAL = os.path.abspath(sys.argv[4])
CAP = ('--cap', '10%')
WHOLE, MOST = 500, 130  # of a cap of 50


def steal(env, *words, options=CAP):
    return run.begin(env, STEAL, *(str(w) for w in words), options=options)


def result(p):
    rc, out, err = run.finish(p)
    return rc, run.lines(out), err


def held(*words):
    with run.shared() as env:
        rc, out, err = result(steal(env, *words))
        same(rc, 0, (out, err))
        assert int(out['rate']) < MOST, (words, out, err)
        same('gone' in err, False, err)  # its warden was not thrown off
        return out


def test_a_cap_holds_for_one_that_does_nothing_special():
    held('plain', 4)


def test_controls_on_what_nobody_knows():
    held('tamper', 4)


def test_a_flood_of_them():
    held('flood', 4)


def test_work_in_a_client_that_a_child_has_too():
    held('give-to-child', 4)


def test_more_channels_than_can_be_named():
    out = held('many-channels', 4, 5000)
    assert int(out['made']) < 4096, out


def test_channels_that_nobody_has_paused_yet():
    held('new-channels', 4)


def test_clients_that_go_all_at_once():
    held('many-clients', 6, 1500)


def test_a_channel_behind_the_gate_ends_the_lease():
    with run.shared() as env:
        rc, out, err = result(steal(env, 'hidden-channel', 60))  # it ends long before that, where the governor has a processor
        same((rc, 'rate' in out), (-signal.SIGKILL, False), (out, err))
        has(err, 'the command was killed: GPU 0 was used for a second by what should be paused')


def test_who_was_paused_by_a_neighbour_goes_on():
    with run.shared() as env:
        victim = steal(env, 'plain', 8, options=('--share', '100', '--name', 'victim'))
        same(victim.stdout.readline(), b'ready\n')
        rc, out, err = result(steal(env, 'pause-others', 1, 0xc1d00000, 0x0b900000, options=('--share', '1')))
        same(rc, 0, err)
        if not int(out['hits']):
            raise run.gate.Skip('no name was guessed')
        rc, out, err = result(victim)
        same(rc, 0, err)
        assert int(out['rate']) > WHOLE / 4, (out, err)


def test_nobody_stays_paused_by_a_governor_that_is_stopped():
    with run.shared() as env:
        p = steal(env, 'plain', 6, options=(*CAP, '--name', 'a'))
        same(p.stdout.readline(), b'ready\n')
        run.until(lambda: run.row(env, 'a').get('pauses', 0))
        stopped = run.governor(env)
        os.kill(stopped, signal.SIGSTOP)
        try:
            rc, out, err = result(p)
        finally:
            os.kill(stopped, signal.SIGCONT)
        same(rc, 0, err)
        assert int(out['rate']) > WHOLE / 4, (out, err)


def test_a_resume_that_fails_at_first_is_made_again():
    with run.shared() as env:
        p = steal(env, 'plain', 7, options=('--share', '10', '--name', 'a'))
        same(p.stdout.readline(), b'ready\n')
        run.until(lambda: run.row(env, 'a'))
        run.order(env, 'pause', 'a')
        same(run.bulkhead('sim', 'break', 'lab', 'calls', 'fail', '51', 'every', '1', **env).rc, 0)
        os.kill(run.governor(env), signal.SIGKILL)
        time.sleep(0.7)
        same(run.bulkhead('sim', 'break', 'lab', 'mend', **env).rc, 0)
        rc, out, err = result(p)
        same(rc, 0, err)
        assert int(out['rate']) > WHOLE / 4, (out, err)


if __name__ == '__main__':
    run.gate.tap.main(globals())
