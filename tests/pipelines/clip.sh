#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A second of moving pictures, with the encoder that comes with GStreamer's plugins: clip.sh FILE
set -e
gst-launch-1.0 -q videotestsrc pattern=ball num-buffers=30 ! video/x-raw,width=320,height=240,framerate=30/1 ! \
    jpegenc ! avimux ! filesink location="$1"
