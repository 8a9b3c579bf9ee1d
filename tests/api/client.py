# SPDX-License-Identifier: Apache-2.0
"""The client library against the API it is for. Usage: client.py TESTD SOURCE-ROOT ASK"""
import json
import subprocess
import sys
import time

import door as d
from door import door, has, same

ASK = d.os.path.abspath(sys.argv[3])


def ask(t, *args):
    done = subprocess.run([ASK, t.path, *args], capture_output=True, text=True, timeout=60, check=False, env=d.tap.environment())
    same(done.stderr, '')
    head, _, body = done.stdout.partition('\n')
    return done.returncode, head, body


def test_answers_and_failures():
    for options in ((), ('--later',)):
        with door(*options) as t:
            rc, head, body = ask(t, 'GET', '/v1/jobs')
            same((rc, head), (0, 'ok 200'))
            same(json.loads(body), t.get('/v1/jobs').json)
            rc, head, body = ask(t, 'GET', '/openapi.json')  # larger than the client's buffer
            same((rc, json.loads(body)), (0, t.document()))
            rc, head, body = ask(t, 'POST', '/v1/jobs', '{"tenant": "a", "argv": ["x"]}', 'k')
            same((rc, head, json.loads(body)), (0, 'ok 201', {'id': 'J7'}))
            rc, head, body = ask(t, 'POST', '/v1/jobs', '{"tenant": "a", "argv": ["x"]}', 'k')
            same(json.loads(body), {'id': 'J7'})
            rc, head, body = ask(t, 'GET', '/v1/jobs/J99')
            same((rc, head), (4, 'not_found 404'))
            has(body, "no job 'J99'")
            rc, head, body = ask(t, 'POST', '/v1/jobs', '{"tennant": 1}')
            same((rc, head), (2, 'invalid 400'))
            rc, head, body = ask(t, 'DELETE', '/v1/tokens/T9')
            same((rc, head), (4, 'not_found 404'))
            rc, head, body = ask(t, 'POST', '/v1/jobs', 'x' * 3000)
            same((rc, head), (2, 'invalid 400'))


def test_events():
    with door() as t:
        p = subprocess.Popen([ASK, t.path, 'events', '2'], stdout=subprocess.PIPE, text=True, env=d.tap.environment())
        for _ in range(200):  # until it listens
            t.order('changed job 1 a running')
            time.sleep(0.02)
            if p.poll() is not None:
                break
        out, _ = p.communicate(timeout=60)
        same(out.splitlines(), ['job {"id": "J1", "tenant": "a", "state": "running"}'] * 2)
        same(p.returncode, 0)


def test_no_daemon():
    rc, head, body = ask(type('T', (), {'path': d.os.path.abspath('nowhere.sock')}), 'GET', '/v1/status')
    same((rc, head), (4, 'not_found 0'))
    has(body, 'is bulkheadd running?')


if __name__ == '__main__':
    d.tap.main(globals())
