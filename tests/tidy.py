#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the product's sources, one process per core; files whose text, headers and checks did not change since they
last passed are not read again (state in the build folder).

usage: tidy.py --build DIR [FILE...]
"""
import argparse
import concurrent.futures
import glob
import hashlib
import json
import os
import subprocess
import sys


def digest(paths):
    h = hashlib.sha256()
    for path in paths:
        with open(path, 'rb') as f:
            h.update(f.read())
    return h.hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('files', nargs='*')
    options = parser.parse_args()
    if not os.path.exists(os.path.join(options.build, 'compile_commands.json')):
        subprocess.run(['meson', 'setup', options.build, '.'], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(['ninja', '-C', options.build], check=True, stdout=subprocess.DEVNULL)  # generated headers
    with open(os.path.join(options.build, 'compile_commands.json'), encoding='utf-8') as f:
        known = {os.path.normpath(os.path.join(entry['directory'], entry['file'])) for entry in json.load(f)}
    root = os.getcwd()
    files = [os.path.relpath(path, root) for path in sorted(known)]
    files = [path for path in files if path.startswith(('kernels/', 'lib/', 'gst/', 'pipelines/'))]
    if options.files:
        files = [path for path in files if path in options.files]
    headers = sorted(path for top in ('kernels', 'lib', 'gst', 'pipelines')
                     for path in glob.glob(f'{top}/**/*.h*', recursive=True))
    common = digest(['.clang-tidy', *headers])
    state_path = os.path.join(options.build, 'tidy.json')
    try:
        with open(state_path, encoding='utf-8') as f:
            state = json.load(f)
    except (OSError, ValueError):
        state = {}
    todo = [path for path in files if state.get(path) != common + digest([path])]
    print(f'clang-tidy: {len(todo)} of {len(files)} files', file=sys.stderr)

    def check(path):
        run = subprocess.run(['clang-tidy', '--quiet', '-p', options.build, path], capture_output=True, text=True)
        return path, run.returncode, run.stdout

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, status, output in pool.map(check, todo):
            if status == 0:
                state[path] = common + digest([path])
            else:
                bad += 1
                print(output)
    with open(state_path, 'w', encoding='utf-8') as f:
        json.dump(state, f)
    if bad:
        print(f'clang-tidy: {bad} files with findings')
    return 1 if bad else 0


sys.exit(main())
