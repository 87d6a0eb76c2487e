#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What vartmlinfer says of each frame, read in Python by GObject introspection.

    read_metadata.py MODEL [PICTURE-OR-VIDEO]     without one: three frames of a test picture
"""
import sys
import warnings

import gi

warnings.simplefilter('ignore', DeprecationWarning)  # of ValueArray, the only way that GStreamer's arrays come in
gi.require_version('Gst', '1.0')
gi.require_version('GstVartml', '1.0')
from gi.repository import Gst, GstVartml  # noqa: E402


def inferences(buffer):
    """The records of a buffer, as Gst.Structure; their fields are those of gst/vartml/inference.h."""
    index = 0
    while inference := GstVartml.inference_get_structure(buffer, index):
        yield inference
        index += 1


def items(structure, field):
    found, array = structure.get_array(field)
    values = [array.get_nth(i) for i in range(array.n_values)] if found else []
    # Structures are the array's, which goes at the end of this function.
    return [value.copy() if isinstance(value, Gst.Structure) else value for value in values]


def show(inference):
    print(f"frame {inference.get_uint64('frame_seq')[1]}: {inference.get_string('status')}, "
          f"model {inference.get_string('model')}")
    a, b, c, d, e, f = items(inference, 'to_frame')
    print(f'  to_frame: x = {a:.3f} u + {b:.3f} v + {c:.3f}, y = {d:.3f} u + {e:.3f} v + {f:.3f}')
    for tensor in items(inference, 'tensors'):
        shape = 'x'.join(str(n) for n in items(tensor, 'shape'))
        print(f"  tensor {tensor.get_string('name')}: {tensor.get_string('view')} view, {tensor.get_string('data_type')} "
              f"{tensor.get_string('layout')} {shape}")


def main():
    Gst.init(None)
    if len(sys.argv) < 2:
        print('usage: read_metadata.py MODEL [PICTURE-OR-VIDEO]', file=sys.stderr)
        return 2
    source = ('filesrc name=file ! decodebin ! videoconvert' if len(sys.argv) > 2 else
              'videotestsrc num-buffers=3 ! video/x-raw,width=640,height=480')
    pipeline = Gst.parse_launch(source + ' ! vartmlinfer name=infer ! appsink name=frames sync=false emit-signals=true')
    pipeline.get_by_name('infer').set_property('model', sys.argv[1])
    if len(sys.argv) > 2:
        pipeline.get_by_name('file').set_property('location', sys.argv[2])

    def on_frame(sink):  # on GStreamer's thread
        for inference in inferences(sink.emit('pull-sample').get_buffer()):
            show(inference)
        return Gst.FlowReturn.OK

    pipeline.get_by_name('frames').connect('new-sample', on_frame)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message.type == Gst.MessageType.ERROR:
        print(f'read_metadata.py: {message.parse_error()[0].message}', file=sys.stderr)
        return 1
    return 0


sys.exit(main())
