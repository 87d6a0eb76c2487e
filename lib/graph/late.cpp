// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/late.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "lib/graph/canonical.h"
#include "lib/graph/graph.h"
#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"

namespace vartml::graph {

// What the numbers that a model computes from shapes are at most, before the data are known.

// The type of the first output of a Reshape, Expand, ConstantOfShape, Pad or Range in ONNX form
// whose sizes are computed from shapes: no size is larger in a run. One case is no proof: the -1 of
// a Reshape is taken as if all sizes were at their bound at once, as in x[n,2,3] by [n,-1]; the run
// tells where that is wrong. nullopt where a number has no bound.
std::optional<Type> bound_by_values(const Graph& graph, const Node& node);

namespace {

// Operators whose canonical attributes follow from the shape of the data.
bool relates_to_shape(const Node& node) {
    if (has_trait(node, Trait::follows_shape)) return true;
    if (node.kind == "Split") return !node.has("split") && node.inputs.size() < 2;
    return node.get("auto_pad", "NOTSET").starts_with("SAME") || node.has("output_shape");
}

// The list that a Slice was given: a constant input or an attribute.
std::vector<int64_t> given_list(const Graph& graph, const Node& node, size_t input,
                                const char* attribute) {
    if (has_input(node, input) && graph.value(node.inputs[input]).constant)
        return read_numbers<int64_t>(graph.value(node.inputs[input]));
    return node.get(attribute, std::vector<int64_t>());
}

// What a Slice takes of fewer elements is at most what it takes of the bound, but for two cases: a
// start that counts from the end and an end that counts from the front, x[-10:5], and backwards the
// other way round, x[5:-3:-1].
void widen_slice(const Graph& graph, const Node& node, const Node& settled, Type& type) {
    const auto starts = given_list(graph, node, 1, "starts");
    const auto ends = given_list(graph, node, 2, "ends");
    const auto steps = given_list(graph, node, 4, "steps");
    const Type& x = input_type(graph, settled, 0);
    for (size_t i = 0; i < std::min(starts.size(), ends.size()); ++i) {
        const int64_t step = i < steps.size() ? steps[i] : 1;
        const bool from_end =
            step > 0 ? starts[i] < 0 && ends[i] >= 0 : starts[i] >= 0 && ends[i] < 0;
        if (!from_end) continue;
        auto axes = given_list(graph, node, 3, "axes");
        const int64_t axis =
            wrap_axis(i < axes.size() ? axes[i] : static_cast<int64_t>(i), x.shape.size());
        if (axis < 0) continue;
        const auto a = static_cast<size_t>(axis);
        // Below -size there is no overflow: what lies before the first element is cut off first.
        if (step > 0) {
            const int64_t most = std::max(starts[i], -x.shape[a]);
            type.shape[a] = std::min({-most, ends[i], x.shape[a]});
        } else {
            const int64_t last = std::max(ends[i], -x.shape[a] - 1);
            const int64_t first = std::min(starts[i], x.shape[a] - 1);
            type.shape[a] = std::max<int64_t>(std::min(-last - 1, first + 1), 0);
        }
    }
}

// Of fewer elements the last part may be larger than of the bound: 8 in 4 are 2 each, 10 are 3, 3,
// 3 and 1.
void widen_split(const Node& node, Types& types) {
    const int64_t axis = wrap_axis(node.get("axis", int64_t{0}), types[0].shape.size());
    for (Type& type : types)
        if (axis >= 0)
            type.shape[static_cast<size_t>(axis)] = types[0].shape[static_cast<size_t>(axis)];
}

// A reduction over axes that are not known. With keepdims every axis stays; else an axis of the
// result is one of those from its own place on, as many behind it as axes go.
std::optional<Type> bound_reduction(const Graph& graph, const Node& node) {
    if (!has_trait(node, Trait::reduces) || node.inputs.size() < 2) return std::nullopt;
    Type type = input_type(graph, node, 0);
    if (node.get("keepdims", int64_t{1}) != 0) {
        for (int64_t& size : type.shape) size = std::max<int64_t>(size, 1);
        return type;
    }
    const auto gone = static_cast<size_t>(input_type(graph, node, 1).elements());
    if (gone == 0 || gone > type.shape.size()) return std::nullopt;
    for (size_t i = 0; i + gone < type.shape.size(); ++i) {
        const auto first = type.shape.begin() + static_cast<ptrdiff_t>(i);
        type.shape[i] = *std::max_element(first, first + static_cast<ptrdiff_t>(gone) + 1);
    }
    type.shape.resize(type.shape.size() - gone);
    return type;
}

bool same_rank_and_type(const Type& a, const Type& b) {
    return a.shape.size() == b.shape.size() && a.data_type == b.data_type;
}

}  // namespace

std::string op_type(const Node& node) {
    return is_late(node) ? node.get("op", "") : node.type();
}

bool must_be_late(const Graph& graph, const Node& node) {
    bool is_sized = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        is_sized = is_sized || has_input_trait(node, Trait::sized_by_0, i);
        if (is_sized && node.inputs[i] != none && !graph.value(node.inputs[i]).constant)
            return true;
    }
    if (has_computed_parameters(graph, node)) return true;
    const bool follows_data = std::ranges::any_of(
        node.inputs, [&](ValueId id) { return id != none && graph.value(id).data_dependent; });
    return follows_data && relates_to_shape(node);
}

Result<std::vector<Type>> bound_types(const Graph& graph, const Node& node,
                                      std::span<const std::optional<Type>> declared) {
    Node settled = node;
    Result<Types> inferred = Error{ErrorCode::unsupported, {}};
    if (auto ok = canonicalise(graph, settled); !ok)
        inferred = ok.error();
    else
        inferred = infer_types(graph, settled);
    if (const auto bound = bound_reduction(graph, node); bound && !inferred)
        inferred = Types{*bound};
    if (!inferred)
        if (const auto bound = bound_by_values(graph, node)) inferred = Types{*bound};
    Types types = inferred ? *inferred : Types(node.outputs.size());
    if (inferred && node.kind == "Slice") widen_slice(graph, node, settled, types[0]);
    if (inferred && node.kind == "Split" && node.inputs.size() < 2 && !node.has("split"))
        widen_split(node, types);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] == none) continue;
        const bool said = i < declared.size() && declared[i].has_value();
        if (!inferred && !said) return inferred.error();
        // Both are bounds: the smaller one counts.
        if (said && (!inferred || (same_rank_and_type(types[i], *declared[i]) &&
                                   declared[i]->elements() <= types[i].elements())))
            types[i] = *declared[i];
    }
    return types;
}

namespace {

// Rank and element type of the output; rank -1 where not even that is known.
std::pair<int64_t, DataType> kind_of_output(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto rank = static_cast<int64_t>(x.shape.size());
    const auto length_of = [&](size_t input) {
        if (!has_input(node, input)) return int64_t{-1};
        const Type& list = input_type(graph, node, input);
        return list.shape.size() == 1 ? list.shape[0] : -1;
    };
    if (node.kind == "Range") return {1, x.data_type};
    if (node.kind == "Reshape") return {length_of(1), x.data_type};
    if (node.kind == "ConstantOfShape")
        return {length_of(0),
                has_input(node, 1) ? input_type(graph, node, 1).data_type : DataType::float32};
    if (node.kind == "Expand") return {std::max(rank, length_of(1)), x.data_type};
    return {has_trait(node, Trait::keeps_rank) ? rank : -1, x.data_type};
}

}  // namespace

std::optional<Type> guess_bound(const Graph& graph, const Node& node,
                                std::span<const Type> outputs) {
    if (node.outputs.size() != 1 || !has_input(node, 0)) return std::nullopt;
    const auto [rank, data_type] = kind_of_output(graph, node);
    if (rank < 0) return std::nullopt;
    Type bound{data_type, std::vector<int64_t>(static_cast<size_t>(rank), 1)};
    bool found = false;
    const auto take = [&](const std::vector<int64_t>& shape) {
        if (shape.size() != bound.shape.size()) return;
        for (size_t i = 0; i < shape.size(); ++i)
            bound.shape[i] = std::max(bound.shape[i], shape[i]);
    };
    for (const Type& output : outputs) {
        found = found || output.shape.size() == bound.shape.size();
        take(output.shape);
    }
    take(input_type(graph, node, 0).shape);
    return found && is_reasonable(bound) ? std::optional(bound) : std::nullopt;
}

void make_late(Node& node) {
    // Exporters write the largest int64 for "to the end"; the limit of a program is as far.
    using Limits = std::numeric_limits<int32_t>;
    for (const char* key : {"starts", "ends", "steps"}) {
        const auto found = node.attributes.find(key);
        if (node.kind != "Slice" || found == node.attributes.end()) continue;
        if (auto* list = std::get_if<std::vector<int64_t>>(&found->second))
            for (int64_t& at : *list) at = std::clamp<int64_t>(at, Limits::min(), Limits::max());
    }
    node.attributes["op"] = node.kind;
    node.kind = std::string(late_kind);
}

void settle(Node& node) {
    node.kind = node.get("op", "");
    node.attributes.erase("op");
}

namespace {

struct Bound {
    int64_t most = 0;
    bool exact = false;
};
using Bounds = std::optional<std::vector<Bound>>;

constexpr int64_t max_numbers = 64;  // more are no shape

bool is_count(const Bound& b) {
    return b.most >= 0 && b.most < max_elements;
}

class Finder {
public:
    explicit Finder(const Graph& graph) : graph_(graph) {}

    // The elements of an integer tensor.
    Bounds of(ValueId id) {
        const Value& value = graph_.value(id);
        if (!is_integral(value.type.data_type) || value.type.elements() > max_numbers ||
            value.data_dependent)
            return std::nullopt;
        if (value.constant) {
            std::vector<Bound> numbers;
            for (const int64_t n : read_numbers<int64_t>(value)) numbers.push_back({n, true});
            return numbers;
        }
        const auto [known, is_new] = known_.try_emplace(id);
        if (!is_new) return known->second;
        const auto makes = [&](const Node& node) {
            return !node.outputs.empty() && node.outputs[0] == id;
        };
        const auto maker = std::find_if(graph_.nodes.rbegin(), graph_.nodes.rend(), makes);
        if (maker == graph_.nodes.rend() || depth_ == max_depth) return std::nullopt;
        ++depth_;
        Bounds found = made_by(*maker);
        --depth_;
        if (found && static_cast<int64_t>(found->size()) != value.type.elements())
            found = std::nullopt;
        return known_[id] = std::move(found);
    }

private:
    static constexpr int max_depth = 100;

    Bounds made_by(const Node& node) {
        if (node.kind == "Shape") return shape(node);
        if (node.kind == "Cast" || has_trait(node, Trait::reshapes)) return of(node.inputs[0]);
        if (node.kind == "Gather") return gather(node);
        if (node.kind == "Slice") return slice(node);
        if (node.kind == "Transpose") return transpose(node);
        if (node.kind == "Where") return where(node);
        if (node.kind == "Concat") return concat(node);
        constexpr std::string_view binary[] = {"Add", "Div", "Max", "Min", "Mul", "Sub"};
        if (node.inputs.size() == 2 && std::ranges::find(binary, node.kind) != std::end(binary))
            return arithmetic(node);
        return std::nullopt;
    }

    Bounds shape(const Node& node) const {
        const Value& x = graph_.value(node.inputs[0]);
        const auto rank = static_cast<int64_t>(x.type.shape.size());
        const int64_t end = std::min(node.get("end", rank), rank);
        std::vector<Bound> sizes;
        for (int64_t i = std::max<int64_t>(node.get("start", int64_t{0}), 0); i < end; ++i)
            sizes.push_back({x.type.shape[static_cast<size_t>(i)], !x.data_dependent});
        return sizes;
    }

    Bounds gather(const Node& node) {
        const Value& indices = graph_.value(node.inputs[1]);
        const Bounds from = of(node.inputs[0]);
        if (!from || !indices.constant || input_type(graph_, node, 0).shape.size() != 1)
            return std::nullopt;
        std::vector<Bound> taken;
        for (const int64_t index : read_numbers<int64_t>(indices)) {
            const int64_t at = wrap_axis(index, from->size());
            if (at < 0) return std::nullopt;
            taken.push_back((*from)[static_cast<size_t>(at)]);
        }
        return taken;
    }

    // The elements of a tensor of this shape that lie `strides` apart from `first` on.
    static Bounds pick(const std::vector<Bound>& from, const std::vector<int64_t>& shape,
                       int64_t first, const std::vector<int64_t>& strides) {
        std::vector<Bound> taken;
        int64_t count = 1;
        for (const int64_t size : shape) count *= size;
        for (int64_t i = 0; i < count; ++i) {
            int64_t at = first, rest = i;
            for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
                at += rest % shape[axis] * strides[axis];
            if (at < 0 || at >= static_cast<int64_t>(from.size())) return std::nullopt;
            taken.push_back(from[static_cast<size_t>(at)]);
        }
        return taken;
    }
    static std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
        std::vector<int64_t> strides(shape.size(), 1);
        for (size_t axis = shape.size(); axis-- > 1;)
            strides[axis - 1] = strides[axis] * shape[axis];
        return strides;
    }

    Bounds slice(const Node& node) {
        const auto starts = node.get("starts", std::vector<int64_t>());
        const auto steps = node.get("steps", std::vector<int64_t>());
        const auto axes = node.get("axes", std::vector<int64_t>());
        const Bounds from = of(node.inputs[0]);
        if (!from || node.inputs.size() != 1 || starts.size() != axes.size() ||
            steps.size() != axes.size())
            return std::nullopt;
        auto strides = row_major(input_type(graph_, node, 0).shape);
        int64_t first = 0;
        for (size_t i = 0; i < axes.size(); ++i) {
            int64_t& stride = strides[static_cast<size_t>(axes[i])];
            first += starts[i] * stride;
            stride *= steps[i];
        }
        return pick(*from, output_type(graph_, node).shape, first, strides);
    }

    Bounds transpose(const Node& node) {
        const auto perm = node.get("perm", std::vector<int64_t>());
        const Bounds from = of(node.inputs[0]);
        const auto strides = row_major(input_type(graph_, node, 0).shape);
        if (!from || perm.size() != strides.size()) return std::nullopt;
        std::vector<int64_t> moved;
        for (const int64_t axis : perm) moved.push_back(strides[static_cast<size_t>(axis)]);
        return pick(*from, output_type(graph_, node).shape, 0, moved);
    }

    // The larger of both where the condition is not known; of equal ones that one.
    Bounds where(const Node& node) {
        const Bounds lhs = of(node.inputs[1]), rhs = of(node.inputs[2]);
        const auto count = static_cast<size_t>(output_type(graph_, node).elements());
        const auto fits = [&](const Bounds& side) {
            return side && (side->size() == count || side->size() == 1);
        };
        if (!fits(lhs) || !fits(rhs)) return std::nullopt;
        std::vector<Bound> results;
        for (size_t i = 0; i < count; ++i) {
            const Bound a = (*lhs)[lhs->size() == 1 ? 0 : i], b = (*rhs)[rhs->size() == 1 ? 0 : i];
            if (!is_count(a) || !is_count(b)) return std::nullopt;
            results.push_back({std::max(a.most, b.most), a.exact && b.exact && a.most == b.most});
        }
        return results;
    }

    Bounds concat(const Node& node) {
        std::vector<Bound> all;
        for (const ValueId id : node.inputs) {
            const Bounds part = of(id);
            if (!part || graph_.value(id).type.shape.size() != 1) return std::nullopt;
            all.insert(all.end(), part->begin(), part->end());
        }
        return all;
    }

    // Of counts, and of a count and a constant.
    Bounds arithmetic(const Node& node) {
        const Bounds lhs = of(node.inputs[0]), rhs = of(node.inputs[1]);
        if (!lhs || !rhs || lhs->empty() || rhs->empty()) return std::nullopt;
        const size_t n = std::max(lhs->size(), rhs->size());
        if ((lhs->size() != n && lhs->size() != 1) || (rhs->size() != n && rhs->size() != 1))
            return std::nullopt;
        std::vector<Bound> results;
        for (size_t i = 0; i < n; ++i) {
            const Bound a = (*lhs)[lhs->size() == 1 ? 0 : i], b = (*rhs)[rhs->size() == 1 ? 0 : i];
            if (!is_count(a) || !is_count(b)) return std::nullopt;
            Bound& y = results.emplace_back(Bound{0, a.exact && b.exact});
            if (node.kind == "Add") y.most = a.most + b.most;
            if (node.kind == "Mul") y.most = bounded_product(a.most, b.most);
            if (node.kind == "Max") y.most = std::max(a.most, b.most);
            if (node.kind == "Min") y.most = std::min(a.most, b.most);
            // What is taken off may be nothing.
            if (node.kind == "Sub") y.most = b.exact ? a.most - b.most : a.most;
            if (node.kind == "Div" && !b.exact) return std::nullopt;
            if (node.kind == "Div" && b.most == 0) return std::nullopt;
            if (node.kind == "Div") y.most = a.most / b.most;
        }
        return results;
    }

    const Graph& graph_;
    std::map<ValueId, Bounds> known_;
    int depth_ = 0;
};

// Sizes that may each be smaller in a run.
std::optional<std::vector<int64_t>> counts(const Bounds& bounds) {
    if (!bounds) return std::nullopt;
    std::vector<int64_t> sizes;
    for (const Bound& b : *bounds) {
        if (b.exact && !is_count(b)) return std::nullopt;
        sizes.push_back(std::max<int64_t>(b.most, 0));
    }
    return sizes;
}

std::optional<Type> bound_reshape(const Type& x, Bounds bounds, bool copies_zeros) {
    if (!bounds) return std::nullopt;
    int64_t product = 1, unknown = -1;
    for (size_t i = 0; i < bounds->size(); ++i) {
        Bound& b = (*bounds)[i];
        if (b.exact && b.most == -1 && unknown < 0) {
            unknown = static_cast<int64_t>(i);
            continue;
        }
        if (b.exact && b.most == 0 && copies_zeros) {
            if (i >= x.shape.size()) return std::nullopt;
            b.most = x.shape[i];
        }
        product = bounded_product(product, std::max<int64_t>(b.most, 0));
    }
    if (unknown >= 0) {
        if (product == 0 || x.elements() % product != 0) return std::nullopt;
        (*bounds)[static_cast<size_t>(unknown)] = {x.elements() / product, false};
    }
    const auto sizes = counts(bounds);
    return sizes ? std::optional(Type{x.data_type, *sizes}) : std::nullopt;
}

// Axes of `x` may be smaller in a run where its shape depends on the data.
std::optional<Type> bound_expand(const Value& x, const Bounds& bounds) {
    if (!counts(bounds)) return std::nullopt;
    const std::vector<int64_t>& from = x.type.shape;
    Type type{x.type.data_type, std::vector<int64_t>(std::max(from.size(), bounds->size()), 1)};
    for (size_t back = 1; back <= type.shape.size(); ++back) {
        const int64_t size = back <= from.size() ? from[from.size() - back] : 1;
        const Bound asked =
            back <= bounds->size() ? (*bounds)[bounds->size() - back] : Bound{1, true};
        int64_t& result = type.shape[type.shape.size() - back];
        if (asked.exact && asked.most == 1)
            result = size;
        else if (asked.exact)
            result = asked.most;
        else
            result = size == 1 ? asked.most : std::max(size, asked.most);
        const bool fits = size == 1 || x.data_dependent || result == size;
        if (!fits) return std::nullopt;
    }
    return type;
}

std::optional<Type> bound_pad(const Type& x, const Bounds& pads) {
    if (!pads || pads->size() != 2 * x.shape.size()) return std::nullopt;
    Type type = x;
    for (size_t i = 0; i < x.shape.size(); ++i)
        type.shape[i] += (*pads)[i].most + (*pads)[x.shape.size() + i].most;
    return type;
}

std::optional<Type> bound_range(const Type& type, const Bounds& start, const Bounds& limit,
                                const Bounds& step) {
    if (!start || !limit || !step || start->size() != 1 || limit->size() != 1 || step->size() != 1)
        return std::nullopt;
    const Bound from = start->front(), to = limit->front(), by = step->front();
    if (!from.exact || !by.exact || by.most <= 0 || !is_count(from) || to.most >= max_elements)
        return std::nullopt;
    const int64_t length = std::max<int64_t>(to.most - from.most, 0);
    return Type{type.data_type, {length / by.most + (length % by.most != 0)}};
}

}  // namespace

std::optional<Type> bound_by_values(const Graph& graph, const Node& node) {
    Finder find(graph);
    std::optional<Type> type;
    if (node.kind == "Reshape" && has_input(node, 1)) {
        type = bound_reshape(input_type(graph, node, 0), find.of(node.inputs[1]),
                             node.get("allowzero", int64_t{0}) == 0);
    } else if (node.kind == "Expand" && has_input(node, 1)) {
        type = bound_expand(graph.value(node.inputs[0]), find.of(node.inputs[1]));
    } else if (node.kind == "Pad" && has_input(node, 1) && !has_input(node, 3)) {
        type = bound_pad(input_type(graph, node, 0), find.of(node.inputs[1]));
    } else if (node.kind == "ConstantOfShape" && has_input(node, 0)) {
        const auto sizes = counts(find.of(node.inputs[0]));
        const DataType value =
            has_input(node, 1) ? input_type(graph, node, 1).data_type : DataType::float32;
        if (sizes) type = Type{value, *sizes};
    } else if (node.kind == "Range" && node.inputs.size() == 3) {
        type = bound_range(input_type(graph, node, 0), find.of(node.inputs[0]),
                           find.of(node.inputs[1]), find.of(node.inputs[2]));
    }
    return type && is_reasonable(*type) ? type : std::nullopt;
}

}  // namespace vartml::graph
