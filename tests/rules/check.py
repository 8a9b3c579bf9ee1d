#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every rule's failing and passing fixture gives exactly the findings it says, at exactly those lines.

check.py BULKHEAD DATA_DIR SOURCES_DIR

A fixture ends in `#: expect RULE SEVERITY SUBJECT LINE [fleet|waived]` lines (or `#: expect nothing`).
All findings are compared, not only those of the fixture's own rule: a rule that begins to speak
where it should not is noticed here. The first line names the requirement the rule comes from.
SOURCES_DIR holds the mistakes of the texts the rules were drawn from, in the same form.
"""
import glob
import json
import os
import re
import subprocess
import sys

NOW = "2026-11-15"


def lint(tool, path, fleet):
    args = [tool, "lint", path, "--now", NOW, "-o", "json"] + (["--fleet", fleet] if fleet else [])
    run = subprocess.run(args, capture_output=True, text=True, timeout=60)
    if run.returncode == 2:
        raise AssertionError("does not parse: " + run.stderr.strip())
    out = json.loads(run.stdout)
    errors = sum(1 for f in out["findings"] if f["severity"] == "error" and not f["waived"])
    if run.returncode != (1 if errors else 0):
        raise AssertionError(f"exit status {run.returncode} with {errors} errors")
    return out


def expected(path):
    with open(path, encoding="utf-8") as f:
        lines = [line[len("#: expect ") :].split() for line in f if line.startswith("#: expect ")]
    if not lines:
        raise AssertionError("says nothing about what to expect")
    return sorted(tuple(words) for words in lines if words != ["nothing"])


def found(report, path):
    rows = []
    for f in report["findings"]:
        row = (f["rule"], f["severity"], f["subject"], str(f["line"]))
        if f["waived"]:
            row += ("waived",)
        elif os.path.basename(f["file"]) != os.path.basename(path):
            row += ("fleet",)
        rows.append(row)
    return sorted(rows)


def names_requirement(path, rule):
    with open(path, encoding="utf-8") as f:
        first = f.readline()
    named = re.match(r"# ((?:[RC]\d+ ?)+): ", first)
    if not named:
        raise AssertionError("does not name its requirement in the first line")
    wanted = [r for r in rule["refs"] if r[0] in "RC"]
    if wanted and not set(named.group(1).split()) & set(wanted):
        raise AssertionError(f"names {named.group(1)}, the rule comes from {' '.join(wanted)}")


def check_file(tool, path):
    fleet = path.replace(".yaml", ".fleet.yaml")
    report = lint(tool, path, fleet if os.path.exists(fleet) else None)
    want, have = expected(path), found(report, path)
    if want != have:
        raise AssertionError(f"expected {want}, found {have}")
    return report


def check_rule(tool, path, rule, which):
    names_requirement(path, rule)
    report = check_file(tool, path)
    speaks = any(f["rule"] == rule["id"] and not f["waived"] for f in report["findings"])
    if speaks != (which == "fail"):
        raise AssertionError("the rule is silent" if which == "fail" else "the rule speaks")
    if which == "pass" and any(u["rule"] == rule["id"] for u in report["unchecked"]):
        raise AssertionError("the rule was not checked at all")


def main():
    tool, data, sources = sys.argv[1:]
    with open(os.path.join(data, "rules.json"), encoding="utf-8") as f:
        rules = [r for r in json.load(f) if r["needs"] != "live"]
    fixtures = set(glob.glob(os.path.join(data, "rules", "*.yaml")))
    tests = []
    for rule in rules:
        for which in ("fail", "pass"):
            path = os.path.join(data, "rules", f"{rule['id']}.{which}.yaml")
            fixtures -= {path, path.replace(".yaml", ".fleet.yaml")}
            tests.append((f"{rule['id']} {which}", lambda p=path, r=rule, w=which: check_rule(tool, p, r, w)))
    for path in sorted(glob.glob(os.path.join(sources, "*.yaml"))):
        if not path.endswith(".fleet.yaml"):
            tests.append((os.path.basename(path), lambda p=path: check_file(tool, p)))

    def classes_pass():
        root = os.path.dirname(os.path.abspath(data))
        for fleet in (None, os.path.join(root, "examples", "classes-fleet.yaml")):
            report = lint(tool, os.path.join(root, "examples", "classes.yaml"), fleet)
            loud = [(f["rule"], f["subject"]) for f in report["findings"] if f["severity"] != "info"]
            if loud or not report["findings"]:
                raise AssertionError(f"the four classes together give {loud or 'nothing at all'}")

    tests.append(("the four classes together pass", classes_pass))

    def no_strays():
        if fixtures:
            raise AssertionError(f"fixtures of no rule: {sorted(fixtures)}")

    tests.append(("every fixture belongs to a rule", no_strays))
    print(f"1..{len(tests)}")
    bad = 0
    for n, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {n} - {name}")
        except (AssertionError, OSError, ValueError, subprocess.TimeoutExpired) as e:
            bad = 1
            print(f"not ok {n} - {name}\n# {e}")
    return bad


sys.exit(main())
