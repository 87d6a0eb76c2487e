#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds GoogleTest from a file in subprojects/packagecache, as a machine without its package does, and a test with it.
The file is made of the sources that Debian's package googletest installs, so that no network is needed: they are of
another version than the wrap names, which takes their checksum here. A file with another checksum is refused.

usage: wrap_builds.py SOURCE_ROOT
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

SOURCES = '/usr/src/googletest'
PROJECT = """project('uses_gtest', 'cpp', default_options: ['cpp_std=c++20', 'buildtype=plain'])
test('one', executable('one', 'one.cpp', dependencies: dependency('gtest', version: '>=1.15', main: true)), protocol: 'gtest')
"""
TEST = """#include <gtest/gtest.h>
TEST(Wrap, IsBuilt) { EXPECT_EQ(1 + 1, 2); }
"""


def setup(folder, build):
    return subprocess.run(['meson', 'setup', '--wrap-mode=forcefallback', build], cwd=folder, capture_output=True, text=True)


def main():
    if not os.path.isdir(SOURCES):
        print(f'skipped: {SOURCES} is not there')
        return 77
    root = os.path.join(sys.argv[1], 'subprojects')
    with tempfile.TemporaryDirectory() as folder:
        subprojects = os.path.join(folder, 'subprojects')
        cache = os.path.join(subprojects, 'packagecache')
        os.makedirs(cache)
        shutil.copytree(os.path.join(root, 'packagefiles'), os.path.join(subprojects, 'packagefiles'))
        with open(os.path.join(root, 'gtest.wrap'), encoding='utf-8') as text:
            wrap = text.read()
        field = lambda name: re.search(rf'^{name} = (.*)$', wrap, re.MULTILINE).group(1)
        archive = os.path.join(cache, field('source_filename'))
        with tarfile.open(archive, 'w:gz') as tar:
            tar.add(SOURCES, arcname=field('directory'))
        for name, text in {'meson.build': PROJECT, 'one.cpp': TEST, 'subprojects/gtest.wrap': wrap}.items():
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
                file.write(text)

        refused = setup(folder, 'refused')
        if refused.returncode == 0 or 'hash' not in refused.stdout + refused.stderr:
            print('a file with another checksum was taken:', refused.stdout, refused.stderr)
            return 1
        with open(archive, 'rb') as file:
            own = hashlib.sha256(file.read()).hexdigest()
        with open(os.path.join(subprojects, 'gtest.wrap'), 'w', encoding='utf-8') as file:
            file.write(wrap.replace(field('source_hash'), own))
        for ended in (lambda: setup(folder, 'build'),
                      lambda: subprocess.run(['meson', 'test', '-C', 'build'], cwd=folder, capture_output=True, text=True)):
            result = ended()
            if result.returncode != 0:
                print(result.stdout, result.stderr)
                return 1
    return 0


sys.exit(main())
