#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executes every `sh` block of a Markdown file, in order, in one temporary folder that holds what a fresh clone has of models and
pipelines, with the built tools on the path. Lines that begin with ./dev run elsewhere (.ci/run) and are left out. What they leave behind must be what git ignores in a clone.

usage: blocks.py FILE.md
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile


def main():
    with open(sys.argv[1], encoding='utf-8') as f:
        blocks = re.findall(r'^```sh\n(.*?)^```', f.read(), re.MULTILINE | re.DOTALL)
    here = tempfile.mkdtemp(prefix='vartml-docs-')
    try:
        work = os.path.join(here, 'project')
        os.mkdir(work)
        for name in ('pipelines',):
            os.symlink(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', name), os.path.join(work, name))
        for block in blocks:
            lines = [line for line in block.splitlines() if not line.startswith('./dev')]
            if not any(line.strip() for line in lines):
                continue
            if '../' in block:
                print(f'needs something beside the clone:\n{block}')
                return 1
            print('\n'.join(lines), flush=True)
            status = subprocess.run(['sh', '-e'], input='\n'.join(lines), text=True, cwd=work).returncode
            if status != 0:
                print(f'ended with {status}')
                return 1
        left = set(os.listdir(work)) - {'pipelines', 'out', 'vartml-cache'}
        if left:
            print(f'left in the clone, where git does not ignore them: {", ".join(sorted(left))}; write below out/')
            return 1
    finally:
        shutil.rmtree(here)
    return 0


sys.exit(main())
