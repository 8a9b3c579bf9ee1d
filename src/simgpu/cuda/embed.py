#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recording as a C string: embed.py RECORDING OUTPUT."""
import sys

text = open(sys.argv[1], encoding='ascii').read()
lines = [f'    "{line}\\n"' for line in text.splitlines()]
assert '"' not in text and '\\' not in text, 'a recording has neither quotes nor backslashes'
with open(sys.argv[2], 'w', encoding='ascii') as out:
    out.write('/* Made from a recording when the library is built. */\n#include <stddef.h>\n'
              'extern const char bh_cu_recording_text[];\nextern const size_t bh_cu_recording_size;\n'
              'const char bh_cu_recording_text[] =\n' + '\n'.join(lines) + ';\n'
              'const size_t bh_cu_recording_size = sizeof(bh_cu_recording_text) - 1;\n')
