// SPDX-License-Identifier: Apache-2.0
// Every key of a sidecar: another value gives another result.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <sstream>

#include <vartml/output_picture.h>
#include <vartml/preprocess.h>

#include "lib/vision/modelinfo_keys.h"
#include "tests/vision/head_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr uint32_t side = 64;  // of the model's input

// A dense tensor of floats, or of bytes.
StoredTensor tensor(const char* name, std::vector<uint32_t> shape,
                    const std::function<float(size_t)>& value, DataType type = DataType::float32) {
    StoredTensor t;
    t.info.name = name;
    const Layout layout = shape.size() == 3   ? Layout::NHW
                          : shape.size() == 4 ? Layout::NCHW
                                              : Layout::GENERIC;
    t.info.cpu = make_view(type, layout, std::move(shape));
    t.bytes.resize(t.info.cpu.size_bytes);
    for (size_t i = 0; i < t.info.cpu.size; ++i) {
        const float v = value(i);
        if (type == DataType::float32)
            std::memcpy(&t.bytes[i * sizeof v], &v, sizeof v);
        else
            t.bytes[i] = static_cast<uint8_t>(v);
    }
    return t;
}

// All that a decoder makes of the tensors, as text; the error where there is none.
std::string decoded(const ModelInfo& info, const std::vector<StoredTensor>& tensors) {
    std::vector<TensorInfo> infos;
    std::vector<OutputTensor> outputs;
    for (const StoredTensor& t : tensors) infos.push_back(t.info);
    for (const StoredTensor& t : tensors) outputs.push_back(t.output());
    auto decoder = Decoder::create(info, infos, side, side, {.top_k = 2});
    if (!decoder) return decoder.error().message;
    Decoded found;
    std::ostringstream text;
    text << decoder->family() << decoder->reason() << decoder->skeleton();
    if (const auto done = decoder->decode(outputs, {}, 2 * side, 2 * side, found); !done)
        return done.error().message;
    for (const Detection& d : found.detections)
        text << ' ' << decoder->label(d.class_id) << d.score << ':' << d.x0 << ',' << d.y0 << ','
             << d.x1 << ',' << d.y1;
    for (const Classification& c : found.classes)
        text << ' ' << decoder->label(c.class_id) << '=' << c.score;
    if (!found.text.empty()) text << " '" << found.text << "' " << found.text_score;
    for (const Keypoint& k : found.keypoints) text << " (" << k.x << ',' << k.y << ')';
    return text.str();
}

// 84 positions of two classes: three boxes count, two of which overlap a little more than a third.
std::vector<StoredTensor> yolo_v8(const char* name = "out") {
    constexpr size_t positions = 84;
    return {tensor(name, {1, 6, positions}, [](size_t i) {
        const size_t row = i / positions, position = i % positions;
        const float boxes[3][6] = {
            {20, 20, 16, 16, 0.9f, 0}, {26, 22, 16, 16, 0.8f, 0}, {50, 44, 10, 12, 0, 0.6f}};
        return position < 3 ? boxes[position][row] : 0.f;
    })};
}
std::vector<StoredTensor> yolo_v5_raw() {
    return {tensor("out", {1, 3, 8, 8, 6}, [](size_t i) {
        const size_t cell = i / 6;
        return cell == 27 ? (i % 6 < 4 ? 0.7f : 4.f) : -8.f;
    })};
}
std::vector<StoredTensor> classes() {
    return {tensor("out", {1, 3}, [](size_t i) { return i == 1 ? 0.9f : 0.3f; })};
}
std::vector<StoredTensor> heat() {
    return {tensor("out", {1, 2, 8, 8}, [](size_t i) {
        const size_t cell = i % 64;
        return cell == 27 ? 0.9f : cell == 28 ? 0.7f : cell == 36 ? 0.6f : 0.1f;
    })};
}
std::vector<StoredTensor> listed() {
    return {tensor("boxes", {1, 2, 4},
                   [](size_t i) { return 0.1f + 0.1f * float(i % 4) * (i % 2 ? 1.f : 1.5f); }),
            tensor("scores", {1, 2}, [](size_t i) { return i ? 0.5f : 0.9f; }),
            tensor("labels", {1, 2}, [](size_t) { return 0.f; })};
}
// Finished boxes, and scores of three columns.
std::vector<StoredTensor> scored() {
    return {
        tensor("boxes", {1, 30, 4}, [](size_t i) { return 0.2f + 0.1f * float(i % 4); }),
        tensor("scores", {1, 30, 3}, [](size_t i) { return i < 3 ? 0.5f + 0.2f * float(i) : 0; })};
}
// From the priors of four cells, and scores of three columns.
std::vector<StoredTensor> offsets() {
    return {tensor("boxes", {1, 4, 4}, [](size_t) { return 0.5f; }),
            tensor("scores", {1, 4, 3}, [](size_t i) { return i == 4 ? 0.9f : 0.f; })};
}
std::vector<StoredTensor> rows() {
    return {tensor("out", {1, 2, 6}, [](size_t i) {
        const float row[6] = {4, 20, 14, 44, 0.9f, 0};
        return i < 6 ? row[i] : 0.f;
    })};
}
// Of 16 columns behind a class: a box with 6 points of two values, or 4 of three.
std::vector<StoredTensor> pose() {
    constexpr size_t positions = 84;
    return {tensor("out", {1, 4 + 1 + 12, positions}, [](size_t i) {
        const size_t row = i / positions;
        if (i % positions != 3) return 0.f;
        return row < 4 ? 20.f : row == 4 ? 0.9f : float(row);
    })};
}
std::vector<StoredTensor> faces() {
    // 8x8x3 + 4x4x2 + 2x2x2 + 1x3 positions of the published priors
    constexpr uint32_t positions = 192 + 32 + 8 + 3;
    return {
        tensor("scores", {1, positions, 2},
               [](size_t i) { return i % 2 ? (i == 61 ? 0.9f : 0.1f) : 0.5f; }),
        tensor("boxes", {1, positions, 4}, [](size_t i) { return 0.2f + 0.1f * float(i % 4); })};
}
std::vector<StoredTensor> codes() {
    return {tensor("out", {1, 3}, [](size_t i) { return i == 1 ? 171.f : 20.f; }, DataType::uint8)};
}

std::vector<StoredTensor> steps() {
    return {tensor("out", {1, 3, 4}, [](size_t i) { return i % 4 == 1 + i / 4 ? 0.7f : 0.1f; })};
}

// The tensor of a picture, as text.
std::string fed(const ModelInfo& info) {
    TensorInfo input;
    input.name = "images";
    input.cpu = make_view(DataType::float32, Layout::NCHW, {1, 3, 8, 8});
    const StoredTensor output = classes()[0];
    const PixelChoice choice = choose_pixels(info, {&output.info, 1}, input, 8, 8);
    constexpr uint32_t width = 24, height = 12;
    auto preprocessor =
        Preprocessor::create({.format = PixelFormat::RGB, .width = width, .height = height}, {},
                             input.cpu, input.cpu, choice.options);
    if (!preprocessor) return preprocessor.error().message;
    std::vector<uint8_t> picture(width * height * 3);
    for (size_t i = 0; i < picture.size(); ++i) picture[i] = static_cast<uint8_t>(i * 29 % 253);
    std::vector<float> values(input.cpu.size);
    preprocessor->run({.planes = {picture.data()}, .stride_bytes = {width * 3}}, values.data());
    std::ostringstream text;
    for (const float value : values) text << value << ' ';
    return text.str();
}

// How the pictures of a head of YOLOX are fed.
std::string fed_to_yolox(const ModelInfo& info) {
    const StoredTensor output = tensor("out", {1, 84, 85}, [](size_t) { return 0.f; });
    TensorInfo input;
    input.name = "images";
    input.cpu = make_view(DataType::float32, Layout::NCHW, {1, 3, 64, 64});
    return choose_pixels(info, {&output.info, 1}, input, 64, 64).words();
}

// An output that is a picture, as its kind and first bytes.
std::string drawn(const ModelInfo& info) {
    const StoredTensor output = tensor("out", {1, 3, 8, 8}, [](size_t) { return 0.25f; });
    auto picture = OutputPicture::create(info, {&output.info, 1}, nullptr, 8, 8, {});
    if (!picture) return picture.error().message;
    const OutputTensor stored = output.output();
    if (const auto done = picture->read({&stored, 1}); !done) return done.error().message;
    uint8_t pixel[3];
    picture->write({0, 0, 1, 1}, pixel, 3);
    std::ostringstream text;
    text << to_string(picture->kind()) << picture->bgr() << picture->range() << ' ' << int(pixel[0])
         << ' ' << int(pixel[2]);
    return text.str();
}

struct KeyCase {
    const char* key;
    const char* section;  // "modelinfo", an input "images" or an output "out"
    const char *one, *other;
    std::function<std::string(const ModelInfo&)> result;
    const char* beside = "";  // what else the sidecar says
};
using Tensors = std::vector<StoredTensor> (*)();
template <typename Make>
std::function<std::string(const ModelInfo&)> of(Make make) {
    return [make](const ModelInfo& info) { return decoded(info, make()); };
}
const std::function<std::string(const ModelInfo&)> of_yolo_v8 = [](const ModelInfo& info) {
    return decoded(info, yolo_v8());
};

const KeyCase cases[] = {
    {"x-vartml-decoder", "modelinfo", "yolo-v8", "yolox", of_yolo_v8},
    {"x-vartml-labels", "modelinfo", "cat;dog", "hen;fox", of_yolo_v8},
    {"x-vartml-num-classes", "modelinfo", "2", "3", of_yolo_v8},
    {"x-vartml-class-offset", "modelinfo", "0", "1", of_yolo_v8},
    {"x-vartml-score-threshold", "modelinfo", "0.5", "0.7", of_yolo_v8},
    {"x-vartml-iou-threshold", "modelinfo", "0.2", "0.7", of_yolo_v8},
    {"x-vartml-max-detections", "modelinfo", "1", "2", of_yolo_v8},
    {"x-vartml-strides", "modelinfo", "8,16,32", "8,16", of_yolo_v8},
    {"x-vartml-anchors", "modelinfo", "10,13,16,30,33,23", "20,13,16,30,33,23", of(yolo_v5_raw)},
    {"x-vartml-variance", "modelinfo", "0.1,0.2", "1,1", of(offsets),
     "[modelinfo]\nx-vartml-decoder=ssd\nx-vartml-strides=32\nx-vartml-anchors=20,20\n"
     "x-vartml-activation=none\n"},
    {"x-vartml-box-form", "modelinfo", "v3", "v5", of(yolo_v5_raw),
     "[modelinfo]\nx-vartml-anchors=10,13,16,30,33,23\n"},
    {"x-vartml-activation", "modelinfo", "none", "sigmoid", of(classes)},
    {"x-vartml-skeleton", "modelinfo", "0-1", "1-0", of(heat)},
    {"x-vartml-keypoints", "modelinfo", "6,2", "4,3", of(pose),
     "[modelinfo]\nx-vartml-decoder=yolo-v8-pose\n"},
    {"x-vartml-peak", "modelinfo", "quarter", "centroid", of(heat),
     "[modelinfo]\nx-vartml-decoder=heatmap\n"},
    {"x-vartml-blank", "modelinfo", "0", "-1", of(steps),
     "[modelinfo]\nx-vartml-decoder=ctc-text\nx-vartml-labels=a;b;c;\n"},
    {"x-vartml-columns", "modelinfo", "x0y0x1y1,score,class", "y0x0y1x1,score,class", of(rows)},
    {"x-vartml-box-order", "modelinfo", "xyxy", "yxyx", of(listed),
     "[modelinfo]\nx-vartml-decoder=detr\n"},
    {"x-vartml-background", "modelinfo", "none", "last", of(scored),
     "[modelinfo]\nx-vartml-decoder=ssd\n[boxes]\ndir=output\nx-vartml-role=boxes\n"},
    {"x-vartml-box-unit", "modelinfo", "picture", "pixel", of(listed),
     "[modelinfo]\nx-vartml-decoder=detr\n"},
    {"x-vartml-resize", "images", "stretch", "letterbox", fed},
    {"x-vartml-pad", "images", "0", "9", fed, "[images]\ndir=input\nx-vartml-resize=letterbox\n"},
    {"x-vartml-crop-fraction", "images", "0.5", "1", fed,
     "[images]\ndir=input\nx-vartml-resize=crop\n"},
    {"x-vartml-interpolation", "images", "bilinear", "area", fed},
    {"x-vartml-channels", "images", "rgb", "bgr", fed},
    {"x-vartml-mean", "images", "0", "1,2,3", fed},
    {"x-vartml-scale", "images", "1", "0.5", fed},
    {"ranges", "images", "0,1", "0,255", fed},
    {"x-vartml-picture", "images", "rgb", "bgr", fed},
    {"x-vartml-weights-for", "images", "bytes", "units", fed_to_yolox,
     "[modelinfo]\nx-vartml-decoder=yolox\n"},
    {"x-vartml-feed", "images", "const:64,64", "frame-size", of(listed),
     "[modelinfo]\nx-vartml-decoder=detr\nx-vartml-box-order=xyxy\n"},
    {"id", "out", "yolo-v8-out", "something", of_yolo_v8},
    {"x-vartml-role", "boxes", "boxes", "offsets", of(faces)},
    {"x-vartml-stride", "out", "8", "4", of(heat), "[modelinfo]\nx-vartml-decoder=heatmap\n"},
    {"x-vartml-quant-scale", "out", "0.005", "0.002", of(codes)},
    {"x-vartml-zero-point", "out", "0", "20", of(codes),
     "[out]\ndir=output\nx-vartml-quant-scale=0.005\n"},
    {"x-vartml-ends-in", "out", "linear", "softmax", of(classes)},
    {"x-vartml-picture", "out", "rgb", "bgr", drawn},
    {"ranges", "out", "0,1", "0,1;0,2;-1,1", drawn},
};

const char* direction_of(const KeyCase& c) {
    const std::string_view section = c.section;
    return section == "modelinfo" ? "" : section == "images" ? "dir=input\n" : "dir=output\n";
}

ModelInfo parsed(const KeyCase& c, const std::string& lines) {
    const std::string text =
        std::string(c.beside) + "[" + c.section + "]\n" + direction_of(c) + lines;
    auto info = parse_modelinfo(text, "");
    EXPECT_TRUE(info) << text << (info ? "" : info.error().message);
    return info ? *std::move(info) : ModelInfo{};
}
ModelInfo sidecar(const KeyCase& c, const char* value) {
    return parsed(c, std::string(c.key) + "=" + value + "\n");
}

// What is written of the section.
std::string lines_of(const KeyCase& c, const ModelInfo& info) {
    for (const ModelInfo::Input& input : info.inputs)
        if (input.name == c.section) return vision::key_lines(vision::input_keys(), input);
    for (const ModelInfo::Output& output : info.outputs)
        if (output.name == c.section) return vision::key_lines(vision::output_keys(), output);
    return vision::key_lines(vision::general_keys(), info);
}

TEST(SidecarKeys, EachChangeWhatComesOut) {
    for (const KeyCase& c : cases) {
        const std::string one = c.result(sidecar(c, c.one)), other = c.result(sidecar(c, c.other));
        EXPECT_NE(one, other) << c.key << "=" << c.one << " or " << c.other;
        EXPECT_FALSE(one.empty()) << c.key;
    }
}

TEST(SidecarKeys, AreReadAsTheyWereWritten) {
    for (const KeyCase& c : cases) {
        std::set<std::string> written;
        for (const char* value : {c.one, c.other}) {
            const ModelInfo info = sidecar(c, value);
            const std::string lines = lines_of(c, info);
            const ModelInfo again = parsed(c, lines);
            EXPECT_EQ(lines_of(c, again), lines) << c.key;
            EXPECT_EQ(c.result(again), c.result(info)) << lines;
            written.insert(lines);
        }
        EXPECT_EQ(written.size(), 2u) << c.key << ": " << *written.begin();
    }
}

TEST(SidecarKeys, AreAllHere) {
    std::set<std::string_view> tested;
    for (const KeyCase& c : cases) tested.insert(c.key);
    const auto check = [&](auto keys) {
        for (const auto& key : keys) {
            const bool says_nothing_new = !key.set && key.name != "ranges";
            EXPECT_TRUE(says_nothing_new || tested.contains(key.name)) << key.name;
            for (const std::string_view words :
                 {key.expected, key.fallback, key.reader, key.meaning})
                EXPECT_FALSE(words.empty()) << key.name << " has an empty cell in docs/sidecar.md";
        }
    };
    // There is one of each: tests/vision/modelinfo.cpp refuses others.
    tested.insert({"version", "x-vartml-version"});
    // No decoder looks at these; tests/vision/modelinfo.cpp reads them.
    tested.insert({"group-id", "dims-order"});
    check(vision::general_keys());
    check(vision::input_keys());
    check(vision::output_keys());
}

}  // namespace
