#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Facts to constant tables: gen-data.py GPU_CATALOG ADVISORIES FABRIC_PARTITIONS CLASSES OUT.c

Writes the tables that src/core/model/tables.h declares. The same input gives the same bytes.
Amounts become integers here (MiB, tenths of a CVSS point, days since 1970), so the core needs
no fractions. A fact that contradicts itself stops the build.

Left out: `extra_rules` of the advisories (they have no bulletin, day or score to judge by), and
columns that only matter on a live node (engines, minors, NVML enums), which the driver reports there.
"""
import calendar
import datetime
import decimal
import json
import re
import sys

EPOCH = datetime.date(1970, 1, 1)
PROFILE_NAME = re.compile(r'^(\d+)g\.(\d+)gb(\+me\.all|\+me|-me|)(\+gfx|)$')
MEDIA = {'': 'BH_MEDIA_PLAIN', '+me': 'BH_MEDIA_ME', '+me.all': 'BH_MEDIA_ME_ALL', '-me': 'BH_MEDIA_NO_ME'}
VERSION = re.compile(r'^\d+(\.\d+){0,5}$')


def need(condition, what):
    if not condition:
        sys.exit(f'gen-data: {what}')


def text(s):
    """A C string literal, or NULL."""
    if s is None:
        return 'NULL'
    need(s.isascii() and s.isprintable(), f'not plain text: {s!r}')
    return '"' + s.replace('\\', '\\\\').replace('"', '\\"') + '"'


def boolean(b):
    return 'true' if b else 'false'


def folded(name):
    """As catalog.c folds a name it is asked for: lower case, one space for a run of spaces, dashes, underscores."""
    return ' '.join(re.split(r'[ _-]+', name.lower()))


def tenths(score):
    value = score * 10
    need(value == int(value), f'a score with more than one decimal: {score}')
    return int(value)


def day_of(iso):
    return (datetime.date.fromisoformat(iso) - EPOCH).days


def last_day_of_month(month):
    """`2026-06` -> its last day; anything else says that no date was published."""
    if not re.fullmatch(r'\d{4}-\d\d', month):
        return 0
    y, m = int(month[:4]), int(month[5:])
    return (datetime.date(y, m, calendar.monthrange(y, m)[1]) - EPOCH).days


def table(kind, name, rows):
    """One array and its length."""
    need(rows, f'{name} has no rows')
    body = ''.join(f'    {{{row}}},\n' for row in rows)
    return f'const {kind} {name}[] = {{\n{body}}};\n'


def counted(kind, name, count_name, rows):
    return table(kind, name, rows) + f'const size_t {count_name} = {len(rows)};\n'


# ---- GPU models ----

def profile_row(model, p):
    name = PROFILE_NAME.match(p['name'])
    where = f"{model['model']} {p['name']}"
    need(name, f'{where}: not a profile name')
    starts, size = p['placement_starts'], p['placement_size']
    need(int(name[1]) == p['compute_slices'] >= 1, f'{where}: name and compute slices disagree')
    need(size >= 1 and starts == sorted(set(starts)) and starts[-1] + size <= model['memory_slices'],
         f'{where}: a placement outside the grid')
    return ', '.join([
        f".name = {text(p['name'])}", f".memory_mib = {p['mem_mib'] or 0}", f".sm = {p['sm'] or 0}",
        f".gi_profile_id = {p['gi_profile_id']}", f".compute_slices = {p['compute_slices']}",
        f".memory_slices = {p['memory_slices']}", f".max_instances = {p['max_instances']}",
        f'.placement_size = {size}', f'.n_starts = {len(starts)}',
        f".starts = {{{', '.join(map(str, starts))}}}", f'.media = {MEDIA[name[3]]}',
        f'.gfx = {boolean(name[4])}',
    ])


def catalog(data):
    out, rows = [], []
    for i, m in enumerate(data['models']):
        profiles = 'NULL'
        need(bool(m['profiles']) == bool(m['memory_slices']), f"{m['model']}: slices without profiles or the reverse")
        if m['profiles']:
            profiles = f'profiles_{i}'
            out.append('static ' + table('struct bh_mig_profile', profiles, [profile_row(m, p) for p in m['profiles']]))
        rows.append(', '.join([
            f".name = {text(m['model'])}", f".arch = {text(m['arch'])}", f".memory_mib = {(m['mem_gb'] or 0) * 1024}",
            f".total_sm = {m['total_sm'] or 0}", f".mig_sm = {m['mig_sm'] or 0}",
            f".compute_slices = {m['compute_slices']}", f".memory_slices = {m['memory_slices']}",
            f".n_profiles = {len(m['profiles'])}", f'.profiles = {profiles}',
        ]))
    names = [(folded(m['model']), i) for i, m in enumerate(data['models'])]
    names += [(folded(a), i) for i, m in enumerate(data['models']) for a in m.get('aliases', [])]
    need(len({n for n, _ in names}) == len(names), 'two GPU models share a name')
    out.append(counted('struct bh_gpu_model', 'bh_gpu_models', 'bh_gpu_model_count', rows))
    out.append(counted('struct bh_model_name', 'bh_model_names', 'bh_model_name_count',
                       [f'{text(n)}, {i}' for n, i in names]))
    ids = sorted((int(d, 16), i) for i, m in enumerate(data['models']) for d in m.get('pci_device_ids', []))
    need(len({d for d, _ in ids}) == len(ids) and ids[-1][0] <= 0xffff, 'a PCI device id twice or out of range')
    out.append(counted('struct bh_model_device', 'bh_model_devices', 'bh_model_device_count',
                       [f'{d:#06x}, {i}' for d, i in ids]))
    return out


# ---- advisories ----

def version_fields(version):
    need(VERSION.match(version), f'not a plain version: {version}')
    return [int(f) for f in version.split('.')]


def advisory_row(rule, cves, published):
    where = f"{rule['component']} {rule['branch'] or ''} in bulletin {rule['bulletin']}"
    fields = version_fields(rule['fixed'])
    need(rule['branch'] is None or int(rule['branch']) == fields[0] > 0, f'{where}: fixed on another branch')
    names = sorted(rule['cves'])
    worst = max(names, key=lambda c: (cves[c]['cvss'], [-ord(ch) for ch in c]))
    need(cves[worst]['cvss'] == rule['max_cvss'], f'{where}: the scores disagree')
    advisory = ', '.join([
        f".component = {text(rule['component'])}", f".branch = {text(rule['branch'])}",
        f".fixed = {text(rule['fixed'])}", f".cves = {text(' '.join(names))}", f'.worst_cve = {text(worst)}',
        f".cvss_tenths = {tenths(rule['max_cvss'])}", f".bulletin = {rule['bulletin']}", f'.published_day = {published}',
    ])
    version = f".field = {{{', '.join(map(str, fields))}}}, .n = {len(fields)}"
    return f".advisory = {{{advisory}}}, .fixed = {{{version}}}, .branch = {rule['branch'] or 0}"


def advisories(data):
    published = {b['bulletin']: day_of(b['initial']) for b in data['bulletins']}
    rules = sorted(data['rules'], key=lambda r: (r['component'], int(r['branch'] or 0), published[r['bulletin']],
                                                 r['bulletin'], version_fields(r['fixed']), sorted(r['cves'])))
    rows = [advisory_row(r, data['cves'], published[r['bulletin']]) for r in rules]
    groups = []
    for component in sorted({r['component'] for r in rules}):
        at = [i for i, r in enumerate(rules) if r['component'] == component]
        need(len({rules[i]['branch'] is None for i in at}) == 1, f'{component}: some rules have a branch, some none')
        groups.append(f"{text(component)}, {at[0]}, {len(at)}, {boolean(component in data['platform_bound'])}")
    branches = [f"{int(b['branch'])}, {last_day_of_month(b['eol'])}" for b in data['driver_branches']]
    return [
        counted('struct bh_advisory_row', 'bh_advisory_rows', 'bh_advisory_row_count', rows),
        counted('struct bh_advisory_group', 'bh_advisory_groups', 'bh_advisory_group_count', groups),
        counted('struct bh_driver_branch', 'bh_driver_branches', 'bh_driver_branch_count', branches),
    ]


# ---- fabric ----

def partition_row(platform, p):
    need(p['gpus'] == sorted(set(p['gpus'])) and p['gpus'][0] >= 1 and p['gpus'][-1] <= 32,
         f"{platform['platform']}: partition {p['partition_id']} has a module id twice or out of range")
    modules = sum(1 << (g - 1) for g in p['gpus'])
    return f".id = {p['partition_id']}, .nvlinks_per_gpu = {p['nvlinks_per_gpu']}, .modules = {modules:#x}"


def fabric(data):
    out, rows, arches = [], [], []
    for i, platform in enumerate(data['platforms']):
        parts = platform['partitions']
        need(len({tuple(p['gpus']) for p in parts}) == len(parts), f"{platform['platform']}: the same set twice")
        out.append('static ' + table('struct bh_fabric_partition', f'partitions_{i}',
                                     [partition_row(platform, p) for p in parts]))
        for arch in [platform['gpu_arch']] + platform.get('gpu_arch_also', []):
            arches.append(arch)
            rows.append(f".name = {text(platform['platform'])}, .arch = {text(arch)}, .n = {len(parts)}, "
                        f'.partitions = partitions_{i}')
    need(len(set(arches)) == len(arches), 'two fabric platforms claim one architecture')
    out.append(counted('struct bh_fabric_platform', 'bh_fabric_platforms', 'bh_fabric_platform_count', rows))
    return out


# ---- tenant classes ----

def word_set(prefix, words):
    """Bits of enum values; a word that the language does not have does not compile."""
    return ' | '.join(f"1U << BH_{prefix}_{w.upper().replace('-', '_')}" for w in words) or '0'


def classes(data):
    rows = [', '.join([
        f".name = {text(c['name'])}", f".mechanisms = {word_set('MECH', c['mechanisms'])}",
        f".tiers = {word_set('TIER', c['tiers'])}", f".quotas = {word_set('QUOTA', c['quotas'])}",
        f".slos = {word_set('SLO', c['slos'])}", '.built_in = true',
    ]) for c in data['classes']]
    return [counted('struct bh_class', 'bh_builtin_classes', 'bh_builtin_class_count', rows)]


def main(argv):
    if len(argv) != 6:
        sys.exit(__doc__)
    out = ['/* SPDX-License-Identifier: Apache-2.0 */\n/* Written by tools/gen-data.py from data/: do not edit. */\n'
           '#include "core/model/tables.h"\n']
    for path, convert in zip(argv[1:5], (catalog, advisories, fabric, classes)):
        with open(path, encoding='utf-8') as f:
            out += convert(json.load(f, parse_float=decimal.Decimal))
    with open(argv[5], 'w', encoding='utf-8') as f:
        f.write('\n'.join(out))


if __name__ == '__main__':
    main(sys.argv)
