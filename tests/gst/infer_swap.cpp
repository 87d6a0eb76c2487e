// SPDX-License-Identifier: Apache-2.0
// A model that is written while frames flow: swapped between two frames, or kept where the new one
// cannot be had.
#include <gst/analytics/analytics.h>

#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "gst/support/decoder_query.h"
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::ErrorCode;
using vartml::gst::InferenceStatus;

class InferSwap : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }
};

// The next element message of that name; waits for it.
GstStructure* wait_message(GstBus* bus, const char* name) {
    while (true) {
        GstMessage* message = gst_bus_timed_pop_filtered(bus, 10 * GST_SECOND, GST_MESSAGE_ELEMENT);
        if (!message) return nullptr;
        const GstStructure* s = gst_message_get_structure(message);
        GstStructure* copy = gst_structure_has_name(s, name) ? gst_structure_copy(s) : nullptr;
        gst_message_unref(message);
        if (copy) return copy;
    }
}

std::string model_in_use(GstElement* element) {
    gchar* text = nullptr;
    g_object_get(element, "model", &text, nullptr);
    std::string copy = text ? text : "";
    g_free(text);
    return copy;
}

// Writes the property and waits until the model is loaded, not yet used.
void write_model(InferHarness& t, const std::string& file) {
    while (GstMessage* old = gst_bus_pop_filtered(t.bus, GST_MESSAGE_ELEMENT))
        gst_message_unref(old);
    g_object_set(t.element, "model", file.c_str(), nullptr);
    GstStructure* loaded = wait_message(t.bus, "vartml-model-loaded");
    ASSERT_NE(loaded, nullptr);
    gst_structure_free(loaded);
}

guint64 number(const GstStructure* s, const char* field) {
    guint64 wide = G_MAXUINT64;
    guint narrow;
    if (gst_structure_get_uint(s, field, &narrow)) return narrow;
    gst_structure_get_uint64(s, field, &wide);
    return wide;
}

unsigned epoch_of(GstBuffer* buffer) {
    return vartml::gst::get_inference(buffer, 0)->record->model_epoch;
}

TEST_F(InferSwap, HappensBetweenTwoFramesAndIsAnnouncedBeforeTheFirst) {
    InferHarness t;
    const std::string before = model_in_use(t.element), after = model_file("2.rai");
    for (guint64 n = 0; n < 3; ++n) {
        ASSERT_EQ(t.push(n), GST_FLOW_OK);
        t.pull_out();
    }
    write_model(t, after);
    EXPECT_EQ(model_in_use(t.element), before) << "no frame has used the new one";
    ASSERT_EQ(t.push(3), GST_FLOW_OK);
    GstBuffer* first = t.pull();
    EXPECT_EQ(epoch_of(first), 1u);
    gst_buffer_unref(first);
    GstStructure* changed = wait_message(t.bus, "vartml-model-changed");
    ASSERT_NE(changed, nullptr);
    EXPECT_EQ(number(changed, "first-seq"), 3u);
    EXPECT_EQ(number(changed, "first-pts"), 3 * GST_SECOND / 30);
    EXPECT_EQ(number(changed, "epoch"), 1u);
    gst_structure_free(changed);
    EXPECT_EQ(model_in_use(t.element), after);
    EXPECT_EQ(t.stat("model-swaps"), 1u);
}

TEST_F(InferSwap, FramesInFlightKeepTheirModel) {
    GstElement* element = make_infer();
    g_object_set(element, "async-depth", 4, nullptr);
    InferHarness t(element);
    fake_model().hold = true;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    write_model(t, model_file("2.rai"));
    ASSERT_EQ(t.push(2), GST_FLOW_OK);
    fake_model().release();
    for (guint64 n = 0; n < 3; ++n) {
        GstBuffer* buffer = t.pull();
        EXPECT_EQ(GST_BUFFER_OFFSET(buffer), n);
        EXPECT_EQ(epoch_of(buffer), n < 2 ? 0u : 1u);
        gst_buffer_unref(buffer);
    }
}

TEST_F(InferSwap, LosesRepeatsAndReordersNothingUnderLoad) {
    constexpr guint64 frames = 600;
    fake_model().shuffle_seed = 5;
    GstElement* element = make_infer();
    g_object_set(element, "async-depth", 4, nullptr);
    InferHarness t(element);
    std::thread upstream([&] {
        for (guint64 n = 0; n < frames; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    });
    unsigned last_epoch = 0, swaps = 0;
    for (guint64 n = 0; n < frames; ++n) {
        if (n % 100 == 50)
            g_object_set(t.element, "model", model_file(++swaps % 2 ? "2.rai" : ".rai").c_str(),
                         nullptr);
        GstBuffer* buffer = t.pull();
        ASSERT_EQ(GST_BUFFER_OFFSET(buffer), n);
        EXPECT_EQ(vartml::gst::get_inference(buffer, 0)->status, InferenceStatus::inferred);
        EXPECT_GE(epoch_of(buffer), last_epoch);
        last_epoch = epoch_of(buffer);
        gst_buffer_unref(buffer);
    }
    upstream.join();
    EXPECT_GE(last_epoch, 1u);
    EXPECT_EQ(t.stat("frames"), frames);
    EXPECT_EQ(t.stat("inferences"), frames);
}

TEST_F(InferSwap, TheOldRunnerEndsWhenItsLastFrameHasLeft) {
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    write_model(t, model_file("2.rai"));
    EXPECT_EQ(fake_model().live_runners, 2u);
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    t.pull_out();
    std::unique_lock lock(fake_model().mutex);
    EXPECT_TRUE(fake_model().changed.wait_for(lock, std::chrono::seconds(10),
                                              [] { return fake_model().live_runners == 1; }));
}

// As a sink does that shows the last frame for ever.
TEST_F(InferSwap, TensorsThatDownstreamHoldsStayValidAndKeepNoRunner) {
    InferHarness t;
    ASSERT_EQ(t.push(7), GST_FLOW_OK);
    GstBuffer* held = t.pull();
    write_model(t, model_file("2.rai"));
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    t.pull_out();
    {
        std::unique_lock lock(fake_model().mutex);
        EXPECT_TRUE(fake_model().changed.wait_for(lock, std::chrono::seconds(10),
                                                  [] { return fake_model().live_runners == 1; }));
    }
    float scores[4] = {};
    gst_buffer_extract(vartml::gst::get_inference(held, 0)->data[0], 0, scores, sizeof scores);
    EXPECT_EQ(scores[3], -1);
    gst_buffer_unref(held);
}

struct FailedCase {
    const char* name;
    const char* id;
    void (*prepare)();
};
class InferSwapFails : public testing::TestWithParam<FailedCase> {};
TEST_P(InferSwapFails, AndTheOldModelGoesOn) {
    reset_fake_model();
    {
        GstElement* element = make_infer();
        gst_util_set_object_arg(G_OBJECT(element), "on-fallback", "error");
        InferHarness t(element);
        const std::string before = model_in_use(t.element);
        ASSERT_EQ(t.push(0), GST_FLOW_OK);
        t.pull_out();
        t.messages(GST_MESSAGE_ELEMENT);
        GetParam().prepare();
        const bool missing = GetParam().id == std::string("infer-model-missing");
        const std::string wanted = missing ? "no/such.rai" : model_file("2.rai");
        g_object_set(t.element, "model", wanted.c_str(), nullptr);
        // A filtered pop throws away what comes before.
        GstMessage* warning =
            gst_bus_timed_pop_filtered(t.bus, 10 * GST_SECOND, GST_MESSAGE_WARNING);
        ASSERT_NE(warning, nullptr);
        gst_message_unref(warning);
        GstStructure* failed = wait_message(t.bus, "vartml-model-change-failed");
        ASSERT_NE(failed, nullptr);
        EXPECT_EQ(gst_structure_get_string(failed, "requested"), wanted);
        EXPECT_EQ(gst_structure_get_string(failed, "kept"), before);
        EXPECT_STREQ(gst_structure_get_string(failed, "error-id"), GetParam().id);
        gst_structure_free(failed);
        EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 0u);
        EXPECT_EQ(model_in_use(t.element), before);
        ASSERT_EQ(t.push(1), GST_FLOW_OK);
        GstBuffer* out = t.pull();
        EXPECT_EQ(epoch_of(out), 0u);
        gst_buffer_unref(out);
    }
    EXPECT_EQ(fake_model().live_runners, 0u);
}
const FailedCase failed_cases[] = {
    {"Missing", "infer-model-missing", [] {}},
    {"Corrupt", "infer-model-bad",
     [] { fake_model().open = vartml::Error{ErrorCode::bad_model, "entry 'a' is damaged"}; }},
    {"Refused", "infer-option",
     [] { fake_model().create = vartml::Error{ErrorCode::invalid_argument, "unknown option"}; }},
    {"Policy", "infer-fallback", [] { fake_model().cpu_operators = 3; }},
    {"Sidecar", "infer-sidecar",
     [] { fake_model().modelinfo = "[modelinfo]\nversion=1.0\nx-vartml-decodr=yolox\n"; }},
};
INSTANTIATE_TEST_SUITE_P(Swap, InferSwapFails, testing::ValuesIn(failed_cases),
                         [](const auto& info) { return std::string(info.param.name); });

void wait_compiling() {
    std::unique_lock lock(fake_model().mutex);
    fake_model().changed.wait(lock, [] { return fake_model().compiles > 0; });
}

TEST_F(InferSwap, ANewerWriteSupersedesOneThatIsStillLoading) {
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    fake_model().compile_waits = true;
    g_object_set(t.element, "model", model_file("slow.onnx").c_str(), nullptr);
    wait_compiling();
    write_model(t, model_file("2.rai"));
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    t.pull_out();
    EXPECT_EQ(model_in_use(t.element), model_file("2.rai"));
}

TEST_F(InferSwap, StoppingEndsAPendingSwap) {
    fake_model().compile_waits = true;
    InferHarness t;
    g_object_set(t.element, "model", model_file("slow.onnx").c_str(), nullptr);
    EXPECT_EQ(gst_element_set_state(t.element, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
    EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), 0u);
}

TEST_F(InferSwap, AModelThatIsLoadingWhenTheElementStopsIsTheNextStarts) {
    fake_model().compile_waits = true;
    const std::string sidecar = model_file("next.modelinfo");
    if (FILE* file = std::fopen(sidecar.c_str(), "w")) {
        std::fputs("[modelinfo]\nversion=1.0\nx-vartml-labels=next;b;c;d\n", file);
        std::fclose(file);
    }
    InferHarness t;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    g_object_set(t.element, "modelinfo-file", sidecar.c_str(), "model",
                 model_file("slow.onnx").c_str(), nullptr);
    wait_compiling();
    gst_element_set_state(t.element, GST_STATE_NULL);
    EXPECT_EQ(model_in_use(t.element), model_file("slow.onnx"));
    fake_model().compile_waits = false;
    ASSERT_NE(gst_element_set_state(t.element, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
    gst_harness_set_src_caps_str(t.h, gray_caps);
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    const auto& record = vartml::gst::get_inference(out, 0)->record;
    EXPECT_EQ(record->model_info.labels.at(0), "next");
    gst_buffer_unref(out);
}

// As when it is swapped in: the labels of the model before are not those of this one.
TEST_F(InferSwap, AModelThatIsLoadingWhenTheElementStopsComesWithItsOwnSidecar) {
    for (const bool again : {false, true}) {  // the file is written once more before the start
        fake_model().compile_waits = true;
        const TempDir folder;
        const std::string first = folder / "first.modelinfo", slow = folder / "slow.onnx";
        for (const auto& [path, label] :
             {std::pair(first, "first"), {slow + ".modelinfo", "own"}, {slow, "a model"}})
            if (FILE* file = std::fopen(path.c_str(), "w")) {
                std::fprintf(file, "[modelinfo]\nversion=1.0\nx-vartml-labels=%s;b;c;d\n", label);
                std::fclose(file);
            }
        GstElement* element = make_infer();
        g_object_set(element, "modelinfo-file", first.c_str(), nullptr);
        InferHarness t(element);
        ASSERT_EQ(t.push(0), GST_FLOW_OK);
        t.pull_out();
        g_object_set(element, "model", slow.c_str(), nullptr);
        wait_compiling();
        gst_element_set_state(element, GST_STATE_NULL);
        EXPECT_EQ(model_in_use(element), slow);
        if (again) g_object_set(element, "modelinfo-file", first.c_str(), nullptr);
        fake_model().compile_waits = false;
        ASSERT_NE(gst_element_set_state(element, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
        gst_harness_set_src_caps_str(t.h, gray_caps);
        ASSERT_EQ(t.push(1), GST_FLOW_OK);
        GstBuffer* out = t.pull();
        const auto& record = vartml::gst::get_inference(out, 0)->record;
        EXPECT_EQ(record->model_info.labels.at(0), again ? "first" : "own");
        gst_buffer_unref(out);
        gchar* file = nullptr;
        g_object_get(element, "modelinfo-file", &file, nullptr);
        EXPECT_EQ(std::string(file ? file : ""), again ? first : "");
        g_free(file);
    }
}

// A second model is written while the first start of the one before still loads it.
TEST_F(InferSwap, AModelThatIsLoadingAtTheSecondStopComesWithItsOwnSidecarToo) {
    for (const bool played : {true, false}) {
        const TempDir folder;
        const std::string first = folder / "first.modelinfo", slow = folder / "slow.onnx",
                          third = folder / "third.onnx";
        for (const auto& [path, label] : {std::pair(first, "first"),
                                          {third + ".modelinfo", "third"},
                                          {slow, "a model"},
                                          {third, "a model"}})
            if (FILE* file = std::fopen(path.c_str(), "w")) {
                std::fprintf(file, "[modelinfo]\nversion=1.0\nx-vartml-labels=%s;b;c;d\n", label);
                std::fclose(file);
            }
        fake_model().compile_waits = true;
        GstElement* element = make_infer();
        g_object_set(element, "modelinfo-file", first.c_str(), nullptr);
        std::optional<InferHarness> t;
        if (played) {
            t.emplace(element);
            ASSERT_EQ(t->push(0), GST_FLOW_OK);
            t->pull_out();
        }
        g_object_set(element, "model", slow.c_str(), nullptr);
        if (played) {
            wait_compiling();
            gst_element_set_state(element, GST_STATE_NULL);
        }
        ASSERT_NE(gst_element_set_state(element, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
        wait_compiling();
        g_object_set(element, "model", third.c_str(), nullptr);
        gst_element_set_state(element, GST_STATE_NULL);
        EXPECT_EQ(model_in_use(element), third);
        fake_model().compile_waits = false;
        if (played) {
            ASSERT_NE(gst_element_set_state(element, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
            gst_harness_set_src_caps_str(t->h, gray_caps);
        } else {
            t.emplace(element);
        }
        ASSERT_EQ(t->push(1), GST_FLOW_OK);
        GstBuffer* out = t->pull();
        EXPECT_EQ(vartml::gst::get_inference(out, 0)->record->model_info.labels.at(0), "third");
        gst_buffer_unref(out);
    }
}

TEST_F(InferSwap, AModelThatNobodyElseSharesIsTheNextStartsAllTheSame) {
    fake_model().compile_waits = true;
    GstElement* element = make_infer();
    g_object_set(element, "model-instance-id", "alone", nullptr);
    InferHarness t(element);
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    g_object_set(element, "model", model_file("slow.onnx").c_str(), nullptr);
    wait_compiling();
    gst_element_set_state(element, GST_STATE_NULL);
    EXPECT_EQ(model_in_use(element), model_file("slow.onnx"));
    fake_model().compile_waits = false;
    ASSERT_NE(gst_element_set_state(element, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
    gst_harness_set_src_caps_str(t.h, gray_caps);
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    EXPECT_NE(vartml::gst::get_inference(out, 0), nullptr) << "it was loaded";
    gst_buffer_unref(out);
}

// The others would refuse to share another model with it.
TEST_F(InferSwap, ASharedModelThatIsLoadingWhenTheElementStopsIsGivenUpAloud) {
    fake_model().compile_waits = true;
    const std::string sidecar = model_file("shared.modelinfo");
    if (FILE* file = std::fopen(sidecar.c_str(), "w")) {
        std::fputs("[modelinfo]\nversion=1.0\n", file);
        std::fclose(file);
    }
    GstElement *element = make_infer(), *other = make_infer();
    for (GstElement* one : {element, other})
        g_object_set(one, "model-instance-id", "stopped", nullptr);
    InferHarness t(element), sharing(other);
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    g_object_set(element, "modelinfo-file", sidecar.c_str(), "model",
                 model_file("slow.onnx").c_str(), nullptr);
    wait_compiling();
    gst_element_set_state(element, GST_STATE_NULL);
    EXPECT_EQ(model_in_use(element), model_file());
    gchar* file = nullptr;
    g_object_get(element, "modelinfo-file", &file, nullptr);
    EXPECT_STREQ(file ? file : "", "") << "it came with the model that is given up";
    g_free(file);
    GstStructure* failed = wait_message(t.bus, "vartml-model-change-failed");
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(gst_structure_get_string(failed, "requested"), model_file("slow.onnx"));
    EXPECT_EQ(gst_structure_get_string(failed, "kept"), model_file());
    gst_structure_free(failed);
    ASSERT_NE(gst_element_set_state(element, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
}

// They start again together, whoever stops first.
TEST_F(InferSwap, ASharedModelThatIsLoadingIsGivenUpByTheLastToStopToo) {
    fake_model().compile_waits = true;
    GstElement *element = make_infer(), *other = make_infer();
    for (GstElement* one : {element, other})
        g_object_set(one, "model-instance-id", "stopped last", nullptr);
    InferHarness t(element), sharing(other);
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    g_object_set(element, "model", model_file("slow.onnx").c_str(), nullptr);
    wait_compiling();
    gst_element_set_state(other, GST_STATE_NULL);
    gst_element_set_state(element, GST_STATE_NULL);
    EXPECT_EQ(model_in_use(element), model_file());
    for (GstElement* one : {element, other})
        ASSERT_NE(gst_element_set_state(one, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
}

TEST_F(InferSwap, WhatIsWrittenAfterTheModelFailedToLoadIsTheNextStarts) {
    fake_model().compile = vartml::Error{ErrorCode::bad_model, "no model at all"};
    for (const char* id : {static_cast<const char*>(nullptr), "failed"}) {
        GstElement* element = make_infer();
        g_object_set(element, "model", model_file("bad.onnx").c_str(), "model-instance-id", id,
                     nullptr);
        InferHarness t(element, nullptr);
        GstMessage* error = gst_bus_timed_pop_filtered(t.bus, 10 * GST_SECOND, GST_MESSAGE_ERROR);
        ASSERT_NE(error, nullptr);
        gst_message_unref(error);
        g_object_set(element, "model", model_file().c_str(), nullptr);
        gst_element_set_state(element, GST_STATE_NULL);
        EXPECT_EQ(model_in_use(element), model_file());
        ASSERT_NE(gst_element_set_state(element, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
        gst_harness_set_src_caps_str(t.h, gray_caps);
        ASSERT_EQ(t.push(0), GST_FLOW_OK);
        EXPECT_EQ(t.pull_out().status, InferenceStatus::inferred);
        EXPECT_EQ(t.messages(GST_MESSAGE_ERROR), 0u);
    }
}

TEST_F(InferSwap, StoppingWithASwapBehindFramesInFlightLeavesAnElementThatStartsAgain) {
    InferHarness t;
    fake_model().hold = true;
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    write_model(t, model_file("2.rai"));
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    std::thread release([] { fake_model().release(); });
    gst_element_set_state(t.element, GST_STATE_NULL);
    release.join();
    g_object_set(t.element, "model", model_file(".onnx").c_str(), nullptr);  // needs its thread
    ASSERT_NE(gst_element_set_state(t.element, GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
    gst_harness_set_src_caps_str(t.h, gray_caps);
    ASSERT_EQ(t.push(2), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    while (GST_BUFFER_OFFSET(out) < 2) {
        gst_buffer_unref(out);
        out = t.pull();
        ASSERT_NE(out, nullptr);
    }
    EXPECT_EQ(vartml::gst::get_inference(out, 0)->status, InferenceStatus::inferred);
    EXPECT_EQ(epoch_of(out), 0u);
    gst_buffer_unref(out);
}

TEST_F(InferSwap, TheNewModelHasTheSidecarBesideIt) {
    const auto write = [](const std::string& model, const char* label) {
        FILE* file = std::fopen((model + ".modelinfo").c_str(), "w");
        std::fprintf(file, "[modelinfo]\nversion=1.0\nx-vartml-labels=%s;other\n", label);
        std::fclose(file);
    };
    const std::string a = model_file("a.rai"), b = model_file("b.rai");
    write(a, "apple");
    write(b, "boat");
    GstElement* element = make_infer();
    g_object_set(element, "model", a.c_str(), nullptr);
    InferHarness t(element);
    for (const char* label : {"apple", "boat"}) {
        if (label == std::string("boat")) write_model(t, b);
        ASSERT_EQ(t.push(0), GST_FLOW_OK);
        GstBuffer* out = t.pull();
        const auto& labels = vartml::gst::get_inference(out, 0)->record->model_info.labels;
        ASSERT_EQ(labels.size(), 2u);
        EXPECT_EQ(labels[0], label);
        gst_buffer_unref(out);
    }
}

struct SidecarCase {
    const char* name;
    const char* written;     // to modelinfo-file before `model`, or nullptr
    const char* own;         // what the new model brings, or nullptr
    const char* label;       // the first on frames afterwards
    const char* failed;      // error id, or nullptr
    const char* entry = "";  // of both models, as the compiler writes it by itself
};
class InferSwapSidecar : public testing::TestWithParam<SidecarCase> {};
TEST_P(InferSwapSidecar, GoesWithItsModel) {
    const SidecarCase& c = GetParam();
    reset_fake_model();
    fake_model().modelinfo = c.entry;
    {
        const TempDir folder;
        const auto write = [&](const char* name, const char* text) {
            std::string path = folder / name;
            FILE* file = std::fopen(path.c_str(), "w");
            std::fprintf(file, "[modelinfo]\nversion=1.0\n%s", text);
            std::fclose(file);
            return path;
        };
        const std::string first = write("first.modelinfo", "x-vartml-labels=first;b;c;d\n");
        write("second.modelinfo", "x-vartml-labels=second;b;c;d\nx-vartml-decoder=classify\n");
        write("wrong.modelinfo", "x-vartml-labels=wrong\nx-vartml-decoder=yolox\n");
        write("broken.modelinfo", "x-vartml-decodr=yolox\n");
        const std::string model = folder / "new.rai";
        if (FILE* file = std::fopen(model.c_str(), "w")) std::fclose(file);
        if (c.own) write("new.rai.modelinfo", c.own);
        GstElement* element = make_infer();
        g_object_set(element, "modelinfo-file", first.c_str(), nullptr);
        InferHarness t(element);
        ASSERT_EQ(t.push(0), GST_FLOW_OK);
        t.pull_out();
        const std::string written = c.written ? folder / c.written : std::string();
        if (c.written) g_object_set(element, "modelinfo-file", written.c_str(), nullptr);
        if (c.failed) {
            g_object_set(element, "model", model.c_str(), nullptr);
            GstStructure* failed = wait_message(t.bus, "vartml-model-change-failed");
            ASSERT_NE(failed, nullptr);
            EXPECT_STREQ(gst_structure_get_string(failed, "error-id"), c.failed);
            gst_structure_free(failed);
        } else {
            write_model(t, model);
        }
        ASSERT_EQ(t.push(1), GST_FLOW_OK);
        GstBuffer* out = t.pull();
        EXPECT_EQ(epoch_of(out), c.failed ? 0u : 1u);
        const auto& labels = vartml::gst::get_inference(out, 0)->record->model_info.labels;
        EXPECT_EQ(labels.empty() ? "none" : labels[0], c.label);
        gst_buffer_unref(out);
        gchar* file = nullptr;
        g_object_get(element, "modelinfo-file", &file, nullptr);
        const std::string want = c.failed ? first : c.written ? written : c.own ? "" : first;
        EXPECT_EQ(std::string(file ? file : ""), want);
        g_free(file);
    }
    EXPECT_EQ(fake_model().live_runners, 0u);
}
constexpr const char* own = "x-vartml-labels=own;b;c;d\n";
const SidecarCase sidecar_cases[] = {
    {"OfItsOwn", nullptr, own, "own", nullptr},
    {"OfItsOwnThatSaysLittle", nullptr, "x-vartml-num-classes=4\n", "none", nullptr},
    {"OrTheOneInUse", nullptr, nullptr, "first", nullptr},
    {"OrThatWhereTheCompilerSawMore", nullptr, nullptr, "first", nullptr,
     "[modelinfo]\nversion=1.0\nx-vartml-num-classes=4\n"},
    {"WrittenBeforeIt", "second.modelinfo", own, "second", nullptr},
    {"ThatDoesNotFitItsHead", "wrong.modelinfo", nullptr, "first", "infer-sidecar"},
    {"ThatIsBroken", "broken.modelinfo", nullptr, "first", "infer-sidecar"},
};
INSTANTIATE_TEST_SUITE_P(Swap, InferSwapSidecar, testing::ValuesIn(sidecar_cases),
                         [](const auto& info) { return std::string(info.param.name); });

// One stops while the other swaps the model of both.
TEST_F(InferSwap, UsersMayComeAndGoWhileAModelIsSwapped) {
    const auto make = [](const char* file) {
        GstElement* element = make_infer();
        g_object_set(element, "model-instance-id", "coming and going", "model", file, nullptr);
        return element;
    };
    InferHarness stays(make(model_file().c_str()));
    for (int round = 0; round < 20; ++round) {
        const std::string now = model_in_use(stays.element);
        auto goes = std::make_unique<InferHarness>(make(now.c_str()));
        ASSERT_EQ(goes->push(0), GST_FLOW_OK);
        goes->pull_out();
        std::thread stop([&] { goes.reset(); });
        write_model(stays, model_file(round % 2 ? ".rai" : "2.rai"));
        stop.join();
        ASSERT_EQ(stays.push(guint64(round)), GST_FLOW_OK);
        EXPECT_EQ(stays.pull_out().status, InferenceStatus::inferred);
        EXPECT_NE(model_in_use(stays.element), now);
    }
}

TEST_F(InferSwap, ASharedModelIsSwappedForAll) {
    const auto make = [] {
        GstElement* element = make_infer();
        g_object_set(element, "model-instance-id", "shared", nullptr);
        return element;
    };
    InferHarness a(make()), b(make());
    write_model(a, model_file("2.rai"));
    for (InferHarness* t : {&a, &b}) {
        ASSERT_EQ(t->push(0), GST_FLOW_OK);
        GstBuffer* buffer = t->pull();
        EXPECT_EQ(epoch_of(buffer), 1u);
        gst_buffer_unref(buffer);
        EXPECT_EQ(model_in_use(t->element), model_file("2.rai"));
    }
    // One that comes later must name the model in use; one that was stopped meanwhile is told.
    GstElement* later = GST_ELEMENT(gst_object_ref_sink(make()));
    GstBus* bus = gst_bus_new();
    gst_element_set_bus(later, bus);
    EXPECT_EQ(gst_element_set_state(later, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
    ASSERT_NE(message, nullptr);
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    const std::string has = "has model '" + model_file("2.rai") + "' now";
    EXPECT_NE(std::string(error->message).find(has), std::string::npos) << error->message;
    g_error_free(error);
    gst_message_unref(message);
    gst_element_set_state(later, GST_STATE_NULL);
    gst_element_set_bus(later, nullptr);
    gst_object_unref(bus);
    g_object_set(later, "model", model_file("2.rai").c_str(), nullptr);
    InferHarness c(later);
    ASSERT_EQ(c.push(0), GST_FLOW_OK);
    EXPECT_EQ(c.pull_out().status, InferenceStatus::inferred);
}

// The next model is being made, which asks what is downstream, while a frame takes over the one
// before it.
TEST_F(InferSwap, EachModelHasAnEpochOfItsOwn) {
    InferHarness t;
    std::mutex mutex;
    std::condition_variable changed;
    enum { passes, armed, held } state = passes;
    auto hold = [&](GstQuery* query) {
        std::unique_lock lock(mutex);
        if (state != armed || !vartml::gst::is_decoder_query(query)) return;
        state = held;
        changed.notify_all();
        changed.wait(lock, [&] { return state == passes; });
    };
    using Hold = decltype(hold);
    gst_pad_add_probe(
        t.h->sinkpad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM,
        [](GstPad*, GstPadProbeInfo* info, gpointer data) {
            (*static_cast<Hold*>(data))(GST_PAD_PROBE_INFO_QUERY(info));
            return GST_PAD_PROBE_OK;
        },
        &hold, nullptr);
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    write_model(t, model_file("2.rai"));
    {
        std::unique_lock lock(mutex);
        state = armed;
        g_object_set(t.element, "model", model_file(".rai").c_str(), nullptr);
        ASSERT_TRUE(
            changed.wait_for(lock, std::chrono::seconds(10), [&] { return state == held; }));
    }
    ASSERT_EQ(t.push(1), GST_FLOW_OK);
    GstBuffer* second = t.pull();
    EXPECT_EQ(epoch_of(second), 1u);
    gst_buffer_unref(second);
    {
        const std::lock_guard lock(mutex);
        state = passes;
        changed.notify_all();
    }
    GstStructure* const loaded = wait_message(t.bus, "vartml-model-loaded");
    ASSERT_NE(loaded, nullptr);
    gst_structure_free(loaded);
    ASSERT_EQ(t.push(2), GST_FLOW_OK);
    GstBuffer* third = t.pull();
    EXPECT_EQ(epoch_of(third), 2u);
    gst_buffer_unref(third);
}

TEST_F(InferSwap, AfterAStopTheModelInUseIsLoadedAgain) {
    InferHarness t;
    write_model(t, model_file("2.rai"));
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    t.pull_out();
    gst_element_set_state(t.element, GST_STATE_NULL);
    EXPECT_EQ(model_in_use(t.element), model_file("2.rai"));
    g_object_set(t.element, "model", model_file("3.rai").c_str(), nullptr);
    EXPECT_EQ(model_in_use(t.element), model_file("3.rai")) << "not running: taken as it is";
}

}  // namespace
