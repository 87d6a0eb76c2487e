// SPDX-License-Identifier: Apache-2.0
// The program vartml-detect, which `vartml detect` becomes: runs a model on a picture, a video or a
// camera, prints what it finds and writes the annotated pictures. It is a program of its own
// because `vartml` links no GStreamer.
//
// usage: vartml-detect JSON        the members of Request
#include <fcntl.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <vartml/publish.h>

#include "gst/detect/lines.h"
#include "gst/detect/pipeline.h"
#include "gst/publish/open.h"
#include "gst/publish/snapshot.h"

namespace vartml::gst::detect {
namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupts = 0;

// As the library's lines look; those go to GStreamer's log once a plugin of ours is loaded.
void say(const char* level, const std::string& text) {
    std::fprintf(stderr, "[vartml] %s: %s\n", level, plain(text).c_str());
}

// From a thread of its own: the event waits for the streaming thread that may be the caller.
void end_stream(GstElement* pipeline) {
    gst_element_call_async(
        pipeline, [](GstElement* e, gpointer) { gst_element_send_event(e, gst_event_new_eos()); },
        nullptr, nullptr);
}

struct CloseFile {
    void operator()(FILE* file) const { std::fclose(file); }
};

// What is found goes out on the streaming thread behind vartmldecode; the rest asks after the end.
class Reporter {
public:
    Reporter(const Request& request, const Pipeline& pipeline)
        : request_(request), pipeline_(pipeline), run_(run_name()) {}

    Result<void> open() {
        const std::string& name = request_.json_file;
        if (name.empty() || name == "-") return {};
        constexpr int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
        int fd = ::open(name.c_str(), flags | O_EXCL, 0666);
        is_new_ = fd >= 0;
        if (fd < 0 && errno == EEXIST) fd = ::open(name.c_str(), flags, 0666);
        if (fd >= 0) json_.reset(::fdopen(fd, "w"));
        if (json_) return {};
        return Error{ErrorCode::io,
                     "--json: " + name + ": cannot be written: " + std::strerror(errno)};
    }
    // False: no more frames are wanted.
    bool frame(GstPad* pad, GstBuffer* buffer) {
        const uint64_t most = pipeline_.is_picture ? 1 : request_.frames;
        if (most && frames_ == most) return false;
        if (frames_++ == 0) first_ = Clock::now();
        last_ = Clock::now();
        record_.clear();
        reader_.read(buffer, everything, record_);
        const bool has_result =
            record_.num_inferences > 0 && record_.inferences[0].status == "inferred";
        if (!has_result) return true;  // live, a frame that passed
        ++inferred_;
        place(pad, buffer);
        tally_.add(record_);
        return write();
    }
    // Of standard output or the file of --json.
    Result<void> close() {
        if (json_ && is_new_ && inferred_ == 0) ::unlink(request_.json_file.c_str());
        if (json_ && std::fclose(json_.release()) != 0 && !failure_) failure_ = errno;
        if (std::fflush(stdout) != 0 && !failure_) failure_ = errno;
        if (!failure_) return {};
        const bool file = !request_.json_file.empty() && request_.json_file != "-";
        return Error{ErrorCode::io, "cannot write to " +
                                        (file ? request_.json_file : "standard output") + ": " +
                                        std::strerror(failure_)};
    }
    // Ends the stream from its source, once: the frames that are on their way are dropped.
    void end() {
        if (!std::exchange(ended_, true)) end_stream(pipeline_.element.get());
    }
    uint64_t frames() const { return frames_; }
    std::string summary() const {
        if (pipeline_.is_picture) return tally_.text();
        std::string text = std::to_string(frames_) + (frames_ == 1 ? " frame" : " frames");
        if (inferred_ != frames_) text += ", " + std::to_string(inferred_) + " inferred";
        const double seconds = std::chrono::duration<double>(last_ - first_).count();
        if (frames_ > 1 && seconds > 0) {
            char rate[64];
            std::snprintf(rate, sizeof rate, ", %.1f frames/s",
                          static_cast<double>(frames_ - 1) / seconds);
            text += rate;
        }
        return text + "; " + tally_.text();
    }

private:
    static constexpr unsigned everything = include_objects | include_classes | include_tracks |
                                           include_keypoints | include_timings | include_masks |
                                           include_embeddings | include_texts;
    static std::string run_name() {
        gchar* text = g_uuid_string_random();
        std::string name = text;
        g_free(text);
        return name;
    }
    // Where the frame is in the video, as a player shows it: timestamps may begin anywhere.
    static std::optional<guint64> stream_time(GstPad* pad, GstBuffer* buffer) {
        if (!GST_BUFFER_PTS_IS_VALID(buffer)) return std::nullopt;
        GstEvent* event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
        if (!event) return GST_BUFFER_PTS(buffer);
        const GstSegment* segment;
        gst_event_parse_segment(event, &segment);
        const guint64 time =
            gst_segment_to_stream_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
        gst_event_unref(event);
        if (!GST_CLOCK_TIME_IS_VALID(time)) return std::nullopt;
        return time;
    }
    void place(GstPad* pad, GstBuffer* buffer) {
        record_.seq = inferred_ - 1;
        record_.frame_seq = frames_ - 1;
        record_.stream = shown(request_);
        if (const auto time = stream_time(pad, buffer)) record_.pts_ns = *time;
        if (GstCaps* caps = gst_pad_get_current_caps(pad)) {
            GstVideoInfo info;
            if (gst_video_info_from_caps(&info, caps)) {
                record_.width = static_cast<unsigned>(GST_VIDEO_INFO_WIDTH(&info));
                record_.height = static_cast<unsigned>(GST_VIDEO_INFO_HEIGHT(&info));
            }
            gst_caps_unref(caps);
        }
    }
    bool write() {
        if (!request_.json_file.empty()) {
            if (json_ && inferred_ == 1) empty_json();
            vartml::format_frame(record_, run_, line_);
            put(json_ ? json_.get() : stdout, line_.text);
        }
        if (request_.json_file != "-") {
            char prefix[32] = "";
            if (!pipeline_.is_picture && record_.pts_ns)
                std::snprintf(prefix, sizeof prefix, "%9.3f s  ",
                              static_cast<double>(*record_.pts_ns) / 1e9);
            put(stdout, lines_of(record_, prefix));
        }
        return failure_ == 0;
    }
    // What the file held before is lost with the first line, not earlier: a run that finds nothing
    // to read leaves it as it is.
    void empty_json() {
        struct stat status{};
        const int fd = ::fileno(json_.get());
        if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && ::ftruncate(fd, 0) != 0)
            failure_ = errno;
    }
    void put(FILE* file, const std::string& text) {
        const bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                          (!pipeline_.is_live || std::fflush(file) == 0);
        if (!good && !failure_) failure_ = errno ? errno : EIO;
    }

    const Request& request_;
    const Pipeline& pipeline_;
    const std::string run_;
    SnapshotReader reader_;
    vartml::FrameRecord record_;
    vartml::PublishLine line_;
    Tally tally_;
    std::unique_ptr<FILE, CloseFile> json_;
    bool is_new_ = false;               // the file of --json was made by this run
    std::atomic<uint64_t> frames_ = 0;  // the main thread asks, too
    uint64_t inferred_ = 0;
    Clock::time_point first_{}, last_{};
    int failure_ = 0;  // errno
    bool ended_ = false;
};

GstPadProbeReturn on_frame(GstPad* pad, GstPadProbeInfo* info, gpointer data) {
    auto& reporter = *static_cast<Reporter*>(data);
    if (reporter.frame(pad, GST_PAD_PROBE_INFO_BUFFER(info))) return GST_PAD_PROBE_OK;
    reporter.end();
    return GST_PAD_PROBE_DROP;
}

void say_warning(GstMessage* message, std::set<std::string>& said) {
    GError* error = nullptr;
    gst_message_parse_warning(message, &error, nullptr);
    if (said.insert(error->message).second) say("WARNING", with_options(error->message));
    g_error_free(error);
}

// What an element took for granted, such as the names of classes.
void say_note(GstMessage* message, std::set<std::string>& said) {
    GError* error = nullptr;
    gst_message_parse_info(message, &error, nullptr);
    if (said.insert(error->message).second)
        std::fprintf(stderr, "note: %s\n", plain(with_options(error->message)).c_str());
    g_error_free(error);
}

Error interrupted(const Request& request) {
    return {ErrorCode::io, "interrupted before " + request.out + " was complete"};
}

// Until the end, the first error or the second Ctrl-C; the first one ends the stream, so that the
// file is complete. Before the first frame there is nothing to complete, and elements that are not
// linked yet would lose the end.
Result<void> play(const Request& request, const Pipeline& pipeline, const Reporter& reporter) {
    GstElement* const element = pipeline.element.get();
    const std::unique_ptr<GstBus, Unref> bus(gst_element_get_bus(element));
    gst_element_set_state(element, GST_STATE_PLAYING);
    std::set<std::string> said;
    for (int ended = 0;;) {
        GstMessage* const message = gst_bus_timed_pop(bus.get(), 100 * GST_MSECOND);
        const int asked = interrupts;
        if (asked > 1 || (asked && (request.out.empty() || reporter.frames() == 0))) {
            if (message) gst_message_unref(message);
            if (request.out.empty()) return {};
            return interrupted(request);
        }
        if (asked > ended) {
            ended = asked;
            end_stream(element);
        }
        if (!message) continue;
        const std::unique_ptr<GstMessage, decltype(&gst_message_unref)> owner(message,
                                                                              &gst_message_unref);
        switch (GST_MESSAGE_TYPE(message)) {
            case GST_MESSAGE_ERROR:
                return ended ? interrupted(request) : sentence_of(request, message);
            case GST_MESSAGE_WARNING:
                say_warning(message, said);
                break;
            case GST_MESSAGE_INFO:
                say_note(message, said);
                break;
            case GST_MESSAGE_EOS:
                return {};
            default:
                break;
        }
    }
}

Result<void> detect(const Request& request) {
    auto pipeline = make_pipeline(request);
    if (!pipeline) return pipeline.error();
    Reporter reporter(request, *pipeline);
    if (auto opened = reporter.open(); !opened) return opened;
    // Not before: a pipe that is opened waits for its reader.
    for (const int signal : {SIGINT, SIGTERM})
        std::signal(signal, [](int) { interrupts = interrupts + 1; });
    if (auto staged = stage_output(request, *pipeline); !staged) {
        [[maybe_unused]] const auto closed = reporter.close();  // what it made goes again
        return staged;
    }
    {
        const ElementPtr decode = part_of(*pipeline, "decode");
        GstPad* pad = gst_element_get_static_pad(decode.get(), "src");
        gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_frame, &reporter, nullptr);
        gst_object_unref(pad);
    }
    auto played = play(request, *pipeline, reporter);
    gst_element_set_state(pipeline->element.get(), GST_STATE_NULL);
    if (auto closed = reporter.close(); played && !closed) played = closed;
    if (played && reporter.frames() == 0 && !interrupts)
        played = Error{ErrorCode::io, shown(request) + ": no picture came out of it"};
    if (!played) return played;
    if (pipeline->written && reporter.frames() > 0)
        if (auto kept = pipeline->written->commit(); !kept) return kept;
    const bool drawn = !request.out.empty() && reporter.frames() > 0;
    std::fprintf(stderr, "%s%s\n", reporter.summary().c_str(),
                 drawn ? ("; drawn into " + request.out).c_str() : "");
    return {};
}

Request read_request(const nlohmann::json& json) {
    const auto text = [&](const char* key) { return bytes_of(json.value(key, std::string())); };
    return {.model = text("model"),
            .modelinfo = text("modelinfo"),
            .decoder = text("decoder"),
            .labels = text("labels"),
            .preprocess = text("preprocess"),
            .device = text("device"),
            .threshold = json.value("threshold", -1.),
            .source = text("source"),
            .source_kind = text("source_kind"),
            .out = text("out"),
            .format = text("format"),
            .json_file = text("json"),
            .frames = json.value("frames", uint64_t{0})};
}

// As the subcommands end.
int exit_of(const Error& error) {
    switch (error.code) {
        case ErrorCode::invalid_argument:
            return 2;
        case ErrorCode::bad_model:
            return 4;
        default:
            return 1;
    }
}

}  // namespace
}  // namespace vartml::gst::detect

int main(int argc, char** argv) {
    using namespace vartml::gst::detect;
    const auto json = argc == 2 ? nlohmann::json::parse(argv[1], nullptr, false) : nlohmann::json();
    if (!json.is_object()) {
        std::fputs("usage: vartml-detect JSON; people call vartml detect\n", stderr);
        return 2;
    }
    gst_init(nullptr, nullptr);
    const auto done = detect(read_request(json));
    if (!done) {
        say("ERROR", done.error().message);
        return exit_of(done.error());
    }
    return 0;
}
