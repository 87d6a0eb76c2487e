// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/doctor/packages.h"

namespace vartml::doctor {
namespace {

struct Row {
    std::string_view element;  // ending in '*': all that begin so
    std::string_view other;
};

constexpr std::string_view base = "gstreamer1.0-plugins-base", good = "gstreamer1.0-plugins-good",
                           bad = "gstreamer1.0-plugins-bad", ugly = "gstreamer1.0-plugins-ugly",
                           x = "gstreamer1.0-x", opengl = "gstreamer1.0-gl";

// given: the lists of files of Debian 13's packages. The first row that fits counts.
constexpr Row packages[] = {
    {"vartml*", ""},  // ours
    {"valve", "libgstreamer1.0-0"},
    {"appsink", base},
    {"appsrc", base},
    {"compositor", base},
    {"decodebin*", base},
    {"playbin*", base},
    {"uridecodebin*", base},
    {"parsebin", base},
    {"encodebin*", base},
    {"videoconvert*", base},
    {"videoscale", base},
    {"videorate", base},
    {"videotestsrc", base},
    {"audioconvert", base},
    {"audioresample", base},
    {"tcpserver*", base},
    {"tcpclient*", base},
    {"oggmux", base},
    {"oggdemux", base},
    {"opusenc", base},
    {"opusdec", base},
    {"theora*", base},
    {"giosrc", base},
    {"giosink", base},
    {"rawvideoparse", base},
    {"textoverlay", x},
    {"timeoverlay", x},
    {"clockoverlay", x},
    {"ximagesink", x},
    {"xvimagesink", x},
    {"ximagesrc", good},
    {"gl*", opengl},
    {"alsa*", "gstreamer1.0-alsa"},
    {"pipewire*", "gstreamer1.0-pipewire"},
    {"libcamerasrc", "gstreamer1.0-libcamera"},
    {"gtksink", "gstreamer1.0-gtk3"},
    {"gtkglsink", "gstreamer1.0-gtk3"},
    {"qmlglsink", "gstreamer1.0-qt5"},
    {"qml6glsink", "gstreamer1.0-qt6"},
    {"nice*", "gstreamer1.0-nice"},
    {"rtspclientsink", "gstreamer1.0-rtsp"},
    {"avdec_*", "gstreamer1.0-libav"},
    {"avenc_*", "gstreamer1.0-libav"},
    {"avmux_*", "gstreamer1.0-libav"},
    {"avdemux_*", "gstreamer1.0-libav"},
    {"x264enc", ugly},
    {"asfdemux", ugly},
    {"mpeg2dec", ugly},
    {"autovideo*", good},
    {"autoaudio*", good},
    {"jpegdec", good},
    {"jpegenc", good},
    {"pngdec", good},
    {"pngenc", good},
    {"v4l2src", good},
    {"v4l2sink", good},
    {"v4l2h26*", good},
    {"v4l2jpeg*", good},
    {"v4l2convert", good},
    {"rtspsrc", good},
    {"rtp*", good},
    {"udpsrc", good},
    {"udpsink", good},
    {"qtdemux", good},
    {"qtmux", good},
    {"mp4mux", good},
    {"matroska*", good},
    {"webmmux", good},
    {"avidemux", good},
    {"avimux", good},
    {"flvmux", good},
    {"flvdemux", good},
    {"multifile*", good},
    {"splitmux*", good},
    {"imagefreeze", good},
    {"videocrop", good},
    {"aspectratiocrop", good},
    {"videobox", good},
    {"videoflip", good},
    {"videomixer", good},
    {"deinterlace", good},
    {"vp8*", good},
    {"vp9*", good},
    {"pulse*", good},
    {"souphttp*", good},
    {"multipart*", good},
    {"cairooverlay", good},
    {"onnxinference", bad},
    {"objectdetectionoverlay", bad},
    {"ssdobjectdetector", bad},
    {"ssdtensordec", bad},
    {"h264parse", bad},
    {"h265parse", bad},
    {"av1parse", bad},
    {"jpegparse", bad},
    {"mpegts*", bad},
    {"tsdemux", bad},
    {"tsparse", bad},
    {"waylandsink", bad},
    {"kmssink", bad},
    {"fbdevsink", bad},
    {"fpsdisplaysink", bad},
    {"va*", bad},
    {"msdk*", bad},
    {"qsv*", bad},
    {"nvh26*", bad},
    {"nvjpeg*", bad},
    {"v4l2sl*", bad},
    {"srt*", bad},
    {"webrtcbin", bad},
    {"hls*", bad},
    {"rtmp*", bad},
    {"x265enc", bad},
    {"openh264*", bad},
    {"av1*", bad},
    {"svtav1enc", bad},
    {"webp*", bad},
    {"intervideo*", bad},
    {"watchdog", bad},
    {"fakevideosink", bad},
};

constexpr Row replacements[] = {
    {"nvinfer*", "vartmlinfer ! vartmldecode"},
    {"nvtracker", "vartmltrack"},
    {"nvdsosd", "vartmloverlay"},
    {"nvstreammux", "vartmlinfer model-instance-id=ID in each stream"},
    {"nvvideoconvert", "videoconvert"},
    {"gvadetect", "vartmlinfer ! vartmldecode"},
    {"gvaclassify", "vartmlinfer inference-region=roi ! vartmldecode"},
    {"gvainference", "vartmlinfer"},
    {"gvatrack", "vartmltrack"},
    {"gvawatermark", "vartmloverlay"},
    {"hailonet", "vartmlinfer"},
    {"hailofilter", "vartmldecode"},
    {"hailotracker", "vartmltrack"},
    {"hailooverlay", "vartmloverlay"},
    {"hailocropper", "vartmlinfer inference-region=roi"},
    {"vvas_xinfer", "vartmlinfer (vartml import-vvas prints the line)"},
    {"vvas_xoverlay", "vartmloverlay"},
    {"vvas_xtracker", "vartmltrack"},
    {"tensor_filter", "vartmlinfer"},
    {"tensor_converter", "vartmlinfer"},
    {"tensor_transform", "vartmlinfer preprocess=…"},
    {"tensor_decoder", "vartmldecode"},
};

std::string_view look_up(auto& rows, std::string_view element) {
    for (const Row& row : rows) {
        const bool prefix = row.element.ends_with('*');
        if (prefix ? element.starts_with(row.element.substr(0, row.element.size() - 1))
                   : element == row.element)
            return row.other;
    }
    return {};
}

}  // namespace

std::string_view package_of(std::string_view element) {
    return look_up(packages, element);
}

std::string_view replacement_of(std::string_view element) {
    return look_up(replacements, element);
}

}  // namespace vartml::doctor
