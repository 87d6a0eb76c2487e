#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every option that a page writes behind `vartml COMMAND`, in its text or in a block that is not executed, is one of that command.

usage: options.py vartml PAGE...
"""
import functools
import re
import subprocess
import sys


@functools.cache
def help_of(program, command):
    done = subprocess.run([program, command, '--help'], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def commands(text):
    """What stands between backquotes, and the lines of blocks of text."""
    blocks = re.findall(r'^```text\n(.*?)^```', text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace('\\\n', ' ').splitlines()]
    return re.findall(r'`([^`]+)`', re.sub(r'^```.*?^```', '', text, flags=re.MULTILINE | re.DOTALL)) + lines


def main():
    program, pages, failed = sys.argv[1], sys.argv[2:], 0
    for page in pages:
        with open(page, encoding='utf-8') as f:
            text = f.read()
        for code in commands(text):
            match = re.match(r'(?:\./dev run )?vartml ([a-z]+)\b(.*)', code, re.DOTALL)
            if not match or match[1] == 'help':
                continue
            known = help_of(program, match[1])
            if known is None:
                print(f'{page}: `{code}`: there is no such command')
                failed += 1
                continue
            for option in re.findall(r'(?<=\s)(--[a-z][a-z0-9-]*)', match[2]):
                if not re.search(re.escape(option) + r'(?![a-z0-9-])', known):
                    print(f'{page}: `{code}`: vartml {match[1]} --help has no {option}')
                    failed += 1
    return 1 if failed else 0


sys.exit(main())
