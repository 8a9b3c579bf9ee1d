# SPDX-License-Identifier: Apache-2.0
"""In the guest: runs what the plan says, one after the other, and reports each line of it.

Usage: inside.py PLAN, a file with {"NAME": [WORD...]}; the report goes to the second serial port as `NAME<tab>line`, then
`NAME<tab><tab>exit status`, and at the end `<tab>end`.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

with open(sys.argv[1], encoding='utf-8') as f:
    plan = json.load(f)
# One processor for all: two who take turns would wait for this machine to run the other one's each time. The second one is there for
# what is told to keep to one.
os.sched_setaffinity(0, {0})
report = os.open('/dev/ttyS1', os.O_WRONLY | os.O_NOCTTY)


def say(*words):
    os.write(report, ('\t'.join(words) + '\n').encode())


say('', 'kernel', os.uname().release)
say('', 'cgroups', pathlib.Path('/sys/fs/cgroup/cgroup.controllers').read_text().strip())
for name, words in plan.items():
    began = time.monotonic()
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace', cwd='/scratch') as p:
        for line in p.stdout:
            say(name, line.rstrip('\n').replace('\t', ' ') or ' ')
    say(name, '', str(p.returncode), f'{time.monotonic() - began:.1f}')
say('', 'end')
