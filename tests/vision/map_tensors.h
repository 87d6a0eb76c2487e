// SPDX-License-Identifier: Apache-2.0
// Random maps as a model would give them, and the same values in the NPU's view.
#pragma once
#include "tests/vision/head_tensors.h"

namespace vartml::test {

// Channels of cells, [channel][row][column].
struct RefMap {
    size_t channels, height, width;
    std::vector<float> data;

    RefMap(size_t c, size_t h, size_t w) : channels(c), height(h), width(w), data(c * h * w) {}
    float& at(size_t c, size_t y, size_t x) { return data[(c * height + y) * width + x]; }
    float at(size_t c, size_t y, size_t x) const { return data[(c * height + y) * width + x]; }
};

inline RefMap random_map(size_t c, size_t h, size_t w, unsigned seed, float low = -1,
                         float high = 1) {
    RefMap map(c, h, w);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> value(low, high);
    for (float& v : map.data) v = value(random);
    return map;
}

enum class MapView { nchw, nhwc, hw_bf16, hw_int8 };
constexpr MapView map_views[] = {MapView::nchw, MapView::nhwc, MapView::hw_bf16, MapView::hw_int8};

// [1,C,h,w], [1,h,w,C], or [1,C,h,w] with an NPU's view in blocks of 8 channels, whose padding
// would win if it were read. Changes `map` to what a runner would dequantise the stored values to.
inline StoredTensor stored_map(RefMap& map, const std::string& name, MapView view) {
    const auto c = static_cast<uint32_t>(map.channels), h = static_cast<uint32_t>(map.height),
               w = static_cast<uint32_t>(map.width);
    StoredTensor stored;
    stored.info.name = name;
    const bool last = view == MapView::nhwc;
    stored.info.cpu = last ? make_view(DataType::float32, Layout::NHWC, {1, h, w, c})
                           : make_view(DataType::float32, Layout::NCHW, {1, c, h, w});
    constexpr float step = 1 / 64.f;
    constexpr int zero_point = -3;
    const bool hw = view == MapView::hw_bf16 || view == MapView::hw_int8;
    const size_t blocks = (c + 7) / 8;
    const size_t size = view == MapView::hw_int8 ? 1 : view == MapView::hw_bf16 ? 2 : 4;
    stored.bytes.assign((hw ? blocks * 8 : c) * h * w * size, 0x7b);
    if (hw) {
        const DataType type = size == 1 ? DataType::int8 : DataType::bf16;
        stored.info.hw = hw_view(stored.info.cpu, Layout::HCWNC8, type);
        if (size == 1) stored.info.hw->quantisation = {step, zero_point};
    }
    for (size_t k = 0; k < c; ++k) {
        for (size_t y = 0; y < h; ++y) {
            for (size_t x = 0; x < w; ++x) {
                float& value = map.at(k, y, x);
                const size_t index = hw     ? ((y * blocks + k / 8) * w + x) * 8 + k % 8
                                     : last ? (y * w + x) * c + k
                                            : (k * h + y) * w + x;
                uint8_t* element = &stored.bytes[index * size];
                if (size == 4) {
                    std::memcpy(element, &value, 4);
                } else if (size == 2) {
                    const uint16_t bits = bf16_of(value);
                    std::memcpy(element, &bits, 2);
                    value = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
                } else {
                    const int q = std::clamp(
                        static_cast<int>(std::nearbyint(value / step)) + zero_point, -128, 127);
                    *element = static_cast<uint8_t>(q);
                    value = static_cast<float>(q - zero_point) * step;
                }
            }
        }
    }
    return stored;
}

// Runs a decoder that must exist on tensors that must be good.
inline Decoded decode_tensors(const std::vector<StoredTensor>& tensors, const ModelInfo& info,
                              uint32_t width, uint32_t height, const DecodeOptions& options = {},
                              const Affine& map = {}, uint32_t frame_width = 0,
                              uint32_t frame_height = 0) {
    std::vector<TensorInfo> infos;
    std::vector<OutputTensor> outputs;
    for (const StoredTensor& tensor : tensors) infos.push_back(tensor.info);
    for (const StoredTensor& tensor : tensors) outputs.push_back(tensor.output());
    Decoded decoded;
    auto decoder = Decoder::create(info, infos, width, height, options);
    EXPECT_TRUE(decoder) << (decoder ? "" : decoder.error().message);
    if (!decoder) return decoded;
    const auto done = decoder->decode(outputs, map, frame_width ? frame_width : width,
                                      frame_height ? frame_height : height, decoded);
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return decoded;
}

}  // namespace vartml::test
