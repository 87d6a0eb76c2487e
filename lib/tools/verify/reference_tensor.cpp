// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/reference_tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace vartml::verify {
namespace {

using Index = std::vector<uint32_t>;

// The next index in row-major order; false after the last.
bool advance(Index& index, const std::vector<uint32_t>& shape) {
    for (size_t d = shape.size(); d-- > 0;) {
        if (++index[d] < shape[d]) return true;
        index[d] = 0;
    }
    return false;
}

size_t block_of(Layout layout) {
    switch (layout) {
        case Layout::HCWNC4:
            return 4;
        case Layout::HCWNC8:
            return 8;
        case Layout::HCWNC16:
            return 16;
        default:
            return 0;
    }
}

// Where an element lies, in elements; -1 where the two views are not of one tensor.
class Places {
public:
    Places(const TensorView& view, const TensorView& cpu) : view_(view), cpu_(cpu) {
        const size_t rank = cpu.shape.size();
        const bool image = rank == 4 && (cpu.layout == Layout::NCHW || cpu.layout == Layout::NHWC);
        block_ = block_of(view.layout);
        if (block_ != 0) {
            good_ = image && view.shape.size() == 5;
            return;
        }
        if (view.shape.size() != rank) return;
        axes_.resize(rank);
        for (size_t p = 0; p < rank; ++p)
            axes_[p] = view.order.size() == rank ? view.order[p] : static_cast<uint32_t>(p);
        if (image && view.layout == Layout::NHWC && cpu.layout == Layout::NCHW)
            axes_ = {0, 2, 3, 1};
        if (image && view.layout == Layout::NCHW && cpu.layout == Layout::NHWC)
            axes_ = {0, 3, 1, 2};
        good_ = true;
        for (size_t p = 0; p < rank; ++p)
            good_ = good_ && axes_[p] < rank && view.shape[p] >= cpu.shape[axes_[p]];
    }

    bool good() const { return good_; }
    size_t at(const Index& index) const {
        if (block_ != 0) {
            const bool last = cpu_.layout == Layout::NHWC;
            const uint32_t c = index[last ? 3 : 1], h = index[last ? 1 : 2],
                           w = index[last ? 2 : 3];
            const std::vector<uint32_t>& s = view_.shape;  // H, blocks, W, N, block
            return (((size_t{h} * s[1] + c / block_) * s[2] + w) * s[3] + index[0]) * s[4] +
                   c % block_;
        }
        size_t place = 0;
        for (size_t p = 0; p < axes_.size(); ++p) place = place * view_.shape[p] + index[axes_[p]];
        return place;
    }

private:
    const TensorView &view_, &cpu_;
    std::vector<uint32_t> axes_;  // CPU dimension at each position of the view
    size_t block_ = 0;
    bool good_ = false;
};

template <typename T>
void store(double value, std::byte* at) {
    const auto typed = [&] {
        if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
        const double rounded = std::nearbyint(value);
        const auto low = static_cast<double>(std::numeric_limits<T>::min());
        const auto high = static_cast<double>(std::numeric_limits<T>::max());
        if (!(rounded > low)) return std::numeric_limits<T>::min();
        return rounded >= high ? std::numeric_limits<T>::max() : static_cast<T>(rounded);
    }();
    std::memcpy(at, &typed, sizeof typed);
}

uint16_t to_bf16(double value) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// To the nearest of the 11 bits that a half has, by arithmetic instead of bits.
uint16_t to_fp16(double value) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::abs(value);
    if (std::isnan(value)) return 0x7e00;
    if (magnitude >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
    int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), -14) : -14;
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
    return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + steps));
}

void store_as(DataType type, double value, std::byte* at) {
    switch (type) {
        case DataType::float32:
            return store<float>(value, at);
        case DataType::float64:
            return store<double>(value, at);
        case DataType::bf16: {
            const uint16_t bits = to_bf16(value);
            std::memcpy(at, &bits, sizeof bits);
            return;
        }
        case DataType::fp16: {
            const uint16_t bits = to_fp16(value);
            std::memcpy(at, &bits, sizeof bits);
            return;
        }
        case DataType::int8:
            return store<int8_t>(value, at);
        case DataType::int16:
            return store<int16_t>(value, at);
        case DataType::uint16:
            return store<uint16_t>(value, at);
        case DataType::int32:
            return store<int32_t>(value, at);
        case DataType::uint32:
            return store<uint32_t>(value, at);
        case DataType::int64:
            return store<int64_t>(value, at);
        case DataType::uint64:
            return store<uint64_t>(value, at);
        default:
            return store<uint8_t>(value, at);
    }
}

}  // namespace

Result<TensorData> reference_values(const TensorView& view, const TensorView& cpu,
                                    const Buffer& bytes) {
    const Places places(view, cpu);
    if (!places.good() || bytes.size() != view.size_bytes)
        return Error{ErrorCode::unsupported, "verify has no reference for a tensor of layout " +
                                                 std::string(to_string(view.layout)) +
                                                 " of one of layout " +
                                                 std::string(to_string(cpu.layout))};
    const size_t from = size_bytes(view.data_type), to = size_bytes(cpu.data_type);
    const bool same_type = view.data_type == cpu.data_type && !view.quantisation;
    TensorData data{cpu.data_type, {cpu.shape.begin(), cpu.shape.end()}, Buffer(cpu.size_bytes)};
    const Quantisation q = view.quantisation.value_or(Quantisation{});
    const bool is_code = !is_float(view.data_type) && is_float(cpu.data_type);
    if (cpu.size == 0) return data;
    const std::vector<double> numbers =
        same_type ? std::vector<double>() : numbers_of({view.data_type, {}, bytes});
    Index index(cpu.shape.size());
    size_t i = 0;
    do {
        const size_t place = places.at(index);
        if (same_type) {
            std::memcpy(&data.bytes[i * to], &bytes[place * from], to);
        } else {
            const double value = numbers.empty() ? 0 : numbers[place];
            store_as(cpu.data_type, is_code ? (value - q.zero_point) * q.scale : value,
                     &data.bytes[i * to]);
        }
        ++i;
    } while (advance(index, cpu.shape));
    return data;
}

TensorData tensor_of(DataType type, const std::vector<uint32_t>& shape,
                     const std::vector<double>& numbers) {
    const size_t size = size_bytes(type);
    TensorData data{type, {shape.begin(), shape.end()}, Buffer(numbers.size() * size)};
    for (size_t i = 0; i < numbers.size(); ++i) store_as(type, numbers[i], &data.bytes[i * size]);
    return data;
}

TensorData in_bound(const TensorData& data, const std::vector<uint32_t>& bound) {
    const size_t rank = bound.size(), size = size_bytes(data.type);
    if (data.shape.size() != rank) return data;
    bool equal = true;
    for (size_t d = 0; d < rank; ++d) {
        if (data.shape[d] > bound[d]) return data;
        equal = equal && data.shape[d] == bound[d];
    }
    if (equal) return data;
    size_t elements = 1;
    for (const uint32_t d : bound) elements *= d;
    const bool is_signed = data.type == DataType::int8 || data.type == DataType::int16 ||
                           data.type == DataType::int32 || data.type == DataType::int64;
    TensorData result{data.type,
                      {bound.begin(), bound.end()},
                      Buffer(elements * size, static_cast<std::byte>(is_signed ? 0xff : 0))};
    if (data.bytes.empty()) return result;
    const std::vector<uint32_t> shape(data.shape.begin(), data.shape.end());
    Index index(rank);
    size_t i = 0;
    do {
        size_t place = 0;
        for (size_t d = 0; d < rank; ++d) place = place * bound[d] + index[d];
        std::memcpy(&result.bytes[place * size], &data.bytes[i++ * size], size);
    } while (advance(index, shape));
    return result;
}

}  // namespace vartml::verify
