# SPDX-License-Identifier: Apache-2.0
"""What a caller may send, how often and how slowly; and that others are still served. Usage: limits.py TESTD SOURCE-ROOT"""
import contextlib
import json
import pathlib
import socket
import time

import door as d
from door import door, has, same


def status_of(s):
    """The status of what comes; None: the connection was closed without a word."""
    data = b''
    with contextlib.suppress(ConnectionError):
        while b'\r\n\r\n' not in data:
            more = s.recv(65536)
            if not more:
                break
            data += more
    return int(data.split()[1]) if data else None


def raw(t, data, who='root'):
    s = d.connect(t.path, who)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
    return status_of(s)


def alive(t):
    same(t.get('/v1/health').status, 200)


def test_what_is_not_http():
    with door('--tight') as t:
        for data in (b'', b'\r\n\r\n', b'GET\r\n\r\n', b'\x00' * 100, b'\x16\x03\x01\x02\x00' + b'\x01' * 100,
                     b'GET / HTTP/9.9\r\n\r\n', b'GET /v1/status HTTP/1.1\r\n\r\n', b'GET /v1/status HTTP/1.1\r\nHost\r\n\r\n',
                     b'GET /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
                     b'POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}',
                     b'POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n',
                     b'POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
                     b'POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx',
                     b'POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{}',
                     b'GET ' + b'/' * 70000 + b' HTTP/1.1\r\nHost: x\r\n\r\n',
                     b'GET /v1/status HTTP/1.1\r\nHost: x\r\n' + b'A: ' + b'b' * 70000 + b'\r\n\r\n',
                     b'GET /v1/status HTTP/1.1\r\nHost: x\r\n' + b'A: b\r\n' * 5000 + b'\r\n'):
            status = raw(t, data)
            assert status is None or 400 <= status < 600, f'{data[:60]!r}: {status}'
        alive(t)


def test_a_chunked_body():
    with door() as t:
        body = json.dumps({'tenant': 'a', 'argv': ['x'], 'dry_run': True}).encode()
        chunks = b''.join(b'%x\r\n%s\r\n' % (1, body[i:i + 1]) for i in range(len(body))) + b'0\r\n\r\n'
        same(raw(t, b'POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n' + chunks), 200)


def test_a_body_that_is_too_large():
    with door() as t:
        r = raw(t, b'POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n')
        same(r, 413)
        big = b'%x\r\n%s\r\n' % (100000, b'x' * 100000)
        s = d.connect(t.path)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            s.sendall(b'POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
            for _ in range(25):
                s.sendall(big)
            s.sendall(b'0\r\n\r\n')
        same(status_of(s), 413)
        s = d.connect(t.path)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # without end: cut off
            s.sendall(b'POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
            for _ in range(200):
                s.sendall(big)
        alive(t)


def until_refused(ask):
    """Twenty a second may be asked; how many more than the burst it takes is this machine's affair."""
    answers = []
    while not answers or answers[-1].status == 200:
        assert len(answers) < 2000, 'nothing is refused'
        answers.append(ask(len(answers)))
    same(answers[-1].status, 429)
    return answers


def test_requests_a_second():
    with door('--tight') as t:
        s = d.connect(t.path, 'tenant-user')
        answers = until_refused(lambda _: t.get('/v1/health', sock=s))
        assert len(answers) > 40, [a.status for a in answers]  # the burst
        same(answers[-1].code, 'rate_limited')
        assert int(answers[-1].headers['Retry-After']) >= 1
        s.close()
        same(t.get('/v1/health', who='tenant-admin').status, 200)  # somebody else's bucket
        time.sleep(0.5)
        same(t.get('/v1/health', who='tenant-user').status, 200)


def test_tokens_are_one_caller():
    """However many somebody has, they are his: their requests count together, with his own."""
    with door('--tight') as t:
        made = [t.post('/v1/tokens', {'role': 'tenant-user', 'tenant': 'a'}, who='tenant-user').json['token'] for _ in range(3)]
        s = d.connect(t.path, 'nobody')
        assert len(until_refused(lambda i: t.get('/v1/status', sock=s, headers={'Authorization': f'Bearer {made[i % 3]}'}))) > 20
        started = time.monotonic()
        s.close()
        s = d.connect(t.path, 'tenant-user')
        n = len(until_refused(lambda _: t.get('/v1/status', sock=s)))
        # Over this socket alone he has 40 and 20 more each second; what the tokens used up is missing.
        assert n < 35 + 20 * (time.monotonic() - started), n
        s.close()
        same(t.get('/v1/status', who='tenant-admin').status, 200)


def test_tokens_have_a_number():
    with door() as t:
        ask = {'role': 'tenant-user', 'tenant': 'a'}
        made = [t.post('/v1/tokens', ask, who='tenant-user') for _ in range(32)]
        same([r.status for r in made], [201] * 32)
        r = t.post('/v1/tokens', ask, who='tenant-user')
        same((r.status, r.code), (409, 'quota_exceeded'))
        has(r.json['error']['message'], "'user:2002' has 32 tokens that hold")
        same(t.ask('DELETE', f'/v1/tokens/{made[0].json["id"]}', who='tenant-user').status, 200)
        same(t.post('/v1/tokens', ask, who='tenant-user').status, 201)
        same(t.post('/v1/tokens', {'subject': 'service:x', 'role': 'viewer'}).status, 201)


def test_connections_of_one_and_of_all():
    with door('--tight') as t:
        def count(who, n):
            held = [d.connect(t.path, who) for _ in range(n)]
            for s in held:
                with contextlib.suppress(BrokenPipeError):
                    s.sendall(b'GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n')
            return held, [status_of(s) for s in held]
        mine, got = count('tenant-user', 8)
        same(sorted(got), [200] * 6 + [503] * 2)
        theirs, got = count('neighbour', 8)
        same(sorted(got), [200] * 6 + [503] * 2)
        more, got = count('viewer', 2)  # 12 in all
        same(got, [503, 503])
        same(t.get('/v1/health').status, 200)  # root comes in
        for s in mine + theirs + more:
            s.close()
        d_ = time.monotonic() + 10
        while t.get('/v1/health', who='viewer').status != 200:
            assert time.monotonic() < d_
            time.sleep(0.05)


def test_slow_callers_are_cut_off():
    with door('--tight') as t:
        for first in (b'', b'GET /v1/he', b'POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n'):
            s = d.connect(t.path, 'tenant-user')
            s.sendall(first)
            closed = False
            for _ in range(100):  # a byte now and then does not help
                time.sleep(0.1)
                try:
                    s.sendall(b'x')
                except (BrokenPipeError, ConnectionResetError):
                    closed = True
                    break
            assert closed, first
        alive(t)


def test_wrong_tokens_lock_out():
    with door('--tight', '--https') as t:
        good = t.post('/v1/tokens', {'subject': 'service:x', 'role': 'viewer'}).json['token']
        same(t.https('GET', '/v1/health', good).status, 200)
        wrong = ['bh_' + '0' * 64, 'nonsense', 'bh_' + 'g' * 64, good[:-1]]
        same([t.https('GET', '/v1/health', w).status for w in wrong], [401] * 4)
        r = t.https('GET', '/v1/health', good)
        same((r.status, r.code), (429, 'rate_limited'))
        has(r.json['error']['message'], '127.0.0.1')
        same(t.get('/v1/health', who='viewer').status, 200)  # nobody else is
        events = [x['event'] for x in t.get('/v1/audit').json['records'] if x['event'].startswith('auth.')]
        same(events, ['auth.failure'] * 3 + ['auth.lockout'])
        time.sleep(3.2)
        same(t.https('GET', '/v1/health', good).status, 200)


def test_logs():
    with door() as t:
        r = t.get('/v1/jobs/J1/logs', who='tenant-user')
        same((r.body, r.headers['Bulkhead-Next-Offset'], r.headers['Bulkhead-Ended']), (b'hello of L1\n', '12', 'false'))
        same(t.get('/v1/jobs/J1/logs?offset=6&limit=2').body, b'of')
        same(t.get('/v1/jobs/J1/logs?stream=err').body, b'')
        same(t.get('/v1/jobs/J1/logs?offset=99').body, b'')
        same(t.get('/v1/jobs/J1/logs?lease=L2').status, 404)
        same(t.get('/v1/jobs/J3/logs').body, b'')
        # A part that is kept, behind one that is not: the offsets are those of all that was written.
        kept = pathlib.Path(t.path).parent / 'leases/1/err.to-100'
        kept.write_bytes(b'0123456789')
        r = t.get('/v1/jobs/J1/logs?stream=err&offset=5')
        same((r.body, r.headers['Bulkhead-Dropped'], r.headers['Bulkhead-Next-Offset']), (b'0123456789', '85', '100'))
        r = t.get('/v1/jobs/J1/logs?stream=err&offset=97')
        same((r.body, r.headers['Bulkhead-Dropped']), (b'789', None))
        s = d.connect(t.path, 'tenant-user')
        c = d.Connection(s)
        c.request('GET', '/v1/jobs/J1/logs?offset=12&wait_ms=20000')
        time.sleep(0.3)
        alive(t)
        t.order('write 1 more')
        r = c.getresponse()
        same((r.read(), r.headers['Bulkhead-Next-Offset'], r.headers['Bulkhead-Ended']), (b'more\n', '17', 'false'))
        c.request('GET', '/v1/jobs/J1/logs?offset=17&wait_ms=20000')
        time.sleep(0.3)
        t.order('end 1')
        r = c.getresponse()
        same((r.read(), r.headers['Bulkhead-Ended']), (b'', 'true'))
        c = d.Connection(d.connect(t.path))
        c.request('GET', '/v1/jobs/J5/logs?offset=12&wait_ms=100')
        r = c.getresponse()
        same((r.status, r.read(), r.headers['Bulkhead-Ended']), (200, b'', 'false'))


if __name__ == '__main__':
    d.tap.main(globals())
