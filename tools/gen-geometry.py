# SPDX-License-Identifier: Apache-2.0
"""Writes the console's table of MIG geometry from the catalogue of GPUs.

Usage: gen-geometry.py CATALOG OUTPUT
"""
import json
import pathlib
import sys


def main(catalog, output):
    models = json.loads(pathlib.Path(catalog).read_text())['models']
    rows = {m['model']: [m['compute_slices'], m['memory_slices']] for m in models}
    pathlib.Path(output).write_text(
        '// SPDX-License-Identifier: Apache-2.0\n// Written by tools/gen-geometry.py: [compute, memory], the units that MIG divides a model into.\n'
        f'export const GEOMETRY = {json.dumps(rows)};\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
