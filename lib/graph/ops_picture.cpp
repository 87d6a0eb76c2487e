// SPDX-License-Identifier: Apache-2.0
// Regions and blocks of pictures: RoiAlign, MaxRoiPool, Col2Im; the embedded pre-process.
#include "lib/graph/ops_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "lib/graph/kernel.h"
#include "lib/graph/moves.h"
#include "lib/graph/ops.h"

namespace vartml::graph {
namespace {

using Ints = std::vector<int64_t>;

Result<Types> infer_roi_align(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &rois = input_type(graph, node, 1);
    if (x.shape.size() != 4 || rois.shape.size() != 2 || rois.shape[1] != 4)
        return bad_inputs(graph, node);
    return Types{{x.data_type,
                  {rois.shape[0], x.shape[1], node.get("output_height", int64_t{1}),
                   node.get("output_width", int64_t{1})}}};
}

Result<Types> infer_max_roi_pool(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &rois = input_type(graph, node, 1);
    const auto pooled = node.get("pooled_shape", Ints());
    if (x.shape.size() != 4 || rois.shape.size() != 2 || rois.shape[1] != 5 || pooled.size() != 2) {
        return bad_inputs(graph, node);
    }
    return Types{{x.data_type, {rois.shape[0], x.shape[1], pooled[0], pooled[1]}}};
}

Result<Types> infer_col2im(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto image = constant_ints(graph, node, 1), block = constant_ints(graph, node, 2);
    if (!image) return image.error();
    if (!block) return block.error();
    int64_t elements = 1;
    for (const int64_t size : *block) elements = bounded_product(elements, size);
    if (x.shape.size() != 3 || elements < 1 || x.shape[1] % elements != 0) {
        return bad_node(node, "has the input " + to_string(x) + " and blocks of " +
                                  to_string(*block) + ", which do not go together");
    }
    Type y{x.data_type, {x.shape[0], x.shape[1] / elements}};
    y.shape.insert(y.shape.end(), image->begin(), image->end());
    return Types{y};
}

Result<Types> infer_picture_input(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto mean = node.get("mean", std::vector<float>());
    const auto channels = static_cast<int64_t>(mean.size());
    const bool fits = x.data_type == DataType::uint8 && x.shape.size() == 4 && x.shape[0] == 1 &&
                      channels >= 1 && channels <= x.shape[3] &&
                      node.get("scale", std::vector<float>()).size() == mean.size();
    if (!fits) {
        return bad_node(node, "has the input " + to_string(x) + " and " + std::to_string(channels) +
                                  " means, expected u8[1,H,W,bytes] and a mean and a scale for "
                                  "each channel");
    }
    const int64_t height = x.shape[1], width = x.shape[2];
    if (node.get("layout", "NCHW") == "NHWC")
        return Types{{DataType::float32, {1, height, width, channels}}};
    return Types{{DataType::float32, {1, channels, height, width}}};
}

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

using Ints = std::vector<int64_t>;

// The picture and the blocks that are laid on it.
struct Blocks {
    Shape image, block, count;  // sizes per axis; count: positions of the block
    Ints strides, dilations, pads;
};

// Numbers so large that their products could leave 64 bits are no picture.
bool all_within(const Ints& numbers, int64_t low) {
    for (const int64_t n : numbers) {
        if (n < low || n > INT32_MAX) return false;
    }
    return true;
}

Result<Blocks> read_blocks(const Call& call) {
    const Array& x = call.inputs[0];
    const Ints image = read_numbers<int64_t>(call.inputs[1]);
    const Ints block = read_numbers<int64_t>(call.inputs[2]);
    const size_t rank = image.size();
    Blocks blocks{Shape(image),
                  Shape(block),
                  Shape(image),
                  call.node.get("strides", Ints(rank, 1)),
                  call.node.get("dilations", Ints(rank, 1)),
                  call.node.get("pads", Ints(2 * rank, 0))};
    bool fits = rank <= max_rank - 2 && block.size() == rank && blocks.strides.size() == rank &&
                blocks.dilations.size() == rank && blocks.pads.size() == 2 * rank &&
                all_within(image, 0) && all_within(block, 1) && all_within(blocks.strides, 1) &&
                all_within(blocks.dilations, 1) && all_within(blocks.pads, 0) &&
                x.shape.size() == 3;
    int64_t positions = 1;
    for (size_t i = 0; i < rank && fits; ++i) {
        const int64_t room = image[i] + blocks.pads[i] + blocks.pads[rank + i] -
                             blocks.dilations[i] * (block[i] - 1) - 1;
        blocks.count[i] = room < 0 ? 0 : room / blocks.strides[i] + 1;
        fits = !__builtin_mul_overflow(positions, blocks.count[i], &positions);
    }
    if (!fits || positions != x.shape[2])
        return bad_data(call, "has columns that do not fit its picture and blocks");
    return blocks;
}

// Adds one row of columns, one element of the block at all its positions, to the picture.
template <typename T, typename Sum>
void add_row(const T* src, const Blocks& blocks, const Strides& strides, const Walk<1>& in_block,
             Sum* image) {
    Walk<1> position(blocks.count, {});
    const int64_t positions = blocks.count.elements();
    for (int64_t i = 0; i < positions; ++i, position.next()) {
        int64_t at = 0;
        for (size_t axis = 0; axis < blocks.image.size() && at >= 0; ++axis) {
            const int64_t index = position.index(axis) * blocks.strides[axis] +
                                  in_block.index(axis) * blocks.dilations[axis] - blocks.pads[axis];
            const bool inside = index >= 0 && index < blocks.image[axis];
            at = inside ? at + index * strides[axis] : -1;
        }
        if (at >= 0) image[at] += static_cast<Sum>(number(src[i]));
    }
}

template <typename T>
void add_blocks(const Call& call, const Blocks& blocks) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    // Integers wrap; floats are rounded once.
    using Sum = std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, graph::Bool>,
                                   uint64_t, double>;
    const int64_t planes = y.shape[0] * y.shape[1], pixels = blocks.image.elements();
    const int64_t column_rows = blocks.block.elements(), columns = x.shape[2];
    const Strides strides = strides_of(blocks.image);
    std::vector<Sum> image(static_cast<size_t>(pixels));
    const T* src = x.as<T>();
    T* dst = y.as<T>();
    for (int64_t plane = 0; plane < planes; ++plane) {
        std::ranges::fill(image, Sum(0));
        Walk<1> in_block(blocks.block, {});
        for (int64_t row = 0; row < column_rows; ++row, src += columns, in_block.next())
            add_row(src, blocks, strides, in_block, image.data());
        for (const Sum sum : image) *dst++ = graph::convert<T>(sum);
    }
}

Result<void> col2im(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const auto blocks = read_blocks(call);
    if (!blocks) return blocks.error();
    if (y.elements() == 0) return {};
    if (x.elements() != y.shape[0] * y.shape[1] * blocks->block.elements() * x.shape[2])
        return bad_data(call, "has columns that do not fill its blocks");
    const bool known =
        graph::with_type(x.type, [&]<typename T>(T) { add_blocks<T>(call, *blocks); });
    return known ? Result<void>() : no_type(call, x.type);
}

// Pooling of regions of interest: RoiAlign and MaxRoiPool.

// ---- RoiAlign
// -------------------------------------------------------------------------------------------------------

// One sample along an axis: two elements and their weights.
struct Sample {
    int64_t low, high;
    double low_weight, high_weight;
};

// The samples of one bin that are inside of the picture, and how many there are in all.
struct Bin {
    std::vector<Sample> inside;
    double count = 0;
};

template <typename C>
std::optional<Sample> make_sample(C at, int64_t size) {
    if (!(at >= -1 && at <= static_cast<C>(size))) return std::nullopt;
    const double x = std::max(static_cast<double>(at), 0.0);
    const auto low = static_cast<int64_t>(x);
    if (low >= size - 1) return Sample{size - 1, size - 1, 1, 0};
    const double weight = x - static_cast<double>(low);
    return Sample{low, low + 1, 1 - weight, weight};
}

// Bins of a region along one axis. A region far larger than the picture has more samples than one
// could visit; those that count are found by their position.
template <typename C>
void make_bins(C start, C length, int64_t sampling_ratio, int64_t size, std::vector<Bin>& bins) {
    const C bin_size = length / static_cast<C>(bins.size());
    const C count = sampling_ratio > 0 ? static_cast<C>(sampling_ratio) : std::ceil(bin_size);
    for (size_t i = 0; i < bins.size(); ++i) {
        Bin& bin = bins[i];
        bin.inside.clear();
        bin.count = static_cast<double>(std::max(count, C(0)));
        if (!(count > 0)) continue;
        const C first = start + static_cast<C>(i) * bin_size, step = bin_size / count;
        // Indices of samples, one beyond those from -1 to size.
        C from = 0, to = count;
        if (step > 0) {
            from = std::max(from, std::floor((-1 - first) / step - C(1.5)));
            to = std::min(to, std::ceil((static_cast<C>(size) - first) / step + C(1.5)));
        }
        for (C k = from; k < to && k + 1 > k; ++k) {
            if (const auto sample = make_sample(first + (k + C(0.5)) * step, size))
                bin.inside.push_back(*sample);
        }
    }
}

template <typename T>
double average(const T* plane, int64_t width, const Bin& rows, const Bin& columns) {
    double sum = 0;
    for (const Sample& y : rows.inside) {
        const T *low = plane + y.low * width, *high = plane + y.high * width;
        for (const Sample& x : columns.inside) {
            const auto at = [&](const T* row, int64_t i) { return graph::convert<double>(row[i]); };
            sum += y.low_weight * (x.low_weight * at(low, x.low) + x.high_weight * at(low, x.high));
            if (y.high_weight != 0)
                sum += y.high_weight *
                       (x.low_weight * at(high, x.low) + x.high_weight * at(high, x.high));
        }
    }
    return sum / std::max(rows.count * columns.count, 1.0);
}

// The largest weighted element, not the largest sample: so the reference implementation defines
// it, and so other runtimes compute it. A sample outside of the picture is a zero.
template <typename T>
double maximum(const T* plane, int64_t width, const Bin& rows, const Bin& columns) {
    const double inside =
        static_cast<double>(rows.inside.size()) * static_cast<double>(columns.inside.size());
    bool found = inside < rows.count * columns.count;
    double best = 0;
    const auto take = [&](double value) {
        if (!found || value > best) best = value;
        found = true;
    };
    for (const Sample& y : rows.inside) {
        const T *low = plane + y.low * width, *high = plane + y.high * width;
        for (const Sample& x : columns.inside) {
            take(y.low_weight * x.low_weight * graph::convert<double>(low[x.low]));
            take(y.low_weight * x.high_weight * graph::convert<double>(low[x.high]));
            take(y.high_weight * x.low_weight * graph::convert<double>(high[x.low]));
            take(y.high_weight * x.high_weight * graph::convert<double>(high[x.high]));
        }
    }
    return best;
}

// C: float or double, the type of the arithmetic on coordinates, which decides the number of
// samples.
template <typename T, typename C>
Result<void> roi_align_as(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const auto corners = read_numbers<C>(call.inputs[1]);
    const auto batches = read_indices(call, 2, x.shape[0]);
    if (!batches) return batches.error();
    const auto scale = static_cast<C>(call.node.get("spatial_scale", 1.0F));
    const bool half_pixel =
        call.node.get("coordinate_transformation_mode", "half_pixel") == "half_pixel";
    const bool is_maximum = call.node.get("mode", "avg") == "max";
    const int64_t ratio = call.node.get("sampling_ratio", int64_t{0});
    const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
    const C offset = half_pixel ? C(0.5) : C(0);
    std::vector<Bin> rows(static_cast<size_t>(y.shape[2])),
        columns(static_cast<size_t>(y.shape[3]));
    T* dst = y.as<T>();
    for (size_t roi = 0; roi < batches->size(); ++roi) {
        C edges[4];
        for (size_t i = 0; i < 4; ++i) edges[i] = corners[roi * 4 + i] * scale - offset;
        C lengths[2] = {edges[2] - edges[0], edges[3] - edges[1]};
        for (C& length : lengths) {
            if (!std::isfinite(length)) return bad_data(call, "has a region that is not finite");
            // given: ONNX operator RoiAlign: without half_pixel, regions are at least 1x1.
            if (!half_pixel) length = std::max(length, C(1));
        }
        make_bins(edges[0], lengths[0], ratio, width, columns);
        make_bins(edges[1], lengths[1], ratio, height, rows);
        const T* plane = x.as<T>() + (*batches)[roi] * channels * height * width;
        for (int64_t c = 0; c < channels; ++c, plane += height * width) {
            for (const Bin& row : rows) {
                for (const Bin& column : columns) {
                    *dst++ = graph::convert<T>(is_maximum ? maximum(plane, width, row, column)
                                                          : average(plane, width, row, column));
                }
            }
        }
    }
    return {};
}

// Calls f with an element of type T and a coordinate of type C.
template <typename F>
Result<void> with_float(const Call& call, F&& f) {
    const DataType type = call.inputs[0].type;
    Result<void> result = no_type(call, type);
    graph::with_type(type, [&]<typename T>(T) {
        if constexpr (std::is_floating_point_v<Number<T>>) result = f(T(), Number<T>());
    });
    return result;
}

Result<void> roi_align(const Call& call) {
    const Array &x = call.inputs[0], &rois = call.inputs[1], &y = call.outputs[0];
    constexpr int64_t most_samples = 4096;
    if (x.shape.size() != 4 || rois.shape.size() != 2 || rois.shape[1] != 4 ||
        call.inputs[2].elements() != rois.shape[0]) {
        return bad_data(call, "has regions that do not fit its data");
    }
    if (y.elements() == 0) return {};
    if (x.elements() == 0) return bad_data(call, "pools a tensor without elements");
    if (call.node.get("sampling_ratio", int64_t{0}) > most_samples)
        return bad_data(call, "takes more than 4096 samples per bin");
    return with_float(call, [&]<typename T, typename C>(T, C) { return roi_align_as<T, C>(call); });
}

// ---- MaxRoiPool
// --------------------------------------------------------------------------------------------------------

// Elements from begin to end along an axis, inside of it.
struct Span {
    int64_t begin, end;
};

// Bin i of a region that covers the elements start to end, both included.
Span pool_span(double start, double end, int64_t i, int64_t bins, int64_t size) {
    const double bin_size = std::max(end - start + 1, 1.0) / static_cast<double>(bins);
    const auto at = [&](double edge) {
        return static_cast<int64_t>(std::clamp(edge + start, 0.0, static_cast<double>(size)));
    };
    return {at(std::floor(static_cast<double>(i) * bin_size)),
            at(std::ceil(static_cast<double>(i + 1) * bin_size))};
}

template <typename T>
Result<void> max_roi_pool_as(const Call& call) {
    const Array &x = call.inputs[0], &rois = call.inputs[1], &y = call.outputs[0];
    const auto scale = static_cast<double>(call.node.get("spatial_scale", 1.0F));
    const auto numbers = read_numbers<double>(rois);
    const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
    T* dst = y.as<T>();
    for (size_t roi = 0; roi < numbers.size() / 5; ++roi) {
        const double* p = numbers.data() + roi * 5;
        if (!(p[0] >= 0 && p[0] < static_cast<double>(x.shape[0]))) {
            return bad_data(call, "takes element " + std::to_string(p[0]) + " of " +
                                      std::to_string(x.shape[0]));
        }
        double edges[4];
        for (size_t i = 0; i < 4; ++i) {
            edges[i] = std::round(p[i + 1] * scale);
            if (!std::isfinite(edges[i])) return bad_data(call, "has a region that is not finite");
        }
        const T* plane = x.as<T>() + static_cast<int64_t>(p[0]) * channels * height * width;
        for (int64_t c = 0; c < channels; ++c, plane += height * width) {
            for (int64_t i = 0; i < y.shape[2]; ++i) {
                const Span rows = pool_span(edges[1], edges[3], i, y.shape[2], height);
                for (int64_t k = 0; k < y.shape[3]; ++k) {
                    const Span columns = pool_span(edges[0], edges[2], k, y.shape[3], width);
                    const bool empty = rows.begin >= rows.end || columns.begin >= columns.end;
                    T best = empty ? T() : plane[rows.begin * width + columns.begin];
                    for (int64_t row = rows.begin; row < rows.end; ++row) {
                        for (int64_t column = columns.begin; column < columns.end; ++column) {
                            const T value = plane[row * width + column];
                            if (number(value) > number(best)) best = value;
                        }
                    }
                    *dst++ = best;
                }
            }
        }
    }
    return {};
}

Result<void> max_roi_pool(const Call& call) {
    const Array &x = call.inputs[0], &rois = call.inputs[1], &y = call.outputs[0];
    if (x.shape.size() != 4 || rois.shape.size() != 2 || rois.shape[1] != 5)
        return bad_data(call, "has regions that do not fit its data");
    if (y.elements() == 0) return {};
    return with_float(call, [&]<typename T, typename C>(T, C) { return max_roi_pool_as<T>(call); });
}

Result<void> run_picture_input(const Call& call) {
    const std::vector<float> table = picture_table(call.node);
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const int64_t pixels = x.shape[1] * x.shape[2], bytes = x.shape[3];
    const auto channels = static_cast<int64_t>(table.size() / 256);
    const bool channels_last = call.node.get("layout", "NCHW") == "NHWC";
    const auto from = x.span<const uint8_t>();
    const auto to = y.span<float>();
    for (int64_t p = 0; p < pixels; ++p) {
        for (int64_t c = 0; c < channels; ++c) {
            const int64_t at = channels_last ? p * channels + c : c * pixels + p;
            to[static_cast<size_t>(at)] =
                table[static_cast<size_t>(c * 256 + from[static_cast<size_t>(p * bytes + c)])];
        }
    }
    return {};
}

}  // namespace

std::vector<float> picture_table(const graph::Node& node) {
    const auto mean = node.get("mean", std::vector<float>());
    const auto scale = node.get("scale", std::vector<float>());
    std::vector<float> table;
    for (size_t c = 0; c < mean.size(); ++c)
        for (int byte = 0; byte < 256; ++byte)
            table.push_back((static_cast<float>(byte) - mean[c]) * scale[c]);
    return table;
}
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr OpInfo rows[] = {
    {"PictureInput", 1, 1, 1, 1, "layout:s*|NCHW|NHWC mean:fs* scale:fs*", infer_picture_input,
     count_output, cpu::run_picture_input, Trait::internal},
    {"RoiAlign", 3, 3, 1, 1,
     "coordinate_transformation_mode:s=half_pixel|output_half_pixel mode:s=avg|max "
     "output_height:i=1 output_width:i=1 sampling_ratio:i=0 spatial_scale:f=1",
     infer_roi_align, count_none, cpu::roi_align, Trait::exact_1},
    {"MaxRoiPool", 2, 2, 1, 1, "pooled_shape:is* spatial_scale:f=1", infer_max_roi_pool, count_none,
     cpu::max_roi_pool, Trait::exact_1},
    {"Col2Im", 3, 3, 1, 1, "dilations:is pads:is strides:is", infer_col2im, count_none, cpu::col2im,
     Trait::sized_by_1},
};

}  // namespace

std::span<const OpInfo> picture_ops() {
    return rows;
}

}  // namespace vartml::graph
