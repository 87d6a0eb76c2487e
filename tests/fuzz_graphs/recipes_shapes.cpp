// SPDX-License-Identifier: Apache-2.0
// Recipes: operators that move, pick, fill and reduce.
#include <algorithm>
#include <numeric>

#include "tests/fuzz_graphs/draft.h"

namespace vartml::fuzz_graphs {
namespace {

std::vector<double> as_numbers(const Ints& values) {
    return {values.begin(), values.end()};
}
const Tensor& ints(Draft& d, const Ints& values) {
    return d.numbers(DataType::int64, {std::ssize(values)}, as_numbers(values));
}

// Some of the axes, in order; negative ones now and then.
Ints some_axes(Draft& d, int64_t rank, bool at_least_one) {
    Ints axes;
    const bool negative = d.random.chance(0.3);
    for (int64_t a = 0; a < rank; ++a)
        if (d.random.chance(0.4)) axes.push_back(negative ? a - rank : a);
    if (axes.empty() && at_least_one && rank > 0) axes.push_back(d.random.between(0, rank - 1));
    return axes;
}

// The same elements in other dimensions: neighbours joined or split.
Ints other_shape(Draft& d, const Ints& shape) {
    Ints result = shape;
    for (int64_t change = d.random.between(1, 3); change > 0; --change) {
        if (result.size() > 1 && d.random.chance(0.5)) {
            const size_t at = d.random.index(result.size() - 1);
            result[at] *= result[at + 1];
            result.erase(result.begin() + static_cast<std::ptrdiff_t>(at) + 1);
        } else if (result.size() < 6) {
            const size_t at = d.random.index(result.size() + 1);
            int64_t factor = 1;
            if (at < result.size())
                for (const int64_t f : {2, 3, 5})
                    if (result[at] > 0 && result[at] % f == 0 && d.random.chance(0.6)) factor = f;
            if (at < result.size()) result[at] /= factor;
            result.insert(result.begin() + static_cast<std::ptrdiff_t>(at), factor);
        }
    }
    return result;
}

bool reshape(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(any_type, 0, 5);
    Ints shape = other_shape(d, x.shape());
    if (!x.is_empty() && !shape.empty() && d.random.chance(0.4))
        shape[d.random.index(shape.size())] = -1;
    for (size_t a = 0; a < std::min(shape.size(), x.shape().size()); ++a)
        if (shape[a] == x.shape()[a] && d.random.chance(0.15) && shape[a] != 0) shape[a] = 0;
    Request request{kind, {x.name}};
    request.parameters = {{"shape", as_numbers(shape)}};
    return d.one(request);
}

bool squeeze(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(any_type, 1, 5);
    Ints axes;
    for (int64_t a = 0; a < x.rank(); ++a)
        if (x.size(a) == 1 && d.random.chance(0.7)) axes.push_back(a);
    if (axes.empty()) return false;
    Request request{kind, {x.name}};
    request.parameters = {{"axes", as_numbers(axes)}};
    return d.one(request);
}

bool unsqueeze(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(any_type, 0, 4);
    Ints axes = {d.random.between(0, x.rank())};
    if (d.random.chance(0.3)) axes.push_back(x.rank() + 1);
    if (axes[0] == axes.back() && axes.size() > 1) axes.pop_back();
    Request request{kind, {x.name}};
    request.parameters = {{"axes", as_numbers(axes)}};
    return d.one(request);
}

bool transpose(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(any_type, 0, 5);
    Ints perm(x.shape().size());
    std::iota(perm.begin(), perm.end(), 0);
    if (x.rank() == 4 && d.random.chance(0.4))
        perm = d.random.chance(0.5) ? Ints{0, 2, 3, 1} : Ints{0, 3, 1, 2};
    else
        d.random.shuffle(perm);
    Request request{kind, {x.name}};
    if (d.random.chance(0.85)) request.attributes = {{"perm", perm}};
    return d.one(request);
}

bool slice(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(any_type, 1, 5);
    const Ints axes = some_axes(d, x.rank(), true);
    std::vector<double> starts, ends, steps;
    bool strided = false;
    for (const int64_t a : axes) {
        const int64_t size = x.size(a < 0 ? a + x.rank() : a);
        int64_t step = d.random.chance(0.6) ? 1 : d.random.between(-3, 3);
        if (step == 0 || d.opset < 10) step = 1;
        int64_t start = d.random.between(0, std::max<int64_t>(size - 1, 0));
        int64_t end = d.random.between(start, size);
        if (step < 0) std::swap(start, end), --end;
        if (d.random.chance(0.2)) start -= size;
        if (d.random.chance(0.2)) end = step > 0 ? 1000000 : -1000000;
        starts.push_back(static_cast<double>(start)), ends.push_back(static_cast<double>(end));
        steps.push_back(static_cast<double>(step));
        strided = strided || step != 1;
    }
    Request request{kind, {x.name}};
    request.parameters = {{"starts", starts}, {"ends", ends}, {"axes", as_numbers(axes)}};
    if (strided || (d.opset >= 10 && d.random.chance(0.3)))
        request.parameters.emplace_back("steps", steps);
    return d.one(request);
}

bool split(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(any_type, 1, 5);
    const int64_t axis = d.random.between(0, x.rank() - 1), size = x.size(axis);
    if (size < 2) return false;
    Ints parts;
    for (int64_t left = size; left > 0 && parts.size() < 4; left -= parts.back())
        parts.push_back(parts.size() == 3 ? left : d.random.between(1, left));
    Request request{kind, {x.name}, {{"axis", d.random.chance(0.3) ? axis - x.rank() : axis}}};
    request.outputs = parts.size();
    const bool equal = size % static_cast<int64_t>(parts.size()) == 0 && d.random.chance(0.3);
    if (!equal)
        request.parameters = {{"split", as_numbers(parts)}};
    else if (d.opset >= 18)
        request.attributes.emplace_back("num_outputs", static_cast<int64_t>(parts.size()));
    return !d.add(request).empty();
}

bool concat(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(any_type, 1, 5);
    const int64_t axis = d.random.between(0, x.rank() - 1);
    Request request{kind, {x.name}, {{"axis", d.random.chance(0.3) ? axis - x.rank() : axis}}};
    for (int64_t more = d.random.between(0, 3); more > 0; --more) {
        Ints shape = x.shape();
        const Tensor* same = d.find(x.type(), shape);
        if (!same || d.random.chance(0.4)) {
            shape[static_cast<size_t>(axis)] = d.random.between(1, 5);
            same = d.random.chance(0.4) ? &d.constant(x.type(), shape) : &d.input(x.type(), shape);
        }
        request.inputs.insert(request.inputs.begin() + d.random.between(0, 1), same->name);
    }
    return d.one(request);
}

bool pad(Draft& d, const std::string& kind) {
    const Types types =
        d.opset < 11 ? f32 : Types{DataType::float32, DataType::int32, DataType::int64};
    const Tensor& x = d.operand(types, 1, 5);
    std::string mode = d.random.pick<std::string>({"constant", "constant", "reflect", "edge"});
    if (d.opset >= 19 && d.random.chance(0.15)) mode = "wrap";
    std::vector<double> pads(2 * x.shape().size(), 0);
    const bool only_sides = x.rank() == 4 && d.random.chance(0.6);
    for (size_t i = 0; i < pads.size(); ++i) {
        const size_t axis = i % x.shape().size();
        const int64_t size = x.shape()[axis];
        if ((only_sides && axis < 2) || d.random.chance(0.4) || size == 0) continue;
        const int64_t most = mode == "reflect" || mode == "wrap" ? size - 1 : 3;
        pads[i] = static_cast<double>(
            d.random.between(0, std::max<int64_t>(0, std::min<int64_t>(most, 3))));
        if (mode == "constant" && d.random.chance(0.1) && size > 2) pads[i] = -1;
    }
    Request request{kind, {x.name}, {{"mode", mode}}};
    request.parameters = {{"pads", pads}};
    if (mode == "constant" && d.random.chance(0.3))
        request.parameters.emplace_back("value", std::vector<double>{2});
    return d.one(request);
}

bool expand(Draft& d, const std::string& kind) {
    const Ints shape = d.shape(0, 5);
    const Tensor* x = &d.operand(any_type, 0, 4);
    Ints target = x->shape();
    for (int64_t& size : target)
        if (size == 1 && d.random.chance(0.7)) size = d.random.between(1, 5);
    if (d.random.chance(0.4) && target.size() < 5)
        target.insert(target.begin(), d.random.between(1, 3));
    Request request{kind, {x->name}};
    request.parameters = {{"shape", as_numbers(target)}};
    return d.one(request);
}

bool tile(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(any_type, 1, 5);
    std::vector<double> repeats;
    for (int64_t a = 0; a < x.rank(); ++a)
        repeats.push_back(d.random.chance(0.6) ? 1 : static_cast<double>(d.random.between(1, 3)));
    Request request{kind, {x.name}};
    request.parameters = {{"repeats", repeats}};
    return d.one(request);
}

const Tensor& indices(Draft& d, const Ints& shape, int64_t size) {
    const double low = d.random.chance(0.3) && d.opset >= 11 ? -static_cast<double>(size) : 0;
    const DataType type = d.random.chance(0.7) ? DataType::int64 : DataType::int32;
    return d.second(type, shape, low, static_cast<double>(size));
}

bool gather(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(any_type, 1, 4);
    const int64_t axis = d.random.between(0, x.rank() - 1);
    if (x.is_empty()) return false;
    Ints shape = d.shape(0, 2);
    if (kind == "GatherElements") {
        if (!d.has(kind)) return false;
        shape = x.shape();
        for (int64_t& size : shape) size = d.random.between(1, std::max<int64_t>(size, 1));
    }
    return d.one({kind, {x.name, indices(d, shape, x.size(axis)).name}, {{"axis", axis}}});
}

bool gather_nd(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand(any_type, 2, 4);
    if (x.is_empty()) return false;
    const int64_t depth = d.random.between(1, x.rank()), rows = d.random.between(1, 4);
    std::vector<double> values;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t a = 0; a < depth; ++a)
            values.push_back(static_cast<double>(d.random.between(0, x.size(a) - 1)));
    return d.one({kind, {x.name, d.numbers(DataType::int64, {rows, depth}, values).name}});
}

bool scatter(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand(f32, 1, 4);
    if (x.is_empty()) return false;
    Request request{kind, {x.name}};
    std::vector<double> values;
    Ints shape, updates;
    if (kind == "ScatterND") {
        // Rows that differ: the order of updates does not matter.
        const int64_t rows = d.random.between(1, x.size(0));
        Ints which(static_cast<size_t>(x.size(0)));
        std::iota(which.begin(), which.end(), 0);
        d.random.shuffle(which);
        which.resize(static_cast<size_t>(rows));
        values = as_numbers(which);
        shape = {rows, 1};
        updates = x.shape();
        updates[0] = rows;
    } else {
        const int64_t axis = d.random.between(0, x.rank() - 1);
        updates = x.shape();
        for (int64_t& size : updates) size = d.random.between(1, size);
        shape = updates;
        // Along the axis each position once.
        const int64_t shift = d.random.between(0, x.size(axis) - 1);
        int64_t inner = 1;
        for (size_t a = static_cast<size_t>(axis) + 1; a < shape.size(); ++a) inner *= shape[a];
        for (int64_t i = 0; i < count_elements(shape); ++i)
            values.push_back(static_cast<double>(
                (i / inner % shape[static_cast<size_t>(axis)] + shift) % x.size(axis)));
        request.attributes.emplace_back("axis", axis);
    }
    request.inputs.push_back(d.numbers(DataType::int64, shape, values).name);
    request.inputs.push_back(d.second(x.type(), updates, -2, 2).name);
    if (d.opset >= 18 && d.random.chance(0.4))
        request.attributes.emplace_back(
            "reduction", d.random.pick<std::string>({"none", "add", "mul", "max", "min"}));
    return d.one(request);
}

bool reverse_sequence(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand(f32, 2, 4);
    if (x.is_empty()) return false;
    const int64_t time = d.random.between(0, 1);
    const Tensor& lengths =
        d.second(DataType::int64, {x.size(1 - time)}, 1, static_cast<double>(x.size(time)) + 1);
    return d.one({kind, {x.name, lengths.name}, {{"time_axis", time}, {"batch_axis", 1 - time}}});
}

bool center_crop_pad(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand(f32, 1, 4);
    const Ints axes = some_axes(d, x.rank(), true);
    Ints sizes;
    for (size_t i = 0; i < axes.size(); ++i) sizes.push_back(d.random.between(1, 8));
    return d.one({kind, {x.name, ints(d, sizes).name}, {{"axes", axes}}});
}

bool constant_of_shape(Draft& d, const std::string& kind) {
    const auto made = d.add({kind, {ints(d, d.shape(1, 3)).name}});
    // A constant: it needs a reader that is none.
    return !made.empty() &&
           d.one({"Add", {d.input(DataType::float32, made[0]->shape()).name, made[0]->name}});
}

bool range(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const auto scalar = [&](double v) { return d.numbers(DataType::float32, {}, {v}).name; };
    const double count = static_cast<double>(d.random.between(1, 9));
    const auto made = d.add({kind, {scalar(1), scalar(1 + count * 0.5), scalar(0.5)}});
    return !made.empty() &&
           d.one({"Mul", {d.input(DataType::float32, {3, 1}).name, made[0]->name}});
}

bool eye_like(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand(f32, 2, 2);
    Request request{kind, {x.name}};
    if (d.random.chance(0.5)) request.attributes.emplace_back("k", d.random.between(-2, 2));
    if (d.random.chance(0.3)) request.attributes.emplace_back("dtype", int64_t{7});
    return d.one(request);
}

bool trilu(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand({DataType::float32, DataType::int64}, 2, 4);
    Request request{kind, {x.name}};
    if (d.random.chance(0.6))
        request.parameters = {{"k", {static_cast<double>(d.random.between(-3, 3))}}};
    request.attributes = {{"upper", d.random.between(0, 1)}};
    return d.one(request);
}

bool top_k(Draft& d, const std::string& kind) {
    const Tensor& x = d.operand({DataType::float32, DataType::int64}, 1, 4);
    const int64_t axis = d.random.between(0, x.rank() - 1);
    if (x.size(axis) == 0 || (d.opset < 11 && x.type() != DataType::float32)) return false;
    Request request{kind, {x.name}, {{"axis", axis}}};
    request.parameters = {{"k", {static_cast<double>(d.random.between(1, x.size(axis)))}}};
    if (d.opset >= 11 && d.random.chance(0.5))
        request.attributes.emplace_back("largest", d.random.between(0, 1));
    request.outputs = 2;
    return !d.add(request).empty();
}

bool one_hot(Draft& d, const std::string& kind) {
    const int64_t depth = d.random.between(2, 7);
    const Tensor& which = d.input(DataType::int64, d.shape(1, 3), 0, static_cast<double>(depth));
    const Tensor& size = d.numbers(DataType::int64, {1}, {static_cast<double>(depth)});
    const Tensor& values = d.numbers(DataType::float32, {2}, {-0.5, 1.5});
    Request request{kind, {which.name, size.name, values.name}};
    if (d.random.chance(0.6))
        request.attributes = {{"axis", d.random.between(-which.rank() - 1, which.rank())}};
    return d.one(request);
}

bool shaped_by_data(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand({DataType::float32, DataType::int64}, 1, 3);
    if (x.is_empty()) return false;
    Request request{kind, {x.name}};
    request.is_end = true;
    if (kind == "Compress") {
        const int64_t axis = d.random.between(0, x.rank() - 1);
        request.inputs.push_back(d.input(DataType::boolean, {x.size(axis)}).name);
        request.attributes = {{"axis", axis}};
    }
    if (kind == "NonZero") {
        const auto rounded = d.add({"Greater", {x.name, d.constant(x.type(), {}).name}});
        if (rounded.empty()) return false;
        request.inputs = {rounded[0]->name};
    }
    if (kind == "Unique") {
        request.outputs = static_cast<size_t>(d.random.between(1, 4));
        if (d.random.chance(0.3)) request.attributes = {{"sorted", int64_t{0}}};
    }
    return !d.add(request).empty();
}

bool non_max_suppression(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const int64_t boxes = d.random.between(1, 12), classes = d.random.between(1, 3);
    const Tensor& corners = d.input(DataType::float32, {1, boxes, 4}, 0, 10);
    const Tensor& scores = d.input(DataType::float32, {1, classes, boxes}, 0, 1);
    const auto scalar = [&](DataType type, double v) { return d.numbers(type, {1}, {v}).name; };
    Request request{kind,
                    {corners.name, scores.name,
                     scalar(DataType::int64, static_cast<double>(d.random.between(1, 6))),
                     scalar(DataType::float32, d.random.real(0.1, 0.8)),
                     scalar(DataType::float32, d.random.real(0, 0.5))},
                    {{"center_point_box", d.random.between(0, 1)}}};
    request.is_end = true;
    return !d.add(request).empty();
}

bool reduce(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const bool is_whole = d.random.chance(0.1) && kind.find("Log") == std::string::npos;
    const Tensor& x = d.operand(is_whole ? Types{DataType::int32} : f32, 0, 5);
    if (x.is_empty()) return false;
    Request request{kind, {x.name}};
    if (x.rank() > 0 && d.random.chance(0.85)) {
        Ints axes = some_axes(d, x.rank(), true);
        if (x.rank() == 4 && d.random.chance(0.3)) axes = {2, 3};
        if (d.opset < 11)
            for (int64_t& a : axes) a = a < 0 ? a + x.rank() : a;
        request.parameters = {{"axes", as_numbers(axes)}};
    }
    if (d.random.chance(0.6)) request.attributes.emplace_back("keepdims", d.random.between(0, 1));
    return d.one(request);
}

bool cum_sum(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand(f32, 1, 4);
    Request request{kind, {x.name}};
    request.parameters = {
        {"axis", {static_cast<double>(d.random.between(-x.rank(), x.rank() - 1))}}};
    request.attributes = {{"exclusive", d.random.between(0, 1)},
                          {"reverse", d.random.between(0, 1)}};
    return d.one(request);
}

constexpr Recipe recipes[] = {
    {"CenterCropPad", center_crop_pad},
    {"Compress", shaped_by_data},
    {"Concat", concat},
    {"ConstantOfShape", constant_of_shape},
    {"CumSum", cum_sum},
    {"Expand", expand},
    {"EyeLike", eye_like},
    {"Gather", gather},
    {"GatherElements", gather},
    {"GatherND", gather_nd},
    {"NonMaxSuppression", non_max_suppression},
    {"NonZero", shaped_by_data},
    {"OneHot", one_hot},
    {"Pad", pad},
    {"Range", range},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSum", reduce},
    {"ReduceSumSquare", reduce},
    {"Reshape", reshape},
    {"ReverseSequence", reverse_sequence},
    {"ScatterElements", scatter},
    {"ScatterND", scatter},
    {"Slice", slice},
    {"Split", split},
    {"Squeeze", squeeze},
    {"Tile", tile},
    {"TopK", top_k},
    {"Transpose", transpose},
    {"Trilu", trilu},
    {"Unique", shaped_by_data},
    {"Unsqueeze", unsqueeze},
};

}  // namespace

std::span<const Recipe> shape_recipes() {
    return recipes;
}

}  // namespace vartml::fuzz_graphs
