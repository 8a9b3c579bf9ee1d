# SPDX-License-Identifier: Apache-2.0
"""What a browser is driven with: Debian's Chromium and two packages of npm's, which are fetched once for a build folder."""
import os
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
# Debian has the first; Ubuntu's packages of these names only lead to a snap, which does not run headless for root.
BROWSERS = ('chromium-headless-shell', 'chromium')
NODE_MIN = 20


class Lacking(Exception):
    """Something is not on this machine; says what."""


def browser():
    for name in BROWSERS:
        path = shutil.which(name)
        if not path:
            continue
        try:
            done = subprocess.run([path, '--version'], capture_output=True, text=True, check=False, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return path
    raise Lacking('no Chromium that runs (apt-get install chromium-headless-shell; Ubuntu has none outside of snap)')


def node():
    path = shutil.which('node')
    if not path:
        raise Lacking('node is not installed')
    said = subprocess.run([path, '--version'], capture_output=True, text=True, check=True, timeout=30).stdout
    if int(re.match(r'v(\d+)', said).group(1)) < NODE_MIN:
        raise Lacking(f'node {said.strip()} is older than {NODE_MIN}, which playwright-core needs')
    return path


def packages(folder):
    """Where npm's packages are: as the lock file says, below the build folder."""
    to = pathlib.Path(folder)
    mark = to / 'locked'
    lock = (HERE / 'package-lock.json').read_text()
    if mark.exists() and mark.read_text() == lock:
        return str(to)
    npm = shutil.which('npm')
    if not npm:
        raise Lacking('npm is not installed')
    to.mkdir(parents=True, exist_ok=True)
    for name in ('package.json', 'package-lock.json'):
        shutil.copy(HERE / name, to / name)
    try:
        done = subprocess.run([npm, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=1', '--fetch-timeout=20000'], cwd=to,
                              capture_output=True, text=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        raise Lacking('npm did not come to an end: is the registry reachable?') from None
    if done.returncode != 0:
        words = [l for l in done.stderr.splitlines() if 'error' in l.lower()] or ['npm failed']
        raise Lacking(f'npm could not fetch the packages: {words[0].strip()}')
    mark.write_text(lock)
    return str(to)


def environment(folder, **more):
    """For node: raises Lacking where something is not there."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(('ASAN', 'LSAN', 'UBSAN', 'LD_'))}
    return {**env, 'BULKHEAD_CHROMIUM': browser(), 'BULKHEAD_NPM': packages(folder), **more}
