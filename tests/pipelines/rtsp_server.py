# SPDX-License-Identifier: Apache-2.0
"""An RTSP server on loopback for the tests: /camera is a live picture, /taken takes a stream (RECORD).

Prints its port, and `taken 10 frames` when so many have come"""

import gi

gi.require_version('Gst', '1.0')
gi.require_version('GstRtspServer', '1.0')
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address('127.0.0.1')
server.set_service('0')
mounts = server.get_mount_points()

camera = GstRtspServer.RTSPMediaFactory()
camera.set_launch('( videotestsrc is-live=true pattern=ball ! video/x-raw,width=640,height=480,framerate=10/1 ! '
                  'x264enc tune=zerolatency speed-preset=ultrafast key-int-max=10 ! rtph264pay name=pay0 config-interval=-1 )')
mounts.add_factory('/camera', camera)

taken = GstRtspServer.RTSPMediaFactory()
taken.set_transport_mode(GstRtspServer.RTSPTransportMode.RECORD)
taken.set_launch('( rtph264depay name=depay0 ! h264parse ! avdec_h264 ! identity name=count ! fakesink )')
seen = 0


def configured(_factory, media):
    def handoff(_element, _buffer):
        global seen
        seen += 1
        if seen == 10:
            print('taken 10 frames', flush=True)

    count = media.get_element().get_by_name('count')
    count.connect('handoff', handoff)


taken.connect('media-configure', configured)
mounts.add_factory('/taken', taken)
server.attach(None)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
