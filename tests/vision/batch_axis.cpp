// SPDX-License-Identifier: Apache-2.0
// Outputs without a batch axis give what the same outputs with one give.
#include <gtest/gtest.h>

#include "tests/vision/map_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

// The tensor without its first axis, as a runner describes it.
StoredTensor without_batch(StoredTensor tensor) {
    const auto strip = [](const TensorView& view) {
        const std::vector<uint32_t> shape(view.shape.begin() + 1, view.shape.end());
        std::vector<uint32_t> order;
        for (uint32_t i = 0; i < shape.size(); ++i) order.push_back(i);
        TensorView stripped = make_view(view.data_type, Layout::GENERIC, shape, order);
        stripped.quantisation = view.quantisation;
        return stripped;
    };
    tensor.info.cpu = strip(tensor.info.cpu);
    if (tensor.info.hw) tensor.info.hw = strip(*tensor.info.hw);
    return tensor;
}

void expect_same(const Decoded& a, const Decoded& b) {
    ASSERT_EQ(a.detections.size(), b.detections.size());
    EXPECT_FALSE(a.detections.empty());
    for (size_t i = 0; i < a.detections.size(); ++i) {
        EXPECT_EQ(a.detections[i].x0, b.detections[i].x0);
        EXPECT_EQ(a.detections[i].y1, b.detections[i].y1);
        EXPECT_EQ(a.detections[i].score, b.detections[i].score);
        EXPECT_EQ(a.detections[i].class_id, b.detections[i].class_id);
    }
}

TEST(BatchAxis, ThatADenseHeadLacksChangesNothing) {
    for (const bool hw : {false, true}) {
        RefTensor head = random_head(8400, 84, true, 4, 7, centred_value);
        const StoredTensor tensor =
            hw ? stored_hw(head, "output0", DataType::int8, {0.5, 3}) : stored_cpu(head, "output0");
        const Decoded with = decode_tensors({tensor}, {}, 640, 640, {.decoder = "yolo-v8"});
        const Decoded without =
            decode_tensors({without_batch(tensor)}, {}, 640, 640, {.decoder = "yolo-v8"});
        expect_same(with, without);
    }
}

template <typename T>
StoredTensor list(const char* name, DataType type, std::vector<uint32_t> shape,
                  const std::vector<T>& values) {
    StoredTensor tensor;
    tensor.info.name = name;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < shape.size(); ++i) order.push_back(i);
    tensor.info.cpu = make_view(type, Layout::GENERIC, std::move(shape), order);
    tensor.bytes.resize(values.size() * sizeof(T));
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    return tensor;
}

TEST(BatchAxis, ThatListsOfBoxesLackChangesNothing) {
    const std::vector<StoredTensor> tensors = {
        list<int64_t>("labels", DataType::int64, {2}, {3, 1}),
        list<float>("boxes", DataType::float32, {2, 4}, {.1f, .2f, .3f, .4f, .5f, .5f, .9f, .8f}),
        list<float>("scores", DataType::float32, {2}, {.9f, .6f})};
    const Decoded decoded = decode_tensors(tensors, {}, 100, 200);  // detr, by its shapes
    ASSERT_EQ(decoded.detections.size(), 2u);
    EXPECT_EQ(decoded.detections[0].class_id, 3);
    EXPECT_FLOAT_EQ(decoded.detections[0].x0, 10);
    EXPECT_FLOAT_EQ(decoded.detections[0].y1, 80);
    EXPECT_EQ(decoded.detections[1].class_id, 1);
}

TEST(BatchAxis, ThatACountNeedsNotChangesNothing) {
    const std::vector<StoredTensor> tensors = {
        list<float>("classes", DataType::float32, {2}, {3, 1}),
        list<float>("boxes", DataType::float32, {2, 4}, {.2f, .1f, .4f, .3f, .5f, .5f, .9f, .8f}),
        list<float>("scores", DataType::float32, {2}, {.9f, .6f}),
        list<float>("count", DataType::float32, {1}, {1})};
    const Decoded decoded = decode_tensors(tensors, {}, 100, 200);  // ssd, by its shapes
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_EQ(decoded.detections[0].class_id, 3);
    EXPECT_FLOAT_EQ(decoded.detections[0].x0, 10);
    EXPECT_FLOAT_EQ(decoded.detections[0].y1, 80);
}

TEST(BatchAxis, IsNotAddedWhereAnOutputHasOne) {
    const auto info = [](std::vector<uint32_t> shape) {
        TensorInfo made;
        made.name = "out";
        made.cpu = make_view(DataType::float32, Layout::GENERIC, std::move(shape));
        return made;
    };
    const TensorInfo outputs[] = {info({1, 8400, 3}), info({84, 8400})};
    EXPECT_FALSE(Decoder::create({}, outputs, 640, 640, {}));
    const TensorInfo picture = info({1, 1000});
    const auto decoder = Decoder::create({}, {&picture, 1}, 224, 224, {});
    ASSERT_TRUE(decoder);
    EXPECT_EQ(decoder->family(), "classify");
}

}  // namespace
