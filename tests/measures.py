#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what tells whether the house grows: files and their lines, rooms and the arrows between them, exported symbols.

usage: measures.py [SOURCE_ROOT [BUILD_FOLDER]]   (this tree; symbols are counted where a build is given)
"""
import collections
import os
import re
import statistics
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def room(path):
    """lib/<folder>, or the top folder."""
    parts = path.split('/')
    return '/'.join(parts[:2]) if parts[0] == 'lib' else parts[0]


def sources(root, tops):
    for top in tops:
        for folder, _, files in os.walk(os.path.join(root, top)):
            for file in files:
                if file.endswith(('.h', '.hpp', '.cpp')):
                    path = os.path.relpath(os.path.join(folder, file), root)
                    with open(os.path.join(root, path), encoding='utf-8') as text:
                        yield path, text.read()


def exported(library):
    output = subprocess.run(['nm', '-D', '--defined-only', library], check=True, capture_output=True, text=True)
    return len(output.stdout.splitlines())


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
    build = sys.argv[2] if len(sys.argv) > 2 else None
    files = dict(sources(root, ['lib', 'gst', 'kernels']))
    tests = dict(sources(root, ['tests']))
    lines = {path: text.count('\n') for path, text in files.items()}
    readers = collections.defaultdict(set)
    arrows = set()
    includes = 0
    for path, text in [*files.items(), *tests.items()]:
        for target in INCLUDE.findall(text):
            if target in files:
                readers[target].add(path)
            if path in files and target in files and room(path) != room(target):
                arrows.add((room(path), room(target)))
        if path in files:
            includes += len(re.findall(r'^\s*#\s*include', text, re.MULTILINE))
    headers = [path for path in files if path.endswith('.h') and not path.startswith('lib/include/')]
    alone = [h for h in headers if len(readers[h] - {h[:-2] + '.cpp'}) == 1]
    rows = [
        ('lines of lib, gst and kernels', sum(lines.values())),
        ('lines of tests', sum(text.count('\n') for text in tests.values())),
        ('files', len(files)),
        ('lines of a file, median', int(statistics.median(lines.values()))),
        ('includes per 1,000 lines', round(1000 * includes / sum(lines.values()))),
        ('headers with one reader beside their own .cpp', len(alone)),
        ('folders of lib', len({room(path) for path in files if path.startswith('lib/')})),
        ('arrows between rooms', len(arrows)),
    ]
    if build:
        for name in ('libvartml.so', 'libvartml-runtime.so'):
            rows.append(('exported symbols of ' + name, exported(os.path.join(build, 'lib', name))))
    for name, value in rows:
        print(f'{name:48} {value:>8,}')


main()
