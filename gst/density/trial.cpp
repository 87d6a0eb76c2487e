// SPDX-License-Identifier: Apache-2.0
#include "gst/density/trial.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "gst/detect/pipeline.h"

namespace vartml::gst::density {
namespace {

using Clock = std::chrono::steady_clock;
using detect::ElementPtr;
using detect::Unref;

// Every frame is inferred: what is too much is seen as frames that wait.
constexpr const char* behind_source =
    " is-live=true format=time block=false max-bytes=0 ! decodebin ! videoconvert ! queue ! "
    "vartmlinfer model-instance-id=density on-late=block keep-rate=no copy-policy=allow "
    "on-fallback=allow output-tensor-type=auto name=infer";

constexpr std::chrono::seconds start_limit{60};
constexpr uint64_t most_to_start = 64;  // frames; ours: more than any decoder holds back

// One stream: arrivals by the feeding thread, results by its streaming thread.
class Stream {
public:
    // `at`: when a camera would have given it, however late it is sent; a decoder holds it back
    // until `after` later.
    void arrived(GstClockTime pts, bool counts, Clock::time_point at,
                 std::chrono::nanoseconds after) {
        const std::lock_guard lock(mutex_);
        under_way_[pts] = {at + after, counts};
        frames_ += counts;
        if (under_way_.size() > most_) most_ = std::max(most_, waiting());
    }
    void came_out(GstClockTime pts) {
        const auto now = Clock::now();
        const std::lock_guard lock(mutex_);
        const auto found = under_way_.find(pts);
        any_ = true;
        if (found == under_way_.end()) return;
        if (found->second.counts)
            latencies_us_.push_back(uint32_t(std::max<int64_t>(
                std::chrono::duration_cast<std::chrono::microseconds>(now - found->second.at)
                    .count(),
                0)));
        under_way_.erase(found);
    }
    // Without those that a decoder still holds back by the order of the video.
    uint64_t in_flight() const {
        const std::lock_guard lock(mutex_);
        return waiting();
    }
    // Frames that count and have no result yet.
    uint64_t outstanding() const {
        const std::lock_guard lock(mutex_);
        return frames_ - latencies_us_.size();
    }
    bool has_result() const {
        const std::lock_guard lock(mutex_);
        return any_;
    }
    void add_to(Trial& trial) const {
        const std::lock_guard lock(mutex_);
        trial.frames += frames_;
        trial.lost += frames_ - latencies_us_.size();
        trial.in_flight_max = std::max(trial.in_flight_max, most_);
        trial.latencies_us.insert(trial.latencies_us.end(), latencies_us_.begin(),
                                  latencies_us_.end());
    }
    GstElement* source = nullptr;  // of the pipeline
    uint64_t sent = 0;             // by one thread after the other

private:
    struct Arrival {
        Clock::time_point at;
        bool counts = false;  // not of the warm-up
    };
    uint64_t waiting() const {  // with the lock
        const auto now = Clock::now();
        return uint64_t(std::ranges::count_if(
            under_way_, [&](const auto& one) { return one.second.at <= now; }));
    }
    mutable std::mutex mutex_;  // guards what follows
    std::unordered_map<GstClockTime, Arrival> under_way_;
    std::vector<uint32_t> latencies_us_;
    uint64_t frames_ = 0, most_ = 0;
    bool any_ = false;
};

GstPadProbeReturn on_result(GstPad*, GstPadProbeInfo* info, gpointer data) {
    static_cast<Stream*>(data)->came_out(GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)));
    return GST_PAD_PROBE_OK;
}

ElementPtr part(const ElementPtr& pipeline, const std::string& name) {
    return ElementPtr(gst_bin_get_by_name(GST_BIN(pipeline.get()), name.c_str()));
}

void set_path(GstElement* element, const char* property, const std::string& value) {
    if (!value.empty()) g_object_set(element, property, value.c_str(), nullptr);
}

class Running {
public:
    Running(const TrialRequest& request, const Clip& clip) : request_(request), clip_(clip) {}
    ~Running() {
        end_ = true;
        if (feeder_.joinable()) feeder_.join();
        if (pipeline_) gst_element_set_state(pipeline_.get(), GST_STATE_NULL);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    Result<void> build() {
        std::string text;
        for (unsigned i = 0; i < request_.streams; ++i) {
            const std::string n = std::to_string(i);
            text += "appsrc name=source" + n + behind_source + n + " ! vartmldecode name=decode" +
                    n + " ! vartmltrack ! fakesink sync=false name=sink" + n + ' ';
        }
        auto parsed = detect::parse(text);
        if (!parsed) return parsed.error();
        pipeline_ = std::move(*parsed);
        for (unsigned i = 0; i < request_.streams; ++i) {
            const std::string n = std::to_string(i);
            Stream& stream = streams_.emplace_back();
            const ElementPtr source = part(pipeline_, "source" + n),
                             infer = part(pipeline_, "infer" + n),
                             decode = part(pipeline_, "decode" + n),
                             sink = part(pipeline_, "sink" + n);
            stream.source = source.get();
            g_object_set(source.get(), "caps", clip_.caps.get(), nullptr);
            set_path(infer.get(), "model", request_.model);
            set_path(infer.get(), "modelinfo-file", request_.modelinfo);
            set_path(infer.get(), "device", request_.device);
            if (!request_.decoder.empty())
                gst_util_set_object_arg(G_OBJECT(decode.get()), "decoder",
                                        request_.decoder.c_str());
            GstPad* const pad = gst_element_get_static_pad(sink.get(), "sink");
            gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_result, &stream, nullptr);
            gst_object_unref(pad);
        }
        return {};
    }
    // Until each stream has decoder, model and a first result. Decoders that reorder want some
    // frames before they give one.
    Result<void> start() {
        gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING);
        const auto until = Clock::now() + start_limit;
        while (!std::ranges::all_of(streams_, &Stream::has_result)) {
            if (Clock::now() > until)
                return Error{ErrorCode::timeout, "no stream had a result within a minute"};
            for (Stream& stream : streams_)
                if (!stream.has_result() && stream.sent < most_to_start)
                    send(stream, false, Clock::now());
            const auto look = Clock::now() + std::chrono::milliseconds(50);
            if (auto done = watch([&] { return Clock::now() >= look; }); !done) return done;
        }
        return {};
    }
    void feed() {
        feeder_ = std::thread([this] {
            pthread_setname_np(pthread_self(), "vartml-feed");
            send_all();
        });
    }
    // Until it is so, or an error of the pipeline.
    Result<void> watch(std::function<bool()> done) {
        const std::unique_ptr<GstBus, Unref> bus(gst_element_get_bus(pipeline_.get()));
        while (!done()) {
            GstMessage* const message = gst_bus_timed_pop_filtered(
                bus.get(), 10 * GST_MSECOND,
                GstMessageType(GST_MESSAGE_ERROR | GST_MESSAGE_EOS | GST_MESSAGE_WARNING));
            if (!message) continue;
            const bool failed = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR;
            detect::Request request;
            request.source = "the video";
            request.source_kind = "file";
            request.decoder = request_.decoder;
            const Error fault = failed ? detect::sentence_of(request, message) : Error{};
            gst_message_unref(message);
            if (failed) return fault;
        }
        return {};
    }
    bool all_sent() const { return sent_; }
    bool all_out() const {
        return std::ranges::all_of(streams_,
                                   [](const Stream& stream) { return !stream.outstanding(); });
    }
    uint64_t in_flight_end() const { return in_flight_end_; }
    // Frames that vartmlinfer let pass without a result of their own. No more are sent.
    uint64_t without_result() {
        end_ = true;
        feeder_.join();
        uint64_t sum = 0;
        for (unsigned i = 0; i < request_.streams; ++i) {
            GstStructure* stats = nullptr;
            g_object_get(part(pipeline_, "infer" + std::to_string(i)).get(), "stats", &stats,
                         nullptr);
            guint64 frames = 0, inferences = 0;
            gst_structure_get_uint64(stats, "frames", &frames);
            gst_structure_get_uint64(stats, "inferences", &inferences);
            sum += frames > inferences ? frames - inferences : 0;
            gst_structure_free(stats);
        }
        return sum;
    }
    const std::deque<Stream>& streams() const { return streams_; }

private:
    uint64_t in_flight() const {
        uint64_t sum = 0;
        for (const Stream& stream : streams_) sum += stream.in_flight();
        return sum;
    }
    // Streams begin one after the other within a frame's time, as cameras do that nobody aligned.
    // They go on behind the set time, because decoders hold frames back until others follow.
    void send_all() {
        using Ns = std::chrono::nanoseconds;
        const auto begin = Clock::now();
        const auto counted = begin + std::chrono::duration_cast<Clock::duration>(
                                         std::chrono::duration<double>(request_.warm_up));
        const auto end = counted + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(request_.seconds));
        for (uint64_t n = 0; !end_; ++n) {
            for (unsigned i = 0; i < request_.streams && !end_; ++i) {
                const uint64_t phase = clip_.period * (request_.first + i) / request_.of;
                const auto at = begin + Ns(int64_t(n * clip_.period + phase));
                if (at >= end && !sent_) {
                    in_flight_end_ = in_flight();
                    sent_ = true;
                }
                std::this_thread::sleep_until(at);
                send(streams_[i], at >= counted && at < end, at);
            }
        }
    }
    void send(Stream& stream, bool counts, Clock::time_point at) {
        const uint64_t n = stream.sent++;
        const Clip::Frame& frame = clip_.frames[n % clip_.frames.size()];
        const GstClockTime pts = n / clip_.frames.size() * clip_.length() + frame.pts;
        GstBuffer* const buffer = gst_buffer_copy(frame.buffer.get());
        GST_BUFFER_PTS(buffer) = pts;
        GST_BUFFER_DTS(buffer) = GST_CLOCK_TIME_NONE;
        GST_BUFFER_DURATION(buffer) = clip_.period;
        stream.arrived(pts, counts, at,
                       std::chrono::nanoseconds(int64_t(frame.waits_for * clip_.period)));
        GstFlowReturn flow = GST_FLOW_OK;
        g_signal_emit_by_name(stream.source, "push-buffer", buffer, &flow);
        gst_buffer_unref(buffer);
    }

    const TrialRequest& request_;
    const Clip& clip_;
    std::deque<Stream> streams_;
    ElementPtr pipeline_;
    std::atomic<bool> end_{false}, sent_{false};
    std::atomic<uint64_t> in_flight_end_{0};
    std::thread feeder_;
};

}  // namespace

Result<Trial> run_trial(const TrialRequest& request, const Clip& clip,
                        const std::function<void()>& ready) {
    Running running(request, clip);
    if (auto built = running.build(); !built) return built.error();
    if (auto started = running.start(); !started) return started.error();
    ready();
    running.feed();
    if (auto done = running.watch([&] { return running.all_sent(); }); !done) return done.error();
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(request.patience));
    if (auto done = running.watch([&] { return running.all_out() || Clock::now() >= until; });
        !done)
        return done.error();
    Trial trial;
    trial.rate = clip.rate();
    trial.in_flight_end = running.in_flight_end();
    for (const Stream& stream : running.streams()) stream.add_to(trial);
    trial.lost += running.without_result();
    return trial;
}

}  // namespace vartml::gst::density
