// SPDX-License-Identifier: Apache-2.0
// Convolutions, their transpose, and convolution at places that are data.
#include "lib/graph/ops_window.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/graph/ops.h"
#include "lib/graph/products.h"

namespace vartml::graph {
namespace {

// Index of the weight input, or 0 where the kernel is an attribute.
size_t weight_input(const Node& node) {
    if (!has_trait(node, Trait::convolution)) return 0;
    return node.kind == "QLinearConv" ? 3 : 1;
}

bool all_at_least(const std::vector<int64_t>& values, int64_t low) {
    return std::ranges::all_of(values, [low](int64_t v) { return v >= low && v <= INT32_MAX; });
}

Result<Types> convolved(const Graph& graph, const Node& node, size_t weight, DataType type,
                        size_t bias) {
    const Type &x = input_type(graph, node, 0), &w = input_type(graph, node, weight);
    auto window = window_of(graph, node);
    if (!window) return window.error();
    if (x.shape[1] != w.shape[1] * window->group || w.shape[0] % window->group != 0) {
        return bad_node(node, "has the input " + to_string(x) + ", the weight " + to_string(w) +
                                  " and " + std::to_string(window->group) +
                                  " groups, whose channels do not go together");
    }
    if (has_input(node, bias) &&
        input_type(graph, node, bias).shape != std::vector<int64_t>{w.shape[0]}) {
        return bad_node(node, "has the bias " + to_string(input_type(graph, node, bias)) +
                                  ", expected one element per output channel of the weight " +
                                  to_string(w));
    }
    Type y{type, {x.shape[0], w.shape[0]}};
    for (size_t i = 0; i < window->rank(); ++i) {
        y.shape.push_back(window_positions(x.shape[i + 2], *window, i, false));
        if (y.shape.back() < 1) {
            return bad_node(node, "has the padded input " + to_string(x) +
                                      ", which is smaller than the kernel of the weight " +
                                      to_string(w));
        }
    }
    return Types{y};
}

Result<Types> infer_conv(const Graph& graph, const Node& node) {
    return convolved(graph, node, 1, input_type(graph, node, 0).data_type, 2);
}
// Scales and zero points: one element, those of the weight perhaps one per output channel.
Result<void> check_parameters(const Graph& graph, const Node& node, size_t weight,
                              std::initializer_list<size_t> inputs,
                              std::initializer_list<size_t> of_weight) {
    const int64_t channels = input_type(graph, node, weight).shape[0];
    for (const auto& [list, most] :
         {std::pair(inputs, int64_t{1}), std::pair(of_weight, channels)}) {
        for (const size_t input : list) {
            if (!has_input(node, input)) continue;
            const Type& parameter = input_type(graph, node, input);
            if (parameter.elements() == 1 ||
                (parameter.shape.size() == 1 && parameter.elements() == most))
                continue;
            return bad_node(node, "has the scale or zero point " + to_string(parameter) +
                                      ", expected one element" +
                                      (most == 1 ? "" : " or one per output channel"));
        }
    }
    return {};
}

Result<Types> infer_conv_integer(const Graph& graph, const Node& node) {
    auto types = convolved(graph, node, 1, DataType::int32, node.inputs.size());
    if (!types) return types;
    if (auto ok = check_parameters(graph, node, 1, {2}, {3}); !ok) return ok.error();
    return types;
}
// Activations of a QLinearConv, and which of their attributes its alpha and beta are.
struct ActivationRow {
    std::string_view kind, alpha, beta;
};
constexpr ActivationRow activation_rows[] = {
    {"Clip", "min", "max"}, {"HardSigmoid", "alpha", "beta"},
    {"HardSwish", "", ""},  {"LeakyRelu", "alpha", ""},
    {"Relu", "", ""},       {"SiLU", "", ""},
    {"Sigmoid", "", ""},    {"Tanh", "", ""},
};
const ActivationRow* find_activation_row(std::string_view kind) {
    const auto* row = std::ranges::find(activation_rows, kind, &ActivationRow::kind);
    return row == std::end(activation_rows) ? nullptr : row;
}

Result<Types> infer_qlinear_conv(const Graph& graph, const Node& node) {
    auto types = convolved(graph, node, 3, input_type(graph, node, 7).data_type, 8);
    if (!types) return types;
    if (auto ok = check_parameters(graph, node, 3, {1, 2, 6, 7}, {4, 5}); !ok) return ok.error();
    const std::string activation = node.get("activation", "");
    if (!activation.empty() && !find_activation_row(activation))
        return bad_node(node, "has the activation '" + activation + "', which QLinearConv has not");
    const auto factors = node.get("factors", std::vector<float>());
    const auto is_factor = [](float f) { return f > 0 && std::isfinite(f); };
    if (!factors.empty() && (static_cast<int64_t>(factors.size()) != (*types)[0].shape[1] ||
                             !std::ranges::all_of(factors, is_factor)))
        return bad_node(node, "has " + std::to_string(factors.size()) +
                                  " factors, expected a positive number per output channel (" +
                                  std::to_string((*types)[0].shape[1]) + ')');
    return types;
}

Result<Types> infer_conv_transpose(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &w = input_type(graph, node, 1);
    auto window = window_of(graph, node);
    if (!window) return window.error();
    const auto output_padding = node.get("output_padding", std::vector<int64_t>(window->rank(), 0));
    if (x.shape[1] != w.shape[0] || w.shape[0] % window->group != 0 ||
        output_padding.size() != window->rank()) {
        return bad_node(node, "has the input " + to_string(x) + ", the weight " + to_string(w) +
                                  " and " + std::to_string(window->group) +
                                  " groups, which do not go together");
    }
    Type y{x.data_type, {x.shape[0], w.shape[1] * window->group}};
    if (has_input(node, 2) &&
        input_type(graph, node, 2).shape != std::vector<int64_t>{y.shape[1]}) {
        return bad_node(node, "has the bias " + to_string(input_type(graph, node, 2)) +
                                  ", expected one element per output channel (" +
                                  std::to_string(y.shape[1]) + ')');
    }
    for (size_t i = 0; i < window->rank(); ++i) {
        y.shape.push_back(bounded_product(window->strides[i], x.shape[i + 2] - 1) +
                          window->extent(i) + output_padding[i] - window->pads_begin[i] -
                          window->pads_end[i]);
    }
    return Types{y};
}

using Ints = std::vector<int64_t>;

// x w offset bias? mask?: the shape is that of the offsets in space.
Result<Types> infer_deform_conv(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &w = input_type(graph, node, 1),
               &offset = input_type(graph, node, 2);
    if (offset.shape.size() != x.shape.size()) return bad_inputs(graph, node);
    auto window = window_of(graph, node);
    if (!window) return window.error();
    int64_t taps = 1;
    for (const int64_t size : window->kernel) taps = bounded_product(taps, size);
    const int64_t groups = node.get("offset_group", int64_t{1});
    const int64_t shifts = bounded_product(taps, std::clamp<int64_t>(groups, 1, 1 << 20));
    const auto rank = static_cast<int64_t>(window->rank());
    Type y{x.data_type, {x.shape[0], w.shape[0]}};
    for (size_t i = 0; i < window->rank(); ++i)
        y.shape.push_back(window_positions(x.shape[i + 2], *window, i, false));
    Ints places(y.shape.begin() + 2, y.shape.end());
    places.insert(places.begin(), {x.shape[0], shifts});
    const bool mask_fits = !has_input(node, 4) || input_type(graph, node, 4).shape == places;
    const bool bias_fits =
        !has_input(node, 3) || input_type(graph, node, 3).shape == Ints{w.shape[0]};
    places[1] = bounded_product(shifts, rank);
    if (groups < 1 || x.shape[1] % groups != 0 || offset.shape != places || !mask_fits ||
        !bias_fits || x.shape[1] != bounded_product(w.shape[1], window->group) ||
        w.shape[0] % window->group != 0) {
        return bad_node(node, "has the input " + to_string(x) + ", the weight " + to_string(w) +
                                  " and offsets " + to_string(offset) + ", where " +
                                  to_string(places) +
                                  " and channels that go together are expected");
    }
    return Types{y};
}

uint64_t count_deform_conv(const Graph& graph, const Node& node) {
    return has_input(node, 3) ? count_output(graph, node) : 0;
}

uint64_t macs_deform_conv(const Graph& graph, const Node& node) {
    const Type& w = input_type(graph, node, 1);
    return saturating_product(
        count_output(graph, node),
        static_cast<uint64_t>(w.elements() / std::max<int64_t>(w.shape[0], 1)));
}

uint64_t product(const std::vector<int64_t>& values) {
    uint64_t n = 1;
    for (const int64_t v : values) n = saturating_product(n, static_cast<uint64_t>(v));
    return n;
}

// 1 per output element with bias.
uint64_t count_conv(const Graph& graph, const Node& node) {
    const std::string_view base = node.kind;
    const size_t bias = base == "QLinearConv" ? 8 : 2;
    const bool has_bias = base != "ConvInteger" && has_input(node, bias);
    return has_bias ? count_output(graph, node) : 0;
}

// Elements of the weight for each of its first dimension: filters, or inputs of ConvTranspose.
uint64_t weights_per_first(const Type& w) {
    return product(w.shape) / std::max<uint64_t>(static_cast<uint64_t>(w.shape[0]), 1);
}

uint64_t macs_conv(const Graph& graph, const Node& node) {
    const Type& w = input_type(graph, node, weight_input(node));
    return saturating_product(count_output(graph, node), weights_per_first(w));
}

uint64_t macs_conv_transpose(const Graph& graph, const Node& node) {
    return saturating_product(count_input(graph, node),
                              weights_per_first(input_type(graph, node, 1)));
}

constexpr std::string_view conv_attributes = "dilations:is group:i pads:is strides:is";

}  // namespace

std::optional<Attributes> write_before_codes(const BeforeCodes& before) {
    Attributes attributes;
    if (before.activation) {
        const Operation& operation = *before.activation;
        const ActivationRow* row = find_activation_row(operation.kind);
        if (!row) return std::nullopt;
        attributes["activation"] = operation.kind;
        if (operation.has(row->alpha)) attributes["alpha"] = operation.get(row->alpha, 0.0F);
        if (operation.has(row->beta)) attributes["beta"] = operation.get(row->beta, 0.0F);
    }
    if (!before.factors.empty()) attributes["factors"] = before.factors;
    return attributes;
}

BeforeCodes read_before_codes(const Node& node) {
    BeforeCodes before{{}, node.get("factors", std::vector<float>())};
    const ActivationRow* row = find_activation_row(node.get("activation", ""));
    if (!row) return before;
    Operation& operation = before.activation.emplace();
    operation.kind = row->kind;
    if (node.has("alpha")) operation.attributes[std::string(row->alpha)] = node.get("alpha", 0.0F);
    if (node.has("beta")) operation.attributes[std::string(row->beta)] = node.get("beta", 0.0F);
    operation.attributes.erase("");
    return before;
}

uint64_t Window::taps() const {
    return product(kernel);
}

Result<Window> window_of(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const size_t weight = weight_input(node);
    if (x.shape.size() < 3) {
        return bad_node(node, "has the input " + to_string(x) + ", expected rank 3 or more");
    }
    const size_t rank = x.shape.size() - 2;
    Window window;
    if (weight) {
        const Type& w = input_type(graph, node, weight);
        if (w.shape.size() != x.shape.size()) {
            return bad_node(node, "has the input " + to_string(x) + " and the weight " +
                                      to_string(w) + ", expected equal ranks");
        }
        window.kernel.assign(w.shape.begin() + 2, w.shape.end());
        const auto said = node.get("kernel_shape", window.kernel);
        if (said != window.kernel) {
            return bad_node(node, "has the kernel_shape " + to_string(said) + " and the weight " +
                                      to_string(w) + ", expected " + to_string(window.kernel) +
                                      " or no kernel_shape");
        }
    } else {
        window.kernel = node.get("kernel_shape", std::vector<int64_t>());
    }
    window.strides = node.get("strides", std::vector<int64_t>(rank, 1));
    window.dilations = node.get("dilations", std::vector<int64_t>(rank, 1));
    window.group = node.get("group", int64_t{1});
    const auto pads = node.get("pads", std::vector<int64_t>(2 * rank, 0));
    if (window.kernel.size() != rank || window.strides.size() != rank ||
        window.dilations.size() != rank || pads.size() != 2 * rank ||
        !all_at_least(window.kernel, 1) || !all_at_least(window.strides, 1) ||
        !all_at_least(window.dilations, 1) || !all_at_least(pads, 0) || window.group < 1 ||
        window.group > 1 << 20) {
        return bad_node(node, "has the kernel " + to_string(window.kernel) + ", strides " +
                                  to_string(window.strides) + ", dilations " +
                                  to_string(window.dilations) + ", pads " + to_string(pads) +
                                  " and group " + std::to_string(window.group) +
                                  ", which do not fit the input " + to_string(x));
    }
    const auto middle = pads.begin() + static_cast<ptrdiff_t>(rank);
    window.pads_begin.assign(pads.begin(), middle);
    window.pads_end.assign(middle, pads.end());
    return window;
}

int64_t window_positions(int64_t size, const Window& window, size_t axis, bool ceil_mode) {
    const int64_t stride = window.strides[axis];
    const int64_t room =
        size + window.pads_begin[axis] + window.pads_end[axis] - window.extent(axis);
    if (room < 0) return 0;
    int64_t positions = room / stride + 1;
    // A last window that would lie wholly in the end padding is dropped (ONNX, from set 19 on
    // explicit).
    if (ceil_mode && room % stride != 0 && positions * stride < size + window.pads_begin[axis]) {
        ++positions;
    }
    return positions;
}

}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

// A convolution as a product of matrices: weights times columns, one column per output position.

// So many columns and rows at a time: what the block of a product holds.
inline constexpr int64_t columns_at_once = 256, rows_at_once = 256;

// An index of a shape from its number in row-major order.
inline Index index_of(int64_t number, const Shape& shape) {
    Index index{};
    for (size_t axis = shape.size(); axis-- > 0; number /= shape[axis])
        index[axis] = number % shape[axis];
    return index;
}

// y[m][p] += sum over k of weights[m][k] * column p[k]. fill(k, rows, p, columns, block) writes so
// many rows of so many columns to block[row][column], from row k and column p on.
template <typename T, typename Fill>
void convolve(int64_t outputs, int64_t depth, int64_t positions, const T* weights, Fill fill,
              std::vector<T>& block, T* y) {
    block.resize(static_cast<size_t>(rows_at_once * columns_at_once));
    for (int64_t p = 0; p < positions; p += columns_at_once) {
        const int64_t columns = std::min(columns_at_once, positions - p);
        for (int64_t k = 0; k < depth; k += rows_at_once) {
            const int64_t rows = std::min(rows_at_once, depth - k);
            fill(k, rows, p, columns, block.data());
            add_product(outputs, columns, rows, weights + k, depth, block.data(), columns, y + p,
                        positions);
        }
    }
}

// The columns of a convolution over one image: row k is tap k % taps of channel k / taps.
template <typename T>
void fill_columns(const Sliding& window, const T* x, int64_t k, int64_t rows, int64_t p,
                  int64_t columns, T* to) {
    const size_t last = window.last();
    const int64_t taps = window.kernel.elements(), channel_size = window.size.elements();
    const int64_t stride = window.strides[last];
    const Index begin = index_of(p, window.positions);
    Index tap = index_of(k % taps, window.kernel);
    const T* channel = x + k / taps * channel_size;
    for (int64_t row = 0; row < rows; ++row) {
        Index position = begin;
        for (int64_t left = columns; left > 0;) {
            const int64_t from = position[last];
            const int64_t until = std::min(window.positions[last], from + left);
            const Run run = run_inside(window, position, tap);
            const int64_t low = std::clamp(run.first, from, until);
            const int64_t high = std::clamp(run.last, low, until);
            to = std::fill_n(to, low - from, T());
            if (stride == 1) {
                to = std::copy_n(channel + run.offset + low, high - low, to);
            } else {
                for (int64_t at = low; at < high; ++at) *to++ = channel[run.offset + at * stride];
            }
            to = std::fill_n(to, until - high, T());
            left -= until - from;
            position[last] = 0;
            advance(position, window.positions, last);
        }
        if (!advance(tap, window.kernel, window.rank())) channel += channel_size;
    }
}

// A window whose columns are the input itself.
bool is_pointwise(const Sliding& window) {
    const auto all = [](const Shape& shape, int64_t value) {
        return std::ranges::all_of(shape, [value](int64_t v) { return v == value; });
    };
    return all(window.kernel, 1) && all(window.strides, 1) && all(window.pads, 0) &&
           window.size == window.positions;
}

// y += convolution of x with w, image by image and group by group.
template <typename T>
void convolve_all(const Call& call, const Shape& x_shape, const Shape& w_shape, const T* x,
                  const T* w, T* y) {
    const Shape& y_shape = call.outputs[0].shape;
    const Sliding window = sliding(call.node, x_shape, y_shape, spatial(w_shape));
    const int64_t group = call.node.get("group", int64_t{1});
    const int64_t outputs = w_shape[0] / group, inputs = w_shape[1];
    const int64_t depth = inputs * window.kernel.elements();
    const int64_t size = window.size.elements(), positions = window.positions.elements();
    const bool pointwise = is_pointwise(window);
    std::vector<T> block;
    for (int64_t i = 0; i < x_shape[0] * group; ++i) {
        const T* image = x + i * inputs * size;
        const T* weights = w + i % group * outputs * depth;
        T* to = y + i * outputs * positions;
        if (pointwise) {
            add_product(outputs, positions, depth, weights, depth, image, size, to, positions);
            continue;
        }
        const auto fill = [&](int64_t k, int64_t rows, int64_t p, int64_t columns, T* columns_to) {
            fill_columns(window, image, k, rows, p, columns, columns_to);
        };
        convolve(outputs, depth, positions, weights, fill, block, to);
    }
}

// Every output element starts from the bias of its channel, or from 0.
template <typename T>
void start_with_bias(const Shape& y, const T* bias, T* to) {
    const int64_t size = spatial(y).elements();
    for (int64_t i = 0; i < y[0] * y[1]; ++i)
        to = std::fill_n(to, size, bias ? bias[i % y[1]] : T());
}

template <typename T>
void conv_as(const Call& call) {
    const Array &x = call.inputs[0], &w = call.inputs[1];
    const Numbers<T> xs(x), ws(w), bias(call.has_input(2) ? call.inputs[2] : Array());
    Sums<T> y(call.outputs[0]);
    start_with_bias(call.outputs[0].shape, bias.data(), y.data());
    convolve_all(call, x.shape, w.shape, xs.data(), ws.data(), y.data());
    y.store();
}

Result<void> conv(const Call& call) {
    const bool known = with_float(call.inputs[0].type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) conv_as<Computed<T>>(call);
    });
    if (!known) return no_type(call, call.inputs[0].type);
    return {};
}

// ---- integers
// ------------------------------------------------------------------------------------------------------

// Elements minus their zero point: one for all, or one per slice of the first axis.
std::vector<uint32_t> centred(const Array& x, const Array* zero) {
    const Numbers<uint32_t> numbers(x);
    std::vector<uint32_t> centred(numbers.data(), numbers.data() + x.elements());
    if (!zero) return centred;
    const Numbers<uint32_t> zeros(*zero);
    const int64_t slices = zero->elements();
    if (slices == 0) return centred;
    const int64_t each = x.elements() / slices;
    for (int64_t i = 0; i < slices * each; ++i) centred[static_cast<size_t>(i)] -= zeros[i / each];
    return centred;
}

const Array* input_or_null(const Call& call, size_t i) {
    return call.has_input(i) ? &call.inputs[i] : nullptr;
}

Result<void> conv_integer(const Call& call) {
    const Array &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
    for (const Array* array : {&x, &w})
        if (array->type != DataType::int8 && array->type != DataType::uint8)
            return no_type(call, array->type);
    if (y.elements() == 0) return {};
    const auto xs = centred(x, input_or_null(call, 2)), ws = centred(w, input_or_null(call, 3));
    std::fill_n(y.as<uint32_t>(), y.elements(), 0U);
    convolve_all(call, x.shape, w.shape, xs.data(), ws.data(), y.as<uint32_t>());
    return {};
}

// Real numbers of a convolution to codes, by way of an activation and factors.
template <typename T>
Result<void> to_codes(const Call& call, const graph::BeforeCodes& before, std::vector<float> reals,
                      float scale, int32_t zero) {
    const Array& y = call.outputs[0];
    if (before.activation) {
        graph::Node node;
        static_cast<graph::Operation&>(node) = *before.activation;
        node.name = call.node.name;
        Array array{DataType::float32, y.shape, reinterpret_cast<std::byte*>(reals.data())};
        const Kernel kernel = find_kernel(node.kind);
        if (auto done = kernel({node, {&array, 1}, {&array, 1}}); !done) return done;
    }
    const auto channels = static_cast<size_t>(y.shape[1]);
    const auto size = static_cast<size_t>(spatial(y.shape).elements());
    for (size_t i = 0; i < reals.size(); ++i) {
        const float factor = before.factors.empty() ? 1 : before.factors[i / size % channels];
        y.as<T>()[i] = quantised<T>(reals[i] * (factor / scale), zero);
    }
    return {};
}

// x xs xz w ws wz ys yz b?
template <typename T>
Result<void> qlinear_conv_as(const Call& call) {
    const Array &x = call.inputs[0], &w = call.inputs[3], &y = call.outputs[0];
    const auto xs = centred(x, input_or_null(call, 2)), ws = centred(w, input_or_null(call, 5));
    const Numbers<uint32_t> bias(call.has_input(8) ? call.inputs[8] : Array());
    std::vector<uint32_t> sums(static_cast<size_t>(y.elements()));
    start_with_bias(y.shape, bias.data(), sums.data());
    convolve_all(call, x.shape, w.shape, xs.data(), ws.data(), sums.data());
    const Numbers<float> x_scale(call.inputs[1]), w_scale(call.inputs[4]), y_scale(call.inputs[6]);
    const int64_t scales = call.inputs[4].elements(), channels = y.shape[1];
    const int32_t zero = call.has_input(7) ? *call.inputs[7].as<T>() : 0;
    const int64_t size = spatial(y.shape).elements();
    const graph::BeforeCodes before = graph::read_before_codes(call.node);
    if (before.activation || !before.factors.empty()) {
        std::vector<float> reals(sums.size());
        for (size_t i = 0; i < sums.size(); ++i) {
            const auto channel = static_cast<int64_t>(i) / size % channels;
            reals[i] = static_cast<float>(static_cast<int32_t>(sums[i])) * x_scale[0] *
                       w_scale[static_cast<size_t>(scales == 1 ? 0 : channel)];
        }
        return to_codes<T>(call, before, std::move(reals), y_scale[0], zero);
    }
    for (int64_t i = 0; i < y.shape[0] * channels; ++i) {
        const float scale = x_scale[0] * w_scale[scales == 1 ? 0 : i % channels] / y_scale[0];
        for (int64_t at = i * size; at < (i + 1) * size; ++at) {
            const auto sum = static_cast<int32_t>(sums[static_cast<size_t>(at)]);
            y.as<T>()[at] = quantised<T>(static_cast<float>(sum) * scale, zero);
        }
    }
    return {};
}

Result<void> qlinear_conv(const Call& call) {
    for (const size_t i : {size_t{0}, size_t{3}})
        if (call.inputs[i].type != DataType::int8 && call.inputs[i].type != DataType::uint8)
            return no_type(call, call.inputs[i].type);
    const DataType type = call.outputs[0].type;
    Result<void> done;
    const bool known = with_one_of<int8_t, uint8_t>(type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) done = qlinear_conv_as<T>(call);
    });
    if (!known) return no_type(call, type);
    return done;
}

// ---- transposed
// ----------------------------------------------------------------------------------------------------

// Adds the products of one tap, one per input position, to the output elements that the tap
// touches: the window slides over the output.
template <typename T>
void add_tap(const Sliding& window, const Index& tap, int64_t p, int64_t columns, const T* products,
             T* y) {
    const size_t last = window.last();
    const int64_t stride = window.strides[last];
    Index position = index_of(p, window.positions);
    while (columns > 0) {
        const int64_t from = position[last];
        const int64_t until = std::min(window.positions[last], from + columns);
        const Run run = run_inside(window, position, tap);
        const int64_t low = std::clamp(run.first, from, until);
        const int64_t high = std::clamp(run.last, low, until);
        for (int64_t at = low; at < high; ++at) y[run.offset + at * stride] += products[at - from];
        products += until - from;
        columns -= until - from;
        position[last] = 0;
        advance(position, window.positions, last);
    }
}

template <typename T>
void conv_transpose_as(const Call& call) {
    const Array &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
    const Numbers<T> xs(x), ws(w), bias(call.has_input(2) ? call.inputs[2] : Array());
    Sums<T> sums(y);
    start_with_bias(y.shape, bias.data(), sums.data());
    const Sliding window = sliding(call.node, y.shape, x.shape, spatial(w.shape));
    const int64_t group = call.node.get("group", int64_t{1});
    const int64_t inputs = w.shape[0] / group, taps = window.kernel.elements();
    const int64_t rows = w.shape[1] * taps;  // output channels of the group, tap by tap
    const int64_t size = window.size.elements(), positions = window.positions.elements();
    std::vector<T> weights(static_cast<size_t>(rows * inputs)), products;
    for (int64_t i = 0; i < x.shape[0] * group; ++i) {
        transpose(inputs, rows, ws.data() + i % group * inputs * rows, weights.data());
        const T* image = xs.data() + i * inputs * positions;
        T* to = sums.data() + i * w.shape[1] * size;
        for (int64_t row = 0; row < rows; row += rows_at_once) {
            const int64_t some = std::min(rows_at_once, rows - row);
            for (int64_t p = 0; p < positions; p += columns_at_once) {
                const int64_t columns = std::min(columns_at_once, positions - p);
                products.assign(static_cast<size_t>(some * columns), T());
                add_product(some, columns, inputs, weights.data() + row * inputs, inputs, image + p,
                            positions, products.data(), columns);
                for (int64_t r = 0; r < some; ++r)
                    add_tap(window, index_of((row + r) % taps, window.kernel), p, columns,
                            products.data() + r * columns, to + (row + r) / taps * size);
            }
        }
    }
    sums.store();
}

Result<void> conv_transpose(const Call& call) {
    const bool known = with_float(call.inputs[0].type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) conv_transpose_as<Computed<T>>(call);
    });
    if (!known) return no_type(call, call.inputs[0].type);
    return {};
}

// Convolution whose taps are shifted by offsets that are data.

// Linear between the elements around a place, along all axes; outside of the tensor lies 0.
template <typename T>
T sample(const T* channel, const Shape& size, const std::array<T, max_rank>& place) {
    const size_t rank = size.size();
    std::array<T, max_rank> part{};  // of the upper neighbour
    Index low{};
    for (size_t axis = 0; axis < rank; ++axis) {
        // Also false for NaN, and before the conversion to an integer could overflow.
        if (!(place[axis] > T(-1) && place[axis] < static_cast<T>(size[axis]))) return 0;
        const T floor = std::floor(place[axis]);
        low[axis] = static_cast<int64_t>(floor);
        part[axis] = place[axis] - floor;
    }
    T sum = 0;
    for (size_t corner = 0; corner < size_t{1} << rank; ++corner) {
        T weight = 1;
        int64_t at = 0;
        bool inside = true;
        for (size_t axis = 0; axis < rank; ++axis) {
            const bool upper = (corner >> axis & 1) != 0;
            const int64_t i = low[axis] + (upper ? 1 : 0);
            inside &= i >= 0 && i < size[axis];
            weight *= upper ? part[axis] : 1 - part[axis];
            at = at * size[axis] + i;
        }
        if (inside && weight != 0) sum += weight * channel[at];
    }
    return sum;
}

// x w offset bias? mask?
template <typename T>
void deform_conv_as(const Call& call) {
    const Array &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
    const auto optional = [&](size_t i) { return call.has_input(i) ? call.inputs[i] : Array(); };
    const Numbers<T> xs(x), ws(w), offsets(call.inputs[2]), bias(optional(3)), mask(optional(4));
    Sums<T> sums(y);
    const Sliding window = sliding(call.node, x.shape, y.shape, spatial(w.shape));
    const int64_t rank = static_cast<int64_t>(window.rank()), taps = window.kernel.elements();
    const int64_t group = call.node.get("group", int64_t{1});
    const int64_t offset_group = call.node.get("offset_group", int64_t{1});
    const int64_t inputs = w.shape[1], outputs = w.shape[0] / group, depth = inputs * taps;
    const int64_t size = window.size.elements(), positions = window.positions.elements();
    const int64_t channels_per_offset = x.shape[1] / offset_group;
    std::vector<T> block;
    for (int64_t i = 0; i < x.shape[0] * group; ++i) {
        const int64_t image = i / group, first_channel = i % group * inputs;
        // Row k is tap k % taps of channel k / taps of the group.
        const auto fill = [&](int64_t k, int64_t rows, int64_t p, int64_t columns, T* to) {
            for (int64_t row = k; row < k + rows; ++row) {
                const int64_t channel = first_channel + row / taps;
                const int64_t shift =  // which offsets of the image
                    (image * offset_group + channel / channels_per_offset) * taps + row % taps;
                const Index tap = index_of(row % taps, window.kernel);
                Index position = index_of(p, window.positions);
                for (int64_t at = p; at < p + columns; ++at) {
                    std::array<T, max_rank> place{};
                    for (size_t axis = 0; axis < window.rank(); ++axis)
                        place[axis] =
                            static_cast<T>(window.start(axis, position[axis], tap[axis])) +
                            offsets[(shift * rank + static_cast<int64_t>(axis)) * positions + at];
                    const T value = sample(xs.data() + (image * x.shape[1] + channel) * size,
                                           window.size, place);
                    *to++ = mask.data() ? value * mask[shift * positions + at] : value;
                    advance(position, window.positions, window.rank());
                }
            }
        };
        T* to = sums.data() + i * outputs * positions;
        for (int64_t m = 0; m < outputs; ++m)
            std::fill_n(to + m * positions, positions,
                        bias.data() ? bias[i % group * outputs + m] : T());
        convolve(outputs, depth, positions, ws.data() + i % group * outputs * depth, fill, block,
                 to);
    }
    sums.store();
}

Result<void> deform_conv(const Call& call) {
    const bool known = with_float(call.inputs[0].type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) deform_conv_as<Computed<T>>(call);
    });
    if (!known) return no_type(call, call.inputs[0].type);
    return {};
}

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr Traits convolving =
    Trait::convolution | Trait::matrix_work | Trait::linear | Trait::picture_work;

constexpr OpInfo rows[] = {
    {"Conv", 2, 3, 1, 1, conv_attributes, infer_conv, count_conv, cpu::conv,
     convolving | Trait::product, macs_conv},
    {"ConvInteger", 2, 4, 1, 1, conv_attributes, infer_conv_integer, count_conv, cpu::conv_integer,
     convolving | Trait::codes, macs_conv},
    {"QLinearConv", 8, 9, 1, 1,
     "activation:s|Clip|HardSigmoid|HardSwish|LeakyRelu|Relu|SiLU|Sigmoid|Tanh alpha:f beta:f "
     "dilations:is factors:fs group:i pads:is strides:is",
     infer_qlinear_conv, count_conv, cpu::qlinear_conv, convolving | Trait::codes, macs_conv},
    {"ConvTranspose", 2, 3, 1, 1, "dilations:is group:i output_padding:is pads:is strides:is",
     infer_conv_transpose, count_conv, cpu::conv_transpose, convolving | Trait::product,
     macs_conv_transpose},
    {"DeformConv", 3, 5, 1, 1,
     "dilations:is group:i kernel_shape:is offset_group:i pads:is strides:is", infer_deform_conv,
     count_deform_conv, cpu::deform_conv, Trait::convolution | Trait::matrix_work | Trait::exact_2,
     macs_deform_conv},
};

}  // namespace

std::span<const OpInfo> window_ops() {
    return rows;
}

}  // namespace vartml::graph
