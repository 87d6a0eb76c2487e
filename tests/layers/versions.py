#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The version stands in meson.build; whoever else must write it down writes the same.

usage: versions.py SOURCE_ROOT VERSION
"""
import pathlib
import re
import sys

ROOT, VERSION = pathlib.Path(sys.argv[1]), sys.argv[2]
# File, what stands around its first version, and how many numbers of it.
PLACES = [
    ('CHANGELOG.md', r'^## (\S+)$', 3),
    ('CITATION.cff', r'^version: (\S+)$', 3),
    ('packaging/debian/changelog', r'^gst-vartml \((\S+)\)', 3),
    ('packaging/org.gst_vartml.vartml.metainfo.xml', r'<release version="([^"]*)"', 3),
    ('SECURITY.md', r'^\| (\S+) \| yes \|$', 2),
]

faults = 0
for name, pattern, numbers in PLACES:
    found = re.search(pattern, (ROOT / name).read_text(encoding='utf-8'), re.MULTILINE)
    wanted = '.'.join(VERSION.split('.')[:numbers])
    if not found or found[1] != wanted:
        print(f'{name}: the first version is {found[1] if found else "missing"}, that of meson.build is {wanted}')
        faults += 1
sys.exit(1 if faults else 0)
