// SPDX-License-Identifier: Apache-2.0
// Tensors made of their shape, of few numbers or of parts of another: Shape, Range, Trilu …
#include <algorithm>
#include <cstring>

#include "lib/cpu/kernel.h"
#include "lib/cpu/moves.h"

namespace vartml::cpu {

namespace {

// Shape and Size read no element: the input may have no memory.
Result<void> shape_of(const Call& call) {
    const Shape& shape = call.inputs[0].shape;
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t start = std::clamp<int64_t>(call.node.get("start", int64_t{0}), 0, rank);
    const int64_t end = std::clamp<int64_t>(call.node.get("end", rank), start, rank);
    std::copy(shape.begin() + start, shape.begin() + end, call.outputs[0].as<int64_t>());
    return {};
}

Result<void> size_of(const Call& call) {
    *call.outputs[0].as<int64_t>() = call.inputs[0].elements();
    return {};
}

Result<void> constant_of_shape(const Call& call) {
    const Array& y = call.outputs[0];
    if (!call.has_input(1) || call.inputs[1].elements() == 0) {
        std::memset(y.data, 0, y.size_bytes());
        return {};
    }
    copy_elements(y.shape, vartml::size_bytes(y.type), call.inputs[1].data, {}, y.data,
                  strides_of(y.shape));
    return {};
}

// Element i is start + i * delta, rounded once; integers wrap.
Result<void> range(const Call& call) {
    const Array& y = call.outputs[0];
    for (const Array& x : call.inputs) {
        if (x.type != y.type || x.elements() != 1)
            return bad_data(call, "has limits other than one number of the output's type each");
    }
    const bool known = graph::with_type(y.type, [&]<typename T>(T) {
        const auto start = number(*call.inputs[0].as<T>()), delta = number(*call.inputs[2].as<T>());
        const auto elements = y.span<T>();
        for (size_t i = 0; i < elements.size(); ++i) {
            if constexpr (std::is_integral_v<T>) {
                elements[i] =
                    static_cast<T>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(delta));
            } else {
                elements[i] =
                    graph::convert<T>(static_cast<double>(start) +
                                      static_cast<double>(i) * static_cast<double>(delta));
            }
        }
    });
    return known ? Result<void>() : no_type(call, y.type);
}

// The diagonal that `k` names in matrices of this size: any far away is like the next one outside.
int64_t diagonal(int64_t k, const Shape& shape) {
    const int64_t rows = shape[shape.size() - 2], columns = shape[shape.size() - 1];
    return std::clamp<int64_t>(k, -rows - 1, columns + 1);
}

Result<void> trilu(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    if (x.shape.size() < 2) return bad_data(call, "has an input of rank 0 or 1");
    if (y.elements() == 0) return {};
    const int64_t given = read_integer(call, 1, call.node.get("k", int64_t{0}));
    const int64_t k = diagonal(given, x.shape);
    const bool upper = call.node.get("upper", int64_t{1}) != 0;
    const int64_t columns = x.shape.back(), rows = x.shape[x.shape.size() - 2];
    const size_t bytes = vartml::size_bytes(x.type),
                 row_bytes = static_cast<size_t>(columns) * bytes;
    std::memset(y.data, 0, y.size_bytes());
    for (int64_t row = 0; row < x.elements() / columns; ++row) {
        const int64_t edge = row % rows + k;  // the column on the diagonal
        const int64_t first = upper ? std::clamp<int64_t>(edge, 0, columns) : 0;
        const int64_t end = upper ? columns : std::clamp<int64_t>(edge + 1, 0, columns);
        const size_t at = static_cast<size_t>(row) * row_bytes + static_cast<size_t>(first) * bytes;
        std::memcpy(y.data + at, x.data + at, static_cast<size_t>(end - first) * bytes);
    }
    return {};
}

Result<void> eye_like(const Call& call) {
    const Array& y = call.outputs[0];
    std::memset(y.data, 0, y.size_bytes());
    const int64_t k = diagonal(call.node.get("k", int64_t{0}), y.shape);
    const bool known = graph::with_type(y.type, [&]<typename T>(T) {
        T* row = y.as<T>();
        for (int64_t i = 0; i < y.shape[0]; ++i, row += y.shape[1]) {
            if (i + k >= 0 && i + k < y.shape[1]) row[i + k] = graph::convert<T>(1.0F);
        }
    });
    return known ? Result<void>() : no_type(call, y.type);
}

// The first elements of each sequence in reverse, the others as they are.
Result<void> reverse_sequence(const Call& call) {
    const Array &x = call.inputs[0], &lengths = call.inputs[1], &y = call.outputs[0];
    const int64_t batch_axis = call.node.get("batch_axis", int64_t{1});
    const int64_t time_axis = call.node.get("time_axis", int64_t{0});
    if (x.shape.size() < 2 || std::min(batch_axis, time_axis) != 0 ||
        std::max(batch_axis, time_axis) != 1) {
        return bad_data(call, "has batch and time axes other than 0 and 1");
    }
    const int64_t batch = x.shape[static_cast<size_t>(batch_axis)];
    const int64_t time = x.shape[static_cast<size_t>(time_axis)];
    if (lengths.elements() != batch) {
        return bad_data(call, "has " + std::to_string(lengths.elements()) + " lengths for " +
                                  std::to_string(batch) + " sequences");
    }
    const auto sizes = read_numbers<int64_t>(lengths);
    const size_t bytes =
        static_cast<size_t>(around_axis(x.shape, 1).inner) * vartml::size_bytes(x.type);
    const bool batch_first = batch_axis == 0;
    for (int64_t b = 0; b < batch; ++b) {
        const int64_t length = sizes[static_cast<size_t>(b)];
        if (length < 0 || length > time) {
            return bad_data(call, "reverses " + std::to_string(length) + " of " +
                                      std::to_string(time) + " elements");
        }
        const auto offset = [&](int64_t t) {
            return static_cast<size_t>(batch_first ? b * time + t : t * batch + b) * bytes;
        };
        for (int64_t t = 0; t < time && bytes > 0; ++t) {
            const int64_t from = t < length ? length - 1 - t : t;
            std::memcpy(y.data + offset(t), x.data + offset(from), bytes);
        }
    }
    return {};
}

// The middle of the input, or the input in the middle of zeros, along each axis.
Result<void> run_center_crop_pad(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    std::memset(y.data, 0, y.size_bytes());
    const Strides from = strides_of(x.shape), to = strides_of(y.shape);
    Shape common = y.shape;
    int64_t first = 0, target = 0;
    for (size_t i = 0; i < common.size(); ++i) {
        const int64_t more = y.shape[i] - x.shape[i];
        common[i] = std::min(x.shape[i], y.shape[i]);
        first += more < 0 ? -more / 2 * from[i] : 0;
        target += more > 0 ? more / 2 * to[i] : 0;
    }
    if (common.elements() == 0) return {};
    const size_t size = vartml::size_bytes(y.type);
    copy_elements(common, size, x.data + static_cast<size_t>(first) * size, from,
                  y.data + static_cast<size_t>(target) * size, to);
    return {};
}

constexpr KernelRow rows[] = {
    {"CenterCropPad", run_center_crop_pad},
    {"ConstantOfShape", constant_of_shape},
    {"EyeLike", eye_like},
    {"Range", range},
    {"ReverseSequence", reverse_sequence},
    {"Shape", shape_of},
    {"Size", size_of},
    {"Trilu", trilu},
};

}  // namespace

std::span<const KernelRow> movement_fill_kernels() {
    return rows;
}

}  // namespace vartml::cpu
