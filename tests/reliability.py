#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what was measured into the table of docs/reliability.md.

usage: reliability.py FOLDER PAGE
  FOLDER  holds the figures that tests and commands left there (tests/support/figures.py)

A row whose figures are not in FOLDER stays as it is, with the state it is of.
"""
import datetime
import glob
import json
import os
import re
import subprocess
import sys

BEGIN, END = '<!-- figures -->\n', '<!-- end -->\n'
HEAD = '| Measured by | Gave | State |\n|---|---|---|\n'


def plural(count, noun):
    return f'{count:,} {noun}' if count == 1 else f'{count:,} {noun}s'


def fuzz(all_of):
    f = all_of['fuzz']
    return f'{plural(len(f["targets"]), "target")}, {f["seconds"]} s each: {plural(sum(f["targets"].values()), "input")}, ' + \
        (f'fell: {", ".join(f["fell"])}' if f['fell'] else 'none fell')


def graphs(all_of):
    f = all_of['fuzz-graphs']
    return f'{plural(f["graphs"], "graph")} from seed {f["seed"]}: {f["failed"]} differ, {f["rounding"]} were decided by rounding, ' \
        f'{f["refused"]} were refused'


def commands(all_of, prefix, words):
    return '; '.join(f'{name[len(prefix):]}: {words(f)}' for name, f in sorted(all_of.items()) if name.startswith(prefix))


def allocations(all_of):
    return commands(all_of, 'allocations-', lambda f: f'{f["tried"]:,} of {f["all"]:,}, {f["refused"]:,} refused, '
                    f'{f["foreign"]} ended by code of others, {f["faults"]} faults')


def kills(all_of):
    return commands(all_of, 'kills-', lambda f: f'{f["ended"]:,} of {f["moments"]:,} came before the end') + '; nothing half-written'


def soak(all_of):
    f = all_of['soak']
    steps = sum(f['steps'].values())
    slopes = [f'{name} {f[key]["per_hour"]:+.2f} (±{f[key]["standard_error"]:.2f})'
              for name, key in (('MB resident', 'resident_mb'), ('MB of heap in use', 'heap_mb'), ('descriptors', 'descriptors'), ('threads', 'threads'))]
    return f'{f["minutes"]:g} minutes, {plural(steps, "step")}; in an hour, with the standard error: {", ".join(slopes)}; ' \
        f'{f["left_mb"]:.1f} MB of heap kept when all had stopped; {plural(len(f["faults"]), "fault")}'


def mutants(all_of):
    f = all_of['mutants']
    return (f'{f["killed"]} of {plural(f["tried"], "change")} noticed (seed {f["seed"]}); {f["equal"]} more change no result')


# A row: what measures it, the figures that it takes, and how they are told.
ROWS = [
    ('./dev fuzz', r'fuzz', fuzz),
    ('./dev fuzz-graphs', r'fuzz-graphs', graphs),
    ('test `allocations`', r'allocations-.*', allocations),
    ('test `kills`', r'kills-.*', kills),
    ('./dev soak', r'soak', soak),
    ('./dev mutate', r'mutants', mutants),
]


def state():
    """Commit, day and processor."""
    def git(*words):
        return subprocess.run(['git', *words], capture_output=True, text=True, check=False).stdout.strip()

    changed = git('status', '--porcelain', '--untracked-files=no')
    with open('/proc/cpuinfo', encoding='utf-8') as f:
        cpu = dict(re.split(r'\s*: ', line.strip(), maxsplit=1) for line in f if ': ' in line)
    name = f'{cpu.get("model name", "unknown")}, family {cpu.get("cpu family", "?")} model {cpu.get("model", "?")}'
    return f'{git("rev-parse", "--short=8", "HEAD") or "no commit"}{" and changes" if changed else ""}, {datetime.date.today()}, ' \
        f'{os.cpu_count()} x {name}'


def main():
    folder, page = sys.argv[1:]
    all_of = {}
    for path in glob.glob(os.path.join(folder, '*.json')):
        with open(path, encoding='utf-8') as f:
            all_of[os.path.basename(path)[:-5]] = json.load(f)
    with open(page, encoding='utf-8') as f:
        before, rest = f.read().split(BEGIN)
    table, after = rest.split(END)
    old = {row.split('|')[1].strip(): row for row in table.splitlines() if row.startswith('|')}
    here, rows = state(), []
    for name, files, words in ROWS:
        name = f'`{name}`' if name.startswith('./') else name
        if any(re.fullmatch(files, key) for key in all_of):
            rows.append(f'| {name} | {words(all_of)} | {here} |')
            print(f'{name}: {words(all_of)}')
        elif name in old:
            rows.append(old[name])
    with open(page, 'w', encoding='utf-8') as f:
        f.write(before + BEGIN + HEAD + '\n'.join(rows) + '\n' + END + after)


main()
