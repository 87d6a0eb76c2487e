#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ./dev vm-test runs in the guest, and what came of it.

usage: job.py plan --build DIR --share DIR [NAME...]     builds the tests, writes DIR/job.sh
       job.py report --share DIR                         ends with one line `N passed, N failed, N skipped`
  NAME     only the tests whose meson name contains one of these; GTEST_FILTER chooses within them
"""
import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys

# Tests that see other memory where there are a udmabuf device and a dma-heap, and which of their cases do; suite `vm` runs
# in any case.
ALSO = {'run: conformance': '*', 'gst: infer_picture': '*DmaBuf*', 'pipelines: infer_apps': '*', 'vart: memory': '*'}

SLOWER = 3  # the guest's processors, which are emulated beside what else this machine does

# Few plugins: in an emulated processor a registry of all takes half a minute.
PLUGINS = ['compositor', 'coreelements', 'coretracers', 'isomp4', 'kms', 'openh264', 'playback', 'typefindfunctions', 'video4linux2',
           'videoconvertscale', 'videoparsersbad', 'videotestsrc', 'x264']

PREAMBLE = """\
export PATH=/usr/sbin:/usr/bin HOME=/tmp LANG=C.UTF-8 XDG_CACHE_HOME=/tmp/cache
export VARTML_GUEST=1 # nothing that the guest has may be missed
mkdir -p /tmp/plugins /tmp/cache
failed=0
seconds() { cut -d . -f 1 /proc/uptime; }
echo "booted in $(seconds) s"
ran() { # name, status, when it began
    echo "$2" >"/share/results/$1.status"
    [ "$2" = 0 ] || failed=1
    echo "==== $1: $(($(seconds) - $3)) s"
}
"""


def introspect(build, what):
    text = subprocess.run(['meson', 'introspect', f'--{what}', build], check=True, capture_output=True, text=True).stdout
    return json.loads(text)


def label(test):
    return f"{test['suite'][0].split(':')[-1]}: {test['name']}"


def file_name(test):
    return label(test).replace(': ', '-')


def chosen(build, names):
    tests = [t for t in introspect(build, 'tests') if label(t).startswith('vm: ') or label(t) in ALSO]
    missing = ALSO.keys() - {label(t) for t in tests}
    if missing:
        sys.exit(f'job.py: no test is called {", ".join(sorted(missing))}; correct ALSO')
    tests = [t for t in tests if not names or any(name in t['name'] for name in names)]
    if not tests:
        sys.exit(f'job.py: no test that runs in the guest has {" or ".join(names)} in its name')
    return tests


def make(build, tests):
    by_id = {target['id']: target for target in introspect(build, 'targets')}
    files = {file for test in tests for needed in test['depends'] for file in by_id[needed]['filename']}
    subprocess.run(['ninja', '-C', build, *sorted(os.path.relpath(file, build) for file in files)], check=True)


def command(test):
    """Lines of the job that run one test."""
    name = file_name(test)
    assert test['protocol'] == 'gtest', name
    cases = os.environ.get('GTEST_FILTER', ALSO.get(label(test), '*'))
    env = {'GST_PLUGIN_SYSTEM_PATH_1_0': '/tmp/plugins', 'GTEST_FILTER': cases, **test['env'], 'XDG_CACHE_HOME': '/tmp/cache'}
    if 'GST_REGISTRY' in env:  # that of the build folder cannot be written
        env['GST_REGISTRY'] = '/tmp/' + os.path.basename(env['GST_REGISTRY'])
    words = ['env', *(f'{key}={value}' for key, value in sorted(env.items())), 'timeout', '-k', '5', str(SLOWER * test['timeout']),
             *test['cmd'], '--gtest_brief=1', f'--gtest_output=json:/share/results/{name}.json']
    return f'echo "==== {label(test)}"\ncd {shlex.quote(test["workdir"] or "/tmp")}\nbegan=$(seconds)\n{shlex.join(words)}\nran {name} $? $began\n'


def plan(options):
    subprocess.run(['ninja', '-C', options.build, 'build.ninja'], check=True)  # the lists of tests as they are now
    tests = chosen(options.build, options.names)
    make(options.build, tests)
    shutil.rmtree(options.share, ignore_errors=True)
    os.makedirs(os.path.join(options.share, 'results'))
    links = [f'ln -s /usr/lib/x86_64-linux-gnu/gstreamer-1.0/libgst{name}.so /tmp/plugins/\n' for name in PLUGINS]
    with open(os.path.join(options.share, 'job.sh'), 'w', encoding='utf-8') as file:
        file.writelines([PREAMBLE, *links, *map(command, tests), 'exit $failed\n'])
    with open(os.path.join(options.share, 'names'), 'w', encoding='utf-8') as file:
        file.writelines(file_name(test) + '\n' for test in tests)
    return 0


def outcome(results, name):
    """(passed, skipped, names of failed) of one test program."""
    try:
        with open(os.path.join(results, name + '.status'), encoding='utf-8') as file:
            status = int(file.read())
        with open(os.path.join(results, name + '.json'), encoding='utf-8') as file:
            suites = json.load(file)['testsuites']
    except (OSError, ValueError):
        return 0, 0, [f'{name} did not end']
    passed, skipped, failed = 0, 0, []
    for case in (case for suite in suites for case in suite['testsuite']):
        if case.get('failures'):
            failed.append(f"{name}: {case['classname']}.{case['name']}")
        elif case['result'] == 'SKIPPED':
            skipped += 1
        elif case['result'] == 'COMPLETED':
            passed += 1
    if status != 0 and not failed:
        failed.append(f'{name} ended with {status}')
    return passed, skipped, failed


def report(options):
    with open(os.path.join(options.share, 'names'), encoding='utf-8') as file:
        names = file.read().split()
    passed, skipped, failed = 0, 0, []
    for name in names:
        ok, left_out, bad = outcome(os.path.join(options.share, 'results'), name)
        passed, skipped, failed = passed + ok, skipped + left_out, failed + bad
    for name in failed:
        print(f'failed: {name}')
    print(f'{passed} passed, {len(failed)} failed, {skipped} skipped')
    return 1 if failed or passed == 0 else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('step', choices=['plan', 'report'])
    parser.add_argument('--build', default='build')
    parser.add_argument('--share', required=True)
    parser.add_argument('names', nargs='*')
    options = parser.parse_args()
    return plan(options) if options.step == 'plan' else report(options)


sys.exit(main())
