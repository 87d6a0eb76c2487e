// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/equalise.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "lib/compile/passes/passes.h"
#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"
#include "lib/graph/ops_window.h"

namespace vartml::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

// Channels that hardly differ are left alone, and none grows without end.
constexpr float least_gain = 1.25F, most_gain = 1024;
// How far channels are brought to one size, from not at all: what their codes gain the weights that
// read them lose.
constexpr double powers[] = {0.5, 0.625, 0.75, 0.875, 1};

// Whether f(a · x) = a · f(x) for positive a.
bool is_homogeneous(const Node& node) {
    return (node.kind == "Relu" || node.kind == "LeakyRelu") && node.inputs.size() == 1;
}

class Equaliser {
public:
    Equaliser(Graph& graph, const Statistics& statistics)
        : graph_(graph), statistics_(statistics), uses_(find_uses(graph)) {
        parents_.resize(graph.values.size());
        std::iota(parents_.begin(), parents_.end(), 0);
        good_.assign(graph.values.size(), true);
    }

    size_t run() {
        for (const Node& node : graph_.nodes) visit(node);
        for (const auto* ids : {&graph_.inputs, &graph_.outputs})
            for (const ValueId id : *ids) refuse(id);
        for (size_t id = 0; id < parents_.size(); ++id)
            if (!good_[id]) good_[static_cast<size_t>(group(static_cast<ValueId>(id)))] = false;
        find_factors();
        return apply();
    }

private:
    // A convolution that reads tensors of a group.
    struct Reader {
        std::vector<double> weights;         // [outputs, group_inputs, taps]
        std::vector<double> squares, means;  // of its input, per channel
        size_t outputs = 0, group_inputs = 0, groups = 1;
    };
    struct Factors {
        std::vector<Reader> readers;
        std::vector<float> ranges;   // largest size per channel
        std::vector<double> values;  // empty: the group stays
    };

    ValueId group(ValueId id) {
        while (parents_[static_cast<size_t>(id)] != id) id = parents_[static_cast<size_t>(id)];
        return id;
    }
    void join(ValueId a, ValueId b) { parents_[static_cast<size_t>(group(a))] = group(b); }
    void refuse(ValueId id) {
        if (id != graph::none) good_[static_cast<size_t>(id)] = false;
    }
    const std::vector<int64_t>& shape(ValueId id) const { return graph_.value(id).type.shape; }
    bool is_constant(ValueId id) const {
        return id != graph::none && graph_.value(id).constant.has_value();
    }
    bool has_weights(const Node& node) const {
        return node.kind == "Conv" && node.fused.empty() && is_constant(node.inputs[1]) &&
               !is_constant(node.inputs[0]) &&
               (node.inputs.size() < 3 || node.inputs[2] == graph::none ||
                is_constant(node.inputs[2]));
    }
    // The activation that alone reads a convolution; nullptr: none, or others read it too.
    const Node* activation_of(const Node& conv) const {
        const ValueId id = conv.outputs[0];
        const auto& readers = uses_.consumers[static_cast<size_t>(id)];
        if (readers.size() != 1 || uses_.is_output[static_cast<size_t>(id)]) return nullptr;
        const Node& reader = graph_.nodes[static_cast<size_t>(readers[0])];
        const bool known = reader.inputs.size() == 1 && graph::write_before_codes({reader, {}});
        return known ? &reader : nullptr;
    }
    // Whether it is the activation of a convolution, which the convolution speaks for.
    bool belongs_to_conv(const Node& node) const {
        if (node.inputs.empty() || node.inputs[0] == graph::none) return false;
        const int32_t maker = uses_.producer[static_cast<size_t>(node.inputs[0])];
        return maker >= 0 && has_weights(graph_.nodes[static_cast<size_t>(maker)]) &&
               activation_of(graph_.nodes[static_cast<size_t>(maker)]) == &node;
    }

    // What a node allows of the tensors around it.
    void visit(const Node& node) {
        if (has_weights(node)) {
            // The tensor in front of a fused activation has no codes.
            if (activation_of(node)) refuse(node.outputs[0]);
            return;
        }
        if (belongs_to_conv(node)) return;
        const bool same = node.outputs.size() == 1 && !node.inputs.empty() &&
                          node.inputs[0] != graph::none && shape(node.outputs[0]).size() == 4 &&
                          shape(node.inputs[0]).size() == 4;
        if (same && node.kind == "Add" && !is_constant(node.inputs[0]) &&
            !is_constant(node.inputs[1]) && shape(node.inputs[0]) == shape(node.inputs[1])) {
            join(node.inputs[0], node.inputs[1]);
            join(node.inputs[0], node.outputs[0]);
            return;
        }
        // A gate is a number per channel; it stays.
        if (same && node.kind == "Mul" && !is_constant(node.inputs[0]) &&
            !is_constant(node.inputs[1])) {
            const size_t gate = graph_.value(node.inputs[0]).type.elements() <
                                        graph_.value(node.inputs[1]).type.elements()
                                    ? 0
                                    : 1;
            if (shape(node.inputs[1 - gate]) == shape(node.outputs[0])) {
                join(node.inputs[1 - gate], node.outputs[0]);
                refuse(node.inputs[gate]);
                return;
            }
        }
        const bool pools = node.kind == "MaxPool" || node.kind == "AveragePool" ||
                           node.kind == "GlobalAveragePool" || node.kind == "Resize";
        if (same && pools && node.inputs.size() == 1 && is_homogeneous_of_channels(node)) {
            join(node.inputs[0], node.outputs[0]);
            return;
        }
        for (const ValueId id : node.inputs) refuse(id);
        for (const ValueId id : node.outputs) refuse(id);
    }
    bool is_homogeneous_of_channels(const Node& node) const {
        return shape(node.inputs[0])[1] == shape(node.outputs[0])[1];
    }

    // Per group, what the channels are multiplied by.
    void find_factors() {
        factors_.resize(parents_.size());
        for (size_t i = 0; i < parents_.size(); ++i) {
            const auto found = statistics_.find(graph_.values[i].name);
            if (found == statistics_.end()) continue;
            const auto& channels = found->second.channel_ranges();
            auto& ranges = factors_[static_cast<size_t>(group(static_cast<ValueId>(i)))].ranges;
            ranges.resize(std::max(ranges.size(), channels.size()), 0);
            for (size_t c = 0; c < channels.size(); ++c)
                ranges[c] = std::max({ranges[c], -channels[c].low, channels[c].high});
        }
        find_readers();
        for (size_t i = 0; i < parents_.size(); ++i) {
            Factors& f = factors_[i];
            if (parents_[i] != static_cast<ValueId>(i) || !good_[i] || f.ranges.size() < 2)
                continue;
            const float largest = std::ranges::max(f.ranges);
            if (!(largest > std::ranges::min(f.ranges) * least_gain)) continue;
            double least = INFINITY;
            for (const double power : powers) {
                std::vector<double> values;
                for (const float range : f.ranges)
                    values.push_back(
                        range > 0 ? std::pow(std::min(largest / range, most_gain), power) : 1.0);
                double noise = 0;
                for (const Reader& reader : f.readers) noise += noise_of(reader, f.ranges, values);
                if (noise < least) {
                    least = noise;
                    f.values = std::move(values);
                }
            }
        }
    }

    void find_readers() {
        for (const Node& node : graph_.nodes) {
            if (!has_weights(node)) continue;
            const auto found = statistics_.find(graph_.value(node.inputs[0]).name);
            if (found == statistics_.end()) continue;
            Reader reader{graph::read_numbers<double>(graph_.value(node.inputs[1])),
                          found->second.channel_squares(), found->second.channel_means()};
            const auto& dims = shape(node.inputs[1]);
            reader.outputs = static_cast<size_t>(dims[0]);
            reader.group_inputs = static_cast<size_t>(dims[1]);
            reader.groups = static_cast<size_t>(node.get("group", int64_t{1}));
            if (reader.squares.size() == reader.groups * reader.group_inputs)
                factors_[static_cast<size_t>(group(node.inputs[0]))].readers.push_back(
                    std::move(reader));
        }
    }

    // What rounding adds to the results of a convolution, as a part of their squares: codes of one
    // step for all channels times the weights, and the channels times a step for all weights of an
    // output. A step of s is off by s^2 / 12 in the mean of squares, a factor that all have.
    static double noise_of(const Reader& reader, std::span<const float> ranges,
                           std::span<const double> factors) {
        double largest = 0;
        for (size_t c = 0; c < factors.size(); ++c)
            largest = std::max(largest, static_cast<double>(ranges[c]) * factors[c]);
        const double code_step = largest / 255;
        const size_t taps = reader.weights.size() / reader.outputs / reader.group_inputs;
        double noise = 0, signal = 0;
        for (size_t o = 0; o < reader.outputs; ++o) {
            const size_t first = o / (reader.outputs / reader.groups) * reader.group_inputs;
            double most = 0, weights = 0, channels = 0;
            for (size_t c = 0; c < reader.group_inputs; ++c) {
                const double factor = factors[first + c], square = reader.squares[first + c];
                for (size_t t = 0; t < taps; ++t) {
                    const double weight = reader.weights[(o * reader.group_inputs + c) * taps + t];
                    most = std::max(most, std::fabs(weight) / factor);
                    weights += weight * weight / factor / factor;
                    signal += weight * weight * square;
                }
                // Of the mean the bias takes care.
                const double variance = square - reader.means[first + c] * reader.means[first + c];
                channels += static_cast<double>(taps) * variance * factor * factor;
            }
            const double weight_step = most / 127;
            noise += code_step * code_step * weights + weight_step * weight_step * channels;
        }
        return signal > 0 ? noise / signal : 0;
    }

    const std::vector<double>& factors_of(ValueId id) {
        return factors_[static_cast<size_t>(group(id))].values;
    }

    size_t apply() {
        Rewriter rewriter(graph_);
        const size_t count = graph_.nodes.size();
        // Multiplications to insert, by the node that they follow.
        std::vector<std::pair<size_t, std::vector<double>>> inserted;
        size_t changed = 0;
        for (size_t i = 0; i < count; ++i) {
            if (!has_weights(graph_.nodes[i])) continue;
            if (const auto& read = factors_of(graph_.nodes[i].inputs[0]); !read.empty())
                divide_weights(rewriter, i, read);
            const Node* activation = activation_of(graph_.nodes[i]);
            const auto& written =
                factors_of(activation ? activation->outputs[0] : graph_.nodes[i].outputs[0]);
            if (written.empty()) continue;
            ++changed;
            if (activation && !is_homogeneous(*activation)) {
                inserted.emplace_back(static_cast<size_t>(activation - graph_.nodes.data()),
                                      written);
                continue;
            }
            const std::vector<double> nothing(written.size(), 0);
            absorb_affine(rewriter, i, written, nothing);
        }
        std::ranges::sort(inserted, {}, &std::pair<size_t, std::vector<double>>::first);
        for (size_t i = inserted.size(); i-- > 0;)
            insert_factors(rewriter, inserted[i].first, inserted[i].second);
        return changed;
    }

    void divide_weights(Rewriter& rewriter, size_t index, const std::vector<double>& factors) {
        Node& node = graph_.nodes[index];
        const graph::Value weights = graph_.value(node.inputs[1]);
        auto numbers = graph::read_numbers<double>(weights);
        const auto& dims = weights.type.shape;
        const auto group_inputs = static_cast<size_t>(dims[1]);
        const auto groups = static_cast<size_t>(node.get("group", int64_t{1}));
        const size_t outputs = static_cast<size_t>(dims[0]) / groups;
        const size_t taps = numbers.size() / static_cast<size_t>(dims[0]) / group_inputs;
        for (size_t i = 0; i < numbers.size(); ++i) {
            const size_t output = i / (group_inputs * taps);
            const size_t input = output / outputs * group_inputs + i / taps % group_inputs;
            numbers[i] /= factors[input];
        }
        node.inputs[1] = rewriter.add_constant(weights.name, weights.type, numbers);
    }

    // x -> x · factors for whoever read x.
    void insert_factors(Rewriter& rewriter, size_t index, const std::vector<double>& factors) {
        const ValueId old = graph_.nodes[index].outputs[0];
        const graph::Type type = graph_.value(old).type;
        const std::string stem = graph_.value(old).name;
        const ValueId scaled = graph_.add_value(graph_.unique_name(stem + "/equalized"), type);
        // Channels are the second axis, however many follow.
        std::vector<int64_t> dims(type.shape.size() - 1, 1);
        dims[0] = static_cast<int64_t>(factors.size());
        const ValueId numbers =
            rewriter.add_constant(stem + "/factors", {type.data_type, dims}, factors);
        for (Node& node : graph_.nodes) std::ranges::replace(node.inputs, old, scaled);
        Node node;
        node.kind = "Mul";
        node.name = graph_.unique_name(stem + "/Mul");
        node.sources = graph_.nodes[index].sources;
        node.inputs = {old, numbers};
        node.outputs = {scaled};
        graph_.nodes.insert(graph_.nodes.begin() + static_cast<ptrdiff_t>(index) + 1,
                            std::move(node));
    }

    Graph& graph_;
    const Statistics& statistics_;
    const graph::Uses uses_;
    std::vector<ValueId> parents_;  // of the union of tensors with the same factors
    std::vector<bool> good_;
    std::vector<Factors> factors_;  // by the first of the group
};

}  // namespace

size_t equalise(Graph& graph, const Statistics& statistics) {
    return Equaliser(graph, statistics).run();
}

}  // namespace vartml::compiler
