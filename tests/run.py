#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the tests; ends with one line `N passed, N failed, N skipped`.

usage: run.py --build DIR [--all | --emulated FILE] [NAME...]
  --all    also, with clang++: ASan and UBSan on everything, TSan on runtime, publisher and elements
  --emulated FILE  for the processor of a cross file of Meson, which an emulator runs
  NAME     only the tests whose meson name contains one of these, or is matched by one, as 'gst*'
"""
import argparse
import collections
import fnmatch
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'tsan.supp')
# Instrumented by clang at -O0 with lines alone, code compiles in less than half the time of -O1, and its traces name the same
# lines; the kernels ask for more. What clang warns of is seen in these builds, too.
INSTRUMENTED = ['-Db_lundef=false', '-Doptimization=0', '-Ddebug=false', '-Dcpp_args=-g1']
# Traces need addresses as lines; LLVM's own symbolizer is a package of 100 MB.
CLANG = {'CC': 'clang', 'CXX': 'clang++'}
SYMBOLS = 'external_symbolizer_path=/usr/bin/addr2line'
# Instrumented and emulated code takes up to ten times as long; a test's limit is there for what hangs.
PATIENCE = ['--timeout-multiplier', '10']
# Build folder suffix, meson options, environment, which suites are built and run in it (empty: all).
VARIANTS = [
    ('', [], {}, []),
    ('-asan', ['-Db_sanitize=address,undefined', *INSTRUMENTED],
     {**CLANG, 'ASAN_OPTIONS': f'detect_leaks=0:{SYMBOLS}',
      'UBSAN_OPTIONS': f'halt_on_error=1:print_stacktrace=1:{SYMBOLS}'}, []),
    ('-tsan', ['-Db_sanitize=thread', *INSTRUMENTED],
     {**CLANG, 'TSAN_OPTIONS': f'suppressions={SUPPRESSIONS} ignore_noninstrumented_modules=1 {SYMBOLS}'},
     ['vart', 'run', 'publish', 'gst']),
]

# What --emulated leaves out, and why.
LEFT_OUT = {
    'docs README.md': 'a block compiles for this machine, whose compiler and libraries are not installed',
    'docs docs/elements.md': 'a block compiles for this machine, whose compiler is not installed',
    'hardening': "reads objects by this machine's binutils, which are not installed",
    'introspection': "this machine's Python cannot load libraries for another processor",
    'metrics': "this machine's Python cannot load libraries for another processor",
    'vart_ml_package': 'compiles for this machine, whose compiler is not installed',
    'wrap_builds': 'compiles for this machine, whose compiler is not installed',
}


def tests_of(folder):
    return json.loads(subprocess.run(['meson', 'introspect', '--tests', folder], check=True, capture_output=True).stdout)


def names_of(folder, parts, suites):
    """Of tests whose name contains one of `parts`, of all where there are none, and which are in one of `suites`, if there are any."""
    return sorted({test['name'] for test in tests_of(folder)
                   if (not parts or any(fnmatch.fnmatch(test['name'], f'*{part}*') for part in parts)) and
                   (not suites or any(suite.split(':')[-1] in suites for suite in test['suite']))})


def names_of_emulated(folder, parts):
    """Those left out are told."""
    names = names_of(folder, parts, [])
    for name in names:
        if name in LEFT_OUT:
            print(f'left out: {name}: {LEFT_OUT[name]}')
    return [name for name in names if name not in LEFT_OUT]


def build(folder, options, extra, suites, all_of_it=True):
    env = dict(os.environ, **extra)
    werror = ['-Dwerror=true'] if os.environ.get('CI') else []
    if not os.path.exists(os.path.join(folder, 'build.ninja')):
        subprocess.run(['meson', 'setup', folder, '.', *werror, *options], check=True, env=env)
    elif werror:  # a folder that was made without
        subprocess.run(['meson', 'configure', folder, *werror], check=True, env=env)
    if not all_of_it:
        return
    # Of chosen suites meson builds what their tests need, but not what they are run with (tests/meson.build).
    subprocess.run(['ninja', '-C', folder, *(['tests/libtsan-glib.so'] if suites else [])], check=True, env=env)


def names_given_twice(folder):
    """Of tests of GoogleTest: they leave their results in files of these names, one in the place of the other."""
    names = collections.Counter(test['name'] for test in tests_of(folder) if test['protocol'] == 'gtest')
    return sorted(name for name, times in names.items() if times > 1)


def count(folder):
    """(passed, failed, skipped, names of failed) from the log that meson wrote for every test case."""
    passed, skipped, failed = 0, 0, []
    tree = ElementTree.parse(os.path.join(folder, 'meson-logs', 'testlog.junit.xml'))
    for suite in tree.getroot().iter('testsuite'):
        for case in suite.iter('testcase'):
            name = f"{suite.get('name')}: {case.get('name')}"
            kinds = {child.tag for child in case}
            if kinds & {'failure', 'error'}:
                failed.append(name)
            elif 'skipped' in kinds or case.get('result') == 'skipped':
                skipped += 1
            else:
                passed += 1
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('--all', action='store_true')
    parser.add_argument('--emulated', metavar='FILE')
    parser.add_argument('names', nargs='*')
    options = parser.parse_args()
    if options.all and options.emulated:
        parser.error('--all is for this machine alone')
    passed, skipped, failed = 0, 0, []
    for suffix, meson_options, env, suites in VARIANTS if options.all else VARIANTS[:1]:
        folder = options.build + suffix
        try:
            # All of it takes an hour there: of named tests meson builds what they need.
            named = bool(options.emulated and options.names)
            build(folder, meson_options + (['--cross-file', options.emulated] if options.emulated else []), env, suites, not named)
        except subprocess.CalledProcessError as error:
            print(f'run.py: {" ".join(error.cmd)} failed', file=sys.stderr)
            failed.append(f'build of {folder}')
            continue
        if twice := names_given_twice(folder):
            failed.append(f'two tests are called {twice[0]}: the results of one would take the place of the other\'s')
            continue
        if suites and not names_of(folder, options.names, suites):
            print(f'{folder} runs {", ".join(suites)} alone, and no test of these is named so: {" ".join(options.names)}')
            continue
        log = os.path.join(folder, 'meson-logs', 'testlog.junit.xml')
        if os.path.exists(log):
            os.remove(log)
        command = ['meson', 'test', '-C', folder, '--print-errorlogs', '--num-processes', '2']
        if env or options.emulated:
            command += PATIENCE
        if not suites and not named:
            command.append('--no-rebuild')
        for suite in suites: # meson builds what their tests need
            command += ['--suite', suite]
        names = [f'*{name}*' for name in options.names]
        if options.emulated:
            names = names_of_emulated(folder, options.names)
            if not names:
                failed.append(f'no test is named so: {" ".join(options.names)}')
                continue
        run = subprocess.run(command + names, env=dict(os.environ, **env))
        if not os.path.exists(log):
            failed.append(f'meson test in {folder}')
            continue
        ok, bad, left_out = count(folder)
        if run.returncode != 0 and not bad:
            bad = [f'meson test in {folder} ended with {run.returncode}']
        passed, skipped, failed = passed + ok, skipped + left_out, failed + bad
    for name in failed:
        print(f'failed: {name}')
    print(f'{passed} passed, {len(failed)} failed, {skipped} skipped')
    return 1 if failed or passed == 0 else 0


sys.exit(main())
