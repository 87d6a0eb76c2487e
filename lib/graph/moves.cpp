// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/moves.h"

#include <cstring>

namespace vartml::cpu {

namespace {

// Axes of size 1 left out, and neighbours joined that one stride walks in source and destination.
struct Merged {
    Shape shape;
    Strides src{}, dst{};
};

Merged merge_axes(const Shape& shape, const Strides& src, const Strides& dst) {
    int64_t sizes[max_rank] = {};
    Merged merged;
    size_t rank = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 1) continue;
        if (rank > 0 && merged.src[rank - 1] == src[i] * shape[i] &&
            merged.dst[rank - 1] == dst[i] * shape[i]) {
            sizes[rank - 1] *= shape[i];
        } else {
            sizes[rank++] = shape[i];
        }
        merged.src[rank - 1] = src[i];
        merged.dst[rank - 1] = dst[i];
    }
    merged.shape = Shape(std::span<const int64_t>(sizes, rank));
    return merged;
}

Shape leading(const Shape& shape, size_t rank) {
    return Shape(std::span<const int64_t>(shape).first(rank));
}

}  // namespace

void copy_elements(const Shape& shape, size_t element_bytes, const std::byte* src,
                   const Strides& src_strides, std::byte* dst, const Strides& dst_strides) {
    const int64_t elements = shape.elements();
    if (elements == 0) return;
    const Merged all = merge_axes(shape, src_strides, dst_strides);
    if (all.shape.empty()) {
        std::memcpy(dst, src, element_bytes);
        return;
    }
    const size_t last = all.shape.size() - 1;
    const int64_t size = all.shape[last], from = all.src[last], to = all.dst[last];
    Walk<2> rows(leading(all.shape, last), {all.src, all.dst});
    with_word(element_bytes, [&]<typename T>(T) {
        constexpr int64_t width = sizeof(T);
        for (int64_t row = 0; row < elements / size; ++row, rows.next()) {
            const std::byte* in = src + rows.offset(0) * width;
            std::byte* out = dst + rows.offset(1) * width;
            if (from == 1 && to == 1) {
                std::memcpy(out, in, static_cast<size_t>(size) * sizeof(T));
            } else {
                for (int64_t i = 0; i < size; ++i, in += from * width, out += to * width)
                    std::memcpy(out, in, sizeof(T));
            }
        }
    });
}

Offsets all_offsets(const Shape& shape) {
    const Strides strides = strides_of(shape);
    Offsets offsets(shape.size());
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        for (int64_t i = 0; i < shape[axis]; ++i) offsets[axis].push_back(i * strides[axis]);
    }
    return offsets;
}

void gather_axes(const Offsets& offsets, const Shape& src_shape, size_t element_bytes,
                 const std::byte* src, std::byte* dst) {
    // Trailing axes that stay as they are move as one run.
    const Offsets whole = all_offsets(src_shape);
    size_t moved = offsets.size();
    int64_t run = 1;
    while (moved > 0 && offsets[moved - 1] == whole[moved - 1]) run *= src_shape[--moved];
    const size_t bytes = static_cast<size_t>(run) * element_bytes;
    if (bytes == 0) return;
    if (moved == 0) {
        std::memcpy(dst, src, bytes);
        return;
    }
    int64_t sizes[max_rank] = {};
    for (size_t i = 0; i + 1 < moved; ++i) sizes[i] = static_cast<int64_t>(offsets[i].size());
    const Shape outer(std::span<const int64_t>(sizes, moved - 1));
    const std::vector<int64_t>& inner = offsets[moved - 1];
    const int64_t rows = inner.empty() ? 0 : outer.elements();
    Walk<1> walk(outer, {});
    with_word(element_bytes, [&]<typename T>(T) {
        constexpr int64_t width = sizeof(T);
        for (int64_t row = 0; row < rows; ++row, walk.next()) {
            int64_t at = 0;
            for (size_t i = 0; i < outer.size(); ++i)
                at += offsets[i][static_cast<size_t>(walk.index(i))];
            const std::byte* in = src + at * width;
            for (const int64_t offset : inner) {
                if (run == 1) {
                    std::memcpy(dst, in + offset * width, sizeof(T));
                } else {
                    std::memcpy(dst, in + offset * width, bytes);
                }
                dst += bytes;
            }
        }
    });
}

Result<std::vector<int64_t>> read_indices(const Call& call, size_t i, int64_t size) {
    const Array& array = call.inputs[i];
    if (array.type != DataType::int64 && array.type != DataType::int32)
        return no_type(call, array.type);
    auto indices = read_numbers<int64_t>(array);
    for (int64_t& index : indices) {
        if (index < -size || index >= size) {
            return bad_data(
                call, "takes element " + std::to_string(index) + " of " + std::to_string(size));
        }
        if (index < 0) index += size;
    }
    return indices;
}

int64_t read_integer(const Call& call, size_t i, int64_t fallback) {
    if (!call.has_input(i)) return fallback;
    const auto numbers = read_numbers<int64_t>(call.inputs[i]);
    return numbers.empty() ? fallback : numbers[0];
}

}  // namespace vartml::cpu
