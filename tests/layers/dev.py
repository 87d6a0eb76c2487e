#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a command of the user may write in the root of ./dev, by what bubblewrap is told.

usage: dev.py SOURCE_ROOT"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

DEV = (pathlib.Path(sys.argv[1]) / 'dev').read_text()


def function(name):
    return re.search(rf'^{name}\(\) {{.*?^}}$', DEV, re.MULTILINE | re.DOTALL).group()


def variables():
    """Those that stand between functions and have a literal value."""
    return '\n'.join(re.findall(r'^(?:EXTRA_FOLDERS|NEIGHBOURS)=\S+', DEV, re.MULTILINE))


def bound(folder, commands):
    """How a folder beside the clone is bound: --bind, --ro-bind or None."""
    with tempfile.TemporaryDirectory() as work:
        stub = pathlib.Path(work) / 'bwrap'
        stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        stub.chmod(0o755)
        script = '\n'.join([
            'set -eu', variables(), function('show_folders'), function('inside'), 'on_debian_13() { false; }',
            f'ROOT=/root PROJECT={folder}/clone CACHE={work}/cache HOME={work}/home', 'cd /', commands, 'inside true'])
        environment = {k: v for k, v in os.environ.items() if k != 'VARTML_DEV_INSIDE'}
        environment['PATH'] = work + os.pathsep + environment['PATH']
        words = subprocess.run(['bash', '-c', script], env=environment, capture_output=True, text=True, check=True).stdout.split()
    for at, word in enumerate(words):
        if word.startswith(('--bind', '--ro-bind')) and words[at + 1] == folder:
            return word
    return None


def check(found, wanted, what):
    if found != wanted:
        sys.exit(f'{what}: found {found}, expected {wanted}')


# Builds and tests write into their clone alone; what the user runs, where the user may.
check(bound('/opt/work', ''), '--ro-bind', 'beside a clone, of a build')
check(bound('/opt/work', 'show_folders vartml compile m.onnx -o /opt/work/out.rai'), '--bind',
      'beside a clone, of a command of the user')
