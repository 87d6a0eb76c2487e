// SPDX-License-Identifier: Apache-2.0
// The parts of vartmlinfer that need neither a model nor a pipeline.
#include <array>
#include <cstring>
#include <numeric>

#include "gst/infer/admission.h"
#include "gst/infer/feed.h"
#include "gst/infer/frame_tensor.h"
#include "gst/infer/latency.h"
#include "gst/infer/load_model.h"
#include "gst/infer/request.h"
#include "gst/infer/stats.h"
#include "gst/support/vart_runner.h"
#include "tests/support/gst_main.h"

namespace {

using namespace vartml::gst;
using namespace vartml::gst::infer;

TEST(Ring, KeepsOrderWhileItGrowsAndWraps) {
    Ring<int> ring;
    int in = 0, out = 0;
    for (int round = 1; round < 60; ++round) {
        for (int i = 0; i < round; ++i) ring.push(in++);
        for (int i = 0; i < round - 1; ++i) EXPECT_EQ(ring.pop(), out++);
    }
    for (size_t i = 0; i < ring.size(); ++i) EXPECT_EQ(ring[i], out + int(i));
    while (!ring.empty()) EXPECT_EQ(ring.pop(), out++);
    EXPECT_EQ(out, in);
}

TEST(ModelName, IsTheFirstThatSaysSomething) {
    struct Row {
        const char *compiled_in, *path, *name;
    };
    const Row rows[] = {
        {"yolox", "/models/x/model.rai", "yolox"},  // as it was compiled, or --name
        {"model", "/models/yolox_nano_416/model.rai", "yolox_nano_416"},
        {"model", "/models/yolox_nano.rai", "yolox_nano"},
        {"model", "/models/yolox/onnx/model.onnx", "yolox"},  // of a repository of models
        {"best", "/runs/helmets/weights/best.onnx", "helmets"},
        {"model", "/models/faces/", "faces"},  // a folder with vaiml_par_0
        {"model", "/models/faces.tar.gz", "faces"},
        {"model", "/model.rai", "model"},  // nothing says anything
    };
    for (const Row& row : rows)
        EXPECT_EQ(model_name(row.compiled_in, row.path), row.name) << row.path;
}

TEST(Percentile, IsTheNearestRank) {
    std::vector<uint32_t> values(100);
    std::iota(values.rbegin(), values.rend(), 1);
    EXPECT_EQ(percentile(values, 50), 50u);
    EXPECT_EQ(percentile(values, 95), 95u);
    EXPECT_EQ(percentile(values, 99), 99u);
    std::vector<uint32_t> one = {7};
    EXPECT_EQ(percentile(one, 50), 7u);
    EXPECT_EQ(percentile({}, 99), 0u);
}

guint64 field(const GstStructure* s, const char* name) {
    guint64 value = G_MAXUINT64;
    EXPECT_TRUE(gst_structure_get_uint64(s, name, &value)) << name;
    return value;
}

TEST(Stats, TimesOfAModelBeforeDoNotCount) {
    Stats stats;
    stats.times(1, 1, 1'000'000);
    stats.model_swap();
    stats.times(1, 1, 10);
    GstStructure* s = stats.structure({});
    guint64 us = 0;
    EXPECT_TRUE(gst_structure_get_uint64(s, "run-max-us", &us));
    EXPECT_EQ(us, 10u);
    gst_structure_free(s);
}

TEST(Stats, AddUpAndForgetAfterTheWindow) {
    Stats stats;
    for (int i = 0; i < 3; ++i) stats.frame(InferenceStatus::inferred);
    stats.frame(InferenceStatus::skipped_late);
    stats.frame(InferenceStatus::failed);
    for (unsigned i = 0; i < 2048; ++i) stats.times(i < 1024 ? 9000 : 5, 1, 2);
    stats.copied(CopyReason::make_writable, 10);
    stats.copied(CopyReason::make_writable, 20);
    GstStructure* s = stats.structure({});
    EXPECT_EQ(field(s, "frames"), 5u);
    EXPECT_EQ(field(s, "inferences"), 3u);
    EXPECT_EQ(field(s, "failed"), 1u);
    EXPECT_EQ(field(s, "skipped-late"), 1u);
    EXPECT_EQ(field(s, "copy-make-writable-count"), 2u);
    EXPECT_EQ(field(s, "copied-bytes"), 30u);
    EXPECT_EQ(field(s, "pre-p99-us"), 5u);
    EXPECT_EQ(field(s, "pre-max-us"), 9000u);
    EXPECT_EQ(field(s, "total-p50-us"), 0u);
    gst_structure_free(s);
    stats.reset();
    s = stats.structure({});
    EXPECT_EQ(field(s, "frames"), 0u);
    EXPECT_EQ(field(s, "pre-max-us"), 0u);
    gst_structure_free(s);
}

struct GateCase {
    const char* why;
    guint flags;
    guint interval;
    bool skip;
    GstClockTime pts;
    InferenceStatus want;
};
TEST(Gates, DecideByFlagsIntervalAndLateness) {
    const GateCase cases[] = {
        {"an ordinary frame", 0, 1, true, 200, InferenceStatus::inferred},
        {"a repeated frame", GST_BUFFER_FLAG_GAP, 1, false, 200, InferenceStatus::inferred},
        {"a damaged frame", GST_BUFFER_FLAG_CORRUPTED, 1, false, 200,
         InferenceStatus::skipped_flag},
        {"late, and late frames pass", 0, 1, true, 140, InferenceStatus::skipped_late},
        {"late, but every frame is wanted", 0, 1, false, 140, InferenceStatus::inferred},
        {"just in time", 0, 1, true, 141, InferenceStatus::inferred},
        {"without time", 0, 1, true, GST_CLOCK_TIME_NONE, InferenceStatus::inferred},
    };
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    for (const GateCase& c : cases) {
        SCOPED_TRACE(c.why);
        Gates gates;
        gates.qos(1.2, 20, 100);  // 20 late at 100: earliest is 140
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 1, nullptr);
        GST_BUFFER_PTS(buffer) = c.pts;
        GST_BUFFER_FLAG_SET(buffer, c.flags);
        EXPECT_EQ(gates.decide(buffer, segment, c.interval, c.interval, c.skip), c.want);
        gst_buffer_unref(buffer);
    }
}

TEST(Gates, SkipAGapWithoutAPicture) {
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    Gates gates;
    GstBuffer* buffer = gst_buffer_new();
    GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_GAP);
    EXPECT_EQ(gates.decide(buffer, segment, 1, 1, false), InferenceStatus::skipped_flag);
    gst_buffer_unref(buffer);
}

// It costs no more than itself.
TEST(Gates, GiveTheTurnOfADamagedFrameToTheNext) {
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    Gates gates;
    unsigned n = 0;
    for (const bool damaged : {false, false, false, true, false, false}) {
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 1, nullptr);
        if (damaged) GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_CORRUPTED);
        constexpr InferenceStatus wanted[] = {
            InferenceStatus::inferred,         InferenceStatus::skipped_interval,
            InferenceStatus::skipped_interval, InferenceStatus::skipped_flag,
            InferenceStatus::inferred,         InferenceStatus::skipped_interval};
        EXPECT_EQ(gates.decide(buffer, segment, 3, 3, false), wanted[n]) << n;
        ++n;
        gst_buffer_unref(buffer);
    }
}

TEST(Ring, TakesOutOneAndKeepsTheOrderOfTheOthers) {
    Ring<int> ring;
    for (int i = 0; i < 20; ++i) ring.push(i);
    for (int i = 0; i < 5; ++i) ring.pop();
    EXPECT_TRUE(ring.remove(7));
    EXPECT_FALSE(ring.remove(7));
    EXPECT_FALSE(ring.remove(99));
    for (const int want : {5, 6, 8, 9}) EXPECT_EQ(ring.pop(), want);
    EXPECT_EQ(ring.size(), 10u);
}

// What a latency target adds to the interval is told apart from what the user asked for.
TEST(Gates, TellAdaptedFramesFromThoseOfTheInterval) {
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    Gates gates;
    GstBuffer* buffer = gst_buffer_new();
    std::string seen;
    for (int i = 0; i < 11; ++i) {
        switch (gates.decide(buffer, segment, 2, 5, false)) {
            case InferenceStatus::inferred:
                seen += 'I';
                break;
            case InferenceStatus::skipped_slo:
                seen += 'a';
                break;
            default:
                seen += 's';
        }
    }
    EXPECT_EQ(seen, "IsasaIsasaI");
    gst_buffer_unref(buffer);
}

struct Phase {
    const char* why;
    int inferences;
    uint64_t total_us;
    unsigned interval;  // afterwards
};
TEST(LatencyTarget, DecidesOnInferencesAndWaitsForASecondOpinion) {
    const Phase phases[] = {
        {"within the target", 320, 9'000, 2},
        {"63 inferences above it", 63, 12'000, 2},
        {"the 64th", 1, 12'000, 3},
        {"once more above, then not", 32, 12'000, 3},
        {"inside, but not by much", 1024, 8'000, 3},
        {"above its double needs no second opinion", 32, 21'000, 4},
        {"well inside for 63 inferences", 63, 6'000, 4},
        {"and for one more", 1, 6'000, 3},
        {"a long time: never under the user's interval", 2000, 1'000, 2},
    };
    LatencyTarget target;
    target.reset(2);
    for (const Phase& phase : phases) {
        SCOPED_TRACE(phase.why);
        for (int i = 0; i < phase.inferences; ++i) target.inference(phase.total_us, 10'000, 2);
        EXPECT_EQ(target.interval(), phase.interval);
    }
    target.inference(12'000, 0, 2);
    EXPECT_EQ(target.interval(), 2u) << "switched off";
}

TEST(LatencyTarget, TwoLateOnesOfThirtyTwoAreTooMany) {
    LatencyTarget target;
    for (int i = 0; i < 640; ++i) target.inference(i % 32 < 1 ? 15'000 : 1'000, 10'000, 1);
    EXPECT_EQ(target.interval(), 1u);
    for (int i = 0; i < 64; ++i) target.inference(i % 32 < 2 ? 15'000 : 1'000, 10'000, 1);
    EXPECT_EQ(target.interval(), 2u);
}

// A queue that a wider interval empties: what an inference takes falls with it.
TEST(LatencyTarget, SettlesWhereInferencesAreInTimeAndFallsBackWhenTheLoadIsGone) {
    LatencyTarget target;
    unsigned most = 0;
    for (int i = 0; i < 32 * 60; ++i) {
        target.inference(48'000 / target.interval(), 10'000, 1);
        most = std::max(most, target.interval());
    }
    EXPECT_EQ(target.interval(), 6u) << "8 ms of 10";
    EXPECT_EQ(most, 6u);
    for (int i = 0; i < 32 * 10; ++i) target.inference(3'000, 10'000, 1);
    EXPECT_EQ(target.interval(), 1u);
}

// A run that takes longer than the target takes as long at any interval.
TEST(LatencyTarget, TakesStepsBackThatDoNotHelp) {
    LatencyTarget target;
    unsigned most = 0, long_time = 0;
    for (int i = 0; i < 32 * 400; ++i) {
        target.inference(50'000, 10'000, 1);
        most = std::max(most, target.interval());
        long_time += target.interval() == 1;
    }
    EXPECT_EQ(most, 4u);
    EXPECT_GT(long_time, 32u * 400 * 4 / 5) << "trials are rare";
}

TEST(Gates, InferEveryNthFrameAndStartOverAfterReset) {
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    Gates gates;
    GstBuffer* buffer = gst_buffer_new();
    std::string seen;
    for (int i = 0; i < 7; ++i) {
        seen += gates.decide(buffer, segment, 3, 3, false) == InferenceStatus::inferred ? 'I' : 's';
    }
    EXPECT_EQ(seen, "IssIssI");
    gates.reset();
    EXPECT_EQ(gates.decide(buffer, segment, 3, 3, false), InferenceStatus::inferred);
    gst_buffer_unref(buffer);
}

TEST(Gates, EarlyFramesMoveTheEarliestTimeBack) {
    Gates gates;
    gates.qos(0.5, -300, 100);
    EXPECT_EQ(gates.earliest(), 0u);
    gates.qos(0.5, -30, 100);
    EXPECT_EQ(gates.earliest(), 70u);
    gates.qos(0.5, 0, GST_CLOCK_TIME_NONE);
    EXPECT_EQ(gates.earliest(), GST_CLOCK_TIME_NONE);
}

vartml::TensorView flat(vartml::DataType type, uint32_t size) {
    return vartml::make_view(type, vartml::Layout::GENERIC, {1, size}, {0, 1});
}

TEST(Feed, WritesTheFrameSizeInTheTypeOfTheInput) {
    auto feed = Feed::create("frame-size", "sizes", flat(vartml::DataType::int64, 2));
    ASSERT_TRUE(feed);
    int64_t got[2] = {};
    feed->write(640, 480, got);
    EXPECT_EQ(got[0], 640);
    EXPECT_EQ(got[1], 480);
}

TEST(Feed, WritesConstants) {
    auto many = Feed::create("const:1,-2.5,3e2", "x", flat(vartml::DataType::float32, 3));
    ASSERT_TRUE(many);
    float got[3] = {};
    many->write(1, 1, got);
    EXPECT_EQ(got[0], 1.f);
    EXPECT_EQ(got[1], -2.5f);
    EXPECT_EQ(got[2], 300.f);
    auto one = Feed::create("const:1.00390625", "x", flat(vartml::DataType::bf16, 2));
    ASSERT_TRUE(one);
    uint16_t half[2] = {};
    one->write(1, 1, half);
    EXPECT_EQ(half[0], 0x3f80);  // a tie goes to even
    EXPECT_EQ(half[1], 0x3f80);
}

TEST(Feed, RefusesWhatDoesNotFit) {
    for (const char* text :
         {"const:1,2", "const:", "const:one", "const:1;2", "frames", "frame-size"}) {
        auto feed = Feed::create(text, "x", flat(vartml::DataType::float32, 3));
        ASSERT_FALSE(feed) << text;
        EXPECT_NE(feed.error().message.find("'x'"), std::string::npos);
    }
}

TEST(PictureExtent, IsThatOfTensorsThatPicturesCanBe) {
    using vartml::Layout;
    const struct {
        Layout layout;
        std::vector<uint32_t> shape;
        bool four_channels;
        std::array<uint32_t, 3> extent;  // channels, height, width; no channels: none
    } rows[] = {
        {Layout::NCHW, {1, 3, 4, 6}, false, {3, 4, 6}},
        {Layout::NHWC, {1, 4, 6, 1}, false, {1, 4, 6}},
        {Layout::NHW, {1, 4, 6}, false, {1, 4, 6}},
        {Layout::NHWC, {1, 4, 6, 4}, true, {4, 4, 6}},
        {Layout::NHWC, {1, 4, 6, 4}, false, {}},
        {Layout::NHWC, {1, 4, 6, 5}, true, {}},
        {Layout::NCHW, {1, 2, 4, 6}, true, {}},
        {Layout::NCHW, {2, 3, 4, 6}, false, {}},
        {Layout::GENERIC, {1, 3, 4, 6}, true, {}},
    };
    for (const auto& row : rows) {
        const auto view = vartml::make_view(vartml::DataType::float32, row.layout, row.shape);
        const auto found = picture_extent(view, row.four_channels);
        ASSERT_EQ(found.has_value(), row.extent[0] != 0) << to_string(row.layout);
        if (!found) continue;
        EXPECT_EQ((std::array{found->channels, found->height, found->width}), row.extent);
    }
}

TEST(TensorView, FollowsTheInfoOfTheRunner) {
    vart::NpuTensorInfo info;
    info.name = "images";
    info.data_type = vart::DataType::BF16;
    info.memory_layout = vart::MemoryLayout::HCWNC4;
    info.shape = {224, 1, 224, 1, 4};
    info.strides = {896, 896, 4, 4, 1};
    info.size = 200704;
    info.size_in_bytes = 401408;
    const vartml::TensorView want =
        vartml::make_view(vartml::DataType::bf16, vartml::Layout::HCWNC4, {224, 1, 224, 1, 4});
    EXPECT_EQ(vartml::gst::tensor_view(info), want);
}

TEST(LatencyPromise, LeavesRoomForALostTimeSliceOnSharedProcessorsOnly) {
    struct Case {
        const char* why;
        std::vector<uint32_t> times;
        uint64_t of_a_device, of_the_host;
    };
    const Case cases[] = {
        {"nothing measured", {}, 0, 0},
        {"steady", std::vector<uint32_t>(20, 1000), 1000, 2000},
        {"one outlier in twenty",
         {9, 9, 9, 9, 9, 9, 9, 9, 9, 500, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9},
         500,
         18},
        {"unsteady", {1, 2, 3, 4, 5, 6, 7, 8, 9, 90}, 90, 90},
    };
    for (const Case& c : cases) {
        std::vector<uint32_t> times = c.times;
        EXPECT_EQ(promise_us(times, false), c.of_a_device) << c.why;
        times = c.times;
        EXPECT_EQ(promise_us(times, true), c.of_the_host) << c.why;
    }
}

TEST(LatencyPromise, RisesWhenMoreThanNineteenOfTwentyAreHeldLonger) {
    LatencyPromise promise;
    for (int i = 0; i < 640; ++i) {
        // 3 of 64
        EXPECT_FALSE(promise.frame(i % 64 < 3 ? 50'000 : 9'000, 10'000)) << i;
    }
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(promise.frame(20'000 + uint64_t(i), 10'000)) << i;
    // Those of 50 ms are out of the window: this is the fourth, and the shortest of the four
    // counts.
    EXPECT_EQ(promise.frame(30'000, 10'000), 20'000u);
}

}  // namespace
