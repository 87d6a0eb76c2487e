#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the table of docs/compatibility.md: its verdicts, the counts at its top, and that each test that it names is there.

usage: compatibility.py PAGE.md
"""
import collections
import os
import re
import sys


def main():
    page = sys.argv[1]
    with open(page, encoding='utf-8') as f:
        text = f.read()
    faults = []
    counts = collections.Counter()
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
        if len(cells) != 4 or cells[2] in ('verdict', '---'):
            if line.startswith('|') and len(cells) != 4:
                faults.append(f'{len(cells)} cells instead of 4: {line}')
            continue
        verdict = cells[2].split(':')[0]
        counts[verdict] += 1
        if verdict not in ('same', 'differs', 'missing') or (verdict != 'same' and ': ' not in cells[2]):
            faults.append(f'{cells[0]}: the verdict is {cells[2]}, expected same, differs: or missing: with a reason')
        test = re.fullmatch(r'\[(.+)\]\((\.\./tests/\1)\)', cells[3])
        if test and not os.path.exists(os.path.join(os.path.dirname(page), test[2])):
            faults.append(f'{cells[0]}: {test[2]} is not there')
        if not test and (cells[3] != '–' or verdict == 'same'):
            faults.append(f'{cells[0]}: the test is {cells[3]}, expected a link to a file of tests')
    said = re.search(r'(\d+) statements, (\d+) same,\s+(\d+) differ, (\d+) missing', text)
    found = (sum(counts.values()), counts['same'], counts['differs'], counts['missing'])
    if not said or tuple(int(n) for n in said.groups()) != found:
        faults.append('the rows are %d statements, %d same, %d differ, %d missing' % found)
    print('\n'.join(faults) or 'good')
    return 1 if faults else 0


sys.exit(main())
