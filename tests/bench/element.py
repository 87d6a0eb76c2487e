# SPDX-License-Identifier: Apache-2.0
"""vartmlinfer alone: what it adds to a run, several streams on one model, a live camera."""
import os
import statistics
import subprocess

from rows import SHARED

ROUNDS = 3


def measure(bench, *arguments):
    """The `name value` pairs that the program prints."""
    program = os.path.join(bench.build, 'tests/bench/element')
    words = subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True).stdout.split()
    return {name: float(value) for name, value in zip(words[::2], words[1::2])}


def compiled(work, onnx, *options):
    place = os.path.join(work, os.path.basename(os.path.dirname(onnx)) + ''.join(options) + '.rai')
    if not os.path.exists(place):
        subprocess.run(['vartml', 'compile', onnx, '-o', place, *options], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    return place


def one_operator(work):
    """A model of one operator, [1, 3, 64, 64]."""
    import onnx
    from onnx import TensorProto, helper
    shape = [1, 3, 64, 64]
    graph = helper.make_graph([helper.make_node('Relu', ['x'], ['y'])], 'relu',
                              [helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, shape)])
    folder = os.path.join(work, 'relu')
    os.makedirs(folder, exist_ok=True)
    place = os.path.join(folder, 'model.onnx')
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)]), place)
    return place


def bench_overhead(bench, work):
    if not bench.wants('element/overhead') and not bench.wants('element/allocs'):
        return
    model = compiled(work, one_operator(work))
    runs = [measure(bench, 'overhead', model) for _ in range(2 * ROUNDS)]
    # Neighbours on the machine only add: the best round is the element's.
    bench.add('element/overhead', 'us', min(run['p99'] for run in runs), None, '', 200, 'max')
    bench.add('element/allocs', 'per frame', max(run['allocs'] for run in runs), None, '', 0, 'max')


def bench_streams(bench, work, onnx):
    if not bench.wants('streams/4') and not bench.wants('streams/p95'):
        return
    model = compiled(work, onnx)
    measure(bench, 'streams', model, 1, 'shared', 1)  # packed weights
    pairs = []
    for turn in range(2 * ROUNDS):  # each first as often as the other
        modes = ['shared', 'separate'] if turn % 2 == 0 else ['separate', 'shared']
        found = {mode: measure(bench, 'streams', model, 4, mode, 4) for mode in modes}
        pairs.append((found['shared'], found['separate']))
    for row, key, limit, sense, unit in [('streams/4', 'fps', 1.2, 'min', 'frames/s'),
                                         ('streams/p95', 'p95', 1, 'max', 'us')]:
        ours, peer = (statistics.median(pair[i][key] for pair in pairs) for i in (0, 1))
        bench.add(row, unit, ours, peer, 'separate instances', limit, sense)


def bench_live(bench, work, onnx):
    if not bench.wants('live/'):
        return
    model = compiled(work, onnx)
    measure(bench, 'live', model, 1)  # packed weights
    runs = [measure(bench, 'live', model, 10) for _ in range(ROUNDS)]
    for row, key, unit in [('live/p99', 'p99', 'us'), ('live/cpu', 'cpu', '% of a core'), ('live/first', 'first', 'ms')]:
        bench.add(row, unit, statistics.median(run[key] for run in runs), None, '', None, 'max')
    for streams in (1, 4):
        runs = [measure(bench, 'live', model, 10, streams) for _ in range(ROUNDS)]
        for one in runs:  # a stream may announce nothing yet
            one['announced'] = max(one['announced'], 1)
        run = min(runs, key=lambda one: one['p95'] / one['announced'])  # as above
        held, announced, at_end = (run[key] for key in ('p95', 'announced', 'announced-at-end'))
        bench.add(f'live/held/{streams}', 'us', held, announced, 'latency at PLAYING', 1, 'max')
        bench.notes.append(f'live/held/{streams}: announced {announced:.0f} us at PLAYING, {at_end:.0f} us at the end')


def bench_element(bench, work):
    bench_overhead(bench, work)
    onnx = os.path.join(SHARED, 'models', 'yolox_nano_416', 'model.onnx')
    if not os.path.exists(onnx):
        bench.notes.append(f'streams, live: {onnx} is not here')
        return
    bench_streams(bench, work, onnx)
    bench_live(bench, work, onnx)
