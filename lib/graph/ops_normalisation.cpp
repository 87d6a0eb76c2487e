// SPDX-License-Identifier: Apache-2.0
// Normalisation and softmax: the shape stays.
#include <algorithm>
#include <cmath>
#include <functional>

#include "lib/graph/ops.h"
#include "lib/graph/ops_reduction.h"

namespace vartml::graph {
namespace {

Result<Types> infer_axis(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const int64_t axis = node.get("axis", int64_t{-1});
    if (x.shape.empty())
        return bad_node(node, "has a single number as its input, expected rank 1 or more");
    if (wrap_axis(axis, x.shape.size()) < 0) {
        return bad_node(node, "has the axis " + std::to_string(axis) + ", outside of its input " +
                                  to_string(x));
    }
    return Types{x};
}

// The inputs from 1 on hold one element per channel.
Result<Types> infer_per_channel(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    if (x.shape.size() < 2) {
        return bad_node(node, "has the input " + to_string(x) + ", expected rank 2 or more");
    }
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        if (input_type(graph, node, i).shape != std::vector<int64_t>{x.shape[1]}) {
            return bad_node(node, "has the parameter " + to_string(input_type(graph, node, i)) +
                                      ", expected one element per channel of " + to_string(x));
        }
    }
    return Types{x};
}

Result<Types> infer_groups(const Graph& graph, const Node& node) {
    auto types = infer_per_channel(graph, node);
    if (!types) return types;
    const int64_t groups = node.get("num_groups", int64_t{0}), channels = types->front().shape[1];
    if (groups < 1 || channels % groups != 0) {
        return bad_node(node, "makes " + std::to_string(groups) + " groups of the channels of " +
                                  to_string(types->front()));
    }
    return types;
}

Result<Types> infer_lp(const Graph& graph, const Node& node) {
    const int64_t p = node.get("p", int64_t{2});
    if (p != 1 && p != 2) {
        return bad_node(node, "has p " + std::to_string(p) + ", expected 1 or 2");
    }
    return infer_axis(graph, node);
}

Result<Types> infer_local_response(const Graph& graph, const Node& node) {
    const int64_t size = node.get("size", int64_t{0});
    if (size < 1 || size > max_elements) {
        return bad_node(node, "sums over " + std::to_string(size) + " channels");
    }
    return infer_per_channel(graph, node);
}

Result<Types> infer_mean_variance(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto axes = node.get("axes", std::vector<int64_t>());
    for (const int64_t axis : axes) {
        if (axis < 0 || axis >= static_cast<int64_t>(x.shape.size())) {
            return bad_node(node, "normalises axes " + to_string(axes) + ", outside of its input " +
                                      to_string(x));
        }
    }
    return Types{x};
}

// scale and bias broadcast to the axes from `axis` on; mean and inverse deviation are the other
// outputs.
Result<Types> infer_layer(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const int64_t axis = wrap_axis(node.get("axis", int64_t{-1}), x.shape.size());
    if (axis < 0) return infer_axis(graph, node);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        if (has_input(node, i) && broadcast(x.shape, input_type(graph, node, i).shape) != x.shape) {
            return bad_node(node, "has the parameter " + to_string(input_type(graph, node, i)) +
                                      ", which does not broadcast to " + to_string(x));
        }
    }
    Type statistics{DataType::float32, x.shape};
    for (size_t i = static_cast<size_t>(axis); i < x.shape.size(); ++i) statistics.shape[i] = 1;
    return Types{x, statistics, statistics};
}

uint64_t count_softmax(const Graph& graph, const Node& node) {
    return 5 * count_output(graph, node);
}
uint64_t count_normalisation(const Graph& graph, const Node& node) {
    return 4 * count_output(graph, node);
}

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

// Softmax and normalisation: statistics and results in double, rounded once.

// Reads each line along an axis as doubles, lets apply(line) change it and writes it back.
template <auto apply>
Result<void> along_axis(const Call& call) {
    const Array& x = call.inputs[0];
    const AxisView view = around_axis(x.shape, axis_of(call, x.shape));
    return for_type<Floats>(call, x.type, [&]<typename T>(T) {
        std::vector<double> line(static_cast<size_t>(view.size));
        for (int64_t at = 0; view.size > 0 && at < view.outer * view.inner; ++at) {
            const int64_t start = at / view.inner * view.size * view.inner + at % view.inner;
            const T* from = x.as<T>() + start;
            T* to = call.outputs[0].as<T>() + start;
            for (size_t i = 0; i < line.size(); ++i)
                line[i] = static_cast<double>(load(from[static_cast<int64_t>(i) * view.inner]));
            apply(std::span(line), call.node);
            for (size_t i = 0; i < line.size(); ++i)
                to[static_cast<int64_t>(i) * view.inner] = graph::convert<T>(line[i]);
        }
    });
}

// The largest element is taken out, so that the exponentials stay finite.
double largest(std::span<const double> line) {
    return *std::ranges::max_element(line);
}

void softmax(std::span<double> line, const graph::Node&) {
    const double shift = largest(line);
    double sum = 0;
    for (double& x : line) sum += x = std::exp(x - shift);
    for (double& x : line) x /= sum;
}

void log_softmax(std::span<double> line, const graph::Node&) {
    const double shift = largest(line);
    double sum = 0;
    for (double& x : line) sum += std::exp(x -= shift);
    const double log_sum = std::log(sum);
    for (double& x : line) x -= log_sum;
}

// 1 at the first largest element.
void hardmax(std::span<double> line, const graph::Node&) {
    const auto place = std::ranges::max_element(line) - line.begin();
    std::ranges::fill(line, 0.0);
    line[static_cast<size_t>(place)] = 1;
}

// A line of zeros stays one.
void lp_normalise(std::span<double> line, const graph::Node& node) {
    const bool sum_of_sizes = node.get("p", int64_t{2}) == 1;
    double sum = 0;
    for (const double x : line) sum += sum_of_sizes ? std::fabs(x) : x * x;
    const double norm = sum_of_sizes ? sum : std::sqrt(sum);
    if (norm == 0) return;
    for (double& x : line) x /= norm;
}

double epsilon_of(const Call& call) {
    return static_cast<double>(call.node.get("epsilon", 1e-5F));
}

// y = x * factor[c] + offset[c], one of each per channel.
Result<void> batch_normalisation(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    std::vector<double> parameters[4];
    for (size_t i = 0; i < 4; ++i) parameters[i] = to_numbers<double>(call.inputs[i + 1]);
    auto& [factor, offset, mean, variance] = parameters;
    for (size_t c = 0; c < factor.size(); ++c) {
        factor[c] /= std::sqrt(variance[c] + epsilon_of(call));
        offset[c] -= mean[c] * factor[c];
    }
    const AxisView view = around_axis(x.shape, 1);
    return for_type<Floats>(call, x.type, [&]<typename T>(T) {
        const T* from = x.as<T>();
        T* to = y.as<T>();
        for (int64_t outer = 0; outer < view.outer; ++outer)
            for (size_t c = 0; c < factor.size(); ++c)
                for (int64_t i = 0; i < view.inner; ++i)
                    *to++ = graph::convert<T>(static_cast<double>(load(*from++)) * factor[c] +
                                              offset[c]);
    });
}

struct Statistics {
    double mean = 0, variance = 0;
};
template <typename T>
Statistics statistics_of(std::span<const T> elements) {
    const auto count = static_cast<double>(elements.size());
    double sum = 0, squares = 0;
    for (const T x : elements) sum += static_cast<double>(load(x));
    const double mean = sum / count;
    for (const T x : elements) {
        const double difference = static_cast<double>(load(x)) - mean;
        squares += difference * difference;
    }
    return {mean, squares / count};
}

// Groups of channels are normalised, then each channel has its scale and bias.
Result<void> normalise_groups(const Call& call, int64_t groups) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const int64_t channels = x.shape[1];
    if (groups < 1 || channels % groups != 0)
        return bad_data(call, "makes " + std::to_string(groups) + " groups of " +
                                  std::to_string(channels) + " channels");
    if (y.elements() == 0) return {};
    const auto scale = to_numbers<double>(call.inputs[1]);
    const auto bias = to_numbers<double>(call.inputs[2]);
    const AxisView view = around_axis(x.shape, 1);
    const int64_t per_group = channels / groups;
    const auto size = static_cast<size_t>(per_group * view.inner);
    return for_type<Floats>(call, x.type, [&]<typename T>(T) {
        const T* from = x.as<T>();
        T* to = y.as<T>();
        for (int64_t group = 0; group < view.outer * groups; ++group) {
            const Statistics s = statistics_of(std::span(from, size));
            const double inverse = 1 / std::sqrt(s.variance + epsilon_of(call));
            for (int64_t c = 0; c < per_group; ++c) {
                const auto channel = static_cast<size_t>(group % groups * per_group + c);
                const double factor = scale[channel] * inverse;
                for (int64_t i = 0; i < view.inner; ++i)
                    *to++ = graph::convert<T>(
                        (static_cast<double>(load(*from++)) - s.mean) * factor + bias[channel]);
            }
        }
    });
}

Result<void> group_normalisation(const Call& call) {
    return normalise_groups(call, call.node.get("num_groups", int64_t{1}));
}
Result<void> instance_normalisation(const Call& call) {
    return normalise_groups(call, std::max<int64_t>(call.inputs[0].shape[1], 1));
}

// Scale and bias as wide as they broadcast to the axes from `axis` on; mean and inverse deviation
// of each row there are the further outputs. RMS: no mean is taken out.
template <bool is_rms>
Result<void> layer_normalisation(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    Shape rows = x.shape;
    for (size_t i = axis_of(call, x.shape); i < rows.size(); ++i) rows[i] = 1;
    const auto count = static_cast<size_t>(rows.elements());
    const size_t size = count == 0 ? 0 : static_cast<size_t>(x.elements()) / count;
    std::vector<double> means(count), inverses(count);
    const std::vector<double> scale = to_numbers<double>(call.inputs[1]);
    const bool has_bias = call.has_input(2);
    const std::vector<double> bias =
        has_bias ? to_numbers<double>(call.inputs[2]) : std::vector<double>{0};
    const Runs<3> runs(x.shape,
                       {rows, call.inputs[1].shape, has_bias ? call.inputs[2].shape : Shape()});
    auto done = for_type<Floats>(call, x.type, [&]<typename T>(T) {
        for (size_t row = 0; row < count; ++row) {
            Statistics s = statistics_of(std::span(x.as<const T>() + row * size, size));
            if (is_rms) s = {0, s.variance + s.mean * s.mean};
            means[row] = s.mean;
            inverses[row] = 1 / std::sqrt(s.variance + epsilon_of(call));
        }
        runs.for_each([&](int64_t at, const std::array<int64_t, 3>& offsets) {
            const T* from = x.as<T>() + at;
            T* to = y.as<T>() + at;
            auto [row, scale_at, bias_at] = offsets;
            for (int64_t i = 0; i < runs.length(); ++i) {
                const double normal =
                    (static_cast<double>(load(from[i])) - means[static_cast<size_t>(row)]) *
                    inverses[static_cast<size_t>(row)];
                to[i] = graph::convert<T>(normal * scale[static_cast<size_t>(scale_at)] +
                                          bias[static_cast<size_t>(bias_at)]);
                row += runs.step(0);
                scale_at += runs.step(1);
                bias_at += runs.step(2);
            }
        });
    });
    if (!done) return done;
    const std::vector<double>* further[] = {&means, &inverses};
    for (size_t i = 1; i < call.outputs.size(); ++i) {
        if (!call.has_output(i)) continue;
        const auto& numbers = *further[i - 1];
        done = for_type<Floats>(call, call.outputs[i].type, [&]<typename T>(T) {
            std::ranges::transform(numbers, call.outputs[i].as<T>(), graph::convert<T, double>);
        });
        if (!done) return done;
    }
    return {};
}

// x / (bias + alpha / size * sum of squares of `size` channels around)^beta.
Result<void> local_response(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const int64_t channels = x.shape[1];
    const int64_t size = call.node.get("size", int64_t{1});
    const auto number = [&](const char* key) {
        return static_cast<double>(call.node.get(key, 0.0F));
    };
    const double alpha = number("alpha") / static_cast<double>(size), beta = number("beta"),
                 bias = number("bias");
    const AxisView view = around_axis(x.shape, 1);
    return for_type<Floats>(call, x.type, [&]<typename T>(T) {
        std::vector<double> sums(static_cast<size_t>(view.inner));
        for (int64_t at = 0; at < view.outer * channels; ++at) {
            const int64_t c = at % channels;
            const int64_t first = std::max<int64_t>(c - (size - 1) / 2, 0);
            const int64_t last = std::min(c + size / 2, channels - 1);
            std::ranges::fill(sums, 0.0);
            const T* from = x.as<T>() + (at - c + first) * view.inner;
            for (int64_t other = first; other <= last; ++other)
                for (double& sum : sums) {
                    const auto element = static_cast<double>(load(*from++));
                    sum += element * element;
                }
            from = x.as<T>() + at * view.inner;
            T* to = y.as<T>() + at * view.inner;
            for (const double sum : sums)
                *to++ = graph::convert<T>(static_cast<double>(load(*from++)) /
                                          std::pow(bias + alpha * sum, beta));
        }
    });
}

// Zero mean and unit variance over any axes. Given: the function body in ONNX adds 1e-9 to the
// deviation.
Result<void> mean_variance(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const Shape kept = without_axes(x.shape, call.node.get("axes", std::vector<int64_t>()));
    return for_type<Floats>(call, x.type, [&]<typename T>(T) {
        auto means = accumulate<T>(x, kept, 0.0, std::plus<double>());
        const double count = static_cast<double>(x.elements()) /
                             static_cast<double>(std::max<size_t>(means.size(), 1));
        for (double& mean : means) mean /= count;
        std::vector<double> deviations(means.size());
        for_each_with_group<T>(x, kept, [&](Work<T> element, size_t i) {
            const double difference = static_cast<double>(element) - means[i];
            deviations[i] += difference * difference;
        });
        for (double& deviation : deviations) deviation = std::sqrt(deviation / count) + 1e-9;
        T* to = y.as<T>();
        for_each_with_group<T>(x, kept, [&](Work<T> element, size_t i) {
            *to++ = graph::convert<T>((static_cast<double>(element) - means[i]) / deviations[i]);
        });
    });
}

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr OpInfo rows[] = {
    {"BatchNormalization", 5, 5, 1, 1, "epsilon:f=1e-5", infer_per_channel, count_normalisation,
     cpu::batch_normalisation, Trait::linear},
    {"GroupNormalization", 3, 3, 1, 1, "epsilon:f=1e-5 num_groups:i*", infer_groups,
     count_normalisation, cpu::group_normalisation},
    {"InstanceNormalization", 3, 3, 1, 1, "epsilon:f=1e-5", infer_per_channel, count_normalisation,
     cpu::instance_normalisation},
    {"LayerNormalization", 2, 3, 1, 3, "axis:i=-1 epsilon:f=1e-5", infer_layer, count_normalisation,
     cpu::layer_normalisation<false>},
    {"RMSNormalization", 2, 2, 1, 1, "axis:i=-1 epsilon:f=1e-5", infer_layer, count_normalisation,
     cpu::layer_normalisation<true>},
    {"LpNormalization", 1, 1, 1, 1, "axis:i=-1 p:i=2", infer_lp, count_normalisation,
     cpu::along_axis<cpu::lp_normalise>},
    {"LRN", 1, 1, 1, 1, "alpha:f=1e-4 beta:f=0.75 bias:f=1 size:i*", infer_local_response,
     count_normalisation, cpu::local_response},
    {"MeanVarianceNormalization", 1, 1, 1, 1, "axes:is", infer_mean_variance, count_normalisation,
     cpu::mean_variance},
    {"Softmax", 1, 1, 1, 1, "axis:i=-1", infer_axis, count_softmax, cpu::along_axis<cpu::softmax>,
     Trait::never_negative},
    {"LogSoftmax", 1, 1, 1, 1, "axis:i=-1", infer_axis, count_softmax,
     cpu::along_axis<cpu::log_softmax>},
    {"Hardmax", 1, 1, 1, 1, "axis:i=-1", infer_axis, count_none, cpu::along_axis<cpu::hardmax>,
     Trait::exact_0},
};

}  // namespace

std::span<const OpInfo> normalisation_ops() {
    return rows;
}

}  // namespace vartml::graph
