# SPDX-License-Identifier: Apache-2.0
"""Whole pipelines, and what bf16 does to the boxes of a film."""
import os
import statistics
import subprocess
import sys
import time

from rows import HERE, SHARED


def frames_per_second(line, frames):
    """Without the time to start: from a run of few frames to one of many."""
    def seconds(count):
        start = time.monotonic()
        subprocess.run(['gst-launch-1.0', '-q', *line.replace('FRAMES', str(count)).split()], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - start
    few = 20
    return frames / (seconds(frames + few) - seconds(few))


def bench_video(bench, work):
    name = 'video/yolox'
    if not bench.wants(name):
        return
    clip = os.path.join(SHARED, 'models', 'video', 'person_one_by_one.mp4')
    onnx = os.path.join(SHARED, 'models', 'yolox_nano_416', 'model.onnx')
    if not os.path.exists(clip):
        bench.notes.append(f'{name}: {clip} is not here')
        return
    # onnxinference of 1.26 wants a metadata property per output name.
    tagged = os.path.join(work, 'tagged.onnx')
    subprocess.run([sys.executable, os.path.join(HERE, 'tag_outputs.py'), onnx, tagged], check=True)
    compiled = os.path.join(work, 'yolox.rai')
    subprocess.run(['vartml', 'compile', onnx, '-o', compiled, '--decoder', 'yolox'], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # identity counts one buffer more than it lets through.
    source = f'filesrc location={clip} ! decodebin ! identity eos-after=FRAMES'
    ours = (f'{source} ! queue ! vartmlinfer model={compiled} output-tensor-type=hw ! queue ! vartmldecode ! '
            'fakesink sync=false')
    convert = ('videoconvertscale ! video/x-raw,format=RGB,width=416,height=416,pixel-aspect-ratio=1/1')
    infer = f'onnxinference optimization-level=enable-all input-image-format=chw model-file={tagged}'
    peers = [f'{source} ! {convert} ! {infer} ! fakesink sync=false',
             f'{source} ! queue ! {convert} ! queue ! {infer} ! queue ! fakesink sync=false']
    mine, theirs = [], []
    for _ in range(3):
        mine.append(frames_per_second(ours, 600))
        theirs.append(max(frames_per_second(peer, 150) for peer in peers))
    bench.add(name, 'frames/s', statistics.median(mine), statistics.median(theirs), 'onnxinference', 10.0, 'min')


def bench_bf16(bench):
    """Boxes of a detector in bf16 that are those of fp32 (IoU 0.95, score 0.03), on frames of a film. Processors without
    bf16 products have the same arithmetic."""
    name = 'accuracy/bf16'
    clip = os.path.join(SHARED, 'models', 'video', 'person_one_by_one.mp4')
    onnx = os.path.join(SHARED, 'models', 'yolox_nano_416', 'model.onnx')
    program = os.path.join(bench.build, 'tests/bench/bf16_boxes')
    if not bench.wants(name):
        return
    if not os.path.exists(clip) or not os.path.exists(program):
        bench.notes.append(f'{name}: {clip} or {program} is not here')
        return
    answer = subprocess.run([program, onnx, clip], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True).stdout
    frames, boxes, apart, overlap, difference = answer.split()
    bench.add(name, '% of boxes', 100 * (1 - int(apart) / int(boxes)), None, '', 100, 'min')
    bench.notes.append(f'{name}: {apart} of {boxes} boxes on {frames} frames are apart; of those that are found in both, '
                       f'the worst IoU is {overlap}, the largest difference of scores {difference}')
