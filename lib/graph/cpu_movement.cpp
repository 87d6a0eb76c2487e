// SPDX-License-Identifier: Apache-2.0
// Operators that only move elements: bytes of the element's size, whatever its type.
#include <algorithm>
#include <cstring>

#include "lib/graph/kernel.h"
#include "lib/graph/moves.h"

namespace vartml::cpu {

namespace {

using Ints = std::vector<int64_t>;

size_t element_bytes(const Array& array) {
    return vartml::size_bytes(array.type);
}

std::byte* at_element(const Array& array, int64_t element) {
    return array.data + element * static_cast<int64_t>(element_bytes(array));
}

Result<void> reshape(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    if (x.elements() != y.elements()) {
        return bad_data(call, "makes " + std::to_string(y.elements()) + " elements of " +
                                  std::to_string(x.elements()));
    }
    if (x.elements() > 0) std::memcpy(y.data, x.data, x.size_bytes());
    return {};
}

// Elements of `shape`, in the order of the axes `perm`.
void permute(const Array& x, const Array& y, const Shape& shape, std::span<const int64_t> perm) {
    const Strides dense = strides_of(shape);
    Shape permuted = shape;
    Strides strides{};
    for (size_t i = 0; i < perm.size(); ++i) {
        permuted[i] = shape[static_cast<size_t>(perm[i])];
        strides[i] = dense[static_cast<size_t>(perm[i])];
    }
    copy_elements(permuted, element_bytes(x), x.data, strides, y.data, strides_of(permuted));
}

Result<void> transpose(const Call& call) {
    const Array& x = call.inputs[0];
    permute(x, call.outputs[0], x.shape, call.node.get("perm", Ints()));
    return {};
}

// Views of rank 6, transposed.
Result<void> depth_to_space(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const Shape& s = x.shape;
    const int64_t b = call.node.get("blocksize", int64_t{1}), c = s[1] / (b * b);
    constexpr int64_t columns[] = {0, 1, 4, 2, 5, 3}, depths[] = {0, 3, 4, 1, 5, 2};
    if (call.node.get("mode", "DCR") == "CRD") {
        permute(x, y, {s[0], c, b, b, s[2], s[3]}, columns);
    } else {
        permute(x, y, {s[0], b, b, c, s[2], s[3]}, depths);
    }
    return {};
}

Result<void> space_to_depth(const Call& call) {
    const Array& x = call.inputs[0];
    const Shape& s = x.shape;
    const int64_t b = call.node.get("blocksize", int64_t{1});
    constexpr int64_t perm[] = {0, 3, 5, 1, 2, 4};
    permute(x, call.outputs[0], {s[0], s[1], s[2] / b, b, s[3] / b, b}, perm);
    return {};
}

// ---- slice
// -------------------------------------------------------------------------------------------------------

struct Range {
    int64_t start = 0, step = 1, count = 0;
};

// Elements from `start` on in steps before `end`, both in 0 to size, or -1 to size - 1 going down.
Range make_range(int64_t start, int64_t end, int64_t step, int64_t size) {
    // A longer step takes the same elements.
    step = std::clamp<int64_t>(step, -std::max<int64_t>(size, 1), std::max<int64_t>(size, 1));
    start = std::clamp<int64_t>(start, 0, step > 0 ? size : std::max<int64_t>(size - 1, 0));
    end = std::clamp<int64_t>(end, step > 0 ? 0 : -1, size);
    const int64_t room = step > 0 ? end - start : std::min(start, size - 1) - end;
    return {start, step, room <= 0 ? 0 : (room - 1) / std::abs(step) + 1};
}

// Starts, ends, axes and steps that are inputs count from the end where they are negative.
Result<void> read_ranges(const Call& call, std::vector<Range>& ranges) {
    const Shape& shape = call.inputs[0].shape;
    const Ints starts = read_numbers<int64_t>(call.inputs[1]);
    const Ints ends = call.has_input(2) ? read_numbers<int64_t>(call.inputs[2]) : Ints();
    Ints axes, steps(starts.size(), 1);
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    if (call.has_input(3)) axes = read_numbers<int64_t>(call.inputs[3]);
    if (call.has_input(4)) steps = read_numbers<int64_t>(call.inputs[4]);
    if (ends.size() != starts.size() || axes.size() != starts.size() ||
        steps.size() != starts.size()) {
        return bad_data(call, "has starts, ends, axes and steps of different lengths");
    }
    const auto rank = static_cast<int64_t>(shape.size());
    for (size_t i = 0; i < axes.size(); ++i) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank || steps[i] == 0) {
            return bad_data(call, "slices axis " + std::to_string(axes[i]) + " of " +
                                      std::to_string(rank) + " with the step " +
                                      std::to_string(steps[i]));
        }
        const int64_t size = shape[static_cast<size_t>(axis)];
        const auto wrap = [size](int64_t at) {
            return at < 0 ? std::max<int64_t>(at + size, -1) : at;
        };
        ranges[static_cast<size_t>(axis)] =
            make_range(wrap(starts[i]), wrap(ends[i]), steps[i], size);
    }
    return {};
}

Result<void> slice(const Call& call) {
    const Array& x = call.inputs[0];
    Array& y = call.outputs[0];
    std::vector<Range> ranges;
    for (const int64_t size : x.shape) ranges.push_back({0, 1, size});
    if (call.inputs.size() > 1) {
        if (auto ok = read_ranges(call, ranges); !ok) return ok;
    } else {
        const Ints axes = call.node.get("axes", Ints()), starts = call.node.get("starts", Ints());
        const Ints ends = call.node.get("ends", Ints()),
                   steps = call.node.get("steps", Ints(axes.size(), 1));
        for (size_t i = 0; i < axes.size(); ++i) {
            const auto axis = static_cast<size_t>(axes[i]);
            ranges[axis] = make_range(starts[i], ends[i], steps[i], x.shape[axis]);
        }
    }
    const Strides dense = strides_of(x.shape);
    Strides strides{};
    int64_t first = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
        if (ranges[i].count > y.shape[i]) return bad_data(call, "takes more than its output holds");
        y.shape[i] = ranges[i].count;
        strides[i] = dense[i] * ranges[i].step;
        first += dense[i] * ranges[i].start;
    }
    if (y.elements() == 0) return {};
    copy_elements(y.shape, element_bytes(x), at_element(x, first), strides, y.data,
                  strides_of(y.shape));
    return {};
}

// ---- split and concat
// --------------------------------------------------------------------------------------------------------

// Bytes of the whole tensor behind one index of the axes before `axis`.
size_t row_bytes(const Array& array, size_t axis) {
    const AxisView view = around_axis(array.shape, axis);
    return static_cast<size_t>(view.size * view.inner) * element_bytes(array);
}

void copy_rows(const std::byte* src, size_t src_stride, std::byte* dst, size_t dst_stride,
               size_t bytes, int64_t rows) {
    if (bytes == 0) return;
    for (int64_t i = 0; i < rows; ++i, src += src_stride, dst += dst_stride)
        std::memcpy(dst, src, bytes);
}

Result<void> split(const Call& call) {
    const Array& x = call.inputs[0];
    const auto axis = static_cast<size_t>(call.node.get("axis", int64_t{0}));
    const Ints sizes = call.node.get("split", Ints());
    const AxisView view = around_axis(x.shape, axis);
    const size_t row = row_bytes(x, axis);
    const size_t element = static_cast<size_t>(view.inner) * element_bytes(x);
    size_t start = 0;
    for (size_t i = 0; i < call.outputs.size() && i < sizes.size(); ++i) {
        const size_t part = static_cast<size_t>(sizes[i]) * element;
        if (start + part > row) {
            return bad_data(call, "splits off more than the " + std::to_string(view.size) +
                                      " elements of its axis");
        }
        if (call.has_output(i))
            copy_rows(x.data + start, row, call.outputs[i].data, part, part, view.outer);
        start += part;
    }
    return {};
}

Result<void> concat(const Call& call) {
    const Array& y = call.outputs[0];
    const auto axis = static_cast<size_t>(call.node.get("axis", int64_t{0}));
    const size_t row = row_bytes(y, axis);
    const int64_t rows = around_axis(y.shape, axis).outer;
    size_t start = 0;
    for (const Array& x : call.inputs) {
        const size_t part = row_bytes(x, axis);
        if (around_axis(x.shape, axis).outer != rows || start + part > row)
            return bad_data(call, "joins inputs that do not fill its output");
        copy_rows(x.data, part, y.data + start, row, part, rows);
        start += part;
    }
    return {};
}

// ---- repetition and padding
// --------------------------------------------------------------------------------------------------------

Result<void> expand(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    copy_elements(y.shape, element_bytes(x), x.data, broadcast_strides(x.shape, y.shape), y.data,
                  strides_of(y.shape));
    return {};
}

Result<void> tile(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const Strides strides = strides_of(x.shape);
    Offsets offsets(y.shape.size());
    for (size_t axis = 0; axis < offsets.size(); ++axis) {
        for (int64_t i = 0; i < y.shape[axis]; ++i)
            offsets[axis].push_back(i % x.shape[axis] * strides[axis]);
    }
    gather_axes(offsets, x.shape, element_bytes(x), x.data, y.data);
    return {};
}

// given: ONNX operator Pad, the modes other than constant. The position may be outside of the axis,
// which has elements.
int64_t padded_index(int64_t at, int64_t size, std::string_view mode) {
    if (mode == "edge") return std::clamp<int64_t>(at, 0, size - 1);
    const bool wraps = mode == "wrap";
    if (!wraps && size == 1) return 0;
    const int64_t period = wraps ? size : 2 * (size - 1);
    const int64_t phase = ((at % period) + period) % period;
    return phase < size ? phase : period - phase;
}

void pad_with_value(const Call& call, const Ints& pads) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const float value = call.node.get("value", 0.0F);
    graph::with_type(
        y.type, [&]<typename T>(T) { std::ranges::fill(y.span<T>(), graph::convert<T>(value)); });
    const Strides from = strides_of(x.shape), to = strides_of(y.shape);
    Shape kept = x.shape;
    int64_t src = 0, dst = 0;
    for (size_t i = 0; i < kept.size(); ++i) {
        const int64_t skipped = std::max<int64_t>(-pads[i], 0);
        const int64_t added = std::max<int64_t>(pads[i], 0);
        kept[i] = std::max<int64_t>(std::min(x.shape[i] - skipped, y.shape[i] - added), 0);
        src += skipped * from[i];
        dst += added * to[i];
    }
    if (kept.elements() == 0) return;
    copy_elements(kept, element_bytes(x), at_element(x, src), from, at_element(y, dst), to);
}

Result<void> pad(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const Ints pads = call.node.get("pads", Ints());
    const std::string mode = call.node.get("mode", "constant");
    if (y.elements() == 0) return {};
    if (mode == "constant") {
        pad_with_value(call, pads);
        return {};
    }
    const Strides strides = strides_of(x.shape);
    Offsets offsets(y.shape.size());
    for (size_t axis = 0; axis < offsets.size(); ++axis) {
        const int64_t size = x.shape[axis];
        if (size == 0) return bad_data(call, "pads an axis without elements with its elements");
        for (int64_t i = 0; i < y.shape[axis]; ++i)
            offsets[axis].push_back(padded_index(i - pads[axis], size, mode) * strides[axis]);
    }
    gather_axes(offsets, x.shape, element_bytes(x), x.data, y.data);
    return {};
}

constexpr KernelRow rows[] = {
    {"Concat", concat},     {"DepthToSpace", depth_to_space},
    {"Expand", expand},     {"Flatten", reshape},
    {"Pad", pad},           {"Reshape", reshape},
    {"Slice", slice},       {"SpaceToDepth", space_to_depth},
    {"Split", split},       {"Squeeze", reshape},
    {"Tile", tile},         {"Transpose", transpose},
    {"Unsqueeze", reshape},
};

}  // namespace

std::span<const KernelRow> movement_kernels() {
    return rows;
}

// Tensors made of their shape, of few numbers or of parts of another: Shape, Range, Trilu …

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
    const int64_t fill_rows = shape[shape.size() - 2], columns = shape[shape.size() - 1];
    return std::clamp<int64_t>(k, -fill_rows - 1, columns + 1);
}

Result<void> trilu(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    if (x.shape.size() < 2) return bad_data(call, "has an input of rank 0 or 1");
    if (y.elements() == 0) return {};
    const int64_t given = read_integer(call, 1, call.node.get("k", int64_t{0}));
    const int64_t k = diagonal(given, x.shape);
    const bool upper = call.node.get("upper", int64_t{1}) != 0;
    const int64_t columns = x.shape.back(), fill_rows = x.shape[x.shape.size() - 2];
    const size_t bytes = vartml::size_bytes(x.type),
                 row_bytes = static_cast<size_t>(columns) * bytes;
    std::memset(y.data, 0, y.size_bytes());
    for (int64_t row = 0; row < x.elements() / columns; ++row) {
        const int64_t edge = row % fill_rows + k;  // the column on the diagonal
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

constexpr KernelRow fill_rows[] = {
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
    return fill_rows;
}

}  // namespace vartml::cpu
