#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a command of the user may write in the root of ./dev, by what bubblewrap is told, and what --suite and --arch make of a command.

usage: dev.py SOURCE_ROOT"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

DEV = (pathlib.Path(sys.argv[1]) / 'dev').read_text()


def function(name):
    return re.search(rf'^{name}\(\) {{.*?^}}$', DEV, re.MULTILINE | re.DOTALL).group()


def variables():
    """Those that stand between functions and have a literal value."""
    return '\n'.join(re.findall(r'^(?:EXTRA_FOLDERS|NEIGHBOURS|EMULATED|EMULATE)=\S+', DEV, re.MULTILINE))


def bound(folder, commands):
    """How a folder beside the clone is bound: --bind, --ro-bind or None."""
    with tempfile.TemporaryDirectory() as work:
        stub = pathlib.Path(work) / 'bwrap'
        stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        stub.chmod(0o755)
        script = '\n'.join([
            'set -eu', variables(), function('show_folders'), function('inside'), function('in_place'), 'on_debian_13() { false; }',
            f'SUITE=trixie ARCH= ROOT=/root PROJECT={folder}/clone CACHE={work}/cache HOME={work}/home', 'cd /', commands, 'inside true'])
        environment = {k: v for k, v in os.environ.items() if k != 'VARTML_DEV_INSIDE'}
        environment['PATH'] = work + os.pathsep + environment['PATH']
        words = subprocess.run(['bash', '-c', script], env=environment, capture_output=True, text=True, check=True).stdout.split()
    for at, word in enumerate(words):
        if word.startswith(('--bind', '--ro-bind')) and words[at + 1] == folder:
            return word
    return None


def check(found, wanted, what):
    if found != wanted:
        sys.exit(f'{what}: found {found}, expected {wanted}')


# Builds and tests write into their clone alone; what the user runs, where the user may.
check(bound('/opt/work', ''), '--ro-bind', 'beside a clone, of a build')
check(bound('/opt/work', 'show_folders vartml compile m.onnx -o /opt/work/out.rai'), '--bind',
      'beside a clone, of a command of the user')


def chosen(words, **environment):
    """Root's packages, build folder and whether it is entered in place of a command, on a Debian 13 host; or the refusal."""
    script = '\n'.join([
        DEV.partition('\nsuite=\n')[0].replace('$(dirname "$(realpath "${BASH_SOURCE[0]}")")', '/clone'),
        'on_debian_13() { true; }', 'suite=',
        DEV.partition('\nsuite=\n')[2].partition('\ncase ${1:-help} in\n    demo)')[0],
        'echo $SUITE "$(in_place && echo in place || echo root)" $BUILD $(printf "%s\n" "${PACKAGES[@]}" | grep clang-rt) "$*"'])
    environment = {'PATH': os.environ['PATH'], 'HOME': '/home/user', **environment}
    run = subprocess.run(['bash', '-c', script, 'dev', *words.split()], env=environment, capture_output=True, text=True)
    return (run.stdout + run.stderr).strip()


INSIDE = {'VARTML_DEV_INSIDE': 'testing'}
for words, environment, wanted in [
    ('test --all', {}, 'trixie in place /clone/build libclang-rt-19-dev test --all'),
    ('--suite trixie test', {}, 'trixie in place /clone/build libclang-rt-19-dev test'),
    ('--suite testing test --all', {}, 'testing root /clone/build-testing libclang-rt-dev test --all'),
    ('--suite testing build', {'VARTML_BUILD_DIR': '/b'}, 'testing root /b libclang-rt-dev build'),
    ('--suite testing inside fmt', INSIDE, 'testing root /clone/build-testing libclang-rt-dev inside fmt'),
    ('test', INSIDE, 'testing root /clone/build-testing libclang-rt-dev test'),
    ('--suite trixie test', INSIDE,
     'dev: --suite: trixie is another root than the one that this runs in, testing; run it outside of ./dev shell'),
    ('--suite sid test', {}, "dev: --suite: 'sid' is unknown; there are testing and trixie, which is Debian 13"),
    ('--suite', {}, 'dev: --suite: give a suite, testing or trixie'),
    ('--arch arm64 test kernels', {}, 'trixie root /clone/build-arm64 test kernels'),
    ('--arch arm64 package --test', {}, 'trixie root /clone/build-arm64 package --test'),
    ('build', {'VARTML_DEV_INSIDE': 'trixie', 'VARTML_DEV_ARCH': 'arm64'}, 'trixie root /clone/build-arm64 build'),
    ('--arch arm64 test', {'VARTML_DEV_INSIDE': 'trixie'},
     'dev: --arch: arm64 is another root than the one that this runs in; run it outside of ./dev shell'),
    ('--arch riscv64 test', {}, "dev: --arch: 'riscv64' is unknown; there is arm64"),
    ('--arch', {}, 'dev: --arch: give a processor, arm64'),
    ('--arch arm64 bench', {}, 'dev: bench: is done for this machine alone; run it without --arch'),
    *[(f'--suite testing {command}', {}, f'dev: {command}: is done with Debian 13 alone; run it without --suite')
      for command in ('vm-test', 'mutate', 'package', 'fmt', 'tidy', 'train')],
]:
    check(chosen(words, **environment), wanted, f'./dev {words}')


def packages_of(*names):
    """What is installed of these to build for arm64."""
    script = '\n'.join(['ARCH=arm64', function('of_arch'), 'of_arch "$@"'])
    return subprocess.run(['bash', '-c', script, 'dev', *names], capture_output=True, text=True, check=True).stdout.split()


check(packages_of('meson', 'libhwy-dev', 'libcli11-dev', 'zlib1g-dev'),
      ['crossbuild-essential-arm64', 'qemu-user', 'meson', 'libhwy-dev:arm64', 'libcli11-dev', 'zlib1g-dev:arm64'],
      'libraries for arm64, tools and what is for any of this machine')
