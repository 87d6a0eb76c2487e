// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/quantise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "lib/compile/passes/passes.h"
#include "lib/compile/patches.h"
#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"
#include "lib/graph/ops_window.h"

namespace vartml::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

bool is_constant(const Graph& graph, ValueId id) {
    return id != graph::none && graph.value(id).constant.has_value();
}
bool is_float_tensor(const Graph& graph, ValueId id) {
    return id != graph::none && graph.value(id).type.data_type == DataType::float32 &&
           !graph.value(id).data_dependent;
}

bool is_average(const Node& node) {
    return node.kind == "AveragePool" || node.kind == "GlobalAveragePool";
}
bool is_sum(const Graph& graph, const Node& node) {
    return node.kind == "Add" && !is_constant(graph, node.inputs[0]) &&
           !is_constant(graph, node.inputs[1]);
}

// Which nodes work on int8, and which values are quantised for them.
struct Choice {
    std::vector<bool> nodes;
    std::set<ValueId> values;
};

class Chooser {
public:
    Chooser(const Graph& graph, const std::set<std::string>& kept_float)
        : graph_(graph), kept_float_(kept_float), uses_(find_uses(graph)) {}

    Choice choose() const {
        Choice choice;
        choice.nodes.resize(graph_.nodes.size());
        const std::vector<bool> leads_on = find_nodes_before_products();
        const auto choose_if = [&](auto&& wanted) {
            for (size_t i = 0; i < graph_.nodes.size(); ++i) {
                const Node& node = graph_.nodes[i];
                if (choice.nodes[i] || !leads_on[i] || node.inputs.empty() ||
                    !is_float_tensor(graph_, node.inputs[0]) || !wanted(node))
                    continue;
                choice.nodes[i] = true;
                choice.values.insert(node.inputs[0]);
                if (is_sum(graph_, node)) choice.values.insert(node.inputs[1]);
                choice.values.insert(behind_activation(node));
            }
        };
        choose_if([&](const Node& node) {
            return channel_axis(graph_, node) && !kept_float_.contains(node.name);
        });
        const bool whole = kept_float_.empty();
        const auto coded = [&](ValueId id) { return choice.values.contains(id) ? 1 : 0; };
        choose_if([&](const Node& node) {
            if (!is_average(node) && !is_sum(graph_, node)) return false;
            const int around = coded(node.inputs[0]) + coded(behind_activation(node));
            // Making codes of two tensors is more work than a sum of floats.
            return whole || (is_average(node) ? around >= 1 : around + coded(node.inputs[1]) >= 2);
        });
        return choice;
    }

    // The value behind what the operator takes in: Relu and Clip, which quantising cuts off as they
    // do, and any activation of a QLinearConv, then factors per channel.
    ValueId behind_activation(const Node& node) const {
        ValueId id = node.outputs[0];
        const Node* next = reader(id);
        if (!next) return id;
        const bool cuts = has_trait(*next, graph::Trait::cuts_off);
        const bool taken = node.kind == "Conv" && graph::write_before_codes({*next, {}});
        if ((cuts || taken) && next->inputs.size() == 1) {
            id = next->outputs[0];
            next = reader(id);
        }
        return node.kind == "Conv" && next && has_factors(*next) ? next->outputs[0] : id;
    }

private:
    // Per node: whether a product comes behind it.
    std::vector<bool> find_nodes_before_products() const {
        std::vector<bool> before(graph_.nodes.size(), false);
        for (size_t i = graph_.nodes.size(); i-- > 0;) {
            for (const ValueId id : graph_.nodes[i].outputs) {
                if (id == graph::none) continue;
                for (const int32_t reader : uses_.consumers[static_cast<size_t>(id)]) {
                    const auto r = static_cast<size_t>(reader);
                    before[i] =
                        before[i] || before[r] || channel_axis(graph_, graph_.nodes[r]).has_value();
                }
            }
        }
        return before;
    }

    // The only node that reads a value; nullptr where others do, or an output of the graph is it.
    const Node* reader(ValueId id) const {
        const auto& readers = uses_.consumers[static_cast<size_t>(id)];
        if (readers.size() != 1 || uses_.is_output[static_cast<size_t>(id)]) return nullptr;
        return &graph_.nodes[static_cast<size_t>(readers[0])];
    }

    // Whether a node multiplies by positive constants.
    bool has_factors(const Node& node) const {
        if (node.kind != "Mul") return false;
        const auto is_one = [&](ValueId id) { return is_constant(graph_, id); };
        const auto constant = std::ranges::find_if(node.inputs, is_one);
        if (constant == node.inputs.end()) return false;
        const auto numbers = graph::read_numbers<float>(graph_.value(*constant));
        return std::ranges::all_of(numbers, [](float v) { return v > 0; });
    }

    const Graph& graph_;
    const std::set<std::string>& kept_float_;
    const graph::Uses uses_;
};

struct Parameters {
    float scale = 1;
    int zero_point = 0;
};

// uint8 with an exact zero.
Parameters parameters_of(const Range& range) {
    const float low = std::min(range.low, 0.0F), high = std::max(range.high, 0.0F);
    if (!(high > low)) return {};
    const float scale = (high - low) / 255;
    return {scale, static_cast<int>(std::clamp(std::nearbyint(-low / scale), 0.0F, 255.0F))};
}

// Activations that are flat below some input: codes for what lies there would be wasted.
struct Flat {
    std::string_view kind;
    float below;
};
constexpr Flat flat[] = {{"Elu", -6}, {"HardSwish", -3}, {"Mish", -7}, {"Relu", 0}, {"SiLU", -7}};

// Per value, below which no reader tells values apart.
std::vector<float> find_flat_parts(const Graph& graph) {
    constexpr float nowhere = -std::numeric_limits<float>::infinity();
    std::vector<float> low(graph.values.size(), -nowhere);
    for (const Node& node : graph.nodes)
        for (const ValueId id : node.inputs) {
            if (id == graph::none) continue;
            const auto row = std::ranges::find(flat, node.kind, &Flat::kind);
            const float below = row == std::end(flat) ? nowhere : row->below;
            low[static_cast<size_t>(id)] = std::min(low[static_cast<size_t>(id)], below);
        }
    for (const ValueId id : graph.outputs) low[static_cast<size_t>(id)] = nowhere;
    return low;
}

// Whether each element of the result is one of an operand: its codes need no other scale.
bool only_moves(const Node& node) {
    if (node.kind == "Concat" || node.kind == "MaxPool") return true;
    if (node.kind == "Resize") return node.get("mode", "nearest") == "nearest";
    return has_trait(node, graph::Trait::reshapes | graph::Trait::permutes | graph::Trait::repeats |
                               graph::Trait::picks);
}

// Tensors between which elements only move, as groups that share their codes.
class Groups {
public:
    explicit Groups(const Graph& graph) : parents_(graph.values.size()) {
        std::iota(parents_.begin(), parents_.end(), 0);
        for (const Node& node : graph.nodes) {
            if (!only_moves(node) || node.inputs.empty() || node.outputs.empty()) continue;
            const size_t operands = node.kind == "Concat" ? node.inputs.size() : 1;
            for (size_t i = 0; i < operands; ++i)
                if (is_float_tensor(graph, node.inputs[i]) && !is_constant(graph, node.inputs[i]))
                    for (const ValueId id : node.outputs)
                        if (is_float_tensor(graph, id)) join(node.inputs[i], id);
        }
    }
    ValueId find(ValueId id) const {
        while (parents_[static_cast<size_t>(id)] != id) id = parents_[static_cast<size_t>(id)];
        return id;
    }

private:
    void join(ValueId a, ValueId b) { parents_[static_cast<size_t>(find(a))] = find(b); }
    std::vector<ValueId> parents_;
};

class Quantiser {
public:
    Quantiser(Graph& graph, const Statistics& statistics, const std::set<std::string>& kept_float,
              const Fits& fits)
        : graph_(graph),
          statistics_(statistics),
          kept_float_(kept_float),
          fits_(fits),
          flat_parts_(find_flat_parts(graph)) {}

    Result<QuantisedShare> run() {
        const Chooser chooser(graph_, kept_float_);
        const Choice choice = chooser.choose();
        if (auto done = choose_parameters(choice); !done) return done.error();
        QuantisedShare share;
        for (size_t i = 0; i < graph_.nodes.size(); ++i) {
            const uint64_t macs = count_macs(graph_, graph_.nodes[i]);
            share.product_macs += macs;
            if (!choice.nodes[i]) continue;
            ++share.operators;
            share.int8_macs += macs;
        }
        rewrite(choice.nodes, values_made_in_floats(chooser, choice.nodes));
        return share;
    }

    // Nothing but the codes of these.
    Result<void> run_at(const std::vector<ValueId>& values) {
        const Choice choice = Chooser(graph_, kept_float_).choose();
        if (auto done = choose_parameters(choice); !done) return done;
        std::erase_if(parameters_, [&](const auto& entry) {
            return std::ranges::find(values, entry.first) == values.end();
        });
        rewrite(std::vector<bool>(graph_.nodes.size(), false), {});
        return {};
    }

private:
    // Of those with codes. What a float operator reads of them need not be codes first.
    std::set<ValueId> values_made_in_floats(const Chooser& chooser,
                                            const std::vector<bool>& is_int8) const {
        std::set<ValueId> made_of_codes;
        for (size_t i = 0; i < graph_.nodes.size(); ++i) {
            const Node& node = graph_.nodes[i];
            if (is_int8[i]) made_of_codes.insert(chooser.behind_activation(node));
            if (only_moves(node) && std::ranges::any_of(node.inputs, [&](ValueId id) {
                    return made_of_codes.contains(id);
                }))
                made_of_codes.insert(node.outputs.begin(), node.outputs.end());
        }
        std::set<ValueId> result;
        for (const auto& [id, parameters] : parameters_)
            if (!made_of_codes.contains(id)) result.insert(id);
        return result;
    }

    // Puts the codes where they belong; `is_int8` says which nodes work on them. Others but those
    // that only move elements read `as_they_are` without.
    void rewrite(const std::vector<bool>& is_int8, const std::set<ValueId>& as_they_are) {
        std::vector<Node> old = std::move(graph_.nodes);
        graph_.nodes.clear();
        for (const ValueId id : graph_.inputs) add_pair(id);
        for (size_t i = 0; i < old.size(); ++i) {
            Node& node = old[i];
            const std::string source = node.inputs.empty() || node.inputs[0] == graph::none
                                           ? ""
                                           : graph_.value(node.inputs[0]).name;
            const bool in_floats = !is_int8[i] && !only_moves(node);
            for (ValueId& id : node.inputs) {
                const auto found = dequantised_.find(id);
                if (found == dequantised_.end() || (in_floats && as_they_are.contains(id)))
                    continue;
                id = found->second;
            }
            if (const auto axis = channel_axis(graph_, node)) {
                const auto at = fits_.find(node.name);
                const Fit* fit = at == fits_.end() ? nullptr : &at->second;
                if (fit) add_to_bias(node, fit->bias);
                if (is_int8[i]) {
                    quantise_weights(node, *axis, source, fit);
                } else if (fit) {
                    replace_weights(node, fit->weights);
                }
            }
            const std::vector<ValueId> outputs = node.outputs;
            graph_.nodes.push_back(std::move(node));
            for (const ValueId id : outputs)
                if (id != graph::none) add_pair(id);
        }
        graph::remove_dead(graph_);
    }

    // The same for all values of a group.
    Result<void> choose_parameters(const Choice& choice) {
        for (const ValueId id : choice.values)
            if (!statistics_.contains(graph_.value(id).name))
                return Error{ErrorCode::invalid_argument,
                             "--quantize: tensor '" + graph_.value(id).name +
                                 "' has no range; the calibration ended early"};
        const Groups groups(graph_);
        std::map<ValueId, TensorStatistics> joined;
        std::map<ValueId, float> flat_below;
        for (const ValueId id : choice.values) {
            const ValueId group = groups.find(id);
            joined[group].join(statistics_.at(graph_.value(id).name));
            const float below = flat_parts_[static_cast<size_t>(id)];
            const auto [at, is_first] = flat_below.try_emplace(group, below);
            if (!is_first) at->second = std::min(at->second, below);
        }
        for (const ValueId id : choice.values) {
            Range range = joined[groups.find(id)].best_range();
            range.low = std::max(range.low, flat_below[groups.find(id)]);
            parameters_[id] = parameters_of(range);
        }
        return {};
    }

    ValueId scalar_scale(const std::string& stem, float scale) {
        return graph_.add_constant(graph_.unique_name(stem + "/scale"), {DataType::float32, {}},
                                   graph::make_constant(std::span<const float>(&scale, 1)));
    }

    void add_node(const char* kind, const std::string& name, std::vector<ValueId> inputs,
                  ValueId output, int64_t axis) {
        Node node;
        node.kind = kind;
        node.attributes = {{"axis", axis}, {"block_size", int64_t{0}}};
        node.name = graph_.unique_name(name);
        node.sources = {node.name};
        node.inputs = std::move(inputs);
        node.outputs = {output};
        graph_.nodes.push_back(std::move(node));
    }

    // value -> QuantizeLinear -> DequantizeLinear -> whoever reads it.
    void add_pair(ValueId id) {
        const auto found = parameters_.find(id);
        if (found == parameters_.end()) return;
        const Parameters p = found->second;
        const std::string name = graph_.value(id).name;
        const std::vector<int64_t> shape = graph_.value(id).type.shape;
        const auto zero = static_cast<uint8_t>(p.zero_point);
        const ValueId scale = scalar_scale(name, p.scale);
        const ValueId zero_point =
            graph_.add_constant(graph_.unique_name(name + "/zero_point"), {DataType::uint8, {}},
                                graph::make_constant(std::span<const uint8_t>(&zero, 1)));
        const ValueId q =
            graph_.add_value(graph_.unique_name(name + "/quantized"), {DataType::uint8, shape});
        const ValueId d =
            graph_.add_value(graph_.unique_name(name + "/dequantized"), {DataType::float32, shape});
        add_node("QuantizeLinear", name + "/QuantizeLinear", {id, scale, zero_point}, q, 0);
        add_node("DequantizeLinear", name + "/DequantizeLinear", {q, scale, zero_point}, d, 0);
        dequantised_[id] = d;
    }

    // int8 symmetric, one scale per channel of the output. `source` is the tensor that the node
    // read before it got codes.
    void quantise_weights(Node& node, int64_t axis, const std::string& source, const Fit* fit) {
        const graph::Value weights = graph_.value(node.inputs[1]);
        const auto& shape = weights.type.shape;
        const auto channels = static_cast<size_t>(shape[static_cast<size_t>(axis)]);
        std::vector<float> scales;
        std::vector<int8_t> codes;
        if (fit && fit->scales.size() == channels) {
            scales = fit->scales;
            codes = fit->codes;
        } else {
            round_to_nearest(node, axis, source, scales, codes);
        }
        const std::vector<int8_t> zeros(channels, 0);
        const std::vector<int64_t> list{static_cast<int64_t>(channels)};
        const auto constant = [&](const char* what, DataType type, const auto& shape_of,
                                  const auto& values) {
            using T = typename std::decay_t<decltype(values)>::value_type;
            return graph_.add_constant(graph_.unique_name(weights.name + what), {type, shape_of},
                                       graph::make_constant(std::span<const T>(values)));
        };
        const ValueId q = constant("/quantized", DataType::int8, shape, codes);
        const ValueId scale = constant("/scale", DataType::float32, list, scales);
        const ValueId zero = constant("/zero_point", DataType::int8, list, zeros);
        const ValueId d =
            graph_.add_value(graph_.unique_name(weights.name + "/dequantized"), weights.type);
        add_node("DequantizeLinear", weights.name + "/DequantizeLinear", {q, scale, zero}, d, axis);
        node.inputs[1] = d;
    }

    // Each weight for itself; what that adds on average is taken from the bias.
    void round_to_nearest(Node& node, int64_t axis, const std::string& source,
                          std::vector<float>& scales, std::vector<int8_t>& codes) {
        const graph::Value weights = graph_.value(node.inputs[1]);
        const auto numbers = graph::read_numbers<float>(weights);
        const auto& shape = weights.type.shape;
        const auto channels = static_cast<size_t>(shape[static_cast<size_t>(axis)]);
        size_t inner = 1;
        for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i)
            inner *= static_cast<size_t>(shape[i]);
        scales.assign(channels, 0);
        const auto channel_of = [&](size_t i) { return i / inner % channels; };
        for (size_t i = 0; i < numbers.size(); ++i)
            scales[channel_of(i)] = std::max(scales[channel_of(i)], std::fabs(numbers[i]));
        for (float& s : scales) s = s > 0 ? s / 127 : 1;
        codes.resize(numbers.size());
        for (size_t i = 0; i < numbers.size(); ++i)
            codes[i] = static_cast<int8_t>(
                std::clamp(std::nearbyint(numbers[i] / scales[channel_of(i)]), -127.0F, 127.0F));
        if (node.kind != "Conv") return;
        std::vector<double> errors(numbers.size());
        for (size_t i = 0; i < numbers.size(); ++i)
            errors[i] = static_cast<double>(static_cast<float>(codes[i]) * scales[channel_of(i)] -
                                            numbers[i]);
        correct_bias(node, shape, errors, source);
    }

    void replace_weights(Node& node, const std::vector<float>& weights) {
        const graph::Value old = graph_.value(node.inputs[1]);
        node.inputs[1] =
            graph_.add_constant(graph_.unique_name(old.name + "/fitted"), old.type,
                                graph::write_numbers<float>(old.type.data_type, weights));
    }

    // Takes away what the errors of the weights add to each channel on average.
    void correct_bias(Node& node, const std::vector<int64_t>& shape, std::span<const double> errors,
                      const std::string& source) {
        const auto found = statistics_.find(source);
        if (found == statistics_.end()) return;
        const std::vector<double> means = found->second.channel_means();
        const auto outputs = static_cast<size_t>(shape[0]), inputs = static_cast<size_t>(shape[1]);
        const auto groups = static_cast<size_t>(node.get("group", int64_t{1}));
        if (means.size() != inputs * groups) return;
        std::vector<double> missing(outputs, 0);
        const size_t taps = errors.size() / outputs / inputs;
        for (size_t i = 0; i < errors.size(); ++i) {
            const size_t output = i / (inputs * taps);
            const size_t first = output / (outputs / groups) * inputs;
            missing[output] -= errors[i] * means[first + i / taps % inputs];
        }
        add_to_bias(node, missing);
    }

    // Of convolutions, and of products that have one.
    void add_to_bias(Node& node, std::vector<double> bias) {
        if (node.kind == "MatMul" || bias.empty()) return;
        node.inputs.resize(std::max<size_t>(node.inputs.size(), 3), graph::none);
        if (node.inputs[2] != graph::none) {
            if (!is_constant(graph_, node.inputs[2])) return;
            // A Gemm may have one for each row instead.
            const auto& shape = graph_.value(node.inputs[2]).type.shape;
            if (shape.empty() || shape.back() != static_cast<int64_t>(bias.size())) return;
            const auto old = graph::read_numbers<double>(graph_.value(node.inputs[2]));
            if (old.size() != bias.size()) return;
            for (size_t i = 0; i < bias.size(); ++i) bias[i] += old[i];
        }
        const std::string stem = node.inputs[2] == graph::none
                                     ? graph_.value(node.outputs[0]).name + "/bias"
                                     : graph_.value(node.inputs[2]).name + "/corrected";
        node.inputs[2] = graph_.add_constant(
            graph_.unique_name(stem), {DataType::float32, {static_cast<int64_t>(bias.size())}},
            graph::write_numbers<double>(DataType::float32, bias));
    }

    Graph& graph_;
    const Statistics& statistics_;
    const std::set<std::string>& kept_float_;
    const Fits& fits_;
    const std::vector<float> flat_parts_;
    std::map<ValueId, Parameters> parameters_;
    std::map<ValueId, ValueId> dequantised_;
};

// The products of a kind: how many, and the first.
struct Products {
    size_t count = 0;
    const Node* first = nullptr;
    void add(const Node& node) {
        if (count++ == 0) first = &node;
    }
    std::string text(size_t all) const {
        return std::to_string(count) + " of " + std::to_string(all) +
               " convolutions and products (the first is node '" + first->name + "')";
    }
};

}  // namespace

Result<void> check_quantisable(const Graph& graph) {
    std::set<ValueId> dequantised;
    Products codes, halves;
    size_t all = 0;
    for (const Node& node : graph.nodes) {
        if (node.kind == "DequantizeLinear") dequantised.insert(node.outputs[0]);
        const bool on_codes =
            has_trait(node, graph::Trait::codes) && has_trait(node, graph::Trait::matrix_work);
        if (!on_codes && !has_trait(node, graph::Trait::product)) continue;
        ++all;
        const DataType type = graph.value(node.inputs[0]).type.data_type;
        if (on_codes || dequantised.contains(node.inputs[1]))
            codes.add(node);
        else if (type == DataType::fp16 || type == DataType::bf16)
            halves.add(node);
    }
    if (codes.count != 0)
        return Error{ErrorCode::invalid_argument,
                     "is quantised already: " + codes.text(all) +
                         " work on codes of 8 bits, expected the float model for --quantize; give "
                         "that, or compile this one without --quantize"};
    if (halves.count != 0)
        return Error{ErrorCode::invalid_argument,
                     "computes in floats of 16 bits: " + halves.text(all) +
                         " do so, expected float32 for --quantize; export the model in float32, "
                         "or compile this one without --quantize"};
    return {};
}

Result<void> prepare_to_quantise(Graph& graph) {
    constexpr Result<PassStats> (*passes[])(Graph&) = {
        fold_constants,  remove_identity, fold_batch_norm, recognise_patterns,
        fold_scale_bias, fuse_pad,        gemm_from_matmul};
    bool changed = true;
    for (int round = 0; round < 10 && changed; ++round) {
        changed = false;
        for (const auto pass : passes) {
            auto stats = pass(graph);
            if (!stats) return stats.error();
            changed = changed || stats->rewrites != 0;
        }
    }
    return {};
}

std::vector<ValueId> values_to_quantise(const Graph& graph) {
    const Choice choice = Chooser(graph, {}).choose();
    return {choice.values.begin(), choice.values.end()};
}

std::vector<size_t> products_to_quantise(const Graph& graph,
                                         const std::set<std::string>& kept_float) {
    const Choice choice = Chooser(graph, kept_float).choose();
    std::vector<size_t> products;
    for (size_t i = 0; i < graph.nodes.size(); ++i)
        if (choice.nodes[i] && channel_axis(graph, graph.nodes[i])) products.push_back(i);
    return products;
}

std::vector<CodedTensors> coded_tensors(const Graph& graph) {
    const std::set<std::string> none_kept;
    const Chooser chooser(graph, none_kept);
    const Choice choice = chooser.choose();
    const Groups groups(graph);
    std::map<ValueId, size_t> places;
    std::vector<CodedTensors> tensors;
    const auto at = [&](ValueId id) -> CodedTensors& {
        const auto [place, is_first] = places.try_emplace(groups.find(id), tensors.size());
        if (is_first) tensors.emplace_back();
        return tensors[place->second];
    };
    for (const ValueId id : choice.values) at(id).values.push_back(id);
    for (const ValueId id : graph.inputs)
        if (const auto place = places.find(groups.find(id)); place != places.end())
            tensors[place->second].are_input = true;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = graph.nodes[i];
        if (!choice.nodes[i] || !channel_axis(graph, node)) continue;
        const ValueId ends[] = {node.inputs[0], chooser.behind_activation(node)};
        for (const ValueId id : ends) {
            std::vector<size_t>& products = at(id).products;
            if (products.empty() || products.back() != i) products.push_back(i);
        }
    }
    return tensors;
}

Result<void> quantise_tensors(Graph& graph, const Statistics& statistics,
                              const std::vector<ValueId>& values) {
    return Quantiser(graph, statistics, {}, {}).run_at(values);
}

Result<QuantisedShare> quantise(Graph& graph, const Statistics& statistics,
                                const std::set<std::string>& kept_float, const Fits& fits) {
    return Quantiser(graph, statistics, kept_float, fits).run();
}

}  // namespace vartml::compiler
