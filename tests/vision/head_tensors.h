// SPDX-License-Identifier: Apache-2.0
// Random heads as a model would give them, and the same values in the NPU's view.
#pragma once
#include <vartml/postprocess.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "tests/vision/reference.h"

namespace vartml::test {

// An output with its bytes, in some view.
struct StoredTensor {
    TensorInfo info;  // cpu set; hw set when `bytes` hold it
    std::vector<uint8_t> bytes;

    OutputTensor output() const {
        return {bytes.data(), info.name, info.hw ? &*info.hw : &info.cpu, &info.cpu};
    }
};

// What the decoders are told of an output.
inline TensorInfo output_of(const char* name, std::vector<uint32_t> shape) {
    TensorInfo info;
    info.name = name;
    info.cpu = make_view(DataType::float32, shape.size() == 3 ? Layout::NHW : Layout::GENERIC,
                         std::move(shape));
    return info;
}

inline std::vector<std::string> labels(size_t count) {
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) names.push_back("name " + std::to_string(i));
    return names;
}

inline std::vector<uint32_t> shape_of(const RefTensor& t) {
    const auto positions = static_cast<uint32_t>(t.positions),
               attributes = static_cast<uint32_t>(t.attributes);
    if (t.attributes_first) return {1, attributes, positions};
    return {1, positions, attributes};
}

// The CPU view: float32, dense.
inline StoredTensor stored_cpu(const RefTensor& t, const std::string& name) {
    StoredTensor stored;
    stored.info.name = name;
    stored.info.cpu = make_view(DataType::float32, Layout::NHW, shape_of(t));
    stored.bytes.resize(t.data.size() * sizeof(float));
    std::memcpy(stored.bytes.data(), t.data.data(), stored.bytes.size());
    return stored;
}

inline uint16_t bf16_of(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// The NPU's view: the innermost dimension padded to 8 with values that would win if they were read.
// Changes `t` to what a runner would dequantise the stored values to.
inline StoredTensor stored_hw(RefTensor& t, const std::string& name, DataType type,
                              Quantisation q = {}) {
    StoredTensor stored;
    stored.info.name = name;
    stored.info.cpu = make_view(DataType::float32, Layout::NHW, shape_of(t));
    auto shape = stored.info.cpu.shape;
    const size_t inner = shape[2], padded = (inner + 7) / 8 * 8;
    shape[2] = static_cast<uint32_t>(padded);
    stored.info.hw = make_view(type, Layout::NHW, shape);
    const bool integer =
        type == DataType::int8 || type == DataType::uint8 || type == DataType::int16;
    if (integer) stored.info.hw->quantisation = q;
    const size_t size = size_bytes(type);
    stored.bytes.assign(shape[1] * padded * size, 0x7b);  // large in every type
    for (size_t i = 0; i < t.data.size(); ++i) {
        uint8_t* element = &stored.bytes[(i / inner * padded + i % inner) * size];
        if (type == DataType::float32) {
            std::memcpy(element, &t.data[i], 4);
        } else if (type == DataType::bf16) {
            const uint16_t bits = bf16_of(t.data[i]);
            std::memcpy(element, &bits, 2);
            t.data[i] = std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
        } else {
            const auto scale = static_cast<float>(q.scale);
            const int least = type == DataType::int8 ? -128 : type == DataType::uint8 ? 0 : -32768;
            const int greatest = type == DataType::int8    ? 127
                                 : type == DataType::uint8 ? 255
                                                           : 32767;
            const int value =
                std::clamp(static_cast<int>(std::nearbyint(t.data[i] / scale)) + q.zero_point,
                           least, greatest);
            std::memcpy(element, &value, size);  // little-endian
            t.data[i] = static_cast<float>(value - q.zero_point) * scale;
        }
    }
    return stored;
}

// A head with few likely positions, in clusters so that NMS has work; columns 0 to 3 are filled by
// `box`.
template <typename Box>
RefTensor random_head(size_t positions, size_t attributes, bool attributes_first,
                      size_t first_score, unsigned seed, Box box, double likely = 0.02) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> unit(0, 1);
    RefTensor t{std::vector<float>(positions * attributes), positions, attributes,
                attributes_first};
    for (size_t p = 0; p < positions; ++p) {
        const bool high = unit(random) < likely;
        for (size_t a = 0; a < attributes; ++a) {
            float value = a < 4 ? box(a, p, random) : unit(random) * 0.2f;
            if (a >= first_score && high) value = unit(random);
            if (a == 4 && first_score == 5)
                value = high ? 0.5f + unit(random) / 2 : unit(random) * 0.2f;
            t.data[attributes_first ? a * positions + p : p * attributes + a] = value;
        }
    }
    return t;
}

// Centre anywhere near one of four places, size 20 to 120 pixels.
inline float centred_value(size_t attribute, size_t, std::mt19937& random) {
    std::uniform_real_distribution<float> around(-15, 15), side(20, 120);
    const float centres[] = {60, 150, 200, 300};
    return attribute < 2 ? centres[random() % 4] + around(random) : side(random);
}

}  // namespace vartml::test
