# SPDX-License-Identifier: Apache-2.0
"""The reader that checks traces finds what is wrong in one of stats buffers: a whole trace passes, each change to it is named.

usage: trace_check_finds.py TRACE_CHECK GOLDEN_TRACE"""

import os
import subprocess
import sys
import tempfile
import unittest

CHECK, GOLDEN = sys.argv[1:3]

# What is replaced in the golden trace, once, and words of the fault that this makes.
CHANGES = [
    ('"dur":80.000', '"dur":80.0', 'three decimals'),
    ('"dur":80.000', '"dur":0.000', 'below 0.001'),
    ('"dur":80.000', '"dur":NaN', 'no JSON'),
    ('"dur":80.000', '"dur":80.001', 'cross or start together'),
    ('"ts":1000010.000,"dur":80.000', '"ts":1000000.000,"dur":5.000', 'cross or start together'),
    ('"ph":"X","name":"conv"', '"ph":"Y","name":"conv"', 'not in the format'),
    ('"name":"conv","cat":"aic",', '"name":"conv",', "lacks ['cat']"),
    ('"name":"conv","cat":"aic",', '"name":"conv","cat":"aic","cat":"aic",', 'a member twice'),
    ('"name":"conv","cat":"aic","pid":1073741824', '"name":"conv","cat":"aic","pid":7', 'is in process'),
    ('"name":"conv","cat":"aic","pid":1073741824', '"name":"conv","cat":"aic","pid":99999999999', 'below 2^32'),
    ('"ph":"s","name":"dep"', '"ph":"s","name":"other"', 'its ends are'),
    ('"ts":1000089.999,"id":0', '"ts":1000089.999,"id":9007199254740992', 'below 2^53'),
    ('"ts":1000089.999,"id":0', '"ts":1000000000.000,"id":0', 'lies in no slice'),
    ('"id":0,"bp":"e"', '"id":0', 'binds to the next slice'),
    ('"ph":"e","name":"queue wait"', '"ph":"n","name":"queue wait"', 'pair'),
    ('"s":"t"', '"s":"t","x":1', "has ['x']"),
    ('\n]}', '\n', 'Expecting'),
]


def check(text):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'trace.json')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return subprocess.run([sys.executable, CHECK, path], capture_output=True, text=True)


class Finds(unittest.TestCase):
    def setUp(self):
        with open(GOLDEN, encoding='utf-8') as file:
            self.whole = file.read()

    def test_nothing_in_a_whole_trace(self):
        done = check(self.whole)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_change(self):
        for old, new, words in CHANGES:
            with self.subTest(new):
                self.assertIn(old, self.whole)
                done = check(self.whole.replace(old, new, 1))
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(words, done.stdout)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
