# SPDX-License-Identifier: Apache-2.0
"""Every decoder on a real picture. There are no models of most families to test with, so the tensors come from encoders.py
and priors.py, which write what is on the picture (scenes.py) by the published formulas; a model says them whatever it is
shown. Compiled, run, decoded, drawn: what vartmlpublish writes is what is on the picture.

usage: decode_pictures.py MODELS [NAME...]
    MODELS is the folder of real models and pictures; absent: the tests are skipped. NAME: only rows with this in their name.
    With VARTML_PICTURES=FOLDER the drawn pictures are kept there."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True  # the sources stay as they are
import rows
import scenes
from constant_model import constant_model

MODELS, NAMES = pathlib.Path(sys.argv[1]), sys.argv[2:]
WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)
KEPT = pathlib.Path(os.environ.get('VARTML_PICTURES', WORK.name))
# How the picture is fitted, the size of the frame, and in which view the tensors come.
COMBINATIONS = [('letterbox', (640, 480), 'cpu'), ('letterbox', (481, 640), 'hw'), ('stretch', (640, 480), 'hw'),
                ('stretch', (1024, 576), 'cpu')]


def run(*command):
    words = [str(word) for word in command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            err, out = 'stands still: ' + where(process.pid), ''
            process.kill()
        assert process.wait() == 0, f'{" ".join(words)}: {err}{out[-2000:]}'


def where(pid):
    """What each thread of a process waits for, where gdb is there to ask."""
    try:
        return subprocess.run(['gdb', '-p', str(pid), '-batch', '-ex', 'thread apply all backtrace 80'], capture_output=True, text=True,
                              timeout=60, check=False).stdout
    except (FileNotFoundError, subprocess.TimeoutExpired) as e:
        return str(e)


def sidecar(row):
    """Where the options of the compiler are not enough; else nothing."""
    fed = row.decoder == 'detr'
    if not (row.lines or row.outputs or fed):
        return ''
    lines = ['[modelinfo]', 'version=1.0', f'x-vartml-decoder={row.decoder}', *row.lines]
    if row.labels:
        lines.append(f'x-vartml-labels={row.name}.labels')
    for output in row.outputs:
        name, keys = output.split(':')
        lines += [f'[{name}]', 'dir=output', keys]
    if fed:
        lines += ['[orig_target_sizes]', 'dir=input', 'x-vartml-feed=frame-size']
    return '\n'.join(lines) + '\n'


class Case:
    """One row, fitted in one way."""

    def __init__(self, row, mode, frame, view):
        self.row, self.frame, self.view = row, frame, view
        self.mode = row.mode if mode == 'letterbox' else mode
        size = row.size
        if row.same_aspect and mode == 'stretch':
            size = (640, 480) if frame == (640, 480) else (512, 288)
        self.fit, self.size = scenes.Fit(self.mode, frame, size), size
        self.truth = row.scene.at(*frame)
        self.name = f'{row.name} {self.mode} {frame[0]}x{frame[1]}'.replace(' ', '-').replace(',', '')
        self.compiled, self.record = FOLDER / f'{self.name}.rai', FOLDER / f'{self.name}.jsonl'

    def compile(self):
        outputs = self.row.encode([self.fit.thing(t) for t in self.truth], self.size, len(self.row.scene.labels))
        file = FOLDER / f'{self.name}.onnx'
        constant_model(file, outputs, self.size, self.row.decoder == 'detr')
        labels = FOLDER / f'{self.row.name}.labels'
        labels.write_text('\n'.join(self.row.scene.labels) + '\n')
        options = []
        if text := sidecar(self.row):
            (FOLDER / f'{self.name}.modelinfo').write_text(text)
        else:
            options = ['--decoder', self.row.decoder, *(['--labels', labels] if self.row.labels else [])]
        run('vartml', 'compile', '-q', file, '-o', self.compiled, '--numerics', 'f32', *options)

    def chain(self):
        w, h = self.frame
        return ['filesrc', f'location={MODELS}/images/{self.row.scene.file}.jpg', '!', 'decodebin', '!', 'videoconvert', '!',
                'videoscale', 'add-borders=false', '!', f'video/x-raw,format=RGB,width={w},height={h},pixel-aspect-ratio=1/1', '!',
                'vartmlinfer', f'model={self.compiled}', f'resize-mode={self.mode}', f'output-tensor-type={self.view}', '!',
                'vartmldecode', *self.row.decode.split(), '!',
                'vartmlpublish', 'method=file', f'location={self.record}', 'add-empty=true',
                'include=objects+classes+keypoints+masks+embeddings', '!', 'vartmloverlay', *self.row.overlay.split(), '!',
                'videoconvert', '!', 'pngenc', '!', 'filesink', f'location={KEPT}/{self.name}.png']


def corners(box, angle=0.0):
    x, y, w, h = box
    c, s = np.cos(angle), np.sin(angle)
    half = np.array([(-w, -h), (w, -h), (w, h), (-w, h)]) / 2
    return half @ np.array([(c, s), (-s, c)]) + (x + w / 2, y + h / 2)


def area(polygon):
    x, y = np.asarray(polygon).T
    return abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


def common(a, b):
    """Of two convex polygons, clockwise on the screen."""
    for p, q in zip(b, np.roll(b, -1, axis=0)):
        sides = [(q[0] - p[0]) * (v[1] - p[1]) - (q[1] - p[1]) * (v[0] - p[0]) for v in a]
        kept = []
        for i, v in enumerate(a):
            last, side, before = a[i - 1], sides[i], sides[i - 1]
            if side * before < 0:
                kept.append(last + (v - last) * before / (before - side))
            if side >= 0:
                kept.append(v)
        if not kept:
            return 0.0
        a = kept
    return area(a)


def overlap(a, b):
    both = common(a, b)
    return both / (area(a) + area(b) - both)


def pixels(mask, of_regions):
    """Of a mask of a record, and where the centres of its cells are on the frame."""
    runs, values = mask['rle'], []
    for i in range(0, len(runs), 2 if of_regions else 1):
        values += [runs[i]] * runs[i + 1] if of_regions else [i % 2] * runs[i]
    x, y, w, h = mask['box']
    columns, rows_ = mask['w'], mask['h']
    return (np.array(values).reshape(rows_, columns), (x + (np.arange(columns) + 0.5) * w / columns)[None, :],
            (y + (np.arange(rows_) + 0.5) * h / rows_)[:, None])


def share(a, b):
    return (a & b).sum() / max((a | b).sum(), 1)


@unittest.skipUnless(MODELS.is_dir(), f'{MODELS} is not there')
class Pictures(unittest.TestCase):
    def check_boxes(self, case, record):
        found = record['objects']
        self.assertEqual(len(found), len(case.truth), found)
        for t in case.truth:
            label = case.row.scene.labels[t.label]
            truth = corners((t.box[0], t.box[1], t.box[2] - t.box[0], t.box[3] - t.box[1]), t.angle)
            best = max(found, key=lambda o: overlap(corners(o['box'], o.get('angle', 0)), truth))
            self.assertGreaterEqual(overlap(corners(best['box'], best.get('angle', 0)), truth), 0.99, (t, best))
            self.assertEqual(best['label'], label)
            self.assertAlmostEqual(best['score'], t.score, delta=0.01)
            self.assertEqual(len(best.get('keypoints', [])), len(t.points))
            if t.points:
                self.check_near(case, best['keypoints'], t.points)
            yield t, best

    def check_near(self, case, found, truth):
        far = case.row.cells / np.array(case.fit.scale) + 0.02
        for (x, y, _), (tx, ty) in zip(found, truth):
            self.assertLessEqual(abs(x - tx), far[0], (found, truth))
            self.assertLessEqual(abs(y - ty), far[1], (found, truth))

    def check_masks(self, case, record):
        for t, thing in self.check_boxes(case, record):
            values, x, y = pixels(thing['mask'], False)
            self.assertGreaterEqual(share(values == 1, t.covers(x, y)), 0.99)
            x0, y0, w, h = thing['mask']['box']
            cell = 4 / min(case.fit.scale) + 1
            for edge, truth in zip((x0, y0, x0 + w, y0 + h), t.box):
                self.assertLessEqual(abs(edge - truth), cell)

    def check_map(self, case, record):
        """The last one that covers a pixel has it."""
        self.assertEqual(len(record['masks']), 1)
        mask = record['masks'][0]
        values, x, y = pixels(mask, True)
        for edge, truth in zip(mask['box'], (0, 0, *case.frame)):  # the borders of the letterbox are cut off
            self.assertLessEqual(abs(edge - truth), 1 + 2 / min(case.fit.scale))
        truth = np.zeros(values.shape, int)
        for t in case.truth:
            truth = np.where(t.covers(x, y), t.label, truth)
        labels = [case.row.scene.labels[i] for i in np.unique(truth)]
        self.assertEqual([r['label'] for r in mask['regions']], labels)
        for region in mask['regions']:
            self.assertGreaterEqual(share(values == region['id'], truth == region['id']), 0.99, region)

    def check_one(self, case, record):
        values, x, y = pixels(record['masks'][0], True)
        truth = np.any([t.covers(x, y) for t in case.truth], axis=0)
        self.assertGreaterEqual(share(values == 0, truth), 0.99)

    def check_several(self, case, record):
        self.assertEqual(len(record['masks']), len(case.truth))
        for mask in record['masks']:
            values, x, y = pixels(mask, True)
            region, = mask['regions']
            t, = [t for t in case.truth if case.row.scene.labels[t.label] == region['label']]
            self.assertGreaterEqual(share(values == region['id'], t.covers(x, y)), 0.99, region)

    def check_points(self, case, record):
        points, = record['keypoint_sets']
        self.assertEqual(len(points), len(case.truth[0].points))
        self.check_near(case, points, case.truth[0].points)

    def check_classes(self, case, record):
        best, = record['classes']
        self.assertEqual(best['label'], case.row.scene.labels[case.truth[0].label])
        self.assertAlmostEqual(best['score'], case.truth[0].score, delta=0.01)

    def check_embedding(self, case, record):
        vector, = record['embeddings']
        np.testing.assert_allclose(np.array(vector) * 85, [3, -4, 12, 84], atol=1e-4)

    def row(self, row):
        cases = [Case(row, *combination) for combination in COMBINATIONS]
        for case in cases:
            case.compile()
        run('gst-launch-1.0', '-q', *[word for case in cases for word in case.chain()])
        for case in cases:
            with self.subTest(case.name):
                record = json.loads(case.record.read_text())
                for _ in getattr(self, f'check_{row.checks}')(case, record) or ():
                    pass


class Families(unittest.TestCase):
    def test_each_has_a_row(self):
        shown = subprocess.run(['gst-inspect-1.0', 'vartmldecode'], capture_output=True, text=True, check=True).stdout
        listed = shown.split('Enum "GstVartmlDecoder"')[1].split('\n  \n')[0].split('\n\n')[0]
        nicks = set(re.findall(r'^ +\(\d+\): (\S+) ', listed, re.MULTILINE)) - {'auto'}
        self.assertGreater(len(nicks), 20)
        self.assertEqual(nicks, {row.decoder for row in rows.ROWS} | rows.WITHOUT_ROW,
                         'a decoder needs an encoder and a row of rows.py')


for number, entry in enumerate(rows.ROWS):
    if not NAMES or any(name in entry.name for name in NAMES):
        setattr(Pictures, f'test_{number:02}_{entry.name}', lambda self, entry=entry: self.row(entry))
if compiler := os.environ.get('VARTML_COMPILER'):
    os.environ['PATH'] = os.path.dirname(compiler) + os.pathsep + os.environ['PATH']
unittest.main(argv=sys.argv[:1], verbosity=2)
