// SPDX-License-Identifier: Apache-2.0
// A model that is unloaded while no frame needs it, and is swapped meanwhile, by its own element or
// by another that shares it.
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/gst_infer_idle.h"

namespace {

using namespace vartml::test;
using vartml::gst::InferenceStatus;

class InferIdleSwaps : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }
};

struct SwapCase {
    const char* name;
    bool again;  // it is unloaded once more before a frame has seen it
    const char* id;
};
class InferIdleSwap : public testing::TestWithParam<SwapCase> {};
TEST_P(InferIdleSwap, WrittenAsleepIsLoadedAtOnceAndUsedByTheNextFrame) {
    reset_fake_model();
    {
        InferHarness t(drowsy(GetParam().id));
        const std::string before = model_in_use(t.element), after = model_file("2.rai");
        const Seen first = see(t, 0);
        ASSERT_TRUE(all_sleep());
        write_model(t, after);
        if (GetParam().again) {
            ASSERT_TRUE(all_sleep());
        }
        EXPECT_EQ(model_in_use(t.element), before) << "no frame has used the new one";
        const Seen second = see(t, 1);
        EXPECT_EQ(second.status, InferenceStatus::inferred);
        EXPECT_EQ(second.record->model_epoch, 1u);
        EXPECT_EQ(second.seq, 1u);
        EXPECT_TRUE(comes(t, "vartml-model-changed"));
        EXPECT_EQ(model_in_use(t.element), after);
        // The model of the swap is the one that comes back.
        ASSERT_TRUE(all_sleep());
        const Seen third = see(t, 2);
        EXPECT_EQ(third.record, second.record);
        EXPECT_EQ(model_in_use(t.element), after);
        EXPECT_EQ(t.stat("model-swaps"), 1u);
    }
    EXPECT_EQ(fake_model().live_runners, 0u);
}
const SwapCase swap_cases[] = {
    {"Alone", false, nullptr},
    {"AloneAndUnloadedAgain", true, nullptr},
    {"Shared", false, "idle swap"},
    {"SharedAndUnloadedAgain", true, "idle swap"},
};
INSTANTIATE_TEST_SUITE_P(Idle, InferIdleSwap, testing::ValuesIn(swap_cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(InferIdleSwaps, ASwapThatFailsAsleepLeavesTheModelThatWasInUse) {
    for (const char* id : {static_cast<const char*>(nullptr), "idle failed swap"}) {
        InferHarness t(drowsy(id));
        const Seen first = see(t, 0);
        ASSERT_TRUE(all_sleep());
        g_object_set(t.element, "model", "no/such.rai", nullptr);
        GstStructure* failed = wait_message(t.bus, "vartml-model-change-failed");
        ASSERT_NE(failed, nullptr);
        EXPECT_STREQ(gst_structure_get_string(failed, "error-id"), "infer-model-missing");
        gst_structure_free(failed);
        EXPECT_EQ(fake_model().live_runners, 0u);
        EXPECT_EQ(see(t, 1).record, first.record);
    }
}

TEST_F(InferIdleSwaps, ASwapThatNoFrameHasSeenIsDoneByTheNextStart) {
    InferHarness t(drowsy());
    ASSERT_TRUE(all_sleep());
    write_model(t, model_file("2.rai"));
    ASSERT_TRUE(all_sleep());
    gst_element_set_state(t.element, GST_STATE_NULL);
    EXPECT_EQ(model_in_use(t.element), model_file("2.rai"));
}

TEST_F(InferIdleSwaps, TheSidecarInUseComesBackWithItsModel) {
    const TempDir folder;
    const auto write = [&](const char* name, const char* labels) {
        std::string path = folder / name;
        FILE* file = std::fopen(path.c_str(), "w");
        std::fprintf(file, "[modelinfo]\nversion=1.0\nx-vartml-labels=%s\n", labels);
        std::fclose(file);
        return path;
    };
    const std::string first = write("first.modelinfo", "first;b;c;d");
    const std::string second = write("second.modelinfo", "second;b;c;d");
    GstElement* element = drowsy();
    g_object_set(element, "modelinfo-file", first.c_str(), nullptr);
    InferHarness t(element);
    EXPECT_EQ(see(t, 0).record->model_info.labels.at(0), "first");
    ASSERT_TRUE(all_sleep());
    // Written for the model that is written next: this one keeps its own.
    g_object_set(element, "modelinfo-file", second.c_str(), nullptr);
    EXPECT_EQ(see(t, 1).record->model_info.labels.at(0), "first");
    write_model(t, model_file("2.rai"));
    for (guint64 n = 2; n < 4; ++n) {
        ASSERT_TRUE(all_sleep());
        EXPECT_EQ(see(t, n).record->model_info.labels.at(0), "second");
    }
}

// ---- shared ----

TEST_F(InferIdleSwaps, TheLastOfThoseThatShareToSleepEndsTheModel) {
    InferHarness stays([] {
        GstElement* element = make_infer();
        g_object_set(element, "model-instance-id", "idle", nullptr);
        return element;
    }());
    {
        InferHarness a(drowsy("idle")), b(drowsy("idle"));
        ASSERT_TRUE(says_it_sleeps(a));
        ASSERT_TRUE(says_it_sleeps(b));
        EXPECT_EQ(fake_model().live_runners, 1u) << "one is awake";
        gst_element_set_state(stays.element, GST_STATE_NULL);
        EXPECT_EQ(fake_model().live_runners, 0u);
        EXPECT_EQ(see(a, 0).status, InferenceStatus::inferred);
        EXPECT_EQ(see(b, 0).status, InferenceStatus::inferred);
        EXPECT_LE(fake_model().live_runners, 1u);
    }
    EXPECT_EQ(fake_model().live_runners, 0u);
}

TEST_F(InferIdleSwaps, OneThatSleepsWakesWithTheModelThatAnotherBrought) {
    GstElement* element = make_infer();
    g_object_set(element, "model-instance-id", "idle", nullptr);
    InferHarness awake(element), sleeper(drowsy("idle"));
    ASSERT_TRUE(says_it_sleeps(sleeper));
    write_model(awake, model_file("2.rai"));
    const Seen after = see(sleeper, 0);
    EXPECT_EQ(after.status, InferenceStatus::inferred);
    EXPECT_EQ(after.record->model_epoch, 1u);
    EXPECT_TRUE(comes(sleeper, "vartml-model-changed"));
    EXPECT_EQ(model_in_use(sleeper.element), model_file("2.rai"));
    EXPECT_EQ(sleeper.messages(GST_MESSAGE_ERROR), 0u);
}

TEST_F(InferIdleSwaps, WhatOneSwappedIsTheModelOfAllThoughAllSleptMeanwhile) {
    InferHarness a(drowsy("idle")), b(drowsy("idle"));
    see(a, 0);
    see(b, 0);
    ASSERT_TRUE(all_sleep());
    write_model(a, model_file("2.rai"));
    ASSERT_TRUE(all_sleep());
    for (InferHarness* t : {&b, &a}) {
        EXPECT_EQ(see(*t, 1).record->model_epoch, 1u);
        EXPECT_EQ(model_in_use(t->element), model_file("2.rai"));
    }
    EXPECT_LE(fake_model().live_runners, 1u);
    // One that comes later must name the model in use, whether it is loaded or not.
    GstElement* later = drowsy("idle");
    g_object_set(later, "model", model_file("2.rai").c_str(), nullptr);
    InferHarness c(later);
    EXPECT_EQ(see(c, 0).status, InferenceStatus::inferred);
}

TEST_F(InferIdleSwaps, OneThatSleepsMaySwapTheModelOfThoseThatDoNot) {
    GstElement* element = make_infer();
    g_object_set(element, "model-instance-id", "idle", nullptr);
    InferHarness awake(element), sleeper(drowsy("idle"));
    ASSERT_TRUE(says_it_sleeps(sleeper));
    write_model(sleeper, model_file("2.rai"));
    for (InferHarness* t : {&awake, &sleeper}) {
        EXPECT_EQ(see(*t, 0).record->model_epoch, 1u);
        EXPECT_EQ(model_in_use(t->element), model_file("2.rai"));
    }
}

TEST_F(InferIdleSwaps, ManyThatShareSleepAndWakeAsTheyLike) {
    constexpr guint64 frames = 60;
    std::vector<std::unique_ptr<InferHarness>> all;
    for (int i = 0; i < 3; ++i) all.push_back(std::make_unique<InferHarness>(drowsy("many")));
    std::vector<std::thread> threads;
    for (auto& t : all) {
        threads.emplace_back([&t, &all] {
            for (guint64 n = 0; n < frames; ++n) {
                const Seen seen = see(*t, n);
                ASSERT_EQ(seen.seq, n);
                ASSERT_EQ(seen.status, InferenceStatus::inferred);
                if (n % 5 == 4) {
                    ASSERT_TRUE(says_it_sleeps(*t));
                }
                if (t == all[0] && n % 20 == 10)
                    g_object_set(t->element, "model",
                                 model_file(n == 30 ? ".rai" : "2.rai").c_str(), nullptr);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
