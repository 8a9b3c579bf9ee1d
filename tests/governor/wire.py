# SPDX-License-Identifier: Apache-2.0
"""The numbers of wire/govern.h, for tests that speak to a governor themselves."""
import pathlib
import re
import sys

TEXT = re.sub(r'/\*.*?\*/', '', pathlib.Path(sys.argv[2], 'src/wire/govern.h').read_text(encoding='ascii'), flags=re.S)


def number(name):
    """Of an enumerator, without its prefix."""
    value = 0
    for word in re.search(r'enum \w* ?{([^}]*\bBH_GOVERN_%s\b[^}]*)}' % name, TEXT).group(1).split(','):
        key, _, given = (part.strip() for part in word.partition('='))
        value = int(given) if given else value
        if key == f'BH_GOVERN_{name}':
            return value
        value += 1
    raise KeyError(name)


VERSION = number('WIRE_VERSION')
