# SPDX-License-Identifier: Apache-2.0
"""Requests made from the document: right ones, nearly right ones and hostile ones, as every caller, from a seed.

Nothing may crash, every answer must be one that the document lists, nobody sees a neighbour, and no answer is a 5xx but
`busy`. A failing run says its seed; BH_API_FUZZ_SEED and BH_API_FUZZ_N repeat or lengthen it.
Usage: fuzz.py TESTD SOURCE-ROOT
"""
import json
import os
import random
import re
import urllib.parse

import door as d
from door import CALLERS, door, judge_answer, same
from routes import marks_for

SEED = int(os.environ.get('BH_API_FUZZ_SEED', '1'))
N = int(os.environ.get('BH_API_FUZZ_N', '1500'))

WORDS = ['a', 'b', 'J1', 'J2', 'L1', 'L2', 'T1', '0', '1', '2', 'GPU-00000000-0000-0000-0000-000000000000', 'shared', 'x', 'user:2002',
         'service:x', 'waiting', 'live', 'out', '17', 'tenant-user']
NASTY = ['', ' ', '\x7f', '%', '%00', '%zz', '../../etc/passwd', '..%2f..', "';--", '\u00e4', '\U0001f600', 'a' * 300, '-1', '1e9', '0x10', '\\', '"',
         '{', '18446744073709551616', '9223372036854775808', 'J', 'J0', 'J-1', 'null', '\r\n', '\n', 'A' * 5000, '\u202e', '\ufeff']
VALUES = [None, True, False, 0, 1, -1, 2 ** 63, 2 ** 64, -2 ** 63, 1.5, 1e300, '', 'x', [], {}, [[]], [{}], {'a': 1}, ['x'] * 2000]


class Maker:
    def __init__(self, document, rng):
        self.doc, self.r = document, rng

    def text(self):
        return self.r.choice(NASTY if self.r.random() < 0.3 else WORDS)

    def value(self, schema, depth=0):
        r = self.r
        if '$ref' in schema:
            schema = self.doc['components']['schemas'][schema['$ref'].rpartition('/')[2]]
        if r.random() < 0.08:
            return r.choice(VALUES)
        kind = schema.get('type')
        if 'enum' in schema:
            return r.choice(schema['enum'])
        if kind == 'integer':
            low, high = schema['minimum'], schema['maximum']
            return r.choice([low, high, min(low + 1, high), r.randint(low, min(high, 100)), high + 1, low - 1])
        if kind == 'boolean':
            return r.random() < 0.5
        if kind == 'array':
            return [self.value(schema['items'], depth + 1) for _ in range(r.choice([0, 1, 1, 2, 5]))]
        if kind == 'object':
            return self.thing(schema, depth)
        return self.text()

    def thing(self, schema, depth):
        out = {}
        for name, field in schema.get('properties', {}).items():
            if name in schema.get('required', ()) and self.r.random() < 0.95 or self.r.random() < 0.25:
                out[name] = self.value(field, depth + 1)
        if self.r.random() < 0.05:
            out[self.text()] = self.r.choice(VALUES)
        return out

    def body(self, schema):
        text = json.dumps(self.value(schema), ensure_ascii=self.r.random() < 0.5).encode('utf-8', 'surrogatepass')
        if self.r.random() < 0.15:  # hurt it
            b = bytearray(text)
            for _ in range(self.r.randint(1, 4)):
                if b:
                    at = self.r.randrange(len(b))
                    self.r.choice([lambda: b.__setitem__(at, self.r.randrange(256)), lambda: b.pop(at), lambda: b.insert(at, 34)])()
            text = bytes(b)
        return text

    def request(self):
        r = self.r
        path = r.choice(list(self.doc['paths']))
        method = r.choice(list(self.doc['paths'][path]))
        operation = self.doc['paths'][path][method]
        url = re.sub(r'\{\w+\}', lambda m: urllib.parse.quote(self.text(), safe=''), path)
        query = [(p['name'], self.value(p['schema'])) for p in operation['parameters'] if p['in'] == 'query' and r.random() < 0.4]
        if r.random() < 0.05:
            query.append((self.text(), self.text()))
        if query:
            url += '?' + '&'.join(f'{urllib.parse.quote(str(k))}={urllib.parse.quote(str(v).lower() if isinstance(v, bool) else str(v)[:3000])}'
                                  for k, v in query)
        if r.random() < 0.05:
            method = r.choice(['get', 'post', 'put', 'delete', 'patch', 'options', 'head'])
        schema = operation.get('requestBody', {}).get('content', {}).get('application/json', {}).get('schema')
        body = self.body(schema) if schema and r.random() < 0.95 else b'{}' if r.random() < 0.1 else None
        headers = {}
        if r.random() < 0.1:
            headers['Idempotency-Key'] = r.choice(['k', 'x' * 4000, "'; --", '\u00e9'.encode().decode('latin-1')])
        if r.random() < 0.03:
            headers['Authorization'] = r.choice(['Bearer', 'Bearer ', 'Bearer bh_' + '0' * 64, 'Basic x', ''])
        return method.upper(), path, url, body, headers


def one(t, maker, names):
    method, pattern, url, body, headers = maker.request()
    who = maker.r.choice(names)
    if pattern == '/v1/events' and method in ('GET', 'HEAD'):
        return
    if 'wait_ms' in url:
        url = re.sub(r'wait_ms=\d+', 'wait_ms=1', url)
    what = f'{method} {url[:300]} {(body or b"")[:300]!r} as {who}'
    answer = t.ask(method, url, body, who, headers)
    try:
        if method == 'HEAD':
            return
        # A route that the escapes in its path made another has another answer.
        route = pattern if answer.status < 300 and method.lower() in maker.doc['paths'][pattern] else None
        if 'text/html' in answer.type:  # the library's own word on what is not HTTP
            assert 400 <= answer.status < 500, answer
            return
        if answer.status < 300 and urllib.parse.unquote(url.partition('?')[0]).count('/') != pattern.count('/'):
            return
        assert answer.status < 500 or answer.status == 503, repr(answer)
        judge_answer(maker.doc, method, route, answer)
        marks = marks_for(who)
        found = marks.search(answer.body.decode('utf-8', 'replace')) if marks and pattern != '/openapi.json' else None
        # What one asked for oneself may be said back, an id also where it was asked for by its number alone.
        asked = urllib.parse.unquote(url) + repr(body)
        asked += ' ' + ' '.join(f'L{x}' for x in re.findall(r'lease=(\d+)', asked))
        assert not found or found.group().strip('"') in asked, f'{found.group()} was shown: {answer!r}'
    except AssertionError as e:
        raise AssertionError(f'seed {SEED}: {what}: {e}') from e


def test_requests_from_the_document():
    names = list(CALLERS)
    for options, n in (((), N), (('--later',), N // 4)):
        with door(*options) as t:
            maker = Maker(t.document(), random.Random(SEED))
            for i in range(n):
                one(t, maker, names)
                if i % 50 == 0:
                    assert t.process.poll() is None, f'seed {SEED}: the daemon died'
            same(t.get('/v1/health').status, 200)


def test_requests_of_any_bytes():
    rng = random.Random(SEED)
    whole = b'POST /v1/jobs?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n{"tenant": "a", "argv": ["x"]}'
    with door('--tight') as t:
        for _ in range(N // 5):
            b = bytearray(whole)
            for _ in range(rng.randint(1, 12)):
                at = rng.randrange(len(b))
                rng.choice([lambda: b.__setitem__(at, rng.randrange(256)), lambda: b.pop(at), lambda: b.insert(at, rng.randrange(256)),
                            lambda: b.extend(b[at:])])()
            s = d.connect(t.path)
            try:
                s.sendall(b)
                s.shutdown(d.socket.SHUT_WR)
                s.settimeout(0.05)
                s.recv(4096)
            except OSError:
                pass
            s.close()
            assert t.process.poll() is None, f'seed {SEED}: the daemon died of {bytes(b)!r}'


if __name__ == '__main__':
    d.tap.main({k: v for k, v in globals().items() if getattr(v, '__module__', None) == '__main__'})
