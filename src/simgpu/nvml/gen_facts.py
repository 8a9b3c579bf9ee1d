# SPDX-License-Identifier: Apache-2.0
"""What only the driver's library says of MIG profiles and models, from the catalogue. Usage: gen_facts.py IN OUT"""
import json
import sys

ENGINES = ('ce', 'dec', 'enc', 'jpeg', 'ofa')


def main():
    with open(sys.argv[1], encoding='utf-8') as f:
        models = json.load(f)['models']
    lines = ['/* Written by gen_facts.py from the GPU catalogue. */', '#include "simgpu/nvml/api.h"', '',
             'const struct bh_nv_profile_fact bh_nv_profile_facts[] = {']
    for m in models:
        enums = [p['nvml_profile_enum_value'] for p in m['profiles']]
        if len(set(enums)) != len(enums):
            sys.exit(f"{m['model']}: two profiles have the same number")
        for p in m['profiles']:
            engines = p['engines'] or {}
            row = [p['gi_profile_id'], p['nvml_profile_enum_value']] + [engines.get(e, 0) for e in ENGINES]
            lines.append(f"    {{\"{m['model']}\", {', '.join(map(str, row))}}}, /* {p['name']} */")
    lines += ['};', 'const struct bh_nv_model_fact bh_nv_model_facts[] = {']
    for m in models:
        major, minor = m['cc'].split('.')
        lines.append(f"    {{\"{m['model']}\", {int(major) * 10 + int(minor)}}},")
    lines += ['};'] + [f'const size_t bh_nv_{what}_fact_count = BH_COUNT_OF(bh_nv_{what}_facts);'
                       for what in ('profile', 'model')]
    with open(sys.argv[2], 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')


main()
