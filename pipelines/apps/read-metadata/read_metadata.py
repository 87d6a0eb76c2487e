#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What vartmlinfer says of each frame, read in Python: GStreamer by GObject introspection, the record by ctypes.

    read_metadata.py MODEL [PICTURE-OR-VIDEO]     without one: three frames of a test picture
"""
import ctypes
import sys
import warnings

import gi

warnings.simplefilter('ignore', DeprecationWarning)  # of ValueArray, the only way that GStreamer's arrays come in
gi.require_version('Gst', '1.0')
from gi.repository import Gst  # noqa: E402


class Inferences:
    """The records of a buffer, as Gst.Structure; their fields are those of gst/vartml/inference.h."""

    def __init__(self):
        plugin = Gst.Registry.get().find_plugin('vartml')
        if plugin is None:
            raise RuntimeError('GStreamer has no plugin vartml; GST_PLUGIN_PATH is where it looks besides its own folder')
        self.get = ctypes.CDLL(plugin.get_filename()).gst_vartml_inference_get_structure
        self.get.argtypes = [ctypes.c_void_p, ctypes.c_uint]
        self.get.restype = ctypes.c_void_p
        gst = ctypes.CDLL('libgstreamer-1.0.so.0')
        self.to_text, self.free_structure, self.free_text = gst.gst_structure_to_string, gst.gst_structure_free, gst.g_free
        self.to_text.argtypes, self.to_text.restype = [ctypes.c_void_p], ctypes.c_void_p
        self.free_structure.argtypes = self.free_text.argtypes = [ctypes.c_void_p]

    def of(self, buffer):
        index = 0
        # The hash of a boxed object is its address.
        while pointer := self.get(hash(buffer), index):
            text = self.to_text(pointer)
            yield Gst.Structure.from_string(ctypes.string_at(text).decode())[0]
            self.free_text(text)
            self.free_structure(pointer)
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
    inferences = Inferences()

    def on_frame(sink):  # on GStreamer's thread
        for inference in inferences.of(sink.emit('pull-sample').get_buffer()):
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
