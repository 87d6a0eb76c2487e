# SPDX-License-Identifier: Apache-2.0
"""usage: yolov8_shaped.py OUT.onnx: a model with the graph and the properties of an Ultralytics YOLOv8 export.

Structure as exported (three levels, SiLU convolutions, C2f split and concat, SPPF, upsampling, DFL head, output0
[1, 4 + classes, anchors] with boxes in pixels); the weights are set by hand so that a bright cell is a 'lamp' whose
box reaches 3 strides to each side. Structure: Ultralytics, models/v8/yolov8.yaml and nn/modules/head.py as exported.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE, WIDTH, REG_MAX, CLASSES = 320, 16, 16, ['lamp', 'fog']
nodes, constants, count = [], [], 0


def const(array, dtype=np.float32):
    global count
    count += 1
    constants.append(numpy_helper.from_array(np.asarray(array, dtype), f'c{count}'))
    return constants[-1].name


def node(kind, *inputs, outputs=1, **attributes):
    global count
    count += 1
    names = [f'{kind.lower()}{count}_{i}' for i in range(outputs)]
    nodes.append(helper.make_node(kind, list(inputs), names, name=f'/model/{kind}_{count}', **attributes))
    return names[0] if outputs == 1 else names


def convolution(x, weights, bias, stride=1):
    k = weights.shape[2]
    return node('Conv', x, const(weights), const(bias), kernel_shape=[k, k], strides=[stride, stride],
                pads=[k // 2] * 4)


def silu(x):
    return node('Mul', x, node('Sigmoid', x))


def mean_block(x, channels, stride=1, k=3):
    """Every output channel is the mean of the first input channels over the window, scaled to pass SiLU."""
    weights = np.zeros((WIDTH, channels, k, k), np.float32)
    weights[:, :, :, :] = 1.0 / (channels * k * k)
    return silu(convolution(x, weights, np.zeros(WIDTH), stride))


def c2f(x):
    a, b = node('Split', mean_block(x, WIDTH, k=1), const([WIDTH // 2, WIDTH // 2], np.int64), outputs=2, axis=1)
    inner = np.zeros((WIDTH // 2, WIDTH // 2, 3, 3), np.float32)
    inner[np.arange(WIDTH // 2), np.arange(WIDTH // 2), 1, 1] = 1
    c = node('Add', b, silu(convolution(b, inner, np.zeros(WIDTH // 2))))
    return mean_block(node('Concat', a, b, c, axis=1), WIDTH * 3 // 2, k=1)


def sppf(x):
    parts = [x]
    for _ in range(3):
        parts.append(node('MaxPool', parts[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]))
    return mean_block(node('Concat', *parts, axis=1), WIDTH * 4, k=1)


def head(x, cells, sees):
    """[1, 4 * REG_MAX + classes, cells]: distances of 3 strides, 'lamp' where it is brighter than the grey border."""
    distances = np.full(4 * REG_MAX, -10.0)
    distances[3::REG_MAX] = 10.0
    box = convolution(x, np.zeros((4 * REG_MAX, WIDTH, 1, 1)), distances)
    weights = np.zeros((len(CLASSES), WIDTH, 1, 1), np.float32)
    weights[0] = 40.0 if sees else 0
    scores = convolution(x, weights, np.array([-45.0, -20.0]))
    both = node('Concat', box, scores, axis=1)
    return node('Reshape', both, const([1, 4 * REG_MAX + len(CLASSES), cells], np.int64))


def main():
    x = mean_block('images', 3, 2)
    x = mean_block(x, WIDTH, 2)
    p3 = c2f(mean_block(x, WIDTH, 2))
    p4 = c2f(mean_block(p3, WIDTH, 2))
    p5 = sppf(c2f(mean_block(p4, WIDTH, 2)))
    up = node('Resize', p5, '', const([1, 1, 2, 2]), mode='nearest', coordinate_transformation_mode='asymmetric',
              nearest_mode='floor')
    p4 = node('Add', p4, node('Mul', up, const(0.0)))
    sides = [SIZE // 8, SIZE // 16, SIZE // 32]
    every = node('Concat', *[head(p, s * s, p == p3) for p, s in zip([p3, p4, p5], sides)], axis=2)
    boxes, scores = node('Split', every, const([4 * REG_MAX, len(CLASSES)], np.int64), outputs=2, axis=1)
    cells = sum(s * s for s in sides)
    bins = node('Transpose', node('Reshape', boxes, const([1, 4, REG_MAX, cells], np.int64)), perm=[0, 2, 1, 3])
    dfl = node('Conv', node('Softmax', bins, axis=1), const(np.arange(REG_MAX).reshape(1, REG_MAX, 1, 1)),
               kernel_shape=[1, 1])
    distance = node('Reshape', dfl, const([1, 4, cells], np.int64))
    low = node('Slice', distance, const([0], np.int64), const([2], np.int64), const([1], np.int64))
    high = node('Slice', distance, const([2], np.int64), const([4], np.int64), const([1], np.int64))
    anchors = np.concatenate([np.stack(np.meshgrid(np.arange(s) + 0.5, np.arange(s) + 0.5)).reshape(2, -1)
                              for s in sides], 1)[None]
    strides = np.concatenate([np.full(s * s, SIZE // s) for s in sides])[None]
    first, last = node('Sub', const(anchors), low), node('Add', const(anchors), high)
    centre = node('Div', node('Add', first, last), const(2.0))
    box = node('Mul', node('Concat', centre, node('Sub', last, first), axis=1), const(strides))
    nodes.append(helper.make_node('Concat', [box, node('Sigmoid', scores)], ['output0'], name='/model/output', axis=1))
    graph = helper.make_graph(
        nodes, 'main_graph', [helper.make_tensor_value_info('images', TensorProto.FLOAT, [1, 3, SIZE, SIZE])],
        [helper.make_tensor_value_info('output0', TensorProto.FLOAT, [1, 4 + len(CLASSES), cells])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8,
                              producer_name='pytorch')
    helper.set_model_props(model, {
        'description': 'YOLOv8n-shaped model', 'author': 'Ultralytics', 'task': 'detect', 'stride': '32', 'batch': '1',
        'imgsz': str([SIZE, SIZE]), 'names': str(dict(enumerate(CLASSES))), 'version': '8.3.0',
        'args': str({'batch': 1, 'nms': False})})
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, sys.argv[1])


main()
