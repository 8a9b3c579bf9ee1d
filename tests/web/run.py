# SPDX-License-Identifier: Apache-2.0
"""The console in Debian's Chromium, against the real daemon on simulated silicon.

Usage: run.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT NPM-FOLDER
BULKHEAD_SCREENSHOTS=FOLDER keeps a picture of each page there.
"""
import json
import os
import subprocess
import sys
import tempfile

import drive
import scene
from lab import LARGE, Node, Skip


def run(url_of, env):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            n = Node(LARGE, scene.POLICY)
            try:
                at = url_of(n)
                done = subprocess.run([drive.node(), drive.HERE / 'console.mjs'], check=False, timeout=540, env={**env, 'BULKHEAD_SCENE_JSON': json.dumps(at)})
                log = n.log()
                if done.returncode or 'AddressSanitizer' in log or 'runtime error' in log:
                    print('# ' + log[-6000:].replace('\n', '\n# '))
                return 1 if 'AddressSanitizer' in log or 'runtime error' in log else done.returncode
            finally:
                n.stop()
        finally:
            os.chdir('/')


def main():
    try:
        drive.node()
        env = drive.environment(sys.argv[6])
        if os.environ.get('BULKHEAD_SCREENSHOTS'):
            env['BULKHEAD_SCREENSHOTS'] = os.path.abspath(os.environ['BULKHEAD_SCREENSHOTS'])
            os.makedirs(env['BULKHEAD_SCREENSHOTS'], exist_ok=True)
        code = run(scene.everything, env)
    except (drive.Lacking, Skip) as e:
        print(f'ok 1 - console # SKIP {e}\n1..1')
        return 0
    return code


if __name__ == '__main__':
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
