#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands end by SIGINT, SIGTERM and SIGKILL at any moment: what they write is whole or not there, nothing of theirs is left
once they could say goodbye, and the next start works.

usage: kills.py vartml MODEL.onnx
VARTML_TEST_KILLS=N   moments per command instead of 12
"""
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))

from figures import keep  # noqa: E402

PROGRAM, MODEL = (os.path.abspath(path) for path in sys.argv[1:3])
MOMENTS = int(os.environ.get('VARTML_TEST_KILLS', '12')) // 3 * 3  # the last ends by SIGKILL
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
GST = shutil.which('gst-launch-1.0') and os.environ.get('GST_PLUGIN_PATH')


class Kills(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = kept.name
        self.random = random.Random(1)
        self.env = {**os.environ, 'XDG_CACHE_HOME': os.path.join(self.folder, 'cache'), 'TMPDIR': self.folder}

    def vartml(self, *words):
        return subprocess.run([PROGRAM, *words], cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)

    def names(self, folder='.'):
        return sorted(os.listdir(os.path.join(self.folder, folder)))

    def at_any_moment(self, words, clean, check):
        """Runs `words` whole once, then ends it at moments spread over that time. `check(signal)` looks at what is there."""
        begun = time.monotonic()
        done = subprocess.run(words, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)
        whole = time.monotonic() - begun
        self.assertEqual(done.returncode, 0, done.stderr)
        ended = 0
        for moment in range(MOMENTS):
            clean()
            how = SIGNALS[moment % len(SIGNALS)]
            child = subprocess.Popen(words, cwd=self.folder, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     start_new_session=True)
            time.sleep(self.random.uniform(0, whole))
            child.send_signal(how)
            ended += child.wait(60) != 0
            check(how)
        print(f'{os.path.basename(words[0])} {words[1]}: {ended} of {MOMENTS} ended before they were done')
        self.assertGreater(ended, 0)
        done = subprocess.run(words, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        keep('kills-' + self.id().rsplit('.test_', 1)[1].replace('_', ' '), {'moments': MOMENTS, 'ended': ended})

    def compile_to(self, out):
        def clean():
            for name in self.names():  # also what an earlier SIGKILL left
                path = os.path.join(self.folder, name)
                if name != 'cache':
                    (shutil.rmtree if os.path.isdir(path) else os.remove)(path)

        def check(how):
            if os.path.exists(os.path.join(self.folder, out)):
                done = self.vartml('inspect', out)
                self.assertEqual(done.returncode, 0, f'{how.name}: {done.stderr}')
            left = [name for name in self.names() if name not in (out, 'cache')]
            if how != signal.SIGKILL:
                self.assertEqual(left, [], how.name)
            for name in left:  # nothing but what a name in front says is nobody's
                self.assertTrue(name.startswith('.'), left)

        self.at_any_moment([PROGRAM, 'compile', MODEL, '-o', out], clean, check)
        self.assertEqual([name for name in self.names() if name not in (out, 'cache')], [], 'the next start takes away what was left')

    def test_compile_to_one_file(self):
        self.compile_to('m.rai')

    def test_compile_to_a_folder(self):
        self.compile_to('m')

    def test_compile_to_an_archive(self):
        self.compile_to('m.tar.gz')

    def test_run_with_outputs(self):
        self.assertEqual(self.vartml('compile', MODEL, '-o', 'm.rai').returncode, 0)

        def clean():
            shutil.rmtree(os.path.join(self.folder, 'out'), ignore_errors=True)

        def check(how):
            for path in glob.glob(os.path.join(self.folder, 'out', '*.npy')):
                with open(path, 'rb') as f:
                    head = f.read(10)
                size = int.from_bytes(head[8:10], 'little') + 10 + 5 * 2100 * 4
                self.assertEqual((head[:6], os.path.getsize(path)), (b'\x93NUMPY', size), how.name)

        self.at_any_moment([PROGRAM, 'run', 'm.rai', '-n', '5', '--save-outputs', 'out'], clean, check)

    @unittest.skipUnless(GST, 'there is no GStreamer')
    def test_a_video_that_is_drawn(self):
        """The file is whole or not there, and the first signal ends the program, also while it starts."""
        model, drawn, old = (os.path.join(self.folder, name) for name in ('m.rai', os.path.join('out', 'drawn.webm'), 'old.webm'))
        self.assertEqual(self.vartml('compile', MODEL, '-o', model).returncode, 0)
        subprocess.run(['gst-launch-1.0', '-q', 'videotestsrc', 'num-buffers=40', '!', 'video/x-raw,width=64,height=64', '!', 'vp8enc',
                        '!', 'webmmux', '!', 'filesink', f'location={old}'], env=self.env, check=True)

        def clean():
            shutil.rmtree(os.path.join(self.folder, 'out'), ignore_errors=True)
            os.mkdir(os.path.join(self.folder, 'out'))

        def check(how):
            left = [name for name in self.names('out') if name != 'drawn.webm']
            if how != signal.SIGKILL:
                self.assertEqual(left, [], how.name)
            for name in left:
                self.assertTrue(name.startswith('.drawn.webm.tmp-'), left)
            if os.path.exists(drawn):
                done = self.vartml('detect', model, drawn)
                self.assertEqual(done.returncode, 0, f'{how.name}: {done.stderr}')

        clean()
        self.at_any_moment([PROGRAM, 'detect', model, old, '-o', drawn], clean, check)
        self.assertEqual(self.names('out'), ['drawn.webm'], 'the next start takes away what was left')

    @unittest.skipUnless(GST, 'there is no GStreamer')
    def test_a_pipeline_that_compiles_and_keeps_records(self):
        """The cache holds a whole model or none, a second pipeline has a result on every frame; the spool can be read."""
        spool = os.path.join(self.folder, 'spool')
        words = ['gst-launch-1.0', '-q', 'videotestsrc', 'num-buffers=60', '!', 'vartmlinfer', f'model={MODEL}', 'cache-dir=kept', '!',
                 'vartmldecode', '!', 'vartmlpublish', 'method=mqtt', 'address=127.0.0.1', 'port=9', 'add-empty=true', 'drain-timeout=0',
                 f'spool-dir={spool}', '!', 'fakesink']

        def clean():
            for name in ('kept', 'spool', 'cache'):
                shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)

        def check(how):
            for model in glob.glob(os.path.join(self.folder, 'kept', '[!.]*')):
                if os.path.exists(os.path.join(model, 'model.vmf')):
                    done = self.vartml('inspect', model)
                    self.assertEqual(done.returncode, 0, f'{how.name}: {done.stderr}')
            for segment in glob.glob(os.path.join(spool, '*.spool')):
                with open(segment, 'rb') as f:
                    *lines, _ = f.read().split(b'\n')
                for line in lines:
                    self.assertEqual(int(line[:8], 16), len(line) - 18, f'{how.name}: {line[:60]}')

        self.at_any_moment(words, clean, check)


unittest.main(argv=[sys.argv[0]])
