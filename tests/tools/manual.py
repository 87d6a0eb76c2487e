#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `vartml` says of itself: help of a command, man pages, completions.

usage: manual.py vartml FOLDER_OF_MAN_PAGES MODEL.onnx
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

PROGRAM, PAGES, MODEL = (os.path.abspath(path) for path in sys.argv[1:4])


def vartml(*words):
    return subprocess.run([PROGRAM, *words], text=True, capture_output=True, check=False)


def said(*words):
    done = vartml(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands():
    return re.findall(r'^  ([a-z-]+)  +\S', said('--help').split('\n  help ')[0], re.MULTILINE)


class Manual(unittest.TestCase):
    def test_help_of_a_command_is_its_help(self):
        self.assertEqual(said('help', 'run'), said('run', '--help'))
        self.assertEqual(said('help'), said('--help'))
        self.assertEqual(said('-V'), said('--version'))
        done = vartml('help', 'cook')
        self.assertEqual(done.returncode, 2)
        self.assertIn("'cook' is not a command; known: bench", done.stderr)

    def test_each_command_has_a_page_with_each_of_its_options(self):
        self.assertIn('compile', commands())
        for command in commands():
            page = said('--man', command)
            with open(os.path.join(PAGES, f'vartml-{command}.1'), encoding='utf-8') as installed:
                self.assertEqual(installed.read(), page)
            self.assertTrue(page.startswith(f'.TH VARTML-{command.upper()} 1 '), page[:80])
            plain = page.replace('\\-', '-')
            for option in re.findall(r'^ +(?:-\w,\s*)?(--[a-z-]+)', said(command, '--help').split('Exit status')[0], re.MULTILINE):
                self.assertIn(option, plain, command)
            for line in page.splitlines():
                self.assertRegex(line, r'^(\.(TH|SH|TP|nf|fi)\b|[^.\']|\\&|$)', command)
        whole = said('--man')
        for command in commands():
            self.assertIn('vartml\\-' + command.replace('-', '\\-'), whole)

    def test_completions_know_commands_options_and_words(self):
        for shell in 'bash', 'zsh', 'fish':
            script = said('--completion', shell)
            for word in commands() + ['bf16', 'in-flight', 'f32']:
                self.assertIn(word, script, shell)
        done = vartml('--completion', 'tcsh')
        self.assertEqual((done.returncode, done.stderr.count('\n')), (2, 1))
        self.assertIn("'tcsh', expected bash, zsh or fish", done.stderr)

    @unittest.skipUnless(shutil.which('bash'), 'there is no bash')
    def test_bash_completes(self):
        for line, expected in [
                (['vartml', 'com'], ['compile']),
                (['vartml', 'help', 'ver'], ['verify']),
                (['vartml', 'run', '--numerics', ''], ['auto', 'f32', 'bf16']),
                (['vartml', 'run', '--save'], ['--save-outputs']),
                (['vartml', 'run', 'm'], [])]:
            words = ' '.join(f"'{word}'" for word in line)
            done = subprocess.run(['bash', '-c', said('--completion', 'bash') +
                                   f'COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; _vartml; printf "%s\\n" "${{COMPREPLY[@]}}"'],
                                  text=True, capture_output=True, check=True)
            self.assertEqual(done.stdout.split(), expected, line)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]], verbosity=2)
