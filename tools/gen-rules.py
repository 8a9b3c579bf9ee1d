#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turn data/rules.json and the fixtures data/rules/BH-NNN.{fail,pass}.yaml into a C table.

gen-rules.py RULES.json FIXTURE_DIR OUT.c OUT.d

The fixtures are the examples that `bulkhead explain` prints: what is shown is what is tested.
Lines that start with `#:` are for the test suite and are left out.
"""
import json
import os
import sys

SEVERITY = {"error": "BH_SEV_ERROR", "warning": "BH_SEV_WARNING", "info": "BH_SEV_INFO"}
NEEDS = {"policy": "BH_NEEDS_POLICY", "fleet": "BH_NEEDS_FLEET", "live": "BH_NEEDS_LIVE"}


def quote(text):
    if text is None:
        return "NULL"
    out = []
    for ch in text:
        if ch == "\n":
            out.append("\\n")
        elif ch in '"\\':
            out.append("\\" + ch)
        else:
            out.append(ch)
    return '"' + "".join(out) + '"'


def quote_lines(text):
    if text is None:
        return "NULL"
    return "\n        ".join(quote(line) for line in text.splitlines(keepends=True)) or '""'


def words(items):
    return "(const char *const[]){" + ", ".join([quote(i) for i in items] + ["NULL"]) + "}"


def shown(path, used):
    used.append(path)
    with open(path, encoding="utf-8") as f:
        return "".join(line for line in f if not line.startswith("#:"))


def example(folder, rule, which, used):
    path = os.path.join(folder, f"{rule['id']}.{which}.yaml")
    if rule["needs"] == "live":
        return None
    if not os.path.exists(path):
        sys.exit(f"{path}: every rule that files can answer needs a failing and a passing fixture")
    text = shown(path, used)
    fleet = path.replace(".yaml", ".fleet.yaml")
    return text + "\n" + shown(fleet, used) if os.path.exists(fleet) else text


def row(rule, folder, used):
    symbol = "NULL" if rule["needs"] == "live" else "bh_check_" + rule["id"][3:]
    return f"""    {{
        .id = {quote(rule['id'])},
        .severity = {SEVERITY[rule['severity']]},
        .needs = {NEEDS[rule['needs']]},
        .unwaivable = {str(rule.get('unwaivable', False)).lower()},
        .extended = {str(rule.get('extended', False)).lower()},
        .title = {quote(rule['title'])},
        .condition = {quote(rule['condition'])},
        .message = {quote(rule['message'])},
        .why = {quote(rule['why'])},
        .fix = {quote(rule['fix'])},
        .fix_kubernetes = {quote(rule.get('fix_kubernetes', rule['fix']))},
        .fix_slurm = {quote(rule.get('fix_slurm', rule['fix']))},
        .unchecked = {quote(rule.get('unchecked'))},
        .refs = {words(rule['refs'] + rule['controls'])},
        .controls = {words(rule['controls'])},
        .fail_example = {quote_lines(example(folder, rule, 'fail', used))},
        .pass_example = {quote_lines(example(folder, rule, 'pass', used))},
        .check = {symbol},
    }},
"""


def main():
    source, folder, out, dep = sys.argv[1:]
    with open(source, encoding="utf-8") as f:
        rules = json.load(f)
    ids = [r["id"] for r in rules]
    if ids != sorted(set(ids)):
        sys.exit(f"{source}: rule ids must be unique and in order")
    used = []
    rows = "".join(row(r, folder, used) for r in rules)
    checks = "".join(f"void bh_check_{r['id'][3:]}(struct bh_lint *l);\n" for r in rules if r["needs"] != "live")
    with open(out, "w", encoding="utf-8") as f:
        f.write("/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by tools/gen-rules.py. */\n")
        f.write('#include "core/policy/rule.h"\n\n')
        f.write(checks + "\nextern const struct bh_rule bh_rules[];\nextern const size_t bh_rules_n;\n\n")
        f.write("const struct bh_rule bh_rules[] = {\n" + rows + "};\n")
        f.write("const size_t bh_rules_n = sizeof(bh_rules) / sizeof(bh_rules[0]);\n")
    with open(dep, "w", encoding="utf-8") as f:
        f.write(f"{out}: {source} {' '.join(used)}\n")


main()
