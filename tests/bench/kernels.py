# SPDX-License-Identifier: Apache-2.0
"""Pre-process, layouts, tracker, decoder and overlay."""
import json
import math
import os
import subprocess

from rows import Program, measure


def bench_frames(bench, _):
    """Pre-processing of a frame against GStreamer's element, a thread each."""
    program = os.path.join(bench.build, 'tests/bench/frames_peer')
    if not bench.wants('pre/nv12') or not os.path.exists(program):
        return
    programs = [Program(name, [program, name]) for name in ('ours', 'videoconvertscale')]
    times = measure(programs)
    for p in programs:
        p.close()
    bench.add('pre/nv12', 'frames/s', 1e9 / times['ours'], 1e9 / times['videoconvertscale'], 'videoconvertscale', 5, 'min')


def bench_layouts(bench, _):
    """Both directions of every worked example, at sizes of models and in memory that begins at a page; geometric mean."""
    if not bench.wants('layout/convert'):
        return
    runs = []
    for _ in range(3):
        lines = subprocess.run([os.path.join(bench.build, 'tests/bench/kernels_bench'), 'example-'], check=True,
                               stdout=subprocess.PIPE, text=True).stdout.splitlines()
        runs.append([json.loads(line) for line in lines])
    ratios = []
    for same in zip(*runs):
        row = sorted(same, key=lambda r: r['ratio'])[len(same) // 2]
        bench.add(row['name'].replace('example-', ''), 'us', row['ours'], row['peer'], 'memcpy', None, 'max')
        ratios.append(row['ratio'])
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    bench.add('layout/convert', 'x', mean, 1.0, 'memcpy', 1.5, 'max')


def milliseconds(bench, name):
    """The median of three runs of a row of kernels_bench."""
    times = []
    for _ in range(3):
        lines = subprocess.run([os.path.join(bench.build, 'tests/bench/kernels_bench'), name], check=True,
                               stdout=subprocess.PIPE, text=True).stdout.splitlines()
        rows = {row['name']: row for row in map(json.loads, lines)}
        times.append(rows[name]['ours'] / 1000)
    return sorted(times)[1]


def bench_track(bench, _):
    """A frame of 100 objects, a thread."""
    name = 'track/objects_100'
    if bench.wants(name):
        bench.add(name, 'ms', milliseconds(bench, name), None, None, 0.5, 'max')


def bench_decode(bench, _):
    """A YOLO v8 head of 80 classes at 8400 positions with 100 candidates, a thread."""
    name = 'decode/yolo_8400x84'
    for form in ('', '-transposed', '-bf16', '-int8'):
        if bench.wants(name + form):
            limit = None if form else 0.3
            bench.add(name + form, 'ms', milliseconds(bench, name + form), None, None, limit, 'max')


def bench_segment(bench, _):
    """The class of each cell of 19 maps of 256x512, a thread."""
    name = 'decode/segment_19x256x512'
    for form in ('', '-nhwc', '-bf16', '-int8'):
        if bench.wants(name + form):
            bench.add(name + form, 'ms', milliseconds(bench, name + form), None, None, None, 'max')


def bench_overlay(bench, _):
    """A frame of 1080p with 20 labelled boxes, drawn into, a thread."""
    name = 'overlay/boxes_20_1080p'
    program = os.path.join(bench.build, 'tests/bench/overlay')
    if not bench.wants(name) or not os.path.exists(program):
        return
    times = []
    for _ in range(3):
        line = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
        times.append(json.loads(line)['ours'] / 1000)
    bench.add(name, 'ms', sorted(times)[1], None, None, 1, 'max')
