#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a page of docs that is made from the code, or a part of it, with what the code says now.

usage: generated.py [--update] PAGE.md COMMAND...              COMMAND prints the page
       generated.py [--update] --part NAME PAGE.md COMMAND...  what is between <!-- NAME --> and <!-- end -->
"""
import argparse
import difflib
import re
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--update', action='store_true')
    parser.add_argument('--part')
    parser.add_argument('page')
    parser.add_argument('command', nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    page = arguments.page
    text = subprocess.run(arguments.command, check=True, capture_output=True, encoding='utf-8').stdout
    with open(page, encoding='utf-8') as f:
        committed = f.read()
    if arguments.part:
        mark = f'<!-- {arguments.part} -->\n'
        place = re.compile(re.escape(mark) + '.*?<!-- end -->', re.DOTALL)
        if not place.search(committed):
            print(f'{page} has no {mark}')
            return 1
        text = place.sub(lambda _: f'{mark}{text}<!-- end -->', committed, count=1)
    if arguments.update:
        with open(page, 'w', encoding='utf-8') as f:
            f.write(text)
        return 0
    if text == committed:
        return 0
    sys.stdout.writelines(difflib.unified_diff(committed.splitlines(True), text.splitlines(True), page, 'the code'))
    print(f'\n{page} is not what the code says; write it anew: ./dev run ninja -C build pages')
    return 1


sys.exit(main())
