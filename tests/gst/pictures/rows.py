# SPDX-License-Identifier: Apache-2.0
"""Families and forms of output, one row each."""

import dataclasses
import functools

import encoders as e
import priors as p
import scenes


@dataclasses.dataclass
class Row:
    name: str
    decoder: str
    encode: object
    size: tuple  # of the model's input
    scene: scenes.Scene
    lines: tuple = ()   # of the sidecar, beside decoder and labels
    outputs: tuple = ()  # their sections of it
    checks: str = 'boxes'
    mode: str = 'letterbox'  # the other one is stretch
    labels: bool = True
    overlay: str = ''
    decode: str = ''
    cells: float = 0  # keypoints are only as exact as this part of a cell's size in pixels of the model
    same_aspect: bool = False  # stretched, the input has the aspect of the frame


V5 = 'x-vartml-anchors=' + ','.join(f'{w},{h}' for level in e.V5_ANCHORS for w, h in level)
V3 = ('x-vartml-box-form=v3', V5)
# The published models end in what makes probabilities; these give them out of sums.
SCORES = 'x-vartml-activation=none'
OWN = ('x-vartml-strides=8,16,32', 'x-vartml-anchors=' + ','.join(f'{w},{h}' for w, h in p.SSD_OWN))
BONES = f'skeleton={scenes.HAND_BONES}'
PORCH, FACES, HEADS, MAN, PASSER = scenes.porch, scenes.faces, scenes.heads, scenes.man, scenes.passer

# Families whose tensors no encoder makes: tests/vision has them alone.
WITHOUT_ROW = {'ctc-text', 'custom', 'db-text', 'openpose'}

ROWS = [
    Row('classify', 'classify', e.classify, (224, 224), scenes.fish, ('x-vartml-activation=softmax',), checks='classes'),
    Row('ssd listed', 'ssd', e.ssd_listed, (300, 300), PORCH),
    Row('ssd raw, TensorFlow priors', 'ssd', p.ssd_tensorflow, (300, 300), PORCH, ('x-vartml-activation=sigmoid',)),
    Row('ssd raw, Caffe priors', 'ssd', p.ssd_caffe, (300, 300), PORCH, ('x-vartml-box-order=cxcywh', SCORES)),
    Row('ssd, decoded in the model', 'ssd', p.ssd_pytorch, (300, 300), PORCH, (SCORES,)),
    Row('ssd raw, own priors', 'ssd', p.ssd_own, (320, 320), PORCH, (*OWN, SCORES), ('boxes:x-vartml-role=offsets',)),
    Row('yolo-v5', 'yolo-v5', e.yolo_v5, (640, 640), PORCH),
    Row('yolo-v5 raw', 'yolo-v5', e.yolo_v5_maps, (640, 640), PORCH, (V5,)),
    Row('yolo-v3 raw', 'yolo-v5', e.yolo_v3_maps, (416, 416), PORCH, V3),
    Row('yolo-v8', 'yolo-v8', e.yolo_v8, (640, 640), PORCH),
    Row('yolo-v8-seg', 'yolo-v8-seg', e.yolo_v8_seg, (640, 640), PORCH, checks='masks'),
    Row('yolo-v8-pose', 'yolo-v8-pose', e.yolo_v8_pose, (640, 640), MAN),
    Row('yolo-v8-obb', 'yolo-v8-obb', e.yolo_v8_obb, (640, 640), scenes.turned, same_aspect=True),
    Row('yolo-end2end', 'yolo-end2end', e.yolo_end2end, (640, 640), PORCH),
    Row('yolox', 'yolox', e.yolox, (416, 416), PORCH, mode='letterbox-top-left'),
    Row('nanodet', 'nanodet', e.nanodet, (320, 320), PORCH, (SCORES,)),
    Row('fastestdet', 'fastestdet', e.fastestdet, (352, 352), PORCH),
    Row('fastestdet rows', 'fastestdet', e.fastestdet_rows, (352, 352), PORCH),
    Row('centernet', 'centernet', e.centernet, (512, 512), PORCH, (SCORES,)),
    Row('detr', 'detr', e.detr, (320, 320), PORCH),
    Row('ultraface', 'ultraface', e.ultraface, (320, 240), scenes.plain_faces, (SCORES,)),
    Row('ultraface raw', 'ultraface', p.ultraface_relative, (320, 240), scenes.plain_faces, (SCORES,), outputs=('boxes:x-vartml-role=offsets',)),
    Row('scrfd', 'scrfd', e.scrfd, (640, 640), FACES, (SCORES,), mode='letterbox-top-left'),
    Row('yunet', 'yunet', e.yunet, (320, 320), FACES, (SCORES,)),
    Row('yunet before 2023', 'yunet', p.yunet_older, (320, 240), FACES, (SCORES,)),
    Row('faceboxes', 'faceboxes', p.faceboxes, (640, 640), scenes.plain_faces, (SCORES,)),
    Row('retinaface', 'retinaface', p.retinaface, (640, 640), FACES, (SCORES,)),
    Row('yolo-face', 'yolo-face', e.yolo_face, (640, 640), FACES),
    Row('yolo-face raw', 'yolo-face', e.yolo_face_maps, (640, 640), FACES),
    Row('yolo-face raw, channels first', 'yolo-face', e.yolo_face_maps4, (320, 320), FACES),
    Row('blazeface front', 'blazeface', p.blazeface_front, (128, 128), HEADS),
    Row('blazeface back', 'blazeface', p.blazeface_back, (256, 256), HEADS),
    Row('blazepalm', 'blazeface', p.blazepalm, (192, 192), scenes.palm),
    Row('segment', 'segment', p.segment, (512, 512), PASSER, checks='map'),
    Row('segment, 300 classes', 'segment', functools.partial(p.segment, shrink=4), (256, 256), scenes.of_many, checks='map'),
    Row('segment, channels last', 'segment', p.segment_channels_last, (320, 256), PASSER, checks='map'),
    Row('segment, labels', 'segment', p.segment_labels, (320, 256), PASSER, checks='map'),
    Row('segment, one class', 'segment', p.segment_one, (512, 512), PASSER, (SCORES,), checks='one', labels=False),
    Row('segment, several per pixel', 'segment', p.segment_several, (512, 512), PASSER, ('x-vartml-activation=sigmoid',), checks='several'),
    Row('heatmap', 'heatmap', p.heatmap, (192, 256), MAN, checks='points', labels=False, cells=0.25 * 4),
    Row('heatmap, centroids', 'heatmap', p.heatmap, (192, 256), MAN, ('x-vartml-peak=centroid',), checks='points', labels=False,
        cells=0.08 * 4, decode='score-threshold=0.15'),
    Row('heatmap with offsets', 'heatmap', p.heatmap_offsets, (321, 241), MAN, ('x-vartml-activation=sigmoid',),
        ('heatmaps:x-vartml-role=heatmap\nx-vartml-stride=8', 'short_offsets:x-vartml-role=offsets'), 'points', labels=False),
    Row('landmarks in units', 'landmarks', e.landmarks_units, (224, 224), scenes.hand, checks='points', labels=False, overlay=BONES),
    Row('landmarks in pixels', 'landmarks', e.landmarks_pixels, (224, 224), scenes.hand,
        outputs=('presence:x-vartml-role=scores',), checks='points', labels=False, overlay=BONES),
    Row('embedding', 'embedding', e.embedding, (128, 256), MAN, checks='embedding', labels=False),
]
