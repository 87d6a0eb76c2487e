#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What each frame shows: the three best classes of a classifier, one line of JSON per frame.
#   classify.sh MODEL VIDEO
# The model says what it expects (vartml compile --decoder classify --labels FILE). The whole picture is classified; to
# classify what a detector found, see two-stage.sh.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 2 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
gst-launch-1.0 -q filesrc "location=$2" ! decodebin ! videoconvert ! queue ! vartmlinfer "model=$1" ! vartmldecode top-k=3 ! \
    vartmlpublish add-empty=true queue-size=65536 drain-timeout=10000 ! fakesink
