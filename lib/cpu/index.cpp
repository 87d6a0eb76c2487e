// SPDX-License-Identifier: Apache-2.0
// Gather operators: elements picked by index.
#include <cstring>
#include <utility>

#include "lib/cpu/index.h"
#include "lib/cpu/kernel.h"

namespace vartml::cpu {

namespace {

Result<void> gather(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const AxisView view =
        around_axis(x.shape, static_cast<size_t>(call.node.get("axis", int64_t{0})));
    const auto indices = read_indices(call, 1, view.size);
    if (!indices) return indices.error();
    const size_t run = static_cast<size_t>(view.inner) * vartml::size_bytes(x.type);
    if (run == 0) return {};
    std::byte* dst = y.data;
    for (int64_t outer = 0; outer < view.outer; ++outer) {
        const std::byte* src = x.data + static_cast<size_t>(outer * view.size) * run;
        for (const int64_t index : *indices) {
            std::memcpy(dst, src + static_cast<size_t>(index) * run, run);
            dst += run;
        }
    }
    return {};
}

Result<void> gather_elements(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const auto places = element_places(call, call.inputs[1].shape);
    if (!places) return places.error();
    with_word(vartml::size_bytes(x.type), [&]<typename T>(T) {
        std::byte* dst = y.data;
        for (const int64_t place : *places) {
            std::memcpy(dst, x.data + static_cast<size_t>(place) * sizeof(T), sizeof(T));
            dst += sizeof(T);
        }
    });
    return {};
}

Result<void> gather_nd(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const auto batch_dims = static_cast<size_t>(call.node.get("batch_dims", int64_t{0}));
    const auto places = slice_places(call, batch_dims);
    if (!places) return places.error();
    const size_t run = static_cast<size_t>(places->run) * vartml::size_bytes(x.type);
    if (run == 0) return {};
    std::byte* dst = y.data;
    for (const int64_t place : places->first) {
        std::memcpy(dst, x.data + static_cast<size_t>(place) * vartml::size_bytes(x.type), run);
        dst += run;
    }
    return {};
}

constexpr KernelRow rows[] = {
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
};

}  // namespace

Result<std::vector<int64_t>> element_places(const Call& call, const Shape& shape) {
    const Array& x = call.inputs[0];
    const auto axis = static_cast<size_t>(call.node.get("axis", int64_t{0}));
    if (shape.size() != x.shape.size()) return bad_data(call, "has indices of another rank");
    if (shape.empty()) return bad_data(call, "has no axis to count along");
    for (size_t i = 0; i < shape.size(); ++i) {
        if (i != axis && shape[i] > x.shape[i]) {
            return bad_data(call, "has indices of size " + std::to_string(shape[i]) + " in axis " +
                                      std::to_string(i) + " of size " + std::to_string(x.shape[i]));
        }
    }
    auto places = read_indices(call, 1, x.shape[axis]);
    if (!places) return places;
    Strides strides = strides_of(x.shape);
    const int64_t step = std::exchange(strides[axis], 0);
    Walk<1> walk(shape, {strides});
    for (int64_t& place : *places) {
        place = place * step + walk.offset();
        walk.next();
    }
    return places;
}

Result<SlicePlaces> slice_places(const Call& call, size_t batch_dims) {
    const Array &x = call.inputs[0], &indices = call.inputs[1];
    if (indices.type != DataType::int64 && indices.type != DataType::int32)
        return no_type(call, indices.type);
    const size_t rank = indices.shape.size();
    if (rank <= batch_dims) return bad_data(call, "has indices without a last axis");
    const auto depth = static_cast<size_t>(indices.shape.back());
    bool fits = batch_dims + depth <= x.shape.size();
    for (size_t i = 0; i < batch_dims && fits; ++i) fits = indices.shape[i] == x.shape[i];
    if (!fits) return bad_data(call, "has indices that do not fit its data");
    int64_t batches = 1;
    for (size_t i = 0; i < batch_dims; ++i) batches *= x.shape[i];
    const Strides strides = strides_of(x.shape);
    const auto tuples = depth == 0 ? std::vector<int64_t>() : read_numbers<int64_t>(indices);
    SlicePlaces places;
    for (size_t i = batch_dims + depth; i < x.shape.size(); ++i) places.run *= x.shape[i];
    int64_t count = 1;
    for (size_t i = 0; i + 1 < rank; ++i) count *= indices.shape[i];
    const int64_t per_batch = batches == 0 ? 0 : count / batches;
    const int64_t batch_size = batches == 0 ? 0 : x.elements() / batches;
    places.first.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
        int64_t place = i / per_batch * batch_size;
        for (size_t k = 0; k < depth; ++k) {
            const int64_t index = tuples[static_cast<size_t>(i) * depth + k];
            const int64_t size = x.shape[batch_dims + k];
            if (index < -size || index >= size) {
                return bad_data(
                    call, "takes element " + std::to_string(index) + " of " + std::to_string(size));
            }
            place += (index < 0 ? index + size : index) * strides[batch_dims + k];
        }
        places.first.push_back(place);
    }
    return places;
}

std::span<const KernelRow> index_kernels() {
    return rows;
}

}  // namespace vartml::cpu
