#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`vartml profile` as its users call it: the page, the lines, the refusals.

usage: profile.py vartml MODEL.onnx
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import onnx

PROGRAM, MODEL = (os.path.abspath(path) for path in sys.argv[1:3])


def grey_png(side):
    """A picture, by the format's document."""
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    rows = (b'\0' + b'\x80' * 3 * side) * side
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', side, side, 8, 2, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


class Profile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.kept.cleanup)
        cls.folder = cls.kept.name
        cls.env = {**os.environ, 'XDG_CACHE_HOME': os.path.join(cls.folder, 'cache')}
        cls.env.pop('VARTML_COMPILER', None)  # the program compiles by itself
        with open(os.path.join(cls.folder, 'grey.png'), 'wb') as f:
            f.write(grey_png(32))

    def vartml(self, *words):
        return subprocess.run([PROGRAM, *words], cwd=self.folder, env=self.env, text=True, capture_output=True, check=False)

    def page(self, name):
        with open(os.path.join(self.folder, name), encoding='utf-8') as f:
            return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', f.read(), re.DOTALL)[1])

    def test_a_page_by_the_names_of_the_file(self):
        done = self.vartml('profile', MODEL, 'grey.png', '-n', '3', '-o', 'p.html')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('page: p.html', done.stdout)
        self.assertRegex(done.stdout, r'^\d+\.\d{3} ms per inference, the median of 3, on softnpu')
        data = self.page('p.html')
        self.assertEqual(data['nodes_of']['inferences'], 3)
        columns = [column[0] for column in data['nodes']['columns']]
        rows = [dict(zip(columns, row)) for row in data['nodes']['rows']]
        times = [row['ms'] for row in rows]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertAlmostEqual(sum(times), data['nodes_of']['ms'], delta=0.001 * len(times))
        known = {node.name for node in onnx.load(MODEL).graph.node}
        named = [name for row in rows if not row['node'].startswith('(') for name in row['node'].rstrip('…').split(' + ')]
        self.assertGreater(len(named), 20)
        self.assertGreater(sum(name in known for name in named), 0.9 * len(named), named)

    def test_the_page_is_named_after_the_model(self):
        done = self.vartml('profile', MODEL, '-n', '1')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('page: qrfinder.profile.html', done.stdout)
        self.assertTrue(os.path.exists(os.path.join(self.folder, 'qrfinder.profile.html')))

    def test_refusals_are_one_sentence(self):
        self.assertEqual(self.vartml('compile', MODEL, '-o', 'low.rai').returncode, 0)
        for status, words, arguments in [
                (2, 'low.rai: was compiled with --stats-level 40, times of operators need 70', ['low.rai']),
                (2, '--input-shape: is for an ONNX file', ['low.rai', '--input-shape', 'x:1']),
                (1, 'nowhere.onnx: no such file', ['nowhere.onnx']),
                (2, 'low.rai: is no picture that can be read', [MODEL, 'low.rai']),
                (1, 'nowhere/p.html', [MODEL, '-n', '1', '-o', 'nowhere/p.html']),
                (2, 'MODEL is required', [])]:
            done = self.vartml('profile', *arguments)
            errors = [line for line in done.stderr.splitlines() if 'ERROR' in line]
            self.assertEqual((done.returncode, len(errors)), (status, 1), done.stderr)
            self.assertIn(words, errors[0])


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]], verbosity=2)
