#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turn src/store/schema/NNN_name.sql into a C table of migrations.

gen-schema.py OUT.c FILE...

The files are numbered from 001 without a gap: number N brings a store from version N-1 to N.
"""
import pathlib
import re
import sys


def main():
    out, files = sys.argv[1], sorted(map(pathlib.Path, sys.argv[2:]), key=lambda p: p.name)
    rows = []
    for want, path in enumerate(files, 1):
        m = re.fullmatch(r'(\d{3})_([a-z0-9_]+)\.sql', path.name)
        if not m or int(m.group(1)) != want:
            sys.exit(f'{path}: a schema file must be named {want:03}_name.sql')
        lines = path.read_text().splitlines()
        text = '\n'.join('        "' + line.replace('\\', '\\\\').replace('"', '\\"') + '\\n"' for line in lines)
        rows.append(f'    {{"{m.group(2)}",\n{text}}},')
    pathlib.Path(out).write_text(
        '/* Generated from src/store/schema by tools/gen-schema.py. */\n#include "store/db_schema.h"\n\n'
        'const struct bh_migration bh_migrations[] = {\n' + '\n'.join(rows) + '\n};\n'
        f'const unsigned bh_migrations_n = {len(rows)};\n')


if __name__ == '__main__':
    main()
