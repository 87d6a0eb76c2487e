#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every program, library and plugin that is installed is protected, as readelf tells.

usage: hardening.py BUILD_ROOT
"""
import glob
import json
import os
import platform
import re
import subprocess
import sys
import unittest

BUILD = sys.argv[1]
# What the processor checks at indirect jumps and returns, by machine.
BRANCHES = {'x86_64': 'x86 feature: IBT, SHSTK', 'aarch64': 'AArch64 feature: BTI, PAC'}


def installed_objects():
    with open(os.path.join(BUILD, 'meson-info', 'intro-installed.json'), encoding='utf-8') as f:
        paths = [path for path in json.load(f) if path.startswith(BUILD) and os.path.isfile(path)]
    for path in sorted(paths):
        with open(path, 'rb') as f:
            if f.read(4) == b'\x7fELF':
                yield os.path.realpath(path)


def readelf(path):
    return subprocess.run(['readelf', '--wide', '--file-header', '--segments', '--dynamic', '--notes', '--dyn-syms', path],
                          capture_output=True, text=True, check=True).stdout


class Hardening(unittest.TestCase):
    def test_every_object(self):
        objects = list(installed_objects())
        self.assertGreater(len(objects), 5)
        for path in objects:
            text = readelf(path)
            with self.subTest(os.path.relpath(path, BUILD)):
                self.assertRegex(text, r'Type: +DYN', 'lies at a fixed address')
                self.assertIn('GNU_RELRO', text, 'tables of addresses can be written')
                self.assertRegex(text, r'FLAGS.*\bNOW\b', 'addresses are found late, so their table can be written')
                self.assertRegex(text, r'GNU_STACK .* RW +0x', 'the stack can be executed')

    # Read off what is compiled here: Debian's start files have no such mark, so nothing that is linked with them has.
    @unittest.skipUnless(platform.machine() in BRANCHES, 'the processor has no such checks')
    def test_jumps_and_returns_are_checked(self):
        objects = [path for room in ('kernels', 'lib', 'gst')
                   for path in glob.glob(os.path.join(BUILD, room, '**', '*.o'), recursive=True)]
        self.assertGreater(len(objects), 100)
        for path in objects:
            self.assertIn(BRANCHES[platform.machine()], readelf(path), path)

    def test_the_code_of_the_product_checks_stacks_and_buffers(self):
        symbols = ''.join(readelf(path) for path in installed_objects())
        self.assertRegex(symbols, r'__stack_chk_fail')
        self.assertTrue(re.findall(r'__(?:mem|str|v?sn?printf|f?read|p?read)\w*_chk', symbols), 'no call is fortified')


unittest.main(argv=[sys.argv[0]])
