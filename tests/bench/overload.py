#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A live source at twice what vartmlinfer can infer, for a long time: it must go on at its capacity, with bounded
latency and memory. Exit 1 where it does not.

usage: overload.py --build DIR [--seconds N] [MODEL.onnx]      the model defaults to YOLOX-nano of the folder shared
"""
import argparse
import os
import sys
import tempfile

import element
from rows import SHARED, Bench

DEPTH = 2  # frames in flight that the element allows by itself


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('--seconds', type=float, default=600)
    parser.add_argument('model', nargs='?', default=os.path.join(SHARED, 'models', 'yolox_nano_416', 'model.onnx'))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        model = element.compiled(work, options.model)
        found = element.measure(Bench(options.build, ''), 'overload', model, options.seconds)
    rows = [('inferred frames/s of the capacity', found['inferred'] / found['capacity'], 'min', 0.9),
            ('99th percentile of inferred frames to unloaded', found['p99'] / found['unloaded-p99'], 'max', 3),
            ('frames in flight', found['in-flight-max'], 'max', DEPTH),
            ('growth of anonymous memory in MiB', (found['memory-after'] - found['memory-before']) / 1024, 'max', 1)]
    print(' '.join(f'{name} {value:g}' for name, value in found.items()))
    missed = False
    for name, value, sense, limit in rows:
        ok = value >= limit if sense == 'min' else value <= limit
        missed = missed or not ok
        print(f'{name}: {value:.2f} ({sense} {limit}) {"ok" if ok else "MISSED"}')
    return 1 if missed else 0


sys.exit(main())
