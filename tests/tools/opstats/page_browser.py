# SPDX-License-Identifier: Apache-2.0
"""The page of an inference in a headless Chromium, as its reader meets it.

usage: page_browser.py CHAIN_PAGE"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..', 'support'))

import browser  # noqa: E402

CHAIN_PAGE = sys.argv[1]
FOLDER = tempfile.TemporaryDirectory()
PAGE = os.path.join(FOLDER.name, 'chain.html')
WIDTHS = {'desktop': (1280, 900), 'phone': (390, 844)}


NAME = '</script><b>x</b><img src=x onerror=alert(1)>'


def setUpModule():
    global SUMMARY
    SUMMARY = subprocess.run([CHAIN_PAGE, FOLDER.name], check=True, stdout=subprocess.PIPE, encoding='utf-8').stdout


@unittest.skipUnless(browser.found(), 'there is no chromium')
class PageInABrowser(unittest.TestCase):
    def open(self, page):
        page.call('Log.enable')
        page.call('Runtime.enable')
        page.open('file://' + PAGE)

    def column(self, page, table, index):
        return page.evaluate(f'[...document.querySelectorAll("table")][{table}].tBodies[0].rows.length && '
                             f'[...[...document.querySelectorAll("table")][{table}].tBodies[0].rows].map(r => r.cells[{index}].textContent)')

    def click(self, page, table, index):
        page.evaluate(f'document.querySelectorAll("table")[{table}].tHead.rows[0].cells[{index}].firstChild.click()')

    def texts(self, page, selector):
        return page.evaluate(f'[...document.querySelectorAll({selector!r})].map(node => node.textContent)')

    def test_it_shows_what_the_summary_says(self):
        with browser.Browser() as page:
            self.open(page)
            rows = [re.split(r' +', line.strip()[1:], maxsplit=10) for line in SUMMARY.splitlines() if re.match(r'c\d +\S+ +\S+%', line)]
            self.assertGreater(len(rows), 10)
            cells = self.texts(page, '#operators td')
            self.assertEqual([cells[i:i + 11] for i in range(0, len(cells), 11)], [[row[0], row[10], *row[1:10]] for row in rows])
            self.assertEqual(page.evaluate('document.querySelector("pre").textContent'), SUMMARY)
            notes = [line[2:].split(': ', 1) for line in SUMMARY.splitlines() if line.startswith('# ') and ': ' in line]
            self.assertEqual(self.texts(page, '#missing li'), [text for key, text in notes if key == 'not captured'])
            self.assertEqual(self.texts(page, '#verdict .sentence, #verdict ul.hints li'),
                             [text for key, text in notes if key in ('verdict', 'verdict-top', 'verdict-hint')])
            self.assertEqual(' '.join(self.texts(page, '#verdict .legend li')), dict(notes)['verdict-share'])
            facts = [(key, text) for key, text in notes if key != 'not captured' and not key.startswith('verdict')]
            shown = ''.join(self.texts(page, '#capture .facts dd'))
            for key, text in facts:
                self.assertIn(text, shown)
            self.assertEqual(self.texts(page, '#capture .facts dt'), list(dict(facts)))
            figures = [re.search(pattern, SUMMARY)[1] for pattern in (
                r'inf/s: \(.*\): (\S+)', r'batch/s: \(.*\): (\S+)', r'total batch ucycles: +(\d+)', r'max input wait ucycles: +(\d+)')]
            self.assertEqual([text.split()[0] for text in self.texts(page, '#capture .figures dd')], figures)

    def test_it_draws_what_was_captured(self):
        with browser.Browser() as page:
            self.open(page)
            for selector, count in [('#layers tbody tr', 90), ('#layers .pairs b', 12), ('#timeline .lane', 2),
                                    ('#timeline rect', 180), ('#roofline circle', 180), ('#roofline .roof', 2)]:
                self.assertEqual(page.evaluate(f'document.querySelectorAll("{selector}").length'), count, selector)
            # Rounded shares may add up to less than 1; the bar is full.
            page.evaluate('document.querySelector(".shares").remove(), data.verdict.shares = [["compute", 0.9], ["host", 0.02]], drawVerdict()')
            self.assertAlmostEqual(page.evaluate('document.querySelector(".shares").lastChild.getBoundingClientRect().right'),
                                   page.evaluate('document.querySelector(".shares").getBoundingClientRect().right'), delta=1)
            self.assertIn(NAME, self.texts(page, '#layers td'))
            self.assertEqual(self.texts(page, '#latency dt'), ['min', 'p50', 'p90', 'p99', 'max'])
            self.assertEqual(self.texts(page, '#latency .note')[0], '800 × round trip')

    def test_a_click_on_a_column_sorts(self):
        with browser.Browser() as page:
            self.open(page)
            for table, index in [(0, 2), (0, 6), (1, 6)]:
                before = self.column(page, table, index)
                self.click(page, table, index)
                down = [float(text) for text in self.column(page, table, index) if text not in ('', 'N/A')]
                self.assertEqual(down, sorted(down, reverse=True))
                self.assertGreater(len(down), 5)
                self.click(page, table, index)
                up = self.column(page, table, index)
                numbers = [float(text) for text in up if text not in ('', 'N/A')]
                self.assertEqual(numbers, sorted(numbers))
                # What is not captured stands last in both directions, and no row is lost.
                self.assertTrue(all(text in ('', 'N/A') for text in up[len(numbers):]))
                self.assertEqual(sorted(before), sorted(up))
            self.click(page, 0, 1)
            names = self.column(page, 0, 1)
            self.assertEqual(names, sorted(names))

    def test_it_loads_nothing_and_runs_no_name(self):
        with browser.Browser() as page:
            self.open(page)
            self.assertEqual(page.evaluate('performance.getEntriesByType("resource").length'), 0)
            self.assertEqual(page.evaluate('document.images.length + document.links.length'), 0)
            self.assertEqual(page.evaluate('document.querySelectorAll("script, h1 *, td *").length'), 2)
            self.assertIn('<b>chain</b>', page.evaluate('document.querySelector("h1").textContent'))

    def test_a_touch_on_an_operator_reads_it(self):
        with browser.Browser() as page:
            self.open(page)
            for mark in ['.lane rect', 'svg.plot circle']:
                page.evaluate(f'document.querySelector("{mark}").dispatchEvent(new MouseEvent("click", {{bubbles: true}}))')
                self.assertEqual(page.evaluate(f'document.querySelector("{mark}").closest("section").querySelector(".picked-line").textContent'),
                                 page.evaluate(f'document.querySelector("{mark}").firstElementChild.textContent'))

    def test_it_fits_a_phone_and_a_desktop(self):
        for name, (width, height) in WIDTHS.items():
            with browser.Browser(width, height) as page:
                self.open(page)
                self.assertLessEqual(page.evaluate('document.documentElement.scrollWidth'), width)
                if folder := os.environ.get('VARTML_SCREENSHOTS'):
                    tall = page.evaluate('document.documentElement.scrollHeight')
                    page.call('Emulation.setDeviceMetricsOverride', width=width, height=tall, deviceScaleFactor=1, mobile=False)
                    page.screenshot(os.path.join(folder, f'report-{name}.png'))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=2)
