// SPDX-License-Identifier: Apache-2.0
// Outputs that are pictures as video: sizes, shapes of pixels, colours and alpha of the frame,
// frames without a result, and what is refused.
#include "gst/gstvartmlpicture.h"

#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#include <functional>

#include <gtest/gtest.h>
#include "gst/metadata/inference.h"
#include "gst/picture/canvas.h"
#include "tests/support/gst_main.h"
#include "tests/vision/map_tensors.h"

namespace {

using namespace vartml;
using namespace vartml::gst;
using namespace vartml::test;

constexpr int width = 64, height = 32;  // of the frames
constexpr char frame_caps[] =
    "video/x-raw,format=RGB,width=64,height=32,framerate=30/1,pixel-aspect-ratio=1/1";

// A model with an input of 32x32 that is fed 0 to 1.
std::shared_ptr<InferenceRecord> record_of(const StoredTensor& tensor, uint32_t input_channels,
                                           const std::string& output_lines = "") {
    auto record = std::make_shared<InferenceRecord>();
    record->infer_id = "infer";
    record->model = "tiny";
    record->input.name = "in";
    record->input.cpu = make_view(DataType::float32, Layout::NCHW, {1, input_channels, 32, 32});
    record->outputs = {tensor.info};
    record->views = {tensor.info.hw ? *tensor.info.hw : tensor.info.cpu};
    record->hw = tensor.info.hw.has_value();
    record->tensor_ids = {tensor.info.name};
    auto info = parse_modelinfo(
        "[in]\ndir=input\nx-vartml-scale=0.00392156863\n[out]\ndir=output\n" + output_lines, "");
    EXPECT_TRUE(info) << (info ? "" : info.error().message);
    record->model_info = *info;
    record->model_width = record->model_height = 32;
    return record;
}

Inference stretched(std::shared_ptr<const InferenceRecord> record) {
    Inference inference;
    inference.record = std::move(record);
    inference.frame_width = width, inference.frame_height = height;
    inference.to_frame = {.a = 2, .b = 0, .c = 0, .d = 0, .e = 1, .f = 0};
    return inference;
}
// 64x32 in 32x32: rows 8 to 24 of the model.
Inference letterboxed(std::shared_ptr<const InferenceRecord> record) {
    Inference inference = stretched(std::move(record));
    inference.to_frame = {.a = 2, .b = 0, .c = 0, .d = 0, .e = 2, .f = -16};
    return inference;
}

class Picture : public testing::Test {
protected:
    void TearDown() override {
        if (harness_) gst_harness_teardown(harness_);
        if (element_) gst_element_set_bus(element_, nullptr);
        if (element_) gst_object_unref(element_);
        if (bus_) gst_object_unref(bus_);
    }
    GstElement* element() {
        if (!element_)
            element_ =
                GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_PICTURE, nullptr)));
        return element_;
    }
    template <typename... Values>
    void set(const char* name, Values... values) {
        g_object_set(element(), name, values..., nullptr);
    }
    void set_enum(const char* name, const char* nick) {
        gst_util_set_object_arg(G_OBJECT(element()), name, nick);
    }
    void open(const char* caps = frame_caps) {
        bus_ = gst_bus_new();
        gst_element_set_bus(element(), bus_);
        harness_ = gst_harness_new_with_element(element(), "sink", "src");
        gst_harness_set_src_caps_str(harness_, caps);
        gst_video_info_from_caps(&info_, caps_of(caps).get());
    }
    struct Unref {
        void operator()(GstCaps* caps) const { gst_caps_unref(caps); }
    };
    static std::unique_ptr<GstCaps, Unref> caps_of(const char* text) {
        return std::unique_ptr<GstCaps, Unref>(gst_caps_from_string(text));
    }
    // A frame of one grey, numbered.
    GstBuffer* frame(uint8_t value = 100) {
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info_), nullptr);
        gst_buffer_memset(buffer, 0, value, gsize(-1));
        GST_BUFFER_PTS(buffer) = frames_++ * GST_SECOND / 30;
        return buffer;
    }
    GstBuffer* with(GstBuffer* buffer, Inference inference, const StoredTensor& tensor) {
        GstBuffer* data = gst_buffer_new_memdup(tensor.bytes.data(), tensor.bytes.size());
        inference.data = {data};
        EXPECT_TRUE(add_inference(buffer, inference, 8));
        gst_buffer_unref(data);
        return buffer;
    }
    // Pushes a frame; true where a picture came out, which is then in `bytes` and `out`.
    bool push(GstBuffer* buffer) {
        flow_ = gst_harness_push(harness_, buffer);
        GstBuffer* made = gst_harness_try_pull(harness_);
        if (!made) return false;
        GstPad* src = gst_element_get_static_pad(element(), "src");
        GstCaps* caps = gst_pad_get_current_caps(src);
        EXPECT_TRUE(gst_video_info_from_caps(&out, caps));
        gst_caps_unref(caps);
        gst_object_unref(src);
        GstVideoFrame mapped;
        EXPECT_TRUE(gst_video_frame_map(&mapped, &out, made, GST_MAP_READ));
        planes.assign(GST_VIDEO_FRAME_N_PLANES(&mapped), {});
        for (guint p = 0; p < planes.size(); ++p) {
            const auto* data = static_cast<const uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&mapped, p));
            const int row =
                GST_VIDEO_FRAME_COMP_WIDTH(&mapped, p) * GST_VIDEO_FRAME_COMP_PSTRIDE(&mapped, p);
            for (int y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT(&mapped, p); ++y)
                planes[p].insert(planes[p].end(),
                                 data + y * GST_VIDEO_FRAME_PLANE_STRIDE(&mapped, p),
                                 data + y * GST_VIDEO_FRAME_PLANE_STRIDE(&mapped, p) + row);
        }
        gst_video_frame_unmap(&mapped);
        pts = GST_BUFFER_PTS(made);
        boxes.clear();
        GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(made);
        gpointer state = nullptr;
        GstAnalyticsMtd od;
        while (meta && gst_analytics_relation_meta_iterate(
                           meta, &state, gst_analytics_od_mtd_get_mtd_type(), &od)) {
            Rectangle box;
            float score;
            gst_analytics_od_mtd_get_location(&od, &box.x, &box.y, &box.width, &box.height, &score);
            boxes.push_back(box);
        }
        gst_buffer_unref(made);
        return true;
    }
    std::string caps_text() {
        GstPad* src = gst_element_get_static_pad(element(), "src");
        GstCaps* caps = gst_pad_get_current_caps(src);
        gchar* text = caps ? gst_caps_to_string(caps) : g_strdup("none");
        const std::string copy = text;
        g_free(text);
        if (caps) gst_caps_unref(caps);
        gst_object_unref(src);
        return copy;
    }
    // The id of the next message of a type.
    std::string pop(GstMessageType type) {
        GstMessage* message = gst_bus_pop_filtered(bus_, type);
        if (!message) return "";
        const GstStructure* details = nullptr;
        GError* error = nullptr;
        if (type == GST_MESSAGE_ERROR) {
            gst_message_parse_error(message, &error, nullptr);
            gst_message_parse_error_details(message, &details);
        } else {
            gst_message_parse_warning(message, &error, nullptr);
            gst_message_parse_warning_details(message, &details);
        }
        const std::string id = details ? gst_structure_get_string(details, "id") : "none";
        g_error_free(error);
        gst_message_unref(message);
        return id;
    }
    guint64 stat(const char* name) {
        GstStructure* stats = nullptr;
        g_object_get(element(), "stats", &stats, nullptr);
        guint64 value = G_MAXUINT64;
        gst_structure_get_uint64(stats, name, &value);
        gst_structure_free(stats);
        return value;
    }

    GstHarness* harness_ = nullptr;
    GstElement* element_ = nullptr;
    GstBus* bus_ = nullptr;
    GstFlowReturn flow_ = GST_FLOW_OK;
    GstVideoInfo info_;
    guint64 frames_ = 0;
    // of the last picture
    GstVideoInfo out;
    std::vector<std::vector<uint8_t>> planes;
    std::vector<Rectangle> boxes;
    GstClockTime pts = 0;
};

// 64x64, twice the input: rising from left to right in red, from the top in green.
RefMap gradient() {
    RefMap map(3, 64, 64);
    for (size_t y = 0; y < 64; ++y)
        for (size_t x = 0; x < 64; ++x) {
            map.at(0, y, x) = static_cast<float>(4 * x) / 255;
            map.at(1, y, x) = static_cast<float>(3 * y) / 255;
            map.at(2, y, x) = 0.2f;
        }
    return map;
}

TEST_F(Picture, OfColoursHasTheSizeOfTheOutputInEveryView) {
    open();
    for (const MapView view : {MapView::nchw, MapView::nhwc, MapView::hw_bf16}) {
        RefMap map = gradient();
        const StoredTensor tensor = stored_map(map, "out", view);
        ASSERT_TRUE(push(with(frame(), stretched(record_of(tensor, 3)), tensor)));
        EXPECT_EQ(GST_VIDEO_INFO_FORMAT(&out), GST_VIDEO_FORMAT_RGB);
        EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 64);
        EXPECT_EQ(GST_VIDEO_INFO_HEIGHT(&out), 64);
        for (size_t y = 0; y < 64; ++y)
            for (size_t x = 0; x < 64; ++x) {
                ASSERT_NEAR(planes[0][(y * 64 + x) * 3], 4 * x, 1);
                ASSERT_NEAR(planes[0][(y * 64 + x) * 3 + 1], 3 * y, 1);
                ASSERT_NEAR(planes[0][(y * 64 + x) * 3 + 2], 51, 1);
            }
    }
    EXPECT_EQ(stat("pictures"), 3u);
}

TEST_F(Picture, LooksAsWideAsTheFrame) {
    open();
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    ASSERT_TRUE(push(with(frame(), stretched(record_of(tensor, 3)), tensor)));
    EXPECT_EQ(GST_VIDEO_INFO_PAR_N(&out), 2);  // 64x64 that shows 64x32
    EXPECT_EQ(GST_VIDEO_INFO_PAR_D(&out), 1);
    EXPECT_EQ(GST_VIDEO_INFO_FPS_N(&out), 30);
}

TEST_F(Picture, HasNoBordersThatWereAddedToTheFrame) {
    open();
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    ASSERT_TRUE(push(with(frame(), letterboxed(record_of(tensor, 3)), tensor)));
    EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 64);
    EXPECT_EQ(GST_VIDEO_INFO_HEIGHT(&out), 32);
    EXPECT_EQ(GST_VIDEO_INFO_PAR_N(&out), 1);
    EXPECT_EQ(planes[0][1], 3 * 16);  // its first row is row 16 of the output
}

TEST_F(Picture, OfBlueFirstIsSoInItsCaps) {
    open();
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    ASSERT_TRUE(
        push(with(frame(), stretched(record_of(tensor, 3, "x-vartml-picture=bgr\n")), tensor)));
    EXPECT_EQ(GST_VIDEO_INFO_FORMAT(&out), GST_VIDEO_FORMAT_BGR);
}

// Brightness of the model, colours of the frame.
TEST_F(Picture, OfBrightnessKeepsTheColoursOfTheFrame) {
    const struct {
        const char* caps;
        std::function<void(std::vector<uint8_t>&)> paint;
    } cases[] = {
        {frame_caps,
         [](std::vector<uint8_t>& bytes) {
             for (size_t i = 0; i < bytes.size(); i += 3)
                 bytes[i] = 255, bytes[i + 1] = 0, bytes[i + 2] = 0;
         }},
        {"video/x-raw,format=I420,width=64,height=32,framerate=30/1,colorimetry=bt601",
         [](std::vector<uint8_t>& bytes) {
             std::fill(bytes.begin(), bytes.begin() + 64 * 32, 81);
             std::fill(bytes.begin() + 64 * 32, bytes.begin() + 64 * 32 + 32 * 16, 90);
             std::fill(bytes.begin() + 64 * 32 + 32 * 16, bytes.end(), 240);
         }},
    };
    for (const auto& c : cases) {
        open(c.caps);
        RefMap map(1, 96, 96);
        for (float& v : map.data) v = 0.6f;
        map.data[0] = 0, map.data[1] = 1;
        const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
        std::vector<uint8_t> bytes(GST_VIDEO_INFO_SIZE(&info_));
        c.paint(bytes);
        GstBuffer* red = gst_buffer_new_memdup(bytes.data(), bytes.size());
        ASSERT_TRUE(push(with(red, stretched(record_of(tensor, 1)), tensor)));
        EXPECT_EQ(GST_VIDEO_INFO_FORMAT(&out), GST_VIDEO_FORMAT_I420);
        EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 96);
        EXPECT_EQ(planes[0][0], 16);
        EXPECT_EQ(planes[0][1], 235);
        for (size_t i = 2; i < planes[0].size(); ++i) ASSERT_EQ(planes[0][i], 147);
        // given: ITU-R BT.601, pure red is 81, 90, 240
        for (size_t i = 0; i < planes[1].size(); ++i) {
            ASSERT_NEAR(planes[1][i], 90, 1);
            ASSERT_NEAR(planes[2][i], 240, 1);
        }
        TearDown();
        harness_ = nullptr, element_ = nullptr, bus_ = nullptr;
    }
}

TEST_F(Picture, OfAMeasureIsInColoursOrGrey) {
    RefMap map(1, 32, 32);
    for (size_t i = 0; i < map.data.size(); ++i) map.data[i] = static_cast<float>(i) * 3 + 40;
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    set_enum("colormap", "inferno");
    open();
    ASSERT_TRUE(push(with(frame(), stretched(record_of(tensor, 3)), tensor)));
    EXPECT_EQ(GST_VIDEO_INFO_FORMAT(&out), GST_VIDEO_FORMAT_RGB);
    const auto colors = colors_of(ColorMap::inferno);
    for (size_t i = 0; i < map.data.size(); ++i) {
        const auto step = static_cast<size_t>(std::nearbyint(static_cast<double>(i) * 255 / 1023));
        ASSERT_NEAR(planes[0][3 * i], colors[3 * step], 4) << i;
    }
    // Other caps while it runs.
    set_enum("colormap", "gray");
    ASSERT_TRUE(push(with(frame(), stretched(record_of(tensor, 3)), tensor)));
    EXPECT_EQ(GST_VIDEO_INFO_FORMAT(&out), GST_VIDEO_FORMAT_GRAY8);
    EXPECT_EQ(planes[0][0], 0);
    EXPECT_EQ(planes[0][1023], 255);
}

TEST_F(Picture, OfAMaskIsTheAlphaOfTheFrame) {
    RefMap map(1, 16, 16);
    for (size_t y = 0; y < 16; ++y)
        for (size_t x = 0; x < 16; ++x) map.at(0, y, x) = x < 8 ? 1.f : 0.f;
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    set_enum("kind", "alpha");
    open();
    ASSERT_TRUE(push(with(frame(77), stretched(record_of(tensor, 3)), tensor)));
    EXPECT_EQ(GST_VIDEO_INFO_FORMAT(&out), GST_VIDEO_FORMAT_RGBA);
    EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), width);
    EXPECT_EQ(GST_VIDEO_INFO_HEIGHT(&out), height);
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            const uint8_t* pixel = &planes[0][size_t(y * width + x) * 4];
            ASSERT_EQ(pixel[0], 77);
            ASSERT_EQ(pixel[2], 77);
            // A cell is four pixels wide: between the middles of two the edge is smooth.
            if (x < 28) {
                ASSERT_EQ(pixel[3], 255) << x;
            } else if (x >= 36) {
                ASSERT_EQ(pixel[3], 0) << x;
            }
        }
}

TEST_F(Picture, OfAMaskIsAsTheFrameIsInItsCaps) {
    RefMap map(1, 16, 16);
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    set_enum("kind", "alpha");
    open(
        "video/x-raw,format=I420,width=64,height=32,framerate=30/1,colorimetry=bt709,"
        "interlace-mode=interleaved,field-order=top-field-first");
    ASSERT_TRUE(push(with(frame(77), stretched(record_of(tensor, 3)), tensor)));
    EXPECT_EQ(out.interlace_mode, GST_VIDEO_INTERLACE_MODE_INTERLEAVED);
    EXPECT_EQ(out.colorimetry.primaries, GST_VIDEO_COLOR_PRIMARIES_BT709);
    EXPECT_EQ(out.colorimetry.transfer, GST_VIDEO_TRANSFER_BT709);
    EXPECT_EQ(out.colorimetry.matrix, GST_VIDEO_COLOR_MATRIX_RGB);
}

TEST_F(Picture, OfAMaskIsClearWhereTheModelDidNotLook) {
    RefMap map(1, 16, 16);
    for (float& v : map.data) v = 1;
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    set_enum("kind", "alpha");
    open();
    Inference middle = stretched(record_of(tensor, 3));
    middle.to_frame = {.a = 1, .b = 0, .c = 16, .d = 0, .e = 1, .f = 0};  // cropped
    GstBuffer* buffer = with(frame(), middle, tensor);
    GstAnalyticsODMtd od;
    gst_analytics_relation_meta_add_od_mtd(gst_buffer_get_analytics_relation_meta(buffer),
                                           g_quark_from_string("cat"), 2, 4, 20, 10, 0.5f, &od);
    ASSERT_TRUE(push(buffer));
    EXPECT_EQ(boxes, (std::vector<Rectangle>{{2, 4, 20, 10}}));  // the picture is the frame
    EXPECT_EQ(planes[0][4 * 15 + 3], 0);
    EXPECT_EQ(planes[0][4 * 16 + 3], 255);
    EXPECT_EQ(planes[0][4 * 47 + 3], 255);
    EXPECT_EQ(planes[0][4 * 48 + 3], 0);
}

TEST_F(Picture, OfFramesWithoutResultIsTheLastOne) {
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    open();
    Inference skipped = stretched(record_of(tensor, 3));
    skipped.status = InferenceStatus::skipped_interval;
    GstBuffer* early = frame();
    ASSERT_TRUE(add_inference(early, skipped, 8));
    EXPECT_FALSE(push(early));  // nothing to show yet
    EXPECT_EQ(flow_, GST_FLOW_OK);
    EXPECT_EQ(caps_text(), "none");
    ASSERT_TRUE(push(with(frame(), stretched(record_of(tensor, 3)), tensor)));
    const auto first = planes;
    GstBuffer* later = frame();
    ASSERT_TRUE(add_inference(later, skipped, 8));
    ASSERT_TRUE(push(later));
    EXPECT_EQ(planes, first);
    EXPECT_EQ(pts, 2 * GST_SECOND / 30);
    EXPECT_EQ(stat("waiting"), 1u);
    EXPECT_EQ(stat("pictures"), 1u);
    EXPECT_EQ(stat("repeated"), 1u);
}

TEST_F(Picture, OfAResultThatIsCarriedOnIsTheSame) {
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    open();
    Inference inference = stretched(record_of(tensor, 3));
    for (const guint64 result : {1, 1, 2}) {
        inference.result_id = result;
        ASSERT_TRUE(push(with(frame(), inference, tensor)));
    }
    EXPECT_EQ(stat("pictures"), 2u);
    EXPECT_EQ(stat("repeated"), 1u);
}

// A detector before it whose tensors are decoded, and which infers more often.
TEST_F(Picture, WaitsForItsOwnModelBehindAnother) {
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    auto detector = record_of(tensor, 3);
    detector->infer_id = "detector";
    const auto behind_it = [&](Inference inference, bool has_result) {
        GstBuffer* buffer = frame();
        EXPECT_TRUE(add_inference(buffer, stretched(detector), 8));  // no tensors any more
        if (has_result) return with(buffer, std::move(inference), tensor);
        inference.status = InferenceStatus::skipped_interval;
        EXPECT_TRUE(add_inference(buffer, inference, 8));
        return buffer;
    };
    open();
    EXPECT_FALSE(push(behind_it(stretched(record_of(tensor, 3)), false)));
    EXPECT_EQ(flow_, GST_FLOW_OK);
    ASSERT_TRUE(push(behind_it(stretched(record_of(tensor, 3)), true)));
    const auto first = planes;
    ASSERT_TRUE(push(behind_it(stretched(record_of(tensor, 3)), false)));
    EXPECT_EQ(planes, first);
    EXPECT_EQ(stat("waiting"), 1u);
    EXPECT_EQ(stat("repeated"), 1u);
}

TEST_F(Picture, StaysWithOneOfTwoModels) {
    RefMap map = gradient(), other = random_map(3, 32, 32, 1, 0, 1);
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw),
                       small = stored_map(other, "out", MapView::nchw);
    auto before = record_of(small, 3);
    before->infer_id = "before";
    open();
    Inference skipped = stretched(record_of(tensor, 3));
    skipped.status = InferenceStatus::pending;
    GstBuffer* early = with(frame(), stretched(before), small);
    ASSERT_TRUE(add_inference(early, skipped, 8));
    EXPECT_FALSE(push(early));
    ASSERT_TRUE(push(
        with(with(frame(), stretched(before), small), stretched(record_of(tensor, 3)), tensor)));
    EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 64);
    const auto first = planes;
    GstBuffer* later = with(frame(), stretched(before), small);
    ASSERT_TRUE(add_inference(later, skipped, 8));
    ASSERT_TRUE(push(later));
    EXPECT_EQ(planes, first);
    // Its vartmlinfer is there no more.
    ASSERT_TRUE(push(with(frame(), stretched(before), small)));
    EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 32);
}

TEST_F(Picture, StaysWithoutBordersWhenFramesGetLarger) {
    open();
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    ASSERT_TRUE(push(with(frame(), letterboxed(record_of(tensor, 3)), tensor)));
    const auto first = planes;
    GstCaps* caps = gst_video_info_to_caps(&info_);
    gst_caps_set_simple(caps, "width", G_TYPE_INT, 2 * GST_VIDEO_INFO_WIDTH(&info_), "height",
                        G_TYPE_INT, 2 * GST_VIDEO_INFO_HEIGHT(&info_), nullptr);
    gst_video_info_from_caps(&info_, caps);
    gst_harness_set_src_caps(harness_, caps);
    ASSERT_TRUE(push(frame()));
    EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 64);
    EXPECT_EQ(GST_VIDEO_INFO_HEIGHT(&out), 32);
    EXPECT_EQ(planes, first);
}

TEST_F(Picture, OfABeforeASeekIsNotShownAfterIt) {
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    open();
    ASSERT_TRUE(push(with(frame(), stretched(record_of(tensor, 3)), tensor)));
    gst_harness_push_event(harness_, gst_event_new_flush_start());
    gst_harness_push_event(harness_, gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(harness_, gst_event_new_segment(&segment));
    EXPECT_FALSE(push(frame()));
    ASSERT_TRUE(push(with(frame(), stretched(record_of(tensor, 3)), tensor)));
}

TEST_F(Picture, FollowsAModelOfAnotherSize) {
    RefMap map = gradient(), other = random_map(3, 32, 32, 1, 0, 1);
    const StoredTensor large = stored_map(map, "out", MapView::nchw),
                       small = stored_map(other, "out", MapView::nchw);
    open();
    ASSERT_TRUE(push(with(frame(), stretched(record_of(large, 3)), large)));
    ASSERT_TRUE(push(with(frame(), stretched(record_of(small, 3)), small)));
    EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 32);
    EXPECT_EQ(planes[0].size(), 32u * 32 * 3);
}

TEST_F(Picture, CarriesTheBoxesOfTheFrameInItsOwnPixels) {
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    open();
    GstBuffer* buffer = with(frame(), stretched(record_of(tensor, 3)), tensor);
    GstAnalyticsODMtd od;
    gst_analytics_relation_meta_add_od_mtd(gst_buffer_get_analytics_relation_meta(buffer),
                                           g_quark_from_string("cat"), 8, 4, 20, 10, 0.5f, &od);
    ASSERT_TRUE(push(buffer));
    EXPECT_EQ(boxes, (std::vector<Rectangle>{{8, 8, 20, 20}}));  // 64x64 for 64x32
}

TEST_F(Picture, TellsWhatItReads) {
    RefMap map(1, 32, 32);
    map.data[3] = 1;
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    open();
    ASSERT_TRUE(push(with(frame(), stretched(record_of(tensor, 3)), tensor)));
    GstMessage* message = gst_bus_pop_filtered(bus_, GST_MESSAGE_ELEMENT);
    ASSERT_TRUE(message);
    const GstStructure* s = gst_message_get_structure(message);
    EXPECT_STREQ(gst_structure_get_name(s), "vartml-picture-selected");
    EXPECT_STREQ(gst_structure_get_string(s, "kind"), "map");
    EXPECT_STREQ(gst_structure_get_string(s, "range"), "each frame's own");
    gst_message_unref(message);
}

TEST_F(Picture, CountsValuesThatAreNotFiniteAndSaysSoOnce) {
    RefMap map = gradient();
    map.data[7] = std::numeric_limits<float>::quiet_NaN();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    open();
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(push(with(frame(), stretched(record_of(tensor, 3)), tensor)));
    EXPECT_EQ(stat("not-finite"), 3u);
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "pic-not-finite");
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "");
}

TEST_F(Picture, WithoutAModelIsAWarning) {
    open();
    for (int i = 0; i < 40; ++i) EXPECT_FALSE(push(frame()));
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "pic-idle");
    EXPECT_EQ(stat("waiting"), 40u);
}

// [1,3,64,64] of an element that is none of ours.
GstBuffer* with_upstreams(GstBuffer* buffer, const StoredTensor& tensor) {
    GstTensor** list = g_new(GstTensor*, 1);
    list[0] = gst_tensor_alloc(4);
    list[0]->id = g_quark_from_string("out");
    list[0]->data_type = GST_TENSOR_DATA_TYPE_FLOAT32;
    list[0]->data = gst_buffer_new_memdup(tensor.bytes.data(), tensor.bytes.size());
    const gsize dims[] = {1, 3, 64, 64};
    std::copy_n(dims, 4, list[0]->dims);
    auto* meta = reinterpret_cast<GstTensorMeta*>(
        gst_buffer_add_meta(buffer, GST_TENSOR_META_INFO, nullptr));
    gst_tensor_meta_set(meta, 1, list);
    return buffer;
}

TEST_F(Picture, OfUpstreamsTensorsIsZeroToOne) {
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    open();
    ASSERT_TRUE(push(with_upstreams(frame(), tensor)));
    EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 64);
    EXPECT_EQ(planes[0][3 * 10], 40);
}

// A detector of ours whose tensors are decoded, and which leaves out frames.
TEST_F(Picture, OfUpstreamsTensorsMayHaveARecordBesideThem) {
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    const auto record = record_of(tensor, 3);
    open();
    for (const bool inferred : {true, false, true}) {
        GstBuffer* buffer = frame();
        Inference inference = stretched(record);
        if (!inferred) inference.status = InferenceStatus::skipped_interval;
        ASSERT_TRUE(add_inference(buffer, inference, 8));
        ASSERT_TRUE(push(with_upstreams(buffer, tensor))) << pop(GST_MESSAGE_ERROR);
        EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 64);
    }
    EXPECT_EQ(stat("pictures"), 3u);
}

TEST_F(Picture, OfUpstreamsTensorsMayBeNamedBesideAModels) {
    RefMap map = gradient(), other = random_map(3, 32, 32, 1, 0, 1);
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw),
                       ours = stored_map(other, "ours", MapView::nchw);
    for (const char* name : {"out", "ours"}) {
        set("output", name);
        open();
        ASSERT_TRUE(
            push(with_upstreams(with(frame(), stretched(record_of(ours, 3)), ours), tensor)));
        EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), name == std::string("out") ? 64 : 32);
        TearDown();
        harness_ = nullptr, element_ = nullptr, bus_ = nullptr;
    }
}

TEST_F(Picture, OfUpstreamsTensorsIsForgottenWhenAModelsIsNamed) {
    RefMap map = gradient(), other = random_map(3, 32, 32, 1, 0, 1);
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw),
                       ours = stored_map(other, "ours", MapView::nchw);
    set("output", "out");
    open();
    ASSERT_TRUE(push(with_upstreams(with(frame(), stretched(record_of(ours, 3)), ours), tensor)));
    set("output", "ours");
    Inference skipped = stretched(record_of(ours, 3));
    skipped.status = InferenceStatus::skipped_interval;
    GstBuffer* buffer = frame();
    ASSERT_TRUE(add_inference(buffer, skipped, 8));
    EXPECT_FALSE(push(with_upstreams(buffer, tensor)));
    EXPECT_EQ(gst_bus_pop_filtered(bus_, GST_MESSAGE_ERROR), nullptr);
    ASSERT_TRUE(push(with_upstreams(with(frame(), stretched(record_of(ours, 3)), ours), tensor)));
    EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 32);
}

TEST_F(Picture, IsOfTheModelWhoseOutputIsNamed) {
    RefMap map = gradient(), other = random_map(3, 32, 32, 1, 0, 1);
    const StoredTensor wanted = stored_map(map, "depth", MapView::nchw),
                       last = stored_map(other, "out", MapView::nchw);
    auto before = record_of(wanted, 3);
    before->infer_id = "before";
    const auto both = [&](bool has_result) {
        GstBuffer* buffer = frame();
        if (has_result) {
            with(buffer, stretched(before), wanted);
        } else {
            Inference skipped = stretched(before);
            skipped.status = InferenceStatus::skipped_interval;
            EXPECT_TRUE(add_inference(buffer, skipped, 8));
        }
        return with(buffer, stretched(record_of(last, 3)), last);
    };
    set("output", "depth");
    open();
    EXPECT_FALSE(push(both(false)));
    for (const bool has_result : {true, false}) {
        ASSERT_TRUE(push(both(has_result))) << pop(GST_MESSAGE_ERROR);
        EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 64);
    }
    set("output", "out");
    ASSERT_TRUE(push(both(true)));
    EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 32);
    set("output", "depth");  // of which the next frame has no result
    EXPECT_FALSE(push(both(false)));
    EXPECT_EQ(gst_bus_pop_filtered(bus_, GST_MESSAGE_ERROR), nullptr);
    ASSERT_TRUE(push(both(true)));
    EXPECT_EQ(GST_VIDEO_INFO_WIDTH(&out), 64);
}

struct Refusal {
    const char* name;
    std::function<void(Inference&)> edit;
    size_t channels;
    const char *property, *value;
    const char* id;
};

TEST_F(Picture, RefusesWhatIsNoPictureOfTheFrame) {
    const Refusal cases[] = {
        {"tiles", [](Inference& i) { i.tiles = 4; }, 3, nullptr, nullptr, "pic-regions"},
        {"regions", [](Inference& i) { i.region_od = 0; }, 3, nullptr, nullptr, "pic-regions"},
        {"scaled with borders", [](Inference& i) { i.geometry_valid = false; }, 3, nullptr, nullptr,
         "pic-geometry"},
        {"turned", [](Inference& i) { i.to_frame.b = 1; }, 3, nullptr, nullptr, "pic-geometry"},
        {"classes of pixels", [](Inference&) {}, 19, nullptr, nullptr, "pic-output"},
        {"no such output", [](Inference&) {}, 3, "output", "depth", "pic-output"},
        {"a kind that needs one channel", [](Inference&) {}, 3, "kind", "luma", "pic-channels"},
        {"a range that is none", [](Inference&) {}, 3, "range", "wide", "pic-range"},
    };
    for (const Refusal& c : cases) {
        if (c.property) gst_util_set_object_arg(G_OBJECT(element()), c.property, c.value);
        open();
        RefMap map(c.channels, 32, 32);
        const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
        Inference inference = stretched(record_of(tensor, 3));
        c.edit(inference);
        EXPECT_FALSE(push(with(frame(), inference, tensor))) << c.name;
        EXPECT_EQ(flow_, GST_FLOW_ERROR) << c.name;
        EXPECT_EQ(pop(GST_MESSAGE_ERROR), c.id) << c.name;
        TearDown();
        harness_ = nullptr, element_ = nullptr, bus_ = nullptr;
    }
}

TEST_F(Picture, SaysWhoTookTheTensors) {
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    open();
    GstBuffer* buffer = with(frame(), stretched(record_of(tensor, 3)), tensor);
    drop_inference_tensors(buffer);
    EXPECT_FALSE(push(buffer));
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "pic-taken");
}

TEST_F(Picture, SaysWhoTookTheTensorsThoughOthersAreThere) {
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw),
                       ours = stored_map(map, "ours", MapView::nchw);
    set("output", "ours");
    open();
    GstBuffer* buffer = with(frame(), stretched(record_of(ours, 3)), ours);
    drop_inference_tensors(buffer);
    EXPECT_FALSE(push(with_upstreams(buffer, tensor)));
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "pic-taken");
}

TEST_F(Picture, EndsWithoutEverHavingHadOne) {
    open();
    EXPECT_FALSE(push(frame()));
    ASSERT_TRUE(gst_harness_push_event(harness_, gst_event_new_eos()));
    bool ended = false;
    while (GstEvent* event = gst_harness_try_pull_event(harness_)) {
        ended |= GST_EVENT_TYPE(event) == GST_EVENT_EOS;
        gst_event_unref(event);
    }
    EXPECT_TRUE(ended);
    // A seek, and now there is one.
    gst_harness_push_event(harness_, gst_event_new_flush_start());
    gst_harness_push_event(harness_, gst_event_new_flush_stop(TRUE));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(harness_, gst_event_new_segment(&segment));
    RefMap map = gradient();
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    EXPECT_TRUE(push(with(frame(), stretched(record_of(tensor, 3)), tensor)));
}

}  // namespace
