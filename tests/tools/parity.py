#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a real model and compares its outputs with those of an independent float32 reference.

usage: parity.py VARTML MODEL NUMERICS RESULT_KIND [TOLERANCE]
RESULT_KIND: dir or rai; TOLERANCE replaces the limit of the comparison; exit 77: the folder shared is not there
"""
import os
import subprocess
import sys
import tempfile


def main():
    vartml, model, numerics, kind, *tolerance = sys.argv[1:]
    folder = os.path.join(os.environ.get('VARTML_SHARED', ''), 'models', model)
    data = os.path.join(folder, 'test_data_set_0')
    if not os.path.isdir(data):
        print(f'skipped: {data} is not there')
        return 77
    with tempfile.TemporaryDirectory() as work:
        compiled = os.path.join(work, 'model.rai' if kind == 'rai' else 'model')
        commands = [
            [vartml, 'compile', os.path.join(folder, 'model.onnx'), '-o', compiled, '--numerics', numerics],
            [vartml, 'run', compiled, '--numerics', numerics, '--inputs', data, '--expect', data,
             '--warmup', '1', '--iterations', '2', *(['--tolerance', tolerance[0]] if tolerance else [])],
        ]
        for command in commands:
            print(' '.join(command), flush=True)
            status = subprocess.run(command).returncode
            if status != 0:
                print(f'ended with {status}')
                return 1
    return 0


sys.exit(main())
