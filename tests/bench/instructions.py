#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of an inference on 64-bit Arm, ours and ONNX Runtime's, in QEMU's user emulation.

usage: instructions.py --build FOLDER [--more N] MODEL.onnx...
  --build  a build for arm64 with the programs of tests/bench
  --more   inferences over which one is averaged [2]

The time of an emulated processor means nothing; the number of its instructions is the same on every machine. QEMU's log says
which instructions a block of code has and when it is executed. `process` is all from the start to the first result, with a
compiled model or a session loaded; `inference` is what each of N further ones adds, which for a model of few instructions needs
a large N: two starts differ by some hundred thousand. One thread, float32. ONNX Runtime is Debian's. Minutes per model.
"""
import argparse
import collections
import glob
import os
import subprocess
import sys
import tempfile

LIBRARIES = '/usr/lib/aarch64-linux-gnu/libonnxruntime.so.*'


def count(log):
    """Instructions in a log of `-d exec,nochain,in_asm`: after `IN:` a line for each of a block, then a blank one; `Trace 0:
    host [flags/address/…]` where the block of that address is executed."""
    sizes, executed = {}, collections.Counter()
    address, size = b'', 0
    for line in log:
        if line.startswith(b'Trace '):
            executed[line.split(b'/', 2)[1].lstrip(b'0')] += 1
        elif line.startswith(b'IN:'):
            address, size = b'', 0
        elif line.startswith(b'0x'):
            address = address or line[2:line.index(b':')].lstrip(b'0')
            size += 1
            sizes[address] = size
    unknown = sum(times for at, times in executed.items() if at not in sizes)
    if not executed or unknown * 1000 > sum(executed.values()):
        sys.exit(f'instructions.py: of {sum(executed.values())} blocks that were executed QEMU lists {unknown} not')
    return sum(times * sizes.get(at, 0) for at, times in executed.items())


def count_run(command, inferences):
    """Of a peer, from its start to its end."""
    read, write = os.pipe()
    with subprocess.Popen(['qemu-aarch64', '-d', 'exec,nochain,in_asm', '-D', f'/dev/fd/{write}', *command], pass_fds=[write],
                          stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        os.close(write)
        process.stdin.write(f'run {inferences}\n'.encode())
        process.stdin.close()
        with open(read, 'rb', buffering=1 << 20) as log:
            counted = count(log)
    if process.returncode != 0:
        sys.exit(f'instructions.py: {command[0]} ended with {process.returncode}')
    return counted


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    parser.add_argument('--more', type=int, default=2)
    parser.add_argument('models', nargs='+')
    options = parser.parse_args()
    peers = os.path.join(options.build, 'tests/bench')
    library = next(iter(sorted(glob.glob(LIBRARIES))), None)
    if not library:
        sys.exit(f'instructions.py: there is no {LIBRARIES}')
    print(f'{"million instructions":24} {"inference":>24} {"process":>24}')
    print(f'{"":24} {"ours":>8} {"ORT":>8} {"ratio":>6} {"ours":>8} {"ORT":>8} {"ratio":>6}', flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for number, model in enumerate(options.models):
            compiled = os.path.join(folder, f'{number}.rai')
            subprocess.run([os.path.join(options.build, 'lib/tools/vartml'), 'compile', model, '-q', '--numerics', 'f32', '-o',
                            compiled], check=True)
            counts = []
            for command in ([os.path.join(peers, 'vartml_peer'), compiled, '1'],
                            [os.path.join(peers, 'ort_peer'), library, 'cpu', '1', model]):
                once, often = (count_run(command, n) / 1e6 for n in (1, 1 + options.more))
                counts.append(((often - once) / options.more, once))
            name = os.path.basename(model)
            name = os.path.basename(os.path.dirname(os.path.abspath(model))) if name == 'model.onnx' else name
            print(f'{name:24}' + ''.join(f' {ours:8.1f} {theirs:8.1f} {theirs / ours:6.2f}' for ours, theirs in zip(*counts)),
                  flush=True)


if __name__ == '__main__':
    main()
