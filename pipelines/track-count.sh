#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How many different objects of each class a video shows.
#   track-count.sh MODEL VIDEO
# Every third frame is inferred; the tracker carries the identities over the others. The records go through a pipe to a
# few lines of Python, which could be any program; so does the word that the pipeline failed, whose status a pipe loses.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 2 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
{ gst-launch-1.0 -q filesrc "location=$2" ! decodebin ! videoconvert ! queue ! \
    vartmlinfer "model=$1" inference-interval=3 ! vartmldecode ! vartmltrack min-hits=3 ! \
    vartmlpublish queue-size=65536 drain-timeout=10000 ! fakesink || echo failed; } |
    python3 -c '
import collections, json, sys
seen = collections.defaultdict(set)
for line in sys.stdin:
    if line == "failed\n":
        sys.exit("track-count.sh: the pipeline failed, nothing was counted")
    record = json.loads(line)
    if record["schema"] == "vartml.gap/1":
        sys.exit("track-count.sh: records are missing, nothing was counted")
    for thing in record.get("objects", []):
        if "track" in thing:
            seen[thing["label"]].add(thing["track"])
for label, tracks in sorted(seen.items()):
    print(label, len(tracks))
'
