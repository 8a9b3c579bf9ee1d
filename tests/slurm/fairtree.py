# SPDX-License-Identifier: Apache-2.0
"""Ranks of the Fair Tree as a real Slurm gives them, and as ours.

Starts munged, MariaDB, slurmdbd and slurmctld for itself: in a scratch folder, on free ports, as whoever runs the test.
Accounts come by `sacctmgr load`. Usage is put into the file in which slurmctld keeps it between two lives, so that large
and odd numbers need no jobs; slurmctld ranks right after it starts, so that no tick of a minute is waited for.

Usage: fairtree.py PATH-TO-FAIRTREE-RANK SOURCE-ROOT
"""
import atexit
import functools
import getpass
import os
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
import tap  # noqa: E402

os.environ['PATH'] += ':/usr/sbin:/sbin'
NEEDED = ('munged', 'mariadbd', 'mariadb', 'mariadb-install-db', 'slurmdbd', 'slurmctld', 'sacctmgr', 'sshare')
STATE_VERSION = 0x2600  # how 22.05 writes its state
PATIENCE = 60


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def wait(what, look, good=bool):
    end = time.monotonic() + PATIENCE
    while True:
        found = look()
        if good(found):
            return found
        assert time.monotonic() < end, f'no {what} after {PATIENCE} s: {found!r}'
        time.sleep(0.1)


class Slurm:
    """One cluster with a database and no nodes that answer."""

    def __init__(self):
        lacking = [n for n in NEEDED if not shutil.which(n)]
        if lacking:
            raise tap.Skip(f'no {", ".join(lacking)}')
        version = subprocess.run(['slurmctld', '-V'], capture_output=True, text=True, check=True).stdout.split()[-1]
        if not version.startswith('22.05.'):
            raise tap.Skip(f'the state file of slurm {version} is not known here, only that of 22.05')
        self.began, self.running, self.ctld = time.monotonic(), [], None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='bh-slurm-'))
        atexit.register(self.stop)
        for name in ('db', 'etc', 'log', 'run', 'spool', 'state'):
            (self.folder / name).mkdir()
        self.configure()
        self.start_database()
        self.start('slurmdbd', '-D')
        added = wait('slurmdbd', lambda: self.call('sacctmgr', '-i', 'add', 'cluster', 'bh'), lambda r: r.rc == 0)
        tap.has(added.out, 'Adding Cluster')

    def configure(self):
        etc, run, log, me = self.folder / 'etc', self.folder / 'run', self.folder / 'log', getpass.getuser()
        self.env = {**tap.environment(), 'SLURM_CONF': str(etc / 'slurm.conf')}
        self.db_port, dbd, ctld = free_port(), free_port(), free_port()
        key = etc / 'munge.key'
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.write(etc / 'slurmdbd.conf', AuthType='auth/munge', AuthInfo=f'socket={run}/munge', DbdHost='localhost', DbdPort=dbd,
                   SlurmUser=me, StorageType='accounting_storage/mysql', StorageHost='127.0.0.1', StoragePort=self.db_port,
                   StorageUser='slurm', StoragePass='x', StorageLoc='slurm_acct_db', LogFile=log / 'slurmdbd',
                   PidFile=run / 'slurmdbd.pid')
        self.write(etc / 'slurm.conf', ClusterName='bh', SlurmctldHost='localhost(127.0.0.1)', SlurmctldPort=ctld, SlurmUser=me,
                   AuthType='auth/munge', AuthInfo=f'socket={run}/munge', StateSaveLocation=self.folder / 'state',
                   SlurmctldPidFile=run / 'slurmctld.pid', SlurmctldLogFile=log / 'slurmctld',
                   SlurmdSpoolDir=self.folder / 'spool', ProctrackType='proctrack/linuxproc', TaskPlugin='task/none',
                   MpiDefault='none', AccountingStorageType='accounting_storage/slurmdbd',
                   AccountingStorageHost='localhost', AccountingStoragePort=dbd, AccountingStoragePass=run / 'munge',
                   PriorityType='priority/multifactor', PriorityCalcPeriod=1, PriorityDecayHalfLife=0,
                   PriorityUsageResetPeriod='NONE', PriorityWeightFairshare=100000)
        with open(etc / 'slurm.conf', 'a') as f:
            f.write('NodeName=n1 NodeAddr=127.0.0.1 CPUs=1\nPartitionName=p Nodes=n1 Default=YES\n')

    def write(self, path, **lines):
        path.touch(mode=0o600)
        path.write_text(''.join(f'{k}={v}\n' for k, v in lines.items()))

    def start(self, *command):
        with open(self.folder / 'log' / f'{command[0]}.out', 'ab') as out:
            p = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.running.append(p)
        return p

    def call(self, *command):
        return tap.Result(subprocess.run(command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE,
                                         check=False))

    def start_database(self):
        run, me, db = self.folder / 'run', getpass.getuser(), f'--datadir={self.folder}/db'
        self.start('munged', '--foreground', '--force', f'--socket={run}/munge', f'--key-file={self.folder}/etc/munge.key',
                   f'--pid-file={run}/munged.pid', f'--log-file={self.folder}/log/munged', f'--seed-file={run}/munged.seed')
        made = self.call('mariadb-install-db', '--no-defaults', f'--user={me}', db, '--skip-test-db',
                         '--auth-root-authentication-method=normal')
        tap.same(made.rc, 0, repr(made))
        self.start('mariadbd', '--no-defaults', f'--user={me}', db, f'--socket={run}/db', f'--port={self.db_port}',
                   '--bind-address=127.0.0.1', f'--pid-file={run}/db.pid', '--innodb_flush_log_at_trx_commit=0')
        sql = ("create database slurm_acct_db; create user slurm@'127.0.0.1' identified by 'x';"
               "grant all on slurm_acct_db.* to slurm@'127.0.0.1'")
        wait('database', lambda: self.call('mariadb', '-uroot', '-S', f'{run}/db', '-e', 'select 1'), lambda r: r.rc == 0)
        made = self.call('mariadb', '-uroot', '-S', f'{run}/db', '-e', sql)
        tap.same(made.rc, 0, repr(made))

    def load(self, tree):
        """The tree becomes the cluster's only one. What slurmctld knew before is forgotten."""
        if self.ctld:
            self.end(self.ctld)
        for name in (self.folder / 'state').iterdir():
            name.unlink()
        file = self.folder / 'tree.cfg'
        file.write_text(''.join(tree.lines()))
        done = self.call('sacctmgr', '-i', 'load', str(file), 'clean')
        tap.same(done.rc, 0, repr(done))
        # slurmctld reads its list in this order, and equal accounts are visited in it.
        listed = self.call('sacctmgr', '-nP', 'show', 'assoc', 'format=lft,id,account,parentname,user,fairshare').out
        rows = sorted((int(r[0]), *r[1:]) for r in (line.split('|') for line in listed.splitlines()))
        ids = {row[2:5:2]: int(row[1]) for row in rows}
        packed = struct.pack('>HQ', STATE_VERSION, int(time.time()))
        for user, account, usage in tree.usages():
            text = f'{usage}.000000'.encode() + b'\0'
            packed += struct.pack('>II', ids[account, user], len(text)) + text + struct.pack('>II', 0, 0)
        (self.folder / 'state' / 'assoc_usage').write_bytes(packed)
        (self.folder / 'state' / 'priority_last_decay_ran').write_bytes(struct.pack('>QQ', 0, int(time.time()) - 60))
        self.ctld = self.start('slurmctld', '-D')
        return rows

    def ranked(self):
        """{(account, user): FairShare}, when all of it is there."""
        out = self.call('sshare', '-anP', '-o', 'Account,User,RawUsage,FairShare').out
        rows = [line.strip().split('|') for line in out.splitlines()]
        got = {(r[0].strip(), r[1]): (int(r[2]), float(r[3] or 0)) for r in rows if len(r) == 4 and r[1]}
        return got if got and max(f for _, f in got.values()) > 0 else None

    def end(self, process):
        process.terminate()
        process.wait(PATIENCE)
        self.running.remove(process)

    def stop(self):
        for process in reversed(self.running[:]):
            try:
                self.end(process)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        print(f'# slurm ran for {time.monotonic() - self.began:.0f} s')


class Tree:
    """nodes: [(kind, parent's index or None, name, shares, usage)]; a user has one account only."""

    def __init__(self):
        self.nodes = []

    def account(self, parent, shares):
        return self.add('account', parent, shares, 0)

    def user(self, parent, shares, usage):
        return self.add('user', parent, shares, usage)

    def add(self, kind, parent, shares, usage):
        n = len(self.nodes)
        self.nodes.append((kind, parent, f'{kind[0]}{n}', shares, usage))
        return n

    def name(self, i):
        return 'root' if i is None else self.nodes[i][2]

    def lines(self):
        yield "Cluster - 'bh':Fairshare=1\n"
        for i in (None, *range(len(self.nodes))):
            if i is not None and self.nodes[i][0] == 'user':
                continue
            yield f"Parent - '{self.name(i)}'\n"
            if i is None:
                yield "User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1\n"
            for kind, parent, name, shares, _ in self.nodes:
                if parent == i and kind == 'user':
                    yield f"User - '{name}':DefaultAccount='{self.name(i)}':Fairshare={shares}\n"
                elif parent == i:
                    yield f"Account - '{name}':Description='{name}':Organization='x':Fairshare={shares}\n"

    def usages(self):
        for kind, parent, name, _, usage in self.nodes:
            if kind == 'user':
                yield name, self.name(parent), usage


def ours(rows, tree, rule):
    """{(account, user): rank} of the tree as slurm lists it."""
    usage = {(account, user): n for user, account, n in tree.usages()}
    number, text, users = {'root': 0}, [], []
    for _, _, account, parent, user, shares in rows:
        if account == 'root' and not user:
            continue
        if user:
            text.append(f'user {number[account]} {shares} {usage.get((account, user), 0)}')
            users.append((len(text), account, user))
        else:
            text.append(f'account {number[parent]} {shares} 0')
            number[account] = len(text)
    done = tap.run(rule, stdin='\n'.join(text) + '\n')
    tap.same(done.rc, 0, repr(done))
    ranks = [int(n) for n in done.out.split()]
    tap.same(len(ranks), len(text))
    return {(account, user): ranks[line - 1] for line, account, user in users}


@functools.cache
def the_slurm():
    """Started once. A failure is kept as well: the next test need not wait for it again."""
    try:
        return Slurm()
    except (AssertionError, tap.Skip) as e:
        return e


def compare(tree):
    """Ranks as slurm has them; those by the documented rule too."""
    slurm, began = the_slurm(), time.monotonic()
    if isinstance(slurm, Exception):
        raise slurm
    rows = slurm.load(tree)
    got = wait('ranks', slurm.ranked)
    mine, documented = (ours(rows, tree, rule) for rule in ('slurm', 'documented'))
    tap.same(sorted(got), sorted(mine), 'who is ranked')
    for user, account, usage in tree.usages():
        tap.same(got[account, user][0], usage, f'usage of {user}')
    wrong = [f'{key}: slurm {fs}, ours {mine[key]} of {len(mine)}' for key, (_, fs) in got.items()
             if abs(fs - mine[key] / len(mine)) > 1e-6]
    assert not wrong, f'{len(wrong)} ranks differ\n' + '\n'.join(wrong[:20])
    print(f'# {len(mine)} users in {len(rows) - len(mine)} accounts, {len(set(mine.values()))} ranks, '
          f'{sum(mine[k] != documented[k] for k in mine)} not as documented, {time.monotonic() - began:.1f} s')
    return mine, documented


def grow(rng, accounts, users, share, usage):
    tree, inner = Tree(), [None]
    for _ in range(accounts):
        inner.append(tree.account(rng.choice(inner), share(rng)))
    for _ in range(users):
        tree.user(rng.choice(inner), share(rng), usage(rng))
    return tree


def twins(rng, tree):
    """Accounts that have and used the same, by different users."""
    inner = [None] + [i for i, node in enumerate(tree.nodes) if node[0] == 'account']
    for _ in range(8):
        parent, shares = rng.choice(inner), rng.choice([1, 2])
        for _ in range(rng.choice([2, 3])):
            account, part = tree.account(parent, shares), rng.randrange(1, 32)
            for usage in (part, 64 - part):
                tree.user(account, 1, usage << 20)
    return tree


def test_a_large_tree():
    """Primes as shares and large usages: hardly a tie."""
    mine, documented = compare(grow(random.Random(1), 60, 240, lambda r: r.randrange(1, 1000), lambda r: r.randrange(10**10)))
    tap.same(mine, documented, 'without ties the two rules are one')


def test_trees_full_of_ties():
    """Few different values, no shares, no usage, Fairshare=parent for users and for accounts, accounts without users."""
    differ = 0
    for seed in (2, 3):
        rng = random.Random(seed)
        tree = grow(rng, 40, 100, lambda r: r.choice([0, 1, 1, 1, 2, 4, 'parent']), lambda r: r.choice([0, 0, 1, 2, 4]) << 20)
        mine, documented = compare(twins(rng, tree))
        differ += mine != documented
    assert differ, 'the switch makes no difference'


def test_accounts_alike():
    """By the documents these two are merged; by the code the order of the list decides."""
    tree = Tree()
    x, y = tree.account(None, 1), tree.account(None, 1)
    for parent, usage in ((x, 40), (x, 60), (y, 10), (y, 90)):
        tree.user(parent, 1, usage)
    mine, documented = compare(tree)
    assert mine != documented, mine


if __name__ == '__main__':
    tap.main(globals())
