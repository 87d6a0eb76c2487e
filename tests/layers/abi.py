#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/abi.py finds what breaks applications of the last release, names function and type, and says what to do.

usage: abi.py SOURCE_ROOT
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
if not shutil.which('abidw'):
    sys.exit(77)  # abigail-tools is not installed

# A library of a public struct, two public functions and one that is for the same version alone.
MAP = 'LIB_1.0 { global: first*; second*; third*; local: *; };\nLIB_PRIVATE_1.0 { global: own*; };\n'
BASE = {'struct': 'int x; float score;', 'first': 'float first(const Point* p) { return p->score; }',
        'second': 'int second(Point p, int factor) { return p.x * factor; }',
        'inlined': 'inline int first_of(Point p) { return p.x; } int (*kept)(Point) = first_of;', 'own': 'int own(int n) { return n; }'}
# Why, what is otherwise, and words of what is said; none: it is no break.
CHANGES = [
    ('nothing', {}, []),
    ('a new function', {'third': 'int third(Point p) { return p.x; }'}, []),
    ('another body', {'second': 'int second(Point p, int factor) { return factor * p.x + 1; }'}, []),
    ('an inline function is gone', {'inlined': ''}, []),
    ('a function of the same version', {'own': 'long own(const char* text) { return text[0]; }'}, []),
    ('a function is gone', {'first': ''}, ['first', 'Removed', 'next soname']),
    ('a parameter is of another type', {'second': 'int second(Point p, long factor) { return p.x * int(factor); }'},
     ['second(Point, int', "from 'int' to 'long int'", 'next soname']),
    ('a member more', {'struct': 'int x; float score; int more;'}, ['first(const Point*)', 'struct Point', 'int more', 'next soname']),
    ('members changed places', {'struct': 'float score; int x;'}, ['first(const Point*)', 'struct Point', 'offset', 'next soname']),
]


class Abi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        work = tempfile.TemporaryDirectory()
        cls.addClassCleanup(work.cleanup)
        cls.work = pathlib.Path(work.name)
        (cls.work / 'map').write_text(MAP)
        status, text = cls.abi('describe', cls.library({}))
        assert status == 0, text

    @classmethod
    def library(cls, changes, soname='libx.so.1'):
        parts = BASE | changes
        source, library = cls.work / 'x.cpp', cls.work / 'libx.so'
        source.write_text(f"struct Point {{ {parts.pop('struct')} }};\nextern \"C\" {{\n" + '\n'.join(parts.values()) + '\n}\n')
        subprocess.run(['g++', '-g', '-shared', '-fPIC', source, '-o', library, f'-Wl,--version-script={cls.work}/map',
                        f'-Wl,-soname,{soname}'], check=True)
        return library

    @classmethod
    def abi(cls, verb, library):
        done = subprocess.run([sys.executable, ROOT / 'packaging' / 'abi.py', verb, cls.work, '/usr/lib/debug', library],
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_changes(self):
        for why, changes, words in CHANGES:
            with self.subTest(why):
                status, text = self.abi('compare', self.library(changes))
                self.assertEqual(status, 1 if words else 0, text)
                for word in words:
                    self.assertIn(word, text)

    def test_a_soname_that_is_gone(self):
        status, text = self.abi('compare', self.library({}, 'libx.so.2'))
        self.assertEqual(status, 1)
        self.assertIn('no library has the soname libx.so.1 any more; if that is meant, delete libx.so.1.abi.xz', text)
        self.assertIn('libx.so.2 is in no release so far', text)

    def test_a_library_without_symbols_for_debuggers(self):
        library = self.library({})
        subprocess.run(['strip', library], check=True)
        status, text = self.abi('compare', library)
        self.assertEqual(status, 1)
        self.assertIn('has no symbols for debuggers', text)


unittest.main(verbosity=2)
