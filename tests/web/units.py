# SPDX-License-Identifier: Apache-2.0
"""Parts of the console that need no browser, in node.

Usage: units.py WEB-FOLDER GEOMETRY.JS
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import drive


def main(web, geometry):
    try:
        node = drive.node()
    except drive.Lacking as e:
        print(f'1..0 # SKIP {e}')
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for f in [*pathlib.Path(web).glob('*.js'), pathlib.Path(geometry)]:
            shutil.copy(f, folder)
        # As a browser takes them; node asks for it to be said.
        (pathlib.Path(folder) / 'package.json').write_text('{"type": "module"}\n')
        return subprocess.run([node, drive.HERE / 'units.mjs', folder], check=False, timeout=120).returncode


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
