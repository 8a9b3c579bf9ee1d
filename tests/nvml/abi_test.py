# SPDX-License-Identifier: Apache-2.0
"""The layouts asserted in src/gpu/abi/nvml.h are those of data/nvml_abi.json. Usage: abi_test.py SOURCE-ROOT"""
import json
import pathlib
import re
import sys

SIZE = re.compile(r'^BH_NVML_SIZE\((\w+), (struct \w+), (\d+)\);$', re.M)
AT = re.compile(r'^BH_NVML_AT\((\w+)\.(\w+), (struct \w+), \w+, (\d+)\);$', re.M)
VERSION = re.compile(r'^BH_NVML_VERSION\((\w+), \w+, (0x[0-9a-f]+), (struct \w+)\);$', re.M)


def check(header, facts):
    bad = []
    sizes = SIZE.findall(header)
    for vendor, _, size in sizes:
        fact = facts['structs'].get(vendor, {}).get('size')
        if fact != int(size):
            bad.append(f'{vendor}: the header says {size} bytes, the facts {fact}')
    for vendor, field, _, off in AT.findall(header):
        fact = facts['structs'].get(vendor, {}).get('fields', {}).get(field, {}).get('off')
        if fact != int(off):
            bad.append(f'{vendor}.{field}: the header says offset {off}, the facts {fact}')
    # A version word carries the struct's size, so it is compared with the facts too.
    versions = VERSION.findall(header)
    for vendor, word, _ in versions:
        fact = facts['version_constants'].get(vendor)
        if fact != word:
            bad.append(f'{vendor}: the header says {word}, the facts {fact}')
    asserted = {ours for _, ours, _ in sizes} | {ours for _, _, ours in versions}
    for ours in re.findall(r'^(struct \w+) \{', header, re.M):
        if ours not in asserted:
            bad.append(f'{ours}: no line compares its size with the facts')
    return bad


def main():
    root = pathlib.Path(sys.argv[1])
    header = (root / 'src/gpu/abi/nvml.h').read_text()
    facts = json.loads((root / 'data/nvml_abi.json').read_text())
    plants = [('a wrong size', ('nvmlMemory_v2_t, struct nvml_memory_v2, 40', 'nvmlMemory_v2_t, struct nvml_memory_v2, 48')),
              ('a wrong offset', ('pciDeviceId, struct nvml_pci_info, device_id, 28', 'pciDeviceId, struct nvml_pci_info, device_id, 32')),
              ('a wrong version word', ('0x03000028', '0x03000030')),
              ('a struct nobody compares', ('BH_NVML_SIZE(nvmlUtilization_t', 'BH_NVML_NOT(nvmlUtilization_t'))]
    bad = check(header, facts)
    for line in bad:
        print(f'# {line}')
    results = [('the header has the layouts of the facts', not bad)]
    for name, (old, new) in plants:
        assert old in header, old
        results.append((f'{name} is found', bool(check(header.replace(old, new), facts))))
    for i, (name, ok) in enumerate(results, 1):
        print(f'{"ok" if ok else "not ok"} {i} - {name}')
    print(f'1..{len(results)}')
    sys.exit(not all(ok for _, ok in results))


main()
