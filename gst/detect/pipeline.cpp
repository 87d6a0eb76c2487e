// SPDX-License-Identifier: Apache-2.0
#include "gst/detect/pipeline.h"
#include "gst/support/address.h"

#include <fcntl.h>
#include <gst/base/gsttypefindhelper.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

namespace vartml::gst::detect {
namespace {

namespace fs = std::filesystem;

bool is_installed(std::string_view factory) {
    GstElementFactory* found = gst_element_factory_find(std::string(factory).c_str());
    if (!found) return false;
    gst_object_unref(found);
    return true;
}

struct Format {
    std::string_view name;
    bool is_picture;
    const char* encoder;  // "": one of h264_encoders
    const char* behind;   // what follows the encoder
};
constexpr Format formats[] = {
    {"jpeg", true, "jpegenc quality=92", ""},
    {"png", true, "pngenc", ""},
    {"mp4", false, "", " ! h264parse ! mp4mux"},
    {"mkv", false, "", " ! h264parse ! matroskamux"},
    {"webm", false, "vp8enc deadline=1 cpu-used=8 threads=2 target-bitrate=4000000", " ! webmmux"},
};

// The first that is installed.
constexpr const char* h264_encoders[] = {
    "x264enc speed-preset=veryfast pass=qual quantizer=23 key-int-max=60",
    "openh264enc bitrate=6000000 gop-size=60",
    "v4l2h264enc",
};

// given: Debian 13's packages of what a pipeline below may name
constexpr std::pair<std::string_view, std::string_view> packages[] = {
    {"decodebin", "gstreamer1.0-plugins-base"},
    {"uridecodebin", "gstreamer1.0-plugins-base"},
    {"videoconvert", "gstreamer1.0-plugins-base"},
    {"videoconvertscale", "gstreamer1.0-plugins-base"},
    {"v4l2src", "gstreamer1.0-plugins-good"},
    {"jpegenc", "gstreamer1.0-plugins-good"},
    {"pngenc", "gstreamer1.0-plugins-good"},
    {"vp8enc", "gstreamer1.0-plugins-good"},
    {"webmmux", "gstreamer1.0-plugins-good"},
    {"mp4mux", "gstreamer1.0-plugins-good"},
    {"matroskamux", "gstreamer1.0-plugins-good"},
    {"h264parse", "gstreamer1.0-plugins-bad"},
};

Error missing(std::string_view element) {
    if (element.starts_with("vartml"))
        return {ErrorCode::not_found,
                "GStreamer does not find element " + std::string(element) +
                    "; install the plugins of gst-vartml, or name their folder in GST_PLUGIN_PATH"};
    const auto* row =
        std::ranges::find(packages, element, &std::pair<std::string_view, std::string_view>::first);
    return {ErrorCode::not_found,
            "GStreamer does not find element " + std::string(element) +
                (row == std::end(packages) ? "; install the plugin that has it"
                                           : "; install " + std::string(row->second))};
}

Result<std::string> encoder_of(const Format& format) {
    if (*format.encoder) return std::string(format.encoder);
    for (const std::string_view encoder : h264_encoders)
        if (is_installed(encoder.substr(0, encoder.find(' ')))) return std::string(encoder);
    return Error{ErrorCode::not_found,
                 "GStreamer has no encoder for H.264; install gstreamer1.0-plugins-ugly, or let -o "
                 "end in .webm"};
}

// What the first bytes of a file are: "image/jpeg"; "" where nothing is known of them.
Result<std::string> media_type(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::vector<char> head(64 * 1024);
    in.read(head.data(), static_cast<std::streamsize>(head.size()));
    if (in.bad() || !in.is_open())
        return Error{ErrorCode::io, file + ": cannot be read; look at its permissions"};
    const auto size = static_cast<gsize>(in.gcount());
    if (size == 0) return Error{ErrorCode::io, file + ": is empty, expected a picture or a video"};
    GstCaps* caps = gst_type_find_helper_for_data(
        nullptr, reinterpret_cast<const guint8*>(head.data()), size, nullptr);
    if (!caps) return std::string();
    std::string name = gst_structure_get_name(gst_caps_get_structure(caps, 0));
    gst_caps_unref(caps);
    return name;
}

// Sound is not decoded.
constexpr const char* only_pictures = " caps=video/x-raw(ANY) expose-all-streams=false";

std::string source_text(const Request& request) {
    if (request.source_kind == "camera") return "v4l2src name=source ! decodebin";
    if (request.source_kind == "address")
        return std::string("uridecodebin name=source") + only_pictures;
    return std::string("filesrc name=source ! decodebin") + only_pictures;
}

// H.264 and VP8 want even sizes; others are scaled by the one row or column.
constexpr const char* even =
    " ! videoconvertscale ! video/x-raw,format=I420,width=[2,32766,2],height=[2,32766,2]";
constexpr const char* some = " ! queue max-size-buffers=4 max-size-bytes=0 max-size-time=0";

Result<std::string> sink_text(const Request& request, const Pipeline& pipeline) {
    if (request.out.empty()) return std::string(" ! fakesink sync=false");
    const Format* format = std::ranges::find(formats, request.format, &Format::name);
    if (format == std::end(formats))
        return Error{ErrorCode::internal, "'" + request.format + "' is no format of files"};
    if (format->is_picture != pipeline.is_picture)
        return Error{
            ErrorCode::invalid_argument,
            "-o: is " + request.out + ", and " + shown(request) +
                (pipeline.is_picture ? " is a picture; let it end in .jpg or .png"
                                     : " is not one picture; let it end in .mp4, .mkv or .webm")};
    const auto encoder = encoder_of(*format);
    if (!encoder) return encoder.error();
    return std::string(" ! vartmloverlay name=overlay mode=blend") +
           (format->is_picture ? " ! videoconvert" : std::string(some) + even) + " ! " + *encoder +
           format->behind + " ! filesink name=sink";
}

void set_text(const Pipeline& pipeline, const char* part, const char* property,
              const std::string& value) {
    if (!value.empty())
        gst_util_set_object_arg(G_OBJECT(part_of(pipeline, part).get()), property, value.c_str());
}

// Paths, which have no syntax of GStreamer's.
void set_path(const Pipeline& pipeline, const char* part, const char* property,
              const std::string& value) {
    if (!value.empty())
        g_object_set(part_of(pipeline, part).get(), property, value.c_str(), nullptr);
}

void set_properties(const Request& request, const Pipeline& pipeline) {
    const bool camera = request.source_kind == "camera", address = request.source_kind == "address";
    set_path(pipeline, "source", camera ? "device" : address ? "uri" : "location", request.source);
    set_path(pipeline, "infer", "model", request.model);
    set_path(pipeline, "infer", "modelinfo-file", request.modelinfo);
    set_path(pipeline, "infer", "preprocess", request.preprocess);
    set_path(pipeline, "infer", "device", request.device);
    set_text(pipeline, "decode", "decoder", request.decoder);
    set_path(pipeline, "decode", "label-file", request.labels);
    if (request.threshold >= 0)
        g_object_set(part_of(pipeline, "decode").get(), "score-threshold", request.threshold,
                     nullptr);
    // Each result is on its own frame; live, boxes stay on pictures that were not inferred.
    if (pipeline.is_live) {
        set_text(pipeline, "infer", "keep-rate", "no");
        if (!request.out.empty())
            g_object_set(part_of(pipeline, "overlay").get(), "hold", guint64{500 * GST_MSECOND},
                         nullptr);
    }
}

std::string trimmed(std::string_view text) {
    while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.remove_suffix(1);
    return std::string(text);
}

// The last line of what an element says for developers is mostly the reason.
std::string last_line(std::string_view debug) {
    while (!debug.empty() && debug.back() == '\n') debug.remove_suffix(1);
    std::string_view line = debug.substr(debug.rfind('\n') + 1);
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    // A place in somebody's source tells nothing.
    return line.find(".c(") == line.npos ? trimmed(line) : std::string();
}

Error cannot_write(const std::string& place, int reason) {
    return {ErrorCode::io, place + ": cannot be written: " + std::strerror(reason)};
}

// `.NAME.tmp-` and six letters of mkostemp().
constexpr std::string_view mark = ".tmp-", letters = "XXXXXX";

// Those that nobody has locked.
void remove_left_overs(const fs::path& folder, const std::string& stem) {
    std::error_code error;
    std::vector<fs::path> found;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error))
        if (const std::string name = entry->path().filename().string();
            name.size() == stem.size() + letters.size() && name.starts_with(stem))
            found.push_back(entry->path());
    for (const fs::path& path : found) {
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
        if (fd < 0) continue;
        struct stat status{};
        if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
            ::flock(fd, LOCK_EX | LOCK_NB) == 0)
            ::unlink(path.c_str());
        ::close(fd);
    }
}

}  // namespace

Result<StagedFile> StagedFile::create(const std::string& out) {
    std::error_code error;
    const fs::path real = fs::canonical(out, error);
    const std::string place = error ? out : real.string();
    const fs::path folder = fs::absolute(place, error).parent_path();
    const std::string stem = "." + fs::path(place).filename().string() + std::string(mark);
    remove_left_overs(folder, stem);
    for (;;) {
        std::string path = (folder / (stem + std::string(letters))).string();
        const int fd = ::mkostemp(path.data(), O_CLOEXEC);
        if (fd < 0) return cannot_write(out, errno);
        StagedFile staged(place, path, fd);
        // Between both calls another run may have taken it for a left-over.
        struct stat status{};
        if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
        if (::fstat(fd, &status) == 0 && status.st_nlink == 0) continue;
        const mode_t mask = ::umask(0);  // no other thread makes a file yet
        ::umask(mask);
        ::fchmod(fd, 0666 & ~mask);
        return staged;
    }
}

StagedFile::~StagedFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
    if (fd_ >= 0) ::close(fd_);
}

Result<void> StagedFile::commit() {
    if (::rename(path_.c_str(), place_.c_str()) != 0) return cannot_write(place_, errno);
    path_.clear();
    return {};
}

// What they put on frames is read here.
void load_own_plugins() {
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const char* plugin : {"libgstvartml.so", "libgstvartmlextra.so"})
        for (const fs::path& place : {folder, folder / VARTML_PLUGINS_FROM_LIBEXEC}) {
            const fs::path file = place / plugin;
            if (!fs::exists(file, error)) continue;
            GError* fault = nullptr;
            GstPlugin* loaded = gst_plugin_load_file(file.c_str(), &fault);
            g_clear_error(&fault);
            if (loaded) gst_object_unref(loaded);
            break;
        }
}

Result<ElementPtr> parse(const std::string& text) {
    GError* error = nullptr;
    GstParseContext* context = gst_parse_context_new();
    GstElement* element =
        gst_parse_launch_full(text.c_str(), context, GST_PARSE_FLAG_FATAL_ERRORS, &error);
    gchar** names = gst_parse_context_get_missing_elements(context);
    std::string sentence = error ? error->message : "no pipeline";
    Error fault{ErrorCode::internal, std::move(sentence)};
    if (names && *names) fault = missing(*names);
    g_strfreev(names);
    gst_parse_context_free(context);
    const bool failed = error != nullptr;
    g_clear_error(&error);
    ElementPtr owned(element ? GST_ELEMENT(gst_object_ref_sink(element)) : nullptr);
    if (failed || !owned) return fault;
    return owned;
}

ElementPtr part_of(const Pipeline& pipeline, const char* name) {
    return ElementPtr(gst_bin_get_by_name(GST_BIN(pipeline.element.get()), name));
}

Result<Pipeline> make_pipeline(const Request& request) {
    load_own_plugins();
    Pipeline pipeline;
    pipeline.is_live = request.source_kind != "file";
    if (!pipeline.is_live) {
        const auto type = media_type(request.source);
        if (!type) return type.error();
        pipeline.is_picture = type->starts_with("image/");
    }
    const auto sink = sink_text(request, pipeline);
    if (!sink) return sink.error();
    // As the camera was held.
    const char* upright =
        is_installed("videoflip") ? " ! videoflip video-direction=auto ! videoconvert" : "";
    auto parsed = parse(source_text(request) + " ! videoconvert" + upright +
                        (pipeline.is_picture ? "" : some) +
                        " ! vartmlinfer name=infer output-tensor-type=auto on-fallback=allow "
                        "copy-policy=allow ! vartmldecode name=decode top-k=3" +
                        *sink);
    if (!parsed) return parsed.error();
    pipeline.element = std::move(*parsed);
    set_properties(request, pipeline);
    return pipeline;
}

Result<void> stage_output(const Request& request, Pipeline& pipeline) {
    if (request.out.empty()) return {};
    auto staged = StagedFile::create(request.out);
    if (!staged) return staged.error();
    pipeline.written.emplace(std::move(*staged));
    set_path(pipeline, "sink", "location", pipeline.written->path());
    return {};
}

std::string with_options(std::string text) {
    constexpr std::pair<std::string_view, std::string_view> words[] = {
        {"property preprocess=", "--preprocess "},
        {"property preprocess", "--preprocess"},
        {"the property decoder", "--decoder"},
        {"property decoder", "--decoder"},
        {"property 'label-file'", "--labels"},
        {"property label-file", "--labels"},
        {"'label-file'", "--labels"},
        {"label-file", "--labels"},
        {"property modelinfo-file", "--modelinfo"},
        {"property 'modelinfo-file'", "--modelinfo"},
    };
    for (const auto& [property, option] : words)
        for (size_t at = text.find(property); at != text.npos;
             at = text.find(property, at + option.size()))
            text.replace(at, property.size(), option);
    return text;
}

std::string shown(const Request& request) {
    return without_login(request.source);
}

Error sentence_of(const Request& request, GstMessage* message) {
    GError* error = nullptr;
    gchar* debug = nullptr;
    const GstStructure* details = nullptr;
    gst_message_parse_error(message, &error, &debug);
    gst_message_parse_error_details(message, &details);
    const std::string text = trimmed(error->message);
    const std::string reason = debug ? last_line(debug) : std::string();
    const bool is_missing =
        error->domain == GST_CORE_ERROR && error->code == GST_CORE_ERROR_MISSING_PLUGIN;
    const bool is_codec =
        error->domain == GST_STREAM_ERROR && error->code == GST_STREAM_ERROR_CODEC_NOT_FOUND;
    g_error_free(error);
    g_free(debug);
    const gchar* const id = details ? gst_structure_get_string(details, "id") : nullptr;
    if (id) {
        std::string words = with_options(text);
        if (std::string_view(id) == "dec-unknown" && request.decoder.empty())
            words +=
                "; where no decoder is right, vartml run --save-outputs DIR writes the tensors";
        const bool is_model = g_str_has_prefix(id, "dec-") || g_str_has_prefix(id, "infer-");
        return {is_model ? ErrorCode::bad_model : ErrorCode::io, words};
    }
    std::string why = text + (reason.empty() || reason == text ? "" : " (" + reason + ")");
    if (const auto address = parse_address(request.source)) why = address->scrub(std::move(why));
    if (!g_strcmp0(GST_OBJECT_NAME(GST_MESSAGE_SRC(message)), "sink"))
        return {ErrorCode::io, request.out + ": cannot be written: " + why};
    if (request.source_kind == "camera")
        return {ErrorCode::io, shown(request) + ": the camera gives no pictures: " + why};
    if (is_missing || is_codec)
        return {ErrorCode::io, shown(request) + ": cannot be decoded: " + why +
                                   "; install gstreamer1.0-libav, gstreamer1.0-plugins-bad or "
                                   "gstreamer1.0-plugins-ugly"};
    return {ErrorCode::io, shown(request) + ": is no picture or video that can be decoded: " + why +
                               "; give a picture (JPEG, PNG), a video file, a camera or a URI"};
}

std::string bytes_of(const std::string& text) {
    std::string bytes;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto lead = static_cast<unsigned char>(text[i]);
        if (lead < 0x80 || i + 1 == text.size())
            bytes += text[i];
        else
            bytes += static_cast<char>((lead & 3) << 6 | (text[++i] & 0x3f));
    }
    return bytes;
}

}  // namespace vartml::gst::detect
