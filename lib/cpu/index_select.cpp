// SPDX-License-Identifier: Apache-2.0
// Operators that select or rank elements by value.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "lib/cpu/kernel.h"
#include "lib/cpu/moves.h"

namespace vartml::cpu {

namespace {

Result<void> one_hot(const Call& call) {
    const Array &indices = call.inputs[0], &values = call.inputs[1], &y = call.outputs[0];
    if (values.elements() != 2) return bad_data(call, "has values other than one off and one on");
    const AxisView view =
        around_axis(y.shape, static_cast<size_t>(call.node.get("axis", int64_t{0})));
    const auto numbers = read_numbers<int64_t>(indices);
    const size_t width = vartml::size_bytes(y.type);
    copy_elements(y.shape, width, values.data, {}, y.data, strides_of(y.shape));
    for (int64_t i = 0; i < indices.elements(); ++i) {
        int64_t at = numbers[static_cast<size_t>(i)];
        if (at < 0) at += view.size;
        if (at < 0 || at >= view.size) continue;  // all off
        const int64_t outer = i / view.inner, inner = i % view.inner;
        const auto element = static_cast<size_t>((outer * view.size + at) * view.inner + inner);
        std::memcpy(y.data + element * width, values.data + width, width);
    }
    return {};
}

// Gives output `i` its real size along an axis that the type bounds.
Result<void> shrink(const Call& call, size_t i, size_t axis, int64_t size) {
    if (!call.has_output(i)) return {};
    int64_t& bound = call.outputs[i].shape[axis];
    if (size > bound) {
        return bad_data(call, "finds " + std::to_string(size) + " elements for an output of " +
                                  std::to_string(bound));
    }
    bound = size;
    return {};
}

Result<void> non_zero(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    Result<void> done;
    const bool known = graph::with_type(x.type, [&]<typename T>(T) {
        const auto elements = x.span<T>();
        const auto is_set = [](T element) { return number(element) != Number<T>(0); };
        const int64_t count = std::ranges::count_if(elements, is_set);
        done = shrink(call, 0, 1, count);
        if (!done) return;
        Walk<1> walk(x.shape, {});
        int64_t* column = y.as<int64_t>();
        for (const T element : elements) {
            if (is_set(element)) {
                for (size_t axis = 0; axis < x.shape.size(); ++axis)
                    column[static_cast<int64_t>(axis) * count] = walk.index(axis);
                ++column;
            }
            walk.next();
        }
    });
    return known ? done : no_type(call, x.type);
}

Result<void> compress(const Call& call) {
    const Array &x = call.inputs[0], &condition = call.inputs[1], &y = call.outputs[0];
    if (condition.type != DataType::boolean) return no_type(call, condition.type);
    const bool flat = !call.node.has("axis");
    const auto axis = flat ? size_t{0} : static_cast<size_t>(call.node.get("axis", int64_t{0}));
    const AxisView view = flat ? AxisView{1, x.elements(), 1} : around_axis(x.shape, axis);
    const auto flags = condition.span<graph::Bool>();
    std::vector<int64_t> taken;
    for (int64_t i = 0; i < std::min(view.size, condition.elements()); ++i) {
        if (flags[static_cast<size_t>(i)].byte != 0) taken.push_back(i);
    }
    if (auto ok = shrink(call, 0, axis, static_cast<int64_t>(taken.size())); !ok) return ok;
    const size_t run = static_cast<size_t>(view.inner) * vartml::size_bytes(x.type);
    if (run == 0) return {};
    std::byte* dst = y.data;
    for (int64_t outer = 0; outer < view.outer; ++outer) {
        for (const int64_t i : taken) {
            std::memcpy(dst, x.data + static_cast<size_t>(outer * view.size + i) * run, run);
            dst += run;
        }
    }
    return {};
}

// ---- top k
// -------------------------------------------------------------------------------------------------------

// Which of two elements of a row comes first: NaN counts as the largest number, and of equal ones
// the lower index.
template <typename T>
struct Ahead {
    const T* row;
    int64_t stride;
    bool largest;
    bool operator()(int64_t a, int64_t b) const {
        const auto x = number(row[a * stride]), y = number(row[b * stride]);
        if (is_less(x, y)) return !largest;
        if (is_less(y, x)) return largest;
        return a < b;
    }
};

Result<void> top_k(const Call& call) {
    const Array& x = call.inputs[0];
    const auto axis = static_cast<size_t>(call.node.get("axis", int64_t{0}));
    if (axis >= x.shape.size()) return bad_data(call, "has no axis to rank");
    const AxisView view = around_axis(x.shape, axis);
    const bool largest = call.node.get("largest", int64_t{1}) != 0;
    const int64_t k = read_integer(call, 1, call.node.get("k", int64_t{0}));
    if (k < 0 || k > view.size) {
        return bad_data(
            call, "takes " + std::to_string(k) + " of " + std::to_string(view.size) + " elements");
    }
    for (size_t i = 0; i < call.outputs.size(); ++i) {
        if (auto ok = shrink(call, i, axis, k); !ok) return ok;
    }
    std::vector<int64_t> order(static_cast<size_t>(view.size));
    const bool known = graph::with_type(x.type, [&]<typename T>(T) {
        T* const values = call.has_output(0) ? call.outputs[0].as<T>() : nullptr;
        int64_t* const indices = call.has_output(1) ? call.outputs[1].as<int64_t>() : nullptr;
        for (int64_t row = 0; row < view.outer * view.inner; ++row) {
            const int64_t outer = row / view.inner, inner = row % view.inner;
            const T* src = x.as<T>() + outer * view.size * view.inner + inner;
            std::iota(order.begin(), order.end(), 0);
            std::partial_sort(order.begin(), order.begin() + k, order.end(),
                              Ahead<T>{src, view.inner, largest});
            int64_t to = outer * k * view.inner + inner;
            for (int64_t i = 0; i < k; ++i, to += view.inner) {
                const int64_t index = order[static_cast<size_t>(i)];
                if (values) values[to] = src[index * view.inner];
                if (indices) indices[to] = index;
            }
        }
    });
    return known ? Result<void>() : no_type(call, x.type);
}

// ---- unique
// -------------------------------------------------------------------------------------------------------

// Slices along an axis in the order of their elements, all NaN being equal.
template <typename T>
struct SliceOrder {
    const T* data;
    AxisView view;
    // Below, at or above 0 as slice a is less than, equal to or greater than slice b.
    int compare(int64_t a, int64_t b) const {
        for (int64_t outer = 0; outer < view.outer; ++outer) {
            const T* base = data + outer * view.size * view.inner;
            for (int64_t i = 0; i < view.inner; ++i) {
                const auto x = number(base[a * view.inner + i]),
                           y = number(base[b * view.inner + i]);
                if (is_less(x, y)) return -1;
                if (is_less(y, x)) return 1;
            }
        }
        return 0;
    }
};

// Groups of equal slices: the first slice and the number of each, and the group of every slice.
struct Groups {
    std::vector<int64_t> first, counts, of_slice;
};

template <typename T>
Groups group_slices(const SliceOrder<T>& slices, bool sorted) {
    const auto size = static_cast<size_t>(slices.view.size);
    std::vector<int64_t> order(size);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return slices.compare(a, b) < 0; });
    Groups groups;
    groups.of_slice.resize(size);
    for (size_t i = 0; i < size; ++i) {
        if (i == 0 || slices.compare(order[i - 1], order[i]) != 0) {
            groups.first.push_back(order[i]);
            groups.counts.push_back(0);
        }
        ++groups.counts.back();
        groups.of_slice[static_cast<size_t>(order[i])] =
            static_cast<int64_t>(groups.first.size()) - 1;
    }
    if (sorted) return groups;
    // By first appearance.
    std::vector<int64_t> rank(groups.first.size()), place(groups.first.size());
    std::iota(rank.begin(), rank.end(), 0);
    std::ranges::sort(rank, {}, [&](int64_t g) { return groups.first[static_cast<size_t>(g)]; });
    Groups found;
    for (size_t i = 0; i < rank.size(); ++i) {
        const auto group = static_cast<size_t>(rank[i]);
        found.first.push_back(groups.first[group]);
        found.counts.push_back(groups.counts[group]);
        place[group] = static_cast<int64_t>(i);
    }
    for (const int64_t group : groups.of_slice)
        found.of_slice.push_back(place[static_cast<size_t>(group)]);
    return found;
}

Result<void> unique(const Call& call) {
    const Array& x = call.inputs[0];
    const bool flat = !call.node.has("axis");
    const auto axis = flat ? size_t{0} : static_cast<size_t>(call.node.get("axis", int64_t{0}));
    const AxisView view = flat ? AxisView{1, x.elements(), 1} : around_axis(x.shape, axis);
    Groups groups;
    const bool known = graph::with_type(x.type, [&]<typename T>(T) {
        groups =
            group_slices(SliceOrder<T>{x.as<T>(), view}, call.node.get("sorted", int64_t{1}) != 0);
    });
    if (!known) return no_type(call, x.type);
    const auto count = static_cast<int64_t>(groups.first.size());
    if (auto ok = shrink(call, 0, axis, count); !ok) return ok;
    const size_t run = static_cast<size_t>(view.inner) * vartml::size_bytes(x.type);
    if (call.has_output(0) && run > 0) {
        std::byte* dst = call.outputs[0].data;
        for (int64_t outer = 0; outer < view.outer; ++outer) {
            for (const int64_t i : groups.first) {
                std::memcpy(dst, x.data + static_cast<size_t>(outer * view.size + i) * run, run);
                dst += run;
            }
        }
    }
    const std::vector<int64_t>* lists[] = {&groups.first, &groups.of_slice, &groups.counts};
    for (size_t i = 0; i < 3; ++i) {
        if (!call.has_output(i + 1)) continue;
        if (auto ok = shrink(call, i + 1, 0, static_cast<int64_t>(lists[i]->size())); !ok)
            return ok;
        std::ranges::copy(*lists[i], call.outputs[i + 1].as<int64_t>());
    }
    return {};
}

constexpr KernelRow rows[] = {
    {"Compress", compress}, {"NonZero", non_zero}, {"OneHot", one_hot},
    {"TopK", top_k},        {"Unique", unique},
};

}  // namespace

std::span<const KernelRow> index_select_kernels() {
    return rows;
}

}  // namespace vartml::cpu
