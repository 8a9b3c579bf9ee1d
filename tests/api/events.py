# SPDX-License-Identifier: Apache-2.0
"""Events: who hears what, coming back, being too slow, the end. Usage: events.py TESTD SOURCE-ROOT"""
import json
import time

import door as d
from door import door, same


class Listener:
    def __init__(self, t, who='root', last=None):
        self.c = d.Connection(d.connect(t.path, who))
        self.c.request('GET', '/v1/events', headers={'Last-Event-ID': last} if last else {})
        self.r = self.c.getresponse()
        if self.r.status == 200:
            same(self.r.headers['Content-Type'], 'text/event-stream')
            same(self.r.readline(), b':\n')  # it is listened to from here on
            same(self.r.readline(), b'\n')

    def close(self):
        """The answer has a hold on the socket too."""
        self.c.close()
        self.r.close()

    def next(self):
        """(id, kind, data) of the next event; None: the stream ended."""
        e = {}
        while True:
            line = self.r.readline().decode()
            if not line:
                return None
            if line == '\n':
                if 'data' in e:
                    return e['id'], e['event'], json.loads(e['data'])
                continue
            if not line.startswith(':'):
                k, _, v = line.rstrip('\n').partition(': ')
                e[k] = v


def test_each_hears_what_is_his():
    with door() as t:
        root, mine, other = Listener(t), Listener(t, 'tenant-user'), Listener(t, 'neighbour')
        t.order('changed job 1 a running')
        t.order('changed lease 2 b active')
        t.order('changed gpu 0 - cordoned')
        t.order('changed job 3 a waiting')
        t.order('changed job 4 b waiting')
        same([root.next()[1:] for _ in range(5)],
             [('job', {'id': 'J1', 'tenant': 'a', 'state': 'running'}), ('lease', {'id': 'L2', 'tenant': 'b', 'state': 'active'}),
              ('gpu', {'id': '0', 'state': 'cordoned'}), ('job', {'id': 'J3', 'tenant': 'a', 'state': 'waiting'}),
              ('job', {'id': 'J4', 'tenant': 'b', 'state': 'waiting'})])
        same([mine.next()[2]['id'] for _ in range(2)], ['J1', 'J3'])
        same([other.next()[2]['id'] for _ in range(2)], ['L2', 'J4'])
        same(t.post('/v1/jobs', {'tenant': 'a', 'argv': ['x']}, who='tenant-user').json['id'], 'J7')
        same(mine.next()[2], {'id': 'J7', 'tenant': 'a', 'state': 'waiting'})


def comes_in(t, last):
    """Who has left may be counted a moment longer."""
    found = []

    def is_in():
        found[:] = [Listener(t, last=last)]
        return found[0].r.status == 200
    d.until(is_in)
    return found[0]


def test_coming_back():
    with door('--tight') as t:
        first = Listener(t)
        t.order('changed job 1 a x')
        at = first.next()[0]
        first.close()
        for i in range(2, 5):
            t.order(f'changed job {i} a x')
        back = Listener(t, last=at)
        same([back.next()[2]['id'] for _ in range(3)], ['J2', 'J3', 'J4'])
        back.close()
        for i in range(40):  # more than the ring keeps
            t.order(f'changed job {i + 10} a x')
        for last in (at, 'nonsense', '1-1', f'{at.split("-")[0]}-99999'):
            back = comes_in(t, last)
            same(back.next()[1:], ('reset', {}), last)
            t.order('changed job 77 a x')
            same(back.next()[2]['id'], 'J77')
            back.close()


def test_who_is_too_slow_is_dropped():
    with door('--tight') as t:
        slow = d.connect(t.path)
        slow.setsockopt(d.socket.SOL_SOCKET, d.socket.SO_RCVBUF, 4096)
        slow.sendall(b'GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n')
        deadline = time.monotonic() + 60
        line = 'changed job 1 a ' + 'x' * 20
        d.until(lambda: t.sockets() == 2)  # the one that listens, and this
        while t.sockets() > 1:  # the daemon's side fills up; then it is cut off, or ended because the ring went past it
            assert time.monotonic() < deadline
            for _ in range(10):
                t.order(line)
            time.sleep(0.01)
        same(t.get('/v1/health').status, 200)


def test_too_many_streams():
    with door('--tight') as t:
        mine = [Listener(t, 'tenant-user') for _ in range(3)]
        same([x.r.status for x in mine], [200, 200, 429])
        more = [Listener(t, 'neighbour') for _ in range(2)]
        same([x.r.status for x in more], [200, 429])
        mine[0].c.close()
        t.order('changed job 1 a x')  # by which it is noticed that nobody reads
        t.order('changed job 1 a x')
        for _ in range(100):
            time.sleep(0.05)
            t.order('changed job 1 a x')
            again = Listener(t, 'tenant-user')
            if again.r.status == 200:
                break
        same(again.r.status, 200)


def test_who_is_gone_makes_room():
    """A page that is loaded again and again, while nothing happens on the node."""
    with door('--tight') as t:
        for x in [Listener(t, 'tenant-user') for _ in range(2)]:
            x.c.close()
        for _ in range(40):
            again = Listener(t, 'tenant-user')
            if again.r.status == 200:
                break
            time.sleep(0.05)
        same(again.r.status, 200)


def test_another_policy_ends_streams():
    with door() as t:
        x = Listener(t, 'tenant-user')
        same(t.post('/v1/policy/apply', {'text': 'bulkhead: 1\n'}).status, 200)
        same(x.next(), None)


def test_the_end_is_polite():
    t = d.Door()
    stream = Listener(t)
    log = d.Connection(d.connect(t.path))
    log.request('GET', '/v1/jobs/J5/logs?offset=12&wait_ms=20000')
    idle = d.connect(t.path)
    d.until(lambda: t.sockets() == 4)
    time.sleep(0.3)  # and what they ask for was read
    t.stop()
    same(stream.next(), None)
    same(log.getresponse().status, 200)
    same(idle.recv(1), b'')


if __name__ == '__main__':
    d.tap.main(globals())
