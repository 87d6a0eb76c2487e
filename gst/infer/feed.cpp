// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/feed.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace vartml::gst::infer {
namespace {

using vartml::DataType;

template <typename T>
void store_integer(double value, void* at) {
    const double rounded = std::nearbyint(value);
    // The limits of 64-bit types are no doubles: their neighbours inside the type are.
    const double low = double(std::numeric_limits<T>::min());
    const double high = sizeof(T) == 8 ? std::nextafter(double(std::numeric_limits<T>::max()), 0)
                                       : double(std::numeric_limits<T>::max());
    const T typed = T(std::clamp(rounded, low, high));
    std::memcpy(at, &typed, sizeof typed);
}

void store_bf16(float value, void* at) {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    bits += 0x7fff + ((bits >> 16) & 1);
    const auto half = uint16_t(bits >> 16);
    std::memcpy(at, &half, sizeof half);
}

void store(DataType type, double value, void* at) {
    switch (type) {
        case DataType::boolean:
        case DataType::uint8:
            return store_integer<uint8_t>(value, at);
        case DataType::int8:
            return store_integer<int8_t>(value, at);
        case DataType::uint16:
            return store_integer<uint16_t>(value, at);
        case DataType::int16:
            return store_integer<int16_t>(value, at);
        case DataType::uint32:
            return store_integer<uint32_t>(value, at);
        case DataType::int32:
            return store_integer<int32_t>(value, at);
        case DataType::uint64:
            return store_integer<uint64_t>(value, at);
        case DataType::int64:
            return store_integer<int64_t>(value, at);
        case DataType::bf16:
            return store_bf16(float(value), at);
        default: {
            const auto typed = float(value);
            std::memcpy(at, &typed, sizeof typed);
        }
    }
}

}  // namespace

vartml::Result<Feed> Feed::create(const std::string& text, const std::string& name,
                                  const vartml::TensorView& view) {
    const auto bad = [&](const std::string& why) {
        return vartml::Error{vartml::ErrorCode::bad_model,
                             "input '" + name + "': x-vartml-feed is '" + text + "', " + why};
    };
    Feed feed;
    feed.type_ = view.data_type;
    feed.count_ = view.size;
    if (view.quantisation) feed.quantisation_ = *view.quantisation;
    if (view.data_type == DataType::fp16 || view.data_type == DataType::float64 ||
        view.data_type == DataType::unknown) {
        return bad("but values of type " + std::string(vartml::to_string(view.data_type)) +
                   " cannot be fed");
    }
    if (text == "frame-size") {
        if (view.size != 2)
            return bad("which gives 2 values, but the input has " + std::to_string(view.size));
        feed.frame_size_ = true;
        feed.values_ = {0, 0};
        return feed;
    }
    if (!text.starts_with("const:")) return bad("expected const:<values> or frame-size");
    const char* at = text.data() + 6;
    const char* const end = text.data() + text.size();
    while (at < end) {
        double value = 0;
        const auto [next, error] = std::from_chars(at, end, value);
        if (error != std::errc()) return bad("expected numbers separated by commas after const:");
        feed.values_.push_back(value);
        at = next < end && *next == ',' ? next + 1 : next;
        if (at == next && at < end) return bad("expected numbers separated by commas after const:");
    }
    if (feed.values_.size() != 1 && feed.values_.size() != view.size) {
        return bad("expected 1 value or " + std::to_string(view.size));
    }
    return feed;
}

void Feed::write(unsigned frame_width, unsigned frame_height, void* tensor) const {
    const size_t step = vartml::size_bytes(type_);
    auto* at = static_cast<unsigned char*>(tensor);
    for (size_t i = 0; i < count_; ++i, at += step) {
        double value = values_[values_.size() == 1 ? 0 : i];
        if (frame_size_) value = i == 0 ? frame_width : frame_height;
        const bool integer = type_ != DataType::bf16 && type_ != DataType::float32;
        if (integer) value = value / quantisation_.scale + quantisation_.zero_point;
        store(type_, value, at);
    }
}

}  // namespace vartml::gst::infer
