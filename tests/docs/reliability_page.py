#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What was measured gets into the table of docs/reliability.md, and rows that were not measured stay.

usage: reliability_page.py reliability.py docs/reliability.md
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, PAGE = (os.path.abspath(path) for path in sys.argv[1:3])
SOAK = {'minutes': 2.5, 'steps': {'swap': 1000, 'restart': 234}, 'left_mb': 1.25, 'faults': ['no broker'],
        **{name: {'per_hour': 0.5, 'standard_error': 0.25} for name in ('resident_mb', 'heap_mb', 'descriptors', 'threads')}}


class ReliabilityPage(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.figures, self.page = os.path.join(kept.name, 'figures'), os.path.join(kept.name, 'page.md')
        os.mkdir(self.figures)
        shutil.copy(PAGE, self.page)

    def write(self, **figures):
        """Rows of the page after these figures."""
        for name, content in figures.items():
            with open(os.path.join(self.figures, name.replace('_', '-') + '.json'), 'w', encoding='utf-8') as f:
                json.dump(content, f)
        subprocess.run([PROGRAM, self.figures, self.page], check=True, cwd=os.path.dirname(PROGRAM), stdout=subprocess.DEVNULL)
        with open(self.page, encoding='utf-8') as f:
            table = f.read().split('<!-- figures -->\n')[1].split('<!-- end -->')[0]
        return {row.split(' | ')[0][2:]: row for row in table.splitlines()[2:]}

    def test_rows_are_replaced_one_by_one(self):
        before = self.write()
        after = self.write(soak=SOAK, kills_run={'moments': 12, 'ended': 9}, kills_compile={'moments': 12, 'ended': 11})
        self.assertIn('| 2.5 minutes, 1,234 steps; in an hour, with the standard error: MB resident +0.50 (±0.25),', after['`./dev soak`'])
        self.assertIn('1 fault |', after['`./dev soak`'])
        self.assertIn('| compile: 11 of 12 came before the end; run: 9 of 12', after['test `kills`'])
        for name, row in before.items():
            if name not in ('`./dev soak`', 'test `kills`'):
                self.assertEqual(after[name], row)

    def test_the_rest_of_the_page_stays(self):
        self.write(soak=SOAK)
        with open(PAGE, encoding='utf-8') as f, open(self.page, encoding='utf-8') as g:
            before, after = f.read(), g.read()
        self.assertEqual(before.split('<!-- figures -->')[0], after.split('<!-- figures -->')[0])
        self.assertEqual(before.split('<!-- end -->')[1], after.split('<!-- end -->')[1])


unittest.main(argv=[sys.argv[0]])
