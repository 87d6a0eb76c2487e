#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A live source at 2, 4 and 10 times what vartmlinfer can infer, for a long time: every picture must leave at its time and
with a result, inference go on at its capacity, memory stay. Exit 1 where it does not.

usage: overload.py --build DIR [--seconds N] [MODEL.onnx]      the model defaults to YOLOX-nano of the folder shared
"""
import argparse
import os
import sys
import tempfile

import element
from rows import SHARED, Bench

DEPTH = 2 + 1  # frames in flight: what the element allows by itself, and the next one


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('--seconds', type=float, default=600)
    parser.add_argument('model', nargs='?', default=os.path.join(SHARED, 'models', 'yolox_nano_416', 'model.onnx'))
    options = parser.parse_args()
    missed = False
    with tempfile.TemporaryDirectory() as work:
        model = element.compiled(work, options.model)
        for factor in (2, 4, 10):
            found = element.measure(Bench(options.build, ''), 'overload', model, options.seconds / 3, factor)
            print(f'{factor} times the capacity:', ' '.join(f'{name} {value:g}' for name, value in found.items()))
            missed = not all([check(*row) for row in rows(found)]) or missed
    return 1 if missed else 0


def rows(found):
    return [('pictures/s of the source', found['pictures'] / found['source'], 'min', 0.98),
            ('99th percentile of their delay in ms', found['p99'] / 1000, 'max', 40),
            ('pictures without a result', found['without-result'], 'max', 0),
            ('pictures in another order', found['disorder'], 'max', 0),
            ('inferred frames/s of the capacity', found['inferred'] / found['capacity'], 'min', 0.9),
            ('frames in flight', found['in-flight-max'], 'max', DEPTH),
            ('growth of anonymous memory in MiB', (found['memory-after'] - found['memory-before']) / 1024, 'max', 1)]


def check(name, value, sense, limit):
    ok = value >= limit if sense == 'min' else value <= limit
    print(f'  {name}: {value:.2f} ({sense} {limit}) {"ok" if ok else "MISSED"}')
    return ok


sys.exit(main())
