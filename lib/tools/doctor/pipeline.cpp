// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/doctor/pipeline.h"

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "lib/base/process.h"

namespace vartml::doctor {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<std::string> texts_of(const Json& json, const char* key) {
    std::vector<std::string> texts;
    const auto found = json.find(key);
    if (found == json.end() || !found->is_array()) return texts;
    for (const Json& text : *found)
        if (text.is_string()) texts.push_back(text.get<std::string>());
    return texts;
}

PipelineElement element_of(const Json& json) {
    PipelineElement e{text_of(json, "name"), text_of(json, "factory"), text_of(json, "class")};
    if (const auto found = json.find("properties"); found != json.end() && found->is_object())
        for (const auto& [name, value] : found->items())
            if (value.is_string()) e.properties[name] = value.get<std::string>();
    e.feeds = texts_of(json, "feeds");
    return e;
}

PipelineMessage message_of(const Json& json) {
    return {.is_error = json.value("error", true),
            .element = text_of(json, "element"),
            .factory = text_of(json, "factory"),
            .text = text_of(json, "text"),
            .debug = text_of(json, "debug"),
            .id = text_of(json, "id"),
            .property = text_of(json, "property"),
            .file = text_of(json, "file"),
            .found = text_of(json, "found"),
            .expected = text_of(json, "expected"),
            .fix = text_of(json, "fix")};
}

class Reader {
public:
    explicit Reader(Pipeline& pipeline) : pipeline_(pipeline) {}

    void read(std::string_view line) {
        const Json json = Json::parse(line, nullptr, false);
        if (!json.is_object()) return;
        const std::string kind = text_of(json, "kind");
        if (kind == "known") {
            for (std::string& name : texts_of(json, "names")) known_.push_back(std::move(name));
        } else if (kind == "fault") {
            // Of several missing elements the first brings the names.
            const std::string fault = text_of(json, "fault");
            pipeline_.faults.push_back(
                {fault, text_of(json, "text"), texts_of(json, "names"), known_});
        } else if (kind == "element") {
            pipeline_.elements.push_back(element_of(json));
        } else if (kind == "message") {
            pipeline_.messages.push_back(message_of(json));
        } else if (kind == "end") {
            pipeline_.trial = text_of(json, "trial");
        }
    }

private:
    Pipeline& pipeline_;
    std::vector<std::string> known_;
};

std::string without(std::string text, const std::string& what) {
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at))
        text.replace(at, what.size(), " ");
    return text;
}

// A shell takes the single quotes around a value away; GStreamer does so with double ones alone.
std::string with_double_quotes(std::string text) {
    for (size_t at = text.find("='"); at != text.npos; at = text.find("='", at + 1)) {
        const size_t end = text.find('\'', at + 2);
        if (end == text.npos) break;
        const std::string_view value = std::string_view(text).substr(at + 2, end - at - 2);
        const bool inside = std::count(text.begin(), text.begin() + std::ptrdiff_t(at), '"') % 2;
        if (inside || value.find('"') != value.npos) continue;
        text[at + 1] = text[end] = '"';
    }
    return text;
}

// As people copy it from a terminal or a script.
std::string bare_line(const std::string& text) {
    const std::string line = with_double_quotes(without(text, "\\\n"));
    constexpr const char* blanks = " \t\n";
    size_t begin = line.find_first_not_of(blanks);
    bool options = false;
    // What stands before the pipeline; its own blanks may be within quotes.
    while (begin != line.npos) {
        const size_t end = std::min(line.find_first_of(blanks, begin), line.size());
        const std::string_view word = std::string_view(line).substr(begin, end - begin);
        const bool is_program = word == "gst-launch-1.0" || word.ends_with("/gst-launch-1.0");
        if (!is_program && !(options && word.starts_with('-'))) break;
        options = options || is_program;
        begin = line.find_first_not_of(blanks, end);
    }
    return begin == line.npos ? "" : line.substr(begin, line.find_last_not_of(blanks) + 1 - begin);
}

// What `step` leads to, breadth first.
template <typename Step>
std::vector<const PipelineElement*> reach(std::string_view name, Step step) {
    std::vector<const PipelineElement*> all;
    std::vector<std::string> open = {std::string(name)};
    for (size_t i = 0; i < open.size(); ++i) {
        for (const PipelineElement* next : step(open[i])) {
            if (!next || std::ranges::find(all, next) != all.end()) continue;
            all.push_back(next);
            open.push_back(next->name);
        }
    }
    return all;
}

// "\"video/x-raw\\,\\ width\\=\\(int\\)640\"", as values are serialised.
std::string plain_value(const std::string& value) {
    std::string text;
    for (size_t i = 0; i < value.size(); ++i) {
        if (value[i] == '"') continue;
        if (value[i] == '\\' && i + 1 < value.size()) ++i;
        if (value[i] != ' ') text += value[i];
    }
    if (text.ends_with(';')) text.pop_back();
    for (const char* type : {"(int)", "(string)", "(fraction)"})
        for (size_t at = text.find(type); at != text.npos; at = text.find(type))
            text.erase(at, std::strlen(type));
    return text;
}

}  // namespace

const PipelineElement* Pipeline::find(std::string_view name) const {
    const auto found = std::ranges::find(elements, name, &PipelineElement::name);
    return found == elements.end() ? nullptr : &*found;
}

std::vector<const PipelineElement*> Pipeline::before(std::string_view name) const {
    return reach(name, [this](const std::string& at) {
        std::vector<const PipelineElement*> feeders;
        for (const PipelineElement& e : elements)
            if (std::ranges::find(e.feeds, at) != e.feeds.end()) feeders.push_back(&e);
        return feeders;
    });
}

std::vector<const PipelineElement*> Pipeline::behind(std::string_view name) const {
    return reach(name, [this](const std::string& at) {
        std::vector<const PipelineElement*> fed;
        if (const PipelineElement* e = find(at))
            for (const std::string& next : e->feeds) fed.push_back(find(next));
        return fed;
    });
}

std::vector<const PipelineElement*> Pipeline::between(std::string_view first,
                                                      std::string_view last) const {
    std::vector<const PipelineElement*> all = before(last);
    const std::vector<const PipelineElement*> fed = behind(first);
    std::erase_if(all,
                  [&](const PipelineElement* e) { return std::ranges::find(fed, e) == fed.end(); });
    std::ranges::reverse(all);
    return all;
}

std::string Pipeline::launch_text(const PipelineElement& element,
                                  const std::map<std::string, std::string>& instead) const {
    if (element.factory == "capsfilter" && element.properties.contains("caps"))
        return plain_value(element.properties.at("caps"));
    std::string text = element.factory;
    const auto add = [&text](const std::string& name, const std::string& raw) {
        const std::string value = raw.starts_with('"') ? plain_value(raw) : raw;
        const bool quote = value.empty() || value.find_first_of(" !") != value.npos;
        text += ' ' + name + '=' + (quote ? '"' + value + '"' : value);
    };
    for (const auto& [name, value] : element.properties)
        // Elements change some of their defaults themselves.
        if (!instead.contains(name) && line.find(name + "=") != line.npos) add(name, value);
    for (const auto& [name, value] : instead) add(name, value);
    return text;
}

Result<Pipeline> read_pipeline(const std::string& program, const std::string& line) {
    Pipeline pipeline{.line = bare_line(line)};
    Reader reader(pipeline);
    Child child;
    child.arguments = {program, pipeline.line};
    child.on_line = [&](std::string_view text) { reader.read(text); };
    const auto result = run_child(child);
    if (!result) return result.error();
    if (result->signal != 0)
        return Error{ErrorCode::device,
                     "an element of the pipeline ended its process with signal " +
                         std::to_string(result->signal)};
    if (result->exit_status != 0)
        return Error{ErrorCode::io, program + " ended with status " +
                                        std::to_string(result->exit_status) + ": " +
                                        result->stderr_tail};
    return pipeline;
}

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
    {"nvdsanalytics", "vartmlzones"},
    {"nvdspreprocess", "vartmlinfer inference-region=tiles, or roi"},
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
    {"hailotile*", "vartmlinfer inference-region=tiles"},
    {"vvas_xinfer", "vartmlinfer (vartml import-vvas prints the line)"},
    {"vvas_xoverlay", "vartmloverlay"},
    {"vvas_xtracker", "vartmltrack"},
    {"tensor_filter", "vartmlinfer"},
    {"tensor_converter", "vartmlinfer"},
    {"tensor_transform", "vartmlinfer preprocess=…"},
    {"tensor_decoder", "vartmldecode"},
};

bool is_prefix(const Row& row) {
    return row.element.ends_with('*');
}

const Row* look_up(auto& rows, std::string_view element) {
    for (const Row& row : rows)
        if (is_prefix(row) ? element.starts_with(row.element.substr(0, row.element.size() - 1))
                           : element == row.element)
            return &row;
    return nullptr;
}

}  // namespace

Package package_of(std::string_view element) {
    const Row* const row = look_up(packages, element);
    return row ? Package{row->other, !is_prefix(*row)} : Package{};
}

std::string_view replacement_of(std::string_view element) {
    const Row* const row = look_up(replacements, element);
    return row ? row->other : std::string_view();
}

}  // namespace vartml::doctor
