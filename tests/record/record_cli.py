# SPDX-License-Identifier: Apache-2.0
"""bulkhead-record from outside: run, show and diff. Ordinary files stand for device files."""
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
from tap import BIN, ROOT, has, main, run, same  # noqa: E402

KEPT = sorted((ROOT / 'data/recordings').glob('*/*.rec'))

# The child opens a stand-in, sets marks and makes two ioctls with the given size of params.
CHILD = '''
import ctypes, fcntl, os, struct, sys
libc = ctypes.CDLL(None)
def mark(name): libc.ioctl(-1, ctypes.c_ulong(0xb01c3ead), name)
def control(fd, command, params):
    try:
        fcntl.ioctl(fd, 0xc020462a, struct.pack('<IIIIQII', 1, 2, command, 0, 0, params, 0))
    except OSError as e:
        assert e.errno == 25
mark(b'start')
fd = os.open('dev/nvidiactl', os.O_RDWR)  # a file is told by what it is, not by how it was named
fd = os.open(os.path.realpath('dev/nvidiactl'), os.O_RDWR)
control(fd, 0x20801303, int(sys.argv[1]))
mark(b'work')
control(fd, 0x2080018e, 8)
sys.exit(int(sys.argv[2]))
'''


def record(name, params=1028, status=0, *more):
    os.makedirs('dev', exist_ok=True)
    pathlib.Path('dev/nvidiactl').touch()
    pathlib.Path('child.py').write_text(CHILD)
    return run('run', '-o', name, '--dev', os.path.realpath('dev'), '--driver', '580.1', '--gpu', 'H200', *more, '--',
               sys.executable, 'child.py', str(params), str(status))


def sealed(lines):
    """A recording made by hand, with its last line."""
    body = ''.join(line + '\n' for line in ['bulkhead-recording 1', 'driver 1', 'gpu G', 'what w', *lines]).encode()
    total = 0x811c9dc5
    for byte in body:
        total = (total ^ byte) * 0x01000193 & 0xffffffff
    return body + b'end %d %08x\n' % (body.count(b'\n'), total)


def test_a_run_is_recorded_and_its_status_handed_on():
    done = record('a.rec', 1028, 7, '--what', 'two controls')
    same(done.rc, 7, done)
    same(done.out + done.err, '')
    text = pathlib.Path('a.rec').read_text()
    has(text, 'bulkhead-recording 1\ndriver 580.1\ngpu H200\nwhat two controls\nmark start\nopen ctl times 2\n')
    has(text, 'ctl control 32 command 20801303 on #0 params 1028 flags 0 errno 25\nmark work\n')
    assert text.splitlines()[-1].startswith('end '), text


def test_what_this_machine_says_of_itself_is_kept():
    pathlib.Path('root/sys/module/nvidia').mkdir(parents=True)
    pathlib.Path('root/sys/module/nvidia/version').write_text('590.44.01\n')
    pathlib.Path('root/proc/driver/nvidia/gpus/0000:01:00.0').mkdir(parents=True)
    pathlib.Path('root/proc/driver/nvidia/gpus/0000:01:00.0/information').write_text(
        'Model: \t\t NVIDIA H200\nIRQ:   \t\t 42\n')
    same(run('run', '-o', 'a.rec', '--', 'true', BULKHEAD_SYSROOT=os.path.realpath('root')).rc, 0)
    has(pathlib.Path('a.rec').read_text(), 'driver 590.44.01\ngpu NVIDIA H200\nwhat true\nend ')
    same(run('run', '-o', 'a.rec', 'true', BULKHEAD_SYSROOT=os.path.realpath('.')).rc, 0)
    has(pathlib.Path('a.rec').read_text(), 'driver -\ngpu -\nwhat true\nend ')


def test_show_counts_by_section():
    record('a.rec')
    done = run('show', 'a.rec')
    same(done.rc, 0, done)
    has(done.out, 'H200, driver 580.1: ')
    has(done.out, 'start: 3 calls\n       2  open ctl\n       1  control 20801303 (1 failed)\n')
    done = run('show', 'a.rec', '--section', 'work')
    same(done.out, 'work: 1 call\n       1  control 2080018e (1 failed)\n')
    done = run('show', 'a.rec', '--section', 'play')
    same((done.rc, done.out, done.err), (4, '', 'bulkhead-record: a.rec: no section "play"\n'))


def test_diff_names_what_changed():
    record('a.rec')
    record('b.rec')
    record('c.rec', 1032)
    done = run('diff', 'a.rec', 'b.rec')
    same((done.rc, done.err), (0, ''))
    assert re.fullmatch(r'the same \d+ lines of calls\n', done.out), done
    done = run('diff', 'a.rec', 'c.rec')
    same((done.rc, done.err), (1, ''))
    same(done.out, 'old: H200, driver 580.1\nnew: H200, driver 580.1\n'
                   'control 20801303: params 1028 -> 1032 bytes (1 call in start)\n')


def test_a_changed_byte_is_refused():
    record('a.rec')
    text = pathlib.Path('a.rec').read_bytes()
    pathlib.Path('b.rec').write_bytes(text.replace(b'params 1028', b'params 1029'))
    for verb in (('show', 'b.rec'), ('diff', 'a.rec', 'b.rec'), ('diff', 'b.rec', 'a.rec')):
        done = run(*verb)
        same((done.rc, done.out), (2, ''), done)
        has(done.err, 'bulkhead-record: b.rec:10: the recording was cut or changed')
        same(done.err.count('\n'), 1)


def test_the_kept_recordings_are_whole():
    assert KEPT, 'no recording is kept'
    for path in KEPT:
        done = run('show', str(path))
        same(done.rc, 0, done)
        has(done.out.splitlines()[0], f'driver {path.parent.name}: ')
        done = run('diff', str(path), str(path))
        same((done.rc, done.err), (0, ''))
        has(done.out, 'the same ')


def test_a_changed_byte_in_a_kept_recording_is_refused():
    text = (KEPT[0]).read_bytes()
    for at in range(0, len(text), len(text) // 97):
        pathlib.Path('a.rec').write_bytes(text[:at] + bytes([text[at] ^ 1]) + text[at + 1:])
        done = run('show', 'a.rec')
        same((done.rc, done.out), (2, ''), at)
        has(done.err, 'bulkhead-record: a.rec:')


def test_diff_sees_a_driver_that_asks_for_more():
    # As another driver might: a larger structure of one command, a class that is new, one that is gone.
    path = next(p for p in KEPT if p.name == 'paths.rec')
    lines = path.read_text().splitlines()[4:-1]
    lines = [line.replace('command 20801303 on #5 params 1028', 'command 20801303 on #5 params 1032') for line in lines]
    lines = [line.replace('class c86f', 'class c96f') for line in lines]
    pathlib.Path('new.rec').write_bytes(sealed(lines))
    done = run('diff', str(path), 'new.rec')
    same((done.rc, done.err), (1, ''))
    has(done.out, 'control 20801303: params 1028 -> 1032 bytes (')
    has(done.out, 'class c86f: no longer used (')
    has(done.out, 'class c96f: new (')


def test_malformed_lines_are_refused_with_their_number():
    pathlib.Path('a.rec').write_bytes(sealed(['open ctl', 'open disk']))
    same(run('show', 'a.rec').err, 'bulkhead-record: a.rec:6: "disk" is no file (ctl, gpu0, uvm ...)\n')
    pathlib.Path('a.rec').write_bytes(b'')
    same(run('show', 'a.rec').err, 'bulkhead-record: a.rec:1: the recording ends before its last line\n')
    pathlib.Path('a.rec').write_bytes(b'\0\xff' * 4096)
    same(run('show', 'a.rec').rc, 2)


def test_mistakes_are_one_line_each():
    pathlib.Path('file').write_text('')
    for args, rc, words in (
            (('show', 'none.rec'), 4, 'none.rec: No such file or directory'),
            (('show',), 2, 'show needs one FILE'),
            (('show', '--loud', 'a'), 2, 'no option --loud here'),
            (('show', 'a', '--section'), 2, '--section needs a value'),
            (('diff', 'a'), 2, 'diff needs OLD and NEW'),
            (('run', 'true'), 2, 'run needs -o FILE and a command'),
            (('run', '-o', 'x'), 2, 'run needs -o FILE and a command'),
            (('run', '-o', 'x', '--', 'no-such-command'), 4, 'starting no-such-command: No such file'),
            (('run', '-o', 'file/x', '--', 'true'), 70, 'file/x: Not a directory')):
        done = run(*args)
        same((done.rc, done.out), (rc, ''), done)
        has(done.err, 'bulkhead-record: ' + words)
        same(done.err.count('\n'), 1, done)
    same(run().rc, 2)
    has(run().err, 'usage: bulkhead-record run')
    same(run('--help').rc, 0)
    has(run('--help').out, 'usage: bulkhead-record run')


def test_an_answer_that_cannot_be_written_is_a_failure():
    record('a.rec')
    with open('/dev/full', 'wb') as full:
        done = subprocess.run([BIN, 'show', 'a.rec'], stdout=full, stderr=subprocess.PIPE, check=False)
    same(done.returncode, 70)
    has(done.stderr.decode(), 'writing the answer: No space left on device')


def test_a_key_at_the_terminal_ends_the_command_and_keeps_the_recording():
    # The whole group is interrupted, as a terminal does it, once the command says that it runs.
    with subprocess.Popen([BIN, 'run', '-o', 'a.rec', '--', 'sh', '-c', 'echo up; exec sleep 60'],
                          stdout=subprocess.PIPE, start_new_session=True) as p:
        same(p.stdout.readline(), b'up\n')
        os.killpg(p.pid, signal.SIGINT)
        same(p.wait(timeout=30), 128 + signal.SIGINT)
    has(pathlib.Path('a.rec').read_text(), 'what sh\nend 4 ')


main(globals())
