# SPDX-License-Identifier: Apache-2.0
"""The daemon over HTTPS: its own certificate or the operator's, tokens, and what is turned away.

Usage: door.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT
"""
import hashlib
import http.client
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import warnings

import lab
from lab import BIN, Answer, has, node, same


def told(n):
    """Address, port and fingerprint, as the last start said them."""
    found = re.findall(r'HTTPS on https://(\S+):(\d+)/, certificate SHA-256 ([0-9A-F:]{95})', n.log())
    assert found, n.log()
    address, port, print_ = found[-1]
    return address.strip('[]'), int(port), print_


def trusting(path='state/https.pem'):
    """Whoever has the certificate alone believes it, and checks the name."""
    text = pathlib.Path(path).read_text()
    end = '-----END CERTIFICATE-----\n'
    return ssl.create_default_context(cadata=text[:text.index(end) + len(end)])


def ask(at, where, token=None, context=None, host=None, method='GET'):
    c = http.client.HTTPSConnection(host or at[0], at[1], context=context or trusting(), timeout=30)
    try:
        c.request(method, where, headers={'Authorization': f'Bearer {token}'} if token else {})
        r = c.getresponse()
        return Answer(r.status, r.headers, r.read())
    finally:
        c.close()


def fails(what, *kinds):
    try:
        what()
    except kinds as e:
        return e
    raise AssertionError('it was not refused')


def token(n, *words):
    done = subprocess.run([BIN, 'token', 'create', *words], capture_output=True, text=True, check=False, timeout=60, env=n.env)
    same(done.returncode, 0, done.stderr)
    return done.stdout.strip()


def turned_away(n, at):
    one = token(n, '--role', 'tenant-user', '--tenant', 'lab', '--subject', 'service:ci')
    same(ask(at, '/v1/status').status, 401, 'no token')
    same(ask(at, '/v1/status', 'bh_' + 'A' * 43).status, 401, 'a token that is none')
    same(ask(at, '/v1/status', one).status, 200)
    same(ask(at, '/v1/policy', one).status, 403, 'a token of a tenant')
    same(ask(at, '/openapi.json').status, 200)
    same(len(n.audit(event='auth.failure', outcome='denied')), 1, 'wrong tokens are recorded')
    # Old versions: the server hangs up on what the client, which would take them, sent.
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers('DEFAULT:@SECLEVEL=0')
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', DeprecationWarning)
            context.minimum_version = context.maximum_version = version
        why = fails(lambda: ask(at, '/v1/status', one, context=context), ssl.SSLError)
        assert any(w in str(why).upper() for w in ('ALERT', 'EOF')), why
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = trusting()
        context.minimum_version = context.maximum_version = version
        same(ask(at, '/v1/status', one, context=context).status, 200)
    # Plain HTTP gets nothing that is HTTP.
    s = socket.create_connection(at[:2], timeout=30)
    s.sendall(b'GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n')
    data = b''
    try:
        while piece := s.recv(4096):
            data += piece
    except ConnectionResetError:
        pass
    s.close()
    assert not data.startswith(b'HTTP'), data
    same(n.get('/v1/health').ok, True)


def test_own_certificate():
    """One is made, holds the names that it is reached by, is kept over a restart, and is believed by who has it."""
    with node(serve=False) as n:
        n.start('--listen', '127.0.0.1:0')
        at = told(n)
        same((at[0], os.stat('state/https.pem').st_mode & 0o7777), ('127.0.0.1', 0o600))
        der = ssl.get_server_certificate(at[:2])
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(der)).hexdigest().upper()
        same(':'.join(digest[i:i + 2] for i in range(0, 64, 2)), at[2], 'the fingerprint that was said')
        secret = token(n, '--role', 'operator', '--subject', 'service:console')
        for host in ('127.0.0.1', 'localhost'):
            r = ask(at, '/v1/status', secret, host=host)
            same((r.status, r.json['gpus']), (200, 8), repr(r))
        fails(lambda: ask(at, '/v1/status', secret, context=ssl.create_default_context()), ssl.SSLCertVerificationError)
        # The same one after a restart, and other work over it.
        n.kill(signal.SIGTERM)
        n.start('--listen', f'127.0.0.1:{at[1]}')
        same(told(n), at)
        same(ask(at, '/v1/status', secret).status, 200)
        turned_away(n, at)


def test_the_operators_certificate():
    """Given as two files; and IPv6, where the machine has it."""
    with node(serve=False) as n:
        n.start('--listen', '127.0.0.1:0')
        text = pathlib.Path('state/https.pem').read_text()
        cut = text.index('-----BEGIN PRIVATE KEY')
        pathlib.Path('cert.pem').write_text(text[:cut])
        pathlib.Path('key.pem').write_text(text[cut:])
        first = told(n)
        n.kill(signal.SIGTERM)
        os.remove('state/https.pem')
        where = '[::1]:0'
        try:
            socket.create_server(('::1', 0), family=socket.AF_INET6).close()
        except OSError:
            where = '127.0.0.1:0'
        n.start('--listen', where, '--cert', 'cert.pem', '--key', 'key.pem')
        at = told(n)
        same((at[2], os.path.exists('state/https.pem')), (first[2], False))
        same(ask(at, '/openapi.json', context=trusting('cert.pem')).status, 200)


def test_what_it_does_not_take():
    with node(serve=False) as n:
        def ends(*words):
            done = subprocess.run([n.program, '--policy', n.policy, *words], capture_output=True, text=True, check=False,
                                  timeout=120, env=n.env)
            with open('daemon.log', 'a', encoding='utf-8') as log:
                log.write(done.stderr)
            return done.returncode, done.stderr
        for words in (('--cert', 'a', '--key', 'b'), ('--listen', '127.0.0.1:1', '--cert', 'a'), ('--listen', '127.0.0.1:1', '--key', 'a')):
            code, err = ends(*words)
            same(code, 2, err)
            has(err, 'go together')
        code, err = ends('--listen', 'example:8443')
        same(code, 2, err)
        has(err, 'no IPv4 or [IPv6] address')
        code, err = ends('--listen', '127.0.0.1:0', '--cert', 'absent', '--key', 'absent')
        same(code, 4, err)
        with socket.create_server(('127.0.0.1', 0)) as taken:
            code, err = ends('--listen', '127.0.0.1:%d' % taken.getsockname()[1])
            same(code, 5, err)


if __name__ == '__main__':
    lab.tap.main(globals())
