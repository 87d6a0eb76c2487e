// SPDX-License-Identifier: Apache-2.0
// Arithmetic on views.
#include "lib/run/softnpu/view.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace vartml::softnpu {

int64_t View::elements() const {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

Order row_major(size_t rank) {
    Order order(rank);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

Order channels_last(size_t rank) {
    Order order = row_major(rank);
    if (rank >= 3) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    return order;
}

Dims dense_strides(const Dims& dims, const Order& order) {
    Dims strides(dims.size());
    int64_t stride = 1;
    for (size_t i = order.size(); i-- > 0;) {
        const auto d = static_cast<size_t>(order[i]);
        strides[d] = stride;
        stride *= dims[d];
    }
    return strides;
}

Order order_of(const View& view) {
    Order order = row_major(view.dims.size());
    const auto rank_stride = [&](int32_t d) {
        const auto i = static_cast<size_t>(d);
        return view.dims[i] == 1 ? INT64_MAX : view.strides[i];
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return rank_stride(a) > rank_stride(b); });
    return order;
}

bool is_dense(const View& view, const Order& order) {
    const Dims want = dense_strides(view.dims, order);
    for (size_t i = 0; i < want.size(); ++i) {
        if (view.dims[i] != 1 && view.strides[i] != want[i]) return false;
    }
    return true;
}

View transpose(const View& view, const std::vector<int64_t>& perm) {
    View result = view;
    for (size_t i = 0; i < perm.size(); ++i) {
        result.dims[i] = view.dims[static_cast<size_t>(perm[i])];
        result.strides[i] = view.strides[static_cast<size_t>(perm[i])];
    }
    return result;
}

View slice(const View& view, size_t axis, int64_t start, int64_t size, int64_t step) {
    View result = view;
    result.offset += start * view.strides[axis];
    result.dims[axis] = size;
    result.strides[axis] *= step;
    return result;
}

std::optional<View> reshape(const View& view, const Dims& dims) {
    View result{view.buffer, view.type, view.offset, dims, Dims(dims.size(), 1)};
    // Sizes of 1 carry no information; the others are matched in groups of equal products.
    Dims old_dims, old_strides;
    for (size_t i = 0; i < view.dims.size(); ++i) {
        if (view.dims[i] == 1) continue;
        old_dims.push_back(view.dims[i]);
        old_strides.push_back(view.strides[i]);
    }
    size_t i = 0, j = 0;
    while (i < old_dims.size()) {
        while (j < dims.size() && dims[j] == 1) ++j;
        assert(j < dims.size());
        size_t i_end = i + 1, j_end = j + 1;
        int64_t have = old_dims[i], want = dims[j];
        while (have != want) {
            if (have < want) {
                if (i_end == old_dims.size()) return std::nullopt;
                have *= old_dims[i_end++];
            } else {
                if (j_end == dims.size()) return std::nullopt;
                want *= dims[j_end++];
            }
        }
        for (size_t k = i; k + 1 < i_end; ++k) {
            if (old_strides[k] != old_strides[k + 1] * old_dims[k + 1]) return std::nullopt;
        }
        int64_t stride = old_strides[i_end - 1];
        for (size_t k = j_end; k-- > j;) {
            result.strides[k] = stride;
            stride *= dims[k];
        }
        i = i_end;
        j = j_end;
    }
    return result;
}

View broadcast(const View& view, const Dims& dims) {
    View result{view.buffer, view.type, view.offset, dims, Dims(dims.size(), 0)};
    const size_t lead = dims.size() - view.dims.size();
    for (size_t i = 0; i < view.dims.size(); ++i) {
        if (view.dims[i] != 1) result.strides[lead + i] = view.strides[i];
    }
    return result;
}

}  // namespace vartml::softnpu
