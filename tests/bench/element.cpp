// SPDX-License-Identifier: Apache-2.0
// vartmlinfer between two pads, without a pipeline around it. Prints one line of `name value`
// pairs.
//   overhead MODEL            one frame at a time, 640x480 NV12: times from pad to pad in us, and
//                             C++ allocations per frame in steady state
//   streams MODEL N MODE S    N streams for S seconds as fast as they go, MODE shared or separate:
//                             frames/s of all, 95th percentile of a frame's time in us
//   live MODEL S [N]          N live streams (1) on one model, 30 frames/s in all, for S seconds:
//                             99th percentile and, of the worst stream, 95th percentile in us;
//                             processor time in % of one core; time from NULL to the first frame in
//                             ms; the latency announced at PLAYING and at the end in us
//   overload MODEL S FACTOR   a live source at FACTOR times what the element can infer, for S
//   seconds pictures MODEL FPS S N [KEEP]  N live streams (keep-rate KEEP, auto) of FPS frames/s on
//   one model
//                             for S seconds: pictures/s of the slowest, their delay in us, the
//                             share with a result and its age in us, inferences/s of all
#include <dlfcn.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#ifdef FAKE_RUN_MS  // the device takes so long, and nothing of the processors
#include <gst/vartml/inference.h>
#include "gst/gstvartmlinfer.h"
#include "tests/support/gst_fake_model.h"
#endif
#include "tests/support/allocations.h"

namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double percentile(std::vector<double> values, double percent) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    return values[std::min(values.size() - 1, size_t(percent / 100 * double(values.size())))];
}

struct Options {
    std::string model;
    unsigned width = 768, height = 432;
    bool live = false, keep_status = false;
    const char* instance = nullptr;
    const char* on_late = "block";
    const char* keep_rate = "auto";
    double fps = 30;
};

constexpr unsigned most_sent = 1 << 14;

using StatusOf = GstStructure* (*)(GstBuffer*, guint);

// The plugin's own function, by which an application reads what happened to a frame.
StatusOf status_function() {
#ifdef FAKE_RUN_MS
    return gst_vartml_inference_get_structure;
#endif
    GstPlugin* plugin = gst_registry_find_plugin(gst_registry_get(), "vartml");
    void* object = dlopen(gst_plugin_get_filename(plugin), RTLD_LAZY | RTLD_NOLOAD);
    gst_object_unref(plugin);
    return reinterpret_cast<StatusOf>(dlsym(object, "gst_vartml_inference_get_structure"));
}

// A source pad, the element, a sink pad. Frames come from a pool of eight.
class Stream {
public:
    explicit Stream(const Options& options) : options_(options) {
        element = gst_element_factory_make("vartmlinfer", nullptr);
        if (!element) {
            std::fprintf(stderr, "element: no vartmlinfer; set GST_PLUGIN_PATH\n");
            std::exit(1);
        }
        gst_object_ref_sink(element);
        g_object_set(element, "model", options.model.c_str(), "model-instance-id", options.instance,
                     nullptr);
        gst_util_set_object_arg(G_OBJECT(element), "output-tensor-type", "hw");
        gst_util_set_object_arg(G_OBJECT(element), "on-late", options.on_late);
        gst_util_set_object_arg(G_OBJECT(element), "keep-rate", options.keep_rate);
        source_ = gst_pad_new("out", GST_PAD_SRC);
        sink_ = gst_pad_new("in", GST_PAD_SINK);
        gst_pad_set_element_private(source_, this);
        gst_pad_set_element_private(sink_, this);
        gst_pad_set_query_function(source_, query);
        gst_pad_set_chain_function(sink_, chain);
        gst_pad_set_event_function(sink_, event);
        link("sink", source_, true);
        link("src", sink_, false);
        gst_pad_set_active(sink_, TRUE);
        if (gst_element_set_state(element, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
            std::fprintf(stderr, "element: vartmlinfer does not start with %s\n",
                         options.model.c_str());
            std::exit(1);
        }
        gst_pad_set_active(source_, TRUE);
        begin();
        if (options.keep_status) status_ = status_function();
    }
    ~Stream() {
        gst_element_set_state(element, GST_STATE_NULL);
        gst_pad_set_active(source_, FALSE);
        gst_pad_set_active(sink_, FALSE);
        gst_buffer_pool_set_active(pool_, FALSE);
        gst_object_unref(pool_);
        gst_object_unref(source_);
        gst_object_unref(sink_);
        gst_object_unref(element);
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // `due`: when its delay begins.
    void push(Clock::time_point due = Clock::now()) {
        GstBuffer* buffer = nullptr;
        gst_buffer_pool_acquire_buffer(pool_, &buffer, nullptr);
        GST_BUFFER_PTS(buffer) = GstClockTime(double(number_) / options_.fps * 1e9);
        GST_BUFFER_OFFSET(buffer) = number_;
        sent_[number_++ % sent_.size()] = due;
        if (gst_pad_push(source_, buffer) != GST_FLOW_OK) {
            std::fprintf(stderr, "element: the stream ended\n");
            std::exit(1);
        }
    }
    void wait_for(uint64_t frames) {
        std::unique_lock lock(mutex_);
        came_.wait(lock, [&] { return frames_ >= frames; });
    }
    // Memory for so many times, so that what the process holds does not grow with them. Not zeros:
    // Linux takes back pages of nothing else.
    void make_room(double frames) {
        const std::lock_guard lock(mutex_);
        times_.assign(static_cast<size_t>(frames), 1);
        times_.clear();
    }
    // Since the last call.
    std::vector<double> take_times() {
        const std::lock_guard lock(mutex_);
        std::vector<double> taken;
        taken.reserve(times_.capacity());
        taken.swap(times_);
        return taken;
    }
    uint64_t pushed() const { return number_; }
    // Since the last call: frames without any result; then: that left in another order.
    uint64_t take_without_result() {
        const std::lock_guard lock(mutex_);
        return std::exchange(without_result_, 0);
    }
    uint64_t disorder() {
        const std::lock_guard lock(mutex_);
        return disorder_;
    }
    // What a latency query from downstream is answered.
    double latency_us() {
        GstPad* pad = gst_element_get_static_pad(element, "src");
        GstQuery* query = gst_query_new_latency();
        GstClockTime least = 0;
        if (gst_pad_query(pad, query)) gst_query_parse_latency(query, nullptr, &least, nullptr);
        gst_query_unref(query);
        gst_object_unref(pad);
        return double(least) / 1000;
    }
    guint64 stat(const char* field) {
        GstStructure* s = nullptr;
        g_object_get(element, "stats", &s, nullptr);
        const GValue* v = gst_structure_get_value(s, field);
        const guint64 value = G_VALUE_HOLDS_UINT(v) ? g_value_get_uint(v) : g_value_get_uint64(v);
        gst_structure_free(s);
        return value;
    }

    GstElement* element;

private:
    void link(const char* name, GstPad* pad, bool to_element) {
        gst_object_ref_sink(pad);
        GstPad* own = gst_element_get_static_pad(element, name);
        gst_pad_link(to_element ? pad : own, to_element ? own : pad);
        gst_object_unref(own);
    }
    void begin() {
        GstVideoInfo info;
        gst_video_info_set_format(&info, GST_VIDEO_FORMAT_NV12, options_.width, options_.height);
        GST_VIDEO_INFO_FPS_N(&info) = int(options_.fps * 1000);
        GST_VIDEO_INFO_FPS_D(&info) = 1000;
        GstCaps* caps = gst_video_info_to_caps(&info);
        gst_pad_push_event(source_, gst_event_new_stream_start("bench"));
        gst_pad_push_event(source_, gst_event_new_caps(caps));
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        gst_pad_push_event(source_, gst_event_new_segment(&segment));
        pool_ = gst_buffer_pool_new();
        GstStructure* config = gst_buffer_pool_get_config(pool_);
        gst_buffer_pool_config_set_params(config, caps, guint(info.size), 8, 0);
        gst_buffer_pool_set_config(pool_, config);
        gst_buffer_pool_set_active(pool_, TRUE);
        gst_caps_unref(caps);
        times_.reserve(1 << 16);
    }
    static Stream* self(GstPad* pad) {
        return static_cast<Stream*>(gst_pad_get_element_private(pad));
    }
    static gboolean query(GstPad* pad, GstObject* parent, GstQuery* query) {
        if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY)
            return gst_pad_query_default(pad, parent, query);
        gst_query_set_latency(query, self(pad)->options_.live, 0, GST_CLOCK_TIME_NONE);
        return TRUE;
    }
    static gboolean event(GstPad*, GstObject*, GstEvent* event) {
        gst_event_unref(event);
        return TRUE;
    }
    // Whether it has a result, of its own or of an earlier frame.
    bool has_result(GstBuffer* buffer) const {
        if (!status_) return true;
        GstStructure* s = status_(buffer, 0);
        const bool yes = gst_structure_has_field(s, "age_ns");
        gst_structure_free(s);
        return yes;
    }
    static GstFlowReturn chain(GstPad* pad, GstObject*, GstBuffer* buffer) {
        Stream& t = *self(pad);
        const guint64 number = GST_BUFFER_OFFSET(buffer);
        const double us = us_since(t.sent_[number % t.sent_.size()]);
        const bool has_result = t.has_result(buffer);
        gst_buffer_unref(buffer);
        const std::lock_guard lock(t.mutex_);
        t.times_.push_back(us);
        t.without_result_ += !has_result;
        t.disorder_ += number != t.frames_;
        ++t.frames_;
        t.came_.notify_all();
        return GST_FLOW_OK;
    }

    const Options options_;
    GstPad *source_, *sink_;
    GstBufferPool* pool_ = nullptr;
    StatusOf status_ = nullptr;
    uint64_t number_ = 0;
    std::array<Clock::time_point, most_sent> sent_;
    std::mutex mutex_;  // guards all below
    std::condition_variable came_;
    uint64_t frames_ = 0, without_result_ = 0, disorder_ = 0;
    std::vector<double> times_;
};

void one_by_one(Stream& stream, unsigned frames) {
    for (unsigned i = 0; i < frames; ++i) {
        stream.push();
        stream.wait_for(stream.pushed());
    }
}

int overhead(const char* model) {
    Stream stream({.model = model, .width = 640, .height = 480});
    one_by_one(stream, 500);
    stream.take_times();
    const size_t before = vartml::test::allocations;
    one_by_one(stream, 2000);
    const size_t after = vartml::test::allocations;
    const auto times = stream.take_times();
    std::printf("p50 %.1f p99 %.1f max %.1f allocs %.4f\n", percentile(times, 50),
                percentile(times, 99), percentile(times, 100), double(after - before) / 2000);
    return 0;
}

// As fast as it goes until `stop`.
void rush(Stream& stream, const std::atomic<bool>& stop) {
    while (!stop) stream.push();
}

int streams(const char* model, unsigned count, bool shared, double seconds) {
    std::vector<std::unique_ptr<Stream>> all;
    for (unsigned i = 0; i < count; ++i) {
        all.push_back(std::make_unique<Stream>(
            Options{.model = model, .instance = shared ? "bench" : nullptr}));
    }
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (auto& stream : all) threads.emplace_back([&] { rush(*stream, stop); });
    std::this_thread::sleep_for(std::chrono::seconds(1));
    for (auto& stream : all) stream->take_times();
    const auto start = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    std::vector<double> times;
    for (auto& stream : all) {
        const auto some = stream->take_times();
        times.insert(times.end(), some.begin(), some.end());
    }
    const double took = us_since(start) / 1e6;
    stop = true;
    for (std::thread& thread : threads) thread.join();
    std::printf("fps %.2f p95 %.0f\n", double(times.size()) / took, percentile(times, 95));
    return 0;
}

// Frames at a steady rate, whatever becomes of them.
void play(Stream& stream, double frames_per_second, double seconds) {
    const auto start = Clock::now();
    for (uint64_t n = 0; double(n) < frames_per_second * seconds; ++n) {
        const auto due = start + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(double(n) / frames_per_second));
        std::this_thread::sleep_until(due);
        stream.push(due);
    }
    stream.wait_for(stream.pushed());
}

double processor_seconds() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return double(t.tv_sec) + double(t.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int live(const char* model, double seconds, unsigned count) {
    const auto start = Clock::now();
    std::vector<std::unique_ptr<Stream>> all;
    for (unsigned i = 0; i < count; ++i) {
        all.push_back(std::make_unique<Stream>(Options{.model = model,
                                                       .live = true,
                                                       .instance = count > 1 ? "bench" : nullptr,
                                                       .on_late = "skip"}));
    }
    double announced = 1e12, announced_at_end = 0;
    for (auto& stream : all) announced = std::min(announced, stream->latency_us());
    one_by_one(*all[0], 1);
    const double first_ms = us_since(start) / 1000;
    const auto play_all = [&](double time) {
        std::vector<std::thread> threads;
        for (auto& stream : all) threads.emplace_back([&] { play(*stream, 30.0 / count, time); });
        for (std::thread& thread : threads) thread.join();
    };
    play_all(1);
    for (auto& stream : all) stream->take_times();
    const double before = processor_seconds();
    play_all(seconds);
    const double cpu = (processor_seconds() - before) / seconds * 100;
    double p99 = 0, p95 = 0;
    for (auto& stream : all) {
        const auto times = stream->take_times();
        p99 = std::max(p99, percentile(times, 99));
        p95 = std::max(p95, percentile(times, 95));
        announced_at_end = std::max(announced_at_end, stream->latency_us());
    }
    std::printf("p99 %.0f p95 %.0f cpu %.1f first %.1f announced %.0f announced-at-end %.0f\n", p99,
                p95, cpu, first_ms, announced, announced_at_end);
    return 0;
}

// Memory of this process alone. Pages of files, which the system takes and gives back as it likes,
// are not of it.
unsigned anonymous_kib() {
    std::ifstream file("/proc/self/statm");
    unsigned long size = 0, resident = 0, shared = 0;
    file >> size >> resident >> shared;
    return unsigned((resident - shared) * size_t(sysconf(_SC_PAGESIZE)) / 1024);
}

double capacity(const char* model, double seconds) {
    Stream stream({.model = model});
    std::atomic<bool> stop{false};
    std::thread thread([&] { rush(stream, stop); });
    std::this_thread::sleep_for(std::chrono::seconds(1));
    stream.take_times();
    const auto start = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const double fps = double(stream.take_times().size()) / (us_since(start) / 1e6);
    stop = true;
    thread.join();
    return fps;
}

int overload(const char* model, double seconds, double factor) {
    const double span = std::min(seconds, 10.0), before_it = capacity(model, span);
    const double fps = factor * before_it;
    Stream stream(
        {.model = model, .live = true, .keep_status = true, .on_late = "auto", .fps = fps});
    play(stream, fps, 2);
    stream.take_times();
    stream.take_without_result();
    stream.make_room(fps * seconds);
    g_signal_emit_by_name(stream.element, "reset-stats");
    const unsigned before = anonymous_kib();
    const auto start = Clock::now();
    play(stream, fps, seconds);
    const double took = us_since(start) / 1e6;
    const unsigned after = anonymous_kib();  // before the list of times is copied and sorted
    const auto times = stream.take_times();
    const auto inferences = double(stream.stat("inferences"));
    // What else the machine does changes it with time.
    const double most = (before_it + capacity(model, span)) / 2;
    std::printf(
        "capacity %.2f source %.2f pictures %.2f inferred %.2f p99 %.0f without-result %u "
        "age-p99 %u in-flight-max %u disorder %u memory-before %u memory-after %u\n",
        most, fps, double(times.size()) / took, inferences / took, percentile(times, 99),
        unsigned(stream.take_without_result()), unsigned(stream.stat("age-p99-us")),
        unsigned(stream.stat("in-flight-max")), unsigned(stream.disorder()), before, after);
    return 0;
}

int pictures(const char* model, double fps, double seconds, unsigned count, const char* keep) {
    std::vector<std::unique_ptr<Stream>> all;
    for (unsigned i = 0; i < count; ++i) {
        all.push_back(std::make_unique<Stream>(Options{.model = model,
                                                       .live = true,
                                                       .keep_status = true,
                                                       .instance = count > 1 ? "bench" : nullptr,
                                                       .on_late = "auto",
                                                       .keep_rate = keep,
                                                       .fps = fps}));
    }
    double slowest = 0;
    const auto play_all = [&](double time) {
        const auto start = Clock::now();
        std::vector<std::thread> threads;
        for (auto& stream : all) threads.emplace_back([&] { play(*stream, fps, time); });
        for (std::thread& thread : threads) thread.join();
        slowest = fps * time / (us_since(start) / 1e6);
    };
    play_all(4);  // first results
    for (auto& stream : all) {
        stream->take_times();
        stream->take_without_result();
        stream->make_room(fps * seconds);
        g_signal_emit_by_name(stream->element, "reset-stats");
    }
    const unsigned before = anonymous_kib();
    play_all(seconds);
    const unsigned after = anonymous_kib();
    double p50 = 0, p99 = 0, worst = 0, age50 = 0, age99 = 0, inferences = 0;
    uint64_t frames = 0, without = 0, disorder = 0;
    for (auto& stream : all) {
        const auto times = stream->take_times();
        frames += times.size();
        p50 = std::max(p50, percentile(times, 50));
        p99 = std::max(p99, percentile(times, 99));
        worst = std::max(worst, percentile(times, 100));
        age50 = std::max(age50, double(stream->stat("age-p50-us")));
        age99 = std::max(age99, double(stream->stat("age-p99-us")));
        inferences += double(stream->stat("inferences"));
        without += stream->take_without_result();
        disorder += stream->disorder();
    }
    std::printf(
        "pictures %.2f frames %u p50 %.0f p99 %.0f max %.0f without-result %u age-p50 %.0f "
        "age-p99 %.0f inferred %.2f disorder %u memory-before %u memory-after %u\n",
        slowest, unsigned(frames), p50, p99, worst, unsigned(without), age50, age99,
        inferences / seconds, unsigned(disorder), before, after);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    gst_init(&argc, &argv);
#ifdef FAKE_RUN_MS
    GST_ELEMENT_REGISTER(vartmlinfer, nullptr);
    vartml::test::fake_model().run_ms = vartml::test::fake_model().warm_up_ms = FAKE_RUN_MS;
#endif
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "overhead" && argc == 3) return overhead(argv[2]);
    if (what == "streams" && argc == 6)
        return streams(argv[2], unsigned(std::atoi(argv[3])), std::string(argv[4]) == "shared",
                       std::atof(argv[5]));
    if (what == "live" && (argc == 4 || argc == 5))
        return live(argv[2], std::atof(argv[3]), argc == 5 ? unsigned(std::atoi(argv[4])) : 1);
    if (what == "overload" && argc == 5)
        return overload(argv[2], std::atof(argv[3]), std::atof(argv[4]));
    if (what == "pictures" && (argc == 6 || argc == 7))
        return pictures(argv[2], std::atof(argv[3]), std::atof(argv[4]),
                        unsigned(std::atoi(argv[5])), argc == 7 ? argv[6] : "auto");
    std::fprintf(stderr,
                 "usage: element overhead MODEL | streams MODEL N shared|separate SECONDS | "
                 "live MODEL SECONDS [N] | overload MODEL SECONDS FACTOR | "
                 "pictures MODEL FPS SECONDS N [KEEP]\n");
    return 2;
}
