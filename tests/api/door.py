# SPDX-License-Identifier: Apache-2.0
"""What the tests of the API share: the test daemon, callers by user id or token, and a judge of answers by their schema."""
import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402
from tap import BIN as TESTD, Skip, has, same, write  # noqa: E402,F401

POLICY = '''\
bulkhead: 1
tenants:
  - {name: a, class: research, quota: {model: fairshare, gpus: 2, max: 3}, costCenter: cc-a}
  - {name: b, class: research, quota: {model: fairshare, gpus: 1}}
pools:
  - name: shared
    match: {model: H100}
    mechanism: timeslice
    replicas: 2
    tenants: [a, b]
roles:
  - {subject: "user:2000", role: operator}
  - {subject: "user:2001", role: tenant-admin, tenant: a}
  - {subject: "user:2002", role: tenant-user, tenant: a}
  - {subject: "user:2003", role: operator, tenant: a}
  - {subject: "user:2004", role: auditor}
  - {subject: "user:2005", role: viewer}
  - {subject: "user:2006", role: viewer, tenant: a}
  - {subject: "user:2008", role: viewer, tenant: a}
  - {subject: "user:2008", role: viewer, tenant: b}
  - {subject: "user:2009", role: tenant-admin, tenant: b}
  - {subject: "group:3000", role: tenant-user, tenant: a}
'''
FLEET = '''\
bulkhead: 1
nodes:
  - name: testd
    gpus:
      - {index: 0, model: H100}
      - {index: 1, model: H100}
      - {index: 2, model: H100}
'''

# Who asks, by user id (and group): the policy above says what each may.
CALLERS = {
    'root': (0, 0), 'operator': (2000, 2000), 'tenant-admin': (2001, 2001), 'tenant-user': (2002, 2002),
    'operator-of-a': (2003, 2003), 'auditor': (2004, 2004), 'viewer': (2005, 2005), 'viewer-of-a': (2006, 2006),
    'neighbour': (2009, 2009), 'by-group': (2010, 3000), 'nobody': (2007, 2007),
}


def connect(path, who='root', timeout=30):
    """A connection that the kernel says is of that user."""
    uid, gid = CALLERS[who] if isinstance(who, str) else who
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    old = os.getgroups()
    try:
        if uid:
            os.setgroups([])
            os.setegid(gid)
            os.seteuid(uid)
        s.connect(path)
    finally:
        if uid:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(old)
    return s


class Connection(http.client.HTTPConnection):
    def __init__(self, sock):
        super().__init__('bulkhead')
        self.sock = sock


class Answer:
    def __init__(self, r, body):
        self.status, self.body, self.headers = r.status, body, r.headers
        self.type = r.headers.get('Content-Type', '')

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json['error']['code']

    def __repr__(self):
        return f'{self.status} {self.type} {self.body[:2000]!r}'


class Door:
    """The test daemon, while it runs."""

    def __init__(self, *options):
        if os.geteuid() != 0:
            raise Skip('needs root, to be several users')
        os.chmod('.', 0o755)
        folder = tempfile.mkdtemp(dir=os.getcwd())
        os.chmod(folder, 0o755)
        write(f'{folder}/policy.yaml', POLICY)
        write(f'{folder}/fleet.yaml', FLEET)
        self.path = f'{folder}/api.sock'
        self.process = subprocess.Popen([TESTD, folder, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=tap.environment(), text=True)
        line = self.process.stdout.readline().split()
        assert line and line[0] == 'ready', self.process.communicate()
        self.port = int(line[1])

    def ask(self, method, path, body=None, who='root', headers=None, sock=None):
        own = sock is None
        s = connect(self.path, who) if own else sock
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        lines = [f'{method} {path} HTTP/1.1', 'Host: bulkhead', *(f'{k}: {v}' for k, v in (headers or {}).items())]
        if body is not None:
            lines.append(f'Content-Length: {len(body)}')
        try:
            with contextlib.suppress(BrokenPipeError):  # refused before all of it was sent: the answer is there
                s.sendall('\r\n'.join(lines).encode('latin-1') + b'\r\n\r\n' + (body or b''))
            r = http.client.HTTPResponse(s, method=method)
            r.begin()
            return Answer(r, r.read())
        finally:
            if own:
                s.close()

    def get(self, path, who='root', **kw):
        return self.ask('GET', path, who=who, **kw)

    def post(self, path, body=None, who='root', **kw):
        return self.ask('POST', path, {} if body is None else body, who=who, **kw)

    def https(self, method, path, token=None, body=None, version=None):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if version:
            context.minimum_version = context.maximum_version = version
        c = http.client.HTTPSConnection('127.0.0.1', self.port, context=context, timeout=30)
        try:
            c.request(method, path, body=json.dumps(body) if body is not None else None,
                      headers={'Authorization': f'Bearer {token}'} if token else {})
            r = c.getresponse()
            return Answer(r, r.read())
        finally:
            c.close()

    def order(self, line):
        """Until it was read: it is carried out before anything that is asked for after it."""
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        until(lambda: fcntl.ioctl(self.process.stdin, termios.FIONREAD, bytes(4)) == bytes(4))

    def sockets(self):
        """How many it has open: the one that listens, and one for each caller."""
        return sum('socket' in target(f) for f in pathlib.Path(f'/proc/{self.process.pid}/fd').iterdir())

    def document(self):
        return self.get('/openapi.json').json

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=60)
        same((self.process.returncode, out, err), (0, '', ''), 'the end of the test daemon')


def target(link):
    with contextlib.suppress(FileNotFoundError):
        return os.readlink(link)
    return ''


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, 'waited in vain'
        time.sleep(0.002)


@contextlib.contextmanager
def door(*options):
    d = Door(*options)
    try:
        yield d
    except BaseException:
        d.process.kill()
        print('# ' + d.process.communicate()[1].replace('\n', '\n# '))
        raise
    d.stop()


# ---- schemas: as much of JSON Schema as the document uses ----

TYPES = {'string': str, 'integer': int, 'boolean': bool, 'array': list, 'object': dict, 'null': type(None)}


def judge(value, schema, document, where='$'):
    """Raises where the value is not of the schema."""
    if '$ref' in schema:
        name = schema['$ref'].rpartition('/')[2]
        return judge(value, document['components']['schemas'][name], document, f'{where}<{name}>')
    if 'anyOf' in schema:
        for one in schema['anyOf']:
            try:
                return judge(value, one, document, where)
            except AssertionError as e:
                last = e
        raise last
    known = {'type', 'properties', 'required', 'additionalProperties', 'items', 'pattern', 'enum', 'minimum', 'maximum',
             'minLength', 'maxLength', 'maxItems', 'description'}
    assert set(schema) <= known, f'{where}: the judge does not know {set(schema) - known}'
    types = schema.get('type', list(TYPES))
    types = types if isinstance(types, list) else [types]
    assert any(type(value) is TYPES[t] for t in types), f'{where}: {value!r} is not {types}'
    if isinstance(value, str) and 'pattern' in schema:
        assert re.search(schema['pattern'], value), f'{where}: {value!r}'
    if isinstance(value, list):
        for i, item in enumerate(value):
            judge(item, schema.get('items', {}), document, f'{where}[{i}]')
    if isinstance(value, dict) and 'properties' in schema:
        missing = set(schema.get('required', ())) - set(value)
        assert not missing, f'{where}: {missing} missing'
        for k, v in value.items():
            assert k in schema['properties'], f'{where}: {k} is not in the schema'
            judge(v, schema['properties'][k], document, f'{where}.{k}')
    return None


def judge_answer(document, method, path, answer):
    """The answer is one of those that the document lists for the operation (path: its pattern; None: no route)."""
    if path is None or answer.status >= 300:
        judge(answer.json, {'$ref': '#/components/schemas/Problem'}, document)
        return
    listed = document['paths'][path][method.lower()]['responses']
    content = listed[str(answer.status)]['content']
    same([answer.type], list(content), f'{method} {path}')
    if answer.type == 'application/json':
        judge(answer.json, content[answer.type].get('schema', {}), document)
