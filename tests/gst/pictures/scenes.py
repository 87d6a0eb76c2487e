# SPDX-License-Identifier: Apache-2.0
"""What is on the pictures of shared/models/images: boxes, points and outlines, drawn by hand, and how a picture lies in a
model's input."""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass
class Thing:
    label: int
    score: float
    box: tuple = (0, 0, 1, 1)
    points: list = dataclasses.field(default_factory=list)
    outline: list = dataclasses.field(default_factory=list)
    angle: float = 0.0  # of the box about its centre, clockwise

    def moved(self, x, y, whole=False):
        """With other coordinates; `whole`: corners of boxes are pixels."""
        x0, y0, x1, y1 = self.box
        box = x(x0), y(y0), x(x1), y(y1)
        return dataclasses.replace(self, box=tuple(round(v) for v in box) if whole else box,
                                   points=[(x(a), y(b)) for a, b in self.points], outline=[(x(a), y(b)) for a, b in self.outline])

    def covers(self, x, y):
        """Whether points lie inside of the outline."""
        inside = np.zeros(np.broadcast_shapes(x.shape, y.shape), bool)
        for (ax, ay), (bx, by) in zip(self.outline, self.outline[1:] + self.outline[:1]):
            if ay != by:
                inside ^= ((ay > y) != (by > y)) & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
        return inside


@dataclasses.dataclass
class Scene:
    file: str
    size: tuple  # that the coordinates below are of
    things: list
    labels: list

    def at(self, width, height):
        """The things in a frame of this size, which shows all of the picture."""
        sx, sy = width / self.size[0], height / self.size[1]
        return [t.moved(lambda x: x * sx, lambda y: y * sy, whole=True) for t in self.things]


class Fit:
    """How a frame lies in the input of a model: input = frame * scaled / frame size + offset."""

    def __init__(self, mode, frame, model):
        if mode == 'stretch':
            self.scaled, self.offset = model, (0, 0)
        else:
            gain = min(m / f for m, f in zip(model, frame))
            self.scaled = tuple(max(1, math.floor(f * gain + 0.5)) for f in frame)
            centred = tuple((m - s) // 2 for m, s in zip(model, self.scaled))
            self.offset = centred if mode == 'letterbox' else (0, 0)
        self.scale = tuple(s / f for s, f in zip(self.scaled, frame))

    def thing(self, thing):
        return thing.moved(lambda x: x * self.scale[0] + self.offset[0], lambda y: y * self.scale[1] + self.offset[1])


COMMON = ['person', 'bicycle', 'car', 'dog']
DOG = [(262, 222), (300, 235), (303, 290), (298, 340), (280, 385), (272, 400), (292, 432), (308, 465), (300, 473), (275, 465),
       (250, 440), (240, 480), (276, 505), (270, 520), (230, 540), (180, 535), (140, 500), (134, 440), (145, 370), (180, 320),
       (215, 285), (212, 255), (235, 240)]
CAR = [(480, 75), (570, 77), (625, 97), (685, 125), (690, 160), (660, 170), (640, 155), (540, 148), (520, 160), (505, 145),
       (468, 135)]
porch = Scene('yolox_dog', (768, 576), [
    Thing(3, 0.95, (134, 222, 309, 540), outline=DOG),
    Thing(1, 0.90, (127, 134, 566, 420), outline=[(127, 240), (160, 134), (440, 134), (566, 300), (480, 420), (350, 380), (130, 380)]),
    Thing(2, 0.85, (468, 75, 690, 171), outline=CAR)], COMMON)
# The dog, the tube of the bicycle and the car in boxes that are turned.
turned = Scene('yolox_dog', (768, 576), [
    Thing(3, 0.95, (57, 302, 387, 462), angle=-1.15),
    Thing(1, 0.90, (204, 273, 420, 297), angle=0.834),
    Thing(2, 0.85, (469, 78, 691, 168), angle=0.11)], COMMON)


def face(box, right_eye, left_eye, nose, right_mouth, left_mouth, score):
    return Thing(0, score, box, [right_eye, left_eye, nose, right_mouth, left_mouth])


faces = Scene('ultraface_1', (1024, 715), [
    face((76, 352, 146, 436), (100, 387), (127, 388), (114, 398), (101, 411), (126, 411), 0.97),
    face((288, 352, 362, 442), (308, 394), (338, 393), (324, 406), (310, 421), (337, 420), 0.95),
    face((464, 345, 542, 450), (487, 394), (517, 392), (500, 406), (487, 425), (517, 424), 0.93),
    face((704, 358, 772, 443), (721, 404), (748, 404), (735, 415), (722, 427), (748, 427), 0.91),
    face((915, 360, 985, 455), (934, 408), (961, 405), (946, 419), (932, 434), (959, 432), 0.89)], ['face'])

plain_faces = dataclasses.replace(faces, things=[dataclasses.replace(t, points=[]) for t in faces.things])


def six_points(thing):
    """Eyes, nose, mouth, ears."""
    right, left, nose, mouth_right, mouth_left = thing.points
    mouth = (mouth_right[0] + mouth_left[0]) / 2, (mouth_right[1] + mouth_left[1]) / 2
    ears = [(thing.box[0] + 3, right[1] + 4), (thing.box[2] - 3, left[1] + 4)]
    return dataclasses.replace(thing, points=[right, left, nose, mouth, *ears])


heads = dataclasses.replace(faces, things=[six_points(t) for t in faces.things])
man = Scene('bodypix_single', (1024, 768), [Thing(0, 0.92, (2, 140, 936, 766), [
    (533, 308), (578, 300), (520, 271), (660, 344), (520, 240), (715, 480), (425, 385), (890, 630), (235, 350), (760, 340),
    (150, 260), (650, 720), (410, 720), (575, 727), (110, 680), (600, 728), (60, 725)])], ['person'])
HAND_BONES = ';'.join(f'{a}-{b}' for finger in range(5) for a, b in zip([0, *range(4 * finger + 1, 4 * finger + 4)],
                                                                      range(4 * finger + 1, 4 * finger + 5)))
hand = Scene('palm1', (1024, 1024), [Thing(0, 0.96, (130, 220, 920, 1000), [
    (370, 960), (560, 850), (720, 720), (835, 530), (900, 400), (665, 590), (676, 480), (680, 370), (675, 270), (520, 580),
    (516, 470), (505, 335), (500, 240), (372, 570), (360, 450), (350, 325), (345, 235), (245, 590), (205, 480), (178, 390),
    (165, 330)])], ['hand'])
palm = dataclasses.replace(hand, things=[Thing(0, 0.96, (180, 540, 740, 1000), [hand.things[0].points[i] for i in (0, 5, 9, 13, 17, 1, 2)])])
MAN = [(195, 576), (250, 420), (345, 375), (420, 318), (448, 335), (438, 250), (435, 100), (480, 55), (560, 40), (640, 70), (685, 130),
       (680, 230), (640, 265), (620, 285), (585, 320), (605, 340), (635, 400), (690, 425), (715, 576)]
passer = Scene('selfie_test', (1024, 576), [
    Thing(3, 1, outline=[(682, 0), (966, 0), (970, 576), (715, 576), (690, 425)]), Thing(1, 1, outline=MAN),
    Thing(2, 1, outline=[(85, 576), (100, 500), (235, 440), (270, 380), (345, 385), (378, 460), (370, 576)])],
    ['background', 'person', 'bag', 'pillar'])
MANY = {1: 256, 2: 100, 3: 299}
of_many = Scene('selfie_test', passer.size, [dataclasses.replace(t, label=MANY[t.label]) for t in passer.things],
                [f'thing-{i}' for i in range(300)])
fish = Scene('goldfish', (376, 263), [Thing(1, 0.9)], ['tench', 'goldfish', 'shark'])
