#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `vartml` says of itself: help of a command, man pages, completions, and what a terminal sees that a pipe does not.

usage: manual.py vartml FOLDER_OF_MAN_PAGES MODEL.onnx
"""
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
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


def on_terminal(words, **more):
    """Exit status and what the program writes to a terminal as its standard error."""
    mine, its = pty.openpty()
    env = {**os.environ, 'TERM': 'xterm', **more}
    if 'NO_COLOR' not in more:
        env.pop('NO_COLOR', None)
    process = subprocess.Popen([PROGRAM, *words], env=env, stdout=subprocess.DEVNULL, stderr=its)
    os.close(its)
    text = b''
    while True:
        try:
            chunk = os.read(mine, 4096)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        text += chunk
    os.close(mine)
    return process.wait(), text.decode()


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


class Terminal(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.compile = ['compile', MODEL, '-o', os.path.join(kept.name, 'm.rai'), '--force']

    def test_progress_is_for_a_terminal(self):
        status, text = on_terminal(self.compile)
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r'compiling +\[#* *\] \d+ % ')
        self.assertIn('\r\x1b[K', text)  # and is wiped
        done = vartml(*self.compile)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        status, text = on_terminal(self.compile + ['--quiet'])
        self.assertEqual((status, text), (0, ''))

    def test_colours_are_for_a_terminal_that_wants_them(self):
        wrong = ['cook']
        self.assertIn('\x1b[1;31mERROR\x1b[0m: ', on_terminal(wrong)[1])
        for more in {'NO_COLOR': '1'}, {'TERM': 'dumb'}:
            self.assertIn('[vartml] ERROR: ', on_terminal(wrong, **more)[1])
        self.assertTrue(vartml(*wrong).stderr.startswith('[vartml] ERROR: '))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]], verbosity=2)
