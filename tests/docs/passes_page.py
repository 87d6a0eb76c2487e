#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints docs/passes.md: the passes in the order of the table, each with the comment of its declaration.

usage: passes_page.py lib/compile
"""
import os
import re
import sys

HEAD = '''# Compiler passes

<!-- Written by tests/docs/passes_page.py; `./dev run ninja -C build pages` writes it anew. -->

A pass is a function of the graph alone. The compiler first decides on the imported graph what runs where, then runs this
table over each partition; the level is `optimize_level` of a configuration, {default} where there is none. The table runs
again, at most {rounds} times, while anything changes: one rewrite often makes room for another. `--config` with `keep_outputs`
leaves the graph before and after in `<partition>/0/debug/`. How to add one: [contributing.md](contributing.md).
'''


def read(*parts):
    with open(os.path.join(*parts), encoding='utf-8') as f:
        return f.read()


def paragraphs(lines):
    """The comment as Markdown: prose is filled again, indented lines are code."""
    out = []
    for line in lines:
        kind = 'code' if line.startswith('  ') else 'prose'
        if not out or out[-1][0] != kind:
            out.append((kind, []))
        out[-1][1].append(line)
    texts = []
    for kind, part in out:
        if kind == 'code':
            texts.append('\n'.join(['```text', *(line[2:] for line in part), '```']))
        else:
            texts.append(' '.join(part).replace('<', r'\<'))
    return texts


def main():
    folder = sys.argv[1]
    table = read(folder, 'pass_table.cpp')
    header = read(folder, 'passes', 'passes.h')
    rows = re.findall(r'^ +\{"(\w+)", (\w+), (\d)\},$', table, re.MULTILINE)
    comments = {name: [line[3:] for line in comment.splitlines()] for comment, name in
                re.findall(r'((?:^//.*\n)+)Result<PassStats> (\w+)\(graph::Graph& graph\);', header, re.MULTILINE)}
    functions = [function for _, function, _ in rows]
    if not rows or sorted(functions) != sorted(comments):
        sys.exit(f'the table has {sorted(functions)}, passes.h declares {sorted(comments)}')
    rounds = re.search(r'max_rounds = (\d+)', table).group(1)
    default = re.search(r'int optimize_level = (\d);', read(folder, 'compile.h')).group(1)
    print(HEAD.format(rounds=rounds, default=default))
    print('| order | pass | from level |\n| --- | --- | --- |')
    for i, (name, _, level) in enumerate(rows, 1):
        print(f'| {i} | [{name}](#{name}) | {level} |')
    for name, function, _ in rows:
        print(f'\n## {name}\n')
        print('\n\n'.join(paragraphs(comments[function])))


main()
