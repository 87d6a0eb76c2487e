#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A trace of over 500 MB, joined with a host trace of over 500 MB, is written in little memory and is well formed.
Exit 1 where it is not.

usage: long_trace.py --build DIR [--folder DIR]     needs 1.5 GB there
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CHECK = os.path.join(HERE, '..', 'support', 'trace_check.py')
BOOT = '-'.join(['b0' * 4] + ['b0' * 2] * 3 + ['b0' * 6])
MIB = 1 << 20


def write_host_trace(path, size):
    """Frames of a long live pipeline; the inference is in its middle. One frame is that of the inference."""
    head = ('[\n{"ph":"M","name":"vartml_capture","pid":4242,"tid":4242,"args":{"version":1,"clock":"CLOCK_MONOTONIC",'
            f'"boot_id":"{BOOT}"}}}},\n'
            '{"ph":"M","name":"thread_name","pid":4242,"tid":4243,"args":{"name":"queue:src"}}')
    with open(path, 'w', encoding='ascii') as file:
        file.write(head)
        written, at, frame = 0, 0, 0
        while written < size:
            text = ''.join(
                f',\n{{"ph":"X","name":"vartmlinfer","cat":"gst","pid":4242,"tid":4243,"ts":{at + 40 * i}.125,"dur":30.000,'
                f'"args":{{"element":"vartmlinfer0","pad":"sink","frame":"0:{frame + i}","bytes":1228800,"selfUs":30.000}}}}'
                f',\n{{"ph":"b","name":"wait","cat":"queue","pid":4242,"tid":4243,"ts":{at + 40 * i}.125,"id":{frame + i}}}'
                f',\n{{"ph":"e","name":"wait","cat":"queue","pid":4242,"tid":4243,"ts":{at + 40 * i + 20}.125,"id":{frame + i}}}'
                for i in range(4096))
            file.write(text)
            written, at, frame = written + len(text), at + 40 * 4096, frame + 4096
        file.write('\n]\n')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('--folder')
    parser.add_argument('--threads', type=int, default=48, help='of each of the 16 cores')
    options = parser.parse_args()
    program = os.path.join(options.build, 'tests', 'bench', 'long_trace')
    peaks = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        host, trace = os.path.join(folder, 'host.json'), os.path.join(folder, 'long.trace.json')
        write_host_trace(host, 500 * MIB)
        for threads in (options.threads // 8, options.threads):
            subprocess.run([program, 'make', folder, str(threads)], check=True)
            start = time.monotonic()
            peaks[threads] = int(subprocess.run([program, 'write', folder, str(threads), host], check=True, capture_output=True,
                                                text=True).stdout)
            seconds = time.monotonic() - start
            size = os.path.getsize(trace)
            print(f'{threads} threads per core: {size / 1e6:.0f} MB of trace, {os.path.getsize(host) / 1e6:.0f} MB of host trace, '
                  f'{seconds:.1f} s, peak {peaks[threads] / 1024:.1f} MiB', flush=True)
        check = subprocess.run([sys.executable, CHECK, trace])
    growth = (peaks[options.threads] - peaks[options.threads // 8]) / 1024
    rows = [('size of the trace in MB', size / 1e6, 'min', 500), ('peak resident memory in MiB', peaks[options.threads] / 1024, 'max', 128),
            ('growth of it with an eighth of the trace in MiB', growth, 'max', 16), ('faults found', float(check.returncode), 'max', 0)]
    missed = False
    for name, value, sense, limit in rows:
        ok = value >= limit if sense == 'min' else value <= limit
        missed = missed or not ok
        print(f'{name}: {value:.2f} ({sense} {limit}) {"ok" if ok else "MISSED"}')
    return 1 if missed else 0


sys.exit(main())
