// SPDX-License-Identifier: Apache-2.0
// Parts of vartmloverlay that have no pad: what the display says, trails, skeletons, text.
#include "gst/overlay/hud.h"
#include "gst/overlay/text.h"
#include "gst/overlay/trails.h"
#include "tests/gst/overlay_harness.h"

namespace {

using namespace overlay_test;
using namespace vartml::gst::overlay;

std::vector<std::string> lines(const Hud& hud) {
    std::vector<std::string> all;
    for (unsigned i = 0; i < hud.num_lines(); ++i) all.emplace_back(hud.line(i));
    return all;
}

Buffer frame_with(InferenceStatus status, guint64 total_us, guint64 run_us) {
    Buffer buffer(gst_buffer_new());
    auto record = std::make_shared<InferenceRecord>();
    record->model = "yolox";
    Inference inference;
    inference.status = status;
    inference.total_us = total_us;
    inference.run_us = run_us;
    inference.record = record;
    EXPECT_TRUE(add_inference(buffer.get(), inference, 0));
    return buffer;
}

TEST(OverlayHud, CountsFramesOfTheLastSecond) {
    Hud hud;
    const Buffer plain(gst_buffer_new());
    int64_t now = 5'000'000;
    hud.count(plain.get(), now);
    EXPECT_EQ(lines(hud), std::vector<std::string>{});  // one frame has no rate
    for (int i = 0; i < 100; ++i) hud.count(plain.get(), now += 40'000);
    EXPECT_EQ(lines(hud), std::vector<std::string>{"25.0 frames/s"});
    for (int i = 0; i < 100; ++i) hud.count(plain.get(), now += 20'000);
    EXPECT_EQ(lines(hud), std::vector<std::string>{"50.0 frames/s"});
    hud.count(plain.get(), now += 60'000'000);  // nothing within the second before
    EXPECT_EQ(lines(hud), std::vector<std::string>{});
}

TEST(OverlayHud, TakesPercentilesOfInferencesAndTheShareOfSkippedFrames) {
    Hud hud;
    int64_t now = 0;
    for (int i = 1; i <= 100; ++i) {  // 1 to 100 ms and 0.5 to 50 ms, one frame in four skipped
        const auto us = static_cast<guint64>(i) * 1000;
        hud.count(frame_with(InferenceStatus::inferred, us, us / 2).get(), now += 10'000);
        if (i % 3 == 0) {
            hud.count(frame_with(InferenceStatus::skipped_late, 900'000, 900'000).get(), now);
        }
    }
    const Buffer plain(gst_buffer_new());
    hud.count(plain.get(), now += 500'000);
    const auto got = lines(hud);
    ASSERT_EQ(got.size(), 4u);
    EXPECT_EQ(got[0], "yolox");
    EXPECT_EQ(got[2], "latency 95.0 ms, inference 47.5 ms (p95)");
    EXPECT_EQ(got[3], "25 % skipped");
}

TEST(OverlayHud, KeepsItsWordsForHalfASecond) {
    Hud hud;
    int64_t now = 0;
    for (int i = 0; i < 100; ++i) {
        hud.count(frame_with(InferenceStatus::inferred, 1000, 1000).get(), now += 10'000);
    }
    const auto before = lines(hud);
    hud.count(frame_with(InferenceStatus::inferred, 900'000, 900'000).get(), now);
    EXPECT_EQ(lines(hud), before);
}

TEST(OverlayTrails, KeepTheLastPointsAndForgetWhoIsGone) {
    Trails trails;
    for (int i = 0; i < 40; ++i) {
        const Trail& trail = trails.add(0, 1, {static_cast<float>(i), 0});
        EXPECT_EQ(trail.size(), std::min(static_cast<unsigned>(i) + 1, Trail::capacity));
        EXPECT_EQ(trail[trail.size() - 1].x, static_cast<float>(i));
        EXPECT_EQ(trail[0].x, static_cast<float>(std::max(i - 31, 0)));
        trails.end_frame();
    }
    for (unsigned i = 0; i < Trail::capacity; ++i) {
        EXPECT_EQ(trails.size(), 1u);
        trails.end_frame();
    }
    EXPECT_EQ(trails.size(), 0u);
}

TEST(OverlayTrails, OfTwoLabelsAreTwo) {
    Trails trails;
    trails.add(1, 7, {1, 0});
    EXPECT_EQ(trails.add(2, 7, {9, 0}).size(), 1u);
    EXPECT_EQ(trails.add(1, 7, {2, 0}).size(), 2u);
}

TEST(OverlayText, MakesNoBitmapForScoresThatChange) {
    Text text;
    text.set_size(20);
    text.width("person 0.87");
    const uint64_t made = text.made();
    for (int i = 0; i < 100; ++i)
        text.width("#" + std::to_string(i) + " person 0." + std::to_string(i));
    EXPECT_EQ(text.made(), made);
    EXPECT_EQ(text.width("00"), 2 * text.width("0"));
    EXPECT_GT(text.width("person"), text.width("per"));
    EXPECT_GE(text.line_height(), 20);
    text.set_size(40);
    EXPECT_GT(text.line_height(), 40);
}

TEST(OverlayText, ForgetsWordsThatWereLongNotUsed) {
    Text text;
    text.set_size(10);
    text.width("kept");
    for (int i = 0; i < 1100; ++i) {
        std::string word = "word";
        for (int k = i; k; k /= 26) word += static_cast<char>('a' + k % 26);
        text.width(word);
    }
    const uint64_t made = text.made();
    for (int i = 0; i < 700; ++i) {
        text.width("kept");
        text.end_frame();
    }
    text.width("kept");
    EXPECT_EQ(text.made(), made);
    text.width("worda");
    EXPECT_EQ(text.made(), made + 1);
}

}  // namespace
