#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An output that is a picture (super resolution, style, noise removal), which no element draws: from the frame's tensor to a file.

    output_picture.py MODEL PICTURE OUT.ppm [PREPROCESS]     PREPROCESS: 'mean=0 scale=0.00392157', say
"""
import array
import sys

import gi

gi.require_version('Gst', '1.0')
gi.require_version('GstApp', '1.0')
gi.require_version('GstAnalytics', '1.0')
from gi.repository import Gst, GstAnalytics, GstApp  # noqa: E402,F401


def planes(shape):
    """Channels, height and width of [1,C,h,w] or [1,h,w,C] with one channel or three, and whether the channels come last."""
    if len(shape) == 4 and shape[0] == 1 and shape[1] in (1, 3):
        return shape[1], shape[2], shape[3], False
    if len(shape) == 4 and shape[0] == 1 and shape[3] in (1, 3):
        return shape[3], shape[1], shape[2], True
    return None


def picture(tensor):
    """The bytes of a PGM or PPM; None where the tensor is no picture of floats."""
    form = planes(list(tensor.get_dims()))
    if not form or tensor.data_type != GstAnalytics.TensorDataType.FLOAT32:
        return None
    channels, height, width, last = form
    values = array.array('f', tensor.data.extract_dup(0, tensor.data.get_size()))
    factor = 255 if max(values) <= 2 else 1  # models give 0 to 1, a little more where they overshoot, or 0 to 255
    pixels = bytes(min(max(round(factor * value), 0), 255) for value in values)
    if not last:
        pixels = b''.join(bytes(pixel) for pixel in zip(*(pixels[c * height * width:(c + 1) * height * width] for c in range(channels))))
    return b'P%d\n%d %d\n255\n' % (5 if channels == 1 else 6, width, height) + pixels


def main():
    Gst.init(None)
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    pipeline = Gst.parse_launch('filesrc name=file ! decodebin ! videoconvert ! vartmlinfer name=infer ! appsink name=frames sync=false')
    pipeline.get_by_name('file').set_property('location', sys.argv[2])
    pipeline.get_by_name('infer').set_property('model', sys.argv[1])
    if len(sys.argv) > 4:
        pipeline.get_by_name('infer').set_property('preprocess', sys.argv[4])
    pipeline.set_state(Gst.State.PLAYING)
    sample = pipeline.get_by_name('frames').pull_sample()
    error = None if sample else pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    found = None
    if sample:
        meta = GstAnalytics.buffer_get_tensor_meta(sample.get_buffer())
        found = next(filter(None, (picture(meta.get(i)) for i in range(meta.num_tensors))), None)
    pipeline.set_state(Gst.State.NULL)
    if not found:
        print(f"output_picture.py: {error.parse_error()[0].message if error else 'no output is a picture of floats, 1 or 3 channels'}",
              file=sys.stderr)
        return 1
    with open(sys.argv[3], 'wb') as file:
        file.write(found)
    return 0


sys.exit(main())
