#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `vartml compile --quantize` costs: each model in int8 against itself in fp32, on frames that it was not calibrated on.

usage: int8.py BUILD WORK [--only REGEX] [--frames choose|final] [-- ARGUMENTS of vartml compile]
Frames are made once in WORK: a quarter to calibrate on, a quarter to choose between variants on, and half that only the figures
which are told are measured on. A line per model: good, all, the worst case and the mean (int8_accuracy.cpp), share of multiply-adds in int8.
"""
import argparse
import array
import os
import re
import subprocess
import sys

from rows import SHARED

PERSONS = 'video/person_one_by_one.mp4'
BOTTLES = 'video/bottle_detection.mp4'
# Model: kind of result, arguments of the compiler, what it sees.
MODELS = {
    'yolox_nano_416': ('boxes', ['--decoder', 'yolox'], [PERSONS, BOTTLES, 'images/yolox_dog.jpg']),
    'lightperson': ('boxes', ['--decoder', 'yolox'], [PERSONS]),
    'ultraface_rfb_320': ('boxes', ['--decoder', 'ultraface'], [PERSONS, 'faces']),
    'selfie_landscape': ('mask', ['--mean', '0', '--scale', '0.00392156862745098', '--channels', 'rgb'],
                         [PERSONS, 'images/selfie_test.jpg']),
    'hand_landmark': ('points', ['--mean', '0', '--scale', '0.00392156862745098', '--channels', 'rgb'], ['palms']),
    'super_resolution_10': ('values', [], ['grey', 'grey_film']),
}


def gst(line):
    subprocess.run(['gst-launch-1.0', '-q', *line.split()], check=True, stdout=subprocess.DEVNULL)


def film_frames(source, folder):
    """A frame every two seconds."""
    gst(f'filesrc location={source} ! decodebin ! videorate drop-only=true ! video/x-raw,framerate=1/2 ! videoconvert ! '
        f'pngenc ! multifilesink location={folder}/%04d.png')


def cut(source, target, box, size, flip='none', form='RGB', last='pngenc'):
    """A square of a picture of 1024 x 1024."""
    left, top, side = box
    gst(f'filesrc location={source} ! jpegdec ! videoconvertscale ! '
        'video/x-raw,width=1024,height=1024,pixel-aspect-ratio=1/1 ! '
        f'videocrop left={left} top={top} right={1024 - left - side} bottom={1024 - top - side} ! videoflip method={flip} ! '
        f'videoconvertscale ! video/x-raw,format={form},width={size},height={size} ! {last} ! filesink location={target}')


def palms(source, folder):
    """A hand, larger and smaller, moved, and both hands of a pair."""
    number = 0
    for side in (780, 820, 860, 900, 960, 1020):
        for shift in (0, 1, 2, 3):
            room = 1024 - side
            left, top = room * (shift % 2), room * (shift // 2)
            for flip in ('none', 'horizontal-flip'):
                cut(source, f'{folder}/{number:04d}.png', (left, top, side), 256, flip)
                number += 1


def faces(source, folder):
    """Parts of a crowd, larger and smaller, and their mirror images."""
    number = 0
    for side in (620, 780, 900, 1020):
        for shift in (0, 1, 2, 3):
            room = 1024 - side
            cut(source, f'{folder}/{number:04d}.png', (room * (shift % 2), room * (shift // 2), side), 640,
                'horizontal-flip' if (number + number // 4) % 2 else 'none')
            number += 1


def as_tensor(target):
    """Bytes of 224 x 224 as luminance from 0 to 1."""
    with open(target, 'rb') as file:
        pixels = array.array('f', [byte / 255 for byte in file.read()])
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 224, 224), }"
    header = header.ljust(128 - 11) + '\n'
    with open(target, 'wb') as file:
        file.write(b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') + header.encode() + pixels.tobytes())


def grey(source, folder):
    """Squares of photographs."""
    for number, name in enumerate(sorted(os.listdir(source))):
        if not name.endswith('.jpg') or name.startswith('goldfish'):
            continue
        for part, box in enumerate(((0, 0, 600), (300, 200, 500), (400, 400, 448), (0, 500, 500), (600, 0, 400))):
            target = f'{folder}/{number:02d}_{part}.npy'
            cut(os.path.join(source, name), target, box, 224, form='GRAY8', last='identity')
            as_tensor(target)


def grey_film(source, folder):
    """The middle of a film, every four seconds."""
    gst(f'filesrc location={source} ! decodebin ! videorate drop-only=true ! video/x-raw,framerate=1/4 ! videoconvertscale ! '
        f'video/x-raw,format=GRAY8,width=448,height=448 ! videocrop left=112 right=112 top=112 bottom=112 ! '
        f'multifilesink location={folder}/%04d.npy')
    for name in os.listdir(folder):
        as_tensor(os.path.join(folder, name))


def make_frames(source, folder):
    os.makedirs(folder)
    data = os.path.join(SHARED, 'models')
    if source == 'palms':
        palms(os.path.join(data, 'images/palm1.jpg'), folder)
    elif source == 'faces':
        faces(os.path.join(data, 'images/ultraface_1.jpg'), folder)
    elif source == 'grey':
        grey(os.path.join(data, 'images'), folder)
    elif source == 'grey_film':
        grey_film(os.path.join(data, PERSONS), folder)
    elif source.endswith('.mp4'):
        film_frames(os.path.join(data, source), folder)
    else:
        os.symlink(os.path.abspath(os.path.join(data, source)), os.path.join(folder, os.path.basename(source)))


def frames_of(work, sources, use):
    """Those to calibrate on and those to measure on; a lone picture is calibrated on."""
    calibration, trial = [], []
    for source in sources:
        folder = os.path.join(work, 'frames', source.replace('/', '_'))
        if not os.path.exists(folder):
            make_frames(source, folder)
        for number, name in enumerate(sorted(os.listdir(folder))):
            part = {0: 'calibrate', 1: 'final', 2: 'choose', 3: 'final'}[number % 4]
            if part == 'calibrate':
                calibration.append(os.path.join(folder, name))
            elif part == use:
                trial.append(os.path.join(folder, name))
    return calibration, trial


def run(command):
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.returncode:
        raise RuntimeError(f'{" ".join(command[:4])} … failed: {process.stderr}')
    return process.stdout + process.stderr


def quantised(work, name, use='final', arguments=()):
    """The model in int8, what the compiler said of it, and frames of this use, which it was not calibrated on."""
    _, own, sources = MODELS[name]
    onnx = os.path.join(SHARED, 'models', name, 'model.onnx')
    calibration, trial = frames_of(work, sources, use)
    folder = os.path.join(work, 'calibration', name)
    os.makedirs(folder, exist_ok=True)
    for number, file in enumerate(calibration):
        link = os.path.join(folder, f'{number:04d}{os.path.splitext(file)[1]}')
        if not os.path.exists(link):
            os.symlink(os.path.abspath(file), link)
    coarse = os.path.join(work, f'{name}.int8.rai')
    said = run(['vartml', 'compile', onnx, '-o', coarse, '--force', '--quantize', folder, *own, *arguments])
    return coarse, said, trial


def measure(build, work, name, use, arguments):
    kind, own, _ = MODELS[name]
    onnx = os.path.join(SHARED, 'models', name, 'model.onnx')
    coarse, said, trial = quantised(work, name, use, arguments)
    exact = os.path.join(work, f'{name}.f32.rai')
    if not os.path.exists(exact):
        run(['vartml', 'compile', onnx, '-o', exact, '--numerics', 'f32', *own])
    with open(os.path.join(work, f'{name}.log'), 'w', encoding='utf-8') as file:
        file.write(said)
    good, total, worst, mean = run([os.path.join(build, 'tests/bench/int8_accuracy'), exact, coarse, kind, *trial]).split()
    share = re.search(r'([0-9.]+) % of the multiply-adds', said)
    decibels = re.findall(r'cosine ([0-9.-]+), signal to error ([0-9.-]+) dB', said)
    outputs = ', '.join(f'{cosine} {ratio} dB' for cosine, ratio in decibels)
    print(f'{name:20} {kind:6} {100 * int(good) / max(int(total), 1):6.2f} % of {total:>4}, worst {float(worst):8.3f}, mean {float(mean):8.4f}, int8 '
          f'{share.group(1) if share else "?":>5} %, outputs {outputs}', flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('work')
    parser.add_argument('--only', default='')
    parser.add_argument('--frames', choices=('choose', 'final'), default='final')
    parser.add_argument('arguments', nargs='*')
    options = parser.parse_args()
    for name in MODELS:
        if re.search(options.only, name):
            try:
                measure(options.build, options.work, name, options.frames, options.arguments)
            except RuntimeError as error:
                sys.exit(str(error))


if __name__ == '__main__':
    main()
