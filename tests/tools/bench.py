#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`vartml bench` as its users call it: rows with and without ONNX Runtime, refusals. No figure is judged.

usage: bench.py vartml MODEL.onnx
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, MODEL = (os.path.abspath(path) for path in sys.argv[1:3])
SHORT = ['--rounds', '2', '--time', '0.001']


class Bench(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = kept.name

    def vartml(self, *words, **more):
        env = {**os.environ, 'XDG_CACHE_HOME': os.path.join(self.folder, 'cache'), **more}
        return subprocess.run([PROGRAM, *words], cwd=self.folder, env=env, text=True, errors='replace',
                              capture_output=True, check=False)

    def test_a_row_per_model(self):
        done = self.vartml('bench', MODEL, MODEL, *SHORT, '--json', 'b.json')
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, 'b.json'), encoding='utf-8') as f:
            figures = json.load(f)
        self.assertEqual([row['model'] for row in figures['models']], ['qrfinder', 'qrfinder'])
        self.assertGreater(figures['models'][0]['inferences_per_s'], 0)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r'^model +ours per s +type')
        self.assertRegex(lines[1], r'^qrfinder +\d+\.\d')
        done = self.vartml('diff', 'b.json', 'b.json')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r'(?m)^qrfinder/bench +1/s .* same$')
        if 'onnxruntime' not in figures:
            self.skipTest('there is no ONNX Runtime')
        row = figures['models'][0]
        self.assertLessEqual(row['ratio_low'], row['ratio'])
        self.assertLessEqual(row['ratio'], row['ratio_high'])
        self.assertIn('ORT ' + figures['onnxruntime'], lines[0])
        self.assertIn('geometric mean', lines[3])

    def test_without_onnx_runtime_ours_alone(self):
        done = self.vartml('bench', MODEL, *SHORT, '--json', 'b.json', VARTML_ONNXRUNTIME='/nowhere/libonnxruntime.so')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('WARNING: there is no ONNX Runtime to compare with', done.stderr)
        self.assertNotIn('ratio', done.stdout)
        with open(os.path.join(self.folder, 'b.json'), encoding='utf-8') as f:
            self.assertNotIn('onnxruntime', json.load(f))

    def test_a_place_that_cannot_be_written_is_refused_at_once(self):
        for command in [['bench', *SHORT], ['run', '-n', '1']]:
            done = self.vartml(*command, MODEL, '--json', 'nowhere/b.json')
            self.assertEqual((done.returncode, done.stdout), (1, ''))
            self.assertIn('--json: nowhere/b.json: cannot create a file beside it', done.stderr)
            done = self.vartml(*command, MODEL, '--json', '.')
            self.assertEqual((done.returncode, done.stdout), (1, ''))
            self.assertIn('--json: .: cannot write: Is a directory', done.stderr)

    def test_the_name_of_a_file_need_not_be_utf8(self):
        model = os.path.join(os.fsencode(self.folder), b'm\xff.onnx')
        shutil.copy(MODEL, model)
        done = self.vartml('bench', model, *SHORT, '--json', 'b.json', VARTML_ONNXRUNTIME='/nowhere/libonnxruntime.so')
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, 'b.json'), encoding='utf-8') as f:
            self.assertEqual(json.load(f)['models'][0]['model'], 'm\ufffd')

    def test_a_model_that_cannot_be_does_not_stop_the_others(self):
        done = self.vartml('bench', 'nowhere.onnx', MODEL, *SHORT)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn('nowhere.onnx: no such file', done.stderr)
        self.assertRegex(done.stdout, r'(?m)^qrfinder +\d')

    def test_refusals_are_one_sentence(self):
        for words, arguments in [('MODEL is required', []), ('--time: ', [MODEL, '--time', '0']),
                                 ('--rounds', [MODEL, '--rounds', '0'])]:
            done = self.vartml('bench', *arguments)
            self.assertEqual((done.returncode, done.stderr.count('\n')), (2, 1), done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]], verbosity=2)
