#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The models of docs/models.md find what their row says, where files with their checksums are at hand.

usage: models.py PAGE vartml SHARED      SHARED holds models/*/model.onnx and models/images/*.jpg
"""
import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile

# By the name that a row gives a picture; the first for "the same" and for what anybody has.
PICTURES = {'dog.jpg': 'yolox_dog.jpg', '1.jpg': 'ultraface_1.jpg', 'goldfish.jpg': 'goldfish.jpg', 'Test.jpg': 'selfie_test.jpg',
            'pexels-ricardo-utsumi-1314554.jpg': 'palm1.jpg', 'a street': 'yolox_dog.jpg'}
SKIPPED = 77


def rows(page):
    with open(page, encoding='utf-8') as f:
        table = re.search(r'<!-- models -->\n(.*?)<!-- end -->', f.read(), re.DOTALL)[1]
    for line in table.splitlines()[2:]:
        yield [cell.strip() for cell in line.strip('|').split('|')]


def main():
    page, program, shared = sys.argv[1:4]
    files = {}
    for path in glob.glob(os.path.join(shared, 'models', '*', 'model.onnx')):
        with open(path, 'rb') as f:
            files[hashlib.sha256(f.read()).hexdigest()] = path
    if not files:
        print(f'skipped: no models in {shared}')
        return SKIPPED
    failed, picture = 0, None
    with tempfile.TemporaryDirectory() as folder:
        for name, _task, _source, licence, checksum, options, finds in rows(page):
            where, wanted = finds.rsplit(': ', 1)
            picture = next((PICTURES[key] for key in PICTURES if where.strip('`').endswith(key)), picture)
            model = files.get(checksum.strip('`'))
            if not model or not licence:
                print(f'{name}: no file with its checksum')
                failed += 1
                continue
            done = subprocess.run([program, 'detect', model, os.path.join(shared, 'models', 'images', picture), '-o',
                                   os.path.join(folder, 'found.jpg'), *options.replace('`', '').split()],
                                  capture_output=True, text=True, check=False,
                                  env={**os.environ, 'XDG_CACHE_HOME': os.path.join(folder, 'cache')})
            words = re.findall(r'`([^`]+)`', wanted)
            missing = [word for word in words if word not in done.stdout]
            if count := re.match(r'(\d+) `(\w+)`', wanted):
                if f'{count[2]} {count[1]};' not in done.stderr:
                    missing.append(f'{count[1]} times {count[2]}')
            if done.returncode != 0 or missing:
                print(f'{name}: ended with {done.returncode}, lacks {missing}\n{done.stdout}{done.stderr}')
                failed += 1
    return 1 if failed else 0


sys.exit(main())
