#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each allocation of a command fails once: the command ends with a sentence or goes on, never by a signal.

usage: allocations.py fail_allocation.so vartml MODEL.onnx
VARTML_TEST_ALLOCATIONS=N   tries N allocations of each command, spread evenly, instead of 60; 0: every one
"""
import bisect
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))

from figures import keep  # noqa: E402

MODULE, PROGRAM, MODEL = (os.path.abspath(path) for path in sys.argv[1:4])
TRIES = int(os.environ.get('VARTML_TEST_ALLOCATIONS', '60'))
# Code of others that cannot report that there is no memory: functions in which an exception ends the process.
CANNOT_REPORT = {
    'nlohmann::.*::json_value::destroy': 'a destructor keeps nested values in a vector',
    r'CLI::App::get_option_no_throw': 'is noexcept and copies names',
}


class Symbols:
    """Names of functions by object and offset, as nm knows them."""

    def __init__(self):
        self.tables = {}

    def name(self, path, offset):
        if path not in self.tables:
            lines = subprocess.run(['nm', '-C', '--defined-only', path], capture_output=True, text=True, check=False).stdout
            found = re.findall(r'^([0-9a-f]+) [tTwW] (.*)$', lines, re.MULTILINE)
            rows = sorted((int(address, 16), name) for address, name in found)
            self.tables[path] = ([address for address, _ in rows], [name for _, name in rows])
        addresses, names = self.tables[path]
        at = bisect.bisect_right(addresses, offset) - 1
        return names[at] if at >= 0 else os.path.basename(path)


class Allocations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.folder = cls.kept.name
        cls.symbols = Symbols()
        done = subprocess.run([PROGRAM, 'compile', MODEL, '-o', 'model.rai'], cwd=cls.folder, env=cls.environment(),
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    @classmethod
    def environment(cls):
        return {**os.environ, 'XDG_CACHE_HOME': os.path.join(cls.folder, 'cache')}

    def run_with(self, words, begins, at):
        """Exit code, what it said, how many were counted, frames of the allocation that failed."""
        report = os.path.join(self.folder, 'report')
        if os.path.exists(report):
            os.remove(report)
        env = {**self.environment(), 'LD_PRELOAD': MODULE, 'VARTML_FAIL_FROM': begins, 'VARTML_FAIL_REPORT': report,
               **({'VARTML_FAIL_AT': str(at)} if at else {})}
        done = subprocess.run(words, cwd=self.folder, env=env, capture_output=True, text=True, check=False, timeout=120)
        counted, frames = 0, []
        if os.path.exists(report):
            with open(report, encoding='utf-8') as f:
                first, *rest = f.read().splitlines()
            counted = int(first)
            frames = [self.symbols.name(path, int(offset, 16)) for path, offset in map(str.split, rest)] \
                if done.returncode < 0 else []
        return done.returncode, done.stderr, counted, frames

    def every_failure_is_clean(self, words, begins, refusal, writes=None):
        code, said, total, _ = self.run_with(words, begins, None)
        self.assertEqual(code, 0, said)
        written = self.take(writes)
        self.assertGreater(total, 50, 'nothing was counted')
        step = max(1, total // TRIES) if TRIES else 1
        refused, foreign, faults = 0, 0, []
        for at in range(1, total + 1, step):
            code, said, _, frames = self.run_with(words, begins, at)
            left = self.take(writes)
            if left != (written if code == 0 else None):
                faults.append(f'allocation {at} of {total}: ended with {code} and left ' +
                              ('nothing' if left is None else f'{len(left)} bytes that are others'))
            if code < 0:
                if any(re.search(name, frame) for name in CANNOT_REPORT for frame in frames):
                    foreign += 1
                else:
                    faults.append(f'allocation {at} of {total}: ended by signal {-code}: {said.strip()[-200:]}\n    ' +
                                  '\n    '.join(frames[:16]))
            elif code > 0:
                refused += 1
                if not re.search(refusal, said):
                    faults.append(f'allocation {at} of {total}: ended with {code} and said {said.strip()[-300:]!r}')
        tried = len(range(1, total + 1, step))
        keep(f'allocations-{words[1]}', {'all': total, 'tried': tried, 'refused': refused, 'foreign': foreign, 'faults': len(faults)})
        print(f'{" ".join(words[:2])}: {total} allocations, {tried} tried: {refused} refused, '
              f'{foreign} in code of others, {len(faults)} faults')
        self.assertFalse(faults, f'{len(faults)} faults\n' + '\n'.join(faults[:8]))
        self.assertGreater(refused, 0)

    def take(self, name):
        """The bytes of a file, which is gone then; None where there is none."""
        path = os.path.join(self.folder, name or '.none')
        if not os.path.exists(path):
            return None
        with open(path, 'rb') as f:
            content = f.read()
        os.remove(path)
        return content

    def test_inspect(self):
        self.every_failure_is_clean([PROGRAM, 'inspect', 'model.rai'], 'model.rai', 'memory')

    def test_run(self):
        self.every_failure_is_clean([PROGRAM, 'run', 'model.rai', '-n', '2'], 'model.rai', 'memory')

    def test_compile(self):
        self.every_failure_is_clean([PROGRAM, 'compile', MODEL, '-o', 'again.rai'], os.path.basename(MODEL), 'memory',
                                    writes='again.rai')


unittest.main(argv=[sys.argv[0]], verbosity=1)
