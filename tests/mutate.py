#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes the code a line at a time and asks the tests of its room whether they notice.

usage: mutate.py [--count N] [--seed S] [--at FILE:LINE] [ROOM...]
  --count  mutants in all, spread over the rooms [20]
  --seed   which lines are chosen [1]
  --at     every change of this line instead
  ROOM     kernels, lib/base, lib/graph, lib/compile, lib/model, lib/run, lib/vision, lib/trace, lib/publish,
           lib/tools, gst [all]

Works on a copy of the tracked files in build/mutants. Ends with a line per mutant that lives and `N killed of M`; the exit
code is 0 where at least nine of ten are killed. A change that does not compile counts for nothing, nor does one of
tests/mutants_that_live.txt, which says why no result depends on it.
"""
import argparse
import difflib
import json
import os
import random
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), 'support'))

from figures import keep  # noqa: E402

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COPY = os.path.join(HOME, 'build', 'mutants')
ROOMS = ['kernels', 'lib/base', 'lib/graph', 'lib/compile', 'lib/model', 'lib/run', 'lib/vision', 'lib/trace', 'lib/publish', 'lib/tools',
         'gst']
# Whose tests guard what; of several that fit the longest counts.
SUITES = {
    'kernels': ['kernels'],
    'lib/base': ['base', 'model', 'run'],
    'lib/graph': ['graph', 'compile', 'conformance'],
    'lib/compile': ['compile', 'conformance'],
    'lib/compile/onnx': ['onnx', 'compile', 'conformance'],
    'lib/model': ['model'],
    'lib/run': ['run', 'vart'],
    'lib/vision': ['vision'],
    'lib/trace': ['opstats', 'vart', 'gst'],
    'lib/publish': ['publish'],
    'lib/tools': ['tools'],
    'lib/tools/opstats': ['opstats', 'tools'],
    'lib/tools/verify': ['verify'],
    'gst': ['gst'],
    'gst/density': ['pipelines'],
    'gst/detect': ['pipelines'],
    'gst/doctor': ['doctor'],
    'gst/fleet': ['fleet'],
}
NEEDS_ALL = {'installed'}  # tests that install the whole build, of which only what the others need is there
# What is looked for in a line and what it becomes.
CHANGES = [(re.compile(pattern), to) for pattern, to in [
    (r' <= ', ' < '), (r' >= ', ' > '), (r' < ', ' <= '), (r' > ', ' >= '), (r' == ', ' != '), (r' != ', ' == '),
    (r' && ', ' || '), (r' \|\| ', ' && '), (r' \+ ', ' - '), (r' - ', ' + '), (r' \* ', ' + '), (r' / ', ' * '),
    (r'\+\+(?=\w)', '--'), (r' \+= ', ' -= '), (r'\bstd::min\b', 'std::max'), (r'\bstd::max\b', 'std::min'),
    (r'\btrue\b', 'false'), (r'\bfalse\b', 'true'), (r'(?<=[ (])!(?=\w)', ''),
    (r'(?<![\w.])0(?![\w.])', '1'), (r'(?<![\w.])1(?![\w.])', '2'), (r'(?<![\w.])([2-9]|\d\d+)(?![\w.])', r'(\1 + 1)'),
    (r'^( *)if \((?!constexpr)(.*)\) return .*;$', r'\1;'), (r'^ *(const )?std::(lock_guard|scoped_lock|unique_lock)\b.*;$', ''),
    (r'^ *\w[\w.>-]*\.(reset|clear|push_back|notify_\w+)\(.*\);$', ''),
]]
SKIPPED = re.compile(r'^\s*(//|#|\*|using |template|static_assert|namespace|case |assert\()|LOG|_log\(|"[^"]*$')


def mutants_of(line):
    """Every changed form of a line; none of what is in quotes or behind //."""
    if SKIPPED.search(line):
        return
    code = line.split('//')[0].rstrip()
    quoted = [match.span() for match in re.finditer(r'"(\\.|[^"\\])*"', code)]
    for pattern, to in CHANGES:
        for match in pattern.finditer(code):
            if not any(begin < match.end() and match.start() < end for begin, end in quoted):
                yield code[:match.start()] + match.expand(to) + code[match.end():]


def known():
    """(path, line, changed) that may live. A path, `- ` and `+ ` the line before and after, `= ` the reason; then a blank line."""
    rows = set()
    with open(os.path.join(HOME, 'tests', 'mutants_that_live.txt'), encoding='utf-8') as f:
        for block in f.read().split('\n\n'):
            lines = [line for line in block.splitlines() if not line.startswith('#')]
            if not lines:
                continue
            path, before, after, why = lines
            with open(os.path.join(HOME, path), encoding='utf-8') as source:
                if before[2:] not in (line.strip() for line in source):
                    sys.exit(f'tests/mutants_that_live.txt: {path} has no line {before[2:]!r}; take the entry out')
            if not why.startswith('= '):
                sys.exit(f'tests/mutants_that_live.txt: {why!r}: expected "= " and the reason')
            rows.add((path, before[2:], after[2:]))
    return rows


def suites_of(path):
    return SUITES[max((place for place in SUITES if path.startswith(place + '/')), key=len)]


def candidates(room):
    files = subprocess.run(['git', 'ls-files', f'{room}/*.cpp', f'{room}/*-inl.h'], cwd=HOME, capture_output=True, text=True,
                           check=True).stdout.split()
    for path in files:
        if path.endswith('_ref.cpp'):  # what the tests compare with
            continue
        with open(os.path.join(HOME, path), encoding='utf-8') as f:
            for number, line in enumerate(f, 1):
                for changed in mutants_of(line.rstrip('\n')):
                    yield path, number, changed


def make_copy():
    source = os.path.join(COPY, 'source')
    shutil.rmtree(source, ignore_errors=True)
    for path in subprocess.run(['git', 'ls-files'], cwd=HOME, capture_output=True, text=True, check=True).stdout.split('\n'):
        if path and os.path.isfile(os.path.join(HOME, path)):
            os.makedirs(os.path.dirname(os.path.join(source, path)), exist_ok=True)
            shutil.copy2(os.path.join(HOME, path), os.path.join(source, path))
    # As deep as the usual build and with its flags, so that the compiler's cache knows the objects.
    usual = subprocess.run(['meson', 'introspect', '--buildoptions', 'build'], cwd=HOME, capture_output=True, check=False)
    werror = usual.returncode == 0 and any(option['name'] == 'werror' and option['value'] for option in json.loads(usual.stdout))
    subprocess.run(['meson', 'setup', 'build', '-Dbuildtype=release', *(['--werror'] if werror else [])], cwd=source, check=True,
                   stdout=subprocess.DEVNULL)
    return source


def tests_of(source, suites):
    """Names of the tests of suites: of tests that are named meson builds what they need, of suites everything."""
    done = subprocess.run(['meson', 'introspect', '--tests', 'build'], cwd=source, check=True, capture_output=True)
    return sorted({test['name'] for test in json.loads(done.stdout)
                   if any(suite.split(':')[-1] in suites for suite in test['suite'])} - NEEDS_ALL)


def near_to(path, tests):
    """The tests that are called as the file or its folder is: most changes that are noticed at all are noticed there."""
    words = {os.path.splitext(os.path.basename(path))[0].removeprefix('gstvartml'), os.path.basename(os.path.dirname(path))}
    return [test for test in tests if any(word in test for word in words)]


def run_tests(source, suites, tests):
    """'killed', 'lived' or 'not compiled'; what was built before is built again where it is older."""
    words = [word for suite in suites for word in ('--suite', suite)]
    done = subprocess.run(['meson', 'test', '-C', 'build', '--maxfail', '1', '--timeout-multiplier', '0.5', *words, *tests],
                          cwd=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env=os.environ | {'GTEST_FAIL_FAST': '1'})
    if done.returncode == 0:
        return 'lived'
    return 'not compiled' if 'ninja: build stopped' in done.stdout or 'FAILED: ' in done.stdout else 'killed'


def judge(source, path, number, changed):
    full = os.path.join(source, path)
    with open(full, encoding='utf-8') as f:
        lines = f.read().split('\n')
    original = '\n'.join(lines)
    lines[number - 1] = changed
    try:
        with open(full, 'w', encoding='utf-8') as f:
            f.write('\n'.join(lines))
        suites = suites_of(path)
        tests = tests_of(source, suites)
        near = near_to(path, tests)
        for group in (near, [test for test in tests if test not in near]):
            if group and (verdict := run_tests(source, suites, group)) != 'lived':
                return verdict
        return 'lived'
    finally:
        with open(full, 'w', encoding='utf-8') as f:
            f.write(original)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument('--count', type=int, default=20)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--at')
    parser.add_argument('rooms', nargs='*', default=ROOMS)
    options = parser.parse_args()
    rooms = options.rooms or ROOMS
    if unknown := [room for room in rooms if room not in ROOMS]:
        sys.exit(f'mutate.py: no room {unknown[0]!r}; there are {", ".join(ROOMS)}')
    chosen = {}
    rng = random.Random(options.seed)
    if options.at:
        path, number = options.at.rsplit(':', 1)
        rooms = [next(room for room in ROOMS if path.startswith(room + '/'))]
        chosen[rooms[0]] = [row for row in candidates(rooms[0]) if row[:2] == (path, int(number))]
    else:
        for room in rooms:
            chosen[room] = list(candidates(room))
            rng.shuffle(chosen[room])
    may_live = known()
    source = make_copy()
    killed, lived, tried, equal = 0, [], 0, 0
    pass_as_it_is = set()
    for index, room in enumerate(rooms):
        share = len(chosen[room]) if options.at else (options.count + len(rooms) - 1 - index) // len(rooms)
        for path, number, changed in chosen[room]:
            if share == 0:
                break
            with open(os.path.join(source, path), encoding='utf-8') as f:
                line = f.read().split('\n')[number - 1]
            if (path, line.strip(), changed.strip()) in may_live:
                equal += 1
                continue
            suites = tuple(suites_of(path))
            if suites not in pass_as_it_is and run_tests(source, suites, tests_of(source, suites)) != 'lived':
                sys.exit(f'mutate.py: tests of {", ".join(suites)} fail on the code as it is')
            pass_as_it_is.add(suites)
            verdict = judge(source, path, number, changed)
            if verdict == 'not compiled':
                continue
            share, tried = share - 1, tried + 1
            words = [part for part in difflib.ndiff([line.strip()], [changed.strip()]) if part[0] in '-+']
            print(f'{verdict}: {path}:{number}  ' + '  '.join(words), flush=True)
            killed += verdict == 'killed'
            if verdict == 'lived':
                lived.append(f'{path}:{number}  ' + '  '.join(words))
    keep('mutants', {'killed': killed, 'tried': tried, 'equal': equal, 'seed': options.seed, 'lived': lived})
    print('\n'.join(['', *(f'lives: {row}' for row in lived), f'{killed} killed of {tried}; {equal} change no result']))
    return 0 if tried and killed * 10 >= tried * 9 else 1


sys.exit(main())
