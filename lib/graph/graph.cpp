// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/graph.h"
#include "lib/graph/onnxruntime.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_set>
#include <utility>

namespace vartml::graph {

namespace {

template <typename T>
T get_or(const Operation& operation, std::string_view key, T fallback) {
    const auto found = operation.attributes.find(key);
    if (found == operation.attributes.end()) return fallback;
    const T* value = std::get_if<T>(&found->second);
    return value ? *value : fallback;
}

constexpr std::pair<DataType, std::string_view> type_names[] = {
    {DataType::boolean, "bool"}, {DataType::int8, "i8"},    {DataType::uint8, "u8"},
    {DataType::int16, "i16"},    {DataType::uint16, "u16"}, {DataType::bf16, "bf16"},
    {DataType::fp16, "f16"},     {DataType::int32, "i32"},  {DataType::uint32, "u32"},
    {DataType::float32, "f32"},  {DataType::int64, "i64"},  {DataType::uint64, "u64"},
    {DataType::float64, "f64"},
};

}  // namespace

int64_t Type::elements() const {
    int64_t n = 1;
    bool fits = true;
    for (const int64_t size : shape) {
        if (size == 0) return 0;
        fits = fits && !__builtin_mul_overflow(n, size, &n);
    }
    return fits ? n : std::numeric_limits<int64_t>::max();
}

size_t Type::size_bytes() const {
    size_t bytes;
    if (__builtin_mul_overflow(static_cast<size_t>(elements()), vartml::size_bytes(data_type),
                               &bytes))
        return std::numeric_limits<size_t>::max();
    return bytes;
}

std::string_view short_name(DataType type) {
    for (const auto& [key, name] : type_names) {
        if (key == type) return name;
    }
    return "unknown";
}

std::optional<DataType> parse_short_name(std::string_view text) {
    for (const auto& [key, name] : type_names) {
        if (name == text) return key;
    }
    return std::nullopt;
}

std::string to_string(const Type& type) {
    std::string text(short_name(type.data_type));
    text += '[';
    for (size_t i = 0; i < type.shape.size(); ++i) {
        if (i) text += ',';
        text += std::to_string(type.shape[i]);
    }
    return text + ']';
}

std::optional<Type> parse_type(std::string_view text) {
    const size_t bracket = text.find('[');
    if (bracket == text.npos || !text.ends_with(']')) return std::nullopt;
    const auto data_type = parse_short_name(text.substr(0, bracket));
    if (!data_type) return std::nullopt;
    Type type{*data_type, {}};
    std::string_view rest = text.substr(bracket + 1, text.size() - bracket - 2);
    while (!rest.empty()) {
        int64_t size = 0;
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
        if (error != std::errc() || size < 0) return std::nullopt;
        rest.remove_prefix(static_cast<size_t>(end - rest.data()));
        type.shape.push_back(size);
        if (rest.empty()) return type;
        if (!rest.starts_with(',') || rest.size() == 1) return std::nullopt;
        rest.remove_prefix(1);
    }
    return type;
}

Constant make_constant(std::vector<std::byte> bytes) {
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    return {std::span(*owner), owner};
}

std::string Node::type() const {
    std::string text = kind;
    for (const Operation& operation : fused) text += '+' + operation.kind;
    return text;
}

std::vector<std::string_view> Node::kinds() const {
    std::vector<std::string_view> kinds = {kind};
    for (const Operation& operation : fused) kinds.push_back(operation.kind);
    return kinds;
}

Attributes written_attributes(const Node& node) {
    Attributes all = node.attributes;
    for (const Operation& operation : node.fused)
        for (const auto& [key, value] : operation.attributes)
            all.insert_or_assign(operation.kind + '.' + key, value);
    return all;
}

void take_apart(Node& node) {
    const std::string type = std::exchange(node.kind, {});
    for (size_t from = 0, plus = 0; plus != type.npos; from = plus + 1) {
        plus = type.find('+', from);
        const std::string kind = type.substr(from, plus - from);
        if (from == 0)
            node.kind = kind;
        else
            node.fused.push_back({kind, {}});
    }
    for (auto entry = node.attributes.begin(); entry != node.attributes.end();) {
        const size_t dot = entry->first.find('.');
        bool is_taken = false;
        for (Operation& operation : node.fused) {
            if (dot != operation.kind.size() || !entry->first.starts_with(operation.kind)) continue;
            operation.attributes[entry->first.substr(dot + 1)] = entry->second;
            is_taken = true;
        }
        entry = is_taken ? node.attributes.erase(entry) : std::next(entry);
    }
}

int64_t Operation::get(std::string_view key, int64_t fallback) const {
    return get_or<int64_t>(*this, key, fallback);
}
float Operation::get(std::string_view key, float fallback) const {
    return get_or<float>(*this, key, fallback);
}
std::string Operation::get(std::string_view key, const char* fallback) const {
    return get_or<std::string>(*this, key, fallback);
}
std::vector<int64_t> Operation::get(std::string_view key, std::vector<int64_t> fallback) const {
    return get_or(*this, key, std::move(fallback));
}
std::vector<float> Operation::get(std::string_view key, std::vector<float> fallback) const {
    return get_or(*this, key, std::move(fallback));
}

ValueId Graph::add_value(std::string name, Type type) {
    values.push_back({.name = std::move(name), .type = std::move(type), .constant = {}});
    return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::add_constant(std::string name, Type type, Constant constant) {
    const ValueId id = add_value(std::move(name), std::move(type));
    value(id).constant = std::move(constant);
    return id;
}

std::string Graph::unique_name(std::string_view stem) const {
    std::unordered_set<std::string_view> taken;
    for (const Value& value : values) taken.insert(value.name);
    for (const Node& node : nodes) taken.insert(node.name);
    std::string name(stem);
    for (int i = 1; taken.contains(name); ++i) name = std::string(stem) + '_' + std::to_string(i);
    return name;
}

Uses find_uses(const Graph& graph) {
    Uses uses;
    uses.producer.assign(graph.values.size(), -1);
    uses.consumers.resize(graph.values.size());
    uses.is_output.assign(graph.values.size(), false);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        const auto index = static_cast<int32_t>(i);
        for (const ValueId id : graph.nodes[i].inputs) {
            if (id != none) uses.consumers[static_cast<size_t>(id)].push_back(index);
        }
        for (const ValueId id : graph.nodes[i].outputs) {
            if (id != none) uses.producer[static_cast<size_t>(id)] = index;
        }
    }
    for (const ValueId id : graph.outputs) uses.is_output[static_cast<size_t>(id)] = true;
    return uses;
}

size_t remove_dead(Graph& graph) {
    std::vector<bool> needed(graph.values.size(), false);
    for (const ValueId id : graph.outputs) needed[static_cast<size_t>(id)] = true;
    const auto is_needed = [&](ValueId id) {
        return id != none && needed[static_cast<size_t>(id)];
    };

    std::vector<Node> kept;
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
        if (!std::ranges::any_of(node->outputs, is_needed)) continue;
        for (const ValueId id : node->inputs) {
            if (id != none) needed[static_cast<size_t>(id)] = true;
        }
        // An output that nobody reads keeps its value, so that the node stays complete.
        for (const ValueId id : node->outputs) {
            if (id != none) needed[static_cast<size_t>(id)] = true;
        }
        kept.push_back(std::move(*node));
    }
    std::ranges::reverse(kept);
    const size_t removed = graph.nodes.size() - kept.size();
    graph.nodes = std::move(kept);

    for (const ValueId id : graph.inputs) needed[static_cast<size_t>(id)] = true;
    std::vector<ValueId> renumbered(graph.values.size(), none);
    std::vector<Value> values;
    for (size_t i = 0; i < graph.values.size(); ++i) {
        if (!needed[i]) continue;
        renumbered[i] = static_cast<ValueId>(values.size());
        values.push_back(std::move(graph.values[i]));
    }
    graph.values = std::move(values);
    const auto renumber = [&](std::vector<ValueId>& ids) {
        for (ValueId& id : ids) {
            if (id != none) id = renumbered[static_cast<size_t>(id)];
        }
    };
    renumber(graph.inputs);
    renumber(graph.outputs);
    for (Node& node : graph.nodes) {
        renumber(node.inputs);
        renumber(node.outputs);
    }
    return removed;
}

}  // namespace vartml::graph
