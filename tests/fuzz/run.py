#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Feeds the readers of foreign bytes with what libFuzzer makes of their seeds.

usage: run.py --build DIR --out DIR [TARGET...] [SECONDS]
  TARGET   the name of a file of this folder [all]
  SECONDS  for each of them [20]

What was found before is in OUT/TARGET and is where the next run begins; OUT/TARGET-* are inputs on which a target fell.
Exit code 1 where one did.
"""
import argparse
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))

from figures import keep  # noqa: E402


def run(program, name, seconds, out):
    """The line of a target, how many inputs it had and whether it stood."""
    corpus = os.path.join(out, name)
    os.makedirs(corpus, exist_ok=True)
    if not os.listdir(corpus):
        subprocess.run([program, '-runs=0'], env={**os.environ, 'VARTML_FUZZ_SEEDS': corpus}, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    before = set(glob.glob(os.path.join(out, name + '-*')))
    done = subprocess.run([program, corpus, f'-max_total_time={seconds}', '-timeout=25', '-rss_limit_mb=4096', '-print_final_stats=1',
                           f'-artifact_prefix={os.path.join(out, name)}-'], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, errors='replace', env={**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0:allocator_may_return_null=1'},
                          check=False)
    fell = sorted(set(glob.glob(os.path.join(out, name + '-*'))) - before)
    executions = re.search(r'stat::number_of_executed_units: (\d+)', done.stderr)
    cover = re.findall(r'cov: (\d+)', done.stderr)
    runs = int(executions.group(1)) if executions else 0
    line = f'{name:<12} {runs:>10,} runs  {int(cover[-1]) if cover else 0:>7,} edges  ' \
           f'{len(os.listdir(corpus)):>6,} inputs'
    if done.returncode:
        at = os.path.relpath(fell[0]) if fell else 'no input kept'
        reason = next((row for row in done.stderr.splitlines() if re.search(r'ERROR|runtime error|SUMMARY', row)), 'fell')
        line += f'  FELL: {at}: {reason.strip()[:160]}'
    return line, runs, done.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    parser.add_argument('--out', required=True)
    parser.add_argument('words', nargs='*')
    options = parser.parse_args()
    programs = {os.path.basename(path)[5:]: path for path in sorted(glob.glob(os.path.join(options.build, 'tests', 'fuzz', 'fuzz_*')))
                if os.path.isfile(path) and os.access(path, os.X_OK)}
    seconds = next((int(word) for word in options.words if word.isdigit()), 20)
    if not programs:
        sys.exit(f'fuzz: there are no targets in {options.build}; they were not built')
    names = [word for word in options.words if not word.isdigit()] or list(programs)
    if unknown := [name for name in names if name not in programs]:
        sys.exit(f'fuzz: no target {unknown[0]!r}; there are {", ".join(programs)}')
    targets, fell = {}, []
    for name in names:
        line, targets[name], good = run(programs[name], name, seconds, options.out)
        print(line, flush=True)
        if not good:
            fell.append(name)
    keep('fuzz', {'targets': targets, 'seconds': seconds, 'fell': fell})
    return 1 if fell else 0


sys.exit(main())
