// SPDX-License-Identifier: Apache-2.0
#include "gst/gstvartmltensordec.h"
#include "gst/support/tensor_groups.h"
#include "tests/gst/decode_harness.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace decode_test;

TEST_F(Decode, TurnsTensorsIntoBoxesThatUpstreamReads) {
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* in = frame_with(inference_of(record_of({tensor})), {data});
    add_tensor_meta(in, {tensor}, {data});
    GST_BUFFER_PTS(in) = 5 * GST_SECOND;
    GST_BUFFER_DTS(in) = 4 * GST_SECOND;
    GST_BUFFER_DURATION(in) = 7;
    GST_BUFFER_OFFSET(in) = 11;
    GST_BUFFER_FLAG_SET(in, GST_BUFFER_FLAG_MARKER | GST_BUFFER_FLAG_GAP);
    const GstMemory* memory = gst_buffer_peek_memory(in, 0);

    GstBuffer* out = run(in);
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(boxes_of(out), two_boxes_in_frame);
    EXPECT_EQ(GST_BUFFER_PTS(out), 5 * GST_SECOND);
    EXPECT_EQ(GST_BUFFER_DTS(out), 4 * GST_SECOND);
    EXPECT_EQ(GST_BUFFER_DURATION(out), 7u);
    EXPECT_EQ(GST_BUFFER_OFFSET(out), 11u);
    EXPECT_TRUE(GST_BUFFER_FLAG_IS_SET(out, GST_BUFFER_FLAG_MARKER));
    EXPECT_TRUE(GST_BUFFER_FLAG_IS_SET(out, GST_BUFFER_FLAG_GAP));
    EXPECT_EQ(gst_buffer_peek_memory(out, 0), memory);

    // The tensors are gone at once, the record stays, and every box leads to it.
    EXPECT_EQ(tensor_metas(out), 0u);
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data), 1);
    GstAnalyticsMtd inference;
    const Inference* record = get_inference(out, 0, &inference);
    ASSERT_NE(record, nullptr);
    EXPECT_EQ(record->status, InferenceStatus::inferred);
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out);
    gpointer state = nullptr;
    GstAnalyticsMtd od;
    while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(),
                                               &od)) {
        EXPECT_EQ(gst_analytics_relation_meta_get_relation(meta, od.id, inference.id),
                  GST_ANALYTICS_REL_TYPE_RELATE_TO);
    }
    gst_buffer_unref(out);
    gst_buffer_unref(data);
    EXPECT_EQ(stat("frames"), 1u);
    EXPECT_EQ(stat("decoded"), 1u);
    EXPECT_EQ(stat("passed"), 0u);
    EXPECT_EQ(stat("boxes"), 2u);
}

TEST_F(Decode, ReadsTheNpusView) {
    open();
    for (const DataType type : {DataType::float32, DataType::bf16, DataType::int16}) {
        RefTensor t = two_boxes;
        const StoredTensor hw = stored_hw(t, "out", type, {1 / 256., 0});
        const auto boxes = decode(hw);
        ASSERT_EQ(boxes.size(), 2u);
        const StoredTensor cpu = stored_cpu(t, "out");  // of the dequantised values
        EXPECT_EQ(boxes, decode(cpu));
    }
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "");
}

TEST_F(Decode, SaysWhichDecoderItChose) {
    open();
    decode(stored_cpu(two_boxes, "out"));
    const std::string message = pop(GST_MESSAGE_ELEMENT);
    for (const char* part : {"vartml-decoder-selected", "decoder=(string)yolo-v8",
                             "reason=(string)shapes", "classes=(uint)2", "labels=(uint)2",
                             "model=(string)tiny", "score-threshold=(double)0.25"}) {
        EXPECT_NE(message.find(part), std::string::npos) << message;
    }
    EXPECT_EQ(pop(GST_MESSAGE_ELEMENT), "");
}

TEST_F(Decode, FollowsTheModelOfEachFrame) {
    open();
    const StoredTensor one = stored_cpu(two_boxes, "out");
    const StoredTensor other = stored_cpu(head(1, {{32, 32, 64, 64, 0.5f}}), "out");
    const auto first = record_of({one}), second = record_of({other});
    second->model_info.labels = {"whale"};
    for (int i = 0; i < 6; ++i) {
        const bool even = i % 2 == 0;
        GstBuffer* data = data_buffer(even ? one : other);
        GstBuffer* out = run(frame_with(inference_of(even ? first : second), {data}));
        ASSERT_NE(out, nullptr);
        EXPECT_EQ(boxes_of(out),
                  even ? two_boxes_in_frame : (std::vector<Box>{{0, 0, 128, 96, 0.5f, "whale"}}));
        gst_buffer_unref(out);
        gst_buffer_unref(data);
    }
    EXPECT_NE(pop(GST_MESSAGE_ELEMENT), "");
    EXPECT_NE(pop(GST_MESSAGE_ELEMENT), "");
    EXPECT_EQ(pop(GST_MESSAGE_ELEMENT), "");  // one per model
}

TEST_F(Decode, DecodesAResultOnceHoweverManyFramesCarryIt) {
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    auto record = record_of({tensor});
    GstBuffer* data = data_buffer(tensor);
    Inference inference = inference_of(record);
    for (int n = 0; n < 6; ++n) {
        inference.status = n % 3 ? InferenceStatus::carried : InferenceStatus::inferred;
        inference.result_id = guint64(n / 3) + 1;
        GstBuffer* out = run(frame_with(inference, {data}));
        ASSERT_NE(out, nullptr);
        EXPECT_EQ(boxes_of(out), two_boxes_in_frame) << n;
        gst_buffer_unref(out);
    }
    EXPECT_EQ(stat("decoded"), 6u);
    EXPECT_EQ(stat("reused"), 4u);
    inference.to_frame.a = 1;  // elsewhere: scaled meanwhile
    gst_buffer_unref(run(frame_with(inference, {data})));
    set("score-threshold", 0.8);
    gst_buffer_unref(run(frame_with(inference, {data})));
    EXPECT_EQ(stat("reused"), 4u);
    gst_buffer_unref(data);
}

// The model before has two classes, the one after three, and the label file goes from one to the
// other at no time that suits both.
TEST_F(Decode, ASwappedModelWithOtherClassesEndsNothing) {
    const TempDir folder;
    const std::string two = folder / "two", three = folder / "three";
    std::ofstream(two) << "a\nb\n";
    std::ofstream(three) << "p\nq\nr\n";
    const StoredTensor before = stored_cpu(two_boxes, "out");
    const StoredTensor after = stored_cpu(head(3, {{20, 20, 10, 8, 0, 0, 0.9f}}), "out");
    auto first = record_of({before}), second = record_of({after});
    second->model_epoch = 1;
    first->model_info.decoder = second->model_info.decoder = "yolo-v8";
    second->model_info.labels = {"x", "y", "z"};
    GstBuffer* data[] = {data_buffer(before), data_buffer(after)};
    const auto label = [&](unsigned model) {
        GstBuffer* out = run(frame_with(inference_of(model ? second : first), {data[model]}));
        EXPECT_NE(out, nullptr);
        if (!out) return std::string();
        std::string found = boxes_of(out).at(0).label;
        gst_buffer_unref(out);
        return found;
    };
    set("label-file", two.c_str());
    open();
    EXPECT_EQ(label(0), "a");
    EXPECT_EQ(label(1), "z") << "the file's two names are not those of three classes";
    EXPECT_EQ(pop(GST_MESSAGE_WARNING).substr(0, 11), "dec-classes");
    set("label-file", three.c_str());
    EXPECT_EQ(label(0), "a") << "a frame of the model before";
    EXPECT_EQ(label(1), "r");
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "");
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "");
    for (GstBuffer* one : data) gst_buffer_unref(one);
}

TEST_F(Decode, KeepsTensorsWhenAsked) {
    set("keep-tensors", TRUE);
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* in = frame_with(inference_of(record_of({tensor})), {data});
    add_tensor_meta(in, {tensor}, {data});
    GstBuffer* out = run(in);
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(boxes_of(out).size(), 2u);  // decoded once, though it is there twice
    EXPECT_EQ(tensor_metas(out), 1u);
    EXPECT_EQ(get_inference(out, 0)->data.size(), 1u);
    gst_buffer_unref(out);
    gst_buffer_unref(data);
}

// They would be taken for those of another element, whose inference nobody knows.
TEST_F(Decode, TakesOffWhatADecoderBeforeHasKept) {
    open();
    const StoredTensor first = stored_cpu(two_boxes, "first"),
                       second = stored_cpu(two_boxes, "out");
    GstBuffer* data[] = {data_buffer(first), data_buffer(second)};
    Inference kept = inference_of(record_of({first}));
    kept.decoded = true;
    GstBuffer* in = frame_with(kept, {data[0]});
    add_tensor_meta(in, {first}, {data[0]});
    Inference fresh = inference_of(record_of({second}));
    fresh.data = {data[1]};
    ASSERT_TRUE(add_inference(in, fresh, 8));
    add_tensor_meta(in, {second}, {data[1]});
    GstBuffer* out = run(in);
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(boxes_of(out).size(), 2u);
    EXPECT_EQ(tensor_metas(out), 0u);
    gst_buffer_unref(out);
    for (GstBuffer* one : data) gst_buffer_unref(one);
}

// Of two models in a row, each with a decoder, the second decoder leaves the first one's results.
TEST_F(Decode, LeavesWhatADecoderBeforeHasDecoded) {
    set("keep-tensors", TRUE);
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* first = run(frame_with(inference_of(record_of({tensor})), {data}));
    ASSERT_NE(first, nullptr);
    ASSERT_EQ(boxes_of(first).size(), 2u);
    const auto decoded_again = [&](GstBuffer* in) {
        GstBuffer* out = run(in);
        EXPECT_NE(out, nullptr);
        const size_t count = boxes_of(out).size();
        gst_buffer_unref(out);
        return count;
    };
    EXPECT_EQ(decoded_again(gst_buffer_copy(first)), 4u) << "another decoder of the same model";
    // The second model, with a result and without one.
    for (const bool skipped : {false, true}) {
        GstBuffer* in = gst_buffer_copy(first);
        Inference second = inference_of(record_of({tensor}));
        if (skipped)
            second.status = InferenceStatus::skipped_interval;
        else
            second.data = {data};
        ASSERT_TRUE(add_inference(in, second, 100));
        EXPECT_EQ(decoded_again(in), skipped ? 2u : 4u);
    }
    gst_buffer_unref(first);
    gst_buffer_unref(data);
}

TEST_F(Decode, PassesFramesWithoutInference) {
    open();
    Inference skipped = inference_of(record_of({stored_cpu(two_boxes, "out")}));
    for (const InferenceStatus status :
         {InferenceStatus::skipped_interval, InferenceStatus::skipped_late,
          InferenceStatus::skipped_flag, InferenceStatus::failed}) {
        skipped.status = status;
        GstBuffer* out = run(frame_with(skipped, {}));
        ASSERT_NE(out, nullptr);
        EXPECT_TRUE(boxes_of(out).empty());
        EXPECT_EQ(get_inference(out, 0)->status, status);
        gst_buffer_unref(out);
    }
    EXPECT_EQ(stat("frames"), 4u);
    EXPECT_EQ(stat("passed"), 4u);
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "");
}

// Tensors of a camera that come out of a file; a critical message would end the test.
TEST_F(Decode, TakesFramesWhoseSegmentIsInBytes) {
    open("application/x-vartml-tensor,data-type=bf16,layout=HCWNC4,channels=3,width=4,height=4");
    GstSegment bytes;
    gst_segment_init(&bytes, GST_FORMAT_BYTES);
    ASSERT_TRUE(gst_harness_push_event(harness_, gst_event_new_segment(&bytes)));
    GstBuffer* out = run(frame());
    ASSERT_NE(out, nullptr);
    gst_buffer_unref(out);
}

TEST_F(Decode, PassesWhatIsNoVideo) {
    open("application/x-whatever");
    GstBuffer* out = run(frame());
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(gst_buffer_get_analytics_relation_meta(out), nullptr);
    gst_buffer_unref(out);
}

TEST_F(Decode, ReadsUpstreamsTensorsInPixelsOfTheCaps) {
    open("video/x-raw,format=GRAY8,width=64,height=64,framerate=30/1");
    const StoredTensor tensor = stored_cpu(two_boxes, "yolo-v8-out");
    GstBuffer* data = data_buffer(tensor);
    for (const bool shared : {false, true}) {
        GstBuffer* in = frame();
        add_tensor_meta(in, {tensor}, {data});
        if (shared) gst_buffer_ref(in);  // as behind a tee: the element works on a copy
        GstBuffer* out = run(in);
        ASSERT_NE(out, nullptr);
        EXPECT_EQ(boxes_of(out), (std::vector<Box>{{15, 16, 10, 8, 0.9f, "class-0"},
                                                   {46, 32, 8, 16, 0.7f, "class-1"}}));
        EXPECT_EQ(tensor_metas(out), 0u);
        gst_buffer_unref(out);
        if (shared) {
            EXPECT_EQ(tensor_metas(in), 1u);  // the other branch keeps its own
            EXPECT_TRUE(boxes_of(in).empty());
            gst_buffer_unref(in);
        }
    }
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data), 1);
    gst_buffer_unref(data);
    EXPECT_NE(pop(GST_MESSAGE_ELEMENT).find("reason=(string)ids"), std::string::npos);
}

// As its inference elements of 1.28 call it, which attach what the model wrote.
TEST_F(Decode, ReadsWhatUpstreamCallsColumnMajor) {
    struct Row {
        const char* id;
        bool read;
    };
    for (const Row& row : {Row{"yolo-v8-out", true}, Row{"mine", false}}) {
        open("video/x-raw,format=GRAY8,width=64,height=64,framerate=30/1");
        const StoredTensor tensor = stored_cpu(two_boxes, row.id);
        GstBuffer* data = data_buffer(tensor);
        GstBuffer* in = frame();
        add_tensor_meta(in, {tensor}, {data});
        for_each_tensor_meta(in, [](GstTensorMeta* meta) {
            meta->tensors[0]->dims_order = GST_TENSOR_DIM_ORDER_COL_MAJOR;
            return true;
        });
        GstBuffer* out = run(in);
        std::string text;
        if (row.read) {
            ASSERT_NE(out, nullptr);
            EXPECT_EQ(boxes_of(out), (std::vector<Box>{{15, 16, 10, 8, 0.9f, "class-0"},
                                                       {46, 32, 8, 16, 0.7f, "class-1"}}));
            gst_buffer_unref(out);
        } else {
            EXPECT_EQ(out, nullptr);
            EXPECT_NE(pop(GST_MESSAGE_ERROR, &text).find("dec-unknown"), std::string::npos);
            EXPECT_NE(text.find("'mine' is column-major"), std::string::npos) << text;
        }
        gst_buffer_unref(data);
        TearDown();
        harness_ = nullptr, element_ = nullptr, bus_ = nullptr;
    }
}

constexpr char caps_of_two_groups[] =
    "video/x-raw,format=GRAY8,width=64,height=64,framerate=30/1,tensors=(structure)[tensorgroups,"
    "vartml-out=(/uniquelist){(GstCaps)[tensor/strided,tensor-id=ours,type=float32]},"
    "theirs-out=(/uniquelist){(GstCaps)[tensor/strided,tensor-id=theirs,type=float32]}]";

std::string groups_behind(GstHarness* harness) {
    GstCaps* caps = gst_pad_get_current_caps(harness->sinkpad);
    const std::string names =
        gst_caps_is_any(caps) ? "" : group_names(gst_caps_get_structure(caps, 0));
    gst_caps_unref(caps);
    return names;
}

TEST_F(Decode, TensorsAreInCapsAsLongAsOnTheFrame) {
    if (!has_tensor_groups) GTEST_SKIP() << "tensors in caps come with GStreamer 1.28";
    open(caps_of_two_groups);
    const auto run_one = [&] {
        GstBuffer* out = run(frame());
        ASSERT_NE(out, nullptr);
        gst_buffer_unref(out);
    };
    run_one();
    EXPECT_EQ(groups_behind(harness_), "");
    set("keep-tensors", TRUE);
    run_one();  // takes the property over
    run_one();
    EXPECT_EQ(groups_behind(harness_), "vartml-out, theirs-out");
    set("keep-tensors", FALSE);
    run_one();
    run_one();
    EXPECT_EQ(groups_behind(harness_), "");
}

// In a row with decoders of other groups, as tensordecodebin makes it.
TEST_F(Decode, OneOfSeveralReadsItsGroupAloneAndLeavesAll) {
    if (!has_tensor_groups) GTEST_SKIP() << "tensors in caps come with GStreamer 1.28";
    element_ = GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_TENSOR_DEC, nullptr)));
    open(caps_of_two_groups);
    const StoredTensor ours = stored_cpu(two_boxes, "ours");
    const StoredTensor theirs = stored_cpu(two_boxes, "theirs");
    GstBuffer* data[] = {data_buffer(ours), data_buffer(theirs), data_buffer(ours)};
    for (const bool record : {true, false}) {
        Inference inference = inference_of(record_of({ours}));
        inference.frame_width = inference.frame_height = 64;
        inference.to_frame = {};
        GstBuffer* in = record ? frame_with(inference, {data[0]}) : frame();
        add_tensor_meta(in, {theirs}, {data[1]});
        add_tensor_meta(in, {ours}, {data[record ? 0 : 2]});
        GstBuffer* out = run(in);
        ASSERT_NE(out, nullptr);
        EXPECT_EQ(boxes_of(out).size(), 2u) << record;
        EXPECT_EQ(tensor_metas(out), 2u);
        gst_buffer_unref(out);
    }
    EXPECT_EQ(groups_behind(harness_), "vartml-out, theirs-out");
    for (GstBuffer* one : data) gst_buffer_unref(one);
}

TEST_F(Decode, DecodesARecordOnASharedFrame) {
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* in = frame_with(inference_of(record_of({tensor})), {data});
    GstBuffer* out = run(gst_buffer_ref(in));
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(boxes_of(out), two_boxes_in_frame);
    EXPECT_EQ(get_inference(in, 0)->data.size(), 1u);
    gst_buffer_unref(out);
    gst_buffer_unref(in);
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data), 1);
    gst_buffer_unref(data);
}

TEST_F(Decode, MakesBoxesOfARegionPartOfIt) {
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* in = frame();
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(in);
    GstAnalyticsODMtd region;
    gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("car"), 0, 0, 128, 96, 0.5f,
                                           &region);
    Inference inference = inference_of(record_of({tensor}));
    inference.region_od = static_cast<int>(region.id);
    inference.data = {data};
    ASSERT_TRUE(add_inference(in, inference, 100));
    GstBuffer* out = run(in);
    ASSERT_NE(out, nullptr);
    meta = gst_buffer_get_analytics_relation_meta(out);
    gpointer state = nullptr;
    GstAnalyticsMtd od;
    unsigned parts = 0;
    while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(),
                                               &od)) {
        parts += gst_analytics_relation_meta_get_relation(meta, od.id, region.id) ==
                 GST_ANALYTICS_REL_TYPE_IS_PART_OF;
    }
    EXPECT_EQ(parts, 2u);
    gst_buffer_unref(out);
    gst_buffer_unref(data);
}

TEST_F(Decode, WritesClassesOfTheWholePicture) {
    set("top-k", 2u);
    open();
    StoredTensor tensor;
    tensor.info.name = "out";
    tensor.info.cpu = make_view(DataType::float32, Layout::GENERIC, {1, 2}, {0, 1});
    const float scores[] = {0.25f, 0.75f};
    tensor.bytes.assign(reinterpret_cast<const uint8_t*>(scores),
                        reinterpret_cast<const uint8_t*>(scores + 2));
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* out = run(frame_with(inference_of(record_of({tensor})), {data}));
    ASSERT_NE(out, nullptr);
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out);
    gpointer state = nullptr;
    GstAnalyticsMtd cls, inference;
    ASSERT_TRUE(gst_analytics_relation_meta_iterate(meta, &state,
                                                    gst_analytics_cls_mtd_get_mtd_type(), &cls));
    ASSERT_EQ(gst_analytics_cls_mtd_get_length(&cls), 2u);
    EXPECT_EQ(gst_analytics_cls_mtd_get_quark(&cls, 0), g_quark_from_string("dog"));
    EXPECT_EQ(gst_analytics_cls_mtd_get_level(&cls, 0), 0.75f);
    EXPECT_EQ(gst_analytics_cls_mtd_get_quark(&cls, 1), g_quark_from_string("cat"));
    ASSERT_NE(get_inference(out, 0, &inference), nullptr);
    EXPECT_EQ(gst_analytics_relation_meta_get_relation(meta, cls.id, inference.id),
              GST_ANALYTICS_REL_TYPE_RELATE_TO);
    gst_buffer_unref(out);
    gst_buffer_unref(data);
}

// As of FSA-Net, whose three numbers are the angles of a head.
TEST_F(Decode, WarnsOnceOfNumbersThatNobodyNames) {
    struct Case {
        const char* ends_in;
        bool labels, warns;
    };
    const Case cases[] = {
        {"linear", false, true},  {"product", false, true}, {"softmax", false, false},
        {"", false, false},       {"linear", true, false},  {"relu", false, true},
        {"sigmoid", false, true}, {"sigmoid", true, false},
    };
    StoredTensor tensor;
    tensor.info.name = "out";
    tensor.info.cpu = make_view(DataType::float32, Layout::GENERIC, {1, 3}, {0, 1});
    const float angles[] = {-12.5f, 3.25f, 0.5f};
    tensor.bytes.assign(reinterpret_cast<const uint8_t*>(angles),
                        reinterpret_cast<const uint8_t*>(angles + 3));
    for (const Case& c : cases) {
        TearDown();
        harness_ = nullptr;
        element_ = nullptr;
        bus_ = nullptr;
        open();
        const auto record = record_of({tensor});
        record->model_info.labels = c.labels ? std::vector<std::string>{"yaw", "pitch", "roll"}
                                             : std::vector<std::string>{};
        record->model_info.outputs = {{.name = "out", .id = "", .role = "", .ends_in = c.ends_in}};
        GstBuffer* const data = data_buffer(tensor);
        for (int i = 0; i < 2; ++i) gst_buffer_unref(run(frame_with(inference_of(record), {data})));
        gst_buffer_unref(data);
        std::string text;
        const std::string id = pop(GST_MESSAGE_WARNING, &text);
        EXPECT_EQ(id.substr(0, 11), c.warns ? "dec-unnamed" : "") << c.ends_in << c.labels;
        if (!c.warns) continue;
        for (const char* part : {"the 3 numbers of output 'out'", "angles", "keep-tensors=true",
                                 "x-vartml-decoder=classify"})
            EXPECT_NE(text.find(part), std::string::npos) << text;
        EXPECT_EQ(pop(GST_MESSAGE_WARNING), "");
    }
}

// As of detectors of text, whose probabilities are those of a mask by their shape.
TEST_F(Decode, NamesTheOtherReadingOfAMapThatNobodyNames) {
    struct Case {
        const char *ends_in, *decoder;
        bool warns;
    };
    const Case cases[] = {{"sigmoid", "", true},
                          {"linear", "", true},
                          {"", "", true},
                          {"argmax", "", false},
                          {"sigmoid", "segment", false}};
    StoredTensor tensor;
    tensor.info.name = "out";
    tensor.info.cpu = make_view(DataType::float32, Layout::NCHW, {1, 1, 64, 64});
    tensor.bytes.assign(size_t{64} * 64 * sizeof(float), 0);
    for (const Case& c : cases) {
        TearDown();
        harness_ = nullptr;
        element_ = nullptr;
        bus_ = nullptr;
        open();
        const auto record = record_of({tensor});
        record->model_info.labels.clear();
        record->model_info.decoder = c.decoder;
        record->model_info.outputs = {{.name = "out", .id = "", .role = "", .ends_in = c.ends_in}};
        GstBuffer* const data = data_buffer(tensor);
        for (int i = 0; i < 2; ++i) gst_buffer_unref(run(frame_with(inference_of(record), {data})));
        gst_buffer_unref(data);
        std::string text;
        const std::string id = pop(GST_MESSAGE_WARNING, &text);
        EXPECT_EQ(id.substr(0, 11), c.warns ? "dec-unnamed" : "") << c.ends_in << c.decoder;
        if (!c.warns) continue;
        for (const char* part :
             {"the map of output 'out'", "x-vartml-decoder=segment", "db-text", "vartmlpicture"})
            EXPECT_NE(text.find(part), std::string::npos) << text;
        EXPECT_EQ(pop(GST_MESSAGE_WARNING), "");
    }
}

TEST_F(Decode, TakesChangedPropertiesWhilePlaying) {
    open();
    const StoredTensor tensor = stored_cpu(
        head(2, {{20, 20, 10, 8, 0.9f, 0}, {50, 40, 8, 16, 0, 0.7f}, {51, 40, 8, 16, 0.6f, 0}}),
        "out");
    const auto record = record_of({tensor});
    const auto count = [&] {
        GstBuffer* data = data_buffer(tensor);
        GstBuffer* out = run(frame_with(inference_of(record), {data}));
        gst_buffer_unref(data);
        const size_t boxes = out ? boxes_of(out).size() : 0;
        gst_clear_buffer(&out);
        return boxes;
    };
    EXPECT_EQ(count(), 3u);
    set("score-threshold", 0.65);
    EXPECT_EQ(count(), 2u);
    set("score-threshold", -1.0);
    gst_util_set_object_arg(G_OBJECT(element()), "nms", "class-agnostic");
    EXPECT_EQ(count(), 2u);
    set("iou-threshold", 0.95);
    EXPECT_EQ(count(), 3u);
    set("max-detections", 1u);
    EXPECT_EQ(count(), 1u);
    set("max-detections", 100u);
    set("classes", "cat, 1");
    EXPECT_EQ(count(), 3u);
    set("classes", "dog");
    EXPECT_EQ(count(), 1u);
    set("classes", nullptr);
    set("min-size", 13u);  // heights 12, 24, 24; widths 20, 16, 16
    EXPECT_EQ(count(), 2u);
    set("decoder-library", "none.so");  // taken over at start alone
    const auto another = record_of({tensor});
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* out = run(frame_with(inference_of(another), {data}));
    gst_buffer_unref(data);
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(boxes_of(out).size(), 2u);
    gst_buffer_unref(out);
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "");
}

TEST_F(Decode, WarnsOnceWhenMetadataGetLost) {
    open();
    decode(stored_cpu(two_boxes, "out"));
    for (int i = 0; i < 3; ++i) gst_buffer_unref(run(frame()));
    std::string text;
    EXPECT_EQ(pop(GST_MESSAGE_WARNING, &text).substr(0, 8), "dec-lost");
    EXPECT_NE(text.find("videocrop"), std::string::npos) << text;
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "");
}

TEST_F(Decode, ForgetsOnANewStreamThatFramesHadMetadata) {
    open();
    decode(stored_cpu(two_boxes, "out"));
    gst_harness_push_event(harness_, gst_event_new_stream_start("other"));
    gst_harness_set_src_caps_str(harness_, frame_caps);
    gst_buffer_unref(run(frame()));
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "");
}

TEST_F(Decode, CountsNumbersThatAreNotFinite) {
    open();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(
        decode(stored_cpu(head(2, {{20, 20, 10, 8, 0.9f, 0}, {nan, 20, 10, 8, 0.9f, 0}}), "out"))
            .size(),
        1u);
    EXPECT_EQ(stat("not-finite"), 1u);
}

TEST_F(Decode, LeavesOutBoxesWithoutAWholePixel) {
    open();
    EXPECT_TRUE(decode(stored_cpu(head(2, {{20.1f, 20, 0.1f, 8, 0.9f, 0}}), "out")).empty());
}

TEST_F(Decode, TakesManyBoxesOnOneFrame) {
    set("max-detections", 84u);
    gst_util_set_object_arg(G_OBJECT(element()), "nms", "off");
    open();
    RefTensor t = head(2, {});
    for (size_t p = 0; p < positions; ++p) {
        const float values[] = {20, 20, 10, 8, 0.9f, 0};
        for (size_t a = 0; a < 6; ++a) t.data[a * positions + p] = values[a];
    }
    EXPECT_EQ(decode(stored_cpu(t, "out")).size(),
              84u);  // more than fit the relation meta's first size
}

TEST_F(Decode, RemovesTensorCapsAndOffersVideoMeta) {
    open();
    gst_harness_add_propose_allocation_meta(harness_, GST_VIDEO_CROP_META_API_TYPE, nullptr);
    GstCaps* caps = gst_caps_from_string(frame_caps);
    GstQuery* query = gst_query_new_allocation(caps, TRUE);
    EXPECT_TRUE(gst_pad_peer_query(harness_->srcpad, query));
    EXPECT_TRUE(gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr));
    EXPECT_FALSE(gst_query_find_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, nullptr));
    EXPECT_EQ(gst_query_get_n_allocation_pools(query), 0u);
    gst_query_unref(query);
    GstCaps* with = gst_caps_copy(caps);
    GstStructure* groups = gst_structure_new_empty("tensorgroups");
    gst_caps_set_simple(with, "tensors", GST_TYPE_STRUCTURE, groups, nullptr);
    gst_structure_free(groups);
    gst_harness_set_src_caps(harness_, with);
    gst_buffer_unref(run(frame()));
    GstCaps* out = gst_pad_get_current_caps(harness_->sinkpad);
    EXPECT_TRUE(gst_caps_is_equal(out, caps));
    gst_caps_unref(out);
    gst_caps_unref(caps);
}

TEST_F(Decode, SurvivesFlushesAndStateCycles) {
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(decode(tensor).size(), 2u);
        gst_harness_push_event(harness_, gst_event_new_flush_start());
        gst_harness_push_event(harness_, gst_event_new_flush_stop(TRUE));
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        gst_harness_push_event(harness_, gst_event_new_segment(&segment));
        EXPECT_EQ(decode(tensor).size(), 2u);
    }
    for (int i = 0; i < 100; ++i) {
        GstElement* other = GST_ELEMENT(gst_object_ref_sink(make_decode()));
        gst_element_set_state(other, GST_STATE_PAUSED);
        gst_element_set_state(other, GST_STATE_NULL);
        gst_object_unref(other);
    }
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "");
}

// The leaks tracer (GST_TRACERS in meson.build) knows every object; run last, after the others have
// put theirs away.
TEST(ZDecodeLeaks, LeavesNoObjectBehind) {
    GList* tracers = gst_tracing_get_active_tracers();
    GstStructure* live = nullptr;
    for (GList* item = tracers; item; item = item->next) {
        if (g_str_has_prefix(G_OBJECT_TYPE_NAME(item->data), "GstLeaksTracer")) {
            g_signal_emit_by_name(item->data, "get-live-objects", &live);
        }
    }
    g_list_free_full(tracers, gst_object_unref);
    if (!live) GTEST_SKIP() << "the leaks tracer is not active";
    const GValue* list = gst_structure_get_value(live, "live-objects-list");
    for (guint i = 0; list && i < gst_value_list_get_size(list); ++i) {
        const GValue* item = gst_value_list_get_value(list, i);
        const auto* entry = static_cast<const GstStructure*>(g_value_get_boxed(item));
        const GValue* object = gst_structure_get_value(entry, "object");
        const std::string type = G_VALUE_TYPE_NAME(object);
        // What the process keeps on purpose: the harness's clock is the default one, factories are
        // cached.
        EXPECT_TRUE(type == "GstTestClock" || type == "GstElementFactory") << type;
    }
    gst_structure_free(live);
}

}  // namespace
