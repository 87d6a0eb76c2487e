// SPDX-License-Identifier: Apache-2.0
// Heads with several tensors against plain loops: on frames of four sizes, resized in each way, and
// from the NPU's view.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>

#include "tests/vision/head_tensors.h"

namespace vartml::test {

using Point = std::array<double, 2>;
struct RefFace {
    RefBox box;
    std::vector<Point> points;
};

struct NamedTensor {
    std::string name;
    RefTensor table;
    bool batch = true;  // [1,rows,columns]; false: [rows,columns]
};
using Tensors = std::vector<NamedTensor>;

// Rows whose columns `value` gives.
template <typename Value>
RefTensor filled(size_t rows, size_t columns, Value value) {
    RefTensor t{{}, rows, columns, false};
    for (size_t i = 0; i < rows * columns; ++i) t.data.push_back(static_cast<float>(value()));
    return t;
}

class Random {
public:
    explicit Random(unsigned seed) : engine_(seed) {}
    double between(double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(engine_);
    }
    // Mostly low, at a few places anything.
    double score() { return between(0, 1) < 0.04 ? between(0.3, 1) : between(0, 0.2); }

private:
    std::mt19937 engine_;
};

struct FaceCase {
    const char* name;
    const char* family;
    uint32_t width, height;
    Tensors (*make)(Random&, uint32_t width, uint32_t height);
    // What the published formulas make of the tensors, in pixels of the input, before NMS.
    std::vector<RefFace> (*reference)(const Tensors&, uint32_t width, uint32_t height);
    double score, iou;
    ModelInfo info{};      // what the sidecar says
    bool by_shape = true;  // whether the shapes alone tell the family
};
inline std::string case_name(const testing::TestParamInfo<FaceCase>& c) {
    return c.param.name;
}

// Greedy; equal scores keep their order.
inline std::vector<RefFace> ref_face_nms(std::vector<RefFace> faces, double score, double iou) {
    std::erase_if(faces, [&](const RefFace& face) { return !(face.box.score >= score); });
    std::stable_sort(faces.begin(), faces.end(),
                     [](const RefFace& a, const RefFace& b) { return a.box.score > b.box.score; });
    std::vector<RefFace> kept;
    for (const RefFace& face : faces) {
        bool keep = face.box.x0 < face.box.x1 && face.box.y0 < face.box.y1;
        for (const RefFace& other : kept) {
            if (other.box.class_id != face.box.class_id) continue;
            keep = keep && ref_iou(face.box, other.box) <= iou;
        }
        if (keep) kept.push_back(face);
    }
    return kept;
}

// A frame that was made as large as the input.
struct FrameCase {
    uint32_t width, height;
    const char* how;
    Affine map;  // of pixels of the input to those of the frame
};
inline std::vector<FrameCase> frame_cases(uint32_t width, uint32_t height) {
    std::vector<FrameCase> cases;
    for (const auto& [w, h] : {std::pair(1920u, 1080u), {640u, 480u}, {333u, 517u}, {100u, 80u}}) {
        const double x = double(width) / w, y = double(height) / h;
        const auto scaled = [&](const char* how, double scale, double fraction) {
            const double left = (width - w * scale) * fraction,
                         top = (height - h * scale) * fraction;
            cases.push_back(
                {w,
                 h,
                 how,
                 {.a = 1 / scale, .c = -left / scale, .e = 1 / scale, .f = -top / scale}});
        };
        cases.push_back({w, h, "stretch", {.a = 1 / x, .e = 1 / y}});
        scaled("letterbox", std::min(x, y), 0.5);
        scaled("letterbox-top-left", std::min(x, y), 0);
        scaled("crop", std::max(x, y), 0.5);
    }
    return cases;
}

// On the frame; what lies outside of it is cut, what has nothing left is gone.
inline std::vector<RefFace> on_frame(std::vector<RefFace> faces, const FrameCase& frame) {
    for (RefFace& face : faces) {
        const auto x = [&](double u) { return frame.map.a * u + frame.map.c; };
        const auto y = [&](double v) { return frame.map.e * v + frame.map.f; };
        face.box.x0 = std::clamp<double>(x(face.box.x0), 0, frame.width);
        face.box.x1 = std::clamp<double>(x(face.box.x1), 0, frame.width);
        face.box.y0 = std::clamp<double>(y(face.box.y0), 0, frame.height);
        face.box.y1 = std::clamp<double>(y(face.box.y1), 0, frame.height);
        for (Point& point : face.points) point = {x(point[0]), y(point[1])};
    }
    std::erase_if(faces, [](const RefFace& face) {
        return face.box.x0 >= face.box.x1 || face.box.y0 >= face.box.y1;
    });
    faces.resize(std::min<size_t>(faces.size(), 100));
    return faces;
}

inline void expect_faces(const Decoded& decoded, const std::vector<RefFace>& want,
                         const std::string& what) {
    ASSERT_EQ(decoded.detections.size(), want.size()) << what;
    for (size_t i = 0; i < want.size(); ++i) {
        const Detection& found = decoded.detections[i];
        EXPECT_EQ(found.class_id, want[i].box.class_id) << what << " " << i;
        EXPECT_NEAR(found.score, want[i].box.score, 1e-4) << what << " " << i;
        EXPECT_GE(ref_iou({found.x0, found.y0, found.x1, found.y1, 0, 0}, want[i].box), 0.9995)
            << what << " " << i;
        ASSERT_EQ(found.keypoints, want[i].points.size()) << what;
        for (size_t k = 0; k < want[i].points.size(); ++k) {
            const Keypoint& point = decoded.keypoints[found.first_keypoint + k];
            EXPECT_NEAR(point.x, want[i].points[k][0], 0.05) << what << " " << i;
            EXPECT_NEAR(point.y, want[i].points[k][1], 0.05) << what << " " << i;
            EXPECT_TRUE(point.visible);
        }
    }
}

inline std::vector<StoredTensor> stored(const Tensors& tensors) {
    std::vector<StoredTensor> all;
    for (const NamedTensor& t : tensors) {
        all.push_back(stored_cpu(t.table, t.name));
        if (t.batch) continue;
        const auto& shape = all.back().info.cpu.shape;
        all.back().info.cpu = make_view(DataType::float32, Layout::GENERIC, {shape[1], shape[2]});
    }
    return all;
}
// The NPU's view: one column as int8, others as bf16. Changes `tensors` to what it holds.
inline std::vector<StoredTensor> stored_npu(Tensors& tensors) {
    std::vector<StoredTensor> all;
    for (NamedTensor& t : tensors) {
        all.push_back(t.table.attributes == 1
                          ? stored_hw(t.table, t.name, DataType::int8, {1 / 127., -3})
                          : stored_hw(t.table, t.name, DataType::bf16));
    }
    return all;
}
inline std::vector<TensorInfo> infos_of(const std::vector<StoredTensor>& tensors) {
    std::vector<TensorInfo> infos;
    for (const StoredTensor& t : tensors) infos.push_back(t.info);
    return infos;
}
inline std::vector<OutputTensor> outputs_of(const std::vector<StoredTensor>& tensors) {
    std::vector<OutputTensor> outputs;
    for (const StoredTensor& t : tensors) outputs.push_back(t.output());
    return outputs;
}

inline Result<Decoder> decoder_of(const FaceCase& c, const std::vector<StoredTensor>& tensors,
                                  DecodeOptions options = {}, DecodeFault* fault = nullptr) {
    if (!c.by_shape) options.decoder = c.family;
    return Decoder::create(c.info, infos_of(tensors), c.width, c.height, options, fault);
}

inline Decoded decode_case(const FaceCase& c, const std::vector<StoredTensor>& tensors,
                           const FrameCase& frame, const DecodeOptions& options = {}) {
    Decoded decoded;
    auto decoder = decoder_of(c, tensors, options);
    EXPECT_TRUE(decoder) << (decoder ? "" : decoder.error().message);
    if (!decoder) return decoded;
    EXPECT_EQ(decoder->family(), c.family);
    const auto done =
        decoder->decode(outputs_of(tensors), frame.map, frame.width, frame.height, decoded);
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return decoded;
}

inline bool same_floats(const Decoded& a, const Decoded& b) {
    const auto box = [](const Detection& d) {
        return std::array{d.x0, d.y0, d.x1, d.y1, d.score, static_cast<float>(d.class_id)};
    };
    const auto point = [](const Keypoint& k) { return std::array{k.x, k.y, k.score}; };
    return std::ranges::equal(a.detections, b.detections, {}, box, box) &&
           std::ranges::equal(a.keypoints, b.keypoints, {}, point, point);
}

}  // namespace vartml::test
