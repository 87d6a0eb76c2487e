# SPDX-License-Identifier: Apache-2.0
"""What vartmltrace adds to the time of a frame."""
import os
import re
import statistics
import subprocess

import element
from rows import HERE

FRAMES = 300
PAIRS = 20
QRFINDER = os.path.join(HERE, '../../pipelines/models/qrfinder/qrfinder.onnx')
LIMIT = 3  # per cent of the frame time, tracer and runtime together


def frame_us(model, tracers):
    """Of a pipeline as fast as it goes, without what comes before its first frame."""
    line = (f'videotestsrc pattern=black num-buffers={FRAMES} ! video/x-raw,format=NV12,width=640,height=480 ! queue ! '
            f'vartmlinfer model={model} ! vartmldecode ! queue ! fakesink sync=false')
    done = subprocess.run(['gst-launch-1.0', *line.split()], check=True, capture_output=True, text=True,
                          env={**os.environ, 'GST_TRACERS': tracers, 'LC_ALL': 'C'})
    hours, minutes, seconds = re.search(r'Execution ended after (\d+):(\d+):([\d.]+)', done.stdout).groups()
    return (int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1e6 / FRAMES


def bench_trace(bench, work):
    if not bench.wants('trace/overhead'):
        return
    model = element.compiled(work, QRFINDER)
    tracers = {'off': '', 'on': f'vartmltrace(file={work}/trace.json)'}
    frame_us(model, '')  # packed weights
    shares, times = [], []
    for turn in range(PAIRS):  # each first as often as the other
        found = {mode: frame_us(model, tracers[mode]) for mode in (['off', 'on'] if turn % 2 else ['on', 'off'])}
        shares.append(100 * (found['on'] / found['off'] - 1))
        times.append(found['off'])
    bench.add('trace/overhead', '%', statistics.median(shares), None, '', LIMIT, 'max')
    shares.sort()
    bench.notes.append(f'trace/overhead: {shares[1]:+.1f} to {shares[-2]:+.1f} % without the extremes, of frames that take '
                       f'{statistics.median(times):.0f} us')
