#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a page of docs that is made from the code with what the code says now.

usage: generated.py [--update] PAGE.md COMMAND...      COMMAND prints the page
"""
import difflib
import subprocess
import sys


def main():
    arguments = sys.argv[1:]
    update = arguments[0] == '--update'
    page, *command = arguments[update:]
    text = subprocess.run(command, check=True, capture_output=True, encoding='utf-8').stdout
    if update:
        with open(page, 'w', encoding='utf-8') as f:
            f.write(text)
        return 0
    with open(page, encoding='utf-8') as f:
        committed = f.read()
    if text == committed:
        return 0
    sys.stdout.writelines(difflib.unified_diff(committed.splitlines(True), text.splitlines(True), page, 'the code'))
    print(f'\n{page} is not what the code says; write it anew: ./dev run ninja -C build pages')
    return 1


sys.exit(main())
