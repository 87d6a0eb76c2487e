#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One to four cameras, each with the boxes of a model, in one picture.
#   four-cameras.sh MODEL CAMERA...
# CAMERA is a device such as /dev/video0, a video, or TENSOR=PICTURE: two devices of one camera, of which the first gives
# the model's tensor and the second the picture, as boards with a pre-processor in front of V4L2 have them. Results and
# pictures meet by their time stamps: boxes are never those of another frame. Camera N has the four columns of the array
# from 4N on. One Ctrl-C ends all. In the environment: OUT=FILE.mp4 records instead of showing, with ENCODER; SIZE=1280x720
# and RATE, in frames per second, are those of the whole picture; DURATION, in seconds, ends by itself; devices are asked for
# CAPS, such as width=640,height=480,framerate=15/1.
set -eu
export GST_DEBUG="${GST_DEBUG:-vartml*:2}" # warnings of these elements on standard error, in spite of -q
[ -t 2 ] || export GST_DEBUG_NO_COLOR=1
[ $# -ge 2 ] && [ $# -le 5 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
model=$1 n=0 tiles= size=${SIZE:-1280x720} width=$((${size%x*} / 2)) height=$((${size#*x} / 2)) # of a tile
end=${DURATION:+identity eos-after=$((DURATION * ${RATE:=30} + 1)) !} rate=${RATE:+,framerate=$RATE/1}
patience=${OUT:+latency=1000000000} && shift # of a recording with cameras that are late
for camera in "$@"; do
    shift # the words of each camera go behind those of the others
    [ ! "${OUT:-}" -ef "$camera" ] || { echo "$0: OUT=$OUT is a video that is read; it would be lost" >&2; exit 2; }
    tensor=auto region=
    case $camera in
        # The pre-processor stretches all of the picture, which processors read: plain caps. The driver's own dma-bufs need no rights.
        /dev/*=*) tensor=yes region=region=whole && set -- "$@" v4l2src "device=${camera#*=}" ! "video/x-raw${CAPS:+,$CAPS}" ! \
            queue max-size-buffers=30 ! "join$n.sink_main" v4l2src "device=${camera%%=*}" io-mode=dmabuf ;;
        /dev/*) set -- "$@" v4l2src "device=$camera" ! "video/x-raw${CAPS:+,$CAPS}" ;;
        *) set -- "$@" filesrc "location=$camera" ! decodebin ;;
    esac
    [ $tensor = yes ] || set -- "$@" ! videoconvert ! tee "name=camera$n" "camera$n." ! queue max-size-buffers=30 ! \
        "join$n.sink_main" "camera$n." ! queue
    set -- "$@" ! vartmlinfer "model=$model" "runner-options=options,start_column=(uint)$((4 * n))" input-is-tensor=$tensor ! \
        vartmldecode ! queue ! "join$n.sink_meta" \
        vartmlmetajoin "name=join$n" $region ! vartmloverlay ! videoconvert ! queue ! "all.sink_$n"
    tiles="$tiles sink_$n::xpos=$((n % 2 * width)) sink_$n::ypos=$((n / 2 * height)) sink_$n::width=$width sink_$n::height=$height"
    n=$((n + 1))
done
set -- "$@" compositor name=all background=black $patience $tiles ! "video/x-raw,format=I420,width=${size%x*},height=${size#*x}$rate" ! $end videoconvert ! queue !
[ -n "${OUT:-}" ] || exec gst-launch-1.0 -q -e "$@" autovideosink
exec gst-launch-1.0 -q -e "$@" ${ENCODER:-x264enc speed-preset=veryfast} ${ENCODER:+! h264parse} ! mp4mux ! filesink "location=$OUT" # a parser behind x264enc can lose a time stamp
