#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed against peers, measured in pairs in one run; the rows and limits are those of docs/architecture.md.

usage: bench.py --build DIR --out bench.json [REGEX]
Each row: {name, unit, ours, peer, peer_name, ratio, limit, sense, pass}; ratio = ours / peer. Exit 1 when a row misses its
limit or a row of the committed list (rows.txt) is missing.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import capture
import element
import installed
import kernels
import load
import models
import publish
import tracing
import video
from rows import HERE, THREADS, Bench, say


def examine(bench):
    """What the doctor says of this machine, with the peaks of THREADS processors where a row needs them."""
    def few_processors():
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    with tempfile.NamedTemporaryFile(suffix='.json') as file:
        arguments = ['--calibrate'] if bench.wants('model/peak') else []
        process = subprocess.run(['vartml', 'doctor', '--json', file.name, *arguments], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True, preexec_fn=few_processors)
        if process.returncode not in (0, 1):
            raise RuntimeError(f'vartml doctor failed: {process.stdout}')
        for line in process.stdout.splitlines():
            if line.startswith('problem'):
                bench.notes.append(f'vartml doctor: {line}')
        with open(file.name, encoding='utf-8') as written:  # a new file of this name
            return json.load(written)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('--out', default='bench.json')
    parser.add_argument('regex', nargs='?', default='')
    options = parser.parse_args()
    bench = Bench(options.build, options.regex)
    with tempfile.TemporaryDirectory() as work:
        bench.doctor = examine(bench)
        models.bench_models(bench, work)
        models.bench_floor(bench, work)
        kernels.bench_frames(bench, work)
        kernels.bench_layouts(bench, work)
        kernels.bench_track(bench, work)
        kernels.bench_decode(bench, work)
        kernels.bench_segment(bench, work)
        kernels.bench_overlay(bench, work)
        publish.bench_publish(bench, work)
        models.bench_compile(bench, work)
        capture.bench_capture(bench, work)
        load.bench_load(bench, work)
        element.bench_element(bench, work)
        installed.bench_installed(bench, work)
        tracing.bench_trace(bench, work)
        video.bench_video(bench, work)
        video.bench_bf16(bench)
    with open(os.path.join(HERE, 'rows.txt'), encoding='utf-8') as f:
        listed = [line.strip() for line in f if line.strip() and not line.startswith('#')]
    have = {row['name'] for row in bench.rows}
    missing = [name for name in listed if bench.wants(name) and name not in have]
    for note in bench.notes:
        say(f'note: {note}')
    for name in missing:
        say(f'missing row: {name}')
    machine = {'cpu': next((line.split(':')[1].strip() for line in open('/proc/cpuinfo', encoding='utf-8')
                            if line.startswith('model name')), '?'), 'threads': THREADS}
    with open(options.out, 'w', encoding='utf-8') as f:
        json.dump({'machine': machine, 'rows': bench.rows, 'notes': bench.notes}, f, indent=2)
        f.write('\n')
    return 1 if missing or any(row['pass'] is False for row in bench.rows) else 0


sys.exit(main())
