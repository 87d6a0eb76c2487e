// SPDX-License-Identifier: Apache-2.0
// Real models (`shared/models`) compiled and run by the plugin on frames of several sizes, fitted
// in each way; what vartmldecode writes against plain loops over the tensors of the same frame.
#include <gst/analytics/analytics.h>
#include <gst/gst.h>
#include <gst/video/gstvideometa.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "gst/metadata/mtd.h"
#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"

namespace {

using vartml::test::TempDir;

struct Tensor {
    std::vector<size_t> dims;
    std::vector<float> values;
};

// What is on a frame.
struct Found {
    std::map<std::string, Tensor> tensors;
    std::vector<vartml::Keypoint> keypoints;
    std::vector<float> embedding;
    std::vector<std::pair<std::string, float>> classes;
    std::vector<int> pixels;  // of the class map
    int mask_x = 0, mask_y = 0;
    guint mask_w = 0, mask_h = 0, columns = 0, rows = 0;
    std::string error;
};

void read_tensors(GstBuffer* buffer, Found& found) {
    gpointer state = nullptr;
    while (auto* meta = reinterpret_cast<GstTensorMeta*>(
               gst_buffer_iterate_meta_filtered(buffer, &state, GST_TENSOR_META_API_TYPE))) {
        for (gsize i = 0; i < meta->num_tensors; ++i) {
            const GstTensor* tensor = meta->tensors[i];
            if (tensor->data_type != GST_TENSOR_DATA_TYPE_FLOAT32) continue;
            Tensor& to = found.tensors[g_quark_to_string(tensor->id)];
            to.dims.assign(tensor->dims, tensor->dims + tensor->num_dims);
            GstMapInfo map;
            ASSERT_TRUE(gst_buffer_map(tensor->data, &map, GST_MAP_READ));
            to.values.resize(map.size / sizeof(float));
            std::memcpy(to.values.data(), map.data, to.values.size() * sizeof(float));
            gst_buffer_unmap(tensor->data, &map);
        }
    }
}

void read_mask(const GstAnalyticsMtd& mtd, Found& found) {
    GstBuffer* buffer = gst_analytics_segmentation_mtd_get_mask(&mtd, &found.mask_x, &found.mask_y,
                                                                &found.mask_w, &found.mask_h);
    GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
    GstMapInfo map;
    gpointer data = nullptr;
    gint stride = 0;
    ASSERT_TRUE(gst_video_meta_map(meta, 0, &map, &data, &stride, GST_MAP_READ));
    found.columns = meta->width, found.rows = meta->height;
    for (guint y = 0; y < meta->height; ++y) {
        const auto* row = static_cast<const guint8*>(data) + y * static_cast<guint>(stride);
        found.pixels.insert(found.pixels.end(), row, row + meta->width);
    }
    gst_video_meta_unmap(meta, 0, &map);
    gst_buffer_unref(buffer);
}

void on_frame(GstElement*, GstBuffer* buffer, GstPad*, gpointer data) {
    Found& found = *static_cast<Found*>(data);
    read_tensors(buffer, found);
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gpointer state = nullptr;
    GstAnalyticsMtd mtd;
    while (meta &&
           gst_analytics_relation_meta_iterate(meta, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
        const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
        if (const auto points = vartml::gst::get_keypoints(mtd)) {
            found.keypoints.assign(points->points.begin(), points->points.end());
        } else if (const auto vector = vartml::gst::get_embedding(mtd); !vector.empty()) {
            found.embedding.assign(vector.begin(), vector.end());
        } else if (type == gst_analytics_segmentation_mtd_get_mtd_type()) {
            read_mask(mtd, found);
        } else if (type == gst_analytics_cls_mtd_get_mtd_type()) {
            for (gsize i = 0; i < gst_analytics_cls_mtd_get_length(&mtd); ++i) {
                found.classes.push_back(
                    {g_quark_to_string(gst_analytics_cls_mtd_get_quark(&mtd, i)),
                     gst_analytics_cls_mtd_get_level(&mtd, i)});
            }
        }
    }
}

Found run(const std::string& line) {
    Found found;
    GError* error = nullptr;
    GstElement* pipeline =
        gst_parse_launch((line + " ! fakesink name=sink signal-handoffs=true").c_str(), &error);
    EXPECT_EQ(error, nullptr) << error->message;
    GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
    g_signal_connect(sink, "handoff", G_CALLBACK(on_frame), &found);
    gst_object_unref(sink);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstBus* bus = gst_element_get_bus(pipeline);
    GstMessage* message = gst_bus_timed_pop_filtered(
        bus, 100 * GST_SECOND, static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
    if (!message) {
        found.error = "no end";
    } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        gst_message_parse_error(message, &error, nullptr);
        found.error = error->message;
        g_error_free(error);
    }
    if (message) gst_message_unref(message);
    gst_object_unref(bus);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
    return found;
}

// How a frame lies in the model's input, written anew: model = frame * scale + offset.
struct Fit {
    double sx, sy, ox, oy;
    double x(double u) const { return (u - ox) / sx; }
    double y(double v) const { return (v - oy) / sy; }
};
Fit fit(const std::string& mode, int fw, int fh, int mw, int mh) {
    const double sx = double(mw) / fw, sy = double(mh) / fh;
    if (mode == "stretch") return {sx, sy, 0, 0};
    const double s = mode == "crop" ? std::max(sx, sy) : std::min(sx, sy);
    return {s, s, (mw - fw * s) / 2, (mh - fh * s) / 2};
}

struct Size {
    int width, height;
};
struct ModelCase {
    const char* name;
    const char* compile;  // options
    const char* format;   // of the frames
    int width, height;    // of the input
    void (*check)(const Found&, const Fit&, Size frame, Size model);
    const char* sidecar = nullptr;
};

// Cells of a map along an axis whose centres lie on the frame, and where they begin.
std::vector<size_t> cells_on_frame(size_t cells, double model, double frame,
                                   const std::function<double(double)>& to_frame) {
    std::vector<size_t> inside;
    for (size_t i = 0; i < cells; ++i) {
        const double centre =
            to_frame((static_cast<double>(i) + 0.5) * model / static_cast<double>(cells));
        if (centre > 1e-6 && centre < frame - 1e-6) inside.push_back(i);
    }
    return inside;
}

constexpr float mask_threshold = 0.002f;  // low enough for a test picture without people

// [1,h,w,C]; one channel: the threshold, several: the greatest.
int class_of(const Tensor& t, size_t row, size_t column) {
    const size_t channels = t.dims[3];
    const float* cell = &t.values[(row * t.dims[2] + column) * channels];
    if (channels == 1) return cell[0] >= mask_threshold ? 0 : 255;
    return static_cast<int>(std::max_element(cell, cell + channels) - cell);
}

void check_segment(const Found& found, const Fit& map, Size frame, Size model) {
    ASSERT_EQ(found.tensors.size(), 1u);
    const Tensor& t = found.tensors.begin()->second;
    const auto columns =
        cells_on_frame(t.dims[2], model.width, frame.width, [&](double u) { return map.x(u); });
    const auto rows =
        cells_on_frame(t.dims[1], model.height, frame.height, [&](double v) { return map.y(v); });
    if (found.pixels.empty()) {  // no class anywhere
        for (const size_t row : rows) {
            for (const size_t column : columns) ASSERT_EQ(class_of(t, row, column), 255);
        }
        return;
    }
    // Borders are whole pixels of the input: an edge may differ by a cell from what the frame says.
    ASSERT_NEAR(found.columns, columns.size(), 2);
    ASSERT_NEAR(found.rows, rows.size(), 2);
    // What of the frame the model saw, to a pixel of the model or of the frame.
    const double x0 = std::max(0., map.x(0)),
                 x1 = std::min<double>(frame.width, map.x(model.width));
    const double y0 = std::max(0., map.y(0)),
                 y1 = std::min<double>(frame.height, map.y(model.height));
    EXPECT_NEAR(found.mask_x, x0, 1 + 1 / map.sx);
    EXPECT_NEAR(found.mask_y, y0, 1 + 1 / map.sy);
    EXPECT_NEAR(found.mask_x + double(found.mask_w), x1, 1 + 1 / map.sx);
    EXPECT_NEAR(found.mask_y + double(found.mask_h), y1, 1 + 1 / map.sy);
    size_t least = found.pixels.size();
    for (size_t first_row = rows[0] - std::min<size_t>(rows[0], 1); first_row <= rows[0] + 1;
         ++first_row) {
        for (size_t first = columns[0] - std::min<size_t>(columns[0], 1); first <= columns[0] + 1;
             ++first) {
            if (first_row + found.rows > t.dims[1] || first + found.columns > t.dims[2]) continue;
            size_t different = 0;
            for (size_t i = 0; i < found.pixels.size(); ++i) {
                different += found.pixels[i] !=
                             class_of(t, first_row + i / found.columns, first + i % found.columns);
            }
            least = std::min(least, different);
        }
    }
    EXPECT_EQ(least, 0u) << "of " << found.pixels.size();
}

void check_hand(const Found& found, const Fit& map, Size, Size) {
    float flag = 0;
    const Tensor* points = nullptr;
    for (const auto& [name, tensor] : found.tensors) {
        if (tensor.values.size() == 63) points = &tensor;
        if (name == "Identity_1") flag = tensor.values[0];
    }
    ASSERT_NE(points, nullptr);
    // A threshold of 0 takes every hand.
    ASSERT_EQ(found.keypoints.size(), 21u);
    for (size_t k = 0; k < 21; ++k) {
        EXPECT_NEAR(found.keypoints[k].x, map.x(points->values[3 * k]), 1 / map.sx);
        EXPECT_NEAR(found.keypoints[k].y, map.y(points->values[3 * k + 1]), 1 / map.sy);
        EXPECT_EQ(found.keypoints[k].score, flag);
    }
}

void check_bodypix(const Found& found, const Fit& map, Size, Size) {
    const Tensor &heat = found.tensors.at("heatmaps"), &move = found.tensors.at("short_offsets");
    const size_t h = heat.dims[1], w = heat.dims[2];
    ASSERT_EQ(found.keypoints.size(), 17u);
    for (size_t k = 0; k < 17; ++k) {
        size_t best = 0;
        for (size_t i = 0; i < h * w; ++i) {
            if (heat.values[i * 17 + k] > heat.values[best * 17 + k]) best = i;
        }
        const double u = double(best % w) * 8 + move.values[best * 34 + 17 + k];
        const double v = double(best / w) * 8 + move.values[best * 34 + k];
        EXPECT_NEAR(found.keypoints[k].x, map.x(u), 1 / map.sx);
        EXPECT_NEAR(found.keypoints[k].y, map.y(v), 1 / map.sy);
        EXPECT_NEAR(found.keypoints[k].score, 1 / (1 + std::exp(-heat.values[best * 17 + k])),
                    1e-5);
    }
}

void check_embedding(const Found& found, const Fit&, Size, Size) {
    const auto& values = found.tensors.begin()->second.values;
    double squares = 0;
    for (const float v : values) squares += double(v) * v;
    ASSERT_EQ(found.embedding.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(found.embedding[i], values[i] / std::sqrt(squares), 1e-5);
    }
}

void check_class(const Found& found, const Fit&, Size, Size) {
    const auto& values = found.tensors.begin()->second.values;
    const auto best = std::max_element(values.begin(), values.end());
    ASSERT_EQ(found.classes.size(), 1u);
    EXPECT_EQ(found.classes[0].first, "class-" + std::to_string(best - values.begin()));
    EXPECT_NEAR(found.classes[0].second, *best, 1e-5);
}

// Of a model that ends in sums: softmax makes them probabilities.
void check_class_of_sums(const Found& found, const Fit&, Size, Size) {
    const auto& values = found.tensors.begin()->second.values;
    const auto best = std::max_element(values.begin(), values.end());
    ASSERT_EQ(found.classes.size(), 1u);
    EXPECT_EQ(found.classes[0].first, "class-" + std::to_string(best - values.begin()));
    double sum = 0;
    for (const float v : values) sum += std::exp(double(v) - *best);
    EXPECT_NEAR(found.classes[0].second, 1 / sum, 1e-5);
}

const ModelCase models[] = {
    {"road_seg_adas", "--decoder segment", "RGB", 896, 512, check_segment},
    {"selfie_landscape", "--decoder segment", "RGB", 256, 144, check_segment},
    {"hand_landmark", "", "RGB", 224, 224, check_hand,
     "[modelinfo]\nversion=1.0\nx-vartml-decoder=landmarks\n"
     "[Identity_1]\ndir=output\nx-vartml-role=scores\n"},
    {"person_reid_0287", "--decoder embedding", "RGB", 128, 256, check_embedding},
    {"ppocr_cls", "--decoder classify --input-shape x:1,3,48,192", "RGB", 192, 48, check_class},
    {"mnist_cntk", "--decoder classify", "GRAY8", 28, 28, check_class_of_sums},
    {"bodypix_s8", "--input-shape input:1,241,321,3", "RGB", 321, 241, check_bodypix,
     "[modelinfo]\nversion=1.0\nx-vartml-decoder=heatmap\nx-vartml-activation=sigmoid\n"
     "[heatmaps]\ndir=output\nx-vartml-role=heatmap\nx-vartml-stride=8\n"
     "[short_offsets]\ndir=output\nx-vartml-role=offsets\n"},
};

class RealModels : public testing::TestWithParam<ModelCase> {};
TEST_P(RealModels, DecodeAsPlainLoops) {
    const ModelCase& c = GetParam();
    const char* shared = std::getenv("VARTML_SHARED");
    const std::string onnx =
        std::string(shared ? shared : "") + "/models/" + c.name + "/model.onnx";
    if (!std::filesystem::exists(onnx)) GTEST_SKIP() << "shared/models is not there";
    const TempDir dir;
    const std::string model = dir / "model.rai";
    const std::string command = std::string("'") + std::getenv("VARTML_PROGRAM") + "' compile '" +
                                onnx + "' -o '" + model + "' " + c.compile + " >/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    std::string infer = "vartmlinfer model=" + model;
    if (c.sidecar) {
        std::ofstream(dir / "sidecar.modelinfo") << c.sidecar;
        infer += " modelinfo-file=" + (dir / "sidecar.modelinfo");
    }
    const Size sizes[] = {{640, 480}, {321, 241}, {200, 360}, {1280, 720}};
    for (const Size& size : sizes) {
        for (const char* mode : {"stretch", "letterbox", "crop"}) {
            SCOPED_TRACE(std::to_string(size.width) + "x" + std::to_string(size.height) + " " +
                         mode);
            const std::string source =
                "videotestsrc num-buffers=1 pattern=smpte ! video/x-raw,format=" +
                std::string(c.format) + ",width=" + std::to_string(size.width) +
                ",height=" + std::to_string(size.height) + " ! " + infer + " resize-mode=" + mode +
                (std::string(mode) == "crop" ? " preprocess=\"crop-fraction=1\"" : "");
            const std::string decode = " ! vartmldecode score-threshold=0 mask-threshold=0.002 ";
            const Found cpu = run(source + decode + "keep-tensors=true");
            ASSERT_EQ(cpu.error, "");
            c.check(cpu, fit(mode, size.width, size.height, c.width, c.height), size,
                    {c.width, c.height});
            const Found hw = run(source + " output-tensor-type=hw" + decode);
            ASSERT_EQ(hw.error, "");
            EXPECT_EQ(hw.pixels, cpu.pixels);
            EXPECT_EQ(hw.embedding, cpu.embedding);
            EXPECT_EQ(hw.classes, cpu.classes);
            ASSERT_EQ(hw.keypoints.size(), cpu.keypoints.size());
            for (size_t k = 0; k < hw.keypoints.size(); ++k) {
                EXPECT_EQ(hw.keypoints[k].x, cpu.keypoints[k].x);
                EXPECT_EQ(hw.keypoints[k].score, cpu.keypoints[k].score);
            }
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Shared, RealModels, testing::ValuesIn(models),
                         [](const auto& c) { return std::string(c.param.name); });

}  // namespace
