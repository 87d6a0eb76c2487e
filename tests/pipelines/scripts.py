# SPDX-License-Identifier: Apache-2.0
"""The scripts of pipelines/ on short clips of known pictures. What they draw is looked for in the picture; what they
print is read.

usage: scripts.py SCRIPTS MODELS     MODELS is the folder of real models and pictures; absent: the tests are skipped"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))

from ports import free_port  # noqa: E402

SCRIPTS, MODELS = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)
FRAMES = 12
if compiler := os.environ.get('VARTML_COMPILER'):
    os.environ['PATH'] = os.path.dirname(compiler) + os.pathsep + os.environ['PATH']

# name: model, arguments of the compiler
COMPILED = {
    'yolox': ['yolox_nano_416', '--decoder', 'yolox', '--labels', MODELS / 'images/coco.names'],
    'yunet': ['yunet_n_320', '--decoder', 'yunet'],
    'selfie': ['selfie_landscape', '--decoder', 'segment'],
    'super': ['super_resolution_10', '--scale', '0.00392157'],
    'hand': ['hand_landmark', '--decoder', 'landmarks'],
    'reid': ['person_reid_0287', '--decoder', 'embedding', '--channels', 'bgr', '--mean', '0', '--scale', '1', '--batch-size', '4'],
    'goldfish': ['shufflenet_v2_int8', '--decoder', 'classify'],
}
PICTURES = {'dog': 'yolox_dog', 'faces': 'ultraface_1', 'selfie': 'selfie_test', 'palm': 'palm1', 'goldfish': 'goldfish'}


def run(*command, timeout=120, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout, **options)
    assert done.returncode == 0, f'{command}: {done.stderr}{done.stdout[-2000:]}'
    return done.stdout


def gst(*words, **options):
    return run('gst-launch-1.0', '-q', *words, **options)


def clip(name):
    """A video of one picture."""
    file = FOLDER / f'{name}.mp4'
    if not file.exists():
        gst('filesrc', f'location={MODELS}/images/{PICTURES[name]}.jpg', '!', 'decodebin', '!', 'videoconvert', '!', 'videoscale',
            '!', 'video/x-raw,width=640,height=480,pixel-aspect-ratio=1/1', '!', 'imagefreeze', f'num-buffers={FRAMES}', '!',
            'video/x-raw,framerate=10/1', '!', 'videoconvert', '!', 'x264enc', '!', 'mp4mux', '!', 'filesink', f'location={file}')
    return file


def model(name):
    file = FOLDER / f'{name}.rai'
    if not file.exists():
        source, *arguments = COMPILED[name]
        run('vartml', 'compile', MODELS / source / 'model.onnx', '-o', file, *arguments)
    return file


def frames(video):
    """All pictures, RGB, one after another."""
    out = FOLDER / 'raw'
    gst('filesrc', f'location={video}', '!', 'decodebin', '!', 'videoconvert', '!', 'video/x-raw,format=RGB', '!', 'filesink',
        f'location={out}')
    return out.read_bytes()


def changed(before, after, box, height=480, width=640):
    """The share of pixels inside a box of the last frame whose colour is another one."""
    x0, y0, x1, y1 = box
    size, count = width * height * 3, 0
    a, b = before[-size:], after[-size:]
    for y in range(y0, y1):
        for x in range(x0, x1):
            i = (y * width + x) * 3
            count += max(abs(a[i + c] - b[i + c]) for c in range(3)) > 48
    return count / ((x1 - x0) * (y1 - y0))


class Refusals(unittest.TestCase):
    def test_an_encoder_needs_a_file(self):
        done = subprocess.run(['sh', SCRIPTS / 'roi.sh', 'M', 'V'], env=os.environ | {'ENCODER': 'x264enc'}, capture_output=True, text=True,
                              timeout=60)
        self.assertEqual((done.returncode, done.stderr.count('\n')), (2, 1))
        self.assertIn('ENCODER needs OUT.mp4', done.stderr)

    def test_a_file_that_is_read_is_not_written(self):
        for script, *words in [('detect.sh', 'M', 'V', 'V'), ('faces.sh', 'M', 'V', 'V'), ('segment.sh', 'M', 'V', 'V'),
                               ('pose.sh', 'M', 'V', 'V'), ('picture.sh', 'M', 'V', 'V'), ('join.sh', 'M', 'V', 'V'),
                               ('tiles.sh', 'M', 'V', '2x2', 'V'), ('ocr.sh', 'M', 'M', 'V', 'V'), ('roi.sh', 'M', 'V', 'V'),
                               ('gallery.sh', 'M', 'M', 'G', 'V', 'V'),
                               ('zones.sh', 'M', 'V', '', '', 'V'), ('side-by-side.sh', 'M', 'V', 'W', 'W'),
                               ('four-cameras.sh', 'M', 'V'), ('record.sh', 'M', 'V', 'F')]:
            with self.subTest(script), tempfile.TemporaryDirectory() as folder:
                files = {word: pathlib.Path(folder) / f'a {word}' for word in 'MVWF'}
                files['F'].mkdir()
                (files['F'] / 'detections.jsonl').write_text('as it was')
                for word in 'MVW':
                    files[word].write_text('as it was')
                done = subprocess.run(['sh', SCRIPTS / script, *(files.get(word, word) for word in words)],
                                      env=os.environ | ({'OUT': str(files['V'])} if script == 'four-cameras.sh' else {}),
                                      capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn('would be lost', done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                kept = [files['M'], files['V'], files['W'], files['F'] / 'detections.jsonl']
                self.assertEqual([file.read_text() for file in kept], ['as it was'] * 4)


@unittest.skipUnless(MODELS.is_dir(), f'{MODELS} is not there')
class Scripts(unittest.TestCase):
    def script(self, name, *arguments, **options):
        return run('sh', SCRIPTS / name, *arguments, **options)

    def records(self, text):
        return [json.loads(line) for line in text.splitlines()]

    def test_what_is_drawn_is_in_the_picture(self):
        # script, model, clip, where something is drawn, least share there, where nothing is
        cases = [
            ('detect.sh', 'yolox', 'dog', (100, 160, 280, 460), 0.02, (500, 300, 640, 480)),
            ('faces.sh', 'yunet', 'faces', (40, 20, 600, 320), 0.005, (0, 440, 640, 480)),
            ('segment.sh', 'selfie', 'selfie', (150, 250, 400, 400), 0.3, (480, 100, 640, 400)),
            ('pose.sh', 'hand', 'palm', (130, 100, 510, 420), 0.0003, (0, 0, 640, 60)),
        ]
        for script, name, picture, where, share, nowhere in cases:
            with self.subTest(script):
                out = FOLDER / f'out {script}.mp4'  # names may have spaces
                self.script(script, model(name), clip(picture), out)
                before, after = frames(clip(picture)), frames(out)
                self.assertEqual(len(after), len(before), 'as many frames')
                self.assertGreater(changed(before, after, where), share)
                self.assertLess(changed(before, after, nowhere), 0.001)

    def test_a_picture_of_odd_height_becomes_a_video(self):
        # 4:2:0 has half as many lines of colour, which H.264 cannot have of 715.
        picture, folder = MODELS / 'images' / 'ultraface_1.jpg', FOLDER / 'odd'
        for script, out in [('faces.sh', FOLDER / 'odd.mp4'), ('join.sh', FOLDER / 'odd.mp4'), ('record.sh', folder)]:
            with self.subTest(script):
                self.script(script, model('yunet'), picture, out)
                self.assertGreater(len(frames(out / 'video-00000.mp4' if out == folder else out)), 1000 * 700 * 3)

    def test_classify_prints_the_best_classes(self):
        records = self.records(self.script('classify.sh', model('goldfish'), clip('goldfish')))
        self.assertEqual(len(records), FRAMES)
        for record in records:
            self.assertEqual(record['classes'][0]['label'], 'goldfish')  # given: ImageNet, which nothing else names
            self.assertEqual(len(record['classes']), 3)

    def test_a_warning_reaches_the_user_and_not_the_records(self):
        # Nobody says how the ONNX file takes its pictures.
        done = subprocess.run(['sh', SCRIPTS / 'classify.sh', MODELS / 'shufflenet_v2_int8/model.onnx', clip('goldfish')],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count('neither model nor sidecar says so'), 1, done.stderr)
        self.assertNotIn('\x1b', done.stderr)
        self.assertEqual(len(self.records(done.stdout)), FRAMES)

    def test_tiles_find_what_is_too_small_in_the_whole_frame(self):
        # Four dogs of 160x120 at the seams of 4x3 tiles of a 1920x1440 picture: 35 pixels wide where the model sees it all.
        places = [(400, 300), (880, 420), (1300, 880), (200, 900)]
        video, words, pads = FOLDER / 'small dogs.mp4', [], []
        for n, (x, y) in enumerate(places, 1):
            pads += [f'sink_{n}::xpos={x}', f'sink_{n}::ypos={y}', f'sink_{n}::width=160', f'sink_{n}::height=120']
            words += ['filesrc', f'location={clip("dog")}', '!', 'decodebin', '!', 'videoconvert', '!', f'all.sink_{n}']
        gst('compositor', 'name=all', 'background=black', *pads, '!', 'video/x-raw,format=I420,width=1920,height=1440', '!',
            'x264enc', 'pass=quant', 'quantizer=10', '!', 'mp4mux', '!', 'filesink', f'location={video}', 'videotestsrc',
            f'num-buffers={FRAMES}', 'pattern=solid-color', 'foreground-color=0xff607060', '!',
            'video/x-raw,width=1920,height=1440,framerate=10/1', '!', 'all.sink_0', *words)
        whole, tiled = FOLDER / 'whole.mp4', FOLDER / 'tiled.mp4'
        self.script('detect.sh', model('yolox'), video, whole)
        self.script('tiles.sh', model('yolox'), video, '4x3', tiled)
        before = frames(video)
        for out, least in [(whole, 0), (tiled, 4)]:
            after = frames(out)
            self.assertEqual(len(after), len(before))
            drawn = [changed(before, after, (x, y, x + 160, y + 120), 1440, 1920) > 0.02 for x, y in places]
            self.assertEqual(sum(drawn), least, drawn)

    def test_zones_draws_and_tells_who_is_where(self):
        out = FOLDER / 'zones.mp4'
        zones = 'left=0.1,0.2 0.5,0.2 0.5,1 0.1,1; right=0.6,0.1 1,0.1 1,1 0.6,1'
        records = self.records(self.script('zones.sh', model('yolox'), clip('dog'), zones, 'gate=0.55,1 0.55,0', out))
        self.assertEqual(len(records), FRAMES)
        self.assertIn(('enter', 'left', 'dog'), [(e['event'], e['zone'], e['label']) for e in records[0]['zone_events']])
        dogs = [thing['zones'] for record in records for thing in record['objects'] if thing['label'] == 'dog']
        self.assertEqual(dogs, [[{'zone': 'left', 'dwell_ms': 100 * n}] for n in range(FRAMES)])
        self.assertEqual({zone['zone']: zone['in'] for zone in records[-1]['zones']}['gate'], 0)
        before, after = frames(clip('dog')), frames(out)
        self.assertGreater(changed(before, after, (352, 380, 354, 440)), 0.5)  # the line
        records = self.records(self.script('zones.sh', model('yolox'), clip('dog'), '', 'gate=0.55,1 0.55,0', out))
        self.assertEqual([zone['zone'] for zone in records[-1]['zones']], ['gate'])

    def test_two_stage_gives_every_box_an_attribute(self):
        records = self.records(self.script('two-stage.sh', model('yolox'), model('goldfish'), clip('dog')))
        self.assertEqual(len(records), FRAMES)
        for record in records:
            self.assertIn('dog', [thing['label'] for thing in record['objects']])
            for thing in record['objects']:
                self.assertEqual(len(thing['attributes']), 1)

    def test_picture_shows_what_the_model_draws(self):
        # Three times as large, brightness by the model, colours of the frame; then a mask, white where the person is.
        out = FOLDER / 'large.mp4'
        self.script('picture.sh', model('super'), clip('dog'), out)
        before, after = frames(clip('dog')), frames(out)
        self.assertGreater(len(after), len(before) * 1.4)
        for channel in range(3):
            means = [sum(pixels[channel::3]) / len(pixels[channel::3]) for pixels in (before, after)]
            self.assertAlmostEqual(*means, delta=8)
        self.script('picture.sh', model('selfie'), clip('selfie'), out, env=dict(os.environ, COLORMAP='gray'))
        mask = frames(out)
        size = len(mask) // FRAMES
        self.assertEqual(len(mask) % FRAMES, 0)
        width, height = 256, size // 3 // 256
        at = [mask[(int(y * height) * width + int(x * width)) * 3] for x, y in ((0.43, 0.75), (0.9, 0.5), (0.05, 0.1))]
        self.assertTrue(at[0] > 200 and at[1] < 50 and at[2] < 50, at)

    @unittest.skipUnless(importlib.util.find_spec('onnx'), 'Python has no onnx to make a model with')
    def test_ocr_reads_every_box(self):
        """The recogniser is one whose scores are known: whatever it sees, it reads the same."""
        words = ['', 'A', 'A', '', 'A', '7', '7', '', ' ', 'Z']  # a step each; what comes twice in a row counts once
        alphabet = ['', *'A7Z0123456', ' ']  # blank, dictionary, space
        scores = [[9.0 if character == step else 0.0 for character in alphabet] for step in words]
        file, dictionary, reader = FOLDER / 'reader.onnx', FOLDER / 'dictionary.txt', FOLDER / 'reader.rai'
        dictionary.write_text('\n'.join(alphabet[1:-1]) + '\n')
        from onnx import TensorProto as Type, helper, save
        values = helper.make_tensor('scores', Type.FLOAT, (1, len(words), len(alphabet)), [v for row in scores for v in row])
        nodes = [helper.make_node('ReduceMean', ['x'], ['mean'], axes=[1, 2, 3], keepdims=0), helper.make_node('Sub', ['mean', 'mean'], ['zero']),
                 helper.make_node('Add', ['zero', 'scores'], ['sum']), helper.make_node('Softmax', ['sum'], ['steps'], axis=2)]
        graph = helper.make_graph(nodes, 'reader', [helper.make_tensor_value_info('x', Type.FLOAT, (1, 3, 16, 64))],
                                  [helper.make_tensor_value_info('steps', Type.FLOAT, (1, len(words), len(alphabet)))], [values])
        save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid('', 13)]), file)
        run('vartml', 'compile', file, '-o', reader, '--decoder', 'ctc-text', '--labels', dictionary, '--batch-size', 4)
        out = FOLDER / 'read.mp4'
        records = self.records(self.script('ocr.sh', model('yolox'), reader, clip('dog'), out))
        self.assertEqual(len(records), FRAMES)
        for record in records:
            self.assertIn('dog', [thing['label'] for thing in record['objects']])
            for thing in record['objects']:
                self.assertEqual(thing['text']['text'], 'AA7 Z')
                self.assertAlmostEqual(thing['text']['score'], 0.9987, delta=0.01)
        self.assertGreater(changed(frames(clip('dog')), frames(out), (100, 160, 280, 460)), 0.02)

    def test_gallery_names_who_was_enrolled(self):
        gallery, out = FOLDER / 'known people.txt', FOLDER / 'named.mp4'
        words = [model('yolox'), model('reid'), gallery, clip('faces')]
        records = self.records(self.script('gallery.sh', *words, env=dict(os.environ, ENROL='ann')))
        ann = {tuple(thing['box']) for thing in records[-1]['objects'] if 'ann' in [a['label'] for a in thing['attributes']]}
        self.assertEqual(len(ann), 1)
        # Another run, with the file alone, and with all that the detector finds.
        records = self.records(self.script('gallery.sh', *words, out, env=dict(os.environ, THRESHOLD='0.9')))
        self.assertEqual(len(records), FRAMES)
        self.assertGreater(len(records[-1]['objects']), 3)
        for record in records:
            names = [(tuple(thing['box']), a['label']) for thing in record['objects'] for a in thing.get('attributes', [])]
            self.assertEqual([name for _, name in names], ['ann'])
        self.assertGreater(changed(frames(clip('faces')), frames(out), (40, 20, 600, 320)), 0.005)

    def test_roi_draws_the_regions(self):
        out = FOLDER / 'regions.mp4'
        self.script('roi.sh', model('yunet'), clip('faces'), out)
        before, after = frames(clip('faces')), frames(out)
        self.assertEqual(len(after), len(before))
        self.assertGreater(changed(before, after, (40, 20, 600, 320)), 0.005)
        # An encoder of one's own gets them instead, and nothing is drawn.
        self.script('roi.sh', model('yunet'), clip('faces'), out, env=dict(os.environ, ENCODER='x264enc pass=quant quantizer=10'))
        self.assertLess(changed(before, frames(out), (40, 20, 600, 320)), 0.001)

    def test_metrics_are_there_while_the_video_plays(self):
        port = free_port()
        script = subprocess.Popen(['sh', SCRIPTS / 'metrics.sh', model('hand'), clip('palm'), str(port)], start_new_session=True)
        try:
            while script.poll() is None:
                try:
                    with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=30) as reply:
                        text = reply.read().decode()
                except urllib.error.URLError:
                    continue  # not there yet
                if 'vartml_infer_inferences{' in text:
                    return
            self.fail('ended before it told anything')
        finally:
            if script.poll() is None:
                os.killpg(script.pid, 15)
            script.wait(60)

    def test_track_count_counts_an_object_once(self):
        counts = dict(line.split() for line in self.script('track-count.sh', model('yolox'), clip('dog')).splitlines())
        self.assertEqual((counts['dog'], counts['bicycle']), ('1', '1'))

    def test_multi_stream_keeps_the_streams_apart(self):
        records = self.records(self.script('multi-stream.sh', model('yolox'), clip('dog'), clip('faces'), clip('dog')))
        for stream, label in [('video-0', 'dog'), ('video-1', 'person'), ('video-2', 'dog')]:
            own = [r for r in records if r['stream'] == stream]
            self.assertEqual([r['frame_seq'] for r in own], list(range(FRAMES)), stream)
            for record in own:
                self.assertIn(label, [thing['label'] for thing in record['objects']])

    def test_record_writes_video_and_detections(self):
        folder = FOLDER / 'records'
        self.script('record.sh', model('yolox'), clip('dog'), folder)
        self.assertEqual(len(frames(folder / 'video-00000.mp4')), FRAMES * 640 * 480 * 3)
        self.assertEqual(len(self.records((folder / 'detections.jsonl').read_text())), FRAMES)

    def test_benchmark_measures_the_model_and_the_video(self):
        text = self.script('benchmark.sh', model('hand'), clip('dog'))
        self.assertIn('Inf/Sec', text)
        self.assertRegex(text, r'video: 12 frames in [0-9.]+ s')

    def test_a_short_clip_in_a_format_that_vartmlinfer_does_not_take_is_converted(self):
        one = FOLDER / 'one.mp4'
        gst('filesrc', f'location={clip("dog")}', '!', 'decodebin', '!', 'videoconvert', '!', 'video/x-raw,format=Y444', '!', 'videorate',
            'max-rate=1', '!', 'x264enc', '!', 'mp4mux', '!', 'filesink', f'location={one}')
        count = len(frames(one)) // (640 * 480 * 3)
        self.assertLess(count, 3)
        self.assertEqual(len(self.records(self.script('classify.sh', model('goldfish'), one))), count)
        for script in ['detect.sh', 'join.sh']:
            with self.subTest(script):
                out = FOLDER / 'one out.mp4'
                self.script(script, model('yolox'), one, out)
                self.assertEqual(len(frames(out)), len(frames(one)))

    def test_a_pipeline_that_fails_is_the_scripts_failure(self):
        for script in ['benchmark.sh', 'track-count.sh']:
            done = subprocess.run(['sh', SCRIPTS / script, model('hand'), FOLDER / 'none.mp4'], capture_output=True, text=True,
                                  timeout=60)
            with self.subTest(script):
                self.assertNotEqual(done.returncode, 0)
                self.assertIn('No such file', done.stderr)
                self.assertNotIn('frames in', done.stdout)

    def test_join_draws_on_the_large_picture(self):
        out = FOLDER / 'joined.mp4'
        self.script('join.sh', model('yolox'), clip('dog'), out)
        before, after = frames(clip('dog')), frames(out)
        self.assertEqual(len(after), len(before))
        self.assertGreater(changed(before, after, (100, 160, 280, 460)), 0.02)

    def test_the_python_program_of_the_readme_ends_with_what_went_wrong(self):
        text = (SCRIPTS.parent / 'README.md').read_text()
        begin = text.index("cat >out/boxes.py <<'END'\n") + len("cat >out/boxes.py <<'END'\n")
        program = text[begin:text.index('\nEND\n', begin)]
        absent = FOLDER / 'absent'
        for name, of, words in [('model', (absent, clip('dog')), 'Could not load the model'),
                                ('video', (model('yolox'), absent), 'not found')]:
            with self.subTest(absent=name):
                done = subprocess.run([sys.executable, '-c', program, *map(str, of)], capture_output=True, text=True, timeout=120)
                self.assertEqual((done.returncode, done.stdout), (1, ''))
                self.assertIn(words, done.stderr)

    def test_side_by_side_draws_and_prints_both(self):
        out = FOLDER / 'both.mp4'
        records = self.records(self.script('side-by-side.sh', model('yolox'), clip('dog'), clip('faces'), out))
        self.assertEqual({r['stream'] for r in records}, {'0', '1'})
        self.assertIn('dog', {o['label'] for r in records if r['stream'] == '0' for o in r['objects']})
        self.assertNotIn('dog', {o['label'] for r in records if r['stream'] == '1' for o in r['objects']})
        self.assertEqual({o['track'] for r in records if r['stream'] == '0' for o in r['objects'] if o['label'] == 'dog'}, {1})
        picture = frames(out)[-1280 * 480 * 3:]
        for n, (name, box) in enumerate({'dog': (100, 160, 280, 460), 'faces': (40, 20, 600, 400)}.items()):
            tile = b''.join(picture[(y * 1280 + n * 640) * 3:][:640 * 3] for y in range(480))
            self.assertGreater(changed(frames(clip(name))[-640 * 480 * 3:], tile, box), 0.02)

    def test_four_cameras_each_have_their_boxes_in_their_tile(self):
        out = FOLDER / 'four.mp4'
        names = ['dog', 'faces', 'faces', 'dog']
        self.script('four-cameras.sh', model('yolox'), *map(clip, names), env=dict(os.environ, OUT=str(out)))
        picture = frames(out)[-1280 * 720 * 3:]
        boxes = {'dog': (100, 120, 280, 345), 'faces': (40, 15, 600, 300)}
        for n, name in enumerate(names):
            with self.subTest(camera=n):
                rows = range(n // 2 * 360, n // 2 * 360 + 360)
                tile = b''.join(picture[(y * 1280 + n % 2 * 640) * 3:][:640 * 3] for y in rows)
                file = FOLDER / 'small'
                gst('filesrc', f'location={clip(name)}', '!', 'decodebin', '!', 'videoconvertscale', '!',
                    'video/x-raw,format=RGB,width=640,height=360,pixel-aspect-ratio=1/1', '!', 'filesink', f'location={file}')
                self.assertGreater(changed(file.read_bytes(), tile, boxes[name], height=360), 0.02)

    def test_four_cameras_take_size_rate_encoder_and_duration(self):
        out = FOLDER / 'small.mp4'
        # The encoder takes 4:2:0 alone, as most players do.
        self.script('four-cameras.sh', model('yolox'), *[clip('dog')] * 2,
                    env=dict(os.environ, OUT=str(out), SIZE='320x240', RATE='5', DURATION='1', ENCODER='openh264enc complexity=low'))
        self.assertEqual(len(frames(out)), 5 * 320 * 240 * 3)

    def test_rtsp_takes_a_stream_and_gives_one_on(self):
        """A server of GStreamer's on loopback is the camera, and takes what the script sends."""
        server = subprocess.Popen([sys.executable, pathlib.Path(__file__).with_name('rtsp_server.py')], stdout=subprocess.PIPE, text=True)
        script = None
        try:
            port = int(server.stdout.readline())
            script = subprocess.Popen(['sh', SCRIPTS / 'rtsp.sh', model('yolox'), f'rtsp://127.0.0.1:{port}/camera',
                                       f'rtsp://127.0.0.1:{port}/taken'], start_new_session=True)
            self.assertEqual(server.stdout.readline().strip(), 'taken 10 frames')
        finally:
            if script:
                os.killpg(script.pid, 15)
                script.wait(30)
            server.terminate()
            server.wait(30)
            server.stdout.close()

    def test_sources_come_and_go_while_the_others_run(self):
        app = subprocess.Popen([os.environ['VARTML_MANY_SOURCES'], model('yolox')], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, bufsize=1)

        seen = []

        def wait_for(*words):
            late = threading.Timer(60, app.kill)
            late.start()
            try:
                while line := app.stdout.readline():
                    seen.append(line)
                    if all(word in line for word in words):
                        return line
            finally:
                late.cancel()
            self.fail(f'the program ended, or was ended after 60 s, before {words}: {app.stderr.read()}{"".join(seen[-20:])}')

        live = 'rtsp://127.0.0.1'
        server = subprocess.Popen([sys.executable, pathlib.Path(__file__).with_name('rtsp_server.py')], stdout=subprocess.PIPE,
                                  text=True)
        try:
            live += f':{int(server.stdout.readline())}/camera'
            app.stdin.write(f'add {live}\nadd {clip("dog")}\n')  # one that goes on, one that ends
            wait_for('source 1 frame 11:', 'dog')
            wait_for('source 1 has ended')
            app.stdin.write('remove 1\n')
            wait_for('source 1 is gone')
            app.stdin.write(f'add {clip("faces")}\nremove 0\n')
            wait_for('source 0 is gone')
            wait_for('source 2 frame 11:', 'person')
            app.stdin.write('add /does/not/exist.mp4\n')
            wait_for('source 3 is gone')  # its error stopped nobody
            app.stdin.write(f'remove 9\nadd {clip("dog")}\n')
            wait_for('source 4 frame 11:', 'dog')
            app.stdin.write('quit\n')
            _, errors = app.communicate(timeout=60)
            self.assertEqual(app.returncode, 0)
            self.assertIn('there is no source 9', errors)
            self.assertIn('source 3', errors)
        finally:
            app.kill()
            app.wait()
            server.terminate()
            server.wait()
            server.stdout.close()

    def test_every_script_says_how_it_is_used(self):
        for script in SCRIPTS.glob('*.sh'):
            lines = script.read_text().splitlines()
            self.assertTrue(any(line.startswith(f'#   {script.name} ') for line in lines), script)
            self.assertIn(f'[{script.name}]({script.name})', (SCRIPTS / 'README.md').read_text())
            self.assertLess(len(lines), 40)

    def test_without_its_arguments_a_script_says_how_it_is_used(self):
        for script in SCRIPTS.glob('*.sh'):
            words = next(line for line in script.read_text().splitlines() if line.startswith('#   ')).split()[2:]
            given = [word for word in words if not word.startswith('[')][1:]  # one too few
            done = subprocess.run(['sh', script, *given], capture_output=True, text=True, timeout=30)
            with self.subTest(script.name):
                self.assertEqual((done.returncode, done.stdout), (2, ''))
                self.assertEqual(done.stderr, f'usage: {script.name} {" ".join(words)}\n')


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
