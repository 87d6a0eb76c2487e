// SPDX-License-Identifier: Apache-2.0
// Quantised operators without products: between floats and codes, element-wise, pools, Concat.
#include <algorithm>
#include <array>
#include <cmath>

#include "lib/graph/ops.h"
#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/codes.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/int8_products.h"
#include "lib/run/softnpu/operators.h"
#include "lib/run/softnpu/plan.h"

namespace vartml::softnpu {

// Averages of codes over windows of pictures.

// A window of two axes; `pads` in front.
struct Window {
    std::array<int64_t, 2> size, strides, dilations, pads;
    bool counts_padding = false;
};

// Pictures [N, C, H, W] with the channels contiguous.
void emit_average(Lowering& lowering, const View& src, const Coding& from, const View& dst,
                  const Coding& to, const Window& window, std::string_view name);

namespace {

using graph::Graph;
using graph::Node;

// The parameters of QuantizeLinear and DequantizeLinear: one coding, or one per element of `axis`.
struct Codings {
    std::vector<Coding> each;
    size_t axis = 0;
};

std::optional<Codings> codings_of(const Graph& graph, const Node& node, DataType type) {
    Codings result;
    const auto scales = floats_of(graph, node, 1);
    const auto zeros = integers_of(graph, node, 2);
    const bool has_zero = node.inputs.size() > 2 && node.inputs[2] != graph::none;
    const Dims& shape = graph.value(node.inputs[0]).type.shape;
    if (!is_code(type) || scales.empty() || (has_zero && zeros.size() != scales.size()) ||
        node.get("block_size", int64_t{0}) != 0)
        return std::nullopt;
    for (size_t i = 0; i < scales.size(); ++i) {
        if (!(scales[i] > 0) || !std::isfinite(scales[i])) return std::nullopt;
        result.each.push_back(
            {scales[i], has_zero ? static_cast<int32_t>(zeros[i]) : 0, type == DataType::int8});
    }
    if (scales.size() == 1) return result;
    result.axis = static_cast<size_t>(node.get("axis", int64_t{1}));
    if (result.axis >= shape.size() || shape[result.axis] != static_cast<int64_t>(scales.size()))
        return std::nullopt;
    return result;
}

// Calls emit(src, dst, coding) for the whole, or for each element of the axis.
template <typename Emit>
void for_each_coding(const Codings& codings, const View& src, const View& dst, Emit emit) {
    if (codings.each.size() == 1) return emit(src, dst, codings.each[0]);
    for (size_t i = 0; i < codings.each.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        emit(slice(src, codings.axis, at, 1, 1), slice(dst, codings.axis, at, 1, 1),
             codings.each[i]);
    }
}

Codings dequantised(const Graph& graph, const Node& node) {
    return *codings_of(graph, node, graph.value(node.inputs[0]).type.data_type);
}
Codings quantised(const Graph& graph, const Node& node) {
    return *codings_of(graph, node, graph.value(node.outputs[0]).type.data_type);
}

float leaky(float x, float alpha) {
    return x < 0 ? x * alpha : x;
}

// dst = table[src] in the order of the input.
void lower_table(Lowering& lowering, const Node& node, const Table& table) {
    const graph::ValueId out = node.outputs[0];
    const View dst = lowering.destination(out, lowering.order(out), true);
    emit_look_up(lowering, lowering.view(node.inputs[0]), dst, table, node.name);
    lowering.finish(out, dst);
}

}  // namespace

// One scale and one zero point that a run computes.
bool has_computed_coding(const Graph& graph, const Node& node, DataType type) {
    const auto is_one = [&](size_t input) {
        return graph.value(node.inputs[input]).type.elements() == 1;
    };
    const bool has_zero = node.inputs.size() > 2 && node.inputs[2] != graph::none;
    const bool computed = !graph.value(node.inputs[1]).constant ||
                          (has_zero && !graph.value(node.inputs[2]).constant);
    return computed && is_code(type) && is_one(1) && (!has_zero || is_one(2)) &&
           node.get("block_size", int64_t{0}) == 0;
}

bool takes_quantise(const Graph& graph, const Node& node) {
    const DataType type = graph.value(node.outputs[0]).type.data_type;
    return is_float(graph.value(node.inputs[0]).type.data_type) &&
           (codings_of(graph, node, type) || has_computed_coding(graph, node, type));
}
bool takes_dequantise(const Graph& graph, const Node& node) {
    const DataType type = graph.value(node.inputs[0]).type.data_type;
    return is_float(graph.value(node.outputs[0]).type.data_type) &&
           (codings_of(graph, node, type) || has_computed_coding(graph, node, type));
}
bool takes_quantised_unary(const Graph& graph, const Node& node) {
    return coding_of(graph, node, 0) && coding_of_result(graph, node, 3);
}
bool takes_quantised_binary(const Graph& graph, const Node& node) {
    return coding_of(graph, node, 0) && coding_of(graph, node, 3) &&
           coding_of_result(graph, node, 6);
}
bool takes_quantised_concat(const Graph& graph, const Node& node) {
    for (size_t i = 2; i < node.inputs.size(); i += 3)
        if (!coding_of(graph, node, i)) return false;
    return coding_of_result(graph, node, 0).has_value();
}

Result<void> lower_quantise(Lowering& lowering, const Node& node) {
    const graph::ValueId out = node.outputs[0];
    const DataType type = lowering.value(out).type.data_type;
    const View& src = lowering.view(node.inputs[0]);
    const bool computed = has_computed_coding(lowering.graph(), node, type);
    const Codings codings = computed ? Codings{} : quantised(lowering.graph(), node);
    const ComputedCoding in_run =
        computed ? computed_coding(lowering, node, type, 1, 2) : ComputedCoding{};
    const auto emit = [&](const View& from, const View& to, const Coding& coding) {
        if (computed)
            emit_quantise(lowering, from, to, in_run, node.name);
        else
            emit_quantise(lowering, from, to, coding, node.name);
    };
    if (const auto padded = with_padding_channels(src);
        padded && lowering.is_whole_input(src) && codings.each.size() <= 1) {
        // One block of memory with its padding channels, whose codes no weight looks at.
        View dst = lowering.new_buffer(lowering.stored_type(out), padded->dims, channels_last(4));
        emit(*padded, dst, computed ? Coding{} : codings.each[0]);
        dst.dims[1] = src.dims[1];
        lowering.finish(out, dst);
        return {};
    }
    const View dst = lowering.destination(out, lowering.order(out), true);
    if (computed)
        emit(src, dst, {});
    else
        for_each_coding(codings, src, dst, emit);
    lowering.finish(out, dst);
    return {};
}

Result<void> lower_dequantise(Lowering& lowering, const Node& node) {
    const graph::ValueId out = node.outputs[0];
    const View dst = lowering.destination(out, lowering.order(out), true);
    const DataType type = lowering.value(node.inputs[0]).type.data_type;
    if (has_computed_coding(lowering.graph(), node, type)) {
        emit_dequantise(lowering, lowering.view(node.inputs[0]), dst,
                        computed_coding(lowering, node, type, 1, 2), node.name);
        lowering.finish(out, dst);
        return {};
    }
    for_each_coding(dequantised(lowering.graph(), node), lowering.view(node.inputs[0]), dst,
                    [&](const View& from, const View& to, const Coding& coding) {
                        emit_dequantise(lowering, from, to, coding, node.name);
                    });
    lowering.finish(out, dst);
    return {};
}

Result<void> lower_quantised_unary(Lowering& lowering, const Node& node) {
    const Coding from = *coding_of(lowering.graph(), node, 0);
    const Coding to = *coding_of_result(lowering.graph(), node, 3);
    const float alpha = node.get("alpha", 0.01F);
    const bool sigmoid = node.kind == "QLinearSigmoid";
    lower_table(lowering, node, make_table(from, to, [&](float x) {
                    return sigmoid ? 1 / (1 + std::exp(-x)) : leaky(x, alpha);
                }));
    return {};
}

Result<void> lower_clip(Lowering& lowering, const Node& node) {
    const DataType type = lowering.value(node.inputs[0]).type.data_type;
    if (!is_code(type)) return lower_eltwise(lowering, node);
    const Coding plain{1, 0, type == DataType::int8};
    const float low = node.get("min", -INFINITY), high = node.get("max", INFINITY);
    lower_table(lowering, node, make_table(plain, plain, [&](float x) {
                    return std::min(std::max(x, low), high);
                }));
    return {};
}

Result<void> lower_quantised_binary(Lowering& lowering, const Node& node) {
    const graph::ValueId out = node.outputs[0];
    const Dims& shape = lowering.value(out).type.shape;
    const View dst = lowering.destination(out, lowering.order(out), true);
    const auto op = node.kind == "QLinearAdd" ? kernels::CodeBinary::add : kernels::CodeBinary::mul;
    emit_binary(lowering, op, broadcast(lowering.view(node.inputs[0]), shape),
                *coding_of(lowering.graph(), node, 0),
                broadcast(lowering.view(node.inputs[3]), shape),
                *coding_of(lowering.graph(), node, 3), dst,
                *coding_of_result(lowering.graph(), node, 6), node.name);
    lowering.finish(out, dst);
    return {};
}

// Inputs of the same coding that could be written in place are there already.
Result<void> lower_quantised_concat(Lowering& lowering, const Node& node) {
    const graph::ValueId out = node.outputs[0];
    const auto axis = static_cast<size_t>(
        graph::wrap_axis(node.get("axis", int64_t{0}), lowering.value(out).type.shape.size()));
    const View place = lowering.destination(out, lowering.order(out), true);
    const Coding to = *coding_of_result(lowering.graph(), node, 0);
    int64_t start = 0;
    for (size_t i = 2; i < node.inputs.size(); i += 3) {
        const int64_t size = lowering.value(node.inputs[i]).type.shape[axis];
        const View part = slice(place, axis, start, size, 1);
        const Coding from = *coding_of(lowering.graph(), node, i);
        if (from == to) {
            lowering.copy_unless_there(lowering.view(node.inputs[i]), part, node.name);
        } else {
            emit_look_up(lowering, lowering.view(node.inputs[i]), part,
                         make_table(from, to, [](float x) { return x; }), node.name);
        }
        start += size;
    }
    lowering.finish(out, place);
    return {};
}

Result<void> lower_quantised_pool(Lowering& lowering, const Node& node) {
    const graph::ValueId out = node.outputs[0];
    const graph::Type& type = lowering.value(node.inputs[0]).type;
    const Order order = channels_last(type.shape.size());
    View src = lowering.dense(node.inputs[0], order, type.data_type);
    const View dst = lowering.destination(out, order, false);
    const size_t spatial = type.shape.size() - 2;
    Window window{{1, 1}, {1, 1}, {1, 1}, {0, 0}, node.get("count_include_pad", int64_t{0}) != 0};
    const bool global = node.kind == "QLinearGlobalAveragePool";
    const auto ones = Dims(spatial, 1);
    const Dims size =
        global ? Dims(type.shape.begin() + 2, type.shape.end()) : node.get("kernel_shape", Dims{});
    const Dims strides = node.get("strides", ones), dilations = node.get("dilations", ones);
    const Dims pads = node.get("pads", Dims(2 * spatial, 0));
    for (size_t i = 0; i < spatial; ++i) {
        const size_t at = i + 2 - spatial;  // one axis: the last
        window.size[at] = size[i];
        window.strides[at] = strides[i];
        window.dilations[at] = dilations[i];
        window.pads[at] = pads[i];
    }
    const auto picture = [](View view) {
        if (view.dims.size() == 3) {
            view.dims.insert(view.dims.begin() + 2, 1);
            view.strides.insert(view.strides.begin() + 2, 0);
        }
        return view;
    };
    emit_average(lowering, picture(src), *coding_of(lowering.graph(), node, 0), picture(dst),
                 *coding_of_result(lowering.graph(), node, 3), window, node.name);
    lowering.finish(out, dst);
    return {};
}

namespace {

constexpr int64_t most_channels = 256;
constexpr int64_t most_summed = int64_t{1} << 23;  // codes whose sum 32 bits hold

class AverageStep final : public Step {
public:
    AverageStep(View src, const Coding& from, View dst, const Coding& to, const Window& window)
        : src_(std::move(src)), dst_(std::move(dst)), from_(from), to_(to), window_(window) {
        chunks_ = (src_.dims[1] + most_channels - 1) / most_channels;
    }

    // Units are up to 256 channels of a position.
    Extent extent() const override {
        const int64_t area = window_.size[0] * window_.size[1];
        return {dst_.dims[0] * dst_.dims[2] * dst_.dims[3] * chunks_,
                dst_.elements() * (area + 8) / 16};
    }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto* src = reinterpret_cast<const uint8_t*>(address(bases, src_));
        auto* dst = reinterpret_cast<uint8_t*>(address(bases, dst_));
        const auto [first, last] = part(item);
        for (int64_t i = first; i < last; ++i) {
            const int64_t c = i % chunks_ * most_channels, position = i / chunks_;
            const int64_t x = position % dst_.dims[3], y = position / dst_.dims[3] % dst_.dims[2];
            const int64_t n = position / dst_.dims[3] / dst_.dims[2];
            average(src + n * src_.strides[0] + c,
                    dst + n * dst_.strides[0] + y * dst_.strides[2] + x * dst_.strides[3] + c, y, x,
                    std::min(most_channels, src_.dims[1] - c));
        }
    }

    std::string describe() const override {
        return "average codes " + text(src_) + " -> " + text(dst_);
    }

private:
    struct Taps {
        int64_t first, count;
    };
    // What of the window lies in the picture along an axis.
    Taps taps(size_t axis, int64_t at) const {
        const int64_t step = window_.dilations[axis], size = src_.dims[axis + 2];
        const int64_t start = at * window_.strides[axis] - window_.pads[axis];
        const int64_t skip = start < 0 ? (-start + step - 1) / step : 0;
        const int64_t first = start + skip * step;
        const int64_t fit = first < size ? (size - 1 - first) / step + 1 : 0;
        return {first, std::clamp<int64_t>(window_.size[axis] - skip, 0, fit)};
    }

    void average(const uint8_t* src, uint8_t* dst, int64_t y, int64_t x, int64_t channels) const {
        std::array<int32_t, most_channels> sums{};
        std::array<int64_t, most_channels> totals{};
        std::array<float, most_channels> steps;
        const Taps rows = taps(0, y), columns = taps(1, x);
        const int64_t step = src_.strides[3] * window_.dilations[1];
        int64_t summed = 0;
        const auto take_sums = [&] {
            for (size_t i = 0; i < static_cast<size_t>(channels); ++i) totals[i] += sums[i];
            sums.fill(0);
            summed = 0;
        };
        for (int64_t k = 0; k < rows.count; ++k) {
            const uint8_t* at = src + (rows.first + k * window_.dilations[0]) * src_.strides[2] +
                                columns.first * src_.strides[3];
            for (int64_t left = columns.count; left > 0;) {
                const int64_t count = std::min(left, most_summed - summed);
                kernels::add_codes(at, step, static_cast<size_t>(count), from_.is_signed,
                                   sums.data(), static_cast<size_t>(channels));
                at += count * step;
                left -= count;
                if ((summed += count) == most_summed) take_sums();
            }
        }
        take_sums();
        const int64_t counted = rows.count * columns.count;
        const int64_t divisor =
            window_.counts_padding ? window_.size[0] * window_.size[1] : counted;
        const float scale = from_.scale / (to_.scale * static_cast<float>(divisor));
        const int64_t zeros = counted * from_.zero;
        for (int64_t i = 0; i < channels; ++i) {
            const auto at = static_cast<size_t>(i);
            steps[at] = static_cast<float>(totals[at] - zeros) * scale;
        }
        kernels::quantise_row(steps.data(), {1, to_.zero, to_.is_signed}, dst,
                              static_cast<size_t>(channels));
    }

    View src_, dst_;
    Coding from_, to_;
    Window window_;
    int64_t chunks_ = 1;
};

}  // namespace

void emit_average(Lowering& lowering, const View& src, const Coding& from, const View& dst,
                  const Coding& to, const Window& window, std::string_view name) {
    lowering.emit(std::make_unique<AverageStep>(src, from, dst, to, window), name, {&src, &dst});
}

}  // namespace vartml::softnpu
