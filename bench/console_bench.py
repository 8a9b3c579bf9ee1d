# SPDX-License-Identifier: Apache-2.0
"""The console with 10,000 GPUs in a real browser: from data to painted page, and frames while it is scrolled.

Usage: console_bench.py BULKHEAD SOURCE-ROOT BULKHEADD CHECK-STATE BULKHEAD-AUDIT NPM-FOLDER
The daemon is real and serves the files; the list of GPUs is made up, as no node has so many. BULKHEAD_BENCH_GPUS changes how many.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(sys.argv[2]).resolve() / 'tests' / 'web'))
import drive  # noqa: E402
import scene  # noqa: E402
from lab import LARGE, Node, Skip  # noqa: E402

SKIPPED = 77


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            env = drive.environment(sys.argv[6])
            n = Node(LARGE, scene.POLICY)
            try:
                at = {'url': scene.serve(n), 'operator': scene.token(n, 'operator')}
                return subprocess.run([drive.node(), drive.HERE / 'bench.mjs'], check=False, timeout=540, env={**env, 'BULKHEAD_SCENE_JSON': json.dumps(at)}).returncode
            finally:
                n.stop()
        except (drive.Lacking, Skip) as e:
            print(f'skipped: {e}')
            return SKIPPED
        finally:
            os.chdir('/')


if __name__ == '__main__':
    sys.exit(main())
