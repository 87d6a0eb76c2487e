# SPDX-License-Identifier: Apache-2.0
"""What `meson install` leaves runs where it lies, is found by GStreamer, and applications build against it with the lines of
pipelines/apps/README.md.

usage: installed.py BUILD SOURCE MODEL"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE, MODEL = sys.argv[1:4]
APPS = os.path.join(SOURCE, 'pipelines', 'apps')


def run(arguments, **options):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=240, **options)
    return done.returncode, done.stdout + done.stderr


def lines_that_begin(word):
    """The commands of the page's text blocks."""
    with open(os.path.join(APPS, 'README.md'), encoding='utf-8') as page:
        blocks = re.findall(r'^```text\n(.*?)^```', page.read(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if block.startswith(word)]


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='vartml-installed-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        status, text = run(['meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir', cls.folder])
        assert status == 0, text
        cls.prefix = os.path.join(cls.folder, 'usr', 'local')
        cls.compiler = os.path.join(cls.prefix, 'bin', 'vartml')
        status, own = run(['pkg-config', '--variable=pluginsdir', 'gstreamer-1.0'])
        assert status == 0, own
        cls.plugins = cls.folder + own.strip()
        pkgconfig = cls.below('pkgconfig')
        for name in os.listdir(pkgconfig):  # as if it had been installed there without DESTDIR
            with open(os.path.join(pkgconfig, name), encoding='utf-8') as f:
                text = f.read()
            with open(os.path.join(pkgconfig, name), 'w', encoding='utf-8') as f:
                f.write(text.replace('prefix=/usr/local', 'prefix=' + cls.prefix).replace(own.strip(), cls.plugins))
        cls.env = {'PATH': os.environ['PATH'], 'HOME': cls.folder, 'XDG_CACHE_HOME': os.path.join(cls.folder, 'cache'),
                   'GST_REGISTRY': os.path.join(cls.folder, 'registry.bin'), 'GST_PLUGIN_PATH': cls.plugins,
                   'PKG_CONFIG_PATH': pkgconfig, 'VARTML_COMPILER': cls.compiler}

    @classmethod
    def below(cls, name):
        for folder, folders, _ in os.walk(cls.prefix):
            if name in folders:
                return os.path.join(folder, name)
        raise AssertionError(name + ' was not installed')

    def test_the_program_finds_its_libraries(self):
        model = os.path.join(self.folder, 'm.rai')
        status, text = run([self.compiler, 'compile', MODEL, '-o', model], env=self.env)
        self.assertEqual(status, 0, text)
        status, text = run([self.compiler, 'run', model, '--iterations', '1'], env=self.env)
        self.assertEqual(status, 0, text)

    def test_the_doctor_finds_the_child_of_pipelines(self):
        status, text = run([self.compiler, 'doctor', '--pipeline', 'videotestsrc ! fakesink'], env=self.env)
        self.assertEqual(status, 0, text)
        self.assertIn('can be linked', text)

    def test_detect_finds_its_plugins_and_its_compiler(self):
        env = {name: value for name, value in self.env.items() if name not in ('GST_PLUGIN_PATH', 'VARTML_COMPILER')}
        env['GST_REGISTRY'] = os.path.join(self.folder, 'registry-detect.bin')
        picture, drawn = os.path.join(self.folder, 'grey.png'), os.path.join(self.folder, 'drawn.png')
        status, text = run(['gst-launch-1.0', '-q', 'videotestsrc', 'num-buffers=1', '!', 'pngenc', '!', 'filesink',
                            'location=' + picture], env=env)
        self.assertEqual(status, 0, text)
        status, text = run([self.compiler, 'detect', MODEL, picture, '-o', drawn], env=env)
        self.assertEqual(status, 0, text)
        self.assertIn('drawn into ' + drawn, text)

    def test_man_pages_and_completions_are_there(self):
        for name in ('share/man/man1/vartml.1', 'share/man/man1/vartml-detect.1', 'share/bash-completion/completions/vartml',
                     'share/zsh/site-functions/_vartml', 'share/fish/vendor_completions.d/vartml.fish'):
            self.assertGreater(os.path.getsize(os.path.join(self.prefix, name)), 100, name)

    def test_gstreamer_finds_the_plugins_and_their_origin_is_a_url(self):
        for element in ('vartmlinfer', 'vartmloverlay'):
            status, text = run(['gst-inspect-1.0', element], env=self.env)
            self.assertEqual(status, 0, text)
            self.assertIn(self.plugins, text)
            self.assertRegex(text, r'Origin URL +(file|https?)://')

    def test_plugins_lie_where_gstreamer_looks(self):
        self.assertEqual(sorted(os.listdir(self.plugins)), ['libgstvartml.so', 'libgstvartmlextra.so'])

    def test_what_remains_to_be_done_is_said(self):
        script = os.path.join(SOURCE, 'gst', 'installed.sh')
        env = {'PATH': self.folder}  # no ldconfig: this system is not changed
        sh = shutil.which('sh')
        for tool in ('id', 'dirname'):
            os.symlink(shutil.which(tool), os.path.join(self.folder, tool))
        status, text = run([sh, script, '/here', '/there'], env=env)
        self.assertEqual(status, 0, text)
        self.assertIn('export GST_PLUGIN_PATH=/here', text)
        self.assertEqual(run([sh, script, '/there', '/there'], env=env), (0, ''))
        status, text = run([sh, script, '/there', '/there', '/typelibs', '/libraries'], env=env)
        self.assertEqual((status, text.splitlines()[1:]), (0, ['    export GI_TYPELIB_PATH=/typelibs LD_LIBRARY_PATH=/libraries']))
        self.assertEqual(run([sh, script, '/here', '/there'], env={**env, 'DESTDIR': '/package'}), (0, ''))

    def test_applications_build_with_the_lines_of_their_page(self):
        self.vendors_package()
        # the line's first word, what of it is written otherwise, folder, program
        cases = [('g++', '', 'infer-sync', 'infer'), ('g++', 'vart-ml', 'infer-async', 'infer'),
                 ('gcc', '', 'read-metadata', 'read-metadata')]
        model = os.path.join(self.folder, 'app.rai')
        status, text = run([self.compiler, 'compile', MODEL, '-o', model], env=self.env)
        self.assertEqual(status, 0, text)
        for word, package, app, program in cases:
            lines = lines_that_begin(word)
            self.assertEqual(len(lines), 1)
            line = lines[0]
            if package:
                line = line.replace('--libs vartml)', f'--libs {package})')
                self.assertIn(package, line)
            work = os.path.join(self.folder, app)
            shutil.copytree(os.path.join(APPS, app), work)
            status, text = run(['sh', '-ec', line], cwd=work, env=self.env)
            self.assertEqual(status, 0, text)
            status, text = run([os.path.join(work, program), model], env=self.env_as_installed())
            self.assertEqual(status, 0, text)

    def test_a_program_is_built_where_nothing_is_installed(self):
        source = os.path.join(self.folder, 'uninstalled.cpp')
        with open(source, 'w', encoding='utf-8') as f:
            f.write('#include <vart/vart_runner_factory.hpp>\n#include <vartml/vartml.h>\nint main() {}\n')
        env = {**self.env, 'PKG_CONFIG_PATH': os.path.join(BUILD, 'meson-uninstalled')}
        status, text = run(['sh', '-ec', f'c++ -std=c++20 {source} -o {source}.out '
                            '$(pkg-config --cflags --libs vartml)'], env=env)
        self.assertEqual(status, 0, text)

    def env_as_installed(self):
        """ldconfig, which an installation runs, and Python know no folder of a test."""
        status, typelibs = run(['pkg-config', '--variable=typelibdir', 'gobject-introspection-1.0'])
        self.assertEqual(status, 0, typelibs)
        return {**self.env, 'LD_LIBRARY_PATH': os.path.dirname(self.env['PKG_CONFIG_PATH']),
                'GI_TYPELIB_PATH': self.folder + typelibs.strip()}

    def test_python_reads_metadata(self):
        model = os.path.join(self.folder, 'python.rai')
        status, text = run([self.compiler, 'compile', MODEL, '-o', model], env=self.env)
        self.assertEqual(status, 0, text)
        status, text = run([sys.executable, os.path.join(APPS, 'read-metadata', 'read_metadata.py'), model],
                           env=self.env_as_installed())
        self.assertEqual(status, 0, text)
        self.assertEqual(text.count('inferred, model'), 3, text)

    def vendors_package(self):
        """The file for pkg-config that -Dcompat_pc=true installs beside the other; the rest is the same."""
        build = os.path.join(self.folder, 'compat')
        pkgconfig = self.env['PKG_CONFIG_PATH']
        libdir = os.path.relpath(os.path.dirname(pkgconfig), self.prefix)
        status, text = run(['meson', 'setup', build, SOURCE, '--prefix', self.prefix, '--libdir', libdir, '-Dcompat_pc=true',
                            *(f'-D{part}=disabled' for part in ('gst', 'mqtt', 'tests', 'tools', 'xrt'))])
        self.assertEqual(status, 0, text)
        status, text = run(['meson', 'introspect', build, '--install-plan'])
        self.assertEqual(status, 0, text)
        file = os.path.join(build, 'meson-private', 'vart-ml.pc')
        self.assertIn(file, text)
        shutil.copy(file, pkgconfig)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
