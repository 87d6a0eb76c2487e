# SPDX-License-Identifier: Apache-2.0
"""What a model of each family would say if it saw the given things: tensors by the published formulas.

An encoder takes things in pixels of the model's input, the size of that input and the number of classes, and gives the
outputs by name. Positions without a thing have random boxes and scores below every threshold. Where the family leaves
suppression to the reader, a second position says the same of each thing with a lower score."""

import numpy as np

RNG = np.random.default_rng(20240229)
LESS = 0.97  # score of the second position


def logit(p):
    p = np.asarray(p, np.float64)
    return np.log(p / (1 - p))


def xywh(box):
    x0, y0, x1, y1 = box
    return (x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0


def flat(points):
    return [value for point in points for value in point]


def noise(*shape, low=0.0, high=1.0):
    return RNG.uniform(low, high, shape)


def cells(size, stride):
    """Columns and rows of a level."""
    return -(-size[0] // stride), -(-size[1] // stride)


def cell_of(box, size, stride):
    columns, rows = cells(size, stride)
    cx, cy, _, _ = xywh(box)
    return min(int(cx // stride), columns - 1), min(int(cy // stride), rows - 1)


def rows_of(size, strides, per_cell=1):
    return sum(np.prod(cells(size, s)) for s in strides) * per_cell


def two_positions(thing, count):
    """Of a list in which any position may say anything: one that hangs on the thing, and the one after."""
    first = int(sum(thing.box) * 7) % (count - 1)
    return [(first, 1.0), (first + 1, LESS)]


def best_first(things, places):
    """(thing, place, share of its score): the best place of all things before the second ones, no place twice."""
    taken = set()
    for i, share in enumerate((1.0, LESS)):
        for t in things:
            usable = places(t)
            assert usable, f'no position can hold {t}'
            if i < len(usable) and usable[i] not in taken:
                taken.add(usable[i])
                yield t, usable[i], share
            else:
                assert i > 0, f'two things at {usable[0]}'


# ---- lists that the model has decoded itself ------------------------------------------------------------------------

def classify(things, size, classes):
    """Before their softmax."""
    shares = np.full((1, classes), (1 - things[0].score) / (classes - 1))
    shares[0, things[0].label] = things[0].score
    return {'logits': np.log(shares) + 5}


def embedding(things, size, classes):
    return {'feature': np.array([[3.0, -4.0, 12.0, 84.0]])}  # length 85


def ssd_listed(things, size, classes, rows=10):
    w, h = size
    boxes, labels, scores = noise(1, rows, 4), np.zeros((1, rows)), noise(1, rows, high=0.1)
    for i, t in enumerate(things):
        x0, y0, x1, y1 = t.box
        boxes[0, i], labels[0, i], scores[0, i] = (y0 / h, x0 / w, y1 / h, x1 / w), t.label, t.score
    return {'detection_boxes': boxes, 'detection_classes': labels, 'detection_scores': scores,
            'num_detections': np.array([len(things)], np.float64)}


def detr(things, size, classes, rows=20):
    """Units of the size that is fed; the model multiplies."""
    w, h = size
    boxes, labels, scores = noise(1, rows, 4), np.zeros((1, rows), np.int64), noise(1, rows, high=0.2)
    for i, t in enumerate(things):
        x0, y0, x1, y1 = t.box
        boxes[0, 3 * i], labels[0, 3 * i], scores[0, 3 * i] = (x0 / w, y0 / h, x1 / w, y1 / h), t.label, t.score
    return {'labels': labels, 'boxes': boxes, 'scores': scores}


def yolo_end2end(things, size, classes):
    rows = np.zeros((1, 300, 6))
    for i, t in enumerate(things):
        rows[0, i] = [*t.box, t.score, t.label]
    return {'output0': rows}


def yolo_v5(things, size, classes):
    """Score = objectness * class."""
    rows = noise(1, rows_of(size, (8, 16, 32), 3), 5 + classes, high=0.2)
    rows[..., :4] *= 500
    for t in things:
        for at, share in two_positions(t, rows.shape[1]):
            rows[0, at, 5:] = 0.01
            rows[0, at, :5], rows[0, at, 5 + t.label] = [*xywh(t.box), 0.98], t.score * share / 0.98
    return {'output': rows}


def yolo_v8(things, size, classes, extra=0, fill=None):
    columns = noise(1, 4 + classes + extra, rows_of(size, (8, 16, 32)), high=0.2)
    columns[:, :4] *= 500
    for t in things:
        for at, share in two_positions(t, columns.shape[2]):
            columns[0, 4:4 + classes, at] = 0.01
            columns[0, :4, at], columns[0, 4 + t.label, at] = xywh(t.box), t.score * share
            if fill:
                columns[0, 4 + classes:, at] = fill(t)
    return {'output0': columns}


def yolo_v8_pose(things, size, classes):
    points = len(things[0].points)
    return yolo_v8(things, size, classes, 3 * points, lambda t: flat((x, y, 0.9) for x, y in t.points))


def yolo_v8_obb(things, size, classes):
    return yolo_v8(things, size, classes, 1, lambda t: t.angle)


def yolo_v8_seg(things, size, classes, maps=32):
    """Prototypes are mixtures of the things' own maps, coefficients what takes one out of the mixture again."""
    columns, rows = size[0] // 4, size[1] // 4
    x, y = (np.arange(columns) + 0.5) * 4, (np.arange(rows) + 0.5) * 4
    own = noise(maps, rows, columns, low=-3, high=3)
    for i, t in enumerate(things):
        own[i] = np.where(t.covers(x[None, :], y[:, None]), 8, -8)
    turn, _ = np.linalg.qr(noise(maps, maps, low=-1))
    prototypes = np.einsum('ij,jyx->iyx', turn, own)
    of = {id(t): turn[:, i] for i, t in enumerate(things)}
    return {**yolo_v8(things, size, classes, maps, lambda t: of[id(t)]), 'output1': prototypes[None]}


def yolo_face(things, size, classes):
    rows = noise(1, rows_of(size, (8, 16, 32), 3), 16, high=0.3)
    rows[..., :4] *= 300
    for t in things:
        for at, share in two_positions(t, rows.shape[1]):
            rows[0, at] = [*xywh(t.box), 0.98, *flat(t.points), t.score * share / 0.98]
    return {'output': rows}


def ultraface(things, size, classes):
    w, h = size
    count = rows_of(size, (8,), 3) + rows_of(size, (16, 32), 2) + rows_of(size, (64,), 3)
    boxes, face = noise(1, count, 4), noise(count, high=0.3)
    for t in things:
        for at, share in two_positions(t, count):
            x0, y0, x1, y1 = t.box
            boxes[0, at], face[at] = (x0 / w, y0 / h, x1 / w, y1 / h), t.score * share
    return {'scores': np.stack([1 - face, face], 1)[None], 'boxes': boxes}


def landmarks_units(things, size, classes):
    return {'points': np.array([flat((x / size[0], y / size[1]) for x, y in things[0].points)])}


def landmarks_pixels(things, size, classes):
    """x, y, depth, and whether there is a hand."""
    points = flat((x, y, 10.0) for x, y in things[0].points)
    return {'landmarks': np.array([points]), 'presence': np.array([[things[0].score]])}


# ---- grids ----------------------------------------------------------------------------------------------------------

V5_ANCHORS = [[(10, 13), (16, 30), (33, 23)], [(30, 61), (62, 45), (59, 119)], [(116, 90), (156, 198), (373, 326)]]
FACE_ANCHORS = [[(4, 5), (8, 10), (13, 16)], [(23, 29), (43, 55), (73, 105)], [(146, 217), (231, 300), (335, 433)]]


def two_anchors(box, anchors, most):
    """Level and index of the anchors nearest in size; a side is at most `most` times an anchor's."""
    _, _, w, h = xywh(box)
    distance = {(l, a): max(w / aw, aw / w, h / ah, ah / h) for l, level in enumerate(anchors)
                for a, (aw, ah) in enumerate(level) if max(w / aw, h / ah) < most}
    return sorted(distance, key=distance.get)[:2]


def anchor_maps(things, size, classes, anchors, attributes, encode, most):
    """[1,A,h,w,attributes] per stride; scores before their sigmoid."""
    maps = []
    for stride in (8, 16, 32):
        columns, rows = cells(size, stride)
        maps.append(noise(1, 3, rows, columns, attributes, low=-9, high=-3))

    def places(t):
        return [(level, anchor, *cell_of(t.box, size, 8 << level)) for level, anchor in two_anchors(t.box, anchors, most)]
    for t, (level, anchor, column, row), share in best_first(things, places):
        maps[level][0, anchor, row, column] = encode(t, 8 << level, column, row, anchors[level][anchor], share)
    return maps


def v5_box(t, stride, column, row, anchor):
    cx, cy, w, h = xywh(t.box)
    return [*logit([(cx / stride - column + 0.5) / 2, (cy / stride - row + 0.5) / 2]),
            *logit([np.sqrt(w / anchor[0]) / 2, np.sqrt(h / anchor[1]) / 2])]


def v3_box(t, stride, column, row, anchor):
    cx, cy, w, h = xywh(t.box)
    inside = np.clip([cx / stride - column, cy / stride - row], 1e-6, 1 - 1e-6)
    return [*logit(inside), np.log(w / anchor[0]), np.log(h / anchor[1])]


def yolo_raw(things, size, classes, box, most):
    def encode(t, stride, column, row, anchor, share):
        scores = np.full(classes, -6.0)
        scores[t.label] = logit(t.score * share / 0.98)
        return [*box(t, stride, column, row, anchor), logit(0.98), *scores]
    return anchor_maps(things, size, classes, V5_ANCHORS, 5 + classes, encode, most)


def yolo_v5_maps(things, size, classes):
    return {f'map{i}': m for i, m in enumerate(yolo_raw(things, size, classes, v5_box, 4))}


def channels_first(maps):
    """[1,A*attributes,h,w]"""
    return {f'map{i}': m.transpose(0, 1, 4, 2, 3).reshape(1, -1, *m.shape[2:4]) for i, m in enumerate(maps)}


def yolo_v3_maps(things, size, classes):
    return channels_first(yolo_raw(things, size, classes, v3_box, 50))


def yolo_face_raw(things, size, classes):
    def encode(t, stride, column, row, anchor, share):
        points = flat(((x - column * stride) / anchor[0], (y - row * stride) / anchor[1]) for x, y in t.points)
        return [*v5_box(t, stride, column, row, anchor), logit(0.98), *points, logit(t.score * share / 0.98)]
    return anchor_maps(things, size, classes, FACE_ANCHORS, 16, encode, 4)


def yolo_face_maps(things, size, classes):
    return {f'map{i}': m for i, m in enumerate(yolo_face_raw(things, size, classes))}


def yolo_face_maps4(things, size, classes):
    return channels_first(yolo_face_raw(things, size, classes))


def levels(things, size, strides, columns, per_cell, encode, fits):
    """Per stride a table of rows; the things lie in the two smallest strides that fit them."""
    tables = {s: noise(rows_of(size, (s,), per_cell), columns, high=0.2) for s in strides}

    def places(t):
        return [(s, *cell_of(t.box, size, s)) for s in strides if fits(t, s)][:2]
    for t, (stride, column, row), share in best_first(things, places):
        at = (row * cells(size, stride)[0] + column) * per_cell + (per_cell - 1)
        tables[stride][at] = encode(t, stride, column, row, share)
    return tables


def yolox(things, size, classes):
    def encode(t, stride, column, row, share):
        cx, cy, w, h = xywh(t.box)
        scores = np.full(classes, 0.01)
        scores[t.label] = t.score * share / 0.98
        return [cx / stride - column, cy / stride - row, np.log(w / stride), np.log(h / stride), 0.98, *scores]
    tables = levels(things, size, (8, 16, 32), 5 + classes, 1, encode, lambda t, s: True)
    return {'output': np.concatenate(list(tables.values()))[None]}


def nanodet(things, size, classes, bins=8):
    """A distance is shared by the two bins that it lies between."""
    def sides(t, stride):
        column, row = cell_of(t.box, size, stride)
        x, y = (column + 0.5) * stride, (row + 0.5) * stride
        return np.array([x - t.box[0], y - t.box[1], t.box[2] - x, t.box[3] - y]) / stride

    def encode(t, stride, column, row, share):
        scores, distances = np.full(classes, 0.01), np.full((4, bins), -30.0)
        scores[t.label] = t.score * share
        for k, side in enumerate(sides(t, stride)):
            low = min(int(side), bins - 2)
            distances[k, low:low + 2] = np.log([max(1 - (side - low), 1e-12), max(side - low, 1e-12)])
        return [*scores, *distances.ravel()]

    def fits(t, stride):
        return sides(t, stride).max() <= bins - 1 and sides(t, stride).min() >= 0
    tables = levels(things, size, (8, 16, 32), classes + 4 * bins, 1, encode, fits)
    return {f'{name}_{s}': table[None, :, part] for s, table in tables.items()
            for name, part in (('cls', slice(0, classes)), ('dis', slice(classes, None)))}


def fastestdet(things, size, classes):
    columns, rows = cells(size, 16)
    values = noise(1, 5 + classes, rows, columns, high=0.2)
    for t in things:
        cx, cy, w, h = xywh(t.box)
        middle = cell_of(t.box, size, 16)
        beside = (middle[0] - 1 if cx / 16 - middle[0] < 0.5 else middle[0] + 1, middle[1])
        for (column, row), share in ((middle, 1.0), (beside, LESS)):
            moves = np.arctanh([np.clip(cx / 16 - column, -0.999999, 0.999999), np.clip(cy / 16 - row, -0.999999, 0.999999)])
            values[0, 5:, row, column] = 0.01
            values[0, :5, row, column] = [0.98, *moves, logit(w / size[0]), logit(h / size[1])]
            values[0, 5 + t.label, row, column] = (t.score * share / 0.98 ** 0.6) ** (1 / 0.4)
    return {'output': values}


def fastestdet_rows(things, size, classes):
    values = fastestdet(things, size, classes)['output']
    return {'output': values.reshape(1, 5 + classes, -1).transpose(0, 2, 1)}


def centernet(things, size, classes):
    """A lower score around each peak, which a maximum of 3x3 cells takes away."""
    columns, rows = cells(size, 4)
    heat, wh, reg = noise(1, classes, rows, columns, high=0.1), noise(1, 2, rows, columns), noise(1, 2, rows, columns)
    for t in things:
        cx, cy, w, h = xywh(t.box)
        column, row = cell_of(t.box, size, 4)
        around = heat[0, t.label, max(row - 1, 0):row + 2, max(column - 1, 0):column + 2]
        around[:] = np.maximum(around, t.score * LESS)
        heat[0, t.label, row, column] = t.score
        wh[0, :, row, column] = [w / 4, h / 4]
        reg[0, :, row, column] = [cx / 4 - column, cy / 4 - row]
    return {'hm': heat, 'wh': wh, 'reg': reg}


def scrfd(things, size, classes):
    """Two anchors per cell, at its corner."""
    def encode(t, stride, column, row, share):
        x, y = column * stride, row * stride
        box = [x - t.box[0], y - t.box[1], t.box[2] - x, t.box[3] - y]
        points = flat((px - x, py - y) for px, py in t.points)
        return [t.score * share, *np.array(box + points) / stride]
    tables = levels(things, size, (8, 16, 32), 15, 2, encode, lambda t, s: True)
    parts = {'score': slice(0, 1), 'bbox': slice(1, 5), 'kps': slice(5, 15)}
    return {f'{name}_{s}': tables[s][:, part] for name, part in parts.items() for s in tables}


def yunet(things, size, classes):
    """Score = square root of class * objectness."""
    def encode(t, stride, column, row, share):
        cx, cy, w, h = xywh(t.box)
        points = flat((x / stride - column, y / stride - row) for x, y in t.points)
        box = [cx / stride - column, cy / stride - row, np.log(w / stride), np.log(h / stride)]
        return [0.99, (t.score * share) ** 2 / 0.99, *box, *points]
    tables = levels(things, size, (8, 16, 32), 16, 1, encode, lambda t, s: True)
    parts = {'cls': slice(0, 1), 'obj': slice(1, 2), 'bbox': slice(2, 6), 'kps': slice(6, 16)}
    return {f'{name}_{s}': tables[s][None, :, part] for name, part in parts.items() for s in tables}
