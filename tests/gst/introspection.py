#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Python reads from frames by GObject introspection is what vartmlpublish writes of them; the models say the same of every
picture.

usage: introspection.py LIBRARY
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import gi
import numpy as np

sys.dont_write_bytecode = True  # the sources stay as they are
sys.path.insert(0, str(pathlib.Path(__file__).parent / 'pictures'))
from constant_model import constant_model  # noqa: E402

gi.require_version('Gst', '1.0')
gi.require_version('GstAnalytics', '1.0')
gi.require_version('GstVartml', '1.0')
from gi.repository import Gst, GstAnalytics, GstVartml  # noqa: E402

LIBRARY = sys.argv.pop(1)
WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)
CHARACTERS = 'ABC1'


def pose():
    """One person at (16, 32) to (48, 96) of 64x128, with 17 points; elsewhere scores below every threshold."""
    columns = np.zeros((1, 5 + 3 * 17, 8 * 16 + 4 * 8 + 2 * 4))
    columns[0, :5, 40] = [32, 64, 32, 64, 0.9]
    columns[0, 5:, 40] = [value for i in range(17) for value in (16 + i, 32 + 2 * i, 0.9 if i % 2 else 0.1)]
    return {'output0': columns}


def line():
    """Logits; class 0 is no character."""
    steps = np.zeros((1, 9, 1 + len(CHARACTERS)))
    for step, number in enumerate([0, 2, 2, 0, 1, 4, 0, 0, 0]):
        steps[0, step, number] = 8
    return {'steps': steps}


def frames(name, outputs, options, elements=''):
    """Buffers of three frames, and the records of the same."""
    compiled, record = FOLDER / f'{name}.rai', FOLDER / f'{name}.jsonl'
    constant_model(FOLDER / f'{name}.onnx', outputs, (64, 128), False)
    subprocess.run([os.environ['VARTML_COMPILER'], 'compile', '-q', FOLDER / f'{name}.onnx', '-o', compiled, '--numerics', 'f32', '--decoder', *options],
                   check=True, timeout=120)
    pipeline = Gst.parse_launch(
        'videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=320,height=256,framerate=10/1 ! '
        f'vartmlinfer model={compiled} resize-mode=stretch ! vartmldecode keypoint-threshold=0.5 ! {elements} vartmlpublish method=file '
        f'location={record} add-empty=true include=objects+tracks+keypoints+embeddings+texts+zones ! appsink name=out sync=false')
    out, buffers = pipeline.get_by_name('out'), []
    pipeline.set_state(Gst.State.PLAYING)
    while sample := out.emit('pull-sample'):
        buffers.append(sample.get_buffer())
    message = pipeline.get_bus().timed_pop_filtered(0, Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    assert not message, message.parse_error()
    return buffers, [json.loads(text) for text in record.read_text().splitlines()]


def all_of(buffer, kind):
    meta = GstAnalytics.buffer_get_analytics_relation_meta(buffer)
    for number in range(GstAnalytics.relation_get_length(meta)):
        is_one, mtd = meta.get_mtd(number, kind)
        if is_one:
            yield mtd


class Introspection(unittest.TestCase):
    def test_people_and_zones(self):
        buffers, records = frames('pose', pose(), ['yolo-v8-pose'],
                                  'vartmltrack ! vartmlzones zones="left=0,0 0.5,0 0.5,1 0,1;all=0,0 1,0 1,1 0,1" !')
        self.assertEqual(len(buffers), 3)
        for buffer, record in zip(buffers, records, strict=True):
            person, = record['objects']
            keypoints, = all_of(buffer, GstVartml.keypoints_mtd_get_mtd_type())
            found = [GstVartml.keypoints_mtd_get_point(keypoints, i) for i in range(GstVartml.keypoints_mtd_get_length(keypoints))]
            self.assertEqual(len(found), 17)
            for i, (is_one, x, y, score, visible) in enumerate(found):
                self.assertTrue(is_one)
                np.testing.assert_allclose((x, y, score), person['keypoints'][i], atol=0.01)
                self.assertEqual(visible, i % 2 == 1)
            self.assertFalse(GstVartml.keypoints_mtd_get_point(keypoints, 17)[0])
            self.assertEqual(GstVartml.keypoints_mtd_get_skeleton(keypoints), 'coco17')
            zones = {}
            for zone in all_of(buffer, GstVartml.zone_mtd_get_mtd_type()):
                is_one, name, is_line, inside, into, out_of, longest = GstVartml.zone_mtd_get_info(zone)
                self.assertTrue(is_one)
                self.assertFalse(is_line)
                self.assertEqual(GstVartml.zone_mtd_get_point(zone, 2), (True, 160.0 if name == 'left' else 320.0, 256.0))
                zones[name] = [inside, into, out_of, longest // 1000000]
            self.assertEqual(zones, {z['zone']: [z['inside'], z['in'], z['out'], z['longest_ms']] for z in record['zones']})
            dwells = {}
            for visit in all_of(buffer, GstVartml.zone_visit_mtd_get_mtd_type()):
                is_one, zone, event, label, track, dwell = GstVartml.zone_visit_mtd_get_info(visit)
                self.assertTrue(is_one)
                self.assertEqual((label, track), (person['label'], person['track']))
                if event == 'inside':
                    dwells[zone] = dwell // 1000000
            self.assertEqual(dwells, {z['zone']: z['dwell_ms'] for z in person.get('zones', []) if z['dwell_ms']})
        self.assertEqual([r['zones'][1]['inside'] for r in records][-1], 1)  # the person was counted

    def test_what_belongs_to_an_object(self):
        buffers, _ = frames('related', pose(), ['yolo-v8-pose'])
        meta = GstAnalytics.buffer_get_analytics_relation_meta(buffers[0])
        person, = all_of(buffers[0], GstAnalytics.ODMtd.get_mtd_type())
        for kind in (GstVartml.keypoints_mtd_get_mtd_type(), GstVartml.inference_mtd_get_mtd_type()):
            mtd, = all_of(buffers[0], kind)
            self.assertEqual(meta.get_relation(person.id, mtd.id), GstAnalytics.RelTypes.RELATE_TO)

    def test_embedding(self):
        buffers, records = frames('embedding', {'vector': np.array([[3, -4, 12, 84]])}, ['embedding'])
        for buffer, record in zip(buffers, records, strict=True):
            embedding, = all_of(buffer, GstVartml.embedding_mtd_get_mtd_type())
            np.testing.assert_allclose(GstVartml.embedding_mtd_get_vector(embedding), record['embeddings'][0], atol=1e-5)
            self.assertEqual(GstVartml.keypoints_mtd_get_length(embedding), 0)
            self.assertIsNone(GstVartml.text_mtd_get_text(embedding)[0])

    def test_text(self):
        labels = FOLDER / 'characters'
        labels.write_text('\n'.join(CHARACTERS) + '\n')
        buffers, records = frames('text', line(), ['ctc-text', '--labels', labels])
        for buffer, record in zip(buffers, records, strict=True):
            mtd, = all_of(buffer, GstVartml.text_mtd_get_mtd_type())
            text, score = GstVartml.text_mtd_get_text(mtd)
            self.assertEqual((text, round(score, 3)), ('BA1', 0.999))
            self.assertEqual(record['texts'][0]['text'], text)

    def test_record(self):
        buffers, records = frames('record', {'vector': np.array([[1, 0]])}, ['embedding'])
        for buffer, record in zip(buffers, records, strict=True):
            mtd, = all_of(buffer, GstVartml.inference_mtd_get_mtd_type())
            for structure in (GstVartml.inference_get_structure(buffer, 0), GstVartml.inference_mtd_get_structure(mtd)):
                self.assertEqual(structure.get_string('model'), 'record')
                self.assertEqual(structure.get_string('status'), record['status'])
            self.assertIsNone(GstVartml.inference_get_structure(buffer, 1))

    def test_plugins_and_python_have_one_library(self):
        Gst.Registry.get().find_plugin('vartml').load()
        maps = pathlib.Path('/proc/self/maps').read_text()
        self.assertEqual({word for word in maps.split() if 'libgstvartml-1.0' in word}, {os.path.realpath(LIBRARY)})


Gst.init(None)
unittest.main(verbosity=2)
