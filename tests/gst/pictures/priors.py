# SPDX-License-Identifier: Apache-2.0
"""As encoders.py, for families whose boxes are relative to priors: the priors as published, each of them a row of centre
and size in pixels of the input, and the maps of keypoints and classes."""

import numpy as np

from encoders import best_first, cells, flat, logit, noise, xywh


def shapes(columns, rows, step, sizes):
    """Priors of a level: row by row, in a cell one of each size, about the middles of cells of `step` pixels."""
    step_x, step_y = step
    return [((x + 0.5) * step_x, (y + 0.5) * step_y, w, h) for y in range(rows) for x in range(columns) for w, h in sizes]


def steps(size, strides, sides):
    return np.array([p for stride, of in zip(strides, sides)
                     for p in shapes(*cells(size, stride), (stride, stride), [(s, s) for s in of])], float)


def overlap(priors, box):
    x0, y0, x1, y1 = box
    cx, cy, w, h = priors.T
    wide = np.minimum(cx + w / 2, x1) - np.maximum(cx - w / 2, x0)
    high = np.minimum(cy + h / 2, y1) - np.maximum(cy - h / 2, y0)
    common = np.clip(wide, 0, None) * np.clip(high, 0, None)
    return common / (w * h + (x1 - x0) * (y1 - y0) - common)


def on_priors(things, priors):
    """(thing, index, share of its score): the priors that overlap most."""
    return best_first(things, lambda t: [int(i) for i in np.argsort(-overlap(priors, t.box))[:2]])


def box_code(box, prior):
    """Variances 0.1 and 0.2."""
    cx, cy, w, h = xywh(box)
    return [(cx - prior[0]) / prior[2] / 0.1, (cy - prior[1]) / prior[3] / 0.1,
            np.log(w / prior[2]) / 0.2, np.log(h / prior[3]) / 0.2]


def point_code(points, prior):
    return flat(((x - prior[0]) / prior[2] / 0.1, (y - prior[1]) / prior[3] / 0.1) for x, y in points)


def relative(things, priors, classes, points=0):
    """Codes, softmaxed scores with the background first, and codes of the points."""
    n = len(priors)
    codes, scores, places = noise(n, 4, low=-2, high=2), noise(n, classes + 1, high=0.2), noise(n, 2 * points)
    scores[:, 0] = 1 - scores[:, 1:].max(1)
    for t, i, share in on_priors(things, priors):
        scores[i] = (1 - t.score * share) / classes
        codes[i], scores[i, 1 + t.label] = box_code(t.box, priors[i]), t.score * share
        if points:
            places[i] = point_code(t.points, priors[i])
    return codes, scores, places


ULTRAFACE = [(10, 16, 24), (32, 48), (64, 96), (128, 192, 256)]


def ultraface_relative(things, size, classes):
    codes, scores, _ = relative(things, steps(size, (8, 16, 32, 64), ULTRAFACE), 1)
    return {'scores': scores[None], 'boxes': codes[None]}


def retinaface(things, size, classes):
    priors = steps(size, (8, 16, 32), [(16, 32), (64, 128), (256, 512)])
    codes, scores, points = relative(things, priors, 1, 5)
    return {'loc': codes[None], 'conf': scores[None], 'landms': points[None]}


def faceboxes(things, size, classes):
    """The small priors stand densely, from the corner of their cell on."""
    priors = []
    for stride, of in ((32, ((32, 4), (64, 2), (128, 1))), (64, ((256, 1),)), (128, ((512, 1),))):
        columns, rows = cells(size, stride)
        priors += [((x + (u / n if n > 1 else 0.5)) * stride, (y + (v / n if n > 1 else 0.5)) * stride, side, side)
                   for y in range(rows) for x in range(columns) for side, n in of for v in range(n) for u in range(n)]
    codes, scores, _ = relative(things, np.array(priors, float), 1)
    return {'loc': codes[None], 'conf': scores[None]}


def yunet_older(things, size, classes):
    """Score = square root of class * overlap."""
    w, h = [(side + 1) // 2 // 2 for side in size]  # each level is a pooling of the one before: rounded down
    priors = np.array([p for i, of in enumerate(ULTRAFACE)
                       for p in shapes(w >> i + 1, h >> i + 1, (8 << i,) * 2, [(s, s) for s in of])], float)
    codes, scores, points = relative(things, priors, 1, 5)
    quality = np.clip(scores[:, 1:], 0, 1)
    return {'loc': np.concatenate([codes, points], 1)[None], 'conf': scores[None], 'iou': quality[None]}


def ssd_tensorflow(things, size, classes):
    """MobileNet-SSD: y, x, h, w; scores before their sigmoid."""
    w, h = size
    scales, priors = [0.2 + 0.15 * i for i in range(6)] + [1.0], []
    for i in range(6):
        columns, rows = cells(size, 16 << i)
        if i == 0:
            sizes = [(0.1, 1.0), (0.2, 2.0), (0.2, 0.5)]
        else:
            sizes = [(scales[i], r) for r in (1, 2, 0.5, 3, 0.3333)] + [((scales[i] * scales[i + 1]) ** 0.5, 1)]
        sides = [(s * r ** 0.5 * min(w, h), s / r ** 0.5 * min(w, h)) for s, r in sizes]
        priors += shapes(columns, rows, (w / columns, h / rows), sides)
    codes, scores, _ = relative(things, np.array(priors), classes)
    return {'boxes': codes[None, :, [1, 0, 3, 2]], 'scores': logit(np.clip(scores, 1e-4, 0.9999))[None]}


def square_sizes(least, most, ratios):
    sizes = [(least, least)] + ([((least * most) ** 0.5,) * 2] if most else [])
    return sizes + [s for r in ratios for s in ((least * r ** 0.5, least / r ** 0.5), (least / r ** 0.5, least * r ** 0.5))]


def ssd_caffe(things, size, classes):
    """MobileNet-SSD of 300x300; softmaxed."""
    table = [(19, 60, 0, (2,)), (10, 105, 150, (2, 3)), (5, 150, 195, (2, 3)), (3, 195, 240, (2, 3)), (2, 240, 285, (2, 3)),
             (1, 285, 300, (2, 3))]
    priors = [p for n, least, most, ratios in table for p in shapes(n, n, (300 / n,) * 2, square_sizes(least, most, ratios))]
    codes, scores, _ = relative(things, np.array(priors), classes)
    return {'mbox_loc': codes[None], 'mbox_conf': scores[None]}


def ssd_pytorch(things, size, classes):
    """3000 positions of 300x300, boxes decoded in the model: corners in 0 to 1."""
    boxes, scores = noise(1, 3000, 4), noise(1, 3000, classes + 1, high=0.1)
    for i, t in enumerate(things):
        for at, share in ((100 * i + 7, 1.0), (100 * i + 8, 0.97)):
            scores[0, at, 1 + t.label], boxes[0, at] = t.score * share, np.array(t.box) / (*size, *size)
    return {'scores': scores, 'boxes': boxes}


SSD_OWN = [(24, 24), (60, 40), (40, 60), (110, 80), (80, 110), (200, 200)]  # two per stride


def ssd_own(things, size, classes):
    """Priors that the sidecar names."""
    priors = np.array([p for i, s in enumerate((8, 16, 32)) for p in shapes(*cells(size, s), (s, s), SSD_OWN[2 * i:2 * i + 2])])
    codes, scores, _ = relative(things, priors, classes)
    return {'boxes': codes[None], 'scores': scores[None]}


def blaze(things, size, strides, points):
    """Places without size; values in pixels of the input, scores before their sigmoid."""
    places = []
    for stride in sorted(set(strides)):
        columns, rows = cells(size, stride)
        places += shapes(columns, rows, (stride, stride), [(stride, stride)] * 2 * strides.count(stride))
    places = np.array(places)
    values, scores = noise(len(places), 4 + 2 * points, low=-20, high=20), noise(len(places), low=-9, high=-3)
    for t, i, share in best_first(things, lambda t: nearest(t, places)):
        px, py = places[i, :2]
        cx, cy, w, h = xywh(t.box)
        values[i] = [cx - px, cy - py, w, h, *flat((x - px, y - py) for x, y in t.points)]
        scores[i] = logit(t.score * share)
    return {'regressors': values[None], 'classificators': scores[None, :, None]}


def nearest(t, places):
    cx, cy, _, _ = xywh(t.box)
    return [int(i) for i in np.argsort((places[:, 0] - cx) ** 2 + (places[:, 1] - cy) ** 2, kind='stable')[:2]]


def blazeface_front(things, size, classes):
    return blaze(things, size, [8, 16, 16, 16], 6)


def blazeface_back(things, size, classes):
    return blaze(things, size, [16, 32, 32, 32], 6)


def blazepalm(things, size, classes):
    return blaze(things, size, [8, 16, 16, 16], 7)


# ---- maps -----------------------------------------------------------------------------------------------------------

def class_map(things, columns, rows, size):
    """Number of the last thing that covers a cell, from 1; 0 where nothing does."""
    x, y = (np.arange(columns) + 0.5) * size[0] / columns, (np.arange(rows) + 0.5) * size[1] / rows
    numbers = np.zeros((rows, columns), int)
    for t in things:
        numbers = np.where(t.covers(x[None, :], y[:, None]), t.label, numbers)
    return numbers


def segment(things, size, classes, shrink=2):
    numbers = class_map(things, size[0] // shrink, size[1] // shrink, size)
    others = noise(classes, *numbers.shape, low=-3, high=3)
    return {'logits': np.where(np.arange(classes)[:, None, None] == numbers, 4.0, others)[None]}


def segment_channels_last(things, size, classes):
    return {'softmax': segment(things, size, classes, 1)['logits'].transpose(0, 2, 3, 1)}


def segment_one(things, size, classes):
    numbers = class_map(things, size[0] // 2, size[1] // 2, size)
    return {'mask': np.where(numbers > 0, noise(*numbers.shape, low=0.55), noise(*numbers.shape, high=0.45))[None, None]}


def segment_labels(things, size, classes):
    return {'argmax': class_map(things, *size, size)[None].astype(np.int64)}


def segment_several(things, size, classes):
    """A thing covers its cells whatever else does; before the sigmoid."""
    maps = [class_map([t for t in things if t.label == c], size[0] // 2, size[1] // 2, size) > 0 for c in range(classes)]
    return {'logits': np.stack([np.where(m, 3.0, -3.0) for m in maps])[None]}


def bumps(things, size, stride, spread=1.5):
    """A map per point: a bump whose greatest value is 0.9, at x / stride."""
    columns, rows = cells(size, stride)
    x, y = np.arange(columns)[None, None, :], np.arange(rows)[None, :, None]
    at = np.array(things[0].points)[:, :, None, None] / stride
    return 0.9 * np.exp(-((x - at[:, 0]) ** 2 + (y - at[:, 1]) ** 2) / (2 * spread ** 2))


def heatmap(things, size, classes):
    return {'heatmap': bumps(things, size, 4)[None]}


def heatmap_offsets(things, size, classes):
    """PoseNet: the cell says where in the picture the point is, all y before all x; scores before their sigmoid."""
    maps = bumps(things, size, 8)
    columns, rows = cells(size, 8)
    x, y = np.meshgrid(np.arange(columns) * 8, np.arange(rows) * 8)
    points = np.array(things[0].points)
    moves = [py - y for _, py in points] + [px - x for px, _ in points]
    return {'heatmaps': logit(np.clip(maps, 1e-4, 0.99))[None], 'short_offsets': np.stack(moves)[None]}
